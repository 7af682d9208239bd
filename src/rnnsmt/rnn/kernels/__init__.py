"""Numba kernels of the RNN Encoder-Decoder."""
