"""Writing a smoothed model as an ARPA file."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rnnsmt.lm.columns import slices
from rnnsmt.lm.counts import Counts
from rnnsmt.lm.format_kernels import format_ngrams
from rnnsmt.lm.smoothing import SmoothedOrder
from rnnsmt.parallel_gzip import atomic_blocks

NGRAMS_PER_BLOCK = 1 << 17
LOWEST = 1e-99
"""A probability of 0 is written as its logarithm, -99, the custom of ARPA files."""


def write_arpa(path: str | Path, counts: Counts, model: list[SmoothedOrder], threads: int = 1) -> None:
    """Write an ARPA file, whole or not at all, compressed by suffix; n-grams stand in suffix order.

    Logarithms are base 10 with six decimals. The same model gives the same bytes whatever ``threads`` is.
    """
    with atomic_blocks(path, threads) as out:
        header = "".join(f"ngram {k}={len(level)}\n" for k, level in enumerate(counts.orders, 1))
        out.write(f"\\data\\\n{header}".encode())
        for k in range(1, len(model) + 1):
            out.write(f"\n\\{k}-grams:\n".encode())
            for block in _lines(counts, model, k):
                out.write(block)
        out.write(b"\n\\end\\\n")


def _lines(counts: Counts, model: list[SmoothedOrder], k: int) -> Iterator[memoryview]:
    """The lines of one order in blocks."""
    for start, stop in slices(len(counts.orders[k - 1]), NGRAMS_PER_BLOCK):
        words = counts.words(k, start, stop)
        yield _format(counts, words, model[k - 1].probability.read(start, stop), model[k - 1].backoff.read(start, stop))


def _format(counts: Counts, words: np.ndarray, probability: np.ndarray, backoff: np.ndarray) -> memoryview:
    vocabulary = counts.vocabulary
    lengths = np.diff(vocabulary.starts[: vocabulary.size + 1])
    out = np.empty(int(lengths[words].sum()) + words.size + 34 * len(words), np.uint8)
    logs = np.log10(np.maximum(probability.astype(np.float64), LOWEST))
    backoffs = np.log10(np.maximum(backoff.astype(np.float64), LOWEST))
    written = format_ngrams(words, logs, backoffs, vocabulary.starts, vocabulary.pool, out)
    return memoryview(out[:written])  # type: ignore[arg-type]
