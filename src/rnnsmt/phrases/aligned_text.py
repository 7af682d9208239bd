"""Reading and checking of word-aligned parallel text, as flat integer arrays.

Words are byte strings separated by spaces. An ``Interner`` numbers them in order of first occurrence. Several corpora
are read one after the other, and a word has the same number in all of them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.strings import Interner
from rnnsmt.base.reading import check_tokenised, read_byte_lines

BLOCK_TOKENS = 400_000
"""Total number of source and target words in a block; the arrays of a block take a few megabytes."""


@dataclass
class AlignedBlock:
    """Sentence pairs as flat arrays; S is the number of sentence pairs, L the number of links.

    Attributes:
        source, target: int32, word numbers of all sentences, concatenated.
        links: int32 [L, 2], distinct pairs (source position, target position), sorted by target position, then source
            position, within each sentence pair.
        source_offsets, target_offsets, link_offsets: int64 [S + 1], offset of each sentence pair in the flat arrays.
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    links: NDArray[np.int32]
    source_offsets: NDArray[np.int64]
    target_offsets: NDArray[np.int64]
    link_offsets: NDArray[np.int64]

    @property
    def sentences(self) -> int:
        """Return the number of sentence pairs."""
        return len(self.source_offsets) - 1


@dataclass
class TextStats:
    """Statistics of the parallel text that a stage has read."""

    sentences: int = 0
    source_words: int = 0
    target_words: int = 0
    links: int = 0
    repeated_links: int = 0
    unaligned_sentences: int = 0

    def as_dict(self) -> dict[str, object]:
        """Return the statistics for the last line of the log; numbers of rare events are omitted if they are 0."""
        figures: dict[str, object] = {
            "sentence pairs": self.sentences,
            "source words": self.source_words,
            "target words": self.target_words,
            "links": self.links,
        }
        if self.repeated_links:
            figures["duplicate links ignored"] = self.repeated_links
        if self.unaligned_sentences:
            figures["sentence pairs without a link"] = self.unaligned_sentences
        return figures


def check_file_lists(sources: Sequence[str], targets: Sequence[str], alignments: Sequence[str]) -> None:
    """Check that the lists have equal lengths: the n-th files of the three options are parallel."""
    if not len(sources) == len(targets) == len(alignments):
        raise InputError(
            f"--source has {len(sources)} files, --target {len(targets)} and --alignment {len(alignments)}; "
            "specify the same number of each, in the same order"
        )


def read_aligned_blocks(
    sources: Sequence[str],
    targets: Sequence[str],
    alignments: Sequence[str],
    source_words: Interner,
    target_words: Interner,
    figures: TextStats,
    tokens: int | None = None,
) -> Iterator[AlignedBlock]:
    """Yield the sentence pairs of all corpora with their links; update the vocabularies and the statistics.

    Args:
        sources, targets, alignments: files; the n-th files are parallel.
        source_words, target_words: vocabularies, to which new words are added.
        figures: statistics, updated.
        tokens: total number of source and target words in a block; None for ``BLOCK_TOKENS``.
    """
    check_file_lists(sources, targets, alignments)
    for paths in zip(sources, targets, alignments, strict=True):
        for first_line, rows in _read_rows(paths, tokens or BLOCK_TOKENS):
            block = _to_block(paths, first_line, rows, source_words, target_words, figures)
            figures.sentences += block.sentences
            figures.source_words += len(block.source)
            figures.target_words += len(block.target)
            figures.links += len(block.links)
            figures.unaligned_sentences += int((np.diff(block.link_offsets) == 0).sum())
            yield block
    if not figures.sentences:
        raise InputError(f"{sources[0]}: contains no sentence pair; the file is empty")


Rows = tuple[list[bytes], list[bytes], list[bytes]]
"""Source lines, target lines, alignment lines."""


def _read_rows(paths: tuple[str, str, str], most: int) -> Iterator[tuple[int, Rows]]:
    """Yield (number of the first line, rows) for blocks of about ``most`` words."""
    streams = [read_byte_lines(path) for path in paths]
    number, first, tokens = 0, 1, 0
    rows: Rows = ([], [], [])
    while True:
        lines = [next(stream, None) for stream in streams]
        source, target, links = lines
        if source is None or target is None or links is None:
            _check_text(paths, first, rows)
            _check_all_ended(paths, tuple(lines), number)
            break
        number += 1
        for column, line in zip(rows, (source, target, links), strict=True):
            column.append(line)
        tokens += source.count(b" ") + target.count(b" ") + 2
        if tokens >= most:
            _check_text(paths, first, rows)
            yield first, rows
            first, tokens, rows = number + 1, 0, ([], [], [])
    if rows[0]:
        yield first, rows


def _check_text(paths: tuple[str, str, str], first: int, rows: Rows) -> None:
    """Check source and target lines; ``first`` is the number of the first line."""
    for path, lines in zip(paths[:2], rows[:2], strict=True):
        check_tokenised(b"\n".join(lines), path, first - 1)


