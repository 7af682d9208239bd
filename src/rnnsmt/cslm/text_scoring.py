"""Log probabilities of whole sentences."""

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from rnnsmt.cslm.ngrams import sentence_ngrams
from rnnsmt.cslm.scorer import NGramScorer
from rnnsmt.networks.vocabulary import split

LINES = 2000
"""Sentences that are scored together."""


def ngram_scores(scorer: NGramScorer, sentences: list[list[str]]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """ln p of every word and ``</s>`` of some sentences, one after the other, and the classes of these words."""
    ids = [scorer.ids(words) for words in sentences]
    contexts, words = sentence_ngrams(ids, scorer.order - 1, scorer.end)
    distinct, owner = np.unique(contexts, axis=0, return_inverse=True)
    owner = owner.reshape(-1)
    order = np.argsort(owner, kind="stable")
    scores = np.empty(len(words), np.float32)
    scores[order] = scorer.score(distinct, owner[order].astype(np.int32), words[order])
    return scores, words


def sentence_scores(scorer: NGramScorer, lines: Iterable[str]) -> Iterator[float]:
    """ln p of every line, ``</s>`` included, no normalisation by length."""
    stream = iter(lines)
    while block := [split(line) for line in islice(stream, LINES)]:
        scores, _ = ngram_scores(scorer, block)
        ends = np.cumsum([len(words) + 1 for words in block])
        yield from np.add.reduceat(scores.astype(np.float64), np.concatenate([[0], ends[:-1]])).tolist()
