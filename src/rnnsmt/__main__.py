"""``python -m rnnsmt`` and the ``rnnsmt`` command."""

from rnnsmt.stopping import leave_signals


def entry() -> None:
    """Run the command line; Ctrl-C while it is still being imported is no traceback."""
    leave_signals()

    from rnnsmt.cli import entry as run

    run()


if __name__ == "__main__":
    entry()
