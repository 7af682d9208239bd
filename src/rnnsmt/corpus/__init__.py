"""Corpus preparation: from raw files to clean, tokenised, truecased text."""

from rnnsmt.corpus.operations import (
    check,
    detokenize,
    fetch,
    join,
    overlap,
    prepare,
    separate,
    split,
    train_truecaser,
    truecase,
    unpack,
)

__all__ = [
    "check",
    "detokenize",
    "fetch",
    "join",
    "overlap",
    "prepare",
    "separate",
    "split",
    "train_truecaser",
    "truecase",
    "unpack",
]
