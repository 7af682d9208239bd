"""Translation options: phrase pairs for all spans of sentences, including unknown words, ranked under weights."""

import re
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from rnnsmt.base.io import words_of
from rnnsmt.base.kernels.strings import Interner
from rnnsmt.search.kernels import tables as table_kernels
from rnnsmt.search.kernels.features import score_alone, suffix_maxima
from rnnsmt.search.kernels.records import RankedOptions
from rnnsmt.search.model import UNKNOWN_WORD_SCORE, SearchModel
from rnnsmt.search.phrase_pairs import Affiliations, TargetPhrases, TranslationOptions, concatenated_ranges
from rnnsmt.search.source_text import GivenTranslation, check_lengths, sentence_bytes, walls_before


def look_up(model: SearchModel, sentences: list[str]) -> TranslationOptions:
    """Look up the phrase pairs for sentences; words without a single-word translation are passed through or dropped.

    XML in the sentences is interpreted according to the ini. The model keeps the result of the last call, since MERT
    translates the same sentences repeatedly.

    Raises:
        InputError: a sentence has more than ``MAX_WORDS`` words, or XML that cannot be parsed.
    """
    if model.looked_up is not None and model.looked_up[0] == sentences:
        return model.looked_up[1]
    model.looked_up = None  # free the memory of the previous result
    marked = model.without_marks(sentences)
    check_lengths([mark.text for mark in marked])
    longest = max([model.longest, *(entry.last - entry.first + 1 for mark in marked for entry in mark.translations)])
    words = [words_of(mark.text) for mark in marked]
    bounds = np.cumsum([0, *map(len, words)])
    every = np.empty((bounds[-1], longest), np.int32)
    flat = list(chain.from_iterable(words))
    table_kernels.find_spans(model.table.sources.table, *sentence_bytes(flat), bounds, every)
    model.release()
    spans = [every[begin:end] for begin, end in pairwise(bounds.tolist())]
    if model.xml_input == "exclusive":
        for table, mark in zip(spans, marked, strict=True):
            for entry in mark.translations:
                _forget(table, entry.first, entry.last)
    # renumber the source phrases that occur in the text; the tables have many more
    ids = np.unique(every)
    ids = ids[ids >= 0]
    every[every >= 0] = np.searchsorted(ids, every[every >= 0])
    known = len(ids)
    unknown: dict[str, int] = {}
    for index in np.flatnonzero(every[:, 0] < 0).tolist():
        every[index, 0] = known + unknown.setdefault(flat[index], len(unknown))
    walls = [walls_before(mark.walls, len(table)) for mark, table in zip(marked, spans, strict=True)]
    xml_translations = _give(spans, [mark.translations for mark in marked], known, known + len(unknown))
    options = _with_further_pairs(model, ids, spans, walls, list(unknown), xml_translations)
    texts = [mark.text for mark in marked]
    options = options._replace(prepared=[feature.prepare(options, texts) for feature in model.neural])
    model.looked_up = (list(sentences), options)
    return options


def _forget(spans: np.ndarray, first: int, last: int) -> None:
    """Remove from ``spans`` ``int32`` [words, longest] the source phrases that overlap words ``first`` to ``last``."""
    for length in range(1, spans.shape[1] + 1):
        spans[max(first - length + 1, 0) : last + 1, length - 1] = -1


class _Given(NamedTuple):
    """A translation from XML in the input.

    Attributes:
        source: number of the source phrase that was created for the span.
        beside: source phrase of the table for the same span, -1 for none.
        target: the translation.
        score: natural logarithm of its probability.
    """

    source: int
    beside: int
    target: str
    score: float


