"""Word alignment and symmetrisation."""

from rnnsmt.align.operations import MAX_PAIRS, check, symmetrize, words

__all__ = ["MAX_PAIRS", "check", "symmetrize", "words"]

FAST_ALIGN_ITERATIONS = 5
"""Iterations of fast_align, including the last one, which only aligns."""

MODEL1_ITERATIONS = 5

HMM_ITERATIONS = 5
"""Iterations that estimate parameters; a further one aligns."""
