"""Significance pruning against scipy's Fisher test and counts from sets of sentences."""

import gzip
import math
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact, hypergeom

from rnnsmt.base.io import InputError
from rnnsmt.cli import main
from rnnsmt.phrases import significance
from rnnsmt.phrases.significance import EPSILON, negative_log_p, prune_table

Pair = tuple[str, str]

TEXT = (["a b c", "a b", "b a b", "d d", "e"], ["A B C", "A B", "B A B", "D D", "F"])
"""Five sentence pairs."""

TABLE = [
    ("a", "A"),
    ("a", "B"),
    ("a b", "A B"),
    ("b", "A"),
    ("c", "C"),
    ("d", "D"),
    ("d d", "D D"),
    ("e", "A"),
    ("e", "F"),
]


@pytest.mark.parametrize(
    ("joint", "source", "target", "total"),
    [
        *[
            (1, 1, 1, 29000),
            (1, 1, 7, 29000),
            (3, 5, 4, 29000),
            (2, 2, 2, 10),
            (0, 3, 4, 10),
            (5, 5, 5, 5),
            (8, 9, 9, 10),
        ],
        *[(900, 1000, 1100, 29000), (40, 1000, 1100, 29000), (10, 1000, 1100, 29000), (28000, 28500, 28400, 29000)],
    ],
)
def test_significance_is_that_of_scipy(joint: int, source: int, target: int, total: int) -> None:
    found = negative_log_p(joint, source, target, total)
    assert found == pytest.approx(-hypergeom.logsf(joint - 1, total, source, target), rel=1e-6, abs=1e-7)
    rest = total - source - target + joint
    p = fisher_exact([[joint, source - joint], [target - joint, rest]], alternative="greater")[1]
    if p > 0:
        assert found == pytest.approx(-math.log(p), rel=1e-6, abs=1e-7)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_significance_is_that_of_scipy(data: st.DataObject) -> None:
    total = data.draw(st.integers(1, 10_000_000))
    source, target = data.draw(st.integers(1, min(total, 3000))), data.draw(st.integers(1, min(total, 3000)))
    joint = data.draw(st.integers(max(0, source + target - total), min(source, target)))
    expected = -hypergeom.logsf(joint - 1, total, source, target)
    found = negative_log_p(joint, source, target, total)
    assert found >= 0
    if math.isfinite(expected):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("total", [1, 2, 29_000, 50_000_000])
def test_pairs_whose_phrases_occur_once_have_alpha(total: int) -> None:
    assert negative_log_p(1, 1, 1, total) == pytest.approx(math.log(total), abs=EPSILON / 1000)


def test_large_counts_neither_overflow_nor_end_early() -> None:
    assert negative_log_p(1_000_000, 1_100_000, 1_200_000, 40_000_000) > 1_000_000
    assert negative_log_p(1, 1_100_000, 1_200_000, 40_000_000) == 0
    assert negative_log_p(33_000, 1_100_000, 1_200_000, 40_000_000) == pytest.approx(math.log(2), abs=0.01)


def line(pair: Pair) -> str:
    return f"{pair[0]} ||| {pair[1]} ||| 0.5 0.25 0.125 1 ||| 0-0 ||| 4 2 1 |||"


def write(directory: Path, pairs: list[Pair], text: tuple[list[str], list[str]]) -> tuple[str, list[str], list[str]]:
    """Write a table with these pairs and the text; return the paths."""
    with gzip.open(directory / "table.gz", "wt") as out:
        out.writelines(line(pair) + "\n" for pair in pairs)
    for name, lines in zip(("source", "target"), text, strict=True):
        (directory / name).write_text("".join(sentence + "\n" for sentence in lines))
    return str(directory / "table.gz"), [str(directory / "source")], [str(directory / "target")]


def read_pairs(path: Path) -> list[Pair]:
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    pairs = [tuple(text.split(" ||| ")[:2]) for text in lines]
    assert lines == [line(pair) for pair in pairs]
    return pairs


def parts(sentence: str, longest: int) -> list[str]:
    words = sentence.split()
    return [" ".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, min(i + longest, len(words)) + 1)]


def holders(phrase: str, text: list[str]) -> set[int]:
    return {i for i, sentence in enumerate(text) if f" {phrase} " in f" {' '.join(sentence.split())} "}


def expected_significance(pair: Pair, text: tuple[list[str], list[str]]) -> float:
    source, target = holders(pair[0], text[0]), holders(pair[1], text[1])
    return -hypergeom.logsf(len(source & target) - 1, len(text[0]), len(source), len(target)) + 0.0


