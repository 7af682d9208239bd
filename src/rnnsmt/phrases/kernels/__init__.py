"""Kernels of phrase tables, compiled by numba."""
