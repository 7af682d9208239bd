"""Splitting the in-domain text and sampling the pool, both in a way that a rerun repeats."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from rnnsmt.io import InputError, read_byte_lines, read_lines, write_lines
from rnnsmt.progress import track

BLOCK_LINES = 50


def hold_out(lines: Sequence[str], every: int, name: str) -> tuple[list[str], list[str]]:
    """Split lines into (training, held out): of every ``every`` blocks the last is held out.

    A block is ``BLOCK_LINES`` lines, or fewer where the text is short: there are at least 2 * ``every`` blocks.

    Raises:
        InputError: fewer than 2 * ``every`` lines, or ``every`` is 1.
    """
    if every < 2:
        raise InputError("--hold-out must be at least 2: with 1 nothing is left to train on")
    if len(lines) < 2 * every:
        raise InputError(
            f"{name}: {len(lines)} lines of in-domain text; with --hold-out {every} at least {2 * every} are needed"
        )
    block = min(BLOCK_LINES, len(lines) // (2 * every))
    parts: tuple[list[str], list[str]] = ([], [])
    for i, line in enumerate(lines):
        parts[i // block % every == every - 1].append(line)
    return parts


@dataclass(frozen=True)
class Sample:
    """Size of a random sample and of the pool it was drawn from."""

    pool_lines: int
    lines: int
    words: int


def sample_lines(paths: Sequence[str | Path], words: int, seed: int, output: Path) -> Sample:
    """Write random lines of the files, without repetition and in their order, until they have ``words`` words.

    A pool with fewer words is taken whole. Memory: 12 bytes per line of the pool.

    Raises:
        InputError: the pool has no words.
    """
    lengths = np.fromiter(
        (len(line.split()) for line in track(chain.from_iterable(map(read_byte_lines, paths)), "reading the pool")),
        np.int32,
    )
    order = np.random.default_rng(seed).permutation(len(lengths))
    total = np.cumsum(lengths[order], dtype=np.int64)
    if not len(total) or not total[-1]:
        raise InputError(f"{', '.join(map(str, paths))}: no words; there is nothing to select from")
    taken = np.zeros(len(lengths), bool)
    taken[order[: int(np.searchsorted(total, words)) + 1]] = True
    lines = chain.from_iterable(map(read_lines, paths))
    write_lines(output, (line for line, take in zip(lines, taken.tolist(), strict=True) if take))
    return Sample(len(lengths), int(taken.sum()), int(lengths[taken].sum()))
