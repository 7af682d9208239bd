"""Compiled kernels of the RNN Encoder-Decoder's data."""
