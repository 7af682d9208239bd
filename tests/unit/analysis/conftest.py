"""A small network and its phrase pairs."""

import itertools
from pathlib import Path

import pytest

from rnnsmt.cli import main


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create phrase pairs (``pairs``), of phrases of one and four words, and a random network (``m.safetensors``)."""
    pytest.importorskip("torch")

    from rnnsmt.rnn.model import hashes_of, save_model
    from rnnsmt.rnn.pairs import Pairs
    from tests.unit.rnn.test_generation import network

    directory = tmp_path_factory.mktemp("toy")
    phrases = [" ".join(words) for words in itertools.product("abc", repeat=4)]
    lines = [f"{phrase} ||| {phrase.upper()} ||| 1 1 1 1\n" for phrase in phrases]
    (directory / "table").write_text("a ||| A ||| 1 1 1 1\n" + "".join(lines))
    (directory / "source").write_text("a b c d e\n")
    (directory / "target").write_text("A B C D E\n")
    texts = ["--source", f"{directory}/source", "--target", f"{directory}/target", "--output-dir", f"{directory}/pairs"]
    assert main(["rnn", "prepare", "--phrase-table", f"{directory}/table", *texts]) == 0
    save_model(
        directory / "m.safetensors",
        network(0.3, source=8, target=8),
        hashes_of(Pairs.open(directory / "pairs").vocabularies),
    )
    return directory
