"""Windows of training examples in memory."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rnnsmt.base.array_file import write_arrays  # noqa: E402
from rnnsmt.base.arrays import growing_array  # noqa: E402
from rnnsmt.cslm.model import cslm_task  # noqa: E402
from rnnsmt.cslm.settings import PRESETS as CSLM_PRESETS  # noqa: E402
from rnnsmt.cslm.text import Text  # noqa: E402
from rnnsmt.networks import batches, data  # noqa: E402
from rnnsmt.networks.data import IdDirectory, Vocabulary, finish_id_directory, write_id_directory  # noqa: E402
from rnnsmt.networks.devices import set_up_device  # noqa: E402
from rnnsmt.networks.read_ahead import ReadAhead  # noqa: E402
from rnnsmt.networks.task import Task  # noqa: E402
from rnnsmt.nnjm.examples import Examples  # noqa: E402
from rnnsmt.nnjm.settings import PRESETS as NNJM_PRESETS  # noqa: E402
from rnnsmt.nnjm.training import nnjm_task  # noqa: E402
from rnnsmt.phrases.pairs import PairsWriter, pair_types  # noqa: E402
from rnnsmt.rnn.pairs import Pairs, vocabulary_files  # noqa: E402
from rnnsmt.rnn.settings import PRESETS as RNN_PRESETS  # noqa: E402
from rnnsmt.rnn.training import RnnTask  # noqa: E402
from rnnsmt.seq2seq.sentences import SentencePairs  # noqa: E402
from rnnsmt.seq2seq.settings import PRESETS as SEQ2SEQ_PRESETS  # noqa: E402
from rnnsmt.seq2seq.training import Seq2SeqTask  # noqa: E402

from ..resident import reads_smaps, resident_kilobytes  # noqa: E402

CPU = set_up_device("cpu", 1)


def test_a_window_is_read_once() -> None:
    """What has been read ahead, or is the same window again, is not read again; other examples are."""
    asked: list[list[int]] = []

    def read(index: np.ndarray) -> np.ndarray:
        asked.append(index.tolist())
        return 10 * index

    loaded = ReadAhead(read)
    for index in ([7, 3, 5], [3, 5, 7], [4, 9], [9, 4]):
        found, places = loaded.take(np.array(index))
        assert found[places].tolist() == [10 * i for i in index]
        loaded.read_ahead(np.array([9, 4]))
    assert asked == [[3, 5, 7], [4, 9]]
    assert loaded.index.tolist() == [4, 9]
    for index in ([9], [2, 9, 2], [11], []):
        found, places = loaded.of(np.array(index, np.int64))
        assert found[places].tolist() == [10 * i for i in index]
    assert asked[2:] == [[2, 9], [11]]


def test_an_error_of_the_reading_thread_is_raised() -> None:
    def read(index: np.ndarray) -> np.ndarray:
        raise OSError(5, "Input/output error")

    loaded = ReadAhead(read)
    loaded.read_ahead(np.arange(3))
    with pytest.raises(OSError, match="Input/output error"):
        loaded.take(np.arange(3))


def write_random(directory: Path, kind: type[IdDirectory], sequences: int, length: int) -> IdDirectory:
    """Write random sequences of equal lengths and, for the joint model, affiliations."""
    rng, words = np.random.default_rng(1), Vocabulary("abcdefgh")
    sides = kind.kind.sides
    with write_id_directory(directory, kind.kind) as writer:
        for side in range(len(sides)):
            ids = rng.integers(1, len(words) - 1, (sequences, length))
            ids[:, -1] = words.eos
            writer.append(side, ids.reshape(-1).astype(np.int32), np.full(sequences, length))
    with growing_array(directory / "affiliations.npy", np.int32) as affiliations:
        affiliations.append(rng.integers(0, length, sequences * length))
    finish_id_directory(directory, kind.kind, writer, [words] * len(sides), {})
    path = directory / kind.kind.json
    unknown = {"distinct unknown words": 1, "distinct unknown target words": 1}
    path.write_text(json.dumps(json.loads(path.read_text()) | unknown))
    return kind.open(directory)


def write_pairs(directory: Path, pairs: int, length: int) -> Pairs:
    """Write random phrase pairs, with four targets for each source phrase."""
    rng, words = np.random.default_rng(1), Vocabulary("abcdefgh")
    phrases = [
        (rng.integers(0, 8, number * length).astype(np.uint16), np.full(number, length))
        for number in (pairs // 4, pairs)
    ]
    with write_arrays(directory / "pairs.safetensors", pair_types([8, 8])) as writer:
        store = PairsWriter(writer)
        store.append(np.arange(0, pairs, 4), *phrases)
        store.finish(*[[word.encode() for word in "abcdefgh"]] * 2)
    for file in vocabulary_files(directory):
        words.write(file)
    return Pairs.open(directory / "pairs.safetensors", directory)


def make_task(name: str, directory: Path) -> Task:
    """Create a task on 16 MB of data, of many windows."""
    if name in ("lengths", "random"):
        settings = replace(RNN_PRESETS["demo"], batching=name)
        return RnnTask(write_pairs(directory, 800_000, 4), settings, 1, CPU)
    if name == "seq2seq":
        return Seq2SeqTask(write_random(directory, SentencePairs, 60_000, 30), SEQ2SEQ_PRESETS["demo"], 1, CPU)  # type: ignore[arg-type]
    if name == "cslm":
        return cslm_task(write_random(directory, Text, 100_000, 40), CSLM_PRESETS["demo"], 1, CPU)  # type: ignore[arg-type]
    return nnjm_task(write_random(directory, Examples, 40_000, 30), NNJM_PRESETS["demo"], 1, CPU)  # type: ignore[arg-type]


@reads_smaps
@pytest.mark.parametrize("name", ["lengths", "random", "seq2seq", "cslm", "nnjm"])
def test_training_leaves_no_pages_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Before the first minibatch and at any later time, the files take no memory."""
    monkeypatch.setattr(batches, "WINDOW", 1 << 12)
    task = make_task(name, tmp_path)
    assert resident_kilobytes(tmp_path) < 1000, "after the construction"
    read = task.loaded.index  # type: ignore[attr-defined]
    windows = 0
    for update in range(300):
        index = next(task.batches)
        task.tensors(index, update)
        assert task.words(index) >= len(index)
        if task.loaded.index is not read:  # type: ignore[attr-defined]
            read, windows = task.loaded.index, windows + 1  # type: ignore[attr-defined]
    task.loaded._thread.shutdown()  # type: ignore[attr-defined]
    assert windows > 1
    assert resident_kilobytes(tmp_path) < 1000, "after some windows"


def test_parts_are_read_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "APART", 3)
    released: list[int] = []
    parts = data.read_apart(lambda index: index + 1, np.arange(10), lambda: released.append(1))
    assert [part.tolist() for part in parts] == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10]]
    assert len(released) == 4
    assert [part.tolist() for part in data.read_apart(lambda index: index, np.arange(0), lambda: None)] == [[]]
