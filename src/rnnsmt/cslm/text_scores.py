"""Scores of texts by a CSLM: of n-grams, sentences and n-best lists."""

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.io import InputError, atomic_text, read_lines
from rnnsmt.base.progress import track
from rnnsmt.cslm.ngram_scorer import NGramScorer
from rnnsmt.cslm.text import sentence_ngrams
from rnnsmt.moses.nbest import fields_of, with_feature
from rnnsmt.networks.vocabulary import split

LINES = 2000
"""Number of sentences that are scored together."""


def ngram_scores(scorer: NGramScorer, sentences: list[list[str]]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Compute ln p of every word and ``</s>`` of some sentences, one after the other; return it and their classes."""
    ids = [scorer.ids(words) for words in sentences]
    contexts, words = sentence_ngrams(ids, scorer.order - 1, scorer.end)
    return word_scores(scorer, contexts, words), words


def word_scores(scorer: NGramScorer, contexts: NDArray[np.integer], words: NDArray[np.int32]) -> NDArray[np.float32]:
    """Compute ln p of words [N] after contexts [N, C]; each distinct context is computed once."""
    distinct, owner = np.unique(contexts.astype(np.int32), axis=0, return_inverse=True)
    owner = owner.reshape(-1)
    order = np.argsort(owner, kind="stable")  # ``score`` needs ascending owners
    scores = np.empty(len(words), np.float32)
    scores[order] = scorer.score(distinct, owner[order].astype(np.int32), words[order])
    return scores


def sentence_scores(scorer: NGramScorer, lines: Iterable[str]) -> Iterator[float]:
    """Yield ln p of every line, including ``</s>``, not length-normalised."""
    stream = iter(lines)
    while block := [split(line) for line in islice(stream, LINES)]:
        scores, _ = ngram_scores(scorer, block)
        ends = np.cumsum([len(words) + 1 for words in block])
        yield from np.add.reduceat(scores.astype(np.float64), np.concatenate([[0], ends[:-1]])).tolist()


FEATURE = "CSLM0"
"""Name of the feature in n-best lists."""


def add_to_nbest(scorer: NGramScorer, nbest: str, output: str) -> int:
    """Copy an n-best list with ln p of every translation appended as a feature; return the number of translations.

    Raises:
        InputError: the list is empty or malformed, or has the feature already.
    """
    number = 0
    stream = track(read_lines(nbest), "scoring", unit="translations")
    with atomic_text(output) as out:
        while block := [_nbest_fields(line, nbest, number + i) for i, line in enumerate(islice(stream, LINES), 1)]:
            number += len(block)
            scores = sentence_scores(scorer, (fields[1] for fields in block))
            for fields, score in zip(block, scores, strict=True):
                out.write(with_feature(fields, FEATURE, score) + "\n")
        if not number:
            raise InputError(f"{nbest}: is empty; an n-best list is expected")
    return number


def _nbest_fields(line: str, path: str, number: int) -> list[str]:
    """Split a line of an n-best list into its fields.

    Raises:
        InputError: see ``fields_of``, or the line has the feature already.
    """
    fields = fields_of(line, path, number)
    if f"{FEATURE}=" in fields[2].split():
        raise InputError(
            f"{path}, line {number}: already has the feature {FEATURE}; give the n-best list written by the decoder"
        )
    return fields
