"""Detection of shifted lines: the position of shifts, and no false alarms."""

import lzma
import math
import random
from pathlib import Path

import pytest

from rnnsmt.corpus.shifted_lines import OFFSETS, ShiftedLines, shift_warnings, shifted_lines


def lengths(lines: int, seed: int, spread: float = 0.2) -> tuple[list[int], list[int]]:
    """Return log-normal lengths of sentences and of their translations, which are 10 % longer."""
    rng = random.Random(seed)
    source = [rng.gauss(4, 0.5) for _ in range(lines)]
    target = [math.exp(length + 0.1 + rng.gauss(0, spread)) for length in source]
    return [max(1, round(math.exp(length))) for length in source], [max(1, round(length)) for length in target]


def without(side: list[int], line: int) -> list[int]:
    """Remove a line, and repeat the last one."""
    return [*side[: line - 1], *side[line:], side[-1]]


@pytest.mark.parametrize("seed", range(5))
def test_a_missing_line(seed: int) -> None:
    source, target = lengths(1000, seed)
    assert shifted_lines(source, target) == []
    for sides, offset in (((source, without(target, 400)), -1), ((without(source, 400), target), 1)):
        (found,) = shifted_lines(*sides)
        assert found.offset == offset
        # a few lines off, where the lengths agree by chance
        assert abs(found.first - 400) < 10
        assert found.last >= 990
        assert found.fit > 0.85
        assert found.fit_as_given < 0.2


def test_a_range_in_the_middle_and_one_that_is_too_short() -> None:
    source, target = lengths(3000, 1)
    shifted = [*target[:1000], *target[1001:2001], 50, *target[2001:]]
    assert len(shifted) == 3000
    (found,) = shifted_lines(source, shifted)
    assert abs(found.first - 1001) < 10
    assert abs(found.last - 2001) < 10
    assert shifted_lines(source, [*target[:1000], *target[1001:1021], 50, *target[1021:]]) == []


def test_the_whole_text_and_both_directions() -> None:
    source, target = lengths(1200, 2)
    (found,) = shifted_lines(source[:-1], target[1:])
    assert (found.offset, found.last) == (-1, 1199)
    assert found.first <= 2  # the first line has no translation
    # a line is missing in the target at 300, and in the source at 800
    target, source = without(target, 300), without(without(source, 800), 800)
    first, second = shifted_lines(source, target)
    assert (first.offset, second.offset) == (-1, 1)
    assert max(abs(first.first - 300), abs(first.last - 799), abs(second.first - 800)) < 10


def test_silence_where_lengths_tell_nothing() -> None:
    source, target = lengths(1000, 3)
    other = lengths(1000, 4)[1]
    assert shifted_lines(source, other) == []
    order = sorted(range(1000), key=lambda i: (source[i], target[i]))
    assert shifted_lines([source[i] for i in order], without([target[i] for i in order], 400)) == []
    assert shifted_lines([20] * 1000, [22] * 1000) == []
    assert shifted_lines([], []) == []
    assert shifted_lines(source[:99], without(target[:99], 5)) == []
    assert shifted_lines([0] * 1000, target) == []


def test_empty_lines_are_no_evidence() -> None:
    source, target = lengths(1000, 5)
    gaps = [0 if i % 7 == 0 else length for i, length in enumerate(target)]
    assert shifted_lines(source, gaps) == []
    (found,) = shifted_lines(source, without(gaps, 500))
    assert abs(found.first - 500) < 15


def test_warning() -> None:
    found = list(shift_warnings([ShiftedLines(1200, 29000, offset, 0.9, -0.2) for offset in OFFSETS]))
    assert "lines 1,200 to 29,000 of the source fit the target better one line further up" in found[0]
    assert "further down (correlation of the lengths 0.90 instead of -0.20)" in found[1]


@pytest.mark.parametrize(("name", "tolerance"), [("train", 30), ("val", 15)])
def test_a_real_corpus(multi30k_tok: Path, name: str, tolerance: int) -> None:
    sides = []
    for lang in ("en", "fr"):
        with lzma.open(multi30k_tok / f"{name}.{lang}.xz", "rt", encoding="utf-8") as file:
            sides.append([len(line.strip()) for line in file])
    source, target = sides
    assert shifted_lines(source, target) == []
    rng = random.Random(name)
    for _ in range(5):
        line = rng.randrange(50, len(source) - 100)
        for changed, offset in (((source, without(target, line)), -1), ((without(source, line), target), 1)):
            (found,) = shifted_lines(*changed)
            assert found.offset == offset
            assert abs(found.first - line) < tolerance
            assert found.last >= len(source) - 20
