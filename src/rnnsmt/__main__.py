"""Entry point of ``python -m rnnsmt`` and of the ``rnnsmt`` command."""

from rnnsmt.base.resuming import leave_signals


def entry() -> None:
    """Run the command line. Ctrl-C ends the process without a traceback even while modules are being imported."""
    leave_signals()

    from rnnsmt.cli import entry as run

    run()


if __name__ == "__main__":
    entry()
