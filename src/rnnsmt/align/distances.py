"""Distortion of Model 4: probabilities of word positions, gains of the neighbours of an alignment, and expected counts.

The cept of a given word is the set of words that it generates. The position of the first word of a cept relative to the
centre of the previous cept depends on two word classes: of the given word of the previous cept, and of the first word.
The position of any other word relative to the previous word of the same cept depends on the class of the word. Links,
neighbours, moves and swaps are defined in ``model4``.
"""

from typing import Any, NamedTuple

import numpy as np

from rnnsmt.align.neighbours import RARE
from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import add_count

SMOOTHING = 0.4
"""Weight of the uniform distribution in every distance distribution of Model 4."""

_CLOSE = -16.0  # neighbours with a lower gain (without distances) are skipped, because computing distances is slow


class PlacedPair(NamedTuple):
    """Inputs of ``placement`` for a sentence pair of I given and J generated words, except the links; work space."""

    given_classes: Any  # [I], class of every word
    generated_classes: Any  # [J]
    head: Any  # ``head`` and ``inner`` of ``Tables``, before smoothing
    inner: Any
    first: Any  # work space, int64 [I + 1]: first word of each cept, or -1; the last element is for NULL
    following: Any  # work space, int64 [J]: next word in the same cept, or -1


class Cepts(NamedTuple):
    """Arrays [I + 1] that describe the cepts of an alignment; the last element is for NULL; see ``describe_cepts``."""

    centre: Any  # int64: mean position of the words, rounded up; undefined for an empty cept
    previous: Any  # int64: the previous non-empty cept, or -1
    next: Any  # int64: the next non-empty cept, or I
    log_head: Any  # log-probability of the position of the first word; 0 for an empty cept and for NULL
    log_inner: Any  # log-probability of the positions of the other words; 0 for an empty cept and for NULL


@kernel(**INNER, **UNCOUNTED)
def list_words(links, pair):
    """Fill ``first`` and ``following`` of ``pair``: linked lists of the words of each cept, in ascending order."""
    pair.first[: len(pair.given_classes) + 1] = -1
    for j in range(len(links) - 1, -1, -1):
        pair.following[j] = pair.first[links[j]]
        pair.first[links[j]] = j


@kernel(**UNCOUNTED)
def placement(links, pair, head_counts, inner_counts, add):
    """Return the log-probability of the word positions of an alignment in Model 4, and count the distances.

    Args:
        links: [J], given position of every generated word, I for NULL.
        pair: ``PlacedPair``.
        head_counts, inner_counts: counts of ``head`` and ``inner`` in fixed point; ``add`` is added for every distance.
        add: weight of this alignment; if 0, the counts are not updated.
    """
    given_classes, generated_classes, head, inner, first, following = pair
    length, words = len(given_classes), len(generated_classes)
    width = head.shape[2] // 2
    # distances between positions: -(J - 1) .. J - 1 for first words, 1 .. J - 1 inside a cept
    uniform_head, uniform_inner = SMOOTHING / (2 * words - 1), SMOOTHING / max(words - 1, 1)
    list_words(links, pair)
    # the position of the first cept is relative to position -1, with the class of the sentence start
    centre, before = -1, head.shape[0] - 1
    # Factors are multiplied, and the logarithm is taken only before the product could underflow, because log is slow.
    # Smoothing bounds every factor from below.
    score, product = 0.0, 1.0
    for i in range(length):
        j = first[i]
        if j < 0:
            continue
        if add > 0.0:
            add_count(head_counts[before, generated_classes[j]], j - centre + width, add)
        product *= uniform_head + (1.0 - SMOOTHING) * head[before, generated_classes[j], j - centre + width]
        positions, number, last = j, 1, j
        j = following[j]
        while j >= 0:
            if add > 0.0:
                add_count(inner_counts[generated_classes[j]], j - last, add)
            product *= uniform_inner + (1.0 - SMOOTHING) * inner[generated_classes[j], j - last]
            if product < 1e-250:
                score += np.log(product)
                product = 1.0
            positions, number, last = positions + j, number + 1, j
            j = following[j]
        if product < 1e-250:
            score += np.log(product)
            product = 1.0
        # mean position, rounded up (Brown et al. 1993)
        centre = (positions + number - 1) // number
        before = given_classes[i]
    return score + np.log(product)


@kernel(**INNER, **UNCOUNTED)
def changed_cept(i, removed, added, pair):
    """Compute the terms of cept ``i`` after removing the word ``removed`` and adding the word ``added``.

    Args:
        removed, added: words, or -1 for none.

    Returns:
        The first word, or -1 if the cept is empty; the mean position, rounded up; and two values p and q such that
        p exp(q) is the probability of the positions of all words but the first.
    """
    _, generated_classes, _, inner, first, following = pair
    uniform = SMOOTHING / max(len(generated_classes) - 1, 1)
    head, positions, number, last = -1, 0, 0, -1
    product, log_rest = 1.0, 0.0
    j = first[i]
    while j >= 0 or added >= 0:
        if added >= 0 and (j < 0 or added < j):
            word, added = added, -1
        else:
            word = j
            j = following[j]
            if word == removed:
                continue
        if number == 0:
            head = word
        else:
            product *= uniform + (1.0 - SMOOTHING) * inner[generated_classes[word], word - last]
            if product < 1e-100:  # so that the product for two cepts and four first words does not underflow
                log_rest += np.log(product)
                product = 1.0
        positions, number, last = positions + word, number + 1, word
    centre = (positions + number - 1) // number if number > 0 else 0
    return head, centre, product, log_rest


