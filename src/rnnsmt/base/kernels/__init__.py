"""Numba kernels shared by several chapters."""
