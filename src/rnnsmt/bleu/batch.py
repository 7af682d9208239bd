"""BLEU statistics of n-best lists: references are prepared once, candidates are scored in batches."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.bleu.kernels.statistics import bleu_of_rows, candidate_statistics
from rnnsmt.bleu.multi_bleu import SIZE, tokens


class BatchBleu:
    """Sufficient statistics (see ``multi_bleu``) of many candidates per sentence."""

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        """Prepare the references: one list of texts for each set of references, all of equal length."""
        self._ids: dict[bytes, int] = {}
        self.segments = len(references[0])
        self._number = len(references)
        words: list[int] = []
        offsets = [0]
        # references are stored sentence by sentence: those of sentence s are s * number to (s + 1) * number - 1
        for texts in zip(*references, strict=True):
            for text in texts:
                words.extend(self._ids.setdefault(word, len(self._ids)) for word in tokens(text))
                offsets.append(len(words))
        self._words = np.array(words, np.int32)
        self._offsets = np.array(offsets, np.int64)

    def statistics(self, candidates: "Iterable[Sequence[str]] | NumberedTexts") -> NDArray[np.int32]:
        """Return the statistics int32 ``[N, 9]`` of all candidates, sentence by sentence.

        Args:
            candidates: texts of the candidates of every sentence, or the same as word numbers.

        Raises:
            ValueError: the number of sentences differs from that of the references.
        """
        texts = candidates if isinstance(candidates, NumberedTexts) else _numbered(candidates)
        if len(texts.offsets) - 1 != self.segments:
            raise ValueError(f"candidates of {len(texts.offsets) - 1} sentences, references of {self.segments}")
        ids = np.array([self._id(word) for word in texts.vocabulary], np.int32)
        out = np.zeros((len(texts.bounds) - 1, SIZE), np.int32)
        words = ids[texts.words] if len(ids) else np.zeros(0, np.int32)
        candidate_statistics(words, texts.bounds, self._words, self._offsets, self._number, texts.offsets, out)
        return out

    def _id(self, word: str) -> int:
        """Return the number of a word of the references, or -1 for another word or for text that is not one token."""
        found = tokens(word)
        return self._ids.get(found[0], -1) if len(found) == 1 else -1


class NumberedTexts(NamedTuple):
    """Candidates of every sentence as word numbers.

    Attributes:
        vocabulary: words by number.
        words: ``int32``, words of all candidates, concatenated.
        bounds: ``int64`` [candidates + 1], first word of each candidate.
        offsets: ``int64`` [sentences + 1], first candidate of each sentence.
    """

    vocabulary: Sequence[str]
    words: NDArray[np.int32]
    bounds: NDArray[np.int64]
    offsets: NDArray[np.int64]


def _numbered(candidates: Iterable[Sequence[str]]) -> NumberedTexts:
    """Convert texts to word numbers."""
    numbers: dict[bytes, int] = {}
    words: list[int] = []
    bounds, offsets = [0], [0]
    for texts in candidates:
        for text in texts:
            words.extend([numbers.setdefault(word, len(numbers)) for word in tokens(text)])
            bounds.append(len(words))
        offsets.append(len(bounds) - 1)
    vocabulary = [word.decode("utf-8") for word in numbers]
    return NumberedTexts(vocabulary, np.array(words, np.int32), np.array(bounds, np.int64), np.array(offsets, np.int64))


def bleu_of_many(totals: NDArray[np.floating] | NDArray[np.integer]) -> NDArray[np.float64]:
    """Return corpus BLEU in percent, ``[...]``, of summed statistics ``[..., 9]``; see ``multi_bleu.bleu_of``."""
    rows = np.ascontiguousarray(totals, np.float64).reshape(-1, SIZE)
    out = np.empty(len(rows))
    bleu_of_rows(rows, out)
    return 100 * out.reshape(totals.shape[:-1])


def sentence_bleu(statistics: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the smoothed BLEU (0 to 1) of every row of ``statistics`` ``[N, 9]``.

    Smoothing as in Lin and Och (2004): the matches and the number of n-grams are each increased by 1 for orders above
    1.
    """
    counts = statistics.astype(np.float64)
    more = np.array([0.0, 1.0, 1.0, 1.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log((counts[:, :4] + more) / (counts[:, 4:8] + more))
        penalty = np.minimum(0.0, 1.0 - counts[:, 8] / counts[:, 4])
        bleu = np.exp(logs.mean(axis=1) + penalty)
    return np.where(counts[:, 0] > 0, bleu, 0.0)
