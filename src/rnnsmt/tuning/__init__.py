"""Tuning of feature weights for corpus BLEU: MERT (Och 2003) and batch MIRA."""

from rnnsmt.tuning.operations import OptimizedWeights, TunedRun, optimize, rerank, tune

__all__ = ["OptimizedWeights", "TunedRun", "optimize", "rerank", "tune"]
