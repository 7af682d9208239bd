"""Phrase pairs and vocabularies from a small table, and score columns of them."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rnnsmt
from rnnsmt.base.array_file import ArrayFile
from rnnsmt.cli import main
from rnnsmt.phrases.column_files import write_columns
from rnnsmt.phrases.pairs import PhrasePairs
from rnnsmt.rnn.pairs import Pairs

from .overriding import overridden

TABLE, STORE, VOCABULARIES = "table", "pairs.safetensors", "vocabularies"
"""Names of the files in the directory."""


def make_pairs(
    directory: Path, table: Iterable[tuple[str, str]], source: str, target: str, vocab_size: int = 15_000
) -> Pairs:
    """Write a table, its store and the vocabularies of two texts into a directory; open the pairs.

    Args:
        table: source and target of every line.
        source, target: the texts, with the same number of lines.
    """
    lines = [f"{one} ||| {other} ||| 1 1 1 1 ||| 0-0 ||| 1 1 1\n" for one, other in table]
    (directory / TABLE).write_text("".join(lines), encoding="utf-8")
    rnnsmt.phrases.import_table(directory / TABLE, directory / STORE)
    rnnsmt.networks.prepare(
        "rnn", target.splitlines(), directory / VOCABULARIES, source=source.splitlines(), vocab_size=vocab_size
    )
    return open_pairs(directory)


def import_table(directory: Path, text: str) -> tuple[Path, Path]:
    """Import a phrase table; return the store and the scores of the table."""
    (directory / TABLE).write_text(text, encoding="utf-8")
    scores = directory / "table.scores"
    rnnsmt.phrases.import_table(directory / TABLE, directory / STORE, output_scores=scores)
    return directory / STORE, scores


def write_column(path: Path, pairs: Path, values: Iterable[float], begin: int = 0) -> Path:
    """Write the scores of the pairs of a store from ``begin`` on; return the path."""
    with write_columns(path, PhrasePairs(pairs), {"score": np.float32}, begin=begin) as out:
        out.append("score", np.array([*values], np.float32))
    return path


def scores_of(path: Path) -> NDArray[np.float32]:
    """Read the scores of a column."""
    return ArrayFile(path, "")["score"]


def open_pairs(directory: Path) -> Pairs:
    """Open the pairs that ``make_pairs`` wrote."""
    return Pairs.open(directory / STORE, directory / VOCABULARIES)


def options_of(directory: Path) -> list[str]:
    """Return the options of commands that read the pairs."""
    return ["--pairs", str(directory / STORE), "--vocabularies", str(directory / VOCABULARIES)]


def training_of(directory: Path) -> list[str]:
    """Return the command that trains an RNN Encoder-Decoder on the pairs, without its outputs."""
    return ["networks", "train", "--network", "rnn", "--data", str(directory / STORE), str(directory / VOCABULARIES)]


def compute_column(name: str, directory: Path, output: Path, *options: str) -> int:
    """Run ``phrases column`` for the pairs of a directory; return the exit status."""
    words = ["phrases", "column", "--name", name, *options_of(directory), "--output", output]
    return main(overridden(words, options))
