"""Selection of phrase pairs for texts: the phrase table with which the decoder translates the texts.

All source phrases in the file of phrase pairs are read once; scores are read only for the selected pairs. Both are read
in blocks, and then unmapped: memory grows with the number of selected pairs, not with the size of the files.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.arrays import concatenated_ranges
from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decimals import six_digits
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.strings import Interner, intern
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import Meter, warn
from rnnsmt.base.reading import check_tokenised, read_byte_lines
from rnnsmt.phrases.column_files import (
    AFFILIATIONS,
    COUNT_NAMES,
    ColumnScores,
    TableScores,
    arrays_of,
    open_columns,
)
from rnnsmt.phrases.pairs import BLOCK, PhraseIds, PhrasePairs
from rnnsmt.phrases.table import PhraseTable, distinct_rows, index_of, log_scores_of

SELECTED = 1 << 13
"""Number of selected runs or pairs that are read at a time. The system maps 64 kB at once, so that at most 0.5 GB of an
array are mapped, however far apart the pairs are."""

WORD_BYTES = 4
"""Number of bytes of a word id (``uint32``); phrases are interned as the bytes of their word ids."""


def select_table(
    pairs: StrPath,
    scores: StrPath,
    reordering: StrPath,
    columns: Sequence[Sequence[StrPath]],
    texts: Sequence[StrPath] | None,
) -> tuple[PhraseTable, dict[str, object]]:
    """Return the phrase table of all pairs whose source phrase occurs in texts.

    Args:
        pairs: file of phrase pairs.
        scores, reordering: outputs of `phrases score` and `phrases reordering`, or of `phrases import-table`.
        columns: files of each score column (`phrases column`), in the order of the features.
        texts: tokenised texts; None to select all pairs.

    Returns:
        The table, and the statistics of the stage.

    Raises:
        InputError: a file is malformed or belongs to other phrase pairs, or the texts contain no words.
    """
    store = PhrasePairs(pairs)
    table = TableScores(scores, store, "phrases score")
    orientations = TableScores(reordering, store, "phrases reordering")
    further = open_columns(columns, store)
    runs = np.arange(len(store.first) - 1) if texts is None else _runs_of_texts(store, texts)
    first, end = np.concatenate([store.first[np.stack([block, block + 1])] for block in _blocks(runs, store)], axis=1)
    rows = concatenated_ranges(first, end - first)
    if not len(rows):
        warn("no phrase pair of the table occurs in the text; all words remain untranslated")
    (sources, source_words), (targets, target_words) = (
        _renumbered(PhraseIds.concatenated([side.select(block) for block in _blocks(index, store)]), words)
        for side, index, words in zip(store.sides, (runs, rows), store.words, strict=True)
    )
    probabilities = [np.concatenate([table.probabilities(block) for block in _blocks(rows, table)])]
    for one in further:
        scores_of_column = [one.probabilities(block) for block in _blocks(rows, one)]
        probabilities.append(six_digits(np.concatenate(scores_of_column))[:, None])
    affiliations, count = arrays_of(
        table, (AFFILIATIONS, COUNT_NAMES[2]), "create it again with `phrases import-table`"
    )
    affiliated = PhraseIds(affiliations, store.sides[1].offsets)
    words = Interner()
    words.add(source_words)
    selected = PhraseTable(
        words,
        target_words,
        sources,
        np.concatenate([np.zeros(1, np.int64), np.cumsum(end - first)]),
        targets,
        log_scores_of(np.concatenate(probabilities, axis=1)),
        distinct_rows(
            log_scores_of(np.concatenate([orientations.probabilities(block) for block in _blocks(rows, orientations)]))
        ),
        np.concatenate([affiliated.select(block).words for block in _blocks(rows, table, store)]),
        np.concatenate([count[block].astype(np.float32) for block in _blocks(rows, table)]),
        index_of(sources),
    )
    figures: dict[str, object] = {"source phrases": len(runs), "phrase pairs": len(rows), "of phrase pairs": len(store)}
    return selected, figures | {"scores per pair": selected.log_scores.shape[1]}


def _renumbered(phrases: PhraseIds, words: Sequence[str]) -> tuple[PhraseIds, list[bytes]]:
    """Return phrases with consecutive word ids (``int32``), and the words; the id of a word is its index."""
    used, ids = np.unique(phrases.words, return_inverse=True)
    return PhraseIds(ids.reshape(-1).astype(np.int32), phrases.offsets), [words[n].encode() for n in used.tolist()]


def _runs_of_texts(store: PhrasePairs, texts: Sequence[StrPath]) -> NDArray[np.int64]:
    """Return the runs (``rnnsmt.phrases.pairs``) whose source phrase occurs in texts."""
    vocabulary = Interner()
    vocabulary.number(store.vocabulary("source").tobytes())
    runs, ends = len(store.first) - 1, store.sides[0].offsets
    longest = max(int(np.diff(ends[part.start : part.stop + 1]).max(initial=0)) for part in _parts(runs, BLOCK, store))
    phrases, any_words = Interner(), False
    for text in texts:
        for ids, bounds in _sentences(text, vocabulary):
            any_words |= len(ids) > 0
            spans = len(ids) * longest
            phrases.reserve(spans, spans * longest * WORD_BYTES)
            add_spans(phrases.table, ids, ids.view(np.uint8), bounds, longest)
    if not any_words:
        raise InputError(f"{texts[0]}: the input contains no words")
    meter = Meter("selecting", runs, "source phrases")
    selected = []
    for part in _parts(runs, BLOCK, store):
        words, offsets = store.sides[0].select(np.arange(part.start, part.stop))
        found = phrases.find_all(words.astype(np.uint32).view(np.uint8), offsets * WORD_BYTES)
        selected.append(part.start + np.flatnonzero(found >= 0))
        meter.add(part.stop - part.start)
    return np.concatenate(selected)


def _blocks(rows: NDArray[np.int64], *files: PhrasePairs | TableScores | ColumnScores) -> Iterator[NDArray[np.int64]]:
    """Yield rows in blocks of ``SELECTED``, see ``_parts``."""
    for part in _parts(len(rows), SELECTED, *files):
        yield rows[part]


def _parts(count: int, size: int, *files: PhrasePairs | TableScores | ColumnScores) -> Iterator[slice]:
    """Yield the parts of a range of ``count`` elements, at least one; after each part, unmap the pages of the files."""
    for begin in range(0, max(count, 1), size):
        yield slice(begin, min(begin + size, count))
        for file in files:
            file.release()


def _sentences(text: StrPath, vocabulary: Interner) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
    """Yield blocks of lines, as a pair: the word ids (the largest ``uint32`` for unknown words), and the offset of each
    line.
    """
    lines: list[bytes] = []

    def numbered() -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        words = [[word for word in line.split(b" ") if word] for line in lines]
        bounds = np.cumsum([0, *map(len, words)])
        return vocabulary.find([word for line in words for word in line]).astype(np.uint32), bounds

    for number, line in enumerate(read_byte_lines(text)):
        check_tokenised(line, text, number)
        lines.append(line)
        if len(lines) == 1000:
            yield numbered()
            lines.clear()
    if lines:
        yield numbered()


@kernel()
def add_spans(phrases: Any, ids: Any, data: Any, bounds: Any, longest: int) -> None:
    """Add all spans of sentences that contain no unknown word to a set of phrases.

    Args:
        phrases: ``InternTable`` with capacity for the spans; its strings are the bytes of word ids.
        ids: uint32 [words], word ids of the sentences; the largest uint32 for an unknown word.
        data: uint8, the bytes of ``ids``.
        bounds: int64 [sentences + 1], begin of each sentence in ``ids``.
        longest: maximum number of words of a span.
    """
    unknown = np.uint32(0xFFFFFFFF)
    for sentence in range(bounds.shape[0] - 1):
        for first in range(bounds[sentence], bounds[sentence + 1]):
            for end in range(first + 1, min(first + longest, bounds[sentence + 1]) + 1):
                if ids[end - 1] == unknown:
                    break
                intern(phrases, data, first * 4, end * 4)
