"""Reading of text files: lines and checks of lines (UTF-8, length, control characters), parallel files, JSON."""

import io
import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, cast

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import DAMAGED, damage, open_text
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import warn

MAX_LINE_BYTES = 1 << 24
"""Maximum line length in bytes. A longer line is not text; an error is raised before it fills the memory."""


def read_byte_lines(path: StrPath) -> Iterator[bytes]:
    """Yield the lines of a file as bytes without their ``\\n``."""
    with open_text(path) as stream:
        yield from byte_lines(stream, path)


def byte_lines(raw: io.BufferedReader, path: StrPath) -> Iterator[bytes]:
    """Yield the lines of an open file like ``read_byte_lines``; ``path`` is used in error messages."""
    for number, line in enumerate(bounded_lines(raw, path, MAX_LINE_BYTES), 1):
        if line is None:
            raise InputError(
                f"{path}, line {number}: longer than {MAX_LINE_BYTES} bytes; "
                "is this a text file with one segment per line?"
            )
        yield line


def read_bounded_lines(path: StrPath, limit: int) -> Iterator[bytes | None]:
    """Yield the lines of a file as bytes without their ``\\n``, or ``None`` for a line of more than ``limit`` bytes.

    At most ``limit`` bytes of a line are held in memory.
    """
    with open_text(path) as stream:
        yield from bounded_lines(stream, path, limit)


def bounded_lines(raw: io.BufferedReader, path: StrPath, limit: int) -> Iterator[bytes | None]:
    """Yield the lines of an open file like ``read_bounded_lines``; ``path`` is used in error messages."""
    number = 0
    stream = io.BufferedReader(cast(io.RawIOBase, raw), 1 << 18)
    while True:
        try:
            line = stream.readline(limit + 1)
            too_long = len(line) > limit and not line.endswith(b"\n")
            rest = line if too_long else b"\n"
            while rest and not rest.endswith(b"\n"):
                rest = stream.readline(limit + 1)
        except DAMAGED as error:
            raise damage(path, number, error) from None
        if not line:
            return
        number += 1
        if too_long:
            yield None
        else:
            yield line[:-1] if line.endswith(b"\n") else line


def check_utf8(block: bytes, path: StrPath, lines: int) -> None:
    """Check that a block of whole lines is UTF-8.

    Args:
        path: the file, for the error message.
        lines: number of lines before the block, for the error message.
    """
    try:
        block.decode()
    except UnicodeDecodeError as error:
        number = lines + block.count(b"\n", 0, error.start) + 1
        start = error.start - (block.rfind(b"\n", 0, error.start) + 1)
        raise InputError(f"{path}, line {number}: not UTF-8 at byte {start}; convert the file to UTF-8") from None


_CONTROLS = bytes([*range(10), *range(11, 32), 127])
"""Control characters of ASCII other than the line feed."""

_UNFIT = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\|\|\|")
"""Control characters and the separator of the fields of tables."""

_C1 = re.compile(b"\xc2[\x80-\x9f]")


def check_tokenised(block: bytes, path: StrPath, lines: int = 0) -> None:
    """Check that a block of whole lines of tokenised text is UTF-8 and contains no control characters and no ``|||``.

    A carriage return or a tab would become part of a word. ``|||`` separates the fields in the lines of a phrase table.
    Arguments are as in ``check_utf8``.
    """
    check_utf8(block, path, lines)
    # three fast tests: a search for all alternatives with ``_UNFIT`` takes ten times as long
    if b"|||" not in block and len(block.translate(None, _CONTROLS)) == len(block) and not _C1.search(block):
        return
    found = _UNFIT.search(block)
    assert found
    line = lines + block.count(b"\n", 0, found.start()) + 1
    if found[0] == b"|||":
        raise InputError(f"{path}, line {line}: contains |||, the field separator of Moses; escape it")
    raise InputError(
        f"{path}, line {line}: control character U+{ord(found[0].decode()):04X}; "
        "clean the text with `rnnsmt corpus prepare --keep-all` first"
    )


