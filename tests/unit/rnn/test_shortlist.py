"""The paper's word penalty: number of target words outside the shortlist, from the pairs to the search."""

import gzip
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rnnsmt.cli import main
from rnnsmt.networks.data import UNK, Sequences
from rnnsmt.rnn.pairs import Pairs, words_outside
from rnnsmt.search.phrase_pairs import load_phrase_table

PAIRS = [("a b", "x y", 0), ("a b", "x rare", 1), ("b", "rare rarer rare <unk>", 4), ("b", "y", 0), ("c", "rarer", 1)]
"""Source, target, and how many target words are neither x nor y."""


@pytest.fixture
def directory(tmp_path) -> Path:
    """Create a table and its pairs; the shortlist contains x and y."""
    with gzip.open(tmp_path / "table.gz", "wt") as out:
        out.writelines(f"{s} ||| {t} ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1\n" for s, t, _ in PAIRS)
    (tmp_path / "text.en").write_text("a b c\n" * 10)
    (tmp_path / "text.fr").write_text("x y\n" * 9 + "rare rarer <unk>\n")
    command = ["rnn", "prepare", "--phrase-table", str(tmp_path / "table.gz"), "--vocab-size", "4"]
    command += ["--source", str(tmp_path / "text.en"), "--target", str(tmp_path / "text.fr")]
    assert main([*command, "--output-dir", str(tmp_path / "pairs")]) == 0
    return tmp_path


def shortlist(directory: Path) -> int:
    return main(["rnn", "shortlist", "--pairs", str(directory / "pairs"), "--output", str(directory / "wp.npy")])


def test_counts_by_hand(directory, capsys):
    assert shortlist(directory) == 0
    counts = np.load(directory / "wp.npy")
    assert counts.tolist() == [n for _, _, n in PAIRS]
    assert counts.dtype == np.float32
    assert "pairs with words outside the shortlist 3, words outside the shortlist 6" in capsys.readouterr().err


def test_the_search_reads_the_numbers(directory):
    """The search reads e^n from the table as score n, although it is greater than 1."""
    assert shortlist(directory) == 0
    command = [
        "phrases",
        "augment",
        "--phrase-table",
        str(directory / "table.gz"),
        "--column",
        str(directory / "wp.npy"),
    ]
    assert main([*command, "--output", str(directory / "augmented.gz")]) == 0
    table = load_phrase_table(directory / "augmented.gz", 5, None)
    np.testing.assert_allclose(table.log_scores[:, 4], [n for _, _, n in PAIRS], atol=1e-5)
    np.testing.assert_allclose(table.log_scores[:, :4], np.log(0.5), atol=1e-6)


def test_a_shortlist_that_has_every_word_is_pointed_out(directory, capsys):
    command = ["rnn", "prepare", "--phrase-table", str(directory / "table.gz"), "--vocab-size", "99"]
    command += ["--source", str(directory / "text.en"), "--target", str(directory / "text.fr")]
    assert main([*command, "--output-dir", str(directory / "pairs")]) == 0
    assert shortlist(directory) == 0
    assert not np.load(directory / "wp.npy").any()
    assert "all target words of the phrase table are in the shortlist" in capsys.readouterr().err


def test_without_pairs(directory, capsys):
    (directory / "pairs" / "pairs.json").unlink()
    assert shortlist(directory) == 2
    assert "pairs.json: no such file" in capsys.readouterr().err
    assert not (directory / "wp.npy").exists()


@given(
    phrases=st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=5), min_size=1, max_size=12),
    block=st.integers(1, 5),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_blocks_give_the_same_counts(phrases, block):
    offsets = np.cumsum([0, *map(len, phrases)])
    side = Sequences(np.array([*chain.from_iterable(phrases)], np.int32), offsets.astype(np.int64))
    counts = np.concatenate([*words_outside(side, block)])
    assert counts.tolist() == [phrase.count(UNK) for phrase in phrases]


def test_pairs_of_the_table_in_its_order(directory):
    pairs = Pairs.open(directory / "pairs")
    assert [len(pairs.target(i)) - 1 for i in range(len(pairs))] == [len(t.split()) for _, t, _ in PAIRS]
