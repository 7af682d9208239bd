"""Alignments in Pharaoh format: one sentence pair a line, links ``i-j`` (source-target word, from 0).

In memory the links of many sentence pairs are three flat arrays, so that kernels can work on them.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align.kernels.pharaoh import format_links
from rnnsmt.io import InputError, atomic_binary, count_lines, read_byte_lines, read_parallel, words_of

MAX_POSITION = 9999
"""The highest word position that is taken for one; a larger number means that the file holds something else."""

_LINE = re.compile(rb"(?:\d{1,15}-\d{1,15}(?: \d{1,15}-\d{1,15})*)?")
_TOKEN = re.compile(rb"\d{1,15}-\d{1,15}")
_TO_SPACES = bytes.maketrans(b"-\n", b"  ")
BLOCK = 20_000
"""Sentence pairs whose links are read or written together."""


class Links(NamedTuple):
    """The links of some sentence pairs: sentence ``s`` owns ``offsets[s]:offsets[s + 1]`` of the other two arrays."""

    offsets: npt.NDArray[np.int64]  # [sentences + 1]
    source: npt.NDArray[np.int32]  # [links]
    target: npt.NDArray[np.int32]  # [links]

    @property
    def sentences(self) -> int:
        """Number of sentence pairs, those without a link included."""
        return len(self.offsets) - 1


def read_link_blocks(path: str | Path) -> Iterator[Links]:
    """Read a Pharaoh file of any suffix, ``BLOCK`` lines at a time; an empty line is a sentence pair without a link.

    Raises:
        InputError: a token is not ``number-number``, or a position is above ``MAX_POSITION``; names file and line.
    """
    for first, block in _blocks(_clean_lines(path)):
        if not all(map(_LINE.fullmatch, block)):
            _complain(path, first, block)
        offsets = np.zeros(len(block) + 1, np.int64)
        np.cumsum(np.fromiter((line.count(b"-") for line in block), np.int64, len(block)), out=offsets[1:])
        words = b" ".join(block).translate(_TO_SPACES).split()
        values = np.array(list(map(int, words)), np.int64)
        if len(values) and values.max() > MAX_POSITION:
            _complain(path, first, block)
        yield Links(offsets, values[0::2].astype(np.int32), values[1::2].astype(np.int32))


def read_links(path: str | Path) -> Links:
    """The links of a whole file, as ``read_link_blocks``."""
    blocks = [*read_link_blocks(path), Links(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))]
    sizes = np.concatenate([np.diff(block.offsets) for block in blocks])
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return Links(offsets, np.concatenate([b.source for b in blocks]), np.concatenate([b.target for b in blocks]))


def distinct(links: Links) -> Links:
    """The links without doubled ones, sorted by source, then target position within a sentence."""
    sentence = np.repeat(np.arange(links.sentences), np.diff(links.offsets))
    order = np.lexsort((links.target, links.source, sentence))
    sentence, source, target = sentence[order], links.source[order], links.target[order]
    new = np.ones(len(sentence), np.bool_)
    new[1:] = (np.diff(sentence) != 0) | (np.diff(source) != 0) | (np.diff(target) != 0)
    sizes = np.bincount(sentence[new], minlength=links.sentences)
    return Links(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), source[new], target[new])


def write_links(path: str | Path, blocks: Iterable[Links]) -> int:
    """Write a Pharaoh file, whole or not at all; the links of a line are sorted by source, then target position.

    Returns:
        The number of links.
    """
    written = 0
    with atomic_binary(path) as out:
        for links in blocks:
            sentence = np.repeat(np.arange(links.sentences), np.diff(links.offsets))
            order = np.lexsort((links.target, links.source, sentence))
            text = np.empty(10 * len(order) + links.sentences, np.uint8)  # two positions of four digits, two separators
            size = format_links(links.offsets, links.source[order], links.target[order], text)
            out.write(text[:size].tobytes())
            written += len(order)
    return written


def read_links_of(path: str | Path, source: str | Path, target: str | Path) -> Iterator[Links]:
    """``read_link_blocks`` of the alignment of a text, each link checked against the lengths of its sentences.

    Raises:
        InputError: as ``read_link_blocks`` and ``rnnsmt.io.read_parallel``; the number of lines differs, or a link
            points behind the end of its sentence; names file and line.
    """
    text = read_parallel(source, target)
    before = 0
    for links in read_link_blocks(path):
        rows = [[len(words_of(line)) for line in row] for row in islice(text, links.sentences)]
        lengths = np.array([*rows, *[[MAX_POSITION + 1] * 2] * (links.sentences - len(rows))])
        _check_bounds(path, links, lengths, before)
        before += links.sentences
        if len(rows) < links.sentences:
            raise _other_text(path, count_lines(path), before - links.sentences + len(rows))
        yield links
    if more := sum(1 for _ in text):
        raise _other_text(path, before, before + more)


def _other_text(path: str | Path, lines: int, of_text: int) -> InputError:
    return InputError(
        f"{path} has {lines} lines, but the text has {of_text}; an alignment needs one line for each sentence pair"
    )


def _check_bounds(path: str | Path, links: Links, lengths: npt.NDArray[np.int64], before: int) -> None:
    """``lengths`` [sentences, 2]: words of source and target; ``before``: lines of the file before these."""
    per_link = np.diff(links.offsets)
    for side, positions, words in (("source", links.source, lengths[:, 0]), ("target", links.target, lengths[:, 1])):
        wrong = np.flatnonzero(positions >= np.repeat(words, per_link))
        if len(wrong):
            line = int(np.searchsorted(links.offsets, wrong[0], side="right"))
            link = f"{links.source[wrong[0]]}-{links.target[wrong[0]]}"
            raise InputError(
                f"{path}, line {before + line}: the link {link} points behind the end of the {side} sentence, which "
                f"has {words[line - 1]} words (positions count from 0); is this the alignment of this text?"
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
    while block := list(islice(lines, BLOCK)):
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
