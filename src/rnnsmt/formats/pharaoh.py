"""Word alignments in Pharaoh format: one sentence pair per line, links ``i-j`` (0-based source and target positions).

In memory, the links of many sentence pairs are three flat arrays, which numba kernels can process.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, pairwise
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple, Self, cast, overload

import numpy as np
import numpy.typing as npt

from rnnsmt.base.arguments import Alignment, Alignments, TextFiles
from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import check_tokenised, count_lines, read_byte_lines, read_parallel, words_of
from rnnsmt.base.writing import atomic_binary

MAX_POSITION = 9999
"""Maximum word position; a larger number means that the file is not an alignment."""

_LINE = re.compile(rb"(?:\d{1,15}-\d{1,15}(?: \d{1,15}-\d{1,15})*)?")
_TOKEN = re.compile(rb"\d{1,15}-\d{1,15}")
_TO_SPACES = bytes.maketrans(b"-\n", b"  ")
BLOCK = 20_000
"""Number of sentence pairs whose links are read or written together."""


class Links(NamedTuple):
    """Links of consecutive sentence pairs, as flat arrays.

    The links of sentence ``s`` are elements ``offsets[s]:offsets[s + 1]`` of ``source`` and ``target``.
    """

    offsets: npt.NDArray[np.int64]  # [sentences + 1]
    source: npt.NDArray[np.int32]  # [links]
    target: npt.NDArray[np.int32]  # [links]

    @property
    def sentences(self) -> int:
        """Return the number of sentence pairs, including those without links."""
        return len(self.offsets) - 1


def read_link_blocks(path: StrPath) -> Iterator[Links]:
    """Read a Pharaoh file with any supported suffix, ``BLOCK`` lines at a time.

    An empty line is a sentence pair without links.
    """
    for first, block in _blocks(_clean_lines(path)):
        if not all(map(_LINE.fullmatch, block)):
            _reject(path, first, block)
        offsets = np.zeros(len(block) + 1, np.int64)
        np.cumsum(np.fromiter((line.count(b"-") for line in block), np.int64, len(block)), out=offsets[1:])
        # parse all numbers of the block at once: even indices are source positions, odd ones target positions
        words = b" ".join(block).translate(_TO_SPACES).split()
        values = np.array(list(map(int, words)), np.int64)
        if len(values) and values.max() > MAX_POSITION:
            _reject(path, first, block)
        yield Links(offsets, values[0::2].astype(np.int32), values[1::2].astype(np.int32))


def distinct(links: Links) -> Links:
    """Return the links without duplicates, sorted by source position, then target position, within each sentence."""
    sentence = np.repeat(np.arange(links.sentences), np.diff(links.offsets))
    order = np.lexsort((links.target, links.source, sentence))
    sentence, source, target = sentence[order], links.source[order], links.target[order]
    new = np.ones(len(sentence), np.bool_)
    new[1:] = (np.diff(sentence) != 0) | (np.diff(source) != 0) | (np.diff(target) != 0)
    sizes = np.bincount(sentence[new], minlength=links.sentences)
    return Links(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), source[new], target[new])


def write_links(path: StrPath, blocks: Iterable[Links]) -> int:
    """Write a Pharaoh file atomically; the links of a line are sorted by source position, then target position.

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


def read_links_of(path: StrPath, source: StrPath, target: StrPath) -> Iterator[Links]:
    """Read the alignment of a text like ``read_link_blocks``; check that all links are within their sentences."""
    text = read_parallel(source, target)
    before = 0
    for links in read_link_blocks(path):
        pairs = list(islice(text, links.sentences))
        for side, lines in zip((source, target), zip(*pairs, strict=True), strict=False):
            check_tokenised("\n".join(lines).encode(), side, before)
        rows = [[len(words_of(line)) for line in pair] for pair in pairs]
        # links of lines after the end of the text are not checked here; _other_text reports these lines below
        lengths = np.array([*rows, *[[MAX_POSITION + 1] * 2] * (links.sentences - len(rows))])
        _check_bounds(path, links, lengths, before)
        before += links.sentences
        if len(rows) < links.sentences:
            raise _other_text(path, count_lines(path), before - links.sentences + len(rows))
        yield links
    if more := sum(1 for _ in text):
        raise _other_text(path, before, before + more)