def _check_all_ended(paths: tuple[str, str, str], lines: tuple[bytes | None, ...], number: int) -> None:
    """Check that all three files ended at the same line."""
    ended = [Path(path).name for path, line in zip(paths, lines, strict=True) if line is None]
    longer = [path for path, line in zip(paths, lines, strict=True) if line is not None]
    if longer:
        raise InputError(
            f"{' and '.join(ended)} ended after line {number}, but {longer[0]} has more lines; "
            "source, target and alignment must have the same number of lines"
        )


def _to_block(
    paths: tuple[str, str, str],
    first_line: int,
    rows: Rows,
    source_words: Interner,
    target_words: Interner,
    figures: TextStats,
) -> AlignedBlock:
    """Convert rows to a block, and count repeated links."""
    source, source_offsets = source_words.number(b"\n".join(rows[0]) + b"\n")
    target, target_offsets = target_words.number(b"\n".join(rows[1]) + b"\n")
    text = np.frombuffer(b"\n".join(rows[2]) + b"\n", dtype=np.uint8)
    lengths = np.diff(source_offsets), np.diff(target_offsets)
    links, link_offsets, repeated, bad_row, bad_byte, problem = parse_links(text, *lengths)
    if problem:
        # only these four characters end a link; other white space, e.g. a form feed, is part of it
        token = re.split(rb"[ \t\r\n]", text[bad_byte : bad_byte + 40].tobytes())[0].decode("utf-8", "backslashreplace")
        n_source, n_target = lengths[0][bad_row], lengths[1][bad_row]
        raise InputError(
            f"{paths[2]}, line {first_line + bad_row}: {LINK_ERRORS[problem]}: '{token}' (the sentences have "
            f"{n_source} and {n_target} words); align exactly these files, in Pharaoh format i-j"
        )
    figures.repeated_links += repeated
    return AlignedBlock(source, target, links, source_offsets, target_offsets, link_offsets)


LINK_ERRORS = {1: "not a list of links i-j", 2: "a link points beyond the end of the sentence"}
"""Messages for the problems that ``parse_links`` returns."""


@kernel()
def _count_dashes(text: Any) -> int:
    """Return the number of dashes, an upper bound of the number of links."""
    dashes = 0
    for byte in text:
        if byte == 45:
            dashes += 1
    return dashes


@kernel()
def parse_links(text: Any, source_lengths: Any, target_lengths: Any) -> Any:
    """Parse the links of S sentences (Pharaoh format ``i-j``: source-target, 0-based).

    Args:
        text: uint8, S lines, each with its newline.
        source_lengths, target_lengths: int64 [S], number of words of each sentence.

    Returns:
        Six values: links int32 [L, 2] and offsets int64 [S + 1], as in ``AlignedBlock``; the number of repeated links;
        the row of the first invalid link; the index of this link in ``text``; and the problem (a key of
        ``LINK_ERRORS``, or 0 if all links are valid).
    """
    sentences = source_lengths.shape[0]
    links = np.empty((_count_dashes(text), 2), np.int32)
    offsets = np.zeros(sentences + 1, np.int64)
    filled, repeated, at = 0, 0, 0
    for row in range(sentences):
        begin = filled
        while text[at] != 10:
            while text[at] == 32 or text[at] == 9 or text[at] == 13:
                at += 1
            if text[at] == 10:
                break
            token = at
            left, right, digits = 0, 0, 0
            # at most seven digits: no overflow, and longer numbers are rejected by the next check
            while 48 <= text[at] <= 57 and digits < 7:
                left = left * 10 + (text[at] - 48)
                at += 1
                digits += 1
            if digits == 0 or text[at] != 45:
                return links, offsets, repeated, row, token, 1
            at += 1
            digits = 0
            while 48 <= text[at] <= 57 and digits < 7:
                right = right * 10 + (text[at] - 48)
                at += 1
                digits += 1
            if digits == 0 or not (text[at] == 32 or text[at] == 10 or text[at] == 9 or text[at] == 13):
                return links, offsets, repeated, row, token, 1
            if left >= source_lengths[row] or right >= target_lengths[row]:
                return links, offsets, repeated, row, token, 2
            # insertion sort from the end, because aligners write nearly sorted lines
            index = filled
            while index > begin and (
                links[index - 1, 1] > right or (links[index - 1, 1] == right and links[index - 1, 0] > left)
            ):
                index -= 1
            if index > begin and links[index - 1, 1] == right and links[index - 1, 0] == left:
                repeated += 1
                continue
            for moved in range(filled, index, -1):
                links[moved, 0] = links[moved - 1, 0]
                links[moved, 1] = links[moved - 1, 1]
            links[index, 0] = left
            links[index, 1] = right
            filled += 1
        at += 1
        offsets[row + 1] = filled
    return links[:filled].copy(), offsets, repeated, -1, -1, 0
