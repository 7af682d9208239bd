"""Alignment models: against enumeration of all alignments, by hand, and on small corpora with a known alignment."""

import random
from itertools import pairwise, product
from math import comb, exp, factorial, log

import numpy as np
import pytest
from scipy.special import digamma as scipy_digamma

from rnnsmt.align import HMM_ITERATIONS, MODEL1_ITERATIONS, fast_align, hmm, model1, model4
from rnnsmt.align import direction as direction_module
from rnnsmt.align.bitext import Bitext, read_bitext
from rnnsmt.align.direction import Direction
from rnnsmt.align.distances import SMOOTHING, Cepts, PlacedPair, placement, placement_counts, placement_gains
from rnnsmt.align.hmm import forward_backward, path_score, transitions, viterbi
from rnnsmt.align.lexicon import FLOOR, build_bitmaps, build_lexicon, digamma, find, look_up, relative_frequencies
from rnnsmt.align.model4 import Tables, distortion_row
from rnnsmt.align.neighbours import MAX_FERTILITY, best_neighbour, neighbour_counts, neighbour_gains, null_score
from rnnsmt.align.training import align, train
from rnnsmt.align.word_classes import word_classes
from rnnsmt.base.kernels.numbers import ONE
from rnnsmt.formats.pharaoh import Links, to_lists


def bitext_of(directory, source: list[str], target: list[str]) -> Bitext:
    (directory / "s").write_text("".join(line + "\n" for line in source))
    (directory / "t").write_text("".join(line + "\n" for line in target))
    return read_bitext(directory / "s", directory / "t")


def toy(pairs: int = 300, seed: int = 1) -> tuple[list[str], list[str]]:
    """Return a bitext with translations e5 -> f5; every adjective (even number) changes places with the next noun."""
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


def both_directions(bitext: Bitext, aligner: str, **options) -> tuple[list[list[tuple[int, int]]], ...]:
    """Return the links of every sentence pair, forward and reverse."""
    found = []
    for direction in ("forward", "reverse"):
        blocks: list[Links] = list(align(bitext, aligner, direction, **options))
        found.append([line for links in blocks for line in to_lists(links)])
    return tuple(found)


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
    pairs = [(e, f) for e in "ab" for f in "x"] + [(e, f) for f in "yzy" for e in "bcb"]
    cells = Direction(bitext.source, bitext.target).corpus.places.cells
    found = [(e, target[lexicon.words[cell]]) for (e, _), cell in zip(pairs, cells, strict=True)]
    assert found == pairs
    b, z = source.index("b"), target.index("z")
    assert find(lexicon.starts, lexicon.words, b, z) == lexicon.starts[b] + 2
    assert find(lexicon.starts, lexicon.words, source.index("d"), z) == len(lexicon.words)


def test_weak_pairs_are_left_out(tmp_path, capsys):
    """Word pairs with the lowest association n(e, f)^2 / (n(e) n(f)) are discarded above ``max_pairs``."""
    bitext = bitext_of(tmp_path, ["a", "a c", "c"], ["x y", "y", "y z"])
    source, target = bitext.source.vocabulary, bitext.target.vocabulary
    # n(e, f)^2 / (n(e) n(f)): a-x 1/2, a-y 4/6, c-y 4/6, c-z 1/2
    for most, kept in ((4, {"ax", "ay", "cy", "cz"}), (3, {"ay", "cy"}), (2, {"ay", "cy"}), (1, set())):
        lexicon = build_lexicon(bitext.source, bitext.target, max_pairs=most)
        rows = enumerate(np.split(lexicon.words, lexicon.starts[1:-1]))
        assert {source[e] + target[f] for e, row in rows for f in row} == kept
        assert ("4 word pairs co-occur; the" in capsys.readouterr().err) == (most < 4)


