"""N-gram language models: estimation, ARPA files, the automaton that the search queries."""
