"""Writing a smoothed model as an ARPA file."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnsmt.lm.columns import slices
from rnnsmt.lm.counts import Counts
from rnnsmt.lm.format_kernels import format_ngrams
from rnnsmt.lm.smoothing import SmoothedOrder
from rnnsmt.parallel_gzip import atomic_blocks
from rnnsmt.progress import Meter

NGRAMS_PER_BLOCK = 1 << 17
LOWEST = 1e-99
"""A probability of 0 is written as its logarithm, -99, the custom of ARPA files."""


def write_arpa(
    path: str | Path,
    counts: Counts,
    model: list[SmoothedOrder],
    threads: int = 1,
    only: Iterable[str] | None = None,
) -> None:
    """Write an ARPA file, whole or not at all, compressed by suffix; n-grams stand in suffix order.

    Logarithms are base 10 with six decimals. The same model gives the same bytes whatever ``threads`` is.

    Args:
        only: write the n-grams of these words and of ``<unk>``, ``<s>``, ``</s>`` and no others: the probabilities of
            any text made of these words stay what they are.
    """
    wanted = None if only is None else counts.vocabulary.mask(only)
    with atomic_blocks(path, threads) as out:
        out.write(b"\\data\\\n")
        for k, level in enumerate(counts.orders, 1):
            number = len(level)
            if wanted is not None:
                number = sum(len(words) for _, words in _ngrams(counts, k, wanted))
            out.write(f"ngram {k}={number}\n".encode())
        meter = Meter("writing", sum(map(len, counts.orders)) if wanted is None else None, "n-grams")
        for k, smoothed in enumerate(model, 1):
            out.write(f"\n\\{k}-grams:\n".encode())
            for rows, words in _ngrams(counts, k, wanted):
                meter.add(len(rows))
                start, stop = int(rows[0]), int(rows[-1]) + 1
                probability = smoothed.probability.read(start, stop)[rows - start]
                backoff = smoothed.backoff.read(start, stop)
                out.write(_format(counts, words, probability, backoff[rows - start] if len(backoff) else backoff))
        out.write(b"\n\\end\\\n")


def _ngrams(
    counts: Counts, order: int, wanted: npt.NDArray[np.bool_] | None
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]]:
    """Blocks of (n-gram numbers [n], words [n, order]), of the n-grams whose words are all wanted."""
    for start, stop in slices(len(counts.orders[order - 1]), NGRAMS_PER_BLOCK):
        words, rows = counts.words(order, start, stop), np.arange(start, stop)
        if wanted is not None:
            kept = wanted[words].all(axis=1)
            words, rows = words[kept], rows[kept]
        if len(rows):
            yield rows, words


def _format(counts: Counts, words: np.ndarray, probability: np.ndarray, backoff: np.ndarray) -> memoryview:
    vocabulary = counts.vocabulary
    lengths = np.diff(vocabulary.starts[: vocabulary.size + 1])
    out = np.empty(int(lengths[words].sum()) + words.size + 34 * len(words), np.uint8)
    logs = np.log10(np.maximum(probability.astype(np.float64), LOWEST))
    backoffs = np.log10(np.maximum(backoff.astype(np.float64), LOWEST))
    written = format_ngrams(words, logs, backoffs, vocabulary.starts, vocabulary.pool, out)
    return memoryview(out[:written])  # type: ignore[arg-type]
