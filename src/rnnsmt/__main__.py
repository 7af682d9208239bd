"""``python -m rnnsmt``: the same as the ``rnnsmt`` command."""

from rnnsmt.cli import entry

if __name__ == "__main__":
    entry()
