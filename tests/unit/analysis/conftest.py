"""A network and the phrase pairs that it knows."""

import itertools
from pathlib import Path

import pytest

from rnnsmt.cli import main


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``pairs``, of phrases of four words and more, and an untrained network ``m.pt``."""
    pytest.importorskip("torch")

    from rnnsmt.rnn.model import save_model, vocabularies_of
    from rnnsmt.rnn.pairs import Pairs
    from tests.unit.rnn.test_generation import network

    folder = tmp_path_factory.mktemp("toy")
    phrases = [" ".join(words) for words in itertools.product("abc", repeat=4)]
    lines = [f"{phrase} ||| {phrase.upper()} ||| 1 1 1 1\n" for phrase in phrases]
    (folder / "table").write_text("a ||| A ||| 1 1 1 1\n" + "".join(lines))
    (folder / "source").write_text("a b c d e\n")
    (folder / "target").write_text("A B C D E\n")
    texts = ["--source", f"{folder}/source", "--target", f"{folder}/target", "--output-dir", f"{folder}/pairs"]
    assert main(["rnn", "prepare", "--phrase-table", f"{folder}/table", *texts]) == 0
    save_model(folder / "m.pt", network(0.3, source=8, target=8), vocabularies_of(Pairs.open(folder / "pairs")))
    return folder
