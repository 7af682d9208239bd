"""Lines of phrase and reordering tables: reading and writing, invalid lines, filtering."""

import gzip
import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rnnsmt.base.array_file import write_arrays
from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.strings import POW10, Interner
from rnnsmt.base.kernels.table_lines import COUNTS, SCORES, SOURCE, TARGET
from rnnsmt.cli import main
from rnnsmt.formats.phrase_table import TableLines, read_table_lines, single_spaced
from rnnsmt.phrases.augmentation import augment_table
from rnnsmt.phrases.filtering import filter_tables, input_phrases, keep_lines
from rnnsmt.phrases.importing import import_tables
from rnnsmt.phrases.pairs import PhrasePairs
from rnnsmt.search.phrase_pairs import load_phrase_table, load_reordering_table

from .phrases_twin import Line, parse_line, phrase_line


def column(directory: Path, values: object, name: str = "scores", begin: int = 0, array: str = "score") -> str:
    """Write the scores of a table's lines, or of a part of them; return the path."""
    scores = np.asarray(values)
    with write_arrays(directory / name, {array: scores.dtype}) as out:
        out.append(array, scores)
        out.entries["begin"] = str(begin)
    return str(directory / name)


class PhraseEntry(NamedTuple):
    """One line of a phrase table.

    Attributes:
        scores: probabilities, or other non-negative numbers whose logarithms are features.
        counts: counts of the target, of the source, and of both; empty if the table has none.
    """

    source: str
    target: str
    scores: list[float]
    counts: list[float]


def fields_of(lines: TableLines, line: int) -> list[bytes]:
    """Return the five fields of a line."""
    return [lines.text[begin:end].tobytes() for begin, end in lines.bounds[line].tolist()]


def table_entries(path: str | Path) -> list[PhraseEntry]:
    """Read all entries of a phrase table."""
    entries = []
    for lines in read_table_lines(path):
        for line in range(len(lines.bounds)):
            fields = fields_of(lines, line)
            scores, counts = ([float(number) for number in fields[field].split()] for field in (SCORES, COUNTS))
            entries.append(PhraseEntry(fields[SOURCE].decode(), fields[TARGET].decode(), scores, counts))
    return entries


GOOD = b"a b ||| x ||| 1 0.5 1 0.25 ||| 0-0 1-0 ||| 2 1 1 ||| |||"
GOOD_SCORE = b"a b ||| x ||| 1\n"
GOOD_REORDERING = b"a b ||| x ||| 0.6 0.2 0.2 0.6 0.2 0.2"

word = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="|"), min_size=1)
phrase = st.lists(word, min_size=1, max_size=7).map(" ".join)
number = st.floats(0, 1e6).map(lambda value: float(f"{value:.6g}"))


@st.composite
def entries(draw):
    source, target = draw(phrase), draw(phrase)
    position = [st.integers(0, len(side.split(" ")) - 1) for side in (source, target)]
    entry = Line(source, target, draw(st.lists(number, min_size=1, max_size=6)))
    entry.alignment = draw(st.lists(st.tuples(*position), max_size=9))
    entry.counts = [float(n) for n in draw(st.lists(st.integers(0, 10**12), max_size=3))]
    if entry.counts:
        entry.further = draw(st.lists(st.just("") | phrase, max_size=3))
    return entry


