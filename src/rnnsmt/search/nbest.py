"""Results of a search: translations, and n-best lists that are extracted from the lattice of recombined hypotheses."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from rnnsmt.base.paths import StrPath
from rnnsmt.base.writing import atomic_text
from rnnsmt.formats.nbest import nbest_lines
from rnnsmt.search.kernels.duplicates import TargetStrings, phrase_hashes
from rnnsmt.search.kernels.lattice import Lattice, extract, new_lattice
from rnnsmt.search.kernels.records import Derivations, RankedOptions, Work

DERIVATIONS_PER_WORD = 20
"""Initial capacity for derivations, for each word of the sentence and each entry of the n-best list."""

MAX_DERIVATIONS = 4_000_000
"""Maximum number of derivations in the extraction of one n-best list, which may then have fewer than n translations."""


@dataclass
class NBest:
    """Distinct translations of one sentence, best first.

    Attributes:
        words: ``int32``, indices into ``vocabulary``; the words of translation i are words[bounds[i]:bounds[i + 1]].
        bounds: ``int64`` [n + 1], see ``words``.
        vocabulary: target words.
        features: ``float64`` [n, F].
        scores: ``float64`` [n], features times weights.
        segments: ``int32`` [phrases, 3], first source word, last source word and number of target words of each phrase;
            the phrases of translation i are segments[offsets[i]:offsets[i + 1]].
        offsets: ``int64`` [n + 1], see ``segments``.
    """

    words: np.ndarray
    bounds: np.ndarray
    vocabulary: Sequence[str]
    features: np.ndarray
    scores: np.ndarray
    segments: np.ndarray
    offsets: np.ndarray

    @classmethod
    def none(cls, features: int) -> "NBest":
        """Return a list without translations."""
        nothing, start = np.zeros(0, np.int32), np.zeros(1, np.int64)
        return cls(nothing, start, [], np.zeros((0, features)), np.zeros(0), nothing.reshape(0, 3), start)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def first(self, weights: np.ndarray) -> "NBest":
        """Return a list with only the best translation, with its score under ``weights`` [F]."""
        features = self.features[:1].copy()
        words, bounds = self.words[: self.bounds[1]], self.bounds[:2]
        segments, offsets = self.segments[: self.offsets[1]], self.offsets[:2]
        return NBest(words, bounds, self.vocabulary, features, features @ weights, segments, offsets)

    @cached_property
    def texts(self) -> list[str]:
        """Return the translations as words joined by single spaces."""
        words = [self.vocabulary[number] for number in self.words.tolist()]
        return [" ".join(words[a:b]) for a, b in pairwise(self.bounds.tolist())]

    @cached_property
    def phrases(self) -> list[list[tuple[int, int, int]]]:
        """Return the phrases of each translation: (first source word, last source word, number of target words)."""
        segments = [(start, end, length) for start, end, length in self.segments.tolist()]
        return [segments[a:b] for a, b in pairwise(self.offsets.tolist())]


@dataclass
class Translation:
    """Best translation of one sentence.

    Attributes:
        text: words joined by single spaces; empty for an empty sentence.
        score: ``features`` times weights.
        features: ``float64`` [F].
        phrases: (first source word, last source word, number of target words) of each phrase, in the order of the
            translation.
        nbest: distinct translations, best first; empty if no n-best list was requested.
        unknown: number of source words passed through or dropped, without unknown words that are translated as part of
            a longer phrase.
    """

    text: str
    score: float
    features: np.ndarray
    phrases: list[tuple[int, int, int]]
    nbest: NBest
    unknown: int = 0


def target_strings(ranked: RankedOptions, words: np.ndarray) -> TargetStrings:
    """Compute the hashes of all target phrases, see ``phrase_hashes``.

    Args:
        words: ``int32`` [words], target vocabulary ids.
    """
    count = len(ranked.target_bounds) - 1
    hashes, powers = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    phrase_hashes(ranked.target_bounds, words, hashes, powers)
    return TargetStrings(ranked.target, hashes, powers)


class NBestExtractor:
    """Extractor of n-best lists; its scratch space is reused for the next sentence. Each thread needs its own."""

    def __init__(self, strings: TargetStrings) -> None:
        self.strings = strings
        self.lattice: Lattice | None = None
        self.size: tuple[int, ...] = (0, 0, 0, 0)

    def derivations(self, work: Work, words: int, n: int) -> Derivations:
        """Return the n best derivations of a sentence of ``words`` words whose search has just ended.

        Of all derivations of the same text, only the best is returned, see ``kernels.duplicates``.
        """
        need = (len(work.hypotheses), len(work.arcs), words, int(DERIVATIONS_PER_WORD * n * (words + 2)) + 1)
        if self.lattice is None or any(a > b for a, b in zip(need, self.size, strict=True)):
            self._resize(*need[:2], max(2 * words, 40), min(2 * need[3], MAX_DERIVATIONS))
        derivations, full = self._extract(work, words, n)
        # the maximum capacity is always the same, so a list does not depend on earlier lists in the scratch space
        while full and self.size[3] < MAX_DERIVATIONS:
            self._resize(*self.size[:3], min(4 * self.size[3], MAX_DERIVATIONS))
            derivations, full = self._extract(work, words, n)
        return derivations

    def _resize(self, *size: int) -> None:
        self.size, self.lattice = size, new_lattice(*size)

    def _extract(self, work: Work, words: int, n: int) -> tuple[Derivations, bool]:
        """Return the derivations, and whether the space was exhausted before all of them were found."""
        assert self.lattice is not None
        out = Derivations.empty(n, n * words)
        first, count = int(work.stacks[words]["hypothesis"]), int(work.stacks[words + 1]["hypothesis"])
        found, full = extract(work.hypotheses, work.arcs, count, first, n, self.lattice, self.strings, out)
        return out._replace(offsets=out.offsets[: found + 1]), full


def write_lists(
    path: StrPath, translations: Iterable[Translation], names: Sequence[str], columns: np.ndarray
) -> Iterator[Translation]:
    """Write the n-best lists of translations in Moses' format; yield the translations without the lists.

    Args:
        translations: the translations, which are consumed one at a time.
        names: names of all features.
        columns: columns of the features to write.
    """
    names = [names[column] for column in columns]
    with atomic_text(path) as out:
        for number, translation in enumerate(translations):
            best = translation.nbest
            for line in nbest_lines(number, names, best.texts, best.features[:, columns], best.scores, best.phrases):
                out.write(line + "\n")
            yield replace(translation, nbest=NBest.none(len(translation.features)))


def detail_lines(translations: Iterable[Translation], names: Sequence[str], columns: np.ndarray) -> Iterator[str]:
    """Yield the best translations of all non-empty sentences in Moses' n-best format, with segmentations.

    Args:
        names: names of all features.
        columns: columns of the features to write.
    """
    names = [names[column] for column in columns]
    for number, translation in enumerate(translations):
        if translation.phrases:
            yield from nbest_lines(
                number,
                names,
                [translation.text],
                translation.features[None, columns],
                np.array([translation.score]),
                [translation.phrases],
            )
