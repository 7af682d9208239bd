"""Gzip files that several threads write in blocks."""

import gzip
import os
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rnnsmt.base import parallel
from rnnsmt.base.parallel import atomic_blocks

here = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@here
@given(st.lists(st.binary(max_size=50), max_size=8), st.integers(1, 40), st.integers(1, 3))
def test_content_comes_back_as_one_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: list[bytes], block: int, threads: int
) -> None:
    monkeypatch.setattr(parallel, "BLOCK_BYTES", block)
    path = tmp_path / "file.gz"
    with atomic_blocks(path, threads) as out:
        for part in parts:
            out.write(part)
    data = path.read_bytes()
    assert gzip.decompress(data) == b"".join(parts)
    stream = zlib.decompressobj(31)
    assert stream.decompress(data) == b"".join(parts)
    assert stream.eof
    assert not stream.unused_data


def test_bytes_depend_on_the_content_alone(tmp_path: Path) -> None:
    content = b"".join(b"line %d\n" % (i * i) for i in range(400000))
    for name, threads, step in (("a.gz", 1, 100000), ("b.gz", 3, 77777), ("c.gz", 2, len(content))):
        with atomic_blocks(tmp_path / name, threads) as out:
            for start in range(0, len(content), step):
                out.write(memoryview(content)[start : start + step])
    first = (tmp_path / "a.gz").read_bytes()
    assert (tmp_path / "b.gz").read_bytes() == first
    assert (tmp_path / "c.gz").read_bytes() == first
    assert gzip.decompress(first) == content


@pytest.mark.parametrize("name", ["file.gz", "file.bz2", "file"])
def test_an_error_leaves_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(RuntimeError), atomic_blocks(tmp_path / name, 2) as out:
        out.write(os.urandom(3 << 20))
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
