"""The phrase table of the decoder: phrase pairs as word ids, with log scores, grouped by source phrase.

It is created from a file of phrase pairs (``rnnsmt.phrases.selection``) or from tables in Moses format
(``rnnsmt.search.phrase_pairs``). It can be stored in a file of arrays (``rnnsmt.base.array_file``) that is mapped into
memory. The file contains these arrays:

* ``source vocabulary``, ``target vocabulary``, ``source words``, ``source offsets``, ``first``, ``target words``,
  ``target offsets``: the phrase pairs, as in ``rnnsmt.phrases.pairs``.
* ``log scores`` [pairs · columns]: natural logarithms of the scores, pair by pair.
* ``affiliations`` [target words]: the source word with which each target word is affiliated
  (``rnnsmt.align.affiliation``), as a 0-based position in the source phrase; absent if affiliations were not read.
* ``counts`` [pairs]: how often each pair was extracted; 0 if unknown.
* ``reordering log scores`` [rows · columns]: natural logarithms of the distinct rows of reordering scores, row by row.
* ``reordering rows`` [pairs]: the row of each pair in ``reordering log scores``.
* ``index``: hash table of the source phrases.

The header entries ``columns`` and ``reordering columns`` are the numbers of scores. The header entry ``texts``
identifies the text files from which the table was read (``rnnsmt.formats.binary_forms``).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.array_file import ArrayFile, write_arrays
from rnnsmt.base.errors import InputError, OtherVersionError
from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.numbers import mix
from rnnsmt.base.kernels.probing import first_slot, next_slot
from rnnsmt.base.kernels.strings import Interner
from rnnsmt.base.paths import StrPath
from rnnsmt.phrases.pairs import SIDES, PhraseIds

FORMAT = "rnnsmt-phrase-table-1"
"""Version of the format; must be changed if the arrays, their meaning or the hash function of the index change."""

LOG_FLOOR = -100.0
"""Lower bound of log scores, as in Moses."""

_OFFSET, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
"""Offset basis and prime of 64-bit FNV-1a."""


class ReorderingTable(NamedTuple):
    """Reordering scores of phrase pairs.

    Attributes:
        log_scores: ``float64`` [rows, columns], natural logarithms; each row occurs once.
        row_of: ``int32`` [pairs], row in ``log_scores`` of each pair.
    """

    log_scores: NDArray[np.float64]
    row_of: NDArray[np.int32]


def distinct_rows(log_scores: NDArray[np.float64]) -> ReorderingTable:
    """Return the reordering table for log scores [pairs, columns]; equal rows, which are frequent, are stored once."""
    rows, row_of = np.unique(log_scores, axis=0, return_inverse=True)
    return ReorderingTable(rows, row_of.reshape(-1).astype(np.int32))


def no_reordering(pairs: int) -> ReorderingTable:
    """Return the reordering table for ``pairs`` pairs of a model without reordering scores."""
    return ReorderingTable(np.zeros((1, 1)), np.zeros(pairs, np.int32))


def log_scores_of(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the natural logarithms of probabilities, but at least ``LOG_FLOOR``."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(probabilities), LOG_FLOOR)


@dataclass
class PhraseTable:
    """Phrase pairs of a model, grouped by source phrase.

    Attributes:
        source_words: source vocabulary.
        target_words: target vocabulary; the id of a word is its index.
        sources: the source phrases, with ids of type ``int32``.
        first: ``int64`` [sources + 1]; the pairs of source phrase s are ``first[s]``, ..., ``first[s + 1] - 1``.
        targets: the target phrases of the pairs, with ids of type ``int32``.
        log_scores: ``float64`` [pairs, columns].
        reordering: reordering scores of the pairs.
        affiliations: ``int8`` [target words], affiliation of each element of ``targets.words``; None if affiliations
            were not read.
        counts: ``float32`` [pairs], how often each pair was extracted; 0 if unknown.
        index: ``int32`` [slots], hash table of the source phrases, see ``index_phrases``.
        texts: string that identifies the text files from which the table was read; empty if it was created from a file
            of phrase pairs.
        release: function that unmaps the pages of the file that were read so far; later reads map them again.
    """

    source_words: Interner
    target_words: list[bytes]
    sources: PhraseIds
    first: NDArray[np.int64]
    targets: PhraseIds
    log_scores: NDArray[np.float64]
    reordering: ReorderingTable
    affiliations: NDArray[np.int8] | None
    counts: NDArray[np.float32]
    index: NDArray[np.int32]
    texts: str = ""
    release: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.targets.offsets) - 1

    @property
    def longest_source(self) -> int:
        """Return the number of words of the longest source phrase, or 1 if the table is empty."""
        return int(np.diff(self.sources.offsets).max(initial=1))

    def find_spans(self, words: Sequence[str], bounds: NDArray[np.int64], longest: int) -> NDArray[np.int32]:
        """Look up all spans of sentences among the source phrases.

        Args:
            words: the words of all sentences, concatenated.
            bounds: [sentences + 1]; the words of sentence s are ``words[bounds[s]:bounds[s + 1]]``.
            longest: maximum number of words of a span.

        Returns:
            int32 [words, longest]; element [i, n - 1] is the source phrase that consists of the n words from word i on,
            or -1 if there is none.
        """
        ids = self.source_words.find([word.encode("utf-8") for word in words]).astype(np.int32)
        spans = np.empty((len(words), longest), np.int32)
        find_spans(self.index, self.sources.words, self.sources.offsets, ids, bounds, spans)
        return spans

    def counts_of(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], float]:
        """Return how often phrase pairs were extracted; pairs that are not in the table are omitted.

        Args:
            pairs: source and target phrases, with single spaces between words.
        """
        distinct = list(dict.fromkeys(pairs))
        words = [source.split(" ") for source, _ in distinct]
        if not words:
            return {}
        bounds = np.cumsum([0, *map(len, words)])
        spans = self.find_spans([word for of_pair in words for word in of_pair], bounds, max(map(len, words)))
        sources = spans[bounds[:-1], np.diff(bounds) - 1].tolist()
        number_of = {word: number for number, word in enumerate(self.target_words)}
        counts: dict[tuple[str, str], float] = {}
        for pair, source in zip(distinct, sources, strict=True):
            if source < 0:
                continue
            wanted = [number_of.get(word, -1) for word in pair[1].encode().split(b" ")]
            rows = np.arange(*self.first[source : source + 2])
            rows = rows[np.diff(self.targets.offsets[rows[0] : rows[-1] + 2]) == len(wanted)]
            for position, word in enumerate(wanted):
                rows = rows[self.targets.words[self.targets.offsets[rows] + position] == word]
            if len(rows):
                counts[pair] = float(self.counts[rows[0]])
        return counts

    def write(self, path: StrPath) -> None:
        """Write the table to a file of arrays atomically."""
        arrays: dict[str, NDArray[Any]] = {
            "log scores": self.log_scores.reshape(-1),
            "reordering log scores": self.reordering.log_scores.reshape(-1),
            "first": self.first,
            "source offsets": self.sources.offsets,
            "target offsets": self.targets.offsets,
            "source words": self.sources.words,
            "target words": self.targets.words,
            "reordering rows": self.reordering.row_of,
            "counts": self.counts,
            "index": self.index,
        }
        if self.affiliations is not None:
            arrays["affiliations"] = self.affiliations
        for side, words in zip(SIDES, (self.source_words.strings(), self.target_words), strict=True):
            arrays[f"{side} vocabulary"] = np.frombuffer(b"".join(word + b"\n" for word in words), np.uint8)
        with write_arrays(path, {name: array.dtype for name, array in arrays.items()}) as out:
            for name, array in arrays.items():
                out.append(name, array)
            out.entries |= {
                "format": FORMAT,
                "columns": str(self.log_scores.shape[1]),
                "reordering columns": str(self.reordering.log_scores.shape[1]),
                "texts": self.texts,
            }


def open_table(path: StrPath, remedy: str) -> PhraseTable:
    """Map a file that ``PhraseTable.write`` has written; its content is trusted.

    Args:
        remedy: advice at the end of error messages.

    Raises:
        InputError: the file is missing or incomplete.
        OtherVersionError: the file has another version of the format.
    """
    arrays = ArrayFile(path, remedy, writeable=True)
    if arrays.entries.get("format") != FORMAT:
        raise OtherVersionError(f"{path}: not a phrase table of this version ({FORMAT}); {remedy}")
    pairs = len(arrays["target offsets"]) - 1
    vocabularies = (arrays[f"{side} vocabulary"].tobytes() for side in SIDES)
    source_words = Interner()
    source_words.number(next(vocabularies))
    return PhraseTable(
        source_words,
        next(vocabularies).split(b"\n")[:-1],
        PhraseIds(arrays["source words"], arrays["source offsets"]),
        arrays["first"],
        PhraseIds(arrays["target words"], arrays["target offsets"]),
        arrays["log scores"].reshape(pairs, int(arrays.entries["columns"])),
        ReorderingTable(
            arrays["reordering log scores"].reshape(-1, int(arrays.entries["reordering columns"])),
            arrays["reordering rows"],
        ),
        arrays.get("affiliations"),
        arrays["counts"],
        arrays["index"],
        arrays.entries["texts"],
        arrays.release,
    )


def index_of(phrases: PhraseIds) -> NDArray[np.int32]:
    """Return a hash table of phrases, see ``index_phrases``; at most half of the slots are in use.

    Raises:
        InputError: the phrases are not distinct.
    """
    slots = np.zeros(1 << (2 * len(phrases.offsets)).bit_length(), np.int32)
    twice = index_phrases(slots, phrases.words, phrases.offsets)
    if twice >= 0:
        raise InputError(
            "a source phrase of the table occurs in several places; sort the table (LC_ALL=C sort), and import it again"
        )
    return slots


@kernel(inline="always")
def add_word(key, word):
    """Return the hash (``uint64``, FNV-1a) of a phrase that is extended by a word; ``key`` is the hash without it."""
    return (key ^ np.uint64(word)) * _PRIME


@kernel(**INNER)
def _slot(slots, words, offsets, ids, begin, end, key):
    """Return the slot of the phrase ``ids[begin:end]``, or the free slot at which the search for it ends.

    Args:
        slots: as in ``index_phrases``.
        words, offsets: ``PhraseIds`` of the phrases in the hash table.
        key: hash of the phrase, see ``add_word``.
    """
    slot = first_slot(slots, mix(key))
    while slots[slot] != 0:
        start = offsets[slots[slot] - 1]
        if offsets[slots[slot]] - start == end - begin:
            same = True
            for position in range(end - begin):
                if words[start + position] != ids[begin + position]:
                    same = False
                    break
            if same:
                break
        slot = next_slot(slots, slot)
    return slot


@kernel()
def index_phrases(slots, words, offsets):
    """Insert phrases into a hash table with linear probing.

    Args:
        slots: ``int32`` [slots], zeros, filled with the index of a phrase + 1, or 0 for a free slot; the number of
            slots is a power of two.
        words, offsets: ``PhraseIds``.

    Returns:
        The index of the first phrase that is equal to an earlier one, or -1 if all phrases are distinct.
    """
    for phrase in range(offsets.shape[0] - 1):
        key = _OFFSET
        for position in range(offsets[phrase], offsets[phrase + 1]):
            key = add_word(key, words[position])
        slot = _slot(slots, words, offsets, words, offsets[phrase], offsets[phrase + 1], key)
        if slots[slot] != 0:
            return phrase
        slots[slot] = phrase + 1
    return -1


@kernel()
def find_spans(slots, words, offsets, ids, bounds, out):
    """Look up all spans of sentences in a hash table of phrases.

    Args:
        slots: hash table, as filled by ``index_phrases``.
        words, offsets: ``PhraseIds`` of the phrases in the hash table.
        ids: ``int32`` [words], word ids of the sentences; -1 for words that do not occur in the phrases.
        bounds: ``int64`` [sentences + 1], begin of each sentence in ``ids``.
        out: ``int32`` [words, longest]; element [i, n - 1] is filled with the index of the phrase that consists of the
            n words from word i on, or -1 if there is none.
    """
    for sentence in range(bounds.shape[0] - 1):
        for i in range(bounds[sentence], bounds[sentence + 1]):
            out[i] = -1
            key = _OFFSET
            for length in range(min(out.shape[1], bounds[sentence + 1] - i)):
                if ids[i + length] < 0:
                    break
                key = add_word(key, ids[i + length])
                out[i, length] = slots[_slot(slots, words, offsets, ids, i, i + length + 1, key)] - 1
