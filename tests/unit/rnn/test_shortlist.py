"""The paper's word penalty: number of target words outside the shortlist, from the pairs to the search."""

from pathlib import Path

import numpy as np
import pytest

from rnnsmt.cli import main
from rnnsmt.search.phrase_pairs import load_phrase_table

from ..phrase_store import STORE, TABLE, VOCABULARIES, compute_column, make_pairs, scores_of

PAIRS = [("a b", "x y", 0), ("a b", "x rare", 1), ("b", "rare rarer rare <unk>", 4), ("b", "y", 0), ("c", "rarer", 1)]
"""Source, target, and how many target words are neither x nor y."""

COUNTS = [number for *_, number in PAIRS]


@pytest.fixture
def directory(tmp_path) -> Path:
    """Create a table and its pairs; the shortlist contains x and y."""
    shortlist_of(tmp_path, 4)
    return tmp_path


def shortlist_of(directory: Path, vocab_size: int) -> None:
    table = [(source, target) for source, target, _ in PAIRS]
    make_pairs(directory, table, "a b c\n" * 10, "x y\n" * 9 + "rare rarer <unk>\n", vocab_size)


def test_counts_by_hand(directory, capsys):
    assert compute_column("wp", directory, directory / "wp") == 0
    counts = scores_of(directory / "wp")
    assert counts.tolist() == COUNTS
    assert counts.dtype == np.float32
    assert "pairs 5, mean score 1.2" in capsys.readouterr().err


def test_the_same_column_from_shards(directory):
    parts = []
    for number in (1, 2, 3):
        assert compute_column("wp", directory, directory / f"{number}", "--shard", f"{number}/3") == 0
        parts.append(scores_of(directory / f"{number}"))
    assert [len(part) for part in parts] == [1, 2, 2]
    assert np.concatenate(parts).tolist() == COUNTS


def test_the_search_reads_the_numbers(directory):
    """The search reads e^n from the table as score n, although it is greater than 1."""
    assert compute_column("wp", directory, directory / "wp") == 0
    files = ["--phrase-table", directory / TABLE, "--column", directory / "wp", "--output", directory / "augmented"]
    assert main(["phrases", "augment", *map(str, files)]) == 0
    table = load_phrase_table(directory / "augmented", 5, None)
    np.testing.assert_allclose(table.log_scores[:, 4], COUNTS, atol=1e-5)
    np.testing.assert_allclose(table.log_scores[:, :4], 0, atol=1e-6)


def test_a_shortlist_that_has_every_word_is_pointed_out(directory, capsys):
    shortlist_of(directory, 99)
    assert compute_column("wp", directory, directory / "wp") == 0
    assert not scores_of(directory / "wp").any()
    assert "all scores of WP are 0" in capsys.readouterr().err


def test_files_that_are_missing(directory, capsys):
    pairs = ["--pairs", f"{directory}/{STORE}", "--output", f"{directory}/wp"]
    assert main(["phrases", "column", "--name", "wp", *pairs]) == 2
    assert "--vocabularies" in capsys.readouterr().err
    for name in (f"{VOCABULARIES}/vocab.target.txt", STORE):
        (directory / name).unlink()
        assert compute_column("wp", directory, directory / "wp") == 2
        assert f"{name}: no such file" in capsys.readouterr().err
    assert not (directory / "wp").exists()
