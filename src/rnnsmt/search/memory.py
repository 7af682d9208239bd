"""How much the search remembers of a neural LM, and the memory that takes, which the workflow asks for."""

MAX_ENTRIES = 7 << 22
"""N-grams that are remembered. What the sentences under way still ask for goes into the last eighth of 2^25, the next
power of two: the store would be doubled for nothing."""

ENTRY_BYTES = 60
"""Of the store, for each n-gram that it has room for; there is room for a power of two of them."""

MOST_NEURAL_MEGABYTES = 1500 + 1.5 * (1 << MAX_ENTRIES.bit_length()) * ENTRY_BYTES / 1e6
"""What a search holds at most for its neural LM: PyTorch, the network's first layer for every word, and the store while
it moves from half its size to the whole."""