def _other_text(path: StrPath, lines: int, of_text: int) -> InputError:
    return InputError(
        f"{path} has {lines} lines, but the text has {of_text}; the alignment must have one line per sentence pair"
    )


def _check_bounds(path: StrPath, links: Links, lengths: npt.NDArray[np.int64], before: int) -> None:
    """Check that no link points beyond the end of a sentence.

    Args:
        lengths: [sentences, 2], number of source words and of target words of each sentence pair.
        before: number of lines of the file before these sentence pairs.
    """
    per_link = np.diff(links.offsets)
    for side, positions, words in (("source", links.source, lengths[:, 0]), ("target", links.target, lengths[:, 1])):
        wrong = np.flatnonzero(positions >= np.repeat(words, per_link))
        if len(wrong):
            line = int(np.searchsorted(links.offsets, wrong[0], side="right"))
            link = f"{links.source[wrong[0]]}-{links.target[wrong[0]]}"
            raise InputError(
                f"{path}, line {before + line}: the link {link} points beyond the end of the {side} sentence, which "
                f"has {words[line - 1]} words (positions are 0-based); check that the alignment belongs to this text"
            )


def from_lists(sentences: Iterable[Iterable[tuple[int, int]]]) -> Links:
    """Convert lists of links ``(source, target)``, one list per sentence pair, to ``Links``.

    Raises:
        ValueError, TypeError: a link is not a pair of word positions.
    """
    lists = [list(sentence) for sentence in sentences]
    sizes = np.array([len(sentence) for sentence in lists], np.int64)
    links = np.array(list(chain.from_iterable(lists)))
    if links.size and (links.ndim != 2 or links.shape[1] != 2 or links.dtype.kind not in "iu"):
        raise ValueError("a link consists of two integers")
    if links.size and not (links.min() >= 0 and links.max() <= MAX_POSITION):
        raise ValueError(f"word positions are from 0 to {MAX_POSITION}")
    flat = links.astype(np.int32).reshape(-1, 2)
    return Links(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), flat[:, 0].copy(), flat[:, 1].copy())


def to_lists(links: Links) -> list[list[tuple[int, int]]]:
    """Convert ``Links`` to a list of links ``(source, target)`` for each sentence pair."""
    pairs = list(zip(links.source.tolist(), links.target.tolist(), strict=True))
    offsets = links.offsets.tolist()
    return [pairs[start:end] for start, end in pairwise(offsets)]


