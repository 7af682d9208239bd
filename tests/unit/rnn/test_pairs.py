"""Directories of phrase pairs."""

import gzip
import json

import numpy as np
import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.cli import main
from rnnsmt.formats import phrase_table
from rnnsmt.networks.data import class_counts
from rnnsmt.rnn.pairs import Pairs, words_outside

from ..resident import reads_smaps, resident_kilobytes

TABLE = """a b ||| x y ||| 1 1 1 1 ||| 0-0 ||| 1 1 1
a b ||| y ||| 0.5 1 1 1
a ||| x x x ||| 1 1 1 1 ||| 0-0 ||| 1 1 1 ||| |||
c rare ||| z ||| 1 1 1 1
"""


def corpus(directory):
    (directory / "train.en").write_text("a b a\na b c\nrare\n")
    with gzip.open(directory / "train.fr.gz", "wt") as out:
        out.write("x y x\nx z\n\n")
    return directory


def prepare(directory, table=TABLE, *options):
    """Run the command; its texts are those of ``corpus`` unless the options have others."""
    path = corpus(directory) / "table"
    path.write_bytes(table.encode() if isinstance(table, str) else table)
    command = ["rnn", "prepare", "--phrase-table", path, "--output-dir", directory / "pairs", *options]
    for option, text in (("--source", "train.en"), ("--target", "train.fr.gz")):
        if option not in options:
            command += [option, directory / text]
    return main([str(part) for part in command])


def test_prepare(tmp_path):
    assert prepare(tmp_path, TABLE, "--vocab-size", "5") == 0
    pairs = Pairs.open(tmp_path / "pairs")
    source, target = pairs.vocabularies
    assert source.words == ["<null>", "<unk>", "a", "b", "c", "</s>"]
    assert target.words == ["<null>", "<unk>", "x", "y", "z", "</s>"]
    assert len(pairs) == 4
    assert [pairs.source(i).tolist() for i in range(4)] == [[2, 3, 5], [2, 3, 5], [2, 5], [4, 1, 5]]
    assert [pairs.target(i).tolist() for i in range(4)] == [[2, 3, 5], [3, 5], [2, 2, 2, 5], [4, 5]]
    figures = json.loads((tmp_path / "pairs" / "pairs.json").read_text())
    assert (figures["source words"], figures["source unknown words"], figures["target words"]) == (7, 1, 7)
    assert figures["source coverage"] == pytest.approx(6 / 7, abs=1e-6)
    assert isinstance(pairs.sides[0].words, np.memmap)


def test_the_same_input_gives_the_same_files(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assert prepare(tmp_path / name) == 0
    files = sorted(path.name for path in (tmp_path / "one" / "pairs").iterdir())
    assert len(files) == 7
    for name in files:
        assert (tmp_path / "one" / "pairs" / name).read_bytes() == (tmp_path / "two" / "pairs" / name).read_bytes()


def test_blocks_do_not_matter(tmp_path, monkeypatch):
    """The block size does not change the prepared pairs."""
    lines = [f"a {'b ' * (i % 4)}w{i} ||| x {'y ' * (i % 3)}{i} ||| 1 1 1 1\n" for i in range(300)]
    found = []
    for size in (1 << 21, 64):
        monkeypatch.setattr(phrase_table, "read_line_blocks", lambda path, n=size: _blocks(path, n))
        (tmp_path / str(size)).mkdir()
        assert prepare(tmp_path / str(size), "".join(lines)) == 0
        found.append((tmp_path / str(size) / "pairs" / "pairs.json").read_bytes())
    assert found[0] == found[1]


def _blocks(path, size):
    from rnnsmt.base.reading import read_line_blocks

    return read_line_blocks(path, size)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "the table is empty"),
        ("a\n", "line 1: 1 field"),
        ("a ||| x ||| 1\n ||| x ||| 1\n", "line 2: the source phrase is empty"),
        (f"a ||| x ||| 1\n{'a ' * 51}||| x ||| 1\n", "line 2: has a phrase of 51 words, but the limit is 50"),
        (f"a ||| x ||| 1\nb ||| {'x ' * 60}||| 1\n", "line 2: has a phrase of 60 words, but the limit is 50"),
        (b"a ||| \xff ||| 1\n", "not UTF-8"),
    ],
)
def test_bad_tables(tmp_path, capsys, table, said):
    assert prepare(tmp_path, table) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len([line for line in error.splitlines() if "error" in line]) == 1
    assert not (tmp_path / "pairs" / "pairs.json").exists()
    assert not list((tmp_path / "pairs").glob("*.npy"))
    with pytest.raises(InputError, match="no such file"):
        Pairs.open(tmp_path / "pairs")


def test_bad_corpora_and_options(tmp_path, capsys):
    assert prepare(tmp_path, TABLE, "--max-length", "1") == 2
    assert "--max-length 2" in capsys.readouterr().err
    (tmp_path / "empty").write_text("\n")
    assert prepare(tmp_path, TABLE, "--source", str(tmp_path / "empty")) == 2
    assert "no words on the source side" in capsys.readouterr().err
    assert prepare(tmp_path, TABLE, "--target", str(tmp_path / "none")) == 2
    assert "none: no such file" in capsys.readouterr().err


def test_sides_with_different_numbers_of_lines_are_refused(tmp_path, capsys):
    """The number that is compared is the sum over the files of a side."""
    (tmp_path / "more").write_text("x")
    files = [str(corpus(tmp_path) / "train.fr.gz"), str(tmp_path / "more")]
    assert prepare(tmp_path, TABLE, "--target", *files) == 2
    assert f"train.en: 3 lines, but {', '.join(files)}: 4 lines; parallel files must" in capsys.readouterr().err
    assert not (tmp_path / "pairs").exists()
    assert (
        prepare(tmp_path, TABLE, "--source", str(tmp_path / "train.en"), str(tmp_path / "more"), "--target", *files)
        == 0
    )


def test_pairs_that_do_not_fit(tmp_path):
    assert prepare(tmp_path) == 0
    directory = tmp_path / "pairs"
    (directory / "pairs.json").write_text("[]")
    with pytest.raises(InputError, match="was written by a different version"):
        Pairs.open(directory)


@reads_smaps
def test_passes_over_the_pairs_leave_no_pages_mapped(tmp_path):
    """Unmap what a pass has read; only the pairs that `at` copies take memory."""
    assert prepare(tmp_path, "".join(f"a b ||| x w{i:06} ||| 1 1 1 1\n" for i in range(300_000))) == 0
    pairs = Pairs.open(tmp_path / "pairs")
    lines = np.arange(0, 300_000, 7)
    passes = {
        "class_counts": lambda: class_counts(pairs.sides[1].words, len(pairs.vocabularies[1]), np.zeros(0, np.int32)),
        "words_outside": lambda: list(words_outside(pairs.sides[1])),
        "at": lambda: pairs.at(lines),
    }
    for name, one_pass in passes.items():
        one_pass()
        assert resident_kilobytes(tmp_path) < 1000, f"{name}: of 12,000"
    some = pairs.at(lines)
    assert (len(some), some.sides[1].offsets[-1]) == (42_858, 3 * 42_858)
    assert some.target(42_857).tolist() == pairs.target(299_999).tolist()
