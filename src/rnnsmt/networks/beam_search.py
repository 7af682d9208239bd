"""Left-to-right beam search with a network, many sources at a time.

The search knows nothing of a network but what a ``BeamDecoder`` computes: the most probable next words of hypotheses.
All open hypotheses of a search have the same number of words, so a step extends those of all sources together.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class BeamHypothesis(NamedTuple):
    """A target: the ids of its words without EOS, and log p(target | source) with EOS, not length-normalised."""

    words: tuple[int, ...]
    score: float


class Beams(NamedTuple):
    """The open hypotheses of all sources, source by source, best first.

    Attributes:
        sources: int64 [H], the source of each hypothesis, ascending.
        words: int64 [H, k], its words.
        scores: float64 [H], its log p so far.
        parents: int64 [H], the row of the hypothesis without its last word among those of the previous step; before
            the first word, the source.
    """

    sources: NDArray[np.int64]
    words: NDArray[np.int64]
    scores: NDArray[np.float64]
    parents: NDArray[np.int64]


class BeamDecoder(Protocol):
    """A network, or an ensemble, with its states for the open hypotheses of a search."""

    eos: int

    def extend(
        self, beams: Beams, width: int, full: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Read the last word of every open hypothesis, and compute its most probable extensions.

        Args:
            beams: the hypotheses, which replace those of the previous call.
            width: number of extensions among which those are to be that the search can keep.
            full: [H], the hypotheses of maximum length: EOS is their only extension.

        Returns:
            ln p of the extensions and their words, both [H, n]; ln p is -inf if there are fewer.
        """


def beam_search(
    decoder: BeamDecoder, limits: Sequence[int], beam: int, nbest: int, ends_compete: bool
) -> list[list[BeamHypothesis]]:
    """Search for the ``nbest`` most probable targets of each source, and return them, best first.

    The search for a source ends when no open hypothesis has a better score than the worst of the ``nbest`` targets
    found, since each further word can only lower log p.

    Args:
        decoder: its states are those before the first word of every source.
        limits: [sources], maximum number of words of a target.
        beam: maximum number of open hypotheses of a source.
        ends_compete: True: EOS is an extension like any other; a hypothesis that ends keeps its place, so the beam of
            its source is smaller by one from then on (Sutskever et al. 2014, section 3.2). False: every open hypothesis
            is also a target, and takes no place by that.
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

    totals, owners: [extensions], the score of each, -inf if it does not exist, and its source, ascending. Of equal
    totals, the first ones are chosen.
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
