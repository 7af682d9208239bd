"""Arrays in files: errors for damaged files, and files without a checksum."""

from pathlib import Path

import numpy as np
import pytest

from rnnsmt.base.arrays import growing_array, read_array, write_array
from rnnsmt.base.io import InputError


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("size", [0, 1, 1000])
def test_they_are_read_as_written(tmp_path: Path, size: int, mapped: bool) -> None:
    path, values = tmp_path / "a.npy", np.arange(size)
    with growing_array(path, np.int64) as out:
        out.append(values[: size // 2])
        out.append(values[size // 2 :])
    one = path.read_bytes()
    assert np.array_equal(read_array(path, np.int64, 1, "again", mapped), values)
    assert np.array_equal(np.load(path), values)
    write_array(path, values)
    assert path.read_bytes()[-32:] == one[-32:]
    np.save(path, values)
    assert np.array_equal(read_array(path, np.int64, 1, "again", mapped), values)


def test_damage_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    write_array(path, np.arange(300).reshape(100, 3))
    data = path.read_bytes()
    for place in (200, 1000, len(data) - 1, len(data) - 40):
        path.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        with pytest.raises(InputError, match=r"a\.npy: is damaged \(checksum mismatch\); prepare again"):
            read_array(path, np.int64, 2, "prepare again")
    for shorter in (data[:-1], data[:-39], data + b"x"):
        path.write_bytes(shorter)
        with pytest.raises(InputError, match="is damaged"):
            read_array(path, np.int64, 2, "prepare again", mapped=True)
