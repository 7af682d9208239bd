"""Directories of ids: written data is read back, inconsistent files are refused."""

from pathlib import Path

import numpy as np
import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.base.writing import write_json
from rnnsmt.networks.data import UNK, IdDirectory, IdFormat, Vocabulary, write_id_directory

from ..resident import reads_smaps, resident_kilobytes

PAIRS = IdFormat("pairs.json", "test-1", ("source", "target"), "prepare it again")

TEXT = IdFormat("text.json", "test-2", ("",), "prepare it again")

EOS = 9


def open_id_directory(path: Path, kind: IdFormat) -> IdDirectory:
    """Open a directory as a subclass does."""
    return type("Opened", (IdDirectory,), {"kind": kind}).open(path)


def write(path: Path, kind: IdFormat) -> dict[str, object]:
    """Write three sequences of words from w2 to w8 for each side, the second side after the first."""
    with write_id_directory(path, kind) as writer:
        for side in range(len(kind.sides)):
            writer.append(side, np.array([2, UNK, EOS, 3, EOS], np.int32), np.array([3, 2]))
        for side in range(len(kind.sides)):
            writer.append(side, np.array([side + 4, EOS], np.int32), np.array([2]))
    assert (writer.sequences, writer.ids(0), writer.unknown) == (3, 4, [1] * len(kind.sides))
    return describe(path, kind, writer.fingerprint(["h"]))


def describe(path: Path, kind: IdFormat, fingerprint: str) -> dict[str, object]:
    """Write the vocabularies and the JSON file."""
    vocabulary = Vocabulary(f"w{i}" for i in range(2, EOS))
    stats: dict[str, object] = {"format": kind.version, "fingerprint": fingerprint}
    for side in kind.sides:
        vocabulary.write(path / (f"vocab.{side}.txt" if side else "vocab.txt"))
        stats[f"{side} vocabulary".strip()] = vocabulary.hash()
    write_json(path / kind.json, stats)
    return stats


@pytest.mark.parametrize("kind", [PAIRS, TEXT], ids=["pairs", "text"])
def test_what_is_written_is_read(tmp_path: Path, kind: IdFormat) -> None:
    stats = write(tmp_path, kind)
    directory = open_id_directory(tmp_path, kind)
    assert (directory.path, directory.stats, directory.fingerprint) == (tmp_path, stats, stats["fingerprint"])
    for number, side in enumerate(directory.sides):
        phrases = [side.phrase(i).tolist() for i in range(3)]
        assert phrases == [[2, UNK, EOS], [3, EOS], [number + 4, EOS]]
    assert [vocabulary.eos for vocabulary in directory.vocabularies] == [EOS] * len(kind.sides)


def test_the_fingerprint_depends_on_ids_and_vocabularies(tmp_path: Path) -> None:
    first = write(tmp_path, TEXT)["fingerprint"]
    assert write(tmp_path, TEXT)["fingerprint"] == first
    with write_id_directory(tmp_path, TEXT) as writer:
        writer.append(0, np.array([2, EOS], np.int32), np.array([2]))
    assert first not in (writer.fingerprint(["h"]), writer.fingerprint(["other"]))
    assert writer.fingerprint(["h"]) != writer.fingerprint(["other"])


def test_an_interrupted_directory_is_refused(tmp_path: Path) -> None:
    write(tmp_path, TEXT)
    with write_id_directory(tmp_path, TEXT) as writer:
        writer.append(0, np.array([2, EOS], np.int32), np.array([2]))
    with pytest.raises(InputError, match=r"text\.json"):
        open_id_directory(tmp_path, TEXT)


def test_another_version_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "pairs.json", write(tmp_path, PAIRS) | {"format": "test-0"})
    with pytest.raises(InputError, match="written by a different version; prepare it again"):
        open_id_directory(tmp_path, PAIRS)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("source.words", [2, UNK, EOS, 3, EOS, EOS + 1, EOS]),
        ("source.words", [2, UNK, EOS, -1, EOS, 4, EOS]),
        ("source.words", [2, UNK, 3, 3, EOS, 4, EOS]),
        ("target.words", [2, UNK, EOS, 3, EOS]),
        ("source.offsets", [1, 3, 5, 7]),
        ("source.offsets", [0, 5, 3, 7]),
        ("source.offsets", [0, 3, 3, 7]),
        ("source.offsets", [0, 2**40, 5, 7]),
        ("target.offsets", [0, 3, 7]),
        ("target.offsets", []),
    ],
)
def test_ids_that_do_not_agree_are_refused(tmp_path: Path, name: str, values: list[int]) -> None:
    write(tmp_path, PAIRS)
    np.save(tmp_path / f"{name}.npy", np.array(values, np.int32 if name.endswith("words") else np.int64))
    with pytest.raises(InputError, match=r"words\.npy and .* do not agree .*prepare it again"):
        open_id_directory(tmp_path, PAIRS)


def test_a_vocabulary_of_other_ids_is_refused(tmp_path: Path) -> None:
    write(tmp_path, PAIRS)
    Vocabulary(f"v{i}" for i in range(2, EOS)).write(tmp_path / "vocab.target.txt")
    with pytest.raises(InputError, match=r"vocab\.target\.txt differs from pairs\.json"):
        open_id_directory(tmp_path, PAIRS)


@reads_smaps
def test_opening_leaves_no_pages_mapped(tmp_path: Path) -> None:
    """A process that needs a few pairs takes little memory."""
    with write_id_directory(tmp_path, TEXT) as writer:
        writer.append(0, np.full(2_000_000, EOS, np.int32), np.ones(2_000_000, np.int64))
    describe(tmp_path, TEXT, "")
    directory = open_id_directory(tmp_path, TEXT)
    assert resident_kilobytes(tmp_path) < 1000, "of 24,000"
    assert directory.sides[0].phrase(1_999_999).tolist() == [EOS]
