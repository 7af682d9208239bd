"""Phrase extraction, scoring, reordering tables, files of phrase tables, and filtering."""

from rnnsmt.phrases.operations import augment, extract, filter, lexical, reordering, score

__all__ = ["augment", "extract", "filter", "lexical", "reordering", "score"]
