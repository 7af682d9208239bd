"""The n-grams of sentences, and the order in which they are trained on."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.networks.shuffling import permuted
from rnnsmt.networks.vocabulary import NULL

Ids = NDArray[np.int32]

Places = NDArray[np.int64]

WINDOW = 1 << 15
"""Places of the order that are computed together."""


def contexts_at(words: Ids, places: Places, context: int, end: int) -> NDArray[np.int64]:
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


def hold_out(n: int, share: float, at_least: int, seed: int) -> Places:
    """The n-grams for validation, ascending: a random ``share``, ``at_least`` so many, but never more than a tenth."""
    number = min(max(round(n * share), at_least), n // 10)
    return np.sort(np.random.default_rng([seed, 1]).choice(n, number, replace=False, shuffle=False)).astype(np.int64)


class NGramStream:
    """An endless sequence of minibatches of places in a text: each n-gram once an epoch, in random order.

    The order follows from the seed alone, is never held as a whole, and can be taken up at any minibatch.
    """

    def __init__(self, n: int, batch: int, seed: int, held_out: Places) -> None:
        """n: n-grams of the text. held_out: ascending, not among the minibatches."""
        self.n, self.batch, self.seed = n - len(held_out), batch, seed
        self._before = held_out - np.arange(len(held_out))
        self.window = max(WINDOW // batch, 1) * batch
        self.epoch, self.position = 0, 0
        self._first = -1
        self._order = np.zeros(0, np.int64)

    @property
    def updates(self) -> int:
        """Minibatches of an epoch."""
        return -(-self.n // self.batch)

    def __next__(self) -> Places:
        """The next minibatch; the last one of an epoch may be smaller."""
        first = self.position - self.position % self.window
        if first != self._first:
            positions = np.arange(first, min(first + self.window, self.n))
            self._order, self._first = permuted(positions, self.n, [self.seed, 2, self.epoch]), first
        begin = self.position - first
        places = self._order[begin : begin + self.batch]
        self.position += len(places)
        if self.position == self.n:
            self.epoch, self.position, self._first = self.epoch + 1, 0, -1
        # the k-th n-gram that is not held out stands behind all held-out ones with no more than k others before them
        return places + np.searchsorted(self._before, places, side="right")

    def state(self) -> dict[str, Any]:
        """Where the sequence is."""
        return {"epoch": self.epoch, "position": self.position}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where ``state`` was taken."""
        self.epoch, self.position, self._first = state["epoch"], state["position"], -1
