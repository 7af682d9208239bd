"""Size limits of the store of neural LM scores, and its memory, which the workflow requests from the scheduler."""

MAX_ENTRIES = 7 << 22
"""Maximum number of n-grams in the store: 7/8 of 2^25. The n-grams that sentences under way still add fit into the last
eighth, so the store, whose size is a power of two, is not doubled once more."""

ENTRY_BYTES = 60
"""Bytes of the store per n-gram of its capacity, which is a power of two."""

MOST_NEURAL_MEGABYTES = 1500 + 1.5 * (1 << MAX_ENTRIES.bit_length()) * ENTRY_BYTES / 1e6
"""Peak memory of a search for its neural LM, in MB: PyTorch, the network's first layer precomputed for every word, and
the store while it is copied from half its maximum capacity to the maximum."""