@pytest.mark.parametrize("aligner", ["fast_align", "model4"])
@pytest.mark.parametrize(("room", "bitmaps"), [(0, 0), (12, 3)])
def test_links_do_not_depend_on_the_word_pairs_in_memory(tmp_path, monkeypatch, aligner, room, bitmaps):
    bitext = bitext_of(tmp_path, *toy(60))
    monkeypatch.setattr(direction_module, "_LEAST_BLOCK", 7)  # several blocks
    right = both_directions(bitext, aligner)
    monkeypatch.setattr(direction_module, "CELLS", room)
    places = Direction(bitext.source, bitext.target).corpus.places
    assert (len(places.cells), np.count_nonzero(places.bitmaps >= 0)) == (0, bitmaps)
    assert both_directions(bitext, aligner) == right


def test_bitmaps_find_the_pairs_of_the_lexicon(tmp_path):
    """Several elements of 64 bits, whose first and last bits are set or not; the rarest given words have no bitmap."""
    rng = np.random.default_rng(1)
    source = [" ".join(f"e{x}" for x in rng.integers(0, 20, 6)) for _ in range(100)]
    target = [" ".join(f"f{x}" for x in rng.integers(0, 300, 9)) for _ in range(100)]
    given, generated = bitext_of(tmp_path, source, target)
    lexicon = build_lexicon(given, generated)
    width = -(-len(generated.vocabulary) // 64)
    places = build_bitmaps(lexicon, given, generated, 16 * width * 12)
    assert np.count_nonzero(places.bitmaps >= 0) == 12
    words, entries = np.arange(len(given.vocabulary), dtype=np.int32), np.zeros(len(given.vocabulary), np.int64)
    found = []
    for f in range(len(generated.vocabulary)):
        look_up(*lexicon, places, 0, words, f, entries)
        found.append([find(*lexicon, e, f) for e in words])
        assert entries.tolist() == found[-1]
    assert {*np.ravel(found)} == {*range(len(lexicon.words) + 1)}


@pytest.mark.parametrize("aligner", ["fast_align", "hmm", "model4"])
def test_links_without_most_pairs(tmp_path, aligner):
    """More than 90 % of the right links are found with half of the word pairs."""
    source, target = toy()
    bitext = bitext_of(tmp_path, source, target)
    pairs = len(build_lexicon(bitext.source, bitext.target).words)
    found = both_directions(bitext, aligner, max_pairs=pairs // 2)[0]
    right = [right_links(*pair) for pair in zip(source, target, strict=True)]
    assert sum(len(set(line) & wanted) for line, wanted in zip(found, right, strict=True)) > 0.9 * len(
        bitext.target.ids
    )


@pytest.mark.parametrize("x", [0.01, 0.3, 1.0, 5.9, 6.0, 42.0, 1e6])
def test_digamma(x):
    assert digamma(x) == pytest.approx(scipy_digamma(x), rel=1e-10, abs=1e-10)


def test_relative_frequencies_by_hand():
    t = np.empty(6)
    relative_frequencies(np.array([0, 3, 3, 5, 6]), np.array([3.0, 1.0, 0.0, 0.0, 0.0, 2.0]), t)
    assert t == pytest.approx([0.75, 0.25, FLOOR, 0.5, 0.5, 1.0])


# --- Model 1 --------------------------------------------------------------------------------------------------------


def test_model1_equals_a_slow_one(tmp_path):
    source, target = ["a b", "b", "a c b", ""], ["x y", "y y", "z x", "y"]
    bitext = bitext_of(tmp_path, source, target)
    lexicon = build_lexicon(bitext.source, bitext.target)
    pairs = [(["NULL", *e.split()], f.split()) for e, f in zip(source, target, strict=True) if e]
    t = {(e, f): 1 / 3 for given, generated in pairs for e in given for f in generated}
    for _ in range(MODEL1_ITERATIONS):
        counts = dict.fromkeys(t, 0.0)
        for given, generated in pairs:
            for f in generated:
                for e in given:
                    counts[e, f] += t[e, f] / sum(t[other, f] for other in given)
        totals = {e: sum(count for (other, _), count in counts.items() if other == e) for e, _ in t}
        t = {(e, f): counts[e, f] / totals[e] for e, f in t}
    direction = Direction(bitext.source, bitext.target)
    found = model1.begin(direction)
    assert len(list(model1.iterate(direction, found, 0))) == MODEL1_ITERATIONS
    for k, e in enumerate(bitext.source.vocabulary):
        for cell in range(lexicon.starts[k], lexicon.starts[k + 1]):
            assert found["t"][cell] == pytest.approx(t[e, bitext.target.vocabulary[lexicon.words[cell]]])
    assert found["t_null"] == pytest.approx([t["NULL", f] for f in bitext.target.vocabulary])


# --- fast_align -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("j", "m", "n"), [(1, 1, 1), (1, 5, 4), (5, 5, 4), (3, 7, 9), (9, 9, 9), (2, 3, 40)])
def test_closed_form_of_the_diagonal_prior(j, m, n):
    features = [-abs(i / n - j / m) for i in range(1, n + 1)]
    prior = np.empty(n)
    assert fast_align.diagonal_prior(j, m, n, 3.5, prior) == pytest.approx(prior.sum())
    assert prior == pytest.approx(np.exp(3.5 * np.array(features)))
    z, derivative = fast_align._series(j, m, n, 3.5)
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
    found = train(Direction(bitext.source, bitext.target), hmm.ALIGNER)["log_likelihoods"]
    assert len(found) == HMM_ITERATIONS + 1
    # the first iteration has another probability of NULL; lexical probabilities have seven digits
    assert np.all(np.diff(found[1:]) > -1e-6 * abs(found[-1]))


@pytest.mark.parametrize(("words", "length"), [(1, 1), (1, 3), (4, 1), (3, 2), (4, 3)])
def test_viterbi_finds_the_best_of_all_paths(words, length):
    for seed in range(10):
        draw = np.random.default_rng(100 * seed + words * 10 + length)
        emission, t_null = draw.random((words, length)), draw.random(words)
        step, begin, p_null = draw.random((length, length)), draw.random(length), 0.3
        lexical = np.log(np.column_stack([emission, t_null]))
        logs = np.log(step), np.log(begin), log(p_null)
        scores = {}
        for path in product(range(length + 1), repeat=words):
            score, last = 0.0, None
            for j, i in enumerate(path):
                move = p_null if i == length else begin[i] if last is None else step[last, i]
                score += log(move * (t_null[j] if i == length else emission[j, i]))
                last = last if i == length else i
            scores[path] = score
            assert path_score(np.array(path), lexical, *logs) == pytest.approx(score)
        links = np.empty(words, np.int64)
        best, back = np.empty((2, length + 1)), np.empty((words, length + 1), np.int64)
        viterbi(emission, p_null * t_null, step, begin, best, back, links)
        assert tuple(links.tolist()) == max(scores, key=scores.get)


# --- Models 3 and 4 -------------------------------------------------------------------------------------------------


class Sentence:
    """Sentence pair with random parameters; log-probabilities of Models 3 and 4 computed from their definitions."""

    def __init__(self, seed: int):
        draw = np.random.default_rng(seed)
        self.length, self.words = int(draw.integers(1, 5)), int(draw.integers(1, 7))
        self.t = draw.random((self.words, self.length + 1))
        self.distortion = draw.random((self.words, self.length))
        self.fertility = draw.random((self.length, MAX_FERTILITY + 1))
        self.head, self.inner = draw.random((3, 2, 13)), draw.random((2, 7))
        self.given_classes, self.generated_classes = draw.integers(0, 2, self.length), draw.integers(0, 2, self.words)
        self.p_null = 0.1
        while True:
            self.links = draw.integers(0, self.length + 1, self.words)
            if 2 * np.count_nonzero(self.links == self.length) <= self.words:
                break

    def cepts(self, links):
        return [[j for j in range(self.words) if links[j] == i] for i in range(self.length)]

    def shared(self, links) -> float:
        nulls = np.count_nonzero(links == self.length)
        if 2 * nulls > self.words:
            return -np.inf
        p = comb(self.words - nulls, nulls) * self.p_null**nulls * (1 - self.p_null) ** (self.words - 2 * nulls)
        score = log(p) + sum(log(self.t[j, links[j]]) for j in range(self.words))
        return score + sum(log(self.fertility[i, len(cept)]) for i, cept in enumerate(self.cepts(links)))

    def model3(self, links) -> float:
        score = self.shared(links) + sum(log(factorial(len(cept))) for cept in self.cepts(links))
        return score + sum(log(self.distortion[j, i]) for j, i in enumerate(links) if i < self.length)

    def distances(self, links):
        """Return the index of every head distance that the alignment uses, and of every distance inside a cept."""
        heads, inners, centre, before = [], [], -1, 2
        for i, cept in enumerate(self.cepts(links)):
            for k, j in enumerate(cept):
                if k == 0:
                    heads.append((before, self.generated_classes[j], j - centre + 6))
                else:
                    inners.append((self.generated_classes[j], j - cept[k - 1]))
            if cept:
                centre, before = -(-sum(cept) // len(cept)), self.given_classes[i]
        return heads, inners

    def model4(self, links) -> float:
        heads, inners = self.distances(links)
        score = self.shared(links)
        score += sum(log(SMOOTHING / (2 * self.words - 1) + (1 - SMOOTHING) * self.head[at]) for at in heads)
        return score + sum(log(SMOOTHING / (self.words - 1) + (1 - SMOOTHING) * self.inner[at]) for at in inners)

    def neighbours(self):
        """Yield every alignment that differs by one move or one swap."""
        for j in range(self.words):
            for i in range(self.length + 1):
                if i != self.links[j]:
                    moved = self.links.copy()
                    moved[j] = i
                    yield moved
            for k in range(j + 1, self.words):
                if self.links[j] != self.links[k]:
                    swapped = self.links.copy()
                    swapped[[j, k]] = swapped[[k, j]]
                    yield swapped

    def gains(self, model: int):
        """Compute the gains of the kernels: moves [J, I + 1] and swaps [J, J], in the order of ``neighbours``."""
        lexical, fertility = np.log(self.t), np.log(self.fertility)
        factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 20)))])
        if model == 3:
            lexical[:, : self.length] += np.log(self.distortion)
            fertility += factorials[: MAX_FERTILITY + 1]
        self.fertilities = np.bincount(self.links, minlength=self.length + 1)
        moves, swaps = np.empty_like(lexical), np.zeros((self.words, self.words))
        neighbour_gains(self.links, lexical, fertility, self.fertilities, self.p_null, factorials, moves, swaps)
        if model == 4:
            size = self.length + 1
            cepts = Cepts(*(np.empty(size, np.int64) for _ in range(3)), np.empty(size), np.empty(size))
            self.placed(placement_gains, cepts, moves, swaps)
        return moves, swaps

    def placed(self, kernel, *rest):
        """Call a kernel with the distance tables of Model 4."""
        work = np.empty(self.length + 1, np.int64), np.empty(self.words, np.int64)
        links, classes = self.links.copy(), (self.given_classes, self.generated_classes)
        kernel(self.links, PlacedPair(*classes, self.head, self.inner, *work), *rest)
        assert (self.links == links).all()


