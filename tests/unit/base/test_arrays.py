"""Arrays in files."""

from pathlib import Path

import numpy as np
import pytest

from rnnsmt.base.arrays import growing_array, read_array
from rnnsmt.base.errors import InputError


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_they_are_read_as_written(tmp_path: Path, size: int) -> None:
    path, values = tmp_path / "a.npy", np.arange(size)
    with growing_array(path, np.int64) as out:
        out.append(values[: size // 2])
        out.append(values[size // 2 :])
    assert np.array_equal(read_array(path, np.int64, "again"), values)
    assert np.array_equal(np.load(path), values)


def test_incomplete_and_other_files_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.arange(300))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"a\.npy: not a complete \.npy file; prepare again"):
        read_array(path, np.int64, "prepare again")
    np.save(path, np.arange(300).reshape(100, 3))
    with pytest.raises(InputError, match=r"int64 in 2 dimension\(s\), expected: int64 in 1"):
        read_array(path, np.int64, "prepare again")
