"""Segments of a raw corpus file, as bytes: one a line, or the ``<seg>`` elements of a WMT ``.sgm`` file."""

import codecs
import html
import lzma
import re
import zlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from rnnsmt.io import InputError, open_binary, read_bounded_lines, read_byte_lines, read_lines

LINE_BYTES = 1 << 16
"""A training line with more bytes is rejected unread."""

SGM_BYTES = 1 << 28
"""A larger ``.sgm`` file is refused: it is read as a whole."""

_SGM_SUFFIXES = (".sgm", ".sgml")

_SEG = re.compile(r"<seg\b[^>]*>(.*?)</seg\s*>", re.IGNORECASE | re.DOTALL)

_SEG_OPEN = re.compile(r"<seg\b", re.IGNORECASE)


def read_segments(path: str | Path, limit: int | None = LINE_BYTES) -> Iterator[bytes | None]:
    """Yield the raw segments of a file in order; ``None`` stands for one of more than ``limit`` bytes.

    Args:
        path: text or ``.sgm``, plain or compressed; the suffix says which.
        limit: bytes; ``None`` for test sets, where a line that is not text ends the stage instead.

    Raises:
        InputError: the file is missing, damaged, or not what its suffix says.
    """
    _check_encoding(path)
    if any(suffix.lower() in _SGM_SUFFIXES for suffix in Path(path).suffixes[-2:]):
        for segment in _sgm_segments(path):
            yield segment if limit is None or len(segment) <= limit else None
    elif limit is None:
        yield from read_byte_lines(path)
    else:
        yield from read_bounded_lines(path, limit)


def _check_encoding(path: str | Path) -> None:
    """Refuse what is no UTF-8 text with lines at its first look.

    Raises:
        InputError: UTF-16 or UTF-32, or lines that end in CR alone.
    """
    with open_binary(path) as stream:
        try:
            start = stream.read(LINE_BYTES)
        except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError):
            return  # what is damaged is noticed, with its line, by the reading
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        raise InputError(f"{path}: is UTF-16 or UTF-32, not UTF-8; convert it first, e.g. with iconv -t UTF-8")
    if b"\n" not in start and start.rstrip(b"\r").count(b"\r") > 1:
        raise InputError(f"{path}: its lines end in CR, not LF; convert it first, e.g. with tr '\\r' '\\n'")


def read_pairs(
    source: str | Path, target: str | Path, limit: int | None = LINE_BYTES
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Yield the segments of two files side by side.

    Raises:
        InputError: as ``read_segments``, or one file has fewer segments than the other.
    """
    end = object()
    rows = zip_longest(read_segments(source, limit), read_segments(target, limit), fillvalue=end)
    for number, row in enumerate(rows):
        if row[0] is end or row[1] is end:
            shorter, longer = (source, target) if row[0] is end else (target, source)
            more = sum(1 for _ in rows) + 1
            raise InputError(
                f"{shorter} has {number} lines, but {longer} has {number + more}; "
                "parallel files need the same number of lines, make or fetch them again"
            )
        yield row  # type: ignore[misc]


def _sgm_segments(path: str | Path) -> list[bytes]:
    with open_binary(path) as stream:
        try:
            raw = stream.read(SGM_BYTES + 1)
        except (EOFError, OSError, ValueError) as error:
            raise InputError(f"{path}: damaged ({error}); make or fetch it again") from None
    if len(raw) > SGM_BYTES:
        raise InputError(f"{path}: larger than {SGM_BYTES} bytes; WMT's .sgm files are small, is this one?")
    text = raw.decode("utf-8", "surrogateescape")
    segments = _SEG.findall(text)
    if not segments:
        raise InputError(f"{path}: no <seg> element in it; is this a WMT .sgm file?")
    opened = list(_SEG_OPEN.finditer(text))
    if len(opened) != len(segments) or any(_SEG_OPEN.search(segment) for segment in segments):
        line = _first_unclosed(text, [match.start() for match in opened])
        raise InputError(f"{path}, line {line}: a <seg> without its </seg>; repair the file or fetch it again")
    return [
        html.unescape(segment).replace("\n", " ").strip().encode("utf-8", "surrogateescape") for segment in segments
    ]


def _first_unclosed(text: str, starts: list[int]) -> int:
    """The line of the first ``<seg`` that has no ``</seg>`` before the next one."""
    for start, following in zip_longest(starts, starts[1:], fillvalue=len(text)):
        if "</seg" not in text[start:following].lower():
            return text.count("\n", 0, start) + 1
    return text.count("\n", 0, starts[-1]) + 1


def all_lines(paths: list[str]) -> Iterator[str]:
    empty = True
    for path in paths:
        for line in read_lines(path):
            empty = False
            yield line
    if empty:
        raise InputError(f"{', '.join(paths)}: no lines at all")
