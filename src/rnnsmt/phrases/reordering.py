"""Lexicalised reordering table from an extract file."""

import math

from rnnsmt.base.io import InputError
from rnnsmt.base.parallel_gzip import atomic_blocks
from rnnsmt.base.progress import Meter
from rnnsmt.phrases.extraction import ExtractFile
from rnnsmt.phrases.kernels.reordering import write_reordering_lines
from rnnsmt.phrases.packing import packing_array, word_texts
from rnnsmt.phrases.table import write_table_lines

_COUNTS = ["joint", "previous_mono", "previous_swap", "next_mono", "next_swap"]


def write_reordering_table(
    extract: str, output: str, smoothing: float = 0.5, threads: int = 1, memory_mb: int = 2000
) -> dict[str, object]:
    """Write the reordering table of an extract file.

    Args:
        extract: the extract file.
        output: the table.
        smoothing: added to every count.
        threads: number of threads.
        memory_mb: memory limit.

    Returns:
        The statistics of the stage.

    Raises:
        InputError: as ``ExtractFile``, or the smoothing is not positive and finite (a probability of 0 has no
            logarithm).
    """
    if not (smoothing > 0.0 and math.isfinite(smoothing)):
        raise InputError(f"--smoothing {smoothing}: must be above 0")
    file = ExtractFile(extract, threads, memory_mb)
    packings, texts = packing_array(file.packings), word_texts(file.packings)
    alignments = file.smoothing.alignments
    meter = Meter("writing", file.rows, "rows")
    n_pairs = 0
    with atomic_blocks(output, threads) as out:
        for batch in file.batches(_COUNTS):
            keys = batch.pairs, batch.source_keys, batch.target_keys
            counts = (batch.columns[name] for name in _COUNTS)
            lines = len(batch.pairs) - 1
            write_table_lines(
                out, write_reordering_lines, lines, (*keys, packings, texts, *counts, alignments, smoothing)
            )
            n_pairs += lines
            meter.add(len(batch.columns["joint"]))
    return {"phrase pairs": n_pairs}
