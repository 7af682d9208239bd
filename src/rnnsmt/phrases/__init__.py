"""Phrase pairs and their scores, score columns, the phrase table of the decoder, and tables in Moses format."""

from rnnsmt.phrases.operations import (
    augment,
    column,
    export,
    extract,
    filter,
    import_table,
    lexical,
    reordering,
    score,
    select,
    show,
)

__all__ = [
    "augment",
    "column",
    "export",
    "extract",
    "filter",
    "import_table",
    "lexical",
    "reordering",
    "score",
    "select",
    "show",
]
