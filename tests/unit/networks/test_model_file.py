"""Model files of all networks: damaged and forged files are refused before their ids are used."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rnnsmt.base.errors import InputError  # noqa: E402
from rnnsmt.cslm import model as cslm  # noqa: E402
from rnnsmt.cslm.settings import CslmSizes  # noqa: E402
from rnnsmt.networks import feed_forward  # noqa: E402
from rnnsmt.networks.data import Vocabulary  # noqa: E402
from rnnsmt.networks.feed_forward import FeedForwardLM, TrainedNetwork  # noqa: E402
from rnnsmt.nnjm import model as nnjm  # noqa: E402
from rnnsmt.nnjm.settings import JointSizes  # noqa: E402
from rnnsmt.rnn import model as rnn  # noqa: E402
from rnnsmt.rnn.settings import RnnSizes  # noqa: E402
from rnnsmt.seq2seq import model as seq2seq  # noqa: E402
from rnnsmt.seq2seq.settings import Seq2SeqSizes  # noqa: E402
from rnnsmt.translation.archives import CACHE  # noqa: E402

from .fuzz import USES, attack, changed_model, joined, prepare, split, with_checksum  # noqa: E402

SOURCE, TARGET = Vocabulary("abc"), Vocabulary("defgh")

LOADERS: dict[str, Callable[[Path], Any]] = {
    "cslm": cslm.load_model,
    "nnjm": nnjm.load_model,
    "rnn": rnn.load_model,
    "seq2seq": seq2seq.load_model,
}


@pytest.fixture(params=LOADERS)
def kind(request: pytest.FixtureRequest) -> str:
    """Return a kind of network."""
    return str(request.param)


@pytest.fixture
def model(kind: str, tmp_path: Path) -> Path:
    """Write a network of a kind."""
    path, source, target = tmp_path / "m.safetensors", len(SOURCE), len(TARGET)
    if kind == "cslm":
        network = FeedForwardLM(CslmSizes(target, 4, 3, 5, 4), 1)
        feed_forward.save_model(path, cslm.FORMAT, TrainedNetwork(network, TARGET, False, 5, {"seed": 1}))
    elif kind == "nnjm":
        network = FeedForwardLM(JointSizes(target, source, 3, 1, 3, 5, 4), 1)
        feed_forward.save_model(path, nnjm.FORMAT, TrainedNetwork(network, TARGET, True, 5, {}, SOURCE))
    elif kind == "rnn":
        rnn.save_model(path, rnn.RNNEncoderDecoder(RnnSizes(source, target, 3, 4, 2)), {"seed": 1, "nan": float("nan")})
    else:
        network = seq2seq.Seq2Seq(Seq2SeqSizes(source, target, 3, 4, 2), 1)
        seq2seq.save_model(path, network, (SOURCE, TARGET), "forward", {"seed": 1})
    return path


def refused(kind: str, path: Path, content: bytes) -> str:
    """Read a file that must be refused; return the sentence."""
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        LOADERS[kind](path)
    sentence = str(error.value)
    assert sentence.startswith(f"{path}: ") and sentence.endswith("train`")
    assert sentence.isprintable() and len(sentence) < 500
    return sentence


def network_in(content: bytes) -> tuple[str, bytes]:
    """Return the metadata without the checksum and the size with a default, and the tensors."""
    _, metadata, tensors = split(content)
    metadata.pop("checksum", None)
    metadata["sizes"].pop("variant", None)
    return json.dumps(metadata, sort_keys=True), tensors


def test_changed_files(kind: str, model: Path) -> None:
    """A file that is changed anywhere is refused, or is the same network; forged ones may be other valid networks."""
    original = model.read_bytes()
    LOADERS[kind](model)
    accepted = 0
    for seed in range(300):
        content, change, valid = changed_model(random.Random(seed), original)
        model.write_bytes(content)
        try:
            LOADERS[kind](model)
        except InputError as error:
            assert str(error).startswith(f"{model}: ") and "\n" not in str(error), change
        else:
            accepted += 1
            assert valid or network_in(content) == network_in(original), change
    assert accepted < 100


def test_words_that_do_not_agree_with_the_sizes(kind: str, model: Path) -> None:
    header, metadata, tensors = split(model.read_bytes())
    if kind == "rnn":
        pytest.skip("its words are in files of their own")
    nested = kind == "seq2seq"
    before = metadata["words"]["target"] if nested else metadata["words"]

    def sentence(words: list[Any]) -> str:
        other = {**metadata["words"], "target": words} if nested else words
        return refused(kind, model, with_checksum(header, {**metadata, "words": other}, tensors))

    for more in (200, 100_000):
        assert f"is {more + 5:,}, but its sizes require 5" in sentence([*map(str, range(more)), *before])
    assert "is 4, but its sizes require 5" in sentence(before[1:])
    for wrong in ([*before[:-1], before[0]], [*before[:-1], "a b"], [*before[:-1], ""], [*before[:-1], 3], [None] * 5):
        assert "words" in sentence(wrong)


def test_sizes_and_tensors_that_do_not_agree(kind: str, model: Path) -> None:
    header, metadata, tensors = split(model.read_bytes())
    for size in metadata["sizes"]:
        for value in (0, -1, 10**30, "4", 4.0, True, None, metadata["sizes"][size]):
            sizes = {**metadata["sizes"], size: value}
            if value != metadata["sizes"][size]:
                refused(kind, model, with_checksum(header, {**metadata, "sizes": sizes}, tensors))
            del sizes[size]
            refused(kind, model, with_checksum(header, {**metadata, "sizes": sizes}, tensors))
    for name, entry in header.items():
        for change in ({"dtype": "I32"}, {"shape": [1, *entry["shape"]]}):
            refused(kind, model, with_checksum({**header, name: entry | change}, metadata, tensors))


def test_weights_that_are_not_finite(kind: str, model: Path) -> None:
    header, metadata, tensors = split(model.read_bytes())
    for name, entry in header.items():
        for value in (np.nan, np.inf, -np.inf):
            changed = bytearray(tensors)
            end = entry["data_offsets"][1]
            changed[end - 4 : end] = np.float32(value).tobytes()
            sentence = refused(kind, model, with_checksum(header, metadata, bytes(changed)))
            assert f"{name} contains NaN or infinite values" in sentence


def test_a_damaged_weight_and_a_file_without_checksum(kind: str, model: Path) -> None:
    header, metadata, tensors = split(model.read_bytes())
    damaged = bytes([tensors[0] ^ 1]) + tensors[1:]
    assert "is damaged (its checksum differs)" in refused(kind, model, joined(header, metadata, damaged))
    del metadata["checksum"]
    model.write_bytes(joined(header, metadata, tensors))
    LOADERS[kind](model)


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_commands_that_read_changed_files(use: str, monkeypatch: pytest.MonkeyPatch, trained: Path) -> None:
    """No file makes a command crash, hang, or give another result silently."""
    monkeypatch.chdir(trained)
    monkeypatch.setenv(CACHE, "cache")
    counts, faults = attack(use, 12, 2)
    assert not faults, faults[0]
    assert counts["refused"] > 0


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a network of each kind."""
    directory = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        prepare()
    return directory
