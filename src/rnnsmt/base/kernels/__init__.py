"""Numba kernels shared by several packages."""