def _give(
    spans: list[np.ndarray], translations: list[list[GivenTranslation]], known: int, sources: int
) -> list[_Given]:
    """Create a source phrase, numbered from ``sources``, for every span that has translations in XML.

    Args:
        spans: per sentence ``int32`` [words, longest], changed in place.
        translations: translations of each sentence.
        known: number of source phrases of the table.
        sources: number of source phrases so far.
    """
    options = []
    for table, xml_translations in zip(spans, translations, strict=True):
        new_sources: dict[tuple[int, int], tuple[int, int]] = {}
        for entry in xml_translations:
            span = entry.first, entry.last - entry.first
            if span not in new_sources:
                before = int(table[span])
                new_sources[span] = sources, before if before < known else -1
                table[span] = sources
                sources += 1
            options.append(_Given(*new_sources[span], entry.target, entry.score))
    return options


def _with_further_pairs(
    model: SearchModel,
    ids: np.ndarray,
    spans: list[np.ndarray],
    walls: list[np.ndarray],
    unknown: list[str],
    xml_translations: list[_Given],
) -> TranslationOptions:
    """Return the pairs of the table, of unknown words, and of XML.

    The source phrases of XML also get the pairs that the table has for the same span.

    Args:
        model: the model.
        ids: ``int32``, source phrases of the table that occur in the text, ascending; the first ones in ``spans``.
        spans, walls, unknown: as in ``TranslationOptions``.
        xml_translations: translations from XML.
    """
    interner = Interner()
    # unknown words are dropped or passed through; those with digits are always passed through, as in Moses
    words = ["" if model.drop_unknown and not re.search("[0-9]", word) else word for word in unknown]
    phrase_of = interner.add([text.encode("utf-8") for text in [*words, *(entry.target for entry in xml_translations)]])
    table = model.table
    first, counts = table.first[ids], table.first[ids + 1] - table.first[ids]
    used = concatenated_ranges(first, counts)
    known, end = len(ids), len(used) + len(unknown)
    # rows (source phrase, row of the table or -1, new target phrase or -1, score): translations from XML, and copies of
    # the table's pairs for the same spans
    phrases_of = phrase_of[len(unknown) :].tolist()
    further = [
        (entry.source, -1, phrase, entry.score) for entry, phrase in zip(xml_translations, phrases_of, strict=True)
    ]
    for source, before in dict.fromkeys(
        (entry.source, entry.beside) for entry in xml_translations if entry.beside >= 0
    ):
        further += [(source, row, -1, 0.0) for row in range(int(first[before]), int(first[before] + counts[before]))]
    further.sort(key=lambda pair: pair[0])
    sources, pairs, phrases, scores = np.array(further).reshape(-1, 4).T
    row_of = np.concatenate([used, np.full(len(unknown), -1), pairs.astype(np.int64)])
    numbers = np.arange(known + len(unknown), dtype=np.int32)
    source_of = np.concatenate([np.repeat(numbers[:known], counts), numbers[known:], sources.astype(np.int32)])
    target_of = np.concatenate([np.full(len(used), -1), phrase_of[: len(unknown)], phrases]).astype(np.int32)
    # number the target phrases: first those of the table that are used, then the new ones
    of_table = row_of >= 0
    table_targets, number_of = np.unique(table.target_of[row_of[of_table]], return_inverse=True)
    target_of[~of_table] += np.int32(len(table_targets))
    target_of[of_table] = number_of
    targets, strings = _target_phrases(model, table_targets, interner)
    model.release()
    lengths = np.diff(targets.bounds)[target_of]
    static = np.zeros((len(row_of), len(model.feature_names)))
    columns = model.columns["PhraseDictionaryMemory"]
    static[:, columns] = _taken(table.log_scores, row_of, 0.0)
    model.release()
    # as in Moses, the log probability of a translation from XML is divided equally among the scores of the first table
    names = [model.feature_names[column].rpartition(":")[0] for column in columns]
    shares = columns[: names.count(names[0])]
    static[end:, shares] += (scores / len(shares))[:, None]
    if "WordPenalty" in model.columns:
        static[:, model.columns["WordPenalty"][0]] = -lengths
    if "PhrasePenalty" in model.columns:
        static[:, model.columns["PhrasePenalty"][0]] = 1.0
    if "UnknownWordPenalty" in model.columns:
        static[len(used) : end, model.columns["UnknownWordPenalty"][0]] = UNKNOWN_WORD_SCORE
    return TranslationOptions(
        spans,
        strings,
        targets,
        source_of,
        target_of,
        static,
        *_reordering(model, row_of),
        _taken(table.table_of, row_of, -1),
        walls,
        max((span.shape[1] for span in spans), default=1),
        known + len(unknown) + len({entry.source for entry in xml_translations}),
        len(used),
        unknown,
        None if table.affiliations is None else _affiliations(table.affiliations, row_of, lengths),
        [],
    )


