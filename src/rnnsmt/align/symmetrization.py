"""Symmetrisation of two directional alignments (Och and Ney 2003; Koehn et al. 2005), as atools or symal does it."""

import numpy as np

from rnnsmt.align.kernels.symmetrization import combine_links
from rnnsmt.align.pharaoh import Links

HEURISTICS = ("grow-diag-final-and", "grow-diag-final", "grow-diag", "intersection", "union")
"""Names of the heuristics, the default first."""


def symmetrize_links(forward: Links, reverse: Links, heuristic: str, order: str = "atools") -> Links:
    """Combine two alignments of the same sentence pairs.

    ``intersection`` and ``union`` are the set operations. ``grow-diag`` starts from the intersection and repeatedly
    adds links of the union that are adjacent to a selected link (also diagonally) and have at least one unaligned word,
    until no link can be added. The result depends on the order in which links are tried (in one of eight sentences of
    Multi30k), and fast_align's atools and Moses' symal differ in it: ``atools`` iterates over the links of the union by
    source, then target position, until an iteration adds none; ``symal`` iterates over the selected links, including
    new ones, by target, then source position, and tries the neighbours of each, horizontal and vertical ones before
    diagonal ones. ``grow-diag-final`` then adds links with at least one unaligned word, first forward, then reverse
    links; ``grow-diag-final-and`` adds only those with both words unaligned.

    Args:
        forward, reverse: links of both directions; in both, ``source`` and ``target`` refer to the same text.
        heuristic: one of ``HEURISTICS``.
        order: ``atools`` or ``symal``.

    Returns:
        The combined links, sorted by source, then target position within a sentence, without duplicates.

    Raises:
        ValueError: the alignments have different numbers of sentences.
    """
    if forward.sentences != reverse.sentences:
        raise ValueError(f"{forward.sentences} forward sentences but {reverse.sentences} reverse ones")
    grow = heuristic.startswith("grow-diag")
    final = {"grow-diag-final": 1, "grow-diag-final-and": 2}.get(heuristic, 0)
    room = len(forward.source) + len(reverse.source)
    offsets = np.zeros(forward.sentences + 1, np.int64)
    source, target = np.empty(room, np.int32), np.empty(room, np.int32)
    growth = 0 if not grow else 2 if order == "symal" else 1
    used = combine_links(*forward, *reverse, heuristic == "union", growth, final, offsets, source, target)
    return Links(offsets, source[:used].copy(), target[:used].copy())
