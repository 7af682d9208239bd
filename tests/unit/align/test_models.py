"""The alignment models: against enumeration of all alignments, by hand, and on small corpora with a known answer."""

import random
from itertools import pairwise, product
from math import comb, exp, log

import numpy as np
import pytest
from scipy.special import digamma as scipy_digamma

from rnnsmt.align import hmm, model4
from rnnsmt.align.bitext import Bitext, read_bitext
from rnnsmt.align.directions import align_both_directions
from rnnsmt.align.kernels import fast_align as fast_align_kernels
from rnnsmt.align.kernels.hmm import forward_backward, transitions
from rnnsmt.align.kernels.lexicon import digamma, find
from rnnsmt.align.kernels.model4 import MAX_FERTILITY, neighbourhood, null_score, placement
from rnnsmt.align.lexicon import build_lexicon
from rnnsmt.align.pharaoh import to_lists
from rnnsmt.align.word_classes import word_classes


def bitext_of(folder, source: list[str], target: list[str]) -> Bitext:
    (folder / "s").write_text("".join(line + "\n" for line in source))
    (folder / "t").write_text("".join(line + "\n" for line in target))
    return read_bitext(folder / "s", folder / "t")


def toy(pairs: int = 300, seed: int = 1) -> tuple[list[str], list[str]]:
    """Word-by-word translation e5 -> f5; every adjective (even number) changes places with the noun behind it."""
    draw = random.Random(seed)
    source, target = [], []
    for _ in range(pairs):
        words = []
        for _ in range(draw.randint(1, 5)):
            if draw.random() < 0.5:
                words.append(2 * draw.randint(0, 9))
            words.append(2 * draw.randint(0, 9) + 1)
        order = list(range(len(words)))
        for k in range(len(words) - 1):
            if words[k] % 2 == 0:
                order[k], order[k + 1] = order[k + 1], order[k]
        source.append(" ".join(f"e{word}" for word in words))
        target.append(" ".join(f"f{words[k]}" for k in order))
    return source, target


def right_links(source: str, target: str) -> set[tuple[int, int]]:
    left, right = source.split(), target.split()
    return {(i, j) for i, e in enumerate(left) for j, f in enumerate(right) if e[1:] == f[1:]}


# --- lexicon --------------------------------------------------------------------------------------------------------


def test_lexicon_holds_the_pairs_of_the_corpus(tmp_path):
    bitext = bitext_of(tmp_path, ["a b", "", "b c b", "d"], ["x", "y", "y z y", ""])
    lexicon = build_lexicon(bitext.source, bitext.target)
    source, target = bitext.source.vocabulary, bitext.target.vocabulary
    rows = {
        e: [target[f] for f in lexicon.words[lexicon.starts[k] : lexicon.starts[k + 1]]] for k, e in enumerate(source)
    }
    assert rows == {"a": ["x"], "b": ["x", "y", "z"], "c": ["y", "z"], "d": []}
    b, z = source.index("b"), target.index("z")
    assert find(lexicon.starts, lexicon.words, b, z) == lexicon.starts[b] + 2


@pytest.mark.parametrize("x", [0.01, 0.3, 1.0, 5.9, 6.0, 42.0, 1e6])
def test_digamma(x):
    assert digamma(x) == pytest.approx(scipy_digamma(x), rel=1e-10, abs=1e-10)


# --- fast_align -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("j", "m", "n"), [(1, 1, 1), (1, 5, 4), (5, 5, 4), (3, 7, 9), (9, 9, 9), (2, 3, 40)])
def test_closed_form_of_the_diagonal_prior(j, m, n):
    features = [-abs(i / n - j / m) for i in range(1, n + 1)]
    prior = np.empty(n)
    assert fast_align_kernels.diagonal_prior(j, m, n, 3.5, prior) == pytest.approx(prior.sum())
    assert prior == pytest.approx(np.exp(3.5 * np.array(features)))
    z, derivative = fast_align_kernels._series(j, m, n, 3.5)
    assert z == pytest.approx(sum(exp(3.5 * feature) for feature in features))
    assert derivative == pytest.approx(sum(feature * exp(3.5 * feature) for feature in features))


# --- HMM ------------------------------------------------------------------------------------------------------------


def test_transitions_are_distributions():
    jumps, first = np.array([[1.0, 2, 3, 4, 5], [5.0, 1, 1, 1, 1]]), np.array([3.0, 1.0])
    step, begin = np.empty((4, 4)), np.empty(4)
    transitions(np.array([0, 1, 0, 1]), jumps, first, 0.1, 0.2, step, begin)
    assert step.sum(1) == pytest.approx(0.9)
    assert begin.sum() == pytest.approx(0.9)
    # from position 0, class 0: jumps 0, 1, 2 and 3 (counts as 2) weigh 3, 4, 5, 5
    assert step[0] == pytest.approx([0.9 * (0.8 * weight / 17 + 0.05) for weight in (3, 4, 5, 5)])
    assert begin == pytest.approx([0.9 * (0.8 * weight / 6 + 0.05) for weight in (3, 1, 1, 1)])