def in_order(moves, swaps) -> list[float]:
    """Return the gains from the kernels in the order of ``Sentence.neighbours``."""
    rows = [[*moves[j], *swaps[j, j + 1 :]] for j in range(len(moves))]
    return [value for row in rows for value in row if value > -np.inf]


@pytest.mark.parametrize("model", [3, 4])
@pytest.mark.parametrize("seed", range(25))
def test_gains_of_all_neighbours_equal_full_scores(seed, model):
    sentence = Sentence(seed)
    score = sentence.model3 if model == 3 else sentence.model4
    now = score(sentence.links)
    right = [score(links) - now for links in sentence.neighbours()]
    possible = [gain for gain in right if gain > -np.inf]
    found = sentence.gains(model)
    ours = in_order(*found)
    if model == 4:  # impossible neighbours are excluded
        assert ours == pytest.approx(possible)
    else:
        assert len(ours) == len(right)
        assert [gain for gain in ours if gain > -500] == pytest.approx(possible)
    if possible:
        assert best_neighbour(*found)[0] == pytest.approx(max(possible))
    if model == 4:
        work = np.empty(sentence.length + 1, np.int64), np.empty(sentence.words, np.int64)
        classes = sentence.given_classes, sentence.generated_classes
        nothing = np.zeros((1, 1, 1), np.int64)
        pair = PlacedPair(*classes, sentence.head, sentence.inner, *work)
        placed = placement(sentence.links, pair, nothing, nothing[0], 0.0)
        assert placed == pytest.approx(now - sentence.shared(sentence.links))


