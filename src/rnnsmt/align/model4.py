"""IBM Model 4 (Brown et al. 1993), trained as by GIZA++ with the settings of Moses (Och and Ney 2003).

The models are trained in sequence, each initialised from the previous one: Model 1 (five iterations), the HMM (five),
Model 3 (three) and Model 4 (three). The first iteration of Models 3 and 4 collects its counts from alignments of the
previous model, so six passes over the corpus follow those of the HMM (``PASSES``). In each pass, hill climbing
starts from the Viterbi path of the HMM with the current lexical probabilities, and ends at an alignment without a more
probable neighbour (one word linked elsewhere, or the links of two words swapped). Fractional counts are collected over
this alignment and its neighbours. The first of the six passes aligns with the HMM itself, without hill climbing, and
collects counts over the Viterbi path and its neighbours.

* The probability of NULL is 0.001.
* The fertility distribution of a word is smoothed with four counts of the mean distribution of words of its length.
* The distances of Model 4 depend on 50 word classes per side; 0.4 of each of their distributions is uniform.
* Distortion is deficient: occupied positions and positions outside the sentence also have probability.
* All other estimates are maximum-likelihood estimates of at least 1e-7.

The cept of a given word is the set of words that it generates. In Model 4, the first word of a cept is placed relative
to the centre of the previous cept, depending on the classes of the given word of the previous cept and of the placed
word. Each other word is placed relative to the word before it in the cept, depending on its own class. Model 4 shares
the terms of NULL, fertilities and lexical translations with Model 3 (the kernels at the end of this file).

The arrays of the kernels describe one sentence pair of I given and J generated words. ``links`` [J] contains the given
position of every generated word, I for NULL. A neighbour of an alignment differs in one word that is linked elsewhere
(a move), or in two words that exchange their links (a swap).

GIZA++ moves to the first better neighbour, this implementation to the best one; the word classes of GIZA++ are
computed by another algorithm. 97 % of its links in one direction and 98 % in the other are identical (27,000 sentence
pairs of Multi30k). No random numbers are drawn.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align import hmm
from rnnsmt.align.direction import Counts, Direction, Parameters, Statistics, no_counts
from rnnsmt.align.hmm import P_NULL as HMM_NULL
from rnnsmt.align.hmm import UNIFORM, path_score, transitions, viterbi
from rnnsmt.align.lexicon import FLOOR, look_up, relative_frequencies
from rnnsmt.align.word_classes import word_classes
from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import ONE, add_count, add_counts

HMM, MODEL3, MODEL4 = 0, 3, 4

PASSES = ((HMM, MODEL3), (MODEL3, MODEL3), (MODEL3, MODEL3), (MODEL3, MODEL4), (MODEL4, MODEL4), (MODEL4, 0))
"""For each pass, the model that aligns and the model whose counts are collected; 0 for none, in the last pass."""

P_NULL = 0.001
"""Probability of NULL in Models 3 and 4."""

CLIMBS = 30
"""Maximum number of hill-climbing steps."""

FERTILITY_PRIOR = 4.0
"""Weight, in counts, of the mean fertility distribution of all words of equal length."""

SMOOTHING = 0.4
"""Share of the uniform distribution in every distance distribution of Model 4."""

_CLOSE = -16.0  # neighbours whose gain without distances is smaller are skipped: computing their distances is slow

_RARE = 1e-5  # smaller expected counts are skipped

_BETTER = 1e-4  # minimum gain of a hill-climbing step in log-probability


class Tables(NamedTuple):
    """Parameters of the models, or their expected counts in fixed point, for sentences of at most W words."""

    t: Any  # p(f | e), [pairs of the lexicon + 1]; counts lack the last element, that of pairs not in the lexicon
    t_null: Any  # p(f | NULL), [generated vocabulary]
    distortion: Any  # Model 3's p(j | i, J) at ``distortion_row(i, J, W)`` + j
    fertility: Any  # p(phi | e), [given vocabulary, MAX_FERTILITY + 1]
    head: Any  # p(distance to the last centre | both classes), [given classes + 1 (start), generated classes, 2 W + 1]
    inner: Any  # p(distance to the last word of the cept | class), [generated classes, W + 1]


class PlacedPair(NamedTuple):
    """Inputs of ``placement`` for a sentence pair, other than the links, and work space."""

    given_classes: Any  # [I], class of every word
    generated_classes: Any  # [J]
    head: Any  # as in ``Tables``, before smoothing
    inner: Any
    first: Any  # work space, int64 [I + 1]: first word of each cept, or -1; the last element is for NULL
    following: Any  # work space, int64 [J]: next word in the same cept, or -1


class Cepts(NamedTuple):
    """Description of the cepts of an alignment by ``describe_cepts``: arrays [I + 1], the last element is for NULL."""

    centre: Any  # int64: mean position of the words, rounded up; undefined for a cept without words
    previous: Any  # int64: the last cept before this one that has words, or -1
    next: Any  # int64: the first cept after this one that has words, or I
    log_head: Any  # log-probability of the position of the first word, 0 without words and for NULL
    log_inner: Any  # log-probability of the positions of the other words, 0 without words and for NULL


def begin(direction: Direction) -> Parameters:
    """Return the initial parameters of the HMM, and zeros for those of Models 3 and 4.

    They are named as in ``Tables``. ``log_probabilities``: log-probability of the alignments of every
    pass of Models 3 and 4.
    """
    parameters = hmm.begin(direction)
    given, generated = direction.given, direction.generated
    width = min(int(max(given.lengths.max(), generated.lengths.max())), hmm.LONGEST)
    parameters["generated_classes"] = word_classes(generated)
    classes = int(parameters["given_classes"].max()) + 1, int(parameters["generated_classes"].max()) + 1
    return {
        **parameters,
        "distortion": np.zeros(distortion_row(0, width + 1, width)),
        "fertility": np.zeros((len(given.vocabulary), MAX_FERTILITY + 1)),
        "head": np.zeros((classes[0] + 1, classes[1], 2 * width + 1)),
        "inner": np.zeros((classes[1], width + 1)),
        "log_probabilities": np.zeros(0),
    }


def count(direction: Direction, parameters: Parameters) -> Counts:
    """Run the next of ``PASSES``; the last one links every generated word to a given word or to NULL (-1)."""
    models = PASSES[len(parameters["log_probabilities"])]
    counted = models[1]
    tables = Tables(*[parameters[name] for name in Tables._fields])
    counts = no_counts(parameters, *Tables._fields) if counted else {}
    totals = Tables(**counts) if counted else Tables(*[np.zeros([0] * table.ndim, np.int64) for table in tables])
    classes = (parameters["given_classes"], parameters["generated_classes"])
    jumps = (parameters["jumps"], parameters["beginnings"])
    settings = (models, *classes, *jumps, tables, totals, parameters["best"])
    counts["sums"] = direction.over_blocks(lambda *block: fertility_block(block, direction.corpus, *settings))
    return counts


def estimate(statistics: Statistics, parameters: Parameters, counts: Counts) -> None:
    """Update the parameters of the counted model, and append the log-probability; the last pass only appends it."""
    parameters["log_probabilities"] = np.append(parameters["log_probabilities"], sum(counts["sums"].tolist()))
    if "t" in counts:
        statistics.estimate(parameters, counts, relative_frequencies)
        tables = Tables(*[counts[name] for name in Tables._fields])
        parameters.update(_estimate(tables, statistics.letters, tables.inner.shape[1] - 1))


def _estimate(counts: Tables, letters: npt.NDArray[np.int64], width: int) -> Parameters:
    """Return all parameters except the lexical ones.

    Args:
        counts: expected counts in fixed point.
        letters: number of characters of every given word.
        width: maximum sentence length W.
    """
    sizes = np.repeat(np.arange(width + 1), width)  # row lengths of the distortion table: J, for W given positions
    starts = np.concatenate([[0], np.cumsum(sizes)])
    distortion = np.empty(len(counts.distortion))
    relative_frequencies(starts, counts.distortion, distortion)
    # expected fertilities are differences and can be slightly below 0; the last column is for impossible fertilities
    fertility = np.maximum(counts.fertility / ONE, FLOOR)
    fertility[:, MAX_FERTILITY] = 0.0
    # mean distribution of the words of each length
    by_letters = np.zeros((letters.max() + 1, MAX_FERTILITY + 1))
    np.add.at(by_letters, letters, fertility)
    by_letters /= np.maximum(by_letters.sum(1, keepdims=True), FLOOR)
    fertility += FERTILITY_PRIOR * by_letters[letters]
    fertility /= fertility.sum(1, keepdims=True)
    # smoothed with a uniform distribution only when they are used, see ``placement``
    head, inner = (
        table / ONE / np.maximum(table.sum(-1, keepdims=True) / ONE, 1e-9) for table in (counts.head, counts.inner)
    )
    return {"distortion": distortion, "fertility": fertility, "head": head, "inner": inner}


@kernel()
def distortion_row(i, words, width):
    """Return the index of the first element of a row of the distortion table.

    The rows are ordered by ``words``, then ``i``: ``width`` rows (W, the maximum sentence length) of length ``words``
    for every ``words`` from 1 to W.

    Args:
        i: given position.
        words: number of generated words of the sentence pair.
    """
    return width * (words * (words - 1) // 2) + i * words


@kernel(**INNER, **UNCOUNTED)
def list_words(links, pair):
    """Fill the linked lists of the words of each cept, ``first`` and ``following`` of a ``PlacedPair``, ascending."""
    pair.first[: len(pair.given_classes) + 1] = -1
    for j in range(len(links) - 1, -1, -1):
        pair.following[j] = pair.first[links[j]]
        pair.first[links[j]] = j


@kernel(**UNCOUNTED)
def placement(links, pair, head_counts, inner_counts, add):
    """Return the log-probability of the positions of all cepts in Model 4, and update the counts of the distances.

    Args:
        links: given position of every generated word, I for NULL, [J].
        pair: ``PlacedPair``.
        head_counts, inner_counts: counts of ``head`` and ``inner`` in fixed point; ``add`` is added for every distance.
        add: weight of this alignment; 0: the counts are not used.
    """
    given_classes, generated_classes, head, inner, first, following = pair
    length, words = len(given_classes), len(generated_classes)
    width = head.shape[2] // 2
    # distances between positions: -(J - 1) .. J - 1 for first words, 1 .. J - 1 inside a cept
    uniform_head, uniform_inner = SMOOTHING / (2 * words - 1), SMOOTHING / max(words - 1, 1)
    list_words(links, pair)
    # the first cept is placed relative to position -1, in the class of the sentence start
    centre, before = -1, head.shape[0] - 1
    # The product of the factors is accumulated, and its logarithm taken only before it could underflow, because log is
    # slow. Smoothing bounds every factor from below.
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
    """Compute the terms of cept ``i`` without the word ``removed`` and with the word ``added``; -1: no such word.

    Returns:
        The first word, -1 if there is none; the mean position, rounded up; and two values p and q: the probability of
        the positions of the words after the first is p exp(q).
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
            if product < 1e-100:  # so the product for two cepts and four first words does not underflow
                log_rest += np.log(product)
                product = 1.0
        positions, number, last = positions + word, number + 1, word
    centre = (positions + number - 1) // number if number > 0 else 0
    return head, centre, product, log_rest


