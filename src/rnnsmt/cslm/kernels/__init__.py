"""Numba kernels of the CSLM."""