@given(st.lists(entries(), min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_phrase_lines_round_trip(tmp_path, written):
    for entry in written:
        entry.scores = (entry.scores * 6)[:6]
    (tmp_path / "t").write_text("".join(phrase_line(entry) + "\n" for entry in written), "utf-8", newline="\n")
    expected = [PhraseEntry(entry.source, entry.target, entry.scores, entry.counts) for entry in written]
    assert table_entries(tmp_path / "t") == expected
    (lines,) = read_table_lines(tmp_path / "t")
    assert lines.scores == 6
    assert [fields_of(lines, line)[TARGET] for line in range(len(written))] == [
        entry.target.encode() for entry in written
    ]


@given(st.binary(max_size=60) | st.text("ab |01-.e5\0é\t", max_size=60).map(str.encode))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_line_is_an_entry_or_an_input_error(tmp_path, line):
    line = line.replace(b"\n", b"")
    (tmp_path / "t").write_bytes(GOOD_SCORE + line + b"\n")
    try:
        entry = table_entries(tmp_path / "t")[1]
    except InputError as error:
        assert str(error).startswith(f"{tmp_path / 't'}, line 2: ")
    else:
        assert entry.source
        assert entry.target
        assert len(entry.scores) == 1
        assert all(math.isfinite(number) and number >= 0 for number in (*entry.scores, *entry.counts))


odd_field = st.text("ab |0129-+.eE_\t\r\0é\u00a0\u0663", max_size=8) | st.sampled_from(
    ["a", "a b", "x", "a  b", "1 0.5", "1\t.5\r", "1e-3 +2.", "1e400", "0-0", "0-0 1-0", "0-1", "1 1 1", "nan", "-0"]
)
odd_line = st.lists(odd_field, min_size=2, max_size=7).flatmap(
    lambda fields: st.sampled_from([" ||| ", "|||", "\t||| ", " ||||", " |||\r"]).map(lambda bar: bar.join(fields))
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(odd_line | odd_line.map(lambda line: line.replace("|||", " ||| ")))
@example("a|||b|||1")
@example("a ||| b ||| 1\t0.5\r")
@example("a ||| b ||| 1 ||| 0-0 ||| 1 1 1 ||| |||\r")
@example("a ||| b ||| 1 ||| 1-0")
@example("a ||| b ||| 1 ||| ||| x")
@example("a ||| b ||| \u0663")
@example("a |||| b ||| 1")
@example("a  b\ta ||| x \t y ||| 1  1 ||| 2-1 ||| 1\t1 1")
def test_all_readers_agree_on_a_line(tmp_path, line):
    """The search, the filter, augment and import-table accept a line exactly if the twin does."""
    path = tmp_path / "table"
    path.write_bytes(line.encode() + b"\n")
    scores = column(tmp_path, [-1.0])
    augmented, pairs = tmp_path / "augmented", tmp_path / "pairs"
    phrases = Interner()
    block = single_spaced(path.read_bytes())
    phrases.add([block.split(b"|||")[0].strip(b" \t\r\n")])

    def keep(name: str) -> int:
        buffer, lines = np.empty(len(block), np.uint8), np.frombuffer(block, np.uint8)
        _, kept, _, bad = keep_lines(lines, phrases.table, name == "reordering", POW10, 0, buffer)
        return kept if bad < 0 else -1

    assert keep("reordering") == (-1 if parse_line(line, reordering=True) is None else 1)
    entry = parse_line(line)
    if entry is None:
        assert keep("phrases") == -1
        for read in (
            lambda: augment_table(str(path), [[scores]], str(augmented)),
            lambda: import_tables(path, pairs),
            lambda: load_phrase_table(path, 1, None),
        ):
            with pytest.raises(InputError, match="line 1: "):
                read()
        return
    assert keep("phrases") == 1
    loaded = load_phrase_table(path, len(entry.scores), None)
    assert loaded.sources.strings() == [entry.source.encode()]
    assert loaded.targets.strings() == [entry.target.encode()]
    logs = [max(math.log(score), -100.0) if score else -100.0 for score in entry.scores]
    assert loaded.log_scores[0] == pytest.approx(logs)
    augment_table(str(path), [[scores]], str(augmented))
    after = augmented.read_bytes().rstrip(b"\n")
    assert parse_line(after.decode()) == replace(entry, scores=[*entry.scores, 0.367879])
    import_tables(path, pairs)
    assert [*PhrasePairs(pairs).texts()] == [(entry.source.split(" "), entry.target.split(" "))]


def test_words_are_separated_by_runs_of_spaces_and_tabs(tmp_path):
    """As in Moses; blanks around a phrase and in other fields are left as they are."""
    good = b"a b ||| x ||| 1  1 ||| 0-0\n a b\t|||\tx\r||| 1\t1 |||  ||| 1  1\n"
    assert single_spaced(good) == good
    odd = b"a  b \t a ||| x\ty ||| 1  1 ||| 2-1\n"
    assert single_spaced(good + odd) == good + b"a b a ||| x y ||| 1  1 ||| 2-1\n"
    (tmp_path / "i").write_bytes(b"a b a\n")
    (tmp_path / "pt").write_bytes(odd)
    assert table_entries(tmp_path / "pt") == [PhraseEntry("a b a", "x y", [1, 1], [])]
    (tmp_path / "rt").write_bytes(b"a b\ta ||| x  y ||| 1 1\n")
    filter_tables([str(tmp_path / "i")], str(tmp_path / "pt"), str(tmp_path / "rt"), str(tmp_path / "out"))
    assert (tmp_path / "out" / "pt").read_bytes() == b"a b a ||| x y ||| 1  1 ||| 2-1\n"
    assert (tmp_path / "out" / "rt").read_bytes() == b"a b a ||| x y ||| 1 1\n"
    table = load_phrase_table(tmp_path / "pt", 2, ["a b a"])
    assert (table.sources.strings(), table.targets.strings(), table.table().longest_source) == ([b"a b a"], [b"x y"], 3)
    assert load_reordering_table(tmp_path / "rt", table, 2).log_scores.tolist() == [[0, 0]]
    assert table.table().counts_of([("a b a", "x y")]) == {("a b a", "x y"): 0}


def test_moses_line(tmp_path):
    (tmp_path / "t").write_bytes(GOOD)
    assert table_entries(tmp_path / "t") == [PhraseEntry("a b", "x", [1, 0.5, 1, 0.25], [2, 1, 1])]
    assert phrase_line(parse_line(GOOD.decode())).encode() == GOOD


BAD_LINES = {
    "no separator": (b"a b x 1 1 1 1", "1 field(s) between |||"),
    "an empty line": (b"", "1 field(s)"),
    "two fields": (b"a ||| x", "2 field(s)"),
    "an empty source": (b" ||| x ||| 1 1 1 1 ||| 0-0 ||| 1 1 1", "the source phrase is empty"),
    "an empty target": (b"a b |||  ||| 1 1 1 1 ||| 0-0 ||| 1 1 1", "the target phrase is empty"),
    "three scores": (b"a b ||| x ||| 1 1 1 ||| 0-0 ||| 1 1 1", "the third field has 3 numbers, expected: 4"),
    "five scores": (b"a b ||| x ||| 1 1 1 1 1 ||| 0-0 ||| 1 1 1", "the third field has 5 numbers, expected: 4"),
    "no scores": (b"a b ||| x ||| ||| 0-0 ||| 1 1 1", "the third field has 0 numbers, expected: 4"),
    "NaN": (b"a b ||| x ||| 1 nan 1 1 ||| 0-0 ||| 1 1 1", "'1 nan 1 1' are not scores"),
    "inf": (b"a b ||| x ||| 1 inf 1 1 ||| 0-0 ||| 1 1 1", "'1 inf 1 1' are not scores"),
    "negative": (b"a b ||| x ||| 1 -0.1 1 1 ||| 0-0 ||| 1 1 1", "'1 -0.1 1 1' are not scores"),
    "a word": (b"a b ||| x ||| 1 one 1 1 ||| 0-0 ||| 1 1 1", "'1 one 1 1' are not scores"),
    "an underscore": (b"a b ||| x ||| 1 1_0 1 1 ||| 0-0 ||| 1 1 1", "'1 1_0 1 1' are not scores"),
    "a link outside": (b"a b ||| x ||| 1 1 1 1 ||| 2-0 ||| 1 1 1", "'2-0' are not links"),
    "half a link": (b"a b ||| x ||| 1 1 1 1 ||| 0- ||| 1 1 1", "'0-' are not links"),
    "a negative count": (b"a b ||| x ||| 1 1 1 1 ||| 0-0 ||| 1 -1 1", "'1 -1 1' are not counts"),
    "latin-1": (b"a b ||| \xe9 ||| 1 1 1 1", "not UTF-8 at byte 8"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_bad_lines(tmp_path, case):
    line, message = BAD_LINES[case]
    path = tmp_path / "table.gz"
    path.write_bytes(gzip.compress(GOOD + b"\n" + line + b"\n"))
    with pytest.raises(InputError) as error:
        list(read_table_lines(path))
    assert str(error.value).startswith(f"{path}, line 2: ")
    assert message in str(error.value)


BAD_REORDERING_LINES = {
    "garbage": (b"garbage", "1 field(s) between |||"),
    "two fields": (b"a b ||| x", "2 field(s) between |||"),
    "five probabilities": (b"a b ||| x ||| 1 1 1 1 1", "the third field has 5 numbers, expected: 6"),
    "an empty target": (b"a b ||| ||| 1 1 1 1 1 1", "the target phrase is empty"),
    "NaN": (b"a b ||| x ||| 1 1 1 1 1 nan", "'1 1 1 1 1 nan' are not probabilities"),
}


def test_input_phrases(tmp_path):
    (tmp_path / "i").write_bytes("a b  a c\n\né\n".encode())
    words = {b"a", b"b", b"c", b"a b", b"b a", b"a c", "é".encode()}
    assert input_phrases([str(tmp_path / "i")], 2) == words
    assert input_phrases([str(tmp_path / "i")], 9) == words | {b"a b a", b"b a c", b"a b a c"}


def tables(directory: Path, phrase_lines: list[bytes], reordering_lines: list[bytes]) -> list[str]:
    """Write both tables; return the options that name them."""
    directory.mkdir(exist_ok=True)
    (directory / "pt.gz").write_bytes(gzip.compress(b"".join(line + b"\n" for line in phrase_lines)))
    (directory / "rt.gz").write_bytes(gzip.compress(b"".join(line + b"\n" for line in reordering_lines)))
    return ["--phrase-table", str(directory / "pt.gz"), "--reordering-table", str(directory / "rt.gz")]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3).map(" ".join), min_size=1, max_size=40),
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=2),
)
def test_filter_keeps_what_occurs(tmp_path, sources, texts):
    lines = [f"{source} ||| x ||| 1 1 1 1 ||| ||| {n}" for n, source in enumerate(sources)]
    reordering = [f"{source} ||| x ||| 1" for source in sources]
    options = tables(tmp_path, [line.encode() for line in lines], [line.encode() for line in reordering])
    for n, text in enumerate(texts):
        (tmp_path / f"in{n}").write_text(text + "\n")
    inputs = ["--input", *(str(tmp_path / f"in{n}") for n in range(len(texts)))]
    assert main(["phrases", "filter", *inputs, *options, "--output-dir", str(tmp_path / "out")]) == 0
    kept = [any(f" {source} " in f" {text} " for text in texts) for source in sources]
    for name, whole in (("pt.gz", lines), ("rt.gz", reordering)):
        expected = [line for line, keep in zip(whole, kept, strict=True) if keep]
        assert gzip.decompress((tmp_path / "out" / name).read_bytes()).decode().splitlines() == expected


def run_bad_filter(directory: Path, capsys, options: list[str], message: str, text: str = "a b\n") -> None:
    """Run the filter with options that must cause an error of one line and no output."""
    (directory / "in").write_text(text)
    arguments = ["--input", str(directory / "in"), *options]
    if "--output-dir" not in options:
        arguments += ["--output-dir", str(directory / "out")]
    assert main(["phrases", "filter", *arguments]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert message in errors[0]
    assert not list((directory / "out").glob("*")) + list((directory / "out").glob(".tmp*"))


@pytest.mark.parametrize("case", BAD_LINES)
def test_filter_refuses_bad_lines(tmp_path, capsys, case):
    line, message = BAD_LINES[case]
    run_bad_filter(tmp_path, capsys, tables(tmp_path, [GOOD, line], [GOOD_REORDERING]), f"pt.gz, line 2: {message}")


@pytest.mark.parametrize("case", BAD_REORDERING_LINES)
def test_filter_refuses_bad_reordering_lines(tmp_path, capsys, case):
    line, message = BAD_REORDERING_LINES[case]
    run_bad_filter(tmp_path, capsys, tables(tmp_path, [GOOD], [GOOD_REORDERING, line]), f"rt.gz, line 2: {message}")


def test_filter_refuses_bad_files(tmp_path, capsys):
    good = tables(tmp_path, [GOOD], [GOOD_REORDERING])
    run_bad_filter(tmp_path, capsys, good, "the input contains no words", "\n\n")
    run_bad_filter(tmp_path, capsys, [*good, "--output-dir", str(tmp_path)], "is the directory of pt.gz")
    run_bad_filter(tmp_path, capsys, [*good[:2], "--reordering-table", str(tmp_path / "none")], "no such file")
    run_bad_filter(tmp_path, capsys, [*good[:3], good[1]], "the same name")
    run_bad_filter(tmp_path, capsys, tables(tmp_path, [GOOD], []), "rt.gz: the table is empty")
    options = tables(tmp_path, [GOOD] * 5000, [GOOD_REORDERING] * 5000)
    cut = (tmp_path / "rt.gz").read_bytes()[:-20]
    (tmp_path / "rt.gz").write_bytes(cut)
    run_bad_filter(tmp_path, capsys, options, "rt.gz: damaged after line")


@pytest.mark.parametrize(
    "option", [["--max-length", "0"], ["--threads", "0"], ["--memory-mb", "-1"], ["--threads", "x"]]
)
def test_bad_numbers(capsys, option):
    stage = "filter" if option[0] == "--max-length" else "reordering"
    with pytest.raises(SystemExit) as stopped:
        main(["phrases", stage, *option])
    assert stopped.value.code == 2
    assert option[0] in capsys.readouterr().err
