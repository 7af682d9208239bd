"""Figures of trained models: learning curves, tuning curves, phrase scores, embeddings; and the report of a run."""

from rnnsmt.analysis.operations import (
    bleu_curves,
    embeddings,
    learning_curve,
    phrase_examples,
    report,
    score_scatter,
    sentence_vectors,
    tuning_curves,
)

__all__ = [
    "bleu_curves",
    "embeddings",
    "learning_curve",
    "phrase_examples",
    "report",
    "score_scatter",
    "sentence_vectors",
    "tuning_curves",
]