def test_gains_of_a_long_cept_do_not_underflow():
    """Compute gains by logarithms where the probability of the 199 distances of a cept is less than 1e-308."""
    words = 200
    rng = np.random.default_rng(1)
    links = np.zeros(words, np.int64)
    classes = rng.integers(0, 2, 2), rng.integers(0, 2, words)
    tables = np.zeros((3, 2, 2 * words + 1)), np.zeros((2, words + 1))
    pair = PlacedPair(*classes, *tables, np.empty(3, np.int64), np.empty(words, np.int64))
    cepts = Cepts(*(np.empty(3, np.int64) for _ in range(3)), np.empty(3), np.empty(3))
    moves, swaps = np.zeros((words, 3)), np.full((words, words), -np.inf)
    moves[:, 0] = -np.inf
    placement_gains(links, pair, cepts, moves, swaps)
    nothing = np.zeros((1, 1, 1), np.int64)
    now = placement(links, pair, nothing, nothing[0], 0.0)
    assert now < np.log(1e-308)
    for j, i in ((0, 1), (100, 1), (199, 2)):
        moved = links.copy()
        moved[j] = i
        expected = placement(moved, pair, nothing, nothing[0], 0.0) - now
        assert moves[j, i] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(25))
def test_counts_equal_enumeration_of_the_neighbourhood(seed):
    sentence = Sentence(seed)
    best = max(sentence.neighbours(), key=sentence.model4, default=sentence.links)
    while sentence.model4(best) > sentence.model4(sentence.links):
        sentence.links = best
        best = max(sentence.neighbours(), key=sentence.model4)
    everything = [sentence.links, *sentence.neighbours()]
    scores = np.exp([sentence.model4(links) - sentence.model4(sentence.links) for links in everything])
    posterior = np.zeros((sentence.words, sentence.length + 1))
    fertilities = np.zeros((sentence.length, MAX_FERTILITY + 1))
    head, inner = np.zeros_like(sentence.head), np.zeros_like(sentence.inner)
    for links, weight in zip(everything, scores / scores.sum(), strict=True):
        for j, i in enumerate(links):
            posterior[j, i] += weight
        for i, cept in enumerate(sentence.cepts(links)):
            fertilities[i, len(cept)] += weight
        heads, inners = sentence.distances(links)
        for at in heads:
            head[at] += weight
        for at in inners:
            inner[at] += weight
    moves, swaps = sentence.gains(4)
    ours = np.empty_like(posterior)
    our_fertilities, our_head, our_inner = (np.zeros(table.shape, np.int64) for table in (fertilities, head, inner))
    given = np.arange(sentence.length)
    itself = neighbour_counts(sentence.links, moves, swaps, given, sentence.fertilities, ours, our_fertilities)
    sentence.placed(placement_counts, our_head, our_inner, moves, swaps, itself)
    assert itself == pytest.approx(1 / scores.sum())
    counted = ((our_fertilities, fertilities), (our_head, head), (our_inner, inner))
    for found, right in ((ours, posterior), *[(table / ONE, right) for table, right in counted]):
        assert found == pytest.approx(right, abs=1e-3)  # rare neighbours are excluded


