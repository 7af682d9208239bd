"""Directories of ids: written data is read back, inconsistent files are refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.base.io import InputError, write_json
from rnnsmt.networks.data import UNK, IdFormat, check_vocabulary, open_id_directory, write_about, write_id_directory

from ..resident import reads_smaps, resident_kilobytes

PAIRS = IdFormat("pairs.json", "test-1", "pairs", ("source", "target"), "prepare it again")

TEXT = IdFormat("text.json", "test-2", "sentences", ("",), "prepare it again")

EOS = 9


def write(path: Path, kind: IdFormat) -> dict[str, object]:
    """Write three sequences for each side, the second side after the first."""
    with write_id_directory(path, kind) as writer:
        for side in range(len(kind.sides)):
            writer.append(side, np.array([2, UNK, EOS, 3, EOS], np.int32), np.array([3, 2]))
        for side in range(len(kind.sides)):
            writer.append(side, np.array([side + 4, EOS], np.int32), np.array([2]))
    assert (writer.sequences, writer.ids(0), writer.unknown) == (3, 4, [1] * len(kind.sides))
    stats: dict[str, object] = {"format": kind.version, kind.sequences: 3, "fingerprint": writer.fingerprint(["h"])}
    for side in kind.sides:
        stats |= {f"{side} classes".strip(): EOS + 1, f"{side} vocabulary".strip(): f"hash of {side}"}
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
    for side in kind.sides:
        check_vocabulary(directory, kind, side, f"hash of {side}")
        with pytest.raises(InputError, match=rf"vocab\.{side}\.?txt is newer than {kind.json}; prepare it again"):
            check_vocabulary(directory, kind, side, "another")


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "test-0"}, "written by a different version; prepare it again"),
        ({"pairs": 4}, "source.words.npy and source.offsets.npy do not match"),
        ({"target classes": EOS}, "target.words.npy and target.offsets.npy do not match"),
    ],
)
def test_other_numbers_are_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    write(tmp_path, PAIRS)
    stats = json.loads((tmp_path / "pairs.json").read_text()) | change
    write_json(tmp_path / "pairs.json", stats)
    with pytest.raises(InputError, match=message):
        open_id_directory(tmp_path, PAIRS)


def test_a_damaged_number_is_refused(tmp_path: Path) -> None:
    """A changed digit of a statistic that nothing else depends on is detected by the checksum."""
    write_about(tmp_path, PAIRS, write(tmp_path, PAIRS) | {"distinct unknown words": 17})
    assert open_id_directory(tmp_path, PAIRS).stats["distinct unknown words"] == 17
    path = tmp_path / "pairs.json"
    path.write_text(path.read_text().replace("17", "37"))
    with pytest.raises(InputError, match=r"checksum mismatch\); prepare it again"):
        open_id_directory(tmp_path, PAIRS)


@pytest.mark.parametrize("value", [None, {}, "3", 1.5])
def test_what_is_no_number_is_refused(tmp_path: Path, value: object) -> None:
    """A value that is not a number is refused even if the checksum is right."""
    write_about(tmp_path, PAIRS, write(tmp_path, PAIRS) | {"distinct": value})
    directory = open_id_directory(tmp_path, PAIRS)
    assert directory.number("pairs", PAIRS) == 3
    with pytest.raises(InputError, match="distinct: not a number; prepare it again"):
        directory.number("distinct", PAIRS)
    with pytest.raises(InputError, match="other: not a number"):
        directory.number("other", PAIRS)


@reads_smaps
def test_the_check_of_the_ids_leaves_no_pages_mapped(tmp_path: Path) -> None:
    """Unmap what the check has read, so that a process that needs a few pairs takes little memory."""
    with write_id_directory(tmp_path, TEXT) as writer:
        writer.append(0, np.full(2_000_000, EOS, np.int32), np.ones(2_000_000, np.int64))
    write_about(tmp_path, TEXT, {"format": TEXT.version, "sentences": 2_000_000, "classes": EOS + 1, "fingerprint": ""})
    directory = open_id_directory(tmp_path, TEXT)
    assert resident_kilobytes(tmp_path) < 1000, "of 24,000"
    assert directory.sides[0].phrase(1_999_999).tolist() == [EOS]
