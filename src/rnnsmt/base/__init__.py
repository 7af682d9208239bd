"""Modules used by all packages: files, options, processes, progress, signals, and shared numba kernels."""

is_program = False
"""Whether this process is the command ``rnnsmt``, which may change its global state, and not a program of a user."""
