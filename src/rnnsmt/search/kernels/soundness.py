"""Checks of the arrays of a binary model, so that the search can trust them: one pass when the file is mapped.

The kernels of the search have no bounds checks. A model from text is sound by construction; a file may come from
anybody. Wrong values that only change translations are not looked for here.
"""

from typing import NamedTuple

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.hashing import add_to_checksum, checksum_value
from rnnsmt.base.kernels.strings import InternTable, strings_fault
from rnnsmt.lm.automaton import LmArrays, automaton_fault

LEAST_SCORE, MOST_SCORE = -100.0, 710.0
"""Range of scores: ``source_text.LOG_FLOOR``, and the logarithm of the largest double."""

_SPACE = 32


class MappedModel(NamedTuple):
    """Arrays of a binary model, with the shapes that belong together.

    Attributes:
        sources, targets: source and target phrases.
        source_of, target_of, log_scores, table_of, first: as in ``PhraseTable``.
        tables: number of phrase tables.
        bounds, places: as in ``Affiliations``; ``bounds`` is empty if there are none.
        reordering, row_of: as in ``ReorderingTable``.
        lms: the n-gram LMs.
        words: their vocabularies.
    """

    sources: InternTable
    targets: InternTable
    source_of: np.ndarray
    target_of: np.ndarray
    log_scores: np.ndarray
    table_of: np.ndarray
    first: np.ndarray
    tables: int
    bounds: np.ndarray
    places: np.ndarray
    reordering: np.ndarray
    row_of: np.ndarray
    lms: tuple[LmArrays, ...]
    words: tuple[InternTable, ...]


DATA, SOURCES, TARGETS, PAIRS, AFFILIATIONS, REORDERING, LMS, LM_WORDS = range(8)
"""Parts of a binary model. ``DATA``: all bytes, compared with their checksum."""

PAIR_FAULTS = (
    "",
    "source phrases that are not sorted",
    "the number of a target phrase that does not exist",
    "a score that is not a logarithm",
    "the number of a phrase table that does not exist",
)
"""Faults of the part ``PAIRS``."""


@kernel(**INNER)
def _not_scores(values):
    """Return the number of elements of ``values`` float64 [n, columns] that are no scores, NaN among them."""
    flat = values.reshape(-1)
    # this form is vectorised, with the negation or a second loop it is not: 1.9 instead of 7.7 ms for a million pairs
    scores = np.int64(0)
    for k in range(flat.shape[0]):
        scores += np.int64(flat[k] >= LEAST_SCORE) & np.int64(flat[k] <= MOST_SCORE)
    return flat.shape[0] - scores


@kernel(**INNER)
def _outside(values, size):
    """Return the number of elements of ``values`` [n] that are no index of ``size`` elements."""
    wrong = 0
    for value in values:
        wrong += value < 0 or value >= size
    return wrong


@kernel(**INNER)
def _pairs_fault(model):
    """Return the index of a fault in ``PAIR_FAULTS``."""
    first, source_of = model.first, model.source_of
    sources, pairs = first.shape[0] - 1, source_of.shape[0]
    if first[0] != 0 or first[sources] != pairs or _outside(source_of, sources):
        return 1
    # without branches, and with indices that are never negative, for which numba would ask
    wrong = False
    for number in range(sources):
        wrong |= first[number + 1] < first[number]
    for pair in range(pairs):
        source = np.uint64(source_of[pair])
        wrong |= (first[source] > pair) | (first[source + np.uint64(1)] <= pair)
    if wrong:
        return 1
    if _outside(model.target_of, model.targets.hashes.shape[0]):
        return 2
    if _not_scores(model.log_scores):
        return 3
    return 4 if _outside(model.table_of, model.tables) else 0


@kernel(**INNER)
def _word_counts(table):
    """Return the number of words of every string, int32 [strings]."""
    counts = np.zeros(table.hashes.shape[0], np.int32)
    for number in range(counts.shape[0]):
        before = _SPACE
        for position in range(table.offsets[number], table.offsets[number + 1]):
            byte = table.arena[position]
            counts[number] += before == _SPACE and byte != _SPACE
            before = byte
    return counts


@kernel(**INNER)
def _affiliations_fault(model):
    """Return whether a target word has no affiliation in its pair, or a pair has a wrong number of words."""
    bounds, places = model.bounds, model.places
    if bounds[0] != 0 or bounds[bounds.shape[0] - 1] != places.shape[0]:
        return True
    sources, targets = _word_counts(model.sources), _word_counts(model.targets)
    for pair in range(bounds.shape[0] - 1):
        begin, end = bounds[pair], bounds[pair + 1]
        if end > places.shape[0] or end - begin != targets[model.target_of[pair]]:
            return True
        for word in range(begin, end):
            if places[word] < 0 or places[word] >= sources[model.source_of[pair]]:
                return True
    return False


@kernel()
def model_fault(data, checksum, state, model):  # noqa: PLR0911
    """Check a binary model.

    Args:
        data: ``uint64``, all bytes of the arrays.
        checksum: their checksum, ``uint64``.
        state: of ``new_checksum``.
        model: ``MappedModel``.

    Returns:
        The part that is damaged, -1 for none; the index of the fault among those of the part; the number of the LM.
    """
    add_to_checksum(state, data)
    if checksum_value(state) != checksum:
        return DATA, 0, 0
    fault = strings_fault(model.sources)
    if fault:
        return SOURCES, fault, 0
    fault = strings_fault(model.targets)
    if fault:
        return TARGETS, fault, 0
    fault = _pairs_fault(model)
    if fault:
        return PAIRS, fault, 0
    if model.bounds.shape[0] > 0 and _affiliations_fault(model):
        return AFFILIATIONS, 0, 0
    if _outside(model.row_of, model.reordering.shape[0]) or _not_scores(model.reordering):
        return REORDERING, 0, 0
    for number in range(len(model.lms)):
        fault = strings_fault(model.words[number])
        if fault:
            return LM_WORDS, fault, number
        fault = automaton_fault(model.lms[number])
        if fault:
            return LMS, fault, number
    return -1, 0, 0
