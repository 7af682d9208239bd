"""Pairs of another table added to a phrase table and its reordering table: lines by hand, and invalid input."""

import gzip
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rnnsmt.cli import main
from rnnsmt.phrases.table import format_phrase_line, line_order, read_phrase_table, read_reordering_table
from tests.unit.phrases.test_table import entries

TABLE = [
    "a b ||| x ||| 1 0.5 ||| 0-0 1-0 ||| 2 1 1 ||| |||",
    "a ||| x ||| 0.1 2e-05 ||| 0-0 ||| 1 2 1 ||| |||",
    "a ||| y ||| 0.1 0.2",
]
KNOWN, THIRD = "0.6 0.2 0.2 0.6 0.2 0.2", " ".join(["0.333333"] * 6)
REORDERING = [f"{pair} ||| {KNOWN}" for pair in ("a b ||| x", "a ||| x", "a ||| y")]
PAIRS = ["a b ||| x y ||| 0.125 0.25", "a ||| x ||| 1 1", "b ||| x ||| 0.25 0.5 ||| 0-0 ||| 1 1 1"]


def write(directory: Path, **files: list[str]) -> None:
    for name, lines in files.items():
        (directory / name).write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write(tmp_path, table=TABLE, reordering=REORDERING, pairs=PAIRS)
    return tmp_path


def fill_up(directory: Path, output: str = "out", **names: str) -> int:
    files = {"phrase-table": "table", "reordering-table": "reordering", "pairs": "pairs"}
    files |= {name.replace("_", "-"): file for name, file in names.items()}
    options = [part for name, file in files.items() for part in (f"--{name}", str(directory / file))]
    return main(["phrases", "fill-up", *options, "--output-dir", str(directory / output)])


def test_both_tables_by_hand(directory, capsys):
    assert fill_up(directory) == 0
    assert (directory / "out" / "table").read_text().splitlines() == [
        "a b ||| x y ||| 0.125 0.25 2.71828",
        "a b ||| x ||| 1 0.5 1 ||| 0-0 1-0 ||| 2 1 1 ||| |||",
        "a ||| x ||| 0.1 2e-05 1 ||| 0-0 ||| 1 2 1 ||| |||",
        "a ||| y ||| 0.1 0.2 1",
        "b ||| x ||| 0.25 0.5 2.71828 ||| 0-0 ||| 1 1 1",
    ]
    assert (directory / "out" / "reordering").read_text().splitlines() == [
        f"a b ||| x y ||| {THIRD}",
        f"a b ||| x ||| {KNOWN}",
        f"a ||| x ||| {KNOWN}",
        f"a ||| y ||| {KNOWN}",
        f"b ||| x ||| {THIRD}",
    ]
    assert "lines 5, pairs added 2, scores per line 3" in capsys.readouterr().err


@given(st.lists(entries(), min_size=1, max_size=6), st.lists(entries(), max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20)
def test_any_tables(tmp_path, own, more):
    tables = []
    for name, rows in (("table", own), ("pairs", more)):
        for entry in rows:
            entry.scores = [*entry.scores, 1.0, 1.0][:2]
        distinct = sorted({line_order(entry): entry for entry in rows}.items())
        tables.append([entry for _, entry in distinct])
        lines = [format_phrase_line(entry) for entry in tables[-1]]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8", newline="\n")
    known = [f"{entry.source} ||| {entry.target} ||| {KNOWN}\n" for entry in tables[0]]
    (tmp_path / "reordering").write_text("".join(known), "utf-8", newline="\n")
    assert fill_up(tmp_path) == 0
    keys = {line_order(entry) for entry in tables[0]}
    new = [entry for entry in tables[1] if line_order(entry) not in keys]
    found = list(read_phrase_table(tmp_path / "out" / "table", 3))
    assert [line_order(entry) for entry in found] == sorted(line_order(entry) for entry in [*tables[0], *new])
    for is_new, rows in ((False, tables[0]), (True, new)):
        ours = [entry for entry in found if (line_order(entry) in keys) != is_new]
        logs = [math.log(entry.scores.pop()) for entry in ours]
        assert logs == pytest.approx([float(is_new)] * len(ours), abs=1e-5)
        assert ours == rows
    reordering = list(read_reordering_table(tmp_path / "out" / "reordering"))
    assert [(e.source, e.target) for e in reordering] == [(e.source, e.target) for e in found]


def test_nothing_to_fill_in(directory):
    write(directory, pairs=[])
    assert fill_up(directory) == 0
    assert [entry.scores[2] for entry in read_phrase_table(directory / "out" / "table")] == [1.0] * 3
    assert (directory / "out" / "reordering").read_text() == (directory / "reordering").read_text()


def test_compressed_tables(directory):
    assert fill_up(directory) == 0
    for name in ("table", "reordering"):
        (directory / f"{name}.gz").write_bytes(gzip.compress((directory / name).read_bytes()))
    assert fill_up(directory, phrase_table="table.gz", reordering_table="reordering.gz") == 0
    for name in ("table", "reordering"):
        assert (
            gzip.decompress((directory / "out" / f"{name}.gz").read_bytes()) == (directory / "out" / name).read_bytes()
        )


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        (
            "pairs",
            ["b ||| x ||| 0.5 1", "a b ||| y ||| 0.5 1"],
            "'a b ||| y' is out of order; sort the table with LC_ALL=C",
        ),
        ("pairs", ["b ||| x ||| 0.5 1", "b ||| x ||| 0.5 1"], "'b ||| x' is out of order"),
        ("pairs", ["b ||| x ||| 0.5"], "line 1: the third field has 1 numbers, expected: 2"),
        ("table", TABLE[::-1], "out of order; sort the table with LC_ALL=C sort"),
        ("table", [], "the table is empty; create it again"),
        ("reordering", REORDERING[::-1], "out of order"),
        ("reordering", ["a ||| x ||| 1 0 0"], "the third field has 3 numbers, expected: 6"),
    ],
)
def test_refused(directory, capsys, file, content, said):
    write(directory, **{file: content})
    assert fill_up(directory) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert said in error[0]
    assert f"/{file}" in error[0]
    assert not any((directory / "out").glob("*"))


def test_tables_are_not_overwritten(directory, capsys):
    assert fill_up(directory, output=".") == 2
    assert "is the directory of table" in capsys.readouterr().err
    assert (directory / "table").read_text().splitlines() == TABLE
    assert fill_up(directory, reordering_table="table") == 2
    assert "have the same name" in capsys.readouterr().err
