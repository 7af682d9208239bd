"""Reading raw segments: limited line length, .sgm files, parallel files."""

import bz2
import gzip
import lzma
import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnsmt.base.errors import InputError
from rnnsmt.base.reading import read_bounded_lines, read_byte_lines, read_line_blocks
from rnnsmt.corpus.bitext_files import RawCorpus
from rnnsmt.corpus.raw_text import read_segments


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


@given(st.lists(st.binary(max_size=9).map(lambda raw: b"-" + raw.replace(b"\n", b"-"))))
def test_any_bounded_lines(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("f") / "f.gz"
    path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in lines)))
    assert list(read_bounded_lines(path, 6)) == [line if len(line) <= 6 else None for line in lines]


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
        list(RawCorpus((str(tmp_path / "a"), str(tmp_path / "b")), ("en", "fr")).rows())
    with pytest.raises(InputError, match=r"b has 1 lines, but .*a has 3"):
        list(RawCorpus((str(tmp_path / "b"), str(tmp_path / "a")), ("en", "fr")).rows())


def test_bad_bytes_in_sgm_reach_the_caller_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.sgm").write_bytes(b'<doc><seg id="1">caf\xe9 &#233; &unknown; &amp;amp;</seg></doc>')
    assert list(read_segments(tmp_path / "a.sgm")) == [b"caf\xe9 \xc3\xa9 &unknown; &amp;"]


def test_long_sgm_segments_are_over_long_lines(tmp_path: Path) -> None:
    (tmp_path / "a.sgm").write_bytes(b"<seg>" + b"x" * 20 + b"</seg><seg>y</seg>")
    assert list(read_segments(tmp_path / "a.sgm", 10)) == [None, b"y"]


@pytest.mark.parametrize(
    "content",
    [
        b"<srcset>" + b"<src lang=" * 6_500,
        b"<srcset><src " + b"lang=" * 13_000,
        b"<srcset>" + b"<src " * 13_000 + b"lang=x><ref ",
        b"<srcset>" + b"<seg>" * 60_000,
        b"<srcset>" + b"<seg " * 60_000,
        b"<srcset><seg>" + b"</seg " * 50_000,
        b"<srcset><seg>a</seg" + b" " * 300_000,
        b"<srcset>" + b"<SEG>a</SEG><seg>" * 20_000,
        b"<srcset><seg " + b"/" * 300_000,
        b"<srcset><seg>" + b"<!--" * 70_000,
        b"<srcset><seg>" + b"<doc " * 60_000,
        b"<srcset><seg><doc " + b"docid" * 50_000 + b">",
    ],
)
def test_hostile_markup_is_refused_at_once(tmp_path: Path, content: bytes) -> None:
    """Malicious markup is refused in linear time; regular expressions needed minutes for it."""
    (tmp_path / "a").write_bytes(content)
    start = time.process_time()
    with pytest.raises(InputError, match="seg>"):
        list(read_segments(tmp_path / "a"))
    assert time.process_time() - start < 2


def test_segments_of_unusual_markup(tmp_path: Path) -> None:
    (tmp_path / "a.sgm").write_bytes(b'</seg><srcset>\n<SEG\nid="1">a\nb</Seg \n><segment>no</segment><seg></seg><hr>')
    assert list(read_segments(tmp_path / "a.sgm")) == [b"a b", b""]


def test_empty_segments_comments_and_encodings(tmp_path: Path) -> None:
    (tmp_path / "a.sgm").write_bytes(
        b'<srcset>\n<seg id="1"/>\n<!-- <seg>old</seg>\n--><seg id=2 />\n<seg>a/b <!-- x -->c</seg>\n'
        b"<seg></seg> <!-- <seg>d</seg>"
    )
    assert list(read_segments(tmp_path / "a.sgm")) == [b"", b"", b"a/b c", b"", b"d"]
    declared = b"<?xml version='1.0' encoding='%s'?><refset><seg>\xe9t\xe9 &#233;</seg></refset>"
    (tmp_path / "b").write_bytes(declared % b"ISO-8859-1")
    assert list(read_segments(tmp_path / "b")) == ["été é".encode()]
    (tmp_path / "b").write_bytes(declared % b"UTF-8")
    assert list(read_segments(tmp_path / "b")) == [b"\xe9t\xe9 \xc3\xa9"]
    (tmp_path / "b").write_bytes(declared.replace(b"\xe9", "é".encode()) % b"ISO-8859-1")  # wrongly declared
    assert list(read_segments(tmp_path / "b")) == ["été é".encode()]
    (tmp_path / "b").write_bytes(declared % b"iso-0")
    with pytest.raises(InputError, match="b, line 1: not in the encoding iso-0 that it declares; convert it to UTF-8"):
        list(read_segments(tmp_path / "b"))


def test_several_systems_in_one_file(tmp_path: Path) -> None:
    document = '<doc docid="{}" sysid="{}"><seg id="1">{}</seg></doc>\n'.format
    (tmp_path / "a.sgm").write_text("<refset>\n" + document("x", "r", "a") + document("y", "s", "b"))
    assert list(read_segments(tmp_path / "a.sgm")) == [b"a", b"b"]
    (tmp_path / "a.sgm").write_text("<refset>\n" + document("x", "r", "a") + document("x", "s", "b"))
    with pytest.raises(InputError, match=r"a\.sgm, line 3: contains the document x of r and of s; write every system"):
        list(read_segments(tmp_path / "a.sgm"))


@pytest.mark.parametrize(
    ("content", "line"), [(b"<srcset>\n<seg>a</seg>\n<seg>b\n<seg>c</seg>", 3), (b"<mteval>\n<seg </seg>", 2)]
)
def test_the_line_of_an_unclosed_segment(tmp_path: Path, content: bytes, line: int) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(InputError, match=f"line {line}: <seg> without </seg>"):
        list(read_segments(tmp_path / "a"))


@pytest.mark.parametrize("side", [b"ref", b"hyp"])
def test_one_file_with_several_sides_is_refused(tmp_path: Path, side: bytes) -> None:
    start = b'<dataset id="x"><doc origlang="en"><src lang="en"><seg>a</seg></src>'
    (tmp_path / "a").write_bytes(start + b"<" + side + b' lang="fr"><seg>b</seg>')
    with pytest.raises(InputError, match="contains source and references in one file"):
        list(read_segments(tmp_path / "a"))
    (tmp_path / "b").write_bytes(start)
    assert list(read_segments(tmp_path / "b")) == [b"a"]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_small_file_does_not_unpack_to_a_huge_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr("rnnsmt.base.opening.ALWAYS_UNPACKED", 1 << 17)
    line = b"a ||| b ||| 1 1 1 1 ||| 0-0\n"
    for content, is_refused in (
        (line * 20_000, True),
        (line * 4_000, False),
        (random.Random(1).randbytes(1 << 18), False),
    ):
        (tmp_path / "t").write_bytes(pack(content))
        for read in (read_line_blocks, read_byte_lines, read_segments):
            if is_refused:
                with pytest.raises(InputError, match="t: expands to more than 100 times its size; if this is intended"):
                    list(read(tmp_path / "t"))
            else:
                assert sum(map(len, read(tmp_path / "t"))) >= len(content) - content.count(b"\n")
