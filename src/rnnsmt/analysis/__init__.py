"""Figures of trained models: learning curves, tuning curves, phrase scores, embeddings; and the report of a run."""

from rnnsmt.analysis.operations import (
    bleu_curves,
    embeddings,
    history_curves,
    phrase_examples,
    report,
    score_scatter,
    sentence_vectors,
)

__all__ = [
    "bleu_curves",
    "embeddings",
    "history_curves",
    "phrase_examples",
    "report",
    "score_scatter",
    "sentence_vectors",
]
