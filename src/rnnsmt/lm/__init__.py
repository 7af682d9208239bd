"""N-gram language models: estimation, ARPA files, and the automaton that the decoder queries."""

from rnnsmt.lm.operations import binarize, estimate

__all__ = ["binarize", "estimate"]

MAX_ORDER = 10
"""Maximum order of a model that can be read or estimated."""

KENLM_ORDERS = (2, 6)
"""Minimum and maximum order of a model that KenLM's Python module can load."""
