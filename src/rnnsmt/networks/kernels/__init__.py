"""Numba kernels of all networks."""
