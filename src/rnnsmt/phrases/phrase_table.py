"""Phrase table from an extract file, batch by batch."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.arrays import write_array
from rnnsmt.base.parallel_gzip import atomic_blocks
from rnnsmt.base.progress import Meter
from rnnsmt.phrases.extract_file import ExtractBatch, ExtractFile
from rnnsmt.phrases.lexical_table import NULL, read_lexical_table
from rnnsmt.phrases.packing import Packing, packing_array, word_texts
from rnnsmt.phrases.pair_scores import ScoredColumns, Smoothing, score_pairs, write_phrase_lines
from rnnsmt.phrases.table import write_table_lines

ORIGIN_COLUMNS = ("first_fold", "last_fold")
"""Columns of the extract file for the origins."""

LexicalProbabilities = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""A lexical table as compressed sparse rows by given word: offsets, words, probabilities."""


def score_phrases(
    extract: str,
    lex_e2f: str,
    lex_f2e: str,
    output: str,
    threads: int = 1,
    memory_mb: int = 2000,
    smoothing: str = "none",
    output_origins: str | None = None,
) -> dict[str, object]:
    """Write the phrase table of an extract file.

    Args:
        extract: the extract file.
        lex_e2f, lex_f2e: lexical tables.
        output: the phrase table.
        threads: number of threads.
        memory_mb: memory limit.
        smoothing: ``none`` or ``kneser-ney``.
        output_origins: file (``.npy``) for int32 [pairs, 3]: the first and the last fold in which the pair of each line
            occurs, and its number of occurrences; None: not written.

    Returns:
        The statistics of the stage.

    Raises:
        InputError: as ``ExtractFile`` and ``read_lexical_table``.
    """
    file = ExtractFile(extract, threads, memory_mb)
    codes = _codes(file.packings[0]), _codes(file.packings[1])
    lexicons = _lexicon(lex_e2f, codes[0], codes[1]), _lexicon(lex_f2e, codes[1], codes[0])
    nulls = np.array([codes[0][NULL], codes[1][NULL]], np.int64)
    packings, texts = packing_array(file.packings), word_texts(file.packings)
    counting = _counting(file.smoothing, smoothing)
    meter = Meter("scoring", file.rows, "rows")
    n_pairs, n_sources, missing = 0, 0, 0
    origins: list[NDArray[np.int32]] = []
    with atomic_blocks(output, threads) as out:
        for batch in file.batches([*ScoredColumns._fields, *(ORIGIN_COLUMNS if output_origins else ())]):
            chosen, counts, scores, unknown = _score(batch, packings, nulls, lexicons, counting)
            arguments = (batch.rows, packings, texts, chosen, counts, scores)
            write_table_lines(out, write_phrase_lines, len(chosen), arguments)
            n_pairs += len(chosen)
            n_sources += len(batch.rows.sources) - 1
            missing += unknown
            if output_origins:
                begins = batch.rows.pairs[:-1]
                first = np.minimum.reduceat(batch.columns["first_fold"], begins)
                last = np.maximum.reduceat(batch.columns["last_fold"], begins)
                joint = np.add.reduceat(batch.columns["joint"], begins)
                origins.append(np.stack([first, last, joint], 1).astype(np.int32))
            meter.add(len(batch.columns["links"]))
    if output_origins:
        write_array(output_origins, np.concatenate(origins))
    figures: dict[str, object] = {"phrase pairs": n_pairs, "source phrases": n_sources}
    if missing:
        figures["look-ups that the lexical tables do not answer (counted as 1)"] = missing
    return figures


def _counting(smoothing: Smoothing, kind: str) -> tuple[int, float, NDArray[np.float64]]:
    """Return the argument ``counting`` of ``score_pairs``.

    Args:
        smoothing: smoothing parameters of the extract file.
        kind: ``none`` or ``kneser-ney``.

    Returns:
        The number of alignments, the number of pairs, and the discounts by joint count; discounts of 0 for ``none``.
    """
    if kind == "none":
        return smoothing.alignments, 1.0, np.zeros(1)
    return smoothing.alignments, float(smoothing.pairs), np.array(smoothing.by_joint())


def _score(
    batch: ExtractBatch, packings: NDArray[np.int64], nulls: NDArray[np.int64], lexicons: Any, counting: Any
) -> Any:
    """Score a batch.

    Returns:
        The alignments [P], counts [P, 3] and scores [P, 4] of its pairs, and the number of missing look-ups.
    """
    n = len(batch.rows.pairs) - 1
    chosen, counts, scores = np.empty(n, np.int64), np.empty((n, 3), np.int64), np.empty((n, 4))
    columns = ScoredColumns(*[batch.columns[name] for name in ScoredColumns._fields])
    missing = score_pairs(batch.rows, columns, counting, packings, nulls, lexicons, chosen, counts, scores)
    return chosen, counts, scores, missing


def _codes(packing: Packing) -> dict[bytes, int]:
    """Return the mapping from word to code, including NULL, whose code is 0 unless the text contains the word NULL."""
    codes = {word: place for place, word in enumerate(packing.words, 1)}
    codes.setdefault(NULL, 0)
    return codes


def _lexicon(path: str, words: dict[bytes, int], given: dict[bytes, int]) -> LexicalProbabilities:
    """Read a lexical table as offsets by given word, words and probabilities."""
    word, condition, probability = read_lexical_table(path, words, given)
    order = np.lexsort((word, condition))
    offsets = np.searchsorted(condition[order], np.arange(len(given) + 2))
    return offsets.astype(np.int64), word[order], probability[order]
