"""Modules used by all packages: files, options, processes, progress, signals, and shared numba kernels."""
