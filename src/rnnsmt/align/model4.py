"""IBM Model 4 (Brown et al. 1993), trained as by GIZA++ with the settings of Moses (Och and Ney 2003).

The models are trained in sequence, each initialised from the previous one: Model 1 (five iterations), the HMM (five),
Model 3 (three) and Model 4 (three). The first iteration of Models 3 and 4 collects its counts from alignments of the
previous model, so that six passes over the corpus follow the iterations of the HMM (``PASSES``). In each pass, hill
climbing starts from the Viterbi path of the HMM with the current lexical probabilities, and ends at an alignment
without a more probable neighbour. Fractional counts are collected over this alignment and its neighbours. The first of
the six passes aligns with the HMM itself, without hill climbing, and collects counts over the Viterbi path and its
neighbours.

* The probability of NULL is 0.001.
* The fertility distribution of a word is smoothed by adding four pseudo-counts, distributed as the mean fertility
  distribution of words of the same length in characters.
* The distances of Model 4 depend on 50 word classes per side; every distance distribution is interpolated with the
  uniform distribution, which has weight 0.4.
* Distortion is deficient: occupied positions and positions outside the sentence also have probability.
* All other estimates are maximum-likelihood estimates, but at least 1e-7.

Models 3 and 4 have the same terms for NULL, fertilities and lexical translations (``neighbours``); Model 4 differs in
the probabilities of word positions (``distances``).

The arrays of the kernels describe one sentence pair of I given and J generated words. ``links`` [J] contains the given
position of every generated word, I for NULL. A neighbour of an alignment is obtained by linking a word to another given
word or to NULL (a move), or by exchanging the links of two words (a swap).

GIZA++ moves to the first better neighbour, whereas this implementation moves to the best neighbour; GIZA++ computes
word classes by another algorithm. In one direction, 97 % of the links of GIZA++ are identical, in the other 98 %
(27,000 sentence pairs of Multi30k). No random numbers are drawn.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align import HMM_ITERATIONS, MODEL1_ITERATIONS, hmm
from rnnsmt.align.direction import Aligner, Direction, Parameters
from rnnsmt.align.distances import Cepts, PlacedPair, placement, placement_counts, placement_gains
from rnnsmt.align.hmm import P_NULL as HMM_NULL
from rnnsmt.align.hmm import UNIFORM, path_score, transitions, viterbi
from rnnsmt.align.lexicon import FLOOR, look_up, relative_frequencies
from rnnsmt.align.neighbours import (
    MAX_FERTILITY,
    RARE,
    best_neighbour,
    change,
    hmm_gains,
    neighbour_counts,
    neighbour_gains,
    null_score,
)
from rnnsmt.align.word_classes import word_classes
from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import ONE, add_count, add_counts

HMM, MODEL3, MODEL4 = 0, 3, 4

PASSES = ((HMM, MODEL3), (MODEL3, MODEL3), (MODEL3, MODEL3), (MODEL3, MODEL4), (MODEL4, MODEL4), (MODEL4, 0))
"""For each pass, the model that aligns and the model for which counts are collected (0: none, in the last pass).

``MODEL3`` and ``MODEL4`` align by hill climbing from the Viterbi path of the HMM. With ``HMM``, there is no hill
climbing, and the probabilities of the Viterbi path and its neighbours are computed by the HMM.
"""

P_NULL = 0.001
"""Probability of NULL in Models 3 and 4."""

CLIMBS = 30
"""Maximum number of hill-climbing steps."""

FERTILITY_PRIOR = 4.0
"""Number of pseudo-counts of the mean fertility distribution of words of the same length."""

BETTER = 1e-4
"""Minimum gain in log-probability of a hill-climbing step."""


class Tables(NamedTuple):
    """Parameters of the models, or their expected counts in fixed point, for sentences of at most W words."""

    t: Any  # p(f | e), [pairs + 1]; the last element is for pairs that are not in the lexicon; counts lack it
    t_null: Any  # p(f | NULL), [generated vocabulary]
    distortion: Any  # p(j | i, J) of Model 3 is element ``distortion_row(i, J, W)`` + j
    fertility: Any  # p(phi | e), [given vocabulary, MAX_FERTILITY + 1]
    head: Any  # p(distance to the last centre | both classes), [given classes + 1 (start), generated classes, 2 W + 1]
    inner: Any  # p(distance to the last word of the cept | class), [generated classes, W + 1]


def begin(direction: Direction) -> Parameters:
    """Return the initial parameters of the HMM, and zeros for the parameters of Models 3 and 4.

    The names are those of ``Tables``. ``log_probabilities`` contains the log-probability of the alignments in every
    pass of ``PASSES``.
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