def read_line_blocks(path: StrPath, size: int = 1 << 21) -> Iterator[bytes]:
    """Yield a file in blocks of whole lines of about ``size`` bytes, including their ``\\n``.

    For large files, for which a Python loop over lines is too slow. A missing ``\\n`` at the end of the file is added.
    """
    lines = 0
    rest = b""
    with open_text(path) as raw:
        while True:
            try:
                data = raw.read(size)
            except DAMAGED as error:
                raise damage(path, lines, error) from None
            if not data:
                break
            rest += data
            end = rest.rfind(b"\n") + 1
            if end:
                block, rest = rest[:end], rest[end:]
                lines += block.count(b"\n")
                yield block
            if len(rest) > MAX_LINE_BYTES:
                raise InputError(
                    f"{path}, line {lines + 1}: longer than {MAX_LINE_BYTES} bytes; "
                    "is this a text file with one segment per line?"
                )
    if rest:
        yield rest + b"\n"


def read_whole(path: StrPath, limit: int) -> bytes | None:
    """Return the content of a file, or None if it has more than ``limit`` bytes."""
    with open_text(path) as stream:
        try:
            content = stream.read(limit + 1)
        except DAMAGED as error:
            raise damage(path, None, error) from None
    return content if len(content) <= limit else None


STANDARD_STREAM = "-"
"""Path that denotes standard input or output."""


def read_lines_or_stdin(path: StrPath) -> Iterator[str]:
    """Yield the lines of a UTF-8 file like ``read_lines``, or of standard input if the path is ``-``."""
    if str(path) != STANDARD_STREAM:
        yield from read_lines(path)
        return
    for number, line in enumerate(sys.stdin.buffer, 1):
        yield decoded(line.removesuffix(b"\n"), "standard input", number)


def read_lines(path: StrPath) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their ``\\n``."""
    for number, line in enumerate(read_byte_lines(path), 1):
        yield decoded(line, path, number)


def decoded(line: bytes, path: StrPath, number: int) -> str:
    """Decode a line; path and line number (from 1) are used in the error message."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, line {number}: not UTF-8 at byte {error.start}; convert the file to UTF-8") from None


def words_of(sentence: str) -> list[str]:
    """Return the words of a tokenised sentence, separated by ASCII spaces as in phrase tables."""
    return [word for word in sentence.split(" ") if word]


def read_parallel(*paths: StrPath) -> Iterator[tuple[str, ...]]:
    """Yield tuples of corresponding lines of several files."""
    streams = [read_lines(path) for path in paths]
    number = 0
    while True:
        row = [next(stream, None) for stream in streams]
        if all(line is None for line in row):
            return
        for path, line in zip(paths, row, strict=True):
            if line is None:
                longer = next(p for p, other in zip(paths, row, strict=True) if other is not None)
                raise InputError(
                    f"{path} ends after line {number}, but {longer} has more lines; "
                    "parallel files must have the same number of lines"
                )
        number += 1
        yield tuple(cast(list[str], row))


def read_references(text: StrPath, references: Sequence[StrPath]) -> tuple[list[str], list[list[str]]]:
    """Read a text, usually decoder output, and its references.

    All files must have the same number of lines, which must not all be empty. The number of empty lines is logged as a
    warning.
    """
    columns = list(zip(*read_parallel(text, *references), strict=True))
    if not columns:
        raise InputError(f"{text}: contains no lines; create the file again")
    for path, column in zip([text, *references], columns, strict=True):
        empty = sum(1 for line in column if not line.strip())
        if empty == len(column):
            raise InputError(f"{path}: all {len(column)} lines are empty; create the file again")
        if empty:
            warn(f"{path}: {empty} of {len(column)} lines are empty")
    return list(columns[0]), [list(column) for column in columns[1:]]


def read_dev_set(source: StrPath, references: Sequence[StrPath]) -> tuple[list[str], list[list[str]]]:
    """Read and check a dev set for `tuning tune`, `tuning optimize` and `moses tune`; see ``read_references``.

    Returns:
        The source sentences, and the translations in each reference.
    """
    return read_references(source, references)


def count_lines(path: StrPath) -> int:
    """Return the number of lines of a file."""
    return sum(1 for _ in read_byte_lines(path))


def read_json(path: StrPath) -> Any:
    """Read a JSON file."""
    text = "\n".join(read_lines(path))
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where, what = f"{path}, line {error.lineno}", error.msg
    except RecursionError:
        where, what = f"{path}", "nested too deeply"
    except ValueError:  # int() has a limit
        where, what = f"{path}", "a number has too many digits"
    raise InputError(f"{where}: not valid JSON ({what}); remove the file and run the command again")