@kernel(**INNER, **UNCOUNTED)
def head_factor(word, before, centre, pair):
    """Return the probability of the position of the first word of a cept.

    Args:
        word: the first word of the cept.
        before: previous non-empty cept, or -1 for the sentence start.
        centre: centre of the previous cept.
        pair: as in ``placement``.
    """
    given_classes, generated_classes, head, _, _, _ = pair
    given_class = given_classes[before] if before >= 0 else head.shape[0] - 1
    distance = word - centre if before >= 0 else word + 1
    uniform = SMOOTHING / (2 * len(generated_classes) - 1)
    return uniform + (1.0 - SMOOTHING) * head[given_class, generated_classes[word], distance + head.shape[2] // 2]


@kernel(**INNER, **UNCOUNTED)
def describe_cepts(links, pair, cepts):
    """Fill ``cepts`` and the linked lists of ``pair`` for an alignment."""
    length = len(pair.given_classes)
    list_words(links, pair)
    before = -1
    for i in range(length):
        cepts.previous[i], cepts.log_head[i], cepts.log_inner[i] = before, 0.0, 0.0
        if pair.first[i] >= 0:
            word, cepts.centre[i], product, log_rest = changed_cept(i, -1, -1, pair)
            cepts.log_inner[i] = np.log(product) + log_rest
            cepts.log_head[i] = np.log(head_factor(word, before, cepts.centre[max(before, 0)], pair))
            before = i
    cepts.previous[length], cepts.next[length] = before, length
    cepts.log_head[length] = cepts.log_inner[length] = 0.0
    after = length
    for i in range(length - 1, -1, -1):
        cepts.next[i] = after
        if pair.first[i] >= 0:
            after = i


@kernel(**INNER, **UNCOUNTED)
def exchange_gain(one, other, word, back, pair, cepts):
    """Return the change of the log-probability of the word positions for a move or a swap.

    Only the terms of the two cepts and the terms of the first words of the next cepts change.

    Args:
        one, other: the cept of ``word`` and the cept to which the word is moved; I for NULL.
        word: the word that is moved.
        back: for a swap, the word of ``other`` that is moved to ``one``; otherwise -1.
        pair: as in ``placement``, with the linked lists of the alignment.
        cepts: ``Cepts`` of the alignment.
    """
    length = len(pair.given_classes)
    if one < other:
        low, high, from_low, from_high = one, other, word, back
    else:
        low, high, from_low, from_high = other, one, back, word
    behind = cepts.next[low]
    old = cepts.log_inner[low] + cepts.log_inner[high] + cepts.log_head[low] + cepts.log_head[high]
    old += cepts.log_head[cepts.next[high]]
    if behind < high:
        old += cepts.log_head[behind]
    # from left to right; ``before`` and ``centre``: the last non-empty cept so far, and its centre
    before = cepts.previous[low]
    centre = cepts.centre[max(before, 0)]
    first, new_centre, product, log_rest = changed_cept(low, from_low, from_high, pair)
    if first >= 0:
        product *= head_factor(first, before, centre, pair)
        before, centre = low, new_centre
    if behind < high:
        product *= head_factor(pair.first[behind], before, centre, pair)
        before = cepts.previous[high]
        centre = cepts.centre[before]
    if high < length:
        first, new_centre, inner, log_inner = changed_cept(high, from_high, from_low, pair)
        product, log_rest = product * inner, log_rest + log_inner
        if first >= 0:
            product *= head_factor(first, before, centre, pair)
            before, centre = high, new_centre
        if cepts.next[high] < length:
            product *= head_factor(pair.first[cepts.next[high]], before, centre, pair)
    return np.log(product) + log_rest - old


@kernel(**UNCOUNTED)
def placement_gains(links, pair, cepts, moves, swaps):
    """Add the change of the distance terms of Model 4 to the gains of all neighbours.

    The gain of a neighbour is set to -inf if it is below ``_CLOSE`` without the distance terms.

    Args:
        links, pair: as in ``placement``.
        cepts: ``Cepts`` used as work space.
        moves, swaps: gains as filled by ``neighbour_gains``, updated.
    """
    describe_cepts(links, pair, cepts)
    for j in range(len(links)):
        for i in range(moves.shape[1]):
            if moves[j, i] < _CLOSE:
                moves[j, i] = -np.inf
            else:
                moves[j, i] += exchange_gain(links[j], i, j, -1, pair, cepts)
        for k in range(j + 1, len(links)):
            if swaps[j, k] < _CLOSE:
                swaps[j, k] = -np.inf
            else:
                swaps[j, k] += exchange_gain(links[j], links[k], j, k, pair, cepts)


@kernel(**UNCOUNTED)
def placement_counts(links, pair, head_counts, inner_counts, moves, swaps, itself):
    """Collect the expected counts of distances over an alignment and its neighbours.

    Args:
        links, pair: as in ``placement``.
        head_counts, inner_counts: counts in fixed point, updated.
        moves, swaps: probabilities of the neighbours, as filled by ``neighbour_counts``.
        itself: probability of the alignment.
    """
    placement(links, pair, head_counts, inner_counts, itself)
    for j in range(len(links)):
        old = links[j]
        for i in range(moves.shape[1]):
            if moves[j, i] > RARE:
                links[j] = i
                placement(links, pair, head_counts, inner_counts, moves[j, i])
        links[j] = old
        for k in range(j + 1, len(links)):
            if swaps[j, k] > RARE:
                links[j], links[k] = links[k], old
                placement(links, pair, head_counts, inner_counts, swaps[j, k])
                links[k], links[j] = links[j], old