def iterate(direction: Direction, parameters: Parameters, done: int) -> Iterator[None]:
    """Run the iterations after the first ``done`` iterations; yield after each. The last iteration sets the links."""
    yield from hmm.estimate(direction, parameters, done)
    letters = np.array([len(word) for word in direction.given.vocabulary])
    for models in PASSES[max(done - MODEL1_ITERATIONS - HMM_ITERATIONS, 0) : -1]:
        others = [np.zeros(parameters[name].shape, np.int64) for name in Tables._fields[2:]]
        counts = Tables(*direction.lexical_counts(), *others)
        _expectation(direction, parameters, models, counts)
        direction.estimate(parameters, counts.t, counts.t_null, relative_frequencies)
        parameters |= _maximisation(counts, letters)
        yield
    _expectation(direction, parameters, PASSES[-1], None)
    yield


ALIGNER = Aligner(begin, iterate, MODEL1_ITERATIONS + HMM_ITERATIONS + len(PASSES))


def _expectation(direction: Direction, parameters: Parameters, models: tuple[int, int], counts: Tables | None) -> None:
    """Run a pass: add to the counts, or set the links if ``counts`` is None; append the alignments' log-probability."""
    tables = Tables(*[parameters[name] for name in Tables._fields])
    totals = counts or Tables(*[np.zeros([0] * table.ndim, np.int64) for table in tables])
    of_hmm = [parameters[name] for name in ("given_classes", "generated_classes", "jumps", "beginnings")]
    settings = (models, *of_hmm, tables, totals, parameters["best"])
    total = direction.over_blocks(lambda *block: fertility_block(block, direction.corpus, *settings))
    parameters["log_probabilities"] = np.append(parameters["log_probabilities"], total)


def _maximisation(counts: Tables, letters: npt.NDArray[np.int64]) -> Parameters:
    """Return all parameters but the lexical ones; ``letters`` contains the number of characters of every given word."""
    width = counts.inner.shape[1] - 1
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
    # ``placement`` interpolates these distributions with the uniform distribution
    head, inner = (
        table / ONE / np.maximum(table.sum(-1, keepdims=True) / ONE, 1e-9) for table in (counts.head, counts.inner)
    )
    return {"distortion": distortion, "fertility": fertility, "head": head, "inner": inner}