def _target_phrases(model: SearchModel, ids: np.ndarray, further: Interner) -> tuple[TargetPhrases, list[str]]:
    """Return target phrases with their LM scores in the empty context, and the strings of their words.

    Words are interned across all phrases: a string has one id, whether it comes from a pair or is passed through.

    Args:
        ids: target phrases of the table, which come first.
        further: new target phrases, which come after them.
    """
    (arena, offsets), added = model.table.targets.bytes_of(ids), further.table
    model.release()
    offsets = np.concatenate([offsets, offsets[-1] + added.offsets[1 : len(further) + 1]])
    arena = np.concatenate([arena, added.arena[: further.arena_used]])
    # a phrase of n words has at least 2 n - 1 bytes: bound on the total number of words
    count, most = len(offsets) - 1, len(arena) // 2 + len(offsets)
    vocabulary = Interner(1 << 12, 1 << 16)
    vocabulary.reserve(most, len(arena) + 1)
    flat, bounds = np.zeros(most, np.int32), np.zeros(count + 1, np.int64)
    filled = table_kernels.split_words(arena, offsets, count, vocabulary.table, flat, bounds)
    words = flat[:filled].copy()
    lms = model.lms
    lm_words, states = np.zeros((len(lms), filled), np.int32), np.zeros((len(lms), filled), np.int32)
    rest, totals = np.zeros((len(lms), filled)), np.zeros((len(lms), count))
    for number, lm in enumerate(lms):
        lm_words[number] = lm.word_ids(vocabulary)[words] if filled else words
        score_alone(lm.arrays, bounds, lm_words[number], states[number], rest[number], totals[number])
    # a binary model from an untrusted source may contain invalid UTF-8
    strings = [word.decode("utf-8", "replace") for word in vocabulary.strings()]
    return TargetPhrases(bounds, words, lm_words, states, rest, totals), strings


