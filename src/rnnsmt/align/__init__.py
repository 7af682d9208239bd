"""Word alignment and symmetrisation."""

from rnnsmt.align.operations import MAX_PAIRS, check, symmetrize, words

__all__ = ["MAX_PAIRS", "check", "symmetrize", "words"]

MODEL1_ITERATIONS = 5

HMM_ITERATIONS = 5
"""Iterations that estimate parameters; a further one aligns."""
