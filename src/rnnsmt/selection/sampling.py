"""Splitting of the in-domain text and sampling of the pool, both reproducible."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from rnnsmt.base.io import InputError, read_byte_lines, read_lines
from rnnsmt.base.progress import track
from rnnsmt.lm.text import refuse_reserved

BLOCK_LINES = 50
"""Maximum number of consecutive lines that are held out together."""


def split_held_out(lines: Sequence[str], every: int, name: str) -> tuple[list[str], list[str]]:
    """Split lines into (training, held-out): the last of every ``every`` blocks is held out.

    A block has ``BLOCK_LINES`` lines, or fewer if the text is short, so that there are at least 2 * ``every`` blocks.

    Raises:
        InputError: there are fewer than 2 * ``every`` lines, or ``every`` is 1.
    """
    if every < 2:
        raise InputError("--hold-out must be at least 2")
    if len(lines) < 2 * every:
        raise InputError(
            f"{name}: {len(lines)} lines of in-domain text; with --hold-out {every} at least {2 * every} are needed"
        )
    block = min(BLOCK_LINES, len(lines) // (2 * every))
    parts: tuple[list[str], list[str]] = ([], [])
    for i, line in enumerate(lines):
        parts[i // block % every == every - 1].append(line)
    return parts


def count_words(path: str | Path) -> Iterator[int]:
    """Yield the number of words of each line of a file.

    Raises:
        InputError: a line contains a word that is reserved by language models.
    """
    for number, line in enumerate(read_byte_lines(path), 1):
        words = line.split()
        refuse_reserved(words, path, number)
        yield len(words)


@dataclass(frozen=True)
class Samples:
    """Two random samples of a pool without common lines, each in pool order, and the size of the pool."""

    first: list[str]
    second: list[str]
    pool_lines: int


def sample_lines(paths: Sequence[str | Path], words: int, seed: int) -> Samples:
    """Draw two samples of random lines without replacement, each with about ``words`` words.

    If the pool is small, each sample is half of it. Lines whose text occurs in the first sample are left out of the
    second, so that a model of one sample has not seen any line of the other. Memory: the samples and 12 bytes per line
    of the pool.

    Raises:
        InputError: the pool has no words or fewer than two lines.
    """
    lengths = np.fromiter(track(chain.from_iterable(map(count_words, paths)), "reading the pool"), np.int32)
    order = np.random.default_rng(seed).permutation(len(lengths))
    total = np.cumsum(lengths[order], dtype=np.int64)
    if len(total) < 2 or not total[-1]:
        raise InputError(
            f"{', '.join(map(str, paths))}: {np.count_nonzero(lengths)} of {len(total)} lines contain words; "
            "too few for a selection"
        )
    words = min(words, int(total[-1]) // 2)
    ends = np.searchsorted(total, [words, 2 * words]) + 1
    part = np.zeros(len(lengths), np.uint8)
    part[order[: ends[0]]] = 1
    part[order[ends[0] : ends[1]]] = 2
    samples: tuple[list[str], ...] = ([], [], [])
    lines = chain.from_iterable(map(read_lines, paths))
    for line, number in zip(lines, part.tolist(), strict=True):
        if number:
            samples[number].append(line)
    seen = frozenset(samples[1])
    return Samples(samples[1], [line for line in samples[2] if line not in seen], len(lengths))
