"""Alignments in Pharaoh format: one sentence pair a line, links ``i-j`` (source-target word, from 0).

In memory the links of a whole corpus are three flat arrays, so that kernels can work on them.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.io import InputError, atomic_binary, read_byte_lines

MAX_POSITION = 9999
"""The highest word position that is taken for one; a larger number means that the file holds something else."""

_LINE = re.compile(rb"(?:\d{1,15}-\d{1,15}(?: \d{1,15}-\d{1,15})*)?")
_TOKEN = re.compile(rb"\d{1,15}-\d{1,15}")
_TO_SPACES = bytes.maketrans(b"-\n", b"  ")
_BLOCK = 20_000


class Links(NamedTuple):
    """The links of a corpus: sentence ``s`` owns ``offsets[s]:offsets[s + 1]`` of the other two arrays."""

    offsets: npt.NDArray[np.int64]  # [sentences + 1]
    source: npt.NDArray[np.int32]  # [links]
    target: npt.NDArray[np.int32]  # [links]

    @property
    def sentences(self) -> int:
        """Number of sentence pairs, those without a link included."""
        return len(self.offsets) - 1


def read_links(path: str | Path) -> Links:
    """Read a Pharaoh file of any suffix; an empty line is a sentence pair without a link.

    Raises:
        InputError: a token is not ``number-number``, or a position is above ``MAX_POSITION``; names file and line.
    """
    counts: list[npt.NDArray[np.int64]] = []
    numbers: list[npt.NDArray[np.int32]] = []
    for first, block in _blocks(_clean_lines(path)):
        if not all(map(_LINE.fullmatch, block)):
            _complain(path, first, block)
        counts.append(np.fromiter((line.count(b"-") for line in block), np.int64, len(block)))
        words = b" ".join(block).translate(_TO_SPACES).split()
        values = np.array(list(map(int, words)), np.int64)
        if len(values) and values.max() > MAX_POSITION:
            _complain(path, first, block)
        numbers.append(values.astype(np.int32))
    sizes = np.concatenate(counts) if counts else np.zeros(0, np.int64)
    flat = np.concatenate(numbers) if numbers else np.zeros(0, np.int32)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return Links(offsets, np.ascontiguousarray(flat[0::2]), np.ascontiguousarray(flat[1::2]))


def distinct(links: Links) -> Links:
    """The links without doubled ones, sorted by source, then target position within a sentence."""
    sentence = np.repeat(np.arange(links.sentences), np.diff(links.offsets))
    order = np.lexsort((links.target, links.source, sentence))
    sentence, source, target = sentence[order], links.source[order], links.target[order]
    new = np.ones(len(sentence), np.bool_)
    new[1:] = (np.diff(sentence) != 0) | (np.diff(source) != 0) | (np.diff(target) != 0)
    sizes = np.bincount(sentence[new], minlength=links.sentences)
    return Links(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), source[new], target[new])


def write_links(path: str | Path, links: Links) -> None:
    """Write a Pharaoh file, whole or not at all; the links of a line are sorted by source, then target position."""
    sentence = np.repeat(np.arange(links.sentences), np.diff(links.offsets))
    order = np.lexsort((links.target, links.source, sentence))
    source, target = links.source[order].tolist(), links.target[order].tolist()
    offsets = links.offsets.tolist()
    with atomic_binary(path) as out:
        for start, end in pairwise(offsets):
            line = " ".join([f"{i}-{j}" for i, j in zip(source[start:end], target[start:end], strict=True)])
            out.write(line.encode("ascii") + b"\n")


def check_bounds(
    path: str | Path, links: Links, source_lengths: npt.NDArray[np.int64], target_lengths: npt.NDArray[np.int64]
) -> None:
    """Check links against the sentence lengths (in words) of the text they belong to.

    Raises:
        InputError: the number of lines differs, or a link points behind the end of its sentence; names file and line.
    """
    if links.sentences != len(source_lengths):
        raise InputError(
            f"{path} has {links.sentences} lines, but the text has {len(source_lengths)}; "
            "an alignment needs one line for each sentence pair"
        )
    per_link = np.diff(links.offsets)
    sides = (("source", links.source, source_lengths), ("target", links.target, target_lengths))
    for side, positions, lengths in sides:
        wrong = np.flatnonzero(positions >= np.repeat(lengths, per_link))
        if len(wrong):
            line = int(np.searchsorted(links.offsets, wrong[0], side="right"))
            link = f"{links.source[wrong[0]]}-{links.target[wrong[0]]}"
            raise InputError(
                f"{path}, line {line}: the link {link} points behind the end of the {side} sentence, which has "
                f"{lengths[line - 1]} words (positions count from 0); is this the alignment of this text, source first?"
            )


def from_lists(sentences: Iterable[Iterable[tuple[int, int]]]) -> Links:
    """Pack lists of ``(source, target)`` links, one list a sentence pair."""
    lists = [list(sentence) for sentence in sentences]
    sizes = np.array([len(sentence) for sentence in lists], np.int64)
    flat = np.array(list(chain.from_iterable(lists)), np.int32).reshape(-1, 2)
    return Links(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), flat[:, 0].copy(), flat[:, 1].copy())


def to_lists(links: Links) -> list[list[tuple[int, int]]]:
    """Unpack into one list of ``(source, target)`` links a sentence pair."""
    pairs = list(zip(links.source.tolist(), links.target.tolist(), strict=True))
    offsets = links.offsets.tolist()
    return [pairs[start:end] for start, end in pairwise(offsets)]


def _clean_lines(path: str | Path) -> Iterator[bytes]:
    """Lines without the blank at the end that some tools leave, and without a carriage return."""
    for line in read_byte_lines(path):
        yield line.rstrip(b" \r")


def _blocks(lines: Iterator[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Groups of lines with the number of the first one."""
    first = 1
    while block := list(islice(lines, _BLOCK)):
        yield first, block
        first += len(block)


def _complain(path: str | Path, first: int, block: list[bytes]) -> None:
    """Raise for the first wrong token of a block in which there is one."""
    for number, line in enumerate(block, first):
        for token in line.split(b" ") if line else ():
            shown = token.decode("utf-8", "replace")[:40]
            if not _TOKEN.fullmatch(token):
                raise InputError(
                    f"{path}, line {number}: {shown!r} is not a link; a line of an alignment looks like '0-0 1-2 2-1' "
                    "(source-target word positions from 0, one space between links)"
                )
            if max(map(int, token.split(b"-"))) > MAX_POSITION:
                raise InputError(
                    f"{path}, line {number}: {shown!r} has a position above {MAX_POSITION}; is this an alignment file?"
                )
    raise AssertionError(f"{path}: no wrong token in the block at line {first}")
