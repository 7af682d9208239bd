"""The n-grams of sentences: every word, and the end, with the words before it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rnnsmt.networks.batches import Index
from rnnsmt.networks.vocabulary import NULL

Ids = NDArray[np.int32]


def contexts_at(words: Ids, places: Index, context: int, end: int) -> NDArray[np.int64]:
    """The words before some places of a text: int64 [B, context], oldest first, padding before the sentence begins.

    words: sentences one after the other, each ending in ``end``; may be memory-mapped. places: [B].
    """
    before = places[:, None] + np.arange(-context, 0)
    found = words[np.maximum(before, 0)].astype(np.int64)
    found[before < 0] = end
    # what stands at or before the end of another sentence is not seen
    other = np.logical_or.accumulate(found[:, ::-1] == end, axis=1)[:, ::-1]
    found[other] = NULL
    return found


def sentence_ngrams(sentences: Sequence[Ids], context: int, end: int) -> tuple[Ids, Ids]:
    """All n-grams of sentences (ids without ``end``): contexts int32 [N, context] and words int32 [N], ``end`` too."""
    words = np.concatenate([np.append(sentence, end) for sentence in sentences]).astype(np.int32)
    return contexts_at(words, np.arange(len(words)), context, end).astype(np.int32), words