def _reordering(model: SearchModel, row_of: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``reordering``, ``forward_class`` and ``reordering_of`` of ``TranslationOptions``.

    Row -1 has the scores 0 and a separate class.

    Args:
        model: the model.
        row_of: ``int64`` [rows], rows of the table.
    """
    scores, of_table = model.reordering_scores, row_of >= 0
    # many pairs share a row of scores: sort only the distinct rows
    shared, inverse = np.unique(model.reordering.row_of[row_of[of_table]], return_inverse=True)
    distinct, numbers = np.unique(model.reordering.log_scores[shared], axis=0, return_inverse=True)
    columns = np.where(scores >= 0, distinct[:, scores], 0.0)
    classes = np.unique(columns[:, 4:], axis=0, return_inverse=True)[1].reshape(-1)
    reordering_of = np.full(len(row_of), len(columns), np.int32)
    reordering_of[of_table] = numbers.reshape(-1)[inverse]
    forward_class = np.append(classes, classes.max(initial=-1) + 1).astype(np.int32)
    return np.concatenate([columns, np.zeros((1, len(scores)))]), forward_class, reordering_of


def _affiliations(table: Affiliations, row_of: np.ndarray, lengths: np.ndarray) -> Affiliations:
    """Return the affiliations of rows of the table; those of row -1 are 0.

    Args:
        table: the affiliations of the table.
        row_of: ``int64`` [rows].
        lengths: ``int64`` [rows], numbers of target words.
    """
    of_table = np.repeat(row_of >= 0, lengths)
    places = np.zeros(len(of_table), np.int8)
    places[of_table] = table.of(row_of[row_of >= 0]).places
    return Affiliations(np.concatenate([[0], np.cumsum(lengths)]), places)


def _taken(values: np.ndarray, rows: np.ndarray, other: float) -> np.ndarray:
    """Return the rows of ``values`` with the indices ``rows``, filled with ``other`` for row -1."""
    taken = np.full((len(rows), *values.shape[1:]), other, values.dtype)
    taken[rows >= 0] = values[rows[rows >= 0]]
    return taken


def _within_limits(model: SearchModel, looked_up: TranslationOptions, order: np.ndarray) -> np.ndarray:
    """Return which of the options ``order`` [n], ranked by source phrase, are within the limits of their tables."""
    mask = np.ones(len(order), bool)
    tables = looked_up.table_of[order]
    for number, limit in enumerate(model.table_limits):
        rows = np.flatnonzero(tables == number)
        if limit > 0 and len(rows):
            sources = looked_up.source_of[order[rows]]
            # rank of each option: its distance from the first option of the same source phrase
            begins = np.flatnonzero(np.concatenate([[True], sources[1:] != sources[:-1]]))
            mask[rows] = np.arange(len(rows)) - np.repeat(begins, np.diff([*begins, len(rows)])) < limit
    return mask


def rank(model: SearchModel, looked_up: TranslationOptions, weights: np.ndarray) -> RankedOptions:
    """Rank the options of every source phrase by their estimate under ``weights`` [F], and apply the table limits.

    The estimate contains the n-gram LM score of the phrase in the empty context. This score also estimates the scores
    of neural features: the sum of their weights is added to the weight of the LM. With several LMs, it is divided in
    proportion to the absolute values of their weights, or equally if these are 0.
    """
    static = looked_up.static @ weights
    lm_weights = weights[model.columns["LM"]]
    if model.neural:
        sizes = np.abs(lm_weights)
        shares = sizes / sizes.sum() if len(sizes) > 1 and sizes.any() else np.full(len(sizes), 1.0 / len(sizes))
        lm_weights = lm_weights + weights[model.neural_columns].sum() * shares
    estimate = static + (lm_weights @ looked_up.targets.alone_total)[looked_up.target_of]
    order = np.lexsort((-estimate, looked_up.source_of))
    counts = np.bincount(looked_up.source_of, minlength=looked_up.sources)
    starts = np.concatenate([[0], np.cumsum(counts)])
    if any(model.table_limits):
        order = order[_within_limits(model, looked_up, order)]
        counts = np.bincount(looked_up.source_of[order], minlength=looked_up.sources)
        starts = np.concatenate([[0], np.cumsum(counts)])
    places = model.reordering_places
    # index -1 of a missing score reads the last weight; np.where discards it
    reordering = looked_up.reordering * np.where(places >= 0, weights[places], 0.0)
    forward = np.empty((looked_up.forward_class[-1] + 1, 4))
    forward[looked_up.forward_class] = reordering[:, 4:]
    scores = looked_up.reordering_of[order]
    backward = reordering[scores, :4]
    guess = np.ascontiguousarray((estimate[order][:, None] + backward).T)
    reach = guess.copy()
    suffix_maxima(starts.astype(np.int64), reach)
    targets = looked_up.targets
    return RankedOptions(
        starts.astype(np.int64),
        order.astype(np.int32),
        looked_up.target_of[order],
        estimate[order],
        np.ascontiguousarray((static[order][:, None] + backward).T),
        guess,
        reach,
        forward,
        looked_up.forward_class[scores],
        targets.bounds,
        targets.lm_words,
        targets.alone_state,
        targets.alone_rest,
    )
