"""Reading raw segments: bounded lines, .sgm, parallel files."""

import gzip
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnsmt.base.io import InputError, read_bounded_lines
from rnnsmt.corpus.reading import read_pairs, read_segments


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"abcd", [b"abcd"]),
        (b"abcd\n", [b"abcd"]),
        (b"abcde", [None]),
        (b"abcde\n", [None]),
        (b"abcdefghijklmnop\nx", [None, b"x"]),
        (b"a\n" + b"b" * 4 + b"\n" + b"c" * 5 + b"\n" + b"d" * 10 + b"\n\ne", [b"a", b"bbbb", None, None, b"", b"e"]),
    ],
)
def test_bounded_lines(tmp_path: Path, content: bytes, lines: list[bytes | None]) -> None:
    (tmp_path / "f").write_bytes(content)
    assert list(read_bounded_lines(tmp_path / "f", 4)) == lines


@given(st.lists(st.binary(max_size=9).map(lambda raw: raw.replace(b"\n", b"-"))))
def test_any_bounded_lines(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("f") / "f.gz"
    path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in lines)))
    assert list(read_bounded_lines(path, 5)) == [line if len(line) <= 5 else None for line in lines]


def test_an_endless_line_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "f.gz"
    with gzip.open(path, "wb", 1) as out:
        for _ in range(30):
            out.write(b"x" * (1 << 20))
        out.write(b"\nend\n")
    tracemalloc.start()
    lines = list(read_segments(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines == [None, b"end"]
    assert peak < 5 << 20


def test_pairs_name_both_counts(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n2\n3\n")
    (tmp_path / "b").write_bytes(b"1\n")
    with pytest.raises(InputError, match=r"b has 1 lines, but .*a has 3"):
        list(read_pairs(tmp_path / "a", tmp_path / "b"))
    with pytest.raises(InputError, match=r"b has 1 lines, but .*a has 3"):
        list(read_pairs(tmp_path / "b", tmp_path / "a"))


def test_bad_bytes_in_sgm_reach_the_caller_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.sgm").write_bytes(b'<doc><seg id="1">caf\xe9 &#233; &unknown; &amp;amp;</seg></doc>')
    assert list(read_segments(tmp_path / "a.sgm")) == [b"caf\xe9 \xc3\xa9 &unknown; &amp;"]


def test_long_sgm_segments_are_over_long_lines(tmp_path: Path) -> None:
    (tmp_path / "a.sgm").write_bytes(b"<seg>" + b"x" * 20 + b"</seg><seg>y</seg>")
    assert list(read_segments(tmp_path / "a.sgm", 10)) == [None, b"y"]