class WordAlignment(Sequence[list[tuple[int, int]]]):
    """Word alignment of a text: item s is the list of links (source word, target word) of sentence pair s.

    Positions are 0-based. The links of a sentence pair are sorted.

    Attributes:
        path: file in Pharaoh format, from which the links are read on first use; None if they are in memory.
        figures: number of sentence pairs, number of links etc.; the last line in the log of the command.
    """

    def __init__(
        self, path: Path | None, figures: dict[str, int], links: list[list[tuple[int, int]]] | None = None
    ) -> None:
        self.path, self.figures = path, figures
        if links is not None:
            self._links = links

    @classmethod
    def of(cls, blocks: Iterable[Links], output: StrPath | None, figures: dict[str, int]) -> Self:
        """Write the links of consecutive blocks to a file, or keep them in memory if ``output`` is None.

        Args:
            figures: see ``WordAlignment``; the iterator ``blocks`` may update it, and the number of links is added.
        """
        if output is not None:
            figures["links"] = write_links(output, blocks)
            return cls(Path(output), figures)
        links = [sorted(sentence) for block in blocks for sentence in to_lists(block)]
        figures["links"] = sum(map(len, links))
        return cls(None, figures, links)

    @cached_property
    def _links(self) -> list[list[tuple[int, int]]]:
        assert self.path is not None
        return [sentence for block in read_link_blocks(self.path) for sentence in to_lists(block)]

    def __len__(self) -> int:
        return len(self._links)

    @overload
    def __getitem__(self, index: int) -> list[tuple[int, int]]: ...

    @overload
    def __getitem__(self, index: slice) -> list[list[tuple[int, int]]]: ...

    def __getitem__(self, index: int | slice) -> list[tuple[int, int]] | list[list[tuple[int, int]]]:
        return self._links[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._links == list(other)

    __hash__ = None  # type: ignore[assignment]  # lists have no hash

    def __repr__(self) -> str:
        return f"WordAlignment(path={self.path!s}, figures={self.figures})"


def links_file(files: TextFiles, name: str, alignment: Alignment) -> str:
    """Return the Pharaoh file of an alignment; links in memory are written to a temporary file.

    Args:
        name: name of the argument, for error messages.
    """
    if isinstance(alignment, (str, PathLike)):
        return str(alignment)
    if isinstance(alignment, WordAlignment) and alignment.path is not None:
        return str(alignment.path)
    try:
        packed = from_lists(alignment)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name}: must be a path, or a list of links (source word, target word) for each sentence pair ({error})"
        ) from None
    write_links(files.directory / name, [packed])
    return str(files.directory / name)


def links_files(files: TextFiles, name: str, alignments: Alignments) -> list[str]:
    """Return the Pharaoh files of the alignments of one or more texts; see ``links_file``."""
    if isinstance(alignments, (list, tuple)) and alignments and all(isinstance(one, PathLike) for one in alignments):
        return [fspath(one) for one in alignments]
    return [links_file(files, name, cast("Alignment", alignments))]


def _clean_lines(path: StrPath) -> Iterator[bytes]:
    """Yield lines without trailing spaces, which some tools write, and without carriage returns."""
    for line in read_byte_lines(path):
        yield line.rstrip(b" \r")


def _blocks(lines: Iterator[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Yield blocks of at most ``BLOCK`` lines with the number of the first line."""
    first = 1
    while block := list(islice(lines, BLOCK)):
        yield first, block
        first += len(block)


def _reject(path: StrPath, first: int, block: list[bytes]) -> None:
    """Raise the error for the first invalid token of a block."""
    for number, line in enumerate(block, first):
        for token in line.split(b" ") if line else ():
            shown = token.decode("utf-8", "replace")[:40]
            if not _TOKEN.fullmatch(token):
                raise InputError(
                    f"{path}, line {number}: {shown!r} is not a link; a line of an alignment looks like '0-0 1-2 2-1' "
                    "(0-based source-target word positions, one space between links)"
                )
            if max(map(int, token.split(b"-"))) > MAX_POSITION:
                raise InputError(
                    f"{path}, line {number}: {shown!r} has a position above {MAX_POSITION}; is this an alignment file?"
                )
    raise AssertionError(f"{path}: no wrong token in the block at line {first}")


@kernel(**INNER)
def _write_number(number, text, at):
    """Write the digits of a position of at most 9,999; return the index after them."""
    size = 1
    while number >= 10**size:
        size += 1
    for k in range(at + size - 1, at - 1, -1):
        text[k] = 48 + number % 10
        number //= 10
    return at + size


@kernel()
def format_links(offsets, source, target, text):
    """Write the lines of sentence pairs, with links in the order of the arrays; return the number of bytes.

    Args:
        offsets, source, target: as in ``Links``.
        text: uint8 [at least 10 · links + lines], filled with the text.
    """
    at = 0
    for s in range(len(offsets) - 1):
        for k in range(offsets[s], offsets[s + 1]):
            if k > offsets[s]:
                text[at] = 32
                at += 1
            at = _write_number(source[k], text, at)
            text[at] = 45
            at = _write_number(target[k], text, at + 1)
        text[at] = 10
        at += 1
    return at
