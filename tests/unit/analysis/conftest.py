"""A small network and its phrase pairs."""

import itertools
from pathlib import Path

import pytest

from ..phrase_store import make_pairs


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create phrase pairs, of phrases of one and four words, and a random network (``m.safetensors``)."""
    pytest.importorskip("torch")

    from rnnsmt.rnn.model import hashes_of, save_model
    from tests.unit.rnn.test_generation import network

    directory = tmp_path_factory.mktemp("toy")
    phrases = [" ".join(words) for words in itertools.product("abc", repeat=4)]
    pairs = make_pairs(directory, [(one, one.upper()) for one in ["a", *phrases]], "a b c d e", "A B C D E")
    save_model(directory / "m.safetensors", network(0.3, source=8, target=8), hashes_of(pairs.vocabularies))
    return directory
