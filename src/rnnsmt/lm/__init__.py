"""N-gram language models: estimation, ARPA files, and the automaton that the decoder queries."""
