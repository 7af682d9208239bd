"""Gzip files that several threads write in blocks."""

import gzip
import os
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rnnsmt.base import opening, parallel
from rnnsmt.base.errors import InputError
from rnnsmt.base.parallel import atomic_blocks
from rnnsmt.base.reading import read_line_blocks
from rnnsmt.base.writing import atomic_binary

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


def test_our_own_files_are_not_refused_as_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An alignment of lines ``0-0`` is compressed to a thousandth; smaller files have the same bytes as before."""
    content = b"0-0\n" * 1_000_000
    sizes = []
    for limit in (1 << 26, 1 << 20):
        monkeypatch.setattr(opening, "ALWAYS_UNPACKED", limit)
        for write in (atomic_blocks, atomic_binary):
            with write(tmp_path / "file.gz") as out:
                out.write(content)
            data = (tmp_path / "file.gz").read_bytes()
            sizes.append(len(data))
            assert b"".join(read_line_blocks(tmp_path / "file.gz")) == content
            stream = zlib.decompressobj(31)
            assert stream.decompress(data) == content
            assert stream.eof
            assert not stream.unused_data
    assert max(sizes[:2]) < 20_000
    assert all(40_000 <= size < 46_000 for size in sizes[2:])
    (tmp_path / "stranger.gz").write_bytes(gzip.compress(content))
    with pytest.raises(InputError, match="expands to more than 100 times its size"):
        list(read_line_blocks(tmp_path / "stranger.gz"))


@pytest.mark.parametrize("name", ["file.gz", "file.bz2", "file"])
def test_an_error_leaves_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(RuntimeError), atomic_blocks(tmp_path / name, 2) as out:
        out.write(os.urandom(3 << 20))
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
