"""Kernels that extract phrase pairs consistent with a word alignment, and pack phrases into keys."""

from typing import Any

import numpy as np

from rnnsmt.base.kernels.decorator import kernel

MONO, SWAP, OTHER = 0, 1, 2
"""Orientations of the word-based model: monotone, swap, other (discontinuous)."""


@kernel()
def _has_link(links: Any, first: int, last: int, i: int, j: int, source_length: int, target_length: int) -> bool:
    """Return whether source position i is linked to target position j.

    The corners before the first words, (-1, -1), and after the last words of the sentence pair count as linked; all
    other positions outside it are not.

    Args:
        links: int32 [L, 2].
        first, last: range of the links of target position j.
        i, j: source and target position.
        source_length, target_length: lengths of the sentences.
    """
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
    """Extract all phrase pairs of S sentence pairs (Koehn, Och and Marcu 2003).

    A pair has at least one link, and no link connects a word inside to a word outside. Unlinked words at the borders of
    the source side are optional. Each side has at most ``max_length`` (≤ 8) words. The order and the limits are those
    of Moses' ``extract``.

    Args:
        source_offsets, target_offsets, link_offsets: int64 [S + 1], where each sentence begins.
        links: int32 [L, 2], source and target position, sorted by (target, source) in a sentence.
        max_length: maximum number of words.
        spans: int32 [N, 4], filled: begin in the flat source, number of words, begin in the flat target, number of
            words.
        bits: int64 [N], filled: links of the pair, bit ``8 * target + source`` for positions in the phrases.
        orientations: int8 [N], filled: ``3 * previous + next``, with MONO, SWAP, OTHER of the word-based model (Koehn
            et al. 2005; Moses' ``wbe-msd``).

    Returns:
        The number of pairs; pairs beyond N are counted, but not stored.
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
        # row[j]:row[j + 1]: links of target word j, empty for j = n_target. first_target, last_target: first and last
        # target word that each source word is linked to; last_target is -1 for unlinked words.
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
        # all target spans; min_f, max_f: source span of their links, which only grows with end_e
        for start_e in range(n_target):
            min_f, max_f = n_source, -1
            for end_e in range(start_e, min(n_target, start_e + max_length)):
                for link in range(row[end_e], row[end_e + 1]):
                    min_f = min(min_f, links[link, 0])
                    max_f = max(max_f, links[link, 0])
                if max_f < 0:
                    continue
                # longer target spans have source spans at least as long
                if max_f - min_f >= max_length:
                    break
                consistent = True
                for i in range(min_f, max_f + 1):
                    if last_target[i] >= 0 and (first_target[i] < start_e or last_target[i] > end_e):
                        consistent = False
                        break
                if not consistent:
                    continue
                # extend the minimal source span over unlinked words, first on the left, then on the right
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
                            # Orientation: is the target word before the phrase linked to the source word before it
                            # (monotone) or after it (swap)? The same for the target word after the phrase. Outside
                            # the sentence pair, only the corners are linked. The ranges are those of the target
                            # word's links.
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
    """Pack the words of each phrase into integers that sort as the lines of a phrase table.

    Args:
        words: int32, flat side of the block.
        codes: int64 [V], code of each word number, ≥ 1, in byte order of the words.
        spans: int32 [N, 4], as filled by ``extract_block``.
        side: 0 for source, 1 for target.
        stop: code of ``|||``, the end of a phrase that does not fill the keys; the slots after it are 0.
        width: number of bits of a code.
        per_key: number of codes of a key.
        keys: int64 [K, N], filled; the first word of a phrase is in the most significant used bits of the first key.
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