@pytest.mark.parametrize(("words", "length"), [(1, 1), (1, 3), (4, 1), (3, 2), (4, 3)])
def test_forward_backward_equals_enumeration(words, length):
    draw = np.random.default_rng(words * 10 + length)
    emission, null = draw.random((words, length)), draw.random(words) * 0.2
    step, begin = draw.random((length, length)), draw.random(length)
    total, posterior, moves = 0.0, np.zeros((words, length)), np.zeros((length, length))
    for links in product(range(-1, length), repeat=words):
        probability, last, used = 1.0, -1, []
        for j, i in enumerate(links):
            if i < 0:
                probability *= null[j]
                continue
            probability *= (begin[i] if last < 0 else step[last, i]) * emission[j, i]
            used += [(last, i)] if last >= 0 else []
            last = i
        total += probability
        for j, i in enumerate(links):
            if i >= 0:
                posterior[j, i] += probability
        for before, after in used:
            moves[before, after] += probability
    ours, our_moves = np.empty((words, length)), np.empty((length, length))
    alpha, beta = np.empty((words, length + 1)), np.empty((words, length + 1))
    likelihood = forward_backward(emission, null, step, begin, alpha, beta, ours, our_moves)
    assert likelihood == pytest.approx(log(total))
    assert ours == pytest.approx(posterior / total)
    assert our_moves == pytest.approx(moves / total)


def test_every_hmm_iteration_raises_the_likelihood(tmp_path):
    bitext = bitext_of(tmp_path, *toy())
    side = bitext.source
    model = hmm.train_hmm(side, bitext.target, build_lexicon(side, bitext.target), word_classes(side, 4))
    assert len(model.log_likelihoods) == hmm.ITERATIONS + 1
    assert np.all(np.diff(model.log_likelihoods) > -1e-6)


# --- Model 4 --------------------------------------------------------------------------------------------------------


def slow_score(links, lexical, fertility, given_classes, generated_classes, head, inner, p_null):
    """Model 4's log-probability from its definition."""
    words, length = lexical.shape[0], lexical.shape[1] - 1
    cepts = [[j for j in range(words) if links[j] == i] for i in range(length)]
    nulls = sum(1 for i in links if i == length)
    if 2 * nulls > words:
        return -1e9
    score = log(comb(words - nulls, nulls) * p_null**nulls * (1 - p_null) ** (words - 2 * nulls))
    score += sum(lexical[j, links[j]] for j in range(words))
    score += sum(fertility[i, min(len(cept), MAX_FERTILITY)] for i, cept in enumerate(cepts))
    centre, before, width = -1, head.shape[0] - 1, head.shape[2] // 2
    for i, cept in enumerate(cepts):
        for k, j in enumerate(cept):
            if k == 0:
                score += head[before, generated_classes[j], min(max(j - centre, -width), width) + width]
            else:
                score += inner[generated_classes[j], min(j - cept[k - 1], inner.shape[1] - 1)]
        if cept:
            centre, before = -(-sum(cept) // len(cept)), given_classes[i]
    return score


def random_sentence(seed: int):
    draw = np.random.default_rng(seed)
    length, words = draw.integers(1, 6), draw.integers(1, 7)
    lexical, fertility = np.log(draw.random((words, length + 1))), np.log(draw.random((length, MAX_FERTILITY + 1)))
    head, inner = np.log(draw.random((3, 2, 9))), np.log(draw.random((2, 4)))
    links = draw.integers(0, length, words)
    return links, lexical, fertility, draw.integers(0, 2, length), draw.integers(0, 2, words), head, inner, 0.1


@pytest.mark.parametrize("seed", range(25))
def test_best_neighbour_and_its_gain_equal_full_scores(seed):
    links, lexical, fertility, *classes, head, inner, p_null = random_sentence(seed)
    words, length = lexical.shape[0], lexical.shape[1] - 1
    rest = (lexical, fertility, *classes, head, inner, p_null)
    now = slow_score(links, *rest)
    neighbours = []
    for j in range(words):
        for i in range(length + 1):
            if i != links[j]:
                moved = links.copy()
                moved[j] = i
                neighbours.append(slow_score(moved, *rest) - now)
        for k in range(j + 1, words):
            if links[j] != links[k]:
                swapped = links.copy()
                swapped[[j, k]] = swapped[[k, j]]
                neighbours.append(slow_score(swapped, *rest) - now)
    fertilities = np.bincount(links, minlength=length + 1)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, words + 2)))])
    work = np.empty(length + 1, np.int64), np.empty(words, np.int64), np.zeros((1, 1, 1))
    posterior, allowed = np.empty((words, length + 1)), np.ones((words, length + 1), np.bool_)
    before = links.copy()
    best, j, *_ = neighbourhood(
        links, lexical, allowed, fertility, fertilities, *classes, head, inner, p_null, factorials, *work, posterior
    )
    assert (links == before).all()
    highest = max(neighbours, default=-1.0)
    if highest <= 1e-6:
        assert j == -1
    else:
        assert best == pytest.approx(highest)