def test_what_the_thresholds_keep(tmp_path: Path) -> None:
    """Thresholds a-e and a+e differ in the pairs that occur once: c-C, d-D, d d-D D, e-F."""
    table, source, target = write(tmp_path, TABLE, TEXT)
    output = tmp_path / "out.gz"
    figures = prune_table(table, source, target, "a-e", str(output))
    alpha = [("c", "C"), ("d", "D"), ("d d", "D D"), ("e", "F")]
    common = [("a", "A"), ("a", "B"), ("a b", "A B"), ("b", "A")]  # p = 1/10, more significant than 1/5
    assert read_pairs(output) == sorted(common + alpha)
    assert figures == {
        "sentence pairs": 5,
        "minimum significance": round(math.log(5) - EPSILON, 4),
        "phrase pairs": 9,
        "phrase pairs whose phrases occur once": 4,
        "phrase pairs kept": 8,
        "source phrases": 7,
        "source phrases kept": 7,
        "phrase pairs not found in the text": 1,
    }
    figures = prune_table(table, source, target, "a+e", str(output))
    assert read_pairs(output) == common
    assert (figures["phrase pairs kept"], figures["source phrases kept"]) == (4, 3)
    assert prune_table(table, source, target, "0.0001", str(output))["phrase pairs kept"] == 8
    with pytest.raises(InputError, match=r"table.gz: no pair has a significance of 2.5; check that the table"):
        prune_table(table, source, target, "2.5", str(output))


def test_a_plus_e_removes_the_pairs_that_occur_once_beside_a_minus_e(tmp_path: Path) -> None:
    rng = random.Random(4)
    words = [f"w{n}" for n in range(40)]
    text = [[" ".join(rng.choices(words, range(40, 0, -1), k=rng.randint(0, 8))) for _ in range(200)] for _ in "st"]
    phrases = [sorted({phrase for sentence in side for phrase in parts(sentence, 3)}) for side in text]
    pairs = sorted({(rng.choice(phrases[0]), rng.choice(phrases[1])) for _ in range(30_000)})
    table, source, target = write(tmp_path, pairs, (text[0], text[1]))
    kept = {}
    for threshold in ("a-e", "a+e"):
        prune_table(table, source, target, threshold, str(tmp_path / "out.gz"))
        kept[threshold] = set(read_pairs(tmp_path / "out.gz"))
    counts = {pair: [holders(phrase, side) for phrase, side in zip(pair, text, strict=True)] for pair in pairs}
    once = {pair for pair, (s, t) in counts.items() if len(s) == len(t) == len(s & t) == 1}
    assert once
    assert kept["a+e"] < kept["a-e"]
    assert kept["a-e"] - kept["a+e"] == once


words = st.sampled_from(["a", "b", "c", "é"])
sentence = st.lists(words, max_size=6).map(" ".join)
phrase = st.lists(words, min_size=1, max_size=4).map(" ".join)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.lists(st.tuples(sentence, sentence), min_size=1, max_size=30),
    pairs=st.lists(st.tuples(phrase, phrase), min_size=1, max_size=30, unique=True),
    least=st.floats(0.01, 3),
    small=st.booleans(),
)
def test_any_table(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: list[Pair],
    pairs: list[Pair],
    least: float,
    small: bool,
) -> None:
    """Pruning equals the definition for any order of the table and any block size."""
    monkeypatch.setattr(significance, "LINES", 3 if small else 1000)
    monkeypatch.setattr(significance, "LEAST_TOKENS", 10 if small else 1 << 16)
    sides = [s for s, _ in text], [t for _, t in text]
    table, source, target = write(tmp_path, pairs, sides)
    expected = [expected_significance(pair, sides) for pair in pairs]
    if any(abs(value - least) < 1e-6 for value in expected):
        return
    kept = [value > least for value in expected]
    prune = lambda: prune_table(table, source, target, str(least), str(tmp_path / "out.gz"), memory_mb=0)  # noqa: E731
    if not any(kept):
        with pytest.raises(InputError, match="no pair has a significance"):
            prune()
        return
    prune()
    assert read_pairs(tmp_path / "out.gz") == [pair for pair, stays in zip(pairs, kept, strict=True) if stays]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda f: (f / "target").write_text("A\n"), "target ends after line 1, but .*source has more lines"),
        (lambda f: [(f / name).write_text("") for name in ("source", "target")], "source: contains no sentence pair"),
        (lambda f: (f / "table.gz").write_bytes(gzip.compress(b"a ||| A\n")), "table.gz, line 1: 2 field"),
        (lambda f: (f / "table.gz").write_bytes(gzip.compress(b"")), "table.gz: the table is empty"),
    ],
)
def test_bad_input_is_told(tmp_path: Path, spoil, sentence: str) -> None:
    table, source, target = write(tmp_path, TABLE, TEXT)
    spoil(tmp_path)
    with pytest.raises(InputError, match=sentence):
        prune_table(table, source, target, "a+e", str(tmp_path / "out.gz"))
    assert not (tmp_path / "out.gz").exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, source, target = write(tmp_path, TABLE, TEXT)
    given = ["phrases", "prune", "--phrase-table", table, "--source", *source, "--target", *target]
    outputs = [str(tmp_path / f"out{n}.gz") for n in (1, 2)]
    assert main([*given, "--threshold", "a-e", "--output", outputs[0]]) == 0
    assert main([*given, "--threshold", "a-e", "--output", outputs[1], "--threads", "2", "--memory-mb", "1"]) == 0
    assert Path(outputs[0]).read_bytes() == Path(outputs[1]).read_bytes()
    for wrong in ("0", "-1", "nan", "a"):
        with pytest.raises(SystemExit):
            main([*given, f"--threshold={wrong}", "--output", outputs[0]])
