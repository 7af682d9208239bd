"""Mutations of bytes, lines and values with the tokens of the formats."""

import bz2
import gzip
import lzma
import random
from typing import Any

NUMBERS = [
    *("nan", "-nan", "inf", "-inf", "1e999", "-1e308", "1e-400", "-0", "0", "0x10", "1_0", "+1", "1.", ".5", "1e", "٣"),
    *("-1", "255", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "9" * 400),
]
"""Texts in place of numbers."""

CHARACTERS = [b"\0", b"\r", b"\r\n", b"\x0b", b"\x1f", b"\x85", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xed\xa0\x80",
              b"\xe2\x80\xa8", b"\xc2\xa0", b"\xcc\x81", b"\t", b" ", b"\n", b"\\", b'"', b"'"]  # fmt: skip
"""Bytes that readers may take for something else."""

LONGEST = 1 << 19
"""Maximum size in bytes of a mutated file."""

VALUES: list[Any] = [None, True, False, "", "x", [], {}, 1.5, float("nan"), float("inf"), -1, 0, 1, 2, 1 << 31, 1 << 62,
                     1 << 70, "9" * 50, "a\nb", "../../etc", "/dev/zero", "\0", "ü" * 300, [None], {"": None}, [[]],
                     [1 << 40, 1 << 40], {"a": {"a": {"a": 1}}}]  # fmt: skip
"""Values of the wrong type or out of range."""


def flipped(data: bytes, rng: random.Random) -> bytes:
    """Return a file with some bits flipped, or with a part removed, overwritten, doubled or moved."""
    changed = bytearray(data)
    kind = rng.random()
    begin = rng.randrange(len(changed))
    size = min(rng.choice([1, 8, 64, 512]), len(changed) - begin)
    if kind < 0.08:
        return bytes(changed[:begin])
    if kind < 0.16:
        changed[begin : begin + size] = rng.randbytes(size)
    elif kind < 0.2:
        changed[begin:begin] = changed[begin : begin + size]
    elif kind < 0.24:
        other = rng.randrange(len(changed))
        part = bytes(changed[begin : begin + size])
        changed[other : other + len(part)] = part
    elif kind < 0.26:
        changed += rng.randbytes(size)
    else:
        for _ in range(rng.choice([1, 1, 1, 4, 40, 400])):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def mutated_text(data: bytes, rng: random.Random, tokens: list[bytes], other: bytes) -> bytes:
    """Return a text with a few changes of bytes, words, fields and lines.

    Args:
        data: the text.
        rng: source of the changes.
        tokens: words of the format.
        other: another text, parts of which are inserted.
    """
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        data = rng.choice(_CHANGES)(data, rng, tokens, other)[:LONGEST]
    return data


def _token(rng: random.Random, tokens: list[bytes]) -> bytes:
    kind = rng.random()
    if kind < 0.4 and tokens:
        return rng.choice(tokens)
    if kind < 0.65:
        return rng.choice(NUMBERS).encode()
    if kind < 0.9:
        return rng.choice(CHARACTERS)
    return rng.choice([b"a", b"\xc3\xa9", b"[", b"(", b"<", *tokens, *CHARACTERS]) * rng.choice([50, 3000, 70_000])


def _bytes(data: bytes, rng: random.Random, tokens: list[bytes], other: bytes) -> bytes:
    return flipped(data, rng) if data else _token(rng, tokens)


def _inserted(data: bytes, rng: random.Random, tokens: list[bytes], other: bytes) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + _token(rng, tokens) + data[place:]


def _word(data: bytes, rng: random.Random, tokens: list[bytes], other: bytes) -> bytes:
    """Replace, remove or double a word of a line."""
    return _in_line(data, rng, lambda line: _part(line, rng.choice([b" ", b" ", b"\t", b"=", b"-"]), rng, tokens))


def _field(data: bytes, rng: random.Random, tokens: list[bytes], other: bytes) -> bytes:
    """Replace, remove or double a field of a line."""
    return _in_line(data, rng, lambda line: _part(line, b" ||| ", rng, tokens))


def _part(line: bytes, separator: bytes, rng: random.Random, tokens: list[bytes]) -> bytes:
    parts = line.split(separator)
    place = rng.randrange(len(parts))
    parts[place : place + 1] = rng.choice(
        [[_token(rng, tokens)], [_token(rng, tokens)], [], [parts[place]] * 2, [b""], [parts[place]] * 500]
    )
    return separator.join(parts)


def _in_line(data: bytes, rng: random.Random, change: Any) -> bytes:
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    lines[place] = change(lines[place])
    return b"\n".join(lines)


def _lines(data: bytes, rng: random.Random, tokens: list[bytes], other: bytes) -> bytes:
    """Remove, double, move or empty lines, or insert lines of another text."""
    lines = data.split(b"\n")
    place, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(6)
    if kind == 0:
        del lines[place : place + rng.choice([1, 1, 3, len(lines)])]
    elif kind == 1:
        lines[place:place] = [lines[place]] * rng.choice([1, 1, 2000])
    elif kind == 2:
        lines[place], lines[second] = lines[second], lines[place]
    elif kind == 3:
        lines[place:place] = [b""] * rng.choice([1, 1000])
    elif kind == 4:
        lines[place] = rng.choice(other.split(b"\n"))
    else:
        lines[place] = _token(rng, tokens)
    return b"\n".join(lines)


def _whole(data: bytes, rng: random.Random, tokens: list[bytes], other: bytes) -> bytes:
    """Change the encoding, the line ends or all of a file."""
    cut = rng.randrange(len(data) + 1)
    packed = rng.choice([gzip.compress, bz2.compress, lzma.compress])(data)
    return rng.choice(
        [
            data.replace(b"\n", rng.choice([b"\r", b"\r\n", b" ", b"\n\n"])),
            data.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-32", "utf-8-sig", "utf-7"])),
            rng.choice([b"", b"\n", b"\0" * 100, b"\n" * 1000, rng.randbytes(200)]),
            other,
            data + rng.choice([data, other]),
            flipped(packed, rng) if rng.random() < 0.7 else packed,
            data[:cut] + other[cut:],
        ]
    )


_CHANGES = [_bytes, _inserted, _inserted, _word, _word, _word, _field, _field, _lines, _lines, _whole]


def mutated_value(value: Any, rng: random.Random, names: list[str]) -> Any:
    """Return a tree of maps, lists and values with one of its parts changed, removed, doubled or renamed.

    Args:
        value: the tree, which is changed.
        rng: source of the change.
        names: keys of the format.
    """
    where: Any = {"": value}
    root, key = where, ""
    while isinstance(where[key], (dict, list)) and where[key] and rng.random() < 0.85:
        where = where[key]
        key = rng.choice(list(where)) if isinstance(where, dict) else rng.randrange(len(where))
    old, kind = where[key], rng.random()
    if kind < 0.12:
        del where[key]
    elif kind < 0.2 and isinstance(where, dict):
        where[rng.choice([*names, "x", "", 3, None])] = where.pop(key)
    elif kind < 0.3 and isinstance(old, (list, str)) and old:
        where[key] = rng.choice([old + old, old * 100, old[:1], old[::-1]])
    elif kind < 0.6 and isinstance(old, (int, float)) and not isinstance(old, bool):
        where[key] = rng.choice([-old, old + 1, old - 1, old * 1000, old / 3, str(old), 0, [old], 1e300, -64, 64])
    elif kind < 0.7:
        where[key] = rng.choice(names) if names else rng.choice(VALUES)
    else:
        where[key] = rng.choice(VALUES)
    return root.get("")
