"""BLEU statistics of n-best lists: references are prepared once, candidates come in batches."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from rnnsmt.bleu.kernels.statistics import bleu_of_rows, candidate_statistics
from rnnsmt.bleu.multi_bleu import SIZE, tokens


class BatchBleu:
    """Sufficient statistics (see ``multi_bleu``) of many candidates per sentence."""

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        """Prepare the references: one list of texts a set of references, all of equal length."""
        self._ids: dict[bytes, int] = {}
        self.segments = len(references[0])
        self._number = len(references)
        words: list[int] = []
        offsets = [0]
        for texts in zip(*references, strict=True):
            for text in texts:
                words.extend(self._ids.setdefault(word, len(self._ids)) for word in tokens(text))
                offsets.append(len(words))
        self._words = np.array(words, np.int32)
        self._offsets = np.array(offsets, np.int64)

    def statistics(self, candidates: Iterable[Sequence[str]]) -> NDArray[np.int32]:
        """Statistics ``[N, 9]`` of the candidates of every sentence, sentence by sentence."""
        words: list[int] = []
        word_offsets, offsets = [0], [0]
        get = self._ids.get
        for texts in candidates:
            for text in texts:
                words.extend([get(word, -1) for word in tokens(text)])
                word_offsets.append(len(words))
            offsets.append(len(word_offsets) - 1)
        if len(offsets) - 1 != self.segments:
            raise ValueError(f"candidates of {len(offsets) - 1} sentences, references of {self.segments}")
        out = np.zeros((len(word_offsets) - 1, SIZE), np.int32)
        candidate_statistics(
            np.array(words, np.int32),
            np.array(word_offsets, np.int64),
            self._words,
            self._offsets,
            self._number,
            np.array(offsets, np.int64),
            out,
        )
        return out


def bleu_of_many(totals: NDArray[np.floating] | NDArray[np.integer]) -> NDArray[np.float64]:
    """Corpus BLEU in percent, ``[...]``, of summed statistics ``[..., 9]``; see ``multi_bleu.bleu_of``."""
    rows = np.ascontiguousarray(totals, np.float64).reshape(-1, SIZE)
    out = np.empty(len(rows))
    bleu_of_rows(rows, out)
    return 100 * out.reshape(totals.shape[:-1])
