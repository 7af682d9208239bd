"""Errors that a user can correct."""


class InputError(ValueError):
    """Invalid input. The message is one sentence that names the file, the line and a remedy; the exit status is 2.

    Functions that read files or check options raise it; except for operations, their docstrings may omit this.
    """


class OtherVersionError(InputError):
    """A file was written by another version of the program."""


class DamagedError(InputError):
    """A compressed file is damaged; the cause is the exception of the decompressor."""
