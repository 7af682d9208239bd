"""Paths out of the search: the best one, and distinct n-best lists from the lattice of recombined hypotheses."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnnsmt.search.kernels.lattice import MAX_DERIVATIONS, Lattice, extract, new_lattice, phrase_hashes
from rnnsmt.search.records import Inventory, Work

if TYPE_CHECKING:
    from rnnsmt.search.decoder import Translation
    from rnnsmt.search.model import SearchModel

DERIVATIONS_PER_WORD = 20
"""Room for derivations to begin with, per word of a sentence and translation of its list."""


@dataclass
class NBest:
    """Distinct translations of one sentence, best first.

    Attributes:
        texts: words joined by single spaces.
        features: ``float64`` [n, F].
        scores: ``float64`` [n], features times weights.
        phrases: per translation (first source word, last source word, number of target words).
    """

    texts: list[str]
    features: np.ndarray
    scores: np.ndarray
    phrases: list[list[tuple[int, int, int]]]


@dataclass
class Paths:
    """Derivations one after another: derivation d is offsets[d]..offsets[d + 1].

    Attributes:
        offsets: ``int64`` [n + 1].
        options, starts, ends: ``int32``, option and source span of every phrase.
    """

    offsets: np.ndarray
    options: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


def best_path(work: Work, hypothesis: int) -> Paths:
    """The best path to a hypothesis."""
    path = []
    while hypothesis > 0:
        path.append(hypothesis)
        hypothesis = int(work.hypotheses[hypothesis]["back"])
    found = work.hypotheses[path[::-1]]
    return Paths(np.array([0, len(path)]), found["option"].copy(), found["start"].copy(), found["end"].copy())


def target_hashes(inventory: Inventory, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hash and hash factor of every target phrase; ``words`` are target vocabulary ids."""
    count = len(inventory.target_bounds) - 1
    hashes, powers = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    phrase_hashes(inventory.target_bounds, words, hashes, powers)
    return hashes, powers


class Extractor:
    """n-best extraction with scratch space that is kept between sentences; one per thread."""

    def __init__(self, inventory: Inventory, hashes: np.ndarray, powers: np.ndarray) -> None:
        self.inventory, self.hashes, self.powers = inventory, hashes, powers
        self.lattice: Lattice | None = None
        self.size: tuple[int, ...] = (0, 0, 0, 0)

    def paths(self, work: Work, words: int, n: int) -> Paths:
        """The n best distinct derivations of a sentence of so many words that was just searched."""
        need = (len(work.hypotheses), len(work.arcs), words, int(DERIVATIONS_PER_WORD * n * (words + 2)) + 1)
        if self.lattice is None or any(a > b for a, b in zip(need, self.size, strict=True)):
            self._resize(*need[:2], max(2 * words, 40), min(2 * need[3], MAX_DERIVATIONS))
        paths, full = self._extract(work, words, n)
        # always the same limit, so that a list does not depend on what was extracted in this space before
        while full and self.size[3] < MAX_DERIVATIONS:
            self._resize(*self.size[:3], min(4 * self.size[3], MAX_DERIVATIONS))
            paths, full = self._extract(work, words, n)
        return paths

    def _resize(self, *size: int) -> None:
        self.size, self.lattice = size, new_lattice(*size)

    def _extract(self, work: Work, words: int, n: int) -> tuple[Paths, bool]:
        """The paths, and whether the space ended before them."""
        assert self.lattice is not None
        room = n * words
        offsets = np.zeros(n + 1, np.int64)
        options, starts, ends = np.zeros(room, np.int32), np.zeros(room, np.int32), np.zeros(room, np.int32)
        first, count = int(work.stacks[words]["hypothesis"]), int(work.stacks[words + 1]["hypothesis"])
        found = extract(
            work.hypotheses, work.arcs, count, first, n, self.lattice, self.inventory.target, self.hashes, self.powers,
            offsets, options, starts, ends,
        )  # fmt: skip
        return Paths(offsets[: found + 1], options, starts, ends), bool(self.lattice.used[3])


def nbest_lines(model: "SearchModel", number: int, translation: "Translation") -> Iterator[str]:
    """The n-best entries of one sentence in Moses' format."""
    groups: list[tuple[str, int, int]] = []
    for name, at in ((name.rsplit(":", 1)[0], k) for k, name in enumerate(model.feature_names)):
        if at in model.columns.get("UnknownWordPenalty", ()):
            continue
        if groups and groups[-1][0] == name:
            groups[-1] = (name, groups[-1][1], at + 1)
        else:
            groups.append((name, at, at + 1))
    nbest = translation.nbest
    for text, features, score, phrases in zip(nbest.texts, nbest.features, nbest.scores, nbest.phrases, strict=True):
        values = features.tolist()
        parts = [f"{name}= " + " ".join(f"{v:g}" for v in values[a:b]) for name, a, b in groups]
        yield f"{number} ||| {text}  ||| {' '.join(parts)} ||| {score:g} ||| {segmentation(phrases)}"


def segmentation(phrases: list[tuple[int, int, int]]) -> str:
    """Moses' notation of a segmentation: source range = target range, a single position without a dash."""
    parts, position = [], 0
    for first, last, size in phrases:
        target = ""
        if size > 0:
            target = f"{position}" if size == 1 else f"{position}-{position + size - 1}"
        parts.append((f"{first}" if first == last else f"{first}-{last}") + "=" + target)
        position += size
    return " ".join(parts)
