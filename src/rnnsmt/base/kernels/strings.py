"""Byte strings in flat arrays: number parsing, and hash tables of distinct strings (interning).

Model files have millions of lines. They are parsed as ``uint8`` arrays, without a Python object per line.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.numbers import mix
from rnnsmt.base.kernels.probing import first_slot, free_slot, next_slot

_OFFSET = np.uint64(0xCBF29CE484222325)
"""Offset basis of 64-bit FNV-1a."""

_PRIME = np.uint64(0x100000001B3)
"""Prime of 64-bit FNV-1a."""

_NEWLINE, _SPACE = 10, 32

POW10 = 10.0 ** np.arange(0, 309, dtype=np.float64)
"""float64 [309], 10^0 to 10^308, argument of ``parse_float``."""


@kernel()
def hash_bytes(buffer, begin, end):
    """Return the FNV-1a hash of ``buffer[begin:end]``, with its bits mixed by ``mix``, as ``uint64``."""
    value = _OFFSET
    for position in range(begin, end):
        value = (value ^ np.uint64(buffer[position])) * _PRIME
    return mix(value)


@kernel()
def parse_float(buffer, begin, end, pow10):  # noqa: PLR0911, PLR0912, PLR0915
    """Parse the decimal number in ``buffer[begin:end]``.

    The result may differ from the nearest double in the last bits: at most 18 significant digits are used, and the
    power of ten is applied in floating point.

    Args:
        buffer: uint8, text.
        begin, end: range of the number.
        pow10: ``POW10``.

    Returns:
        The number; NaN if the text is not a finite number (also for ``inf`` and ``nan``).
    """
    position = begin
    negative = False
    if position < end and (buffer[position] == 45 or buffer[position] == 43):
        negative = buffer[position] == 45
        position += 1
    mantissa = np.uint64(0)  # the first 18 significant digits: 10^18 < 2^64
    digits = 0
    used = 0  # significant digits in the mantissa, not counting leading zeros
    scale = 0  # decimal exponent of the mantissa
    seen_point = False
    while position < end:
        byte = buffer[position]
        if 48 <= byte <= 57:
            digits += 1
            if used < 18:
                mantissa = mantissa * np.uint64(10) + np.uint64(byte - 48)
                if mantissa > np.uint64(0):
                    used += 1
                if seen_point:
                    scale -= 1
            elif not seen_point:  # further digits before the point only increase the exponent
                scale += 1
        elif byte == 46 and not seen_point:
            seen_point = True
        else:
            break
        position += 1
    if digits == 0:
        return np.nan
    if position < end:
        if buffer[position] != 101 and buffer[position] != 69:
            return np.nan
        position += 1
        sign = 1
        if position < end and (buffer[position] == 45 or buffer[position] == 43):
            sign = -1 if buffer[position] == 45 else 1
            position += 1
        if position == end:
            return np.nan
        exponent = 0
        while position < end:
            byte = buffer[position]
            if byte < 48 or byte > 57:
                return np.nan
            if exponent < 9999:  # avoids overflow for absurdly long exponents
                exponent = exponent * 10 + int(byte) - 48
            position += 1
        scale += sign * exponent
    value = float(mantissa)
    if value == 0.0 or scale < -330:
        value = 0.0
    elif scale < -308:  # 10^-scale is not in the table (it would overflow): divide in two steps
        value = value / pow10[308] / pow10[-scale - 308]
    elif scale < 0:
        value = value / pow10[-scale]
    elif scale > 308:
        return np.nan
    else:
        value = value * pow10[scale]
    if value > 1.7976931348623157e308:
        return np.nan
    return -value if negative else value


class InternTable(NamedTuple):
    """Arrays of an ``Interner``, as arguments of kernels.

    Attributes:
        slots: ``int32`` [power of two], hash table with linear probing: id + 1, or 0 for a free slot.
        hashes: ``uint64`` [capacity], hash of each string by id.
        offsets: ``int64`` [capacity + 1], first byte of each string in ``arena``.
        arena: ``uint8``, bytes of the strings, concatenated by id.
        size: ``int64`` [1], number of strings.
    """

    slots: np.ndarray
    hashes: np.ndarray
    offsets: np.ndarray
    arena: np.ndarray
    size: np.ndarray


@kernel()
def find(table, buffer, begin, end, key):
    """Return the id of ``buffer[begin:end]``, whose hash is ``key``, or -1 if it is not in the table."""
    slot = first_slot(table.slots, key)
    length = end - begin
    while True:
        entry = table.slots[slot]
        if entry == 0:
            return -1
        if table.hashes[entry - 1] == key:  # compare bytes only if all 64 bits of the hash match
            start = table.offsets[entry - 1]
            if table.offsets[entry] - start == length:
                same = True
                for k in range(length):
                    if table.arena[start + k] != buffer[begin + k]:
                        same = False
                        break
                if same:
                    return np.int64(entry - 1)
        slot = next_slot(table.slots, slot)


@kernel()
def intern(table, buffer, begin, end):
    """Return the id of ``buffer[begin:end]``, adding it if it is new.

    The caller must reserve the capacity.
    """
    key = hash_bytes(buffer, begin, end)
    known = find(table, buffer, begin, end, key)
    if known >= 0:
        return known
    new = table.size[0]
    start = table.offsets[new]
    for k in range(end - begin):
        table.arena[start + k] = buffer[begin + k]
    table.offsets[new + 1] = start + end - begin
    table.hashes[new] = key
    table.size[0] = new + 1
    place(table.slots, key, new)
    return new


@kernel()
def place(slots, key, number):
    """Insert an id into the first free slot for its hash."""
    slots[free_slot(slots, key, 0)] = number + 1


@kernel()
def _place_all(slots, hashes, count):
    """Insert the ids 0 to ``count - 1``."""
    for number in range(count):
        place(slots, hashes[number], number)


@kernel()
def _map(table, arena, offsets, count, out):
    """Look up the strings of another table; write their ids, or -1 for unknown strings, to ``out`` [count]."""
    for number in range(count):
        begin, end = offsets[number], offsets[number + 1]
        out[number] = find(table, arena, begin, end, hash_bytes(arena, begin, end))


@kernel()
def _add_all(table, buffer, offsets, out):
    """Intern the strings of ``buffer`` with these offsets; write their ids to ``out`` [n]."""
    for number in range(out.shape[0]):
        out[number] = intern(table, buffer, offsets[number], offsets[number + 1])


@kernel()
def number_words(text, table, ids, offsets):
    """Convert whole lines to the ids of their words, which are separated by spaces only; return the number of words.

    Args:
        text: uint8, lines with their newlines.
        table: ``InternTable`` to which new words are added; must have capacity for them.
        ids: int32 [at least the number of words], filled with the ids of all words.
        offsets: int64 [lines + 1], filled with the offset of each line in ``ids``.
    """
    filled, line, position = 0, 0, 0
    offsets[0] = 0
    while position < text.shape[0]:
        stop = position
        while text[stop] != _SPACE and text[stop] != _NEWLINE:
            stop += 1
        if stop > position:
            ids[filled] = intern(table, text, position, stop)
            filled += 1
        if text[stop] == _NEWLINE:
            line += 1
            offsets[line] = filled
        position = stop + 1
    return filled


def _joined(strings: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return the concatenated bytes of n strings (``uint8``) and the offsets of the strings (``int64`` [n + 1])."""
    offsets = np.zeros(len(strings) + 1, np.int64)
    np.cumsum([len(s) for s in strings], out=offsets[1:])
    return np.frombuffer(b"".join(strings), np.uint8), offsets


