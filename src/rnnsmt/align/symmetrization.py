"""Symmetrisation of the alignments of both directions (Och and Ney 2003; Koehn et al. 2005), as in atools or symal.

``rnnsmt.registries.SYMMETRIZATIONS`` lists the symmetrisations.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Protocol

import numpy as np

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.formats.pharaoh import Links, from_lists, to_lists
from rnnsmt.registries import SYMMETRIZATIONS

Link = tuple[int, int]
"""Source and target position of a link, 0-based."""


class Symmetrization(Protocol):
    """Function that combines two alignments of the same sentence pairs; its docstring has one line."""

    def __call__(self, forward: Links, reverse: Links, order: str) -> Links:
        """Return the combined links of the same sentence pairs, without duplicates.

        Args:
            forward, reverse: links of both directions; in both, ``source`` and ``target`` refer to the same text. In
                ``forward`` (tgttosrc of Moses), a target word has at most one link; in ``reverse``, a source word has
                at most one link.
            order: ``atools`` or ``symal``: order in which links are tried, for heuristics that depend on it.
        """
        ...


def by_sentence(function: Callable[[set[Link], set[Link]], Iterable[Link]]) -> Symmetrization:
    """Return a symmetrisation that applies a function to the forward and the reverse links of every sentence pair."""

    @wraps(function)
    def symmetrize(forward: Links, reverse: Links, order: str) -> Links:
        pairs = zip(to_lists(forward), to_lists(reverse), strict=True)
        return from_lists(sorted(set(function(set(given), set(back)))) for given, back in pairs)

    return symmetrize


def symmetrize_links(forward: Links, reverse: Links, heuristic: str, order: str = "atools") -> Links:
    """Combine two alignments of the same sentence pairs.

    Args:
        forward, reverse, order: as in ``Symmetrization``.
        heuristic: name in ``SYMMETRIZATIONS``.

    Returns:
        The combined links. Heuristics of this package sort the links of a sentence by source position, then target
        position.

    Raises:
        ValueError: the alignments have different numbers of sentences.
        InputError: a heuristic of another package returns links for a different number of sentences.
    """
    if forward.sentences != reverse.sentences:
        raise ValueError(f"{forward.sentences} forward sentences but {reverse.sentences} reverse ones")
    links = SYMMETRIZATIONS[heuristic](forward, reverse, order)
    if links.sentences != forward.sentences:
        raise InputError(
            f"symmetrisation {SYMMETRIZATIONS.versioned(heuristic)} returns the links of "
            f"{links.sentences} of {forward.sentences} sentence pairs; correct or uninstall this package"
        )
    return links


_GROWTH = {"atools": 1, "symal": 2}
"""Argument ``grow`` of ``combine_links`` for each order in which grow-diag tries links."""


def intersection(forward: Links, reverse: Links, order: str) -> Links:
    """Return the links that are in both directions."""
    return _combined(forward, reverse)


def union(forward: Links, reverse: Links, order: str) -> Links:
    """Return the links that are in at least one direction."""
    return _combined(forward, reverse, union=True)


def grow_diag(forward: Links, reverse: Links, order: str) -> Links:
    """Return the intersection, and links of the union that are added to it one by one.

    A link is added if it is adjacent to a selected link (also diagonally) and at least one of its words is unaligned,
    until no link can be added. The result depends on the order in which links are tried (in one of eight sentences of
    Multi30k). ``atools`` iterates over the links of the union, sorted by source position, then target position, until
    an iteration adds no link, as in fast_align. ``symal`` iterates over the selected links, including new ones, sorted
    by target position, then source position, and tries the neighbours of each link, first horizontally and vertically,
    then diagonally, as in Moses.
    """
    return _combined(forward, reverse, grow=_GROWTH[order])


def grow_diag_final(forward: Links, reverse: Links, order: str) -> Links:
    """Return the links of grow-diag, plus links with at least one unaligned word, first forward, then reverse links."""
    return _combined(forward, reverse, grow=_GROWTH[order], final=1)


def grow_diag_final_and(forward: Links, reverse: Links, order: str) -> Links:
    """Return the links of grow-diag, plus links with both words unaligned, first forward, then reverse links."""
    return _combined(forward, reverse, grow=_GROWTH[order], final=2)


def _combined(forward: Links, reverse: Links, union: bool = False, grow: int = 0, final: int = 0) -> Links:
    """Return the result of ``combine_links`` as ``Links``."""
    capacity = len(forward.source) + len(reverse.source)
    offsets = np.zeros(forward.sentences + 1, np.int64)
    source, target = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    used = combine_links(forward, reverse, union, grow, final, offsets, source, target)
    return Links(offsets, source[:used].copy(), target[:used].copy())


_FORWARD, _REVERSE, _TAKEN = 1, 2, 4
"""Flags of a link: it is in the forward alignment, in the reverse alignment, or selected for the result."""


@kernel()
def combine_links(forward, reverse, union, grow, final, offsets, source, target):
    """Combine the links of two alignments; return the number of links.

    Args:
        forward, reverse: the alignments, ``Links``.
        union: begin with the union of both alignments instead of the intersection.
        grow: 0 for no growing, 1 for grow-diag in the order of atools, 2 for grow-diag in the order of symal.
        final: minimum number of unaligned words of a link that the final step adds: 1 for final, 2 for final-and, 0 for
            no final step. The words of an added link count as aligned from then on.
        offsets, source, target: filled with the combined links, sorted by source position, then target position;
            ``source`` and ``target`` must have space for the links of both alignments.
    """
    f_offsets, f_source, f_target = forward
    r_offsets, r_source, r_target = reverse
    # reused for all sentence pairs, and enlarged for longer sentences
    flags = np.zeros(4096, np.uint8)
    used = 0
    for s in range(len(f_offsets) - 1):
        rows, columns = 0, 0
        for k in range(f_offsets[s], f_offsets[s + 1]):
            rows, columns = max(rows, f_source[k] + 1), max(columns, f_target[k] + 1)
        for k in range(r_offsets[s], r_offsets[s + 1]):
            rows, columns = max(rows, r_source[k] + 1), max(columns, r_target[k] + 1)
        if rows * columns > len(flags):
            flags = np.zeros(2 * rows * columns, np.uint8)
        grid = flags[: rows * columns].reshape(rows, columns)
        grid[:] = 0
        for k in range(f_offsets[s], f_offsets[s + 1]):
            grid[f_source[k], f_target[k]] |= _FORWARD
        for k in range(r_offsets[s], r_offsets[s + 1]):
            grid[r_source[k], r_target[k]] |= _REVERSE
        _combine(grid, union, grow, final)
        for i in range(rows):
            for j in range(columns):
                if grid[i, j] & _TAKEN:
                    source[used], target[used] = i, j
                    used += 1
        offsets[s + 1] = used
    return used


@kernel()
def _combine(grid, union, grow, final):
    """Set the flag ``_TAKEN`` of the selected links of one sentence pair.

    Args:
        grid: uint8 [source words, target words], flags of every possible link, updated.
        union, grow, final: as in ``combine_links``.
    """
    rows, columns = grid.shape
    row_aligned, column_aligned = np.zeros(rows, np.bool_), np.zeros(columns, np.bool_)
    for i in range(rows):
        for j in range(columns):
            if grid[i, j] == _FORWARD | _REVERSE or (union and grid[i, j]):
                grid[i, j] |= _TAKEN
                row_aligned[i] = column_aligned[j] = True
    if grow == 1:
        _grow(grid, row_aligned, column_aligned)
    elif grow == 2:
        _grow_from_links(grid, row_aligned, column_aligned)
    if final:
        for direction in (_FORWARD, _REVERSE):
            for i in range(rows):
                for j in range(columns):
                    free = (not row_aligned[i]) + (not column_aligned[j])
                    if grid[i, j] & direction and not grid[i, j] & _TAKEN and free >= final:
                        grid[i, j] |= _TAKEN
                        row_aligned[i] = column_aligned[j] = True


@kernel()
def _grow(grid, row_aligned, column_aligned):
    """Run grow-diag in the order of atools, see ``grow_diag``.

    Args:
        grid: as in ``_combine``.
        row_aligned: bool [source words], whether a source word has a selected link, updated.
        column_aligned: bool [target words], whether a target word has a selected link, updated.
    """
    rows, columns = grid.shape
    added = True
    while added:
        added = False
        for i in range(rows):
            for j in range(columns):
                if grid[i, j] == 0 or grid[i, j] & _TAKEN or (row_aligned[i] and column_aligned[j]):
                    continue
                touches = False
                for i2 in range(max(i - 1, 0), min(i + 2, rows)):
                    for j2 in range(max(j - 1, 0), min(j + 2, columns)):
                        touches |= grid[i2, j2] & _TAKEN != 0
                if touches:
                    grid[i, j] |= _TAKEN
                    row_aligned[i] = column_aligned[j] = True
                    added = True


_NEIGHBOURS = ((0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1))
"""Offsets (source, target) of the neighbours of a link in the order of symal: horizontal and vertical ones first."""


@kernel()
def _grow_from_links(grid, row_aligned, column_aligned):
    """Run grow-diag in the order of symal, see ``grow_diag``.

    New links are visited in the same iteration if they come later in the order. Arguments are as in ``_grow``.
    """
    rows, columns = grid.shape
    added = True
    while added:
        added = False
        for j in range(columns):
            for i in range(rows):
                if not grid[i, j] & _TAKEN:
                    continue
                for di, dj in _NEIGHBOURS:
                    i2, j2 = i + di, j + dj
                    if not (0 <= i2 < rows and 0 <= j2 < columns) or (row_aligned[i2] and column_aligned[j2]):
                        continue
                    if grid[i2, j2]:
                        grid[i2, j2] |= _TAKEN
                        row_aligned[i2] = column_aligned[j2] = True
                        added = True
