"""Kernels of n-gram language models, compiled by numba."""
