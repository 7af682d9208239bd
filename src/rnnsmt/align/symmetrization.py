"""Symmetrisation of two directional alignments (Och and Ney 2003; Koehn et al. 2005), as atools or symal does it."""

import numpy as np

from rnnsmt.align.kernels.symmetrization import combine_links
from rnnsmt.align.pharaoh import Links

HEURISTICS = ("grow-diag-final-and", "grow-diag-final", "grow-diag", "intersection", "union")


def symmetrize_links(forward: Links, reverse: Links, heuristic: str, order: str = "atools") -> Links:
    """Combine two alignments of the same sentence pairs.

    ``intersection`` and ``union`` are those of the sets. ``grow-diag`` starts from the intersection and adds, as long
    as there is one, a link of the union that touches a link already there (also diagonally) and has a word that is not
    yet aligned. Which links are tried first matters (on Multi30k for one sentence in eight), and fast_align's atools
    and Moses' symal differ in it: ``atools`` tries the links of the union by source, then target position, again and
    again; ``symal`` goes over the taken links, new ones included, by target, then source position, and tries the
    neighbours of each, those beside it before those across a corner. ``grow-diag-final`` goes on with
    links that have at least one unaligned word, first the forward ones, then the reverse ones;
    ``grow-diag-final-and`` takes of those only links of which both words are unaligned.

    Args:
        forward, reverse: links of either direction, in both ``source`` and ``target`` mean the same text.
        heuristic: one of ``HEURISTICS``.
        order: ``atools`` or ``symal``.

    Returns:
        The combined links, sorted by source, then target position within a sentence, without duplicates.
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
