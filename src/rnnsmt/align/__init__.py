"""Word alignment and symmetrisation."""

from rnnsmt.align.operations import MAX_PAIRS, symmetrize, words

__all__ = ["MAX_PAIRS", "symmetrize", "words"]

MODEL1_ITERATIONS = 5

HMM_ITERATIONS = 5
"""Number of iterations that estimate parameters; a further iteration aligns."""
