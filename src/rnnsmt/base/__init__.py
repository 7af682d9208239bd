"""Modules used by all packages: files, options, processes, progress, signals, and shared numba kernels."""

is_program = False
"""Whether this process is the command ``rnnsmt``, which may change its global state, and not a program of a user."""

has_docstrings = True
"""Whether operations get the docstrings of Python functions; a command and the workflow, which set this to False before
they import an operation, print none."""
