"""Left-to-right beam search with a network, for many source sequences at a time.

The search uses a network only through the interface ``BeamDecoder``, which computes the most probable next words of
hypotheses. All open (incomplete) hypotheses have the same number of words, so each step extends the hypotheses of all
sources together.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class BeamHypothesis(NamedTuple):
    """Target sequence: word ids without EOS, and log p(target | source) including EOS, not length-normalised."""

    words: tuple[int, ...]
    score: float


class Beams(NamedTuple):
    """The H open hypotheses of all sources after k words, sorted by source, then by descending score.

    Attributes:
        sources: int64 [H], index of the source of each hypothesis.
        words: int64 [H, k], word ids of each hypothesis.
        scores: float64 [H], log p of each hypothesis so far.
        parents: int64 [H], row in the ``Beams`` of the previous step of the hypothesis that the last word extends; if k
            is 0, index of the source.
    """

    sources: NDArray[np.int64]
    words: NDArray[np.int64]
    scores: NDArray[np.float64]
    parents: NDArray[np.int64]


class BeamDecoder(Protocol):
    """Network or ensemble that keeps its states after the words of the open hypotheses of one search."""

    eos: int

    def extend(
        self, beams: Beams, width: int, full: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Read the last word of every open hypothesis, and compute its most probable next words.

        Args:
            beams: the open hypotheses; each of them extends a hypothesis of the previous call by one word.
            width: number of most probable words to compute per hypothesis; the search keeps at most as many hypotheses
                of a source.
            full: bool [H], whether a hypothesis has the maximum length, so that EOS must be the next word.

        Returns:
            ln p of the next words, float64 [H, n], and their ids, int64 [H, n]. If a hypothesis has fewer than n next
            words, the others have ln p = -inf.
        """


def beam_search(
    decoder: BeamDecoder, limits: Sequence[int], beam: int, nbest: int, ends_compete: bool
) -> list[list[BeamHypothesis]]:
    """Search for the ``nbest`` most probable targets of each source, and return them, best first.

    The search for a source ends when no open hypothesis has a better score than the worst of the ``nbest`` targets
    found, since each further word can only lower log p.

    Args:
        decoder: the network, in the states before the first target word of every source.
        limits: [sources], maximum number of target words for each source.
        beam: maximum number of open hypotheses of a source.
        ends_compete: True: EOS is an extension like any other; a hypothesis that ends keeps its place, so the beam of
            its source is smaller by one from then on (Sutskever et al. 2014, section 3.2). False: every open hypothesis
            followed by EOS is a target, and targets take no place in the beam.
    """
    number = np.arange(len(limits))
    beams = Beams(number, np.zeros((len(limits), 0), np.int64), np.zeros(len(limits)), number)
    longest, room = np.asarray(limits), np.full(len(limits), beam)
    targets: list[list[BeamHypothesis]] = [[] for _ in limits]
    while len(beams.sources):
        log_p, words = decoder.extend(beams, beam, beams.words.shape[1] >= longest[beams.sources])
        totals, is_end = (beams.scores[:, None] + log_p).ravel(), (words == decoder.eos).ravel()
        owners = beams.sources.repeat(words.shape[1])
        if ends_compete:
            best = _best(totals, owners, room)
            ends, best = best[is_end[best]], best[~is_end[best]]
            room -= np.bincount(owners[ends], minlength=len(room))
        else:
            ends = np.flatnonzero(is_end & (totals > -np.inf))
            best = _best(np.where(is_end, -np.inf, totals), owners, room)
        _collect(targets, owners[ends], beams.words[ends // words.shape[1]], totals[ends], nbest)
        worst = np.array([found[-1].score if len(found) == nbest else -np.inf for found in targets])
        # the first of the best extensions of a source decides whether all of them remain
        first = best[np.searchsorted(owners[best], owners[best])]
        best = best[totals[first] > worst[owners[best]]]
        rows = best // words.shape[1]
        longer = np.concatenate([beams.words[rows], words.ravel()[best, None]], 1)
        beams = Beams(owners[best], longer, totals[best], rows)
    return targets


def _best(totals: NDArray[np.float64], owners: NDArray[np.int64], room: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of the best ``room[s]`` extensions of every source s, by source, then by descending total.

    Among extensions with equal totals, the first ones are chosen.

    Args:
        totals: [extensions], score of each extension; -inf if there is no such extension.
        owners: [extensions], source of each extension, ascending.
        room: [sources], maximum number of extensions of each source.
    """
    order = np.lexsort((-totals, owners))
    place = np.arange(len(order)) - np.searchsorted(owners, owners)
    return order[(place < room[owners]) & (totals[order] > -np.inf)]


def _collect(
    targets: list[list[BeamHypothesis]],
    sources: NDArray[np.int64],
    words: NDArray[np.int64],
    scores: NDArray[np.float64],
    nbest: int,
) -> None:
    """Add hypotheses that have ended to the targets of their sources, and keep the ``nbest`` best of each.

    sources: [n], ascending; words: [n, k]; scores: [n].
    """
    for s, target, score in zip(sources.tolist(), map(tuple, words.tolist()), scores.tolist(), strict=True):
        targets[s].append(BeamHypothesis(target, score))
    for s in np.unique(sources).tolist():
        targets[s] = sorted(targets[s], key=lambda target: (-target.score, target.words))[:nbest]
