"""The n-grams of sentences: every word and the end of sentence, each with its preceding words."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rnnsmt.networks.batches import Index
from rnnsmt.networks.vocabulary import NULL

Ids = NDArray[np.int32]


def contexts_at(words: Ids, places: Index, context: int, end: int) -> NDArray[np.int64]:
    """Return the words before some positions of a text, int64 [B, context], oldest first.

    Positions before the beginning of the sentence are padded with id 0.

    Args:
        words: sentences one after the other, each ending in ``end``; may be memory-mapped.
        places: [B], the positions.
        context: number of words.
        end: id of ``</s>``.
    """
    before = places[:, None] + np.arange(-context, 0)
    found = words[np.maximum(before, 0)].astype(np.int64)
    found[before < 0] = end
    # pad everything up to the last ``end`` before the position; accumulate from the newest word to the oldest
    other = np.logical_or.accumulate(found[:, ::-1] == end, axis=1)[:, ::-1]
    found[other] = NULL
    return found


def sentence_ngrams(sentences: Sequence[Ids], context: int, end: int) -> tuple[Ids, Ids]:
    """Return contexts int32 [N, context] and words int32 [N] of all n-grams of sentences, given without ``end``."""
    words = np.concatenate([np.append(sentence, end) for sentence in sentences]).astype(np.int32)
    return contexts_at(words, np.arange(len(words)), context, end).astype(np.int32), words
