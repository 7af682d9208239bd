"""Parallel corpus as word ids in flat arrays, the input format of the aligners."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.strings import Interner
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import check_tokenised, read_line_blocks
from rnnsmt.formats.pharaoh import MAX_POSITION

Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]

MAX_WORDS = 2**31 - 1
"""Maximum number of words of a side; expected counts cannot be larger (``rnnsmt.base.kernels.numbers``)."""


class BitextSide(NamedTuple):
    """One side of a parallel corpus: the words of sentence ``s`` are ``ids[offsets[s]:offsets[s + 1]]``."""

    ids: Ids  # [words], from 0 in order of first appearance
    offsets: Offsets  # [sentences + 1]
    vocabulary: list[str]

    @property
    def lengths(self) -> Offsets:
        """Return the number of words of every sentence, [sentences]."""
        return np.diff(self.offsets)


class Bitext(NamedTuple):
    """Both sides of a parallel corpus; sentences may be empty."""

    source: BitextSide
    target: BitextSide

    @property
    def sentences(self) -> int:
        """Return the number of sentence pairs, including empty ones."""
        return len(self.source.offsets) - 1


def read_bitext(source: StrPath, target: StrPath) -> Bitext:
    """Read a tokenised parallel corpus whose words are separated by spaces.

    Memory: 4 bytes per word and 8 per sentence on each side, and the vocabularies.
    """
    first, second = _read_side(source), _read_side(target)
    lines = len(first.offsets) - 1, len(second.offsets) - 1
    if lines[0] != lines[1]:
        shorter, longer = (source, target) if lines[0] < lines[1] else (target, source)
        raise InputError(
            f"{shorter} ends after line {min(lines)}, but {longer} has more lines; "
            "parallel files must have the same number of lines"
        )
    if not lines[0]:
        raise InputError(f"{source} is empty; at least one sentence pair is required")
    if not any(first.lengths * second.lengths):
        raise InputError(f"{source} and {target} contain no sentence pair with words on both sides")
    return Bitext(first, second)


def _read_side(path: StrPath) -> BitextSide:
    words = Interner()
    ids: list[Ids] = []
    lengths: list[npt.NDArray[np.int32]] = []
    lines = 0
    for block in read_line_blocks(path):
        check_tokenised(block, path, lines)
        numbers, offsets = words.number(block)
        sizes = np.diff(offsets).astype(np.int32)
        if len(sizes) and sizes.max() > MAX_POSITION:
            line = int(np.argmax(sizes > MAX_POSITION))
            raise InputError(
                f"{path}, line {lines + line + 1}: {sizes[line]:,} words in one sentence; clean the corpus first "
                "(`rnnsmt corpus prepare`)"
            )
        ids.append(numbers)
        lengths.append(sizes)
        lines += len(sizes)
    offsets = np.zeros(lines + 1, np.int64)
    np.cumsum(np.concatenate([*lengths, np.zeros(0, np.int32)]), out=offsets[1:])
    if offsets[-1] > MAX_WORDS:
        raise InputError(
            f"{path}: {offsets[-1]:,} words; the maximum is {MAX_WORDS:,}; align the corpus in several parts"
        )
    vocabulary = [word.decode("utf-8") for word in words.strings()]
    return BitextSide(np.concatenate([*ids, np.zeros(0, np.int32)]), offsets, vocabulary)
