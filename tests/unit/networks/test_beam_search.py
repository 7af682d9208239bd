"""Beam search with a small Markov chain instead of a network, against the enumeration of all targets."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from rnnsmt.networks.beam_search import Beams, beam_search

WORDS, EOS = range(1, 4), 4


class Chain:
    """A decoder whose next word depends on the source and the last word; id 0 is no word."""

    eos = EOS

    def __init__(self, sources: int) -> None:
        p = np.random.default_rng(3).dirichlet(np.full(EOS + 1, 0.7), size=(sources, EOS))
        p[:, :, 0] = 0
        with np.errstate(divide="ignore"):
            self.log_p = np.log(p)
        self.steps = 0

    def extend(self, beams: Beams, width: int, full: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return EOS and the ``width`` best words."""
        self.steps += 1
        last = beams.words[:, -1] if beams.words.shape[1] else np.zeros(len(full), np.int64)
        log_p = self.log_p[beams.sources, last].copy()
        log_p[full, :EOS] = -np.inf
        best = np.argsort(-log_p[:, :EOS], axis=1)[:, :width]
        words = np.concatenate([np.full((len(best), 1), EOS), best], 1)
        return np.take_along_axis(log_p, words, 1), words

    def score(self, source: int, words: tuple[int, ...]) -> float:
        """Return log p of a target."""
        return sum(self.log_p[source, a, b] for a, b in itertools.pairwise((0, *words, EOS)))


def targets_up_to(limit: int) -> Iterator[tuple[int, ...]]:
    for length in range(limit + 1):
        yield from itertools.product(WORDS, repeat=length)


@pytest.mark.parametrize("ends_compete", [False, True])
@pytest.mark.parametrize("nbest", [1, 4, 40])
def test_a_wide_beam_finds_the_best_of_all_targets_up_to_the_limit_of_their_source(
    nbest: int, ends_compete: bool
) -> None:
    limits = [3, 0, 2]
    chain = Chain(len(limits))
    found = beam_search(chain, limits, 100, nbest, ends_compete)
    for source, (limit, targets) in enumerate(zip(limits, found, strict=True)):
        ranked = sorted(targets_up_to(limit), key=lambda words: -chain.score(source, words))[:nbest]
        assert [target.words for target in targets] == ranked
        assert [target.score for target in targets] == pytest.approx([chain.score(source, words) for words in ranked])


def test_ends_that_compete_keep_their_places() -> None:
    assert len(beam_search(Chain(1), [30], 2, 9, ends_compete=True)[0]) == 2
    assert len(beam_search(Chain(1), [30], 2, 9, ends_compete=False)[0]) == 9


@pytest.mark.parametrize("ends_compete", [False, True])
def test_the_search_ends_early_only_if_nothing_better_is_open(ends_compete: bool) -> None:
    chain, thorough = Chain(8), Chain(8)
    best = beam_search(chain, [12] * 8, 3, 1, ends_compete)
    every = beam_search(thorough, [12] * 8, 3, 3, ends_compete)
    assert best == [targets[:1] for targets in every]
    assert chain.steps < thorough.steps
