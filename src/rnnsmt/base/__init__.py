"""Modules used by all packages: files, options, processes, progress, signals, and shared numba kernels."""

is_program = False
"""Whether this process runs the command ``rnnsmt``, which may change its global state, rather than a user's program."""

has_docstrings = True
"""Whether ``operation`` creates docstrings and signatures for Python; the command line and the workflow, which do not
show them, set this to False before they import an operation."""
