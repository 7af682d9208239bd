"""Display of phrase pairs with named scores."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.arrays import concatenated_ranges
from rnnsmt.base.operations import Printed
from rnnsmt.base.paths import StrPath
from rnnsmt.phrases.column_files import COUNT_NAMES, SCORE_NAMES, TableScores, open_columns
from rnnsmt.phrases.pairs import BLOCK, PhrasePairs

if TYPE_CHECKING:
    from pandas import DataFrame


class ShownPairs(Printed):
    """Phrase pairs with scores, as lines with tabs between the columns; the first line contains the names of columns.

    Attributes:
        columns: the columns by name, with one element for each pair.
    """

    def __init__(self, columns: dict[str, Sequence[Any]]) -> None:
        self.columns = columns
        rows = ("\t".join(map(_text, row)) for row in zip(*columns.values(), strict=True))
        super().__init__(["\t".join(columns), *rows], {"phrase pairs": len(columns["source"])})

    @property
    def frame(self) -> "DataFrame":
        """Return the pairs as a DataFrame."""
        from pandas import DataFrame

        return DataFrame(self.columns)


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def show_pairs(
    pairs: StrPath,
    scores: StrPath | None,
    reordering: StrPath | None,
    columns: Sequence[Sequence[StrPath]],
    source: str | None,
    limit: int,
) -> ShownPairs:
    """Return phrase pairs with scores, grouped by source phrase and sorted by descending p(target|source).

    Args:
        pairs: file of phrase pairs.
        scores, reordering, columns: outputs of `phrases score`, `phrases reordering` and `phrases column`.
        source: source phrase; None to show the first source phrases of the file.
        limit: maximum number of pairs.
    """
    store = PhrasePairs(pairs)
    runs = np.arange(min(limit, len(store.first) - 1)) if source is None else _runs_of(store, source.split())
    rows = concatenated_ranges(store.first[runs], store.first[runs + 1] - store.first[runs])
    table = None if scores is None else TableScores(scores, store, "phrases score")
    if table is not None and SCORE_NAMES[2] in table.names:
        rows = rows[np.lexsort((rows, -table.arrays[SCORE_NAMES[2]][rows], store.runs(rows)))]
    rows = rows[:limit]
    phrases = [next(store.texts(row, row + 1)) for row in rows.tolist()]
    shown: dict[str, Sequence[Any]] = {
        "source": [" ".join(words) for words, _ in phrases],
        "target": [" ".join(words) for _, words in phrases],
    }
    found = [table, None if reordering is None else TableScores(reordering, store, "phrases reordering")]
    for one in found:
        if one is not None:
            shown |= dict(zip(one.names, one.probabilities(rows).T.tolist(), strict=True))
    for column in open_columns(columns, store):
        shown[column.label] = column.scores(rows).tolist()
    if table is not None:
        shown |= {
            name: table.arrays[name][rows].astype(np.int64).tolist() for name in COUNT_NAMES if name in table.arrays
        }
    return ShownPairs(shown)


def _runs_of(store: PhrasePairs, words: Sequence[str]) -> NDArray[np.int64]:
    """Return an array with the run of a source phrase, which is empty if there is no such source phrase."""
    number_of = {word: number for number, word in enumerate(store.words[0])}
    wanted = [number_of.get(word, -1) for word in words]
    phrases, found = store.sides[0], []
    for begin in range(0, len(phrases.offsets) - 1, BLOCK):
        offsets = phrases.offsets[begin : begin + BLOCK + 1]
        runs = np.flatnonzero(np.diff(offsets) == len(wanted))
        for position, word in enumerate(wanted):
            runs = runs[phrases.words[offsets[runs] + position] == word]
        found.append(begin + runs)
    return np.concatenate(found)
