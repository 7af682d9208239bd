"""Kernels of the aligners, compiled by numba."""
