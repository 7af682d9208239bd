"""N-gram language models: estimation, ARPA files, and the automaton that the decoder queries."""

from rnnsmt.lm.operations import binarize, estimate

__all__ = ["binarize", "estimate"]

MAX_ORDER = 10
"""Maximum order of a model, also of the built-in estimator."""

KENLM_ORDERS = (2, 6)
"""Minimum and maximum order that KenLM's Python module can load."""
