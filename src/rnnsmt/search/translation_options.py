"""Translation options: phrase pairs for all spans of sentences, including unknown words, and their ranking."""

import re
from itertools import chain, pairwise

import numpy as np

from rnnsmt.base.arrays import concatenated_ranges
from rnnsmt.base.kernels.strings import Interner
from rnnsmt.base.reading import words_of
from rnnsmt.formats.ini import PHRASE_DICTIONARY
from rnnsmt.phrases.pairs import PhraseIds
from rnnsmt.phrases.table import PhraseTable
from rnnsmt.search.kernels.features import score_alone, suffix_maxima
from rnnsmt.search.kernels.records import RankedOptions
from rnnsmt.search.model import UNKNOWN_WORD_SCORE, SearchModel
from rnnsmt.search.phrase_pairs import Affiliations, TargetPhrases, TranslationOptions
from rnnsmt.search.source_text import check_sentences


def look_up(model: SearchModel, sentences: list[str]) -> TranslationOptions:
    """Look up the phrase pairs for sentences; words without a single-word translation are passed through or dropped.

    The model keeps the result of the last call, since MERT translates the same sentences repeatedly.
    """
    last = model.looked_up  # another thread may replace it
    if last is not None and last[0] == sentences:
        return last[1]
    model.looked_up = None  # free the memory of the previous result
    check_sentences(sentences)
    words = [words_of(sentence) for sentence in sentences]
    bounds = np.cumsum([0, *map(len, words)])
    flat = list(chain.from_iterable(words))
    every = model.table.find_spans(flat, bounds, model.longest)
    model.release()
    # renumber the source phrases that occur in the text; the tables have many more
    ids = np.unique(every)
    ids = ids[ids >= 0]
    every[every >= 0] = np.searchsorted(ids, every[every >= 0])
    known = len(ids)
    unknown: dict[str, int] = {}
    for index in np.flatnonzero(every[:, 0] < 0).tolist():
        every[index, 0] = known + unknown.setdefault(flat[index], len(unknown))
    spans = [every[begin:end] for begin, end in pairwise(bounds.tolist())]
    options = _with_unknown_words(model, ids, spans, list(unknown))
    options = options._replace(prepared=[feature.prepare(options, sentences) for feature in model.neural])
    model.looked_up = (list(sentences), options)
    return options


def _with_unknown_words(
    model: SearchModel, ids: np.ndarray, spans: list[np.ndarray], unknown: list[str]
) -> TranslationOptions:
    """Return the phrase pairs of the table and those for unknown words.

    Args:
        ids: ``int32``, ids in the table of the source phrases that occur in the text, ascending. ``spans`` numbers the
            source phrases in this order, followed by the unknown words.
        spans, unknown: as in ``TranslationOptions``.
    """
    interner = Interner()
    # unknown words are dropped or passed through; those with digits are always passed through, as in Moses
    words = ["" if model.drop_unknown and not re.search("[0-9]", word) else word for word in unknown]
    phrase_of = interner.add([word.encode("utf-8") for word in words])
    table = model.table
    first, counts = table.first[ids], table.first[ids + 1] - table.first[ids]
    used = concatenated_ranges(first, counts)
    row_of = np.concatenate([used, np.full(len(unknown), -1)])
    numbers = np.arange(len(ids) + len(unknown), dtype=np.int32)
    source_of = np.concatenate([np.repeat(numbers[: len(ids)], counts), numbers[len(ids) :]])
    # number the target phrases: first the distinct target phrases of the table, then those for unknown words
    chosen = table.targets.select(used)
    phrases = Interner()
    number_of = phrases.add_all(chosen.words.astype(np.uint32).view(np.uint8), 4 * chosen.offsets)
    target_of = np.concatenate([number_of, len(phrases) + phrase_of]).astype(np.int32)
    targets, strings = _target_phrases(model, phrases, interner)
    model.release()
    reordering, forward_class, reordering_of = _reordering(model, row_of)  # before the large array `static` exists
    lengths = np.diff(targets.bounds)[target_of]
    static = np.zeros((len(row_of), len(model.feature_names)))
    static[: len(used), model.columns[PHRASE_DICTIONARY]] = table.log_scores[used]
    model.release()
    if "WordPenalty" in model.columns:
        static[:, model.columns["WordPenalty"][0]] = -lengths
    if "PhrasePenalty" in model.columns:
        static[:, model.columns["PhrasePenalty"][0]] = 1.0
    if "UnknownWordPenalty" in model.columns:
        static[len(used) :, model.columns["UnknownWordPenalty"][0]] = UNKNOWN_WORD_SCORE
    return TranslationOptions(
        spans=spans,
        words=strings,
        targets=targets,
        source_of=source_of,
        target_of=target_of,
        static=static,
        reordering=reordering,
        forward_class=forward_class,
        reordering_of=reordering_of,
        longest=model.longest,
        sources=len(numbers),
        known=len(used),
        unknown=unknown,
        affiliations=None if table.affiliations is None else _affiliations(table, used, lengths),
        prepared=[],
    )