def test_placement_counts_what_it_uses():
    head, inner = np.zeros((2, 1, 9)), np.zeros((1, 5))
    counts = np.zeros(head.shape, np.int64), np.zeros(inner.shape, np.int64)
    # cepts: word 0 -> 1, 3 (centre 2); word 1 -> 0; word 2 is NULL's
    links = np.array([1, 0, 2, 0])
    work = np.empty(3, np.int64), np.empty(4, np.int64)
    placement(links, PlacedPair(np.zeros(2, np.int64), np.zeros(4, np.int64), head, inner, *work), *counts, 1.0)
    assert {tuple(k): counts[0][tuple(k)] for k in np.argwhere(counts[0])} == {(1, 0, 4 + 2): ONE, (0, 0, 4 - 2): ONE}
    assert counts[1].tolist() == [[0.0, 0.0, ONE, 0.0, 0.0]]


def test_null_score_by_hand():
    factorials = np.log([1, 1, 2, 6, 24, 120])
    assert null_score(1, 4, 0.1, factorials) == pytest.approx(log(3 * 0.1 * 0.9**2))
    assert null_score(0, 4, 0.1, factorials) == pytest.approx(4 * log(0.9))
    assert null_score(4, 4, 0.1, factorials) < null_score(3, 4, 0.1, factorials) < -500