def test_placement_counts_what_it_uses():
    head, inner = np.zeros((2, 1, 9)), np.zeros((1, 4))
    counts = np.zeros_like(head), np.zeros_like(inner)
    # cepts: word 0 -> 1, 3 (centre 2); word 1 -> 0; word 2 is NULL's
    links = np.array([1, 0, 2, 0])
    work = np.empty(3, np.int64), np.empty(4, np.int64)
    placement(links, np.zeros(2, np.int64), np.zeros(4, np.int64), head, inner, *work, *counts, 1.0)
    assert {tuple(k): counts[0][tuple(k)] for k in np.argwhere(counts[0])} == {(1, 0, 4 + 2): 1.0, (0, 0, 4 - 2): 1.0}
    assert counts[1].tolist() == [[0.0, 0.0, 1.0, 0.0]]


def test_null_score_by_hand():
    factorials = np.log([1, 1, 2, 6, 24, 120])
    assert null_score(1, 4, 0.1, factorials) == pytest.approx(log(3 * 0.1 * 0.9**2))
    assert null_score(0, 4, 0.1, factorials) == pytest.approx(4 * log(0.9))
    assert null_score(3, 4, 0.1, factorials) < -1e6


def test_model4_raises_the_probability_of_its_alignments(tmp_path):
    bitext = bitext_of(tmp_path, *toy())
    classes = word_classes(bitext.source, 4), word_classes(bitext.target, 4)
    lexicon = build_lexicon(bitext.source, bitext.target)
    found = model4.train_model4(bitext.source, bitext.target, lexicon, *classes).log_probabilities
    assert np.all(np.diff(found[1:]) > -1e-6)


# --- word classes ---------------------------------------------------------------------------------------------------


def class_likelihood(lines: list[list[str]], classes: dict[str, int]) -> float:
    """Class part of the log-likelihood of the class-bigram model, sentence boundaries in a class of their own."""
    pairs, singles = {}, {}
    for line in lines:
        text = [-1, *[classes[word] for word in line], -1]
        for a, b in pairwise(text):
            pairs[a, b] = pairs.get((a, b), 0) + 1
        for a in text[1:]:
            singles[a] = singles.get(a, 0) + 1
    return sum(n * log(n) for n in pairs.values()) - 2 * sum(n * log(n) for n in singles.values())


def test_no_single_exchange_raises_the_likelihood(tmp_path):
    source, _ = toy(120)
    lines = [line.split() for line in source]
    side = bitext_of(tmp_path, source, source).source
    found = word_classes(side, 3, passes=50)
    classes = dict(zip(side.vocabulary, found.tolist(), strict=True))
    best = class_likelihood(lines, classes)
    for word in side.vocabulary:
        for other in range(3):
            assert class_likelihood(lines, {**classes, word: other}) <= best + 1e-6
    assert len({classes[f"e{k}"] for k in range(0, 20, 2)} & {classes[f"e{k}"] for k in range(1, 20, 2)}) == 0


# --- all aligners ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("aligner", ["fast_align", "hmm", "model4"])
def test_finds_the_links_of_a_toy_language(tmp_path, aligner):
    source, target = toy()
    bitext = bitext_of(tmp_path, source, target)
    forward, reverse = align_both_directions(bitext, aligner)
    right = [right_links(*pair) for pair in zip(source, target, strict=True)]
    for links in (forward, reverse):
        assert all(link in wanted for found, wanted in zip(to_lists(links), right, strict=True) for link in found) or (
            sum(len(set(found) & wanted) for found, wanted in zip(to_lists(links), right, strict=True))
            > 0.97 * len(links.source)
        )
        assert len(links.source) > 0.9 * len(bitext.target.ids)


@pytest.mark.parametrize("aligner", ["fast_align", "hmm", "model4"])
def test_odd_sentences_and_threads(tmp_path, aligner):
    source, target = toy(60)
    source += ["", "e1", "", "new", " ".join(["e1 e3 e5"] * 40), " ".join(["e1"] * 300), "e1"]
    target += ["f1", "", "", "neuf", " ".join(["f1 f3 f5"] * 40), "f1 f3", " ".join(["f1"] * 300)]
    bitext = bitext_of(tmp_path, source, target)
    runs = [align_both_directions(bitext, aligner, threads) for threads in (1, 2)]
    for one, other in zip(*runs, strict=True):
        assert all((a == b).all() for a, b in zip(one, other, strict=True))
    forward, reverse = (to_lists(links) for links in runs[0])
    assert [forward[k] for k in (60, 61, 62)] == [[], [], []]
    assert forward[63] == reverse[63] == [(0, 0)]
    assert len(forward[64]) > 60
    assert all(len({j for _, j in line}) == len(line) for line in forward)
    assert all(len({i for i, _ in line}) == len(line) for line in reverse)
