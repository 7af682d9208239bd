"""Tables of Multi30k from MGIZA's alignment equal those of Moses."""

import gzip
import zlib
from collections import Counter
from pathlib import Path

import pytest

from rnnsmt.base.reading import read_byte_lines
from rnnsmt.cli import main


@pytest.fixture(scope="module")
def built(tmp_path_factory, moses_fixture, multi30k_tok) -> Path:
    """Build both lexical tables, the extract file (with 100 MB of memory) and both tables in a directory."""
    directory = tmp_path_factory.mktemp("phrases")
    text = ["--source", str(multi30k_tok / "train.en.xz"), "--target", str(multi30k_tok / "train.fr.xz")]
    text += ["--alignment", str(moses_fixture / "align" / "giza.grow-diag-final-and.xz")]
    extract, e2f, f2e = (str(directory / name) for name in ("extract.parquet", "lex.e2f", "lex.f2e"))
    table, reordering = (
        str(directory / "phrase-table.gz"),
        str(directory / "reordering-table.wbe-msd-bidirectional-fe.gz"),
    )
    pairs, scores, orders = (str(directory / f"{name}.safetensors") for name in ("pairs", "scores", "reordering"))
    extracted = ["--extract", extract, "--pairs", pairs]
    scored = ["--lex-e2f", e2f, "--lex-f2e", f2e, "--smoothing", "none", "--output", scores]
    store = ["--pairs", pairs, "--scores", scores, "--reordering", orders]
    for arguments in (
        ["lexical", *text, "--output-e2f", e2f, "--output-f2e", f2e],
        ["extract", *text, "--output", extract, "--output-pairs", pairs, "--memory-mb", "100"],
        ["score", *extracted, *scored, "--threads", "2"],
        ["reordering", *extracted, "--output", orders, "--threads", "2"],
        ["export", *store, "--output-phrase-table", table, "--output-reordering-table", reordering],
    ):
        assert main(["phrases", *arguments]) == 0
    return directory


@pytest.mark.parametrize("name", ["lex.e2f", "lex.f2e"])
def test_lexical_tables(built, moses_fixture, name):
    assert Counter(read_byte_lines(built / name)) == Counter(read_byte_lines(moses_fixture / f"{name}.xz"))


def sample_and_size(path: Path) -> tuple[list[bytes], int, int]:
    """Return the lines whose source phrase is in the fixture's sample, the number of lines and of distinct sources."""
    lines, sources, sample, last = 0, 0, [], b""
    with gzip.open(path) as table:
        for line in table:
            source = line.partition(b" ||| ")[0]
            lines += 1
            if source != last:
                sources += 1
                keep = zlib.crc32(source) % 40 == 0
                last = source
            if keep:
                sample.append(line)
    return sample, lines, sources


@pytest.mark.parametrize("name", ["phrase-table", "reordering-table.wbe-msd-bidirectional-fe"])
def test_tables(built, moses_fixture, name):
    sample, lines, sources = sample_and_size(built / f"{name}.gz")
    assert (lines, sources) == (817_023, 660_602)
    with gzip.open(moses_fixture / f"{name.partition('.')[0]}.sample.gz") as expected:
        assert sample == expected.readlines()


def test_occurrences(built, capsys):
    import duckdb

    found = duckdb.sql(f"SELECT sum(joint) FROM '{built / 'extract.parquet'}'").fetchall()
    assert found == [(1_426_259,)]


def test_filtered_tables(built, moses_fixture, tmp_path):
    names = ["phrase-table.gz", "reordering-table.wbe-msd-bidirectional-fe.gz"]
    arguments = ["--input", str(moses_fixture / "search" / "input.en"), "--output-dir", str(tmp_path)]
    arguments += ["--phrase-table", str(built / names[0]), "--reordering-table", str(built / names[1])]
    assert main(["phrases", "filter", *arguments]) == 0
    for name in names:
        with gzip.open(tmp_path / name) as ours, gzip.open(moses_fixture / "search" / name) as expected:
            assert ours.read() == expected.read()
