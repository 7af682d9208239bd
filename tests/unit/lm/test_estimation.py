"""Modified Kneser-Ney against an exact implementation, against the output of lmplz, and read by KenLM."""

import math
import shutil
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

import kenlm
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rnnsmt.base.errors import InputError
from rnnsmt.base.reading import read_lines
from rnnsmt.lm.columns import Workspace
from rnnsmt.lm.counts import count_ngrams
from rnnsmt.lm.estimation import FALLBACK, estimate, estimate_discounts, run_lmplz, smooth
from rnnsmt.lm.queries import load_kenlm
from rnnsmt.lm.text import LmVocabulary

from .kneser_ney_twin import Twin

Arpa = dict[tuple[str, ...], tuple[float, float | None]]

CORPUS = """the cat sat on the mat
the dog sat on the cat
a cat and a dog sat
the mat and the dog

a dog
the cat sat on a dog and the dog sat on the mat and the cat"""


def read_arpa(path: Path) -> Arpa:
    """Read an ARPA file slowly, without the code of ``rnnsmt.lm``."""
    model: Arpa = {}
    announced, found, order = {}, {}, 0
    lines = read_lines(path)
    assert next(lines) == "\\data\\"
    for text in lines:
        if text.startswith("ngram "):
            k, number = text[6:].split("=")
            announced[int(k)] = int(number)
        elif text.endswith("-grams:"):
            order = int(text[1:-7])
            found[order] = 0
        elif text and not text.startswith("\\"):
            fields = text.split("\t")
            ngram = tuple(fields[1].split(" "))
            assert len(ngram) == order
            assert ngram not in model
            model[ngram] = (float(fields[0]), float(fields[2]) if len(fields) > 2 else None)
            found[order] += 1
    assert announced == found
    return model


def assert_equals_twin(model: Arpa, twin: Twin) -> None:
    assert set(model) == twin.kept
    for ngram, (log10, backoff) in model.items():
        expected = math.log10(twin.probability(ngram)) if ngram != ("<s>",) else 0.0
        assert log10 == pytest.approx(expected, abs=2e-6), ngram
        if len(ngram) == twin.order:
            assert backoff is None
        else:
            gamma = twin.backoff(ngram)
            assert backoff == pytest.approx(math.log10(gamma) if gamma else -99, abs=2e-6), ngram


def build(
    directory: Path, text: str, order: int, vocabulary: list[str] | None = None, prune: Sequence[int] = ()
) -> Path:
    source, arpa = directory / "text", directory / "lm.arpa"
    source.write_text(text, "utf-8")
    estimate([source], order, arpa, vocabulary=vocabulary, prune=prune)
    return arpa


def test_unigram_model_by_hand(tmp_path: Path) -> None:
    # a 3, b 1, </s> 2: Y = 1/3, D1 = 1/3, D2 = 1, D3 = 3; 6 events, 13/3 discounted, shared by a, b, </s>, <unk>
    model = read_arpa(build(tmp_path, "a a b\na\n", 1))
    uniform = Fraction(13, 3) / 6 / 4
    expected = {"a": Fraction(0), "b": Fraction(2, 3) / 6, "</s>": Fraction(1) / 6, "<unk>": Fraction(0)}
    for word, share in expected.items():
        assert model[(word,)][0] == pytest.approx(math.log10(share + uniform), abs=1e-6)
    assert model[("<s>",)][0] == 0


def test_discounts_by_hand() -> None:
    # n1..n4 = 10, 4, 2, 1: Y = 10/18; D1 = 1 - 2Y 4/10, D2 = 2 - 3Y 2/4, D3 = 3 - 4Y 1/2
    found = estimate_discounts(np.array([0, 10, 4, 2, 1]))
    assert not found.fallback
    assert found.values == pytest.approx((1 - 0.8 * 10 / 18, 2 - 1.5 * 10 / 18, 3 - 2 * 10 / 18))


@pytest.mark.parametrize("counts", [[0, 0, 4, 2, 1], [0, 10, 0, 2, 1], [0, 10, 4, 0, 1], [0, 10, 9, 1, 40], [0] * 5])
def test_discounts_that_cannot_be_estimated_fall_back(counts: list[int]) -> None:
    found = estimate_discounts(np.array(counts))
    assert found.fallback
    assert found.values == FALLBACK


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_small_corpus_equals_the_twin(tmp_path: Path, order: int) -> None:
    model = read_arpa(build(tmp_path, CORPUS + "\n", order))
    assert_equals_twin(model, Twin([line.split() for line in CORPUS.split("\n")], order))


