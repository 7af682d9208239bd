"""Kernels of the decoder, compiled with numba."""