def _target_phrases(model: SearchModel, phrases: Interner, further: Interner) -> tuple[TargetPhrases, list[str]]:
    """Return target phrases with their LM scores in the empty context, and the strings of their words.

    A string has the same id whether it occurs in a phrase of the table or is passed through.

    Args:
        phrases: target phrases of the table, as the bytes of word ids (``uint32``); they come first.
        further: target phrases for unknown words, each a single word or empty.
    """
    ids = phrases.table.arena[: phrases.arena_used].view(np.uint32)
    used, places = np.unique(ids, return_inverse=True)
    vocabulary = Interner()
    strings = [model.table.target_words[word] for word in used.tolist()]
    added = further.strings()
    of_table, of_added = np.split(vocabulary.add(strings + [word for word in added if word]), [len(strings)])
    words = np.concatenate([of_table[places.reshape(-1)], of_added]).astype(np.int32)
    lengths = np.array([len(word) > 0 for word in added], np.int64)
    bounds = phrases.table.offsets[: len(phrases) + 1] // 4
    bounds = np.concatenate([bounds, bounds[-1] + np.cumsum(lengths)])
    filled, count = len(words), len(bounds) - 1
    lms = model.lms
    lm_words, states = np.zeros((len(lms), filled), np.int32), np.zeros((len(lms), filled), np.int32)
    rest, totals = np.zeros((len(lms), filled)), np.zeros((len(lms), count))
    for number, lm in enumerate(lms):
        lm_words[number] = lm.word_ids(vocabulary)[words] if filled else words
        score_alone(lm.arrays, bounds, lm_words[number], states[number], rest[number], totals[number])
    texts = [word.decode("utf-8") for word in vocabulary.strings()]
    return TargetPhrases(bounds, words, lm_words, states, rest, totals), texts


def _reordering(model: SearchModel, row_of: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``reordering``, ``forward_class`` and ``reordering_of`` of ``TranslationOptions``.

    row_of: ``int64`` [rows], row of each pair in the table; -1 for unknown words, whose scores are 0 and have a class
        of their own.
    """
    scores, of_table = model.reordering_scores, row_of >= 0
    # many pairs share a row of scores: sort only the distinct rows
    reordering = model.table.reordering
    shared, inverse = np.unique(reordering.row_of[row_of[of_table]], return_inverse=True)
    distinct, numbers = np.unique(reordering.log_scores[shared], axis=0, return_inverse=True)
    columns = np.where(scores >= 0, distinct[:, scores], 0.0)
    classes = np.unique(columns[:, 4:], axis=0, return_inverse=True)[1].reshape(-1)
    reordering_of = np.full(len(row_of), len(columns), np.int32)
    reordering_of[of_table] = numbers.reshape(-1)[inverse]
    forward_class = np.append(classes, classes.max(initial=-1) + 1).astype(np.int32)
    return np.concatenate([columns, np.zeros((1, len(scores)))]), forward_class, reordering_of


def _affiliations(table: PhraseTable, used: np.ndarray, lengths: np.ndarray) -> Affiliations:
    """Return the affiliations of pairs of the table and, after them, of unknown words, which are 0.

    Args:
        used: ``int64`` [pairs], rows of the pairs in the table.
        lengths: ``int64`` [pairs + unknown words], numbers of target words.
    """
    assert table.affiliations is not None
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    places = np.zeros(bounds[-1], np.int8)
    places[: bounds[len(used)]] = PhraseIds(table.affiliations, table.targets.offsets).select(used).words
    return Affiliations(bounds, places)


def rank(model: SearchModel, looked_up: TranslationOptions, weights: np.ndarray) -> RankedOptions:
    """Rank the options of every source phrase by their estimate under ``weights`` [F], and apply the table limit.

    The estimate contains the n-gram LM score of the phrase in the empty context. This score also estimates the scores
    of neural features: the sum of the weights of neural features is added to the weight of the LM. With several LMs, it
    is divided among them in proportion to the absolute values of their weights, or equally if these are 0.
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
    if model.table_limit > 0:
        order = order[np.arange(len(order)) - np.repeat(starts[:-1], counts) < model.table_limit]
        starts = np.concatenate([[0], np.cumsum(np.minimum(counts, model.table_limit))])
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
        first=starts.astype(np.int64),
        row=order.astype(np.int32),
        target=looked_up.target_of[order],
        estimate=estimate[order],
        known=np.ascontiguousarray((static[order][:, None] + backward).T),
        guess=guess,
        reach=reach,
        forward=forward,
        forward_class=looked_up.forward_class[scores],
        target_bounds=targets.bounds,
        target_words=targets.lm_words,
        alone_state=targets.alone_state,
        alone_rest=targets.alone_rest,
    )