def test_estimated_discounts_equal_the_twin(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    sentences = [[f"w{w}" for w in rng.zipf(1.4, rng.integers(1, 9)) if w < 2000] for _ in range(600)]
    twin = Twin(sentences, 3)
    assert all(values != FALLBACK for values in twin.discounts[:2])
    model = read_arpa(build(tmp_path, "".join(" ".join(s) + "\n" for s in sentences), 3))
    assert_equals_twin(model, twin)


def test_closed_vocabulary_counts_other_words_as_unknown(tmp_path: Path) -> None:
    vocabulary = ["the", "cat", "dog", "absent"]
    model = read_arpa(build(tmp_path, CORPUS + "\n", 3, vocabulary))
    twin = Twin([line.split() for line in CORPUS.split("\n")], 3, set(vocabulary))
    assert ("absent",) in model
    assert ("<unk>", "the", "<unk>") in model
    assert_equals_twin(model, twin)


sentences = st.lists(st.lists(st.sampled_from(["a", "b", "c", "é", "d"]), max_size=7), min_size=1, max_size=12)


@example(text=[["a"]], order=5, steps=[], disk=False)
@example(text=[["a"]], order=5, steps=[], disk=True)
@example(text=[["a"]], order=5, steps=[1, 0, 0, 0, 0], disk=False)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=sentences.filter(any),
    order=st.integers(1, 5),
    steps=st.just([]) | st.lists(st.integers(0, 2), min_size=5, max_size=5),
    disk=st.booleans(),
)
def test_any_corpus_equals_the_twin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: list[list[str]], order: int, steps: list[int], disk: bool
) -> None:
    """Models of random texts equal the exact implementation.

    steps: differences between the pruning thresholds of successive orders; empty: no pruning.
    """
    source = tmp_path / "text"
    source.write_text("".join(" ".join(s) + "\n" for s in text), "utf-8")
    monkeypatch.setattr("rnnsmt.lm.columns.LEAST", 3 if disk else 1 << 16)
    workspace = Workspace(1 if disk else 1 << 30, tmp_path)
    counts = count_ngrams([source], order, LmVocabulary(), workspace)
    assert workspace.on_disk is disk
    thresholds = list(accumulate(steps))[:order]
    model, _ = smooth(counts, workspace, thresholds or [0] * order)
    twin = Twin(text, order, thresholds=thresholds)
    names = counts.vocabulary.words()
    seen = 0
    for k, level in enumerate(model, 1):
        probability, backoff = level.probability.read(0, 1 << 30), level.backoff.read(0, 1 << 30)
        for i, row in enumerate(counts.words(k, 0, len(probability))):
            ngram = tuple(names[w] for w in row)
            assert not thresholds or bool(counts.orders[k - 1].kept(i, i + 1, thresholds[k - 1])[0]) is (
                ngram in twin.kept
            )
            if ngram not in twin.kept:
                continue
            if ngram != ("<s>",):
                assert probability[i] == pytest.approx(float(twin.probability(ngram)), rel=1e-5)
            if k < order:
                assert backoff[i] == pytest.approx(float(twin.backoff(ngram)), rel=1e-5, abs=1e-7)
            seen += 1
    assert seen == len(twin.kept)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("prune", [[], [0, 0, 1], [0, 1], [1, 2]])
def test_probabilities_sum_to_one_in_kenlm(tmp_path: Path, closed: bool, prune: list[int]) -> None:
    vocabulary = ["the", "cat", "dog", "sat"] if closed else None
    arpa = build(tmp_path, CORPUS + "\n", 3, vocabulary, prune)
    model = load_kenlm(arpa)
    words = [ngram[0] for ngram in read_arpa(arpa) if len(ngram) == 1 and ngram != ("<s>",)]
    for context in [[], ["the"], ["the", "cat"], ["mat", "dog"], ["nowhere"], ["dog", "nowhere", "sat"]]:
        for begin in (True, False):
            state = kenlm.State()
            (model.BeginSentenceWrite if begin else model.NullContextWrite)(state)
            for word in context:
                after = kenlm.State()
                model.BaseScore(state, word, after)
                state = after
            total = sum(10 ** model.BaseScore(state, word, kenlm.State()) for word in words)
            assert total == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("prune", [[0, 0, 1], [0, 1, 1, 2], [1], [0]])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_pruned_model_equals_the_twin(tmp_path: Path, prune: list[int], order: int) -> None:
    prune = prune[:order]
    thresholds = [*prune, *[prune[-1]] * (order - len(prune))]
    model = read_arpa(build(tmp_path, CORPUS + "\n", order, prune=prune))
    assert_equals_twin(model, Twin([line.split() for line in CORPUS.split("\n")], order, thresholds=thresholds))


def test_pruning_by_hand(tmp_path: Path) -> None:
    # n1, n2, n3 = 2, 2, 1: Y = 1/3, D1 = 1/3, D2 = 3/2. After a: b twice, c once; "a c" goes: gamma(a) = (3/2 + 1) / 3
    text = "a b\na b\na c\n"
    whole = read_arpa(build(tmp_path, text, 2))
    pruned = read_arpa(build(tmp_path, text, 2, prune=[0, 1]))
    assert set(whole) - set(pruned) == {("a", "c"), ("c", "</s>")}
    assert whole[("a",)][1] == pytest.approx(math.log10((3 / 2 + 1 / 3) / 3), abs=1e-6)
    assert pruned[("a",)][1] == pytest.approx(math.log10(2.5 / 3), abs=1e-6)
    assert pruned[("c",)][1] == 0
    assert all(pruned[word][0] == whole[word][0] for word in pruned if len(word) == 1)
    expected = 0.5 / 3 + 2.5 / 3 * 10 ** whole[("b",)][0]
    assert pruned[("a", "b")][0] == pytest.approx(math.log10(expected), abs=1e-6)