@kernel(**INNER, **UNCOUNTED)
def head_factor(word, before, centre, pair):
    """Return the probability of the position of the first word of a cept after cept ``before`` (-1: the start)."""
    given_classes, generated_classes, head, _, _, _ = pair
    given_class = given_classes[before] if before >= 0 else head.shape[0] - 1
    distance = word - centre if before >= 0 else word + 1
    uniform = SMOOTHING / (2 * len(generated_classes) - 1)
    return uniform + (1.0 - SMOOTHING) * head[given_class, generated_classes[word], distance + head.shape[2] // 2]


@kernel(**INNER, **UNCOUNTED)
def describe_cepts(links, pair, cepts):
    """Fill ``Cepts``, and the lists of words of ``pair``, for an alignment."""
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
    """Return the change of the log-probability of the positions if a word changes its cept, or two exchange theirs.

    Only the terms of both cepts, and of the first words of the cepts that follow them, change.

    Args:
        one, other: the cept of ``word`` and its new cept, I for NULL.
        word: a generated word.
        back: a word of ``other`` that is linked to ``one`` in exchange, or -1.
        pair: as in ``placement``, with the lists of words of the alignment.
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
    # from left to right; ``before`` and ``centre``: the last cept that has words
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
    """Add the change of the distance terms to the gains of all neighbours, for Model 4.

    Neighbours whose gain without it is below ``_CLOSE`` are set to -inf.

    Args:
        links, pair: as in ``placement``.
        cepts: work space, ``Cepts``.
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
            if moves[j, i] > _RARE:
                links[j] = i
                placement(links, pair, head_counts, inner_counts, moves[j, i])
        links[j] = old
        for k in range(j + 1, len(links)):
            if swaps[j, k] > _RARE:
                links[j], links[k] = links[k], old
                placement(links, pair, head_counts, inner_counts, swaps[j, k])
                links[k], links[j] = links[j], old


@kernel(**UNCOUNTED)
def _hmm_gains(links, lexical, log_step, log_begin, log_null, moves, swaps):
    """Compute the gain of every neighbour with the probabilities of the HMM; ``moves`` and ``swaps`` are filled."""
    now = path_score(links, lexical, log_step, log_begin, log_null)
    for j in range(len(links)):
        old = links[j]
        for i in range(lexical.shape[1]):
            links[j] = i
            moves[j, i] = path_score(links, lexical, log_step, log_begin, log_null) - now
        links[j] = old
        moves[j, old] = -np.inf
        for k in range(j + 1, len(links)):
            other = links[k]
            links[j], links[k] = other, old
            swaps[j, k] = path_score(links, lexical, log_step, log_begin, log_null) - now
            links[j], links[k] = old, other
            if other == old:
                swaps[j, k] = -np.inf


@kernel()
def fertility_block(  # noqa: PLR0912, PLR0915
    block, corpus, models, given_classes, generated_classes, jumps, beginnings, tables, counts, best
):
    """Run one pass over a block: find the best alignment by hill climbing, and collect counts over its neighbourhood.

    Sentence pairs with more than W words on a side are skipped; their links in ``best`` remain unchanged.

    Args:
        block, corpus: as in ``fast_align_block``.
        models: the model that aligns, and the model whose parameters are counted, or 0 for no counts. ``MODEL3`` and
            ``MODEL4`` align by hill climbing from the Viterbi path of the HMM; with ``HMM``, there is no hill climbing,
            and the Viterbi path and its neighbours have their probabilities in the HMM.
        given_classes, generated_classes: class of every word, int32 [vocabulary].
        jumps, beginnings: parameters of the HMM, as in ``HmmTables``.
        tables: parameters, ``Tables``.
        counts: counts, ``Tables`` of int64 in fixed point, updated; empty arrays if the second model is 0.
        best: given position of every generated word, -1 for NULL, [generated words]; set if the second model is 0.

    Returns:
        The log-probability of the alignments.
    """
    first, end, at = block
    starts, words, cells, given_ids, given_offsets, generated_ids, generated_offsets = corpus
    model, counted = models
    # W; the arrays below are work space for all sentence pairs, and views of them have the size of a sentence pair
    size = tables.inner.shape[1] - 1
    all_moves, all_swaps, all_entries = (
        np.empty((size, size + 1)),
        np.empty((size, size)),
        np.empty((size, size), np.int64),
    )
    all_lexical, posterior, all_phi = (np.empty((size, size + 1)), np.empty((size, size + 1)),
                                       np.empty((size, MAX_FERTILITY + 1)))  # fmt: skip
    emission, null, all_step, all_begin = np.empty((size, size)), np.empty(size), np.empty((size, size)), np.empty(size)
    paths, back = np.empty((2, size + 1)), np.empty((size, size + 1), np.int64)
    all_fertilities, heads, following, all_links = (
        np.empty(size + 1, np.int64),
        np.empty(size + 1, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    cepts = Cepts(
        np.empty(size + 1, np.int64),
        np.empty(size + 1, np.int64),
        np.empty(size + 1, np.int64),
        np.empty(size + 1),
        np.empty(size + 1),
    )
    # placeholder for the counts of ``placement``
    nothing = np.zeros((1, 1, 1), np.int64)
    nulls = np.zeros(len(tables.t_null))
    log_factorials = np.zeros(size + MAX_FERTILITY + 1)
    for k in range(1, len(log_factorials)):
        log_factorials[k] = log_factorials[k - 1] + np.log(k)
    log_probability, pairs = 0.0, at
    for s in range(first, end):
        given = given_ids[given_offsets[s] : given_offsets[s + 1]]
        start = generated_offsets[s]
        generated = generated_ids[start : generated_offsets[s + 1]]
        n, m = len(given), len(generated)
        at, pairs = pairs, pairs + n * m
        if n == 0 or m == 0 or max(n, m) > size:
            continue
        links, classes = all_links[:m], given_classes[given]
        placed = PlacedPair(classes, generated_classes[generated], tables.head, tables.inner, heads, following)
        lexical, moves, swaps = all_lexical[:m, : n + 1], all_moves[:m, : n + 1], all_swaps[:m, :m]
        entries, step, begin, phi = all_entries[:m, :n], all_step[:n, :n], all_begin[:n], all_phi[:n]
        fertilities = all_fertilities[: n + 1]
        for j in range(m):
            null[j] = HMM_NULL * tables.t_null[generated[j]]
            lexical[j, n] = np.log(tables.t_null[generated[j]])
            look_up(starts, words, cells, at + j * n, given, generated[j], entries[j])
            for i in range(n):
                emission[j, i] = tables.t[entries[j, i]]
                lexical[j, i] = np.log(emission[j, i])
        transitions(classes, jumps, beginnings, HMM_NULL, UNIFORM, step, begin)
        viterbi(emission[:m, :n], null[:m], step, begin, paths, back, links)
        fertilities[:] = 0
        for j in range(m):
            fertilities[links[j]] += 1
        if model == HMM:
            log_step, log_begin, log_null = np.log(step), np.log(begin), np.log(HMM_NULL)
            _hmm_gains(links, lexical, log_step, log_begin, log_null, moves, swaps)
            log_probability += path_score(links, lexical, log_step, log_begin, log_null)
        else:
            for i in range(n):
                row = distortion_row(i, m, size)
                # Model 3 has a factor phi! per given word; in Model 4, the order of a cept's words is fixed by their
                # distances
                for k in range(MAX_FERTILITY + 1):
                    phi[i, k] = np.log(max(tables.fertility[given[i], k], FLOOR))
                    phi[i, k] += log_factorials[k] if model == MODEL3 else 0.0
                if model == MODEL3:
                    for j in range(m):
                        lexical[j, i] += np.log(max(tables.distortion[row + j], FLOOR))
            # One more evaluation than steps: at the end, moves and swaps are the gains of the neighbours of the final
            # alignment, from which the counts are computed.
            for climb in range(CLIMBS + 1):
                neighbour_gains(links, lexical, phi, fertilities, P_NULL, log_factorials, moves, swaps)
                if model == MODEL4:
                    placement_gains(links, placed, cepts, moves, swaps)
                gain, word, other, position = best_neighbour(moves, swaps)
                if gain < _BETTER or climb == CLIMBS:
                    break
                change(links, fertilities, word, other, position)
            log_probability += null_score(fertilities[n], m, P_NULL, log_factorials)
            for i in range(n):
                log_probability += phi[i, min(fertilities[i], MAX_FERTILITY)]
            for j in range(m):
                log_probability += lexical[j, links[j]]
            if model == MODEL4:
                log_probability += placement(links, placed, nothing, nothing[0], 0.0)
        if counted == 0:
            for j in range(m):
                best[start + j] = links[j] if links[j] < n else -1
            continue
        itself = neighbour_counts(links, moves, swaps, given, fertilities, posterior, counts.fertility)
        if counted == MODEL4:
            placement_counts(links, placed, counts.head, counts.inner, moves, swaps, itself)
        for j in range(m):
            if posterior[j, n] > _RARE:
                nulls[generated[j]] += posterior[j, n]
            for i in range(n):
                if posterior[j, i] > _RARE:
                    if entries[j, i] < len(counts.t):
                        add_count(counts.t, entries[j, i], posterior[j, i])
                    add_count(counts.distortion, distortion_row(i, m, size) + j, posterior[j, i])
    if counted != 0:
        add_counts(counts.t_null, nulls)
    return log_probability


MAX_FERTILITY = 10
"""Index that represents all fertilities of at least this value, which are considered impossible."""

NEVER = -1e3
"""Factor of the log-probability of impossible numbers of NULL words, see ``null_score``; finite, so that differences
between alignments are defined."""


@kernel(**UNCOUNTED)
def null_score(nulls, words, p_null, log_factorials):
    """Return the log-probability that NULL generates ``nulls`` of ``words`` words.

    It is log of C(J - nulls, nulls) p_null^nulls (1 - p_null)^(J - 2 nulls). More than half of the words are
    impossible: the penalty grows with the excess, so hill climbing reduces it.
    """
    if 2 * nulls > words:
        return NEVER * (2 * nulls - words)
    rest = words - nulls
    choices = log_factorials[rest] - log_factorials[nulls] - log_factorials[rest - nulls]
    return choices + nulls * np.log(p_null) + (rest - nulls) * np.log(1.0 - p_null)


@kernel(**UNCOUNTED)
def neighbour_gains(links, lexical, fertility, fertilities, p_null, log_factorials, moves, swaps):
    """Compute the gain in log-probability of every neighbour of an alignment.

    Args:
        links: the alignment, int64 [J].
        lexical: log-probability of the terms that depend on one link only, [J, I + 1], NULL last: log p(f_j | e_i), in
            Model 3 also log p(j | i, J).
        fertility: log-probability of the terms that depend on the fertility of one given word, [I, MAX_FERTILITY + 1]:
            log p(phi | e_i), in Model 3 also log phi!.
        fertilities: number of words that are linked to each position, [I + 1], NULL last.
        log_factorials: log n! for n = 0, 1, ...
        moves: filled with the gain of linking word j to position i, [J, I + 1]; -inf at the current link.
        swaps: filled, above the diagonal, with the gain of exchanging the links of two words, [J, J]; -inf if they are
            equal.
    """
    words, length = lexical.shape[0], lexical.shape[1] - 1
    nulls = fertilities[length]
    now = null_score(nulls, words, p_null, log_factorials)
    more = null_score(nulls + 1, words, p_null, log_factorials) - now
    less = null_score(nulls - 1, words, p_null, log_factorials) - now if nulls > 0 else 0.0
    for j in range(words):
        old = links[j]
        leaving = -lexical[j, old]
        if old == length:
            leaving += less
        else:
            phi = fertilities[old]
            leaving += fertility[old, min(phi - 1, MAX_FERTILITY)] - fertility[old, min(phi, MAX_FERTILITY)]
        for i in range(length):
            phi = fertilities[i]
            moves[j, i] = leaving + lexical[j, i] - fertility[i, min(phi, MAX_FERTILITY)]
            moves[j, i] += fertility[i, min(phi + 1, MAX_FERTILITY)]
        moves[j, length] = leaving + lexical[j, length] + more
        moves[j, old] = -np.inf
        for k in range(j + 1, words):
            other = links[k]
            # fertilities do not change
            swaps[j, k] = lexical[j, other] + lexical[k, old] - lexical[j, old] - lexical[k, other]
            if other == old:
                swaps[j, k] = -np.inf


@kernel(**UNCOUNTED)
def best_neighbour(moves, swaps):
    """Return the most probable neighbour.

    Returns:
        Its gain, the first word, the second word of a swap or -1, the new position of a move or -1.
    """
    best, word, other, position = -np.inf, -1, -1, -1
    for j in range(len(moves)):
        for i in range(moves.shape[1]):
            if moves[j, i] > best:
                best, word, other, position = moves[j, i], j, -1, i
        for k in range(j + 1, len(moves)):
            if swaps[j, k] > best:
                best, word, other, position = swaps[j, k], j, k, -1
    return best, word, other, position


@kernel(**UNCOUNTED)
def change(links, fertilities, word, other, position):
    """Replace an alignment by a neighbour, given as the last three values of ``best_neighbour``."""
    if other >= 0:
        links[word], links[other] = links[other], links[word]
    else:
        fertilities[links[word]] -= 1
        fertilities[position] += 1
        links[word] = position


@kernel(**UNCOUNTED)
def neighbour_counts(  # noqa: PLR0912
    links, moves, swaps, given, fertilities, posterior, fertility_counts
):  # fmt: skip
    """Collect expected counts over an alignment and its neighbours.

    Args:
        links: the alignment, int64 [J].
        moves, swaps: gains of the neighbours, as filled by ``neighbour_gains``; replaced by their probabilities.
        given: ids of the given words, [I].
        fertilities: number of words that are linked to each position, [I + 1].
        posterior: filled with p(link) of every word, [J, I + 1].
        fertility_counts: expected counts of the fertilities, int64 [given vocabulary, MAX_FERTILITY + 1], in fixed
            point, updated.

    Returns:
        The probability of the alignment itself.
    """
    words, length = len(links), len(given)
    # Probabilities relative to that of the alignment itself, which is 1. Gains above 0 remain only if hill climbing
    # reached its maximum number of steps, or if they are below its threshold; they count as 0.
    total = 1.0
    for j in range(words):
        for i in range(length + 1):
            moves[j, i] = np.exp(min(moves[j, i], 0.0))
            total += moves[j, i]
        for k in range(j + 1, words):
            swaps[j, k] = np.exp(min(swaps[j, k], 0.0))
            total += swaps[j, k]
    posterior[:words, : length + 1] = 0.0
    for j in range(words):
        # start with mass 1 on the alignment; each neighbour then moves its probability to its links
        posterior[j, links[j]] += 1.0
    for j in range(words):
        for i in range(length + 1):
            moves[j, i] /= total
            posterior[j, i] += moves[j, i]
            posterior[j, links[j]] -= moves[j, i]
        for k in range(j + 1, words):
            weight = swaps[j, k] / total
            swaps[j, k] = weight
            posterior[j, links[k]] += weight
            posterior[j, links[j]] -= weight
            posterior[k, links[j]] += weight
            posterior[k, links[k]] -= weight
    for i in range(length):
        # Neighbours exclude each other, so the fertility is one higher with the total probability of moves to position
        # i, one lower with that of moves away from it, and otherwise unchanged.
        phi, more, less = fertilities[i], 0.0, 0.0
        for j in range(words):
            if links[j] == i:
                for other in range(length + 1):
                    less += moves[j, other]
            else:
                more += moves[j, i]
        counts = fertility_counts[given[i]]
        add_count(counts, min(phi, MAX_FERTILITY), 1.0 - more - less)
        add_count(counts, min(phi + 1, MAX_FERTILITY), more)
        if phi > 0:
            add_count(counts, min(phi - 1, MAX_FERTILITY), less)
    return 1.0 / total