@kernel()
def distortion_row(i, words, width):
    """Return the index of the first element of a row of the distortion table.

    The rows are ordered by ``words``, then ``i``. For every value of ``words`` from 1 to W, there are W rows of length
    ``words``.

    Args:
        i: given position.
        words: number of generated words of the sentence pair.
        width: W, the maximum sentence length.
    """
    return width * (words * (words - 1) // 2) + i * words


class Space(NamedTuple):
    """Work space for one sentence pair of I given and J generated words."""

    links: Any  # int64 [J], the alignment
    fertilities: Any  # int64 [I + 1], number of words that are linked to each position, NULL last
    entries: Any  # int64 [J, I], lexicon indices of the word pairs
    emission: Any  # [J, I], p(f_j | e_i)
    null: Any  # [J], p_null p(f_j | NULL) of the HMM
    step: Any  # [I, I], as filled by ``transitions``
    begin: Any  # [I]
    lexical: Any  # [J, I + 1], as in ``neighbour_gains``
    fertility: Any  # [I, MAX_FERTILITY + 1], as in ``neighbour_gains``
    moves: Any  # [J, I + 1], as in ``neighbour_gains``
    swaps: Any  # [J, J]
    posterior: Any  # [J, I + 1], as in ``neighbour_counts``


@kernel(**INNER)
def new_space(size):
    """Allocate a ``Space`` for ``size`` given and generated words."""
    links, fertilities, entries = (
        np.empty(size, np.int64),
        np.empty(size + 1, np.int64),
        np.empty((size, size), np.int64),
    )
    emission, null, step, begin = np.empty((size, size)), np.empty(size), np.empty((size, size)), np.empty(size)
    lexical, fertility = np.empty((size, size + 1)), np.empty((size, MAX_FERTILITY + 1))
    moves, swaps, posterior = np.empty((size, size + 1)), np.empty((size, size)), np.empty((size, size + 1))
    return Space(links, fertilities, entries, emission, null, step, begin, lexical, fertility, moves, swaps, posterior)


@kernel(**INNER)
def of_pair(space, n, m):
    """Return views of the arrays of a larger ``Space``, for ``n`` given and ``m`` generated words."""
    links, fertilities, entries = space.links[:m], space.fertilities[: n + 1], space.entries[:m, :n]
    emission, null, step, begin = space.emission[:m, :n], space.null[:m], space.step[:n, :n], space.begin[:n]
    lexical, fertility = space.lexical[:m, : n + 1], space.fertility[:n]
    moves, swaps, posterior = space.moves[:m, : n + 1], space.swaps[:m, :m], space.posterior[:m, : n + 1]
    return Space(links, fertilities, entries, emission, null, step, begin, lexical, fertility, moves, swaps, posterior)


@kernel()
def fertility_block(
    block, corpus, models, given_classes, generated_classes, jumps, beginnings, tables, counts, best
):  # fmt: skip
    """Run one pass over a block: find the best alignment by hill climbing, and collect counts over its neighbourhood.

    Sentence pairs with more than W words on a side are skipped; their links in ``best`` remain unchanged.

    Args:
        block, corpus: as in ``fast_align_block``.
        models: element of ``PASSES``.
        given_classes, generated_classes: class of every word, int32 [vocabulary].
        jumps, beginnings: parameters of the HMM, as in ``HmmTables``.
        tables: parameters, ``Tables``.
        counts: counts, ``Tables`` of int64 in fixed point, updated; empty arrays in the last pass.
        best: given position of every generated word, -1 for NULL, [generated words]; set in the last pass.

    Returns:
        The log-probability of the alignments.
    """
    first, end, at = block
    model, counted = models
    size = tables.inner.shape[1] - 1  # W
    whole = new_space(size)
    centre, before, after = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    cepts = Cepts(centre, before, after, np.empty(size + 1), np.empty(size + 1))
    paths, back = np.empty((2, size + 1)), np.empty((size, size + 1), np.int64)
    firsts, following = np.empty(size + 1, np.int64), np.empty(size, np.int64)
    log_factorials = np.zeros(size + MAX_FERTILITY + 1)
    for k in range(1, len(log_factorials)):
        log_factorials[k] = log_factorials[k - 1] + np.log(k)
    nulls = np.zeros(len(tables.t_null))
    log_probability, pairs = 0.0, at
    for s in range(first, end):
        given = corpus.given_ids[corpus.given_offsets[s] : corpus.given_offsets[s + 1]]
        start = corpus.generated_offsets[s]
        generated = corpus.generated_ids[start : corpus.generated_offsets[s + 1]]
        n, m = len(given), len(generated)
        at, pairs = pairs, pairs + n * m
        if n == 0 or m == 0 or max(n, m) > size:
            continue
        space = of_pair(whole, n, m)
        read_lexicon(corpus, at, given, generated, tables, space)
        classes = given_classes[given]
        transitions(classes, jumps, beginnings, HMM_NULL, UNIFORM, space.step, space.begin)
        viterbi(space.emission, space.null, space.step, space.begin, paths, back, space.links)
        space.fertilities[:] = 0
        for j in range(m):
            space.fertilities[space.links[j]] += 1
        placed = PlacedPair(classes, generated_classes[generated], tables.head, tables.inner, firsts, following)
        if model == HMM:
            path = space.links, space.lexical, np.log(space.step), np.log(space.begin), np.log(HMM_NULL)
            hmm_gains(*path, space.moves, space.swaps)
            log_probability += path_score(*path)
        else:
            log_probability += climb(model, given, placed, cepts, tables, counts, log_factorials, space)
        if counted != 0:
            count_neighbourhood(counted, given, generated, placed, counts, nulls, space)
            continue
        for j in range(m):
            best[start + j] = space.links[j] if space.links[j] < n else -1
    if counted != 0:
        add_counts(counts.t_null, nulls)
    return log_probability


@kernel(**INNER, **UNCOUNTED)
def read_lexicon(corpus, at, given, generated, tables, space):
    """Fill ``entries``, ``emission``, ``null`` and ``lexical`` of ``space``; ``at`` is as in ``look_up``."""
    n = len(given)
    for j in range(len(generated)):
        null = tables.t_null[generated[j]]
        space.null[j] = HMM_NULL * null
        space.lexical[j, n] = np.log(null)
        look_up(corpus.starts, corpus.words, corpus.places, at + j * n, given, generated[j], space.entries[j])
        for i in range(n):
            space.emission[j, i] = tables.t[space.entries[j, i]]
            space.lexical[j, i] = np.log(space.emission[j, i])


@kernel(**INNER, **UNCOUNTED)
def climb(model, given, placed, cepts, tables, counts, log_factorials, space):
    """Improve ``links`` by hill climbing; return the log-probability of the final alignment.

    ``moves`` and ``swaps`` are filled with the gains of the neighbours of the final alignment. ``counts`` is an
    argument of ``placement`` and not updated.
    """
    n, m = len(given), len(space.links)
    links, lexical, fertility, fertilities = space.links, space.lexical, space.fertility, space.fertilities
    for i in range(n):
        # Model 3 has a factor phi! per given word; in Model 4, distances determine the order of the words of a cept
        for k in range(MAX_FERTILITY + 1):
            fertility[i, k] = np.log(max(tables.fertility[given[i], k], FLOOR))
            fertility[i, k] += log_factorials[k] if model == MODEL3 else 0.0
        if model == MODEL3:
            row = distortion_row(i, m, tables.inner.shape[1] - 1)
            for j in range(m):
                lexical[j, i] += np.log(max(tables.distortion[row + j], FLOOR))
    # Gains are computed once more than steps are made: at the end, moves and swaps are the gains of the neighbours of
    # the final alignment, from which the counts are computed.
    for step in range(CLIMBS + 1):
        neighbour_gains(links, lexical, fertility, fertilities, P_NULL, log_factorials, space.moves, space.swaps)
        if model == MODEL4:
            placement_gains(links, placed, cepts, space.moves, space.swaps)
        gain, word, other, position = best_neighbour(space.moves, space.swaps)
        if gain < BETTER or step == CLIMBS:
            break
        change(links, fertilities, word, other, position)
    log_probability = null_score(fertilities[n], m, P_NULL, log_factorials)
    for i in range(n):
        log_probability += fertility[i, min(fertilities[i], MAX_FERTILITY)]
    for j in range(m):
        log_probability += lexical[j, links[j]]
    if model == MODEL4:
        log_probability += placement(links, placed, counts.head, counts.inner, 0.0)
    return log_probability


@kernel(**INNER, **UNCOUNTED)
def count_neighbourhood(counted, given, generated, placed, counts, nulls, space):
    """Collect expected counts over an alignment and its neighbours; counts of NULL are added to ``nulls``."""
    links, moves, swaps, posterior, entries = space.links, space.moves, space.swaps, space.posterior, space.entries
    n, m = len(given), len(generated)
    itself = neighbour_counts(links, moves, swaps, given, space.fertilities, posterior, counts.fertility)
    if counted == MODEL4:
        placement_counts(links, placed, counts.head, counts.inner, moves, swaps, itself)
    for j in range(m):
        if posterior[j, n] > RARE:
            nulls[generated[j]] += posterior[j, n]
        for i in range(n):
            if posterior[j, i] > RARE:
                if entries[j, i] < len(counts.t):
                    add_count(counts.t, entries[j, i], posterior[j, i])
                row = distortion_row(i, m, counts.inner.shape[1] - 1)
                add_count(counts.distortion, row + j, posterior[j, i])