def test_thresholds_of_0_prune_nothing(tmp_path: Path) -> None:
    whole = build(tmp_path, CORPUS + "\n", 4).read_bytes()
    assert build(tmp_path, CORPUS + "\n", 4, prune=[0]).read_bytes() == whole


@pytest.mark.parametrize(
    ("prune", "wrong"),
    [([0, 1, 0], "thresholds must not decrease"), ([0, 0, 0, 1], "4 thresholds for a model of order 3")],
)
def test_thresholds_that_do_not_fit_are_refused(tmp_path: Path, prune: list[int], wrong: str) -> None:
    with pytest.raises(InputError, match=f"--prune {' '.join(map(str, prune))}: {wrong}"):
        build(tmp_path, CORPUS, 3, prune=prune)


def test_writing_some_words_only_keeps_the_probabilities(tmp_path: Path) -> None:
    source = tmp_path / "text"
    source.write_text(CORPUS + "\n", "utf-8")
    estimate([source], 4, tmp_path / "all.arpa")
    estimate([source], 4, tmp_path / "some.arpa", only=["the", "cat", "sat"])
    whole, some = read_arpa(tmp_path / "all.arpa"), read_arpa(tmp_path / "some.arpa")
    wanted = {"the", "cat", "sat", "<s>", "</s>", "<unk>"}
    assert some == {ngram: value for ngram, value in whole.items() if wanted.issuperset(ngram)}
    line = "the cat sat the cat"
    assert load_kenlm(tmp_path / "some.arpa").score(line) == load_kenlm(tmp_path / "all.arpa").score(line)


def test_threads_memory_and_reruns_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    source = tmp_path / "text"
    source.write_text("".join(" ".join(f"w{w % 500}" for w in rng.zipf(1.3, 9)) + "\n" for _ in range(9000)), "utf-8")
    estimate([source], 5, tmp_path / "a.gz")
    monkeypatch.setattr("rnnsmt.lm.columns.LEAST", 1 << 12)
    figures = estimate([source], 5, tmp_path / "b.gz", threads=2, memory_mb=1)
    # 16 MB are always allowed: 9,000 lines of 11 tokens need about 14 MB at order 5
    assert figures["on disk"] == "no"
    figures = estimate([source, source], 5, tmp_path / "c.gz", memory_mb=1)
    assert figures["on disk"] == "yes"
    estimate([source, source], 5, tmp_path / "d.gz")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert (tmp_path / "c.gz").read_bytes() == (tmp_path / "d.gz").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.gz", "b.gz", "c.gz", "d.gz", "text"]


def flat_arpa(path: Path) -> dict[str, tuple[float, float]]:
    """Return the values of an ARPA file by n-gram; faster than ``read_arpa``, without checks."""
    rows = (line.split("\t") for line in read_lines(path) if "\t" in line)
    return {row[1]: (float(row[0]), float(row[2]) if len(row) > 2 else 0.0) for row in rows}


def test_equals_lmplz_on_multi30k(tmp_path: Path, moses_fixture: Path, multi30k_tok: Path) -> None:
    expected = flat_arpa(moses_fixture / "lm.arpa.xz")
    figures = estimate([multi30k_tok / "train.fr.xz"], 5, tmp_path / "lm.arpa")
    found = flat_arpa(tmp_path / "lm.arpa")
    assert figures["n-grams"] == "11222/74209/166096/243085/283764"
    assert "before pruning" not in figures
    assert found.keys() == expected.keys()
    assert max(max(abs(found[g][0] - p), abs(found[g][1] - b)) for g, (p, b) in expected.items()) < 2e-6


def test_pruned_equals_lmplz(tmp_path: Path, multi30k_tok: Path) -> None:
    lmplz = shutil.which("lmplz")
    if lmplz is None:
        pytest.skip("lmplz is not on PATH")
    for prune in ([0, 0, 1], [0, 1, 1, 2], [1]):
        estimate([multi30k_tok / "train.fr.xz"], 5, tmp_path / "lm.arpa", prune=prune)
        run_lmplz(lmplz, [multi30k_tok / "train.fr.xz"], 5, tmp_path / "lmplz.arpa", 2000, prune)
        found, expected = flat_arpa(tmp_path / "lm.arpa"), flat_arpa(tmp_path / "lmplz.arpa")
        assert found.keys() == expected.keys()
        assert max(max(abs(found[g][0] - p), abs(found[g][1] - b)) for g, (p, b) in expected.items()) < 2e-6