def _read_only(data: np.ndarray) -> np.ndarray:
    """Return a read-only view: kernels are compiled only for read-only arrays, the type of an array over ``bytes``."""
    data = data.view()
    data.flags.writeable = False
    return data


class Interner:
    """Distinct byte strings, numbered from 0 in order of first appearance, in flat arrays."""

    def __init__(self, capacity: int = 1024, arena: int = 1 << 14) -> None:
        """Create an empty table with capacity for ``capacity`` strings of ``arena`` bytes in total."""
        self.table = self._empty(capacity, arena)

    @staticmethod
    def _empty(capacity: int, arena: int) -> InternTable:
        """Allocate arrays. Even at full capacity at most half of the slots are in use, so that probing is short."""
        slots = 1 << max(capacity * 2 - 1, 1).bit_length()
        return InternTable(
            np.zeros(slots, np.int32),
            np.zeros(capacity, np.uint64),
            np.zeros(capacity + 1, np.int64),
            np.zeros(arena, np.uint8),
            np.zeros(1, np.int64),
        )

    def __len__(self) -> int:
        return int(self.table.size[0])

    @property
    def arena_used(self) -> int:
        """Return the total number of bytes of all strings."""
        return int(self.table.offsets[len(self)])

    def reserve(self, strings: int, size: int) -> None:
        """Make capacity for ``strings`` further strings of ``size`` bytes in total.

        The arrays grow by at least half, so repeated calls take linear time in total.
        """
        count, used = len(self), self.arena_used
        if count + strings <= len(self.table.hashes) and used + size <= len(self.table.arena):
            return
        old = self.table
        new = self._empty(max(count + strings, len(old.hashes) * 3 // 2), max(used + size, len(old.arena) * 3 // 2))
        new.hashes[:count] = old.hashes[:count]
        new.offsets[: count + 1] = old.offsets[: count + 1]
        new.arena[:used] = old.arena[:used]
        new.size[0] = count
        _place_all(new.slots, new.hashes, count)
        self.table = new

    def add(self, strings: list[bytes]) -> np.ndarray:
        """Intern strings; return their ids, ``int64`` [n]."""
        return self.add_all(*_joined(strings))

    def add_all(self, data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Intern the strings of ``data`` (``uint8``) with these offsets (``int64`` [n + 1]); return their ids."""
        self.reserve(len(offsets) - 1, len(data))
        out = np.zeros(len(offsets) - 1, np.int64)
        _add_all(self.table, _read_only(data), offsets, out)
        return out

    def number(self, text: bytes) -> tuple[np.ndarray, np.ndarray]:
        """Convert whole lines to the ids of their words.

        Words are separated by spaces only: a no-break space or a tab is part of a word.

        Args:
            text: lines, each ending with a newline.

        Returns:
            ids: int32 [words], ids of the words of all lines.
            offsets: int64 [lines + 1], offset of each line in ``ids``.
        """
        assert text.endswith(b"\n") or not text, "the kernel reads up to the newline"
        lines = text.count(b"\n")
        ids, offsets = np.empty(text.count(b" ") + lines, np.int32), np.empty(lines + 1, np.int64)
        self.reserve(len(ids), len(text))
        words = number_words(np.frombuffer(text, np.uint8), self.table, ids, offsets)
        return ids[:words].copy(), offsets

    def strings(self, first: int = 0) -> list[bytes]:
        """Return the strings from the id ``first`` on, in the order of their ids."""
        bounds = self.table.offsets[first : len(self) + 1]
        data = self.table.arena[bounds[0] : bounds[-1]].tobytes()
        return [data[a:b] for a, b in pairwise((bounds - bounds[0]).tolist())]

    def compacted(self) -> InternTable:
        """Return a copy of the arrays without spare capacity, for a file."""
        count, used = len(self), self.arena_used
        old, new = self.table, self._empty(count, used)
        _place_all(new.slots, old.hashes, count)
        return InternTable(
            new.slots, old.hashes[:count].copy(), old.offsets[: count + 1].copy(), old.arena[:used].copy(), old.size
        )

    @classmethod
    def of(cls, table: InternTable) -> "Interner":
        """Create an interner from arrays made by ``compacted``; the arrays are copied when strings are added."""
        interner = cls(0, 0)
        interner.table = table
        return interner

    def ids_of(self, other: "Interner") -> np.ndarray:
        """Return the id in this table of every string of ``other``, or -1 if it is missing, ``int64`` [len(other)]."""
        return self.find_all(other.table.arena, other.table.offsets[: len(other) + 1])

    def find(self, strings: list[bytes]) -> np.ndarray:
        """Return the ids of strings, or -1 for unknown strings, ``int64`` [n]."""
        return self.find_all(*_joined(strings))

    def find_all(self, data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return the ids of the strings of ``data`` (``uint8``) with these offsets, -1 if unknown, ``int64`` [n]."""
        out = np.zeros(len(offsets) - 1, np.int64)
        _map(self.table, _read_only(data), offsets, len(out), out)
        return out
