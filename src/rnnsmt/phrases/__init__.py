"""Phrase extraction, scoring, reordering tables, score columns, files of phrase tables, and filtering."""

from rnnsmt.phrases.operations import augment, column, extract, filter, import_table, lexical, reordering, score

__all__ = ["augment", "column", "extract", "filter", "import_table", "lexical", "reordering", "score"]
