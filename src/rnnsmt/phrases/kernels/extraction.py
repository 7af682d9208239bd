"""Compiled extraction of phrase pairs consistent with a word alignment."""

from typing import Any

import numpy as np

from rnnsmt.kernels.decorator import kernel

MONO, SWAP, OTHER = 0, 1, 2


@kernel()
def _has_link(links: Any, first: int, last: int, i: int, j: int, source_length: int, target_length: int) -> bool:
    """Is source position i linked to target position j? The corners before and after the sentence pair are."""
    if i < 0 or j < 0:
        return i == -1 and j == -1
    if i >= source_length or j >= target_length:
        return i == source_length and j == target_length
    for link in range(first, last):  # noqa: SIM110 (numba)
        if links[link, 0] == i:
            return True
    return False


@kernel()
def extract_block(  # noqa: PLR0912, PLR0915 (one kernel)
    source_offsets: Any,
    target_offsets: Any,
    link_offsets: Any,
    links: Any,
    max_length: int,
    spans: Any,
    bits: Any,
    orientations: Any,
) -> int:
    """Find every phrase pair of S sentence pairs (Koehn, Och and Marcu 2003; order and limits of Moses' ``extract``).

    A pair has at least one link, no link leads out of it, and unlinked words at the borders of the source side may
    belong to it or not. Each side has at most ``max_length`` (≤ 8) words.

    Args:
        source_offsets, target_offsets, link_offsets: int64 [S + 1].
        links: int32 [L, 2], sorted by (target, source) inside a sentence.
        spans: int32 [N, 4] to fill: begin in the flat source, words, begin in the flat target, words.
        bits: int64 [N] to fill: the links inside, bit ``8 * target + source``.
        orientations: int8 [N] to fill: ``3 * previous + next`` with MONO, SWAP, OTHER of the word-based model
            (Koehn et al. 2005; Moses' ``wbe-msd``).

    Returns:
        the number of pairs; those beyond N are counted, not stored.
    """
    found = 0
    capacity = bits.shape[0]
    longest_source, longest_target = 0, 0
    for s in range(source_offsets.shape[0] - 1):
        longest_source = max(longest_source, source_offsets[s + 1] - source_offsets[s])
        longest_target = max(longest_target, target_offsets[s + 1] - target_offsets[s])
    first_target = np.empty(longest_source + 1, np.int64)
    last_target = np.empty(longest_source + 1, np.int64)
    row = np.empty(longest_target + 2, np.int64)
    for s in range(source_offsets.shape[0] - 1):
        source_begin, target_begin = source_offsets[s], target_offsets[s]
        n_source, n_target = source_offsets[s + 1] - source_begin, target_offsets[s + 1] - target_begin
        # row[j]..row[j + 1]: links of target word j; first/last_target: reach of each source word
        for i in range(n_source):
            first_target[i] = n_target
            last_target[i] = -1
        at = link_offsets[s]
        for j in range(n_target):
            row[j] = at
            while at < link_offsets[s + 1] and links[at, 1] == j:
                i = links[at, 0]
                first_target[i] = min(first_target[i], j)
                last_target[i] = j
                at += 1
        row[n_target] = at
        row[n_target + 1] = at
        for start_e in range(n_target):
            min_f, max_f = n_source, -1
            for end_e in range(start_e, min(n_target, start_e + max_length)):
                for link in range(row[end_e], row[end_e + 1]):
                    min_f = min(min_f, links[link, 0])
                    max_f = max(max_f, links[link, 0])
                if max_f < 0:
                    continue
                if max_f - min_f >= max_length:
                    break
                consistent = True
                for i in range(min_f, max_f + 1):
                    if last_target[i] >= 0 and (first_target[i] < start_e or last_target[i] > end_e):
                        consistent = False
                        break
                if not consistent:
                    continue
                start_f = min_f
                while start_f >= 0 and start_f > max_f - max_length and (start_f == min_f or last_target[start_f] < 0):
                    end_f = max_f
                    while (
                        end_f < n_source and end_f < start_f + max_length and (end_f == max_f or last_target[end_f] < 0)
                    ):
                        if found < capacity:
                            spans[found, 0] = source_begin + start_f
                            spans[found, 1] = end_f - start_f + 1
                            spans[found, 2] = target_begin + start_e
                            spans[found, 3] = end_e - start_e + 1
                            inside = np.int64(0)
                            for link in range(row[start_e], row[end_e + 1]):
                                inside |= np.int64(1) << np.int64(
                                    8 * (links[link, 1] - start_e) + links[link, 0] - start_f
                                )
                            bits[found] = inside
                            # links of the target word before and after; outside the sentence only the corner counts
                            before, before_end = link_offsets[s], link_offsets[s]
                            if start_e > 0:
                                before, before_end = row[start_e - 1], row[start_e]
                            after, after_end = row[end_e + 1], row[min(end_e + 2, n_target)]
                            previous = OTHER
                            left = _has_link(links, before, before_end, start_f - 1, start_e - 1, n_source, n_target)
                            right = _has_link(links, before, before_end, end_f + 1, start_e - 1, n_source, n_target)
                            if left and not right:
                                previous = MONO
                            elif right and not left:
                                previous = SWAP
                            following = OTHER
                            right = _has_link(links, after, after_end, end_f + 1, end_e + 1, n_source, n_target)
                            left = _has_link(links, after, after_end, start_f - 1, end_e + 1, n_source, n_target)
                            if right and not left:
                                following = MONO
                            elif left and not right:
                                following = SWAP
                            orientations[found] = 3 * previous + following
                        found += 1
                        end_f += 1
                    start_f -= 1
    return found


@kernel()
def pack_phrases(words: Any, codes: Any, spans: Any, side: int, stop: int, width: int, per_key: int, keys: Any) -> None:
    """Pack the words of each phrase into integers that sort as the lines of a phrase table do.

    Args:
        words: int32, the flat side of the block.
        codes: int64 [V], order-preserving code ≥ 1 of each word number.
        spans: int32 [N, 4] of ``extract_block``.
        side: 0 source, 1 target.
        stop: the code of ``|||``, which ends a phrase that does not fill the keys.
        width, per_key: bits of a word, words of a key.
        keys: int64 [K, N] to fill.
    """
    slots = keys.shape[0] * per_key
    for n in range(spans.shape[0]):
        begin, length = spans[n, 2 * side], spans[n, 2 * side + 1]
        slot = 0
        for key in range(keys.shape[0]):
            packed = np.int64(0)
            for _ in range(per_key):
                packed <<= width
                if slot < length:
                    packed |= codes[words[begin + slot]]
                elif slot == length and slot < slots:
                    packed |= stop
                slot += 1
            keys[key, n] = packed
