"""Shared ground of all chapters: files, options, processes, progress, signals, and the numba kernels used by many."""