def test_estimates_by_hand():
    """Estimates from counts equal values computed by hand: three source words, target sentences of one or two words."""
    fertility = np.zeros((3, MAX_FERTILITY + 1))
    fertility[0, :2] = 1.0, 3.0
    fertility[2, 2] = 5.0
    distortion = np.zeros(distortion_row(0, 3, 2))
    distortion[distortion_row(1, 2, 2) :] = 1.0, 3.0
    counted = (np.ones(3), np.array([2.0]), distortion, fertility, np.full((2, 1, 5), 2.0), np.zeros((1, 3)))
    counts = Tables(*[(ONE * table).astype(np.int64) for table in counted])
    found = Tables(t=None, t_null=None, **model4._maximisation(counts, np.array([2, 2, 1])))
    # the mean of two letters is 1/4, 3/4, and weighs four words
    assert found.fertility[0, :3] == pytest.approx([2 / 8, 6 / 8, 0], abs=1e-6)
    assert found.fertility[1, :3] == pytest.approx([1 / 4, 3 / 4, 0], abs=1e-6)
    assert found.fertility[2, :3] == pytest.approx([0, 0, 1], abs=1e-6)
    assert len(found.distortion) == 2 * 1 + 2 * 2  # p(0 | i, 1) for both positions, p(0 .. 1 | i, 2) for both
    assert found.distortion == pytest.approx([1, 1, 0.5, 0.5, 0.25, 0.75])
    assert found.head == pytest.approx(np.full((2, 1, 5), 0.2))
    assert found.inner == pytest.approx(np.zeros((1, 3)))


def test_every_pass_raises_the_probability_of_its_alignments(tmp_path):
    bitext = bitext_of(tmp_path, *toy())
    found = train(Direction(bitext.source, bitext.target), model4.ALIGNER)["log_probabilities"]
    assert len(found) == len(model4.PASSES)
    assert found[1] < found[2] < found[3]
    assert found[4] < found[5]


# --- word classes ---------------------------------------------------------------------------------------------------


def class_likelihood(lines: list[list[str]], classes: dict[str, int]) -> float:
    """Return the class part of the log-likelihood of the class-bigram model; sentence boundaries are a class."""
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
    right = [right_links(*pair) for pair in zip(source, target, strict=True)]
    for lines in both_directions(bitext, aligner):
        links = sum(map(len, lines))
        assert sum(len(set(found) & wanted) for found, wanted in zip(lines, right, strict=True)) > 0.97 * links
        assert links > 0.9 * len(bitext.target.ids)


@pytest.mark.parametrize("aligner", ["fast_align", "hmm", "model4"])
def test_odd_sentences_and_threads(tmp_path, monkeypatch, aligner):
    source, target = toy(60)
    source += ["", "e1", "", "new", " ".join(["e1 e3 e5"] * 40), " ".join(["e1"] * 300), "e1"]
    target += ["f1", "", "", "neuf", " ".join(["f1 f3 f5"] * 40), "f1 f3", " ".join(["f1"] * 300)]
    bitext = bitext_of(tmp_path, source, target)
    monkeypatch.setattr(direction_module, "_LEAST_BLOCK", 5)
    forward, reverse = both_directions(bitext, aligner)
    assert (forward, reverse) == both_directions(bitext, aligner, threads=3)
    assert [forward[k] for k in (60, 61, 62)] == [[], [], []]
    assert forward[63] == reverse[63] == [(0, 0)]
    assert len(forward[64]) > 60
    assert all(len({j for _, j in line}) == len(line) for line in forward)
    assert all(len({i for i, _ in line}) == len(line) for line in reverse)
