"""Translation options: the phrase pairs for the spans of sentences, unknown words included; ranked under weights."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from rnnsmt.io import words_of
from rnnsmt.kernels.strings import Interner
from rnnsmt.search.kernels import tables as table_kernels
from rnnsmt.search.kernels.future_cost import suffix_maxima
from rnnsmt.search.kernels.records import RankedOptions
from rnnsmt.search.model import UNKNOWN_WORD_SCORE, SearchModel, target_phrases
from rnnsmt.search.source_text import check_lengths, sentence_bytes
from rnnsmt.search.table_reader import TargetPhrases


class TranslationOptions(NamedTuple):
    """The phrase pairs for sentences, before weights: the model's and one more for every unknown word.

    Attributes:
        spans: per sentence ``int32`` [words, longest], source phrase by first word and length - 1, or -1.
        words: target vocabulary including the unknown words.
        targets: target phrases including the unknown words.
        source_of, target_of: ``int32`` [rows] of the pairs for these sentences, those of one source phrase together.
        static: ``float64`` [rows, F], the feature values that depend on the pair alone.
        reordering: ``float64`` [rows, 8]; forward_class: ``int32`` [rows].
        table_of: ``int8`` [rows], the table that a pair is from; 0 of unknown words.
        sources: how many source phrases, unknown words included.
        known: how many of the pairs are the model's; those from there on are of unknown words.
        unknown: the words that have no translation of their own.
    """

    spans: list[np.ndarray]
    words: list[str]
    targets: TargetPhrases
    source_of: np.ndarray
    target_of: np.ndarray
    static: np.ndarray
    reordering: np.ndarray
    forward_class: np.ndarray
    table_of: np.ndarray
    sources: int
    known: int
    unknown: list[str]

    def target_text(self, row: int) -> str:
        """The target phrase of a pair."""
        begin, end = self.targets.bounds[self.target_of[row] :][:2]
        return " ".join(self.words[word] for word in self.targets.words[begin:end])

    def find(self, source: int, target: np.ndarray) -> int:
        """The row of the pair of a source phrase and the target phrase with these words ``int32``; -1: none."""
        begin, end = np.searchsorted(self.source_of, (source, source + 1))
        bounds = self.targets.bounds
        for row in range(begin, end) if source >= 0 else ():
            phrase = self.target_of[row]
            if np.array_equal(self.targets.words[bounds[phrase] : bounds[phrase + 1]], target):
                return row
        return -1


def look_up(model: SearchModel, sentences: list[str]) -> TranslationOptions:
    """Look sentences up in the table; a word without a translation of its own is passed through or dropped.

    The model keeps what was looked up last, for MERT, which translates the same sentences again and again.

    Raises:
        InputError: a sentence has more than ``MAX_WORDS`` words.
    """
    if model.looked_up is not None and model.looked_up[0] == sentences:
        return model.looked_up[1]
    check_lengths(sentences)
    known = len(model.table.sources)
    unknown: dict[str, int] = {}
    spans = []
    for sentence in sentences:
        buffer, begins, ends = sentence_bytes(sentence)
        table = np.empty((len(begins), model.longest), np.int32)
        table_kernels.find_spans(model.table.sources.table, buffer, begins, ends, model.longest, table)
        missing = np.flatnonzero(table[:, 0] < 0)
        words = words_of(sentence) if len(missing) else []
        for i in missing:
            table[i, 0] = known + unknown.setdefault(words[i], len(unknown))
        spans.append(table)
    options = _with_unknown_words(model, spans, list(unknown))
    model.looked_up = (list(sentences), options)
    return options


def _with_unknown_words(model: SearchModel, spans: list[np.ndarray], unknown: list[str]) -> TranslationOptions:
    interner = Interner()
    phrase_of = interner.add([b"" if _dropped(model, word) else word.encode("utf-8") for word in unknown])
    extra, _ = target_phrases(interner, Interner(), model.lms, model.neural, Path("input"))
    base, size = model.targets, len(model.targets.bounds) - 1
    # the same text is the same words, whether a pair brought them or they are passed through
    numbers = {word: number for number, word in enumerate(model.vocabulary)} if unknown else {}
    kept = (word for word in unknown if not _dropped(model, word))
    passed = np.array([numbers.setdefault(word, len(numbers)) for word in kept], np.int32)
    targets = TargetPhrases(
        np.concatenate([base.bounds, base.bounds[-1] + extra.bounds[1:]]),
        np.concatenate([base.words, passed]),
        np.concatenate([base.lm_words, extra.lm_words], axis=1),
        np.concatenate([base.alone_state, extra.alone_state], axis=1),
        np.concatenate([base.alone_rest, extra.alone_rest], axis=1),
        np.concatenate([base.alone_total, extra.alone_total], axis=1),
        np.concatenate([base.neural_words, extra.neural_words]),
    )
    used = _rows_of(model.table.source_of, spans)
    rows, known = len(used), len(model.table.sources)
    ids = np.arange(len(unknown), dtype=np.int32)
    source_of = np.concatenate([model.table.source_of[used], ids + np.int32(known)])
    target_of = np.concatenate([model.table.target_of[used], (phrase_of + size).astype(np.int32)])
    lengths = np.diff(targets.bounds)[target_of]
    static = np.zeros((rows + len(unknown), len(model.feature_names)))
    static[:rows, model.columns["PhraseDictionaryMemory"]] = model.table.log_scores[used]
    if "WordPenalty" in model.columns:
        static[:, model.columns["WordPenalty"][0]] = -lengths
    if "PhrasePenalty" in model.columns:
        static[:, model.columns["PhrasePenalty"][0]] = 1.0
    if "UnknownWordPenalty" in model.columns:
        static[rows:, model.columns["UnknownWordPenalty"][0]] = UNKNOWN_WORD_SCORE
    classes = int(model.forward_class.max(initial=-1)) + 1
    return TranslationOptions(
        spans,
        list(numbers) if unknown else model.vocabulary,
        targets,
        source_of,
        target_of,
        static,
        np.concatenate([model.reordering[used], np.zeros((len(unknown), model.reordering.shape[1]))]),
        np.concatenate([model.forward_class[used], np.full(len(unknown), classes, np.int32)]),
        np.concatenate([model.table.table_of[used], np.zeros(len(unknown), np.int8)]),
        known + len(unknown),
        rows,
        unknown,
    )


def _rows_of(source_of: np.ndarray, spans: list[np.ndarray]) -> np.ndarray:
    """The rows of the source phrases that occur in ``spans``, ascending; few of a large table for one sentence."""
    found = np.unique(np.concatenate([np.zeros(0, np.int32), *(table.ravel() for table in spans)]))
    found = found[found >= 0]
    begins, ends = np.searchsorted(source_of, found), np.searchsorted(source_of, found, "right")
    lengths = ends - begins
    return np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())


def _dropped(model: SearchModel, word: str) -> bool:
    """Whether an unknown word is left out; Moses passes words with digits through even then."""
    return model.drop_unknown and not any(digit in word for digit in "0123456789")


def _within_limits(model: SearchModel, looked_up: TranslationOptions, order: np.ndarray) -> np.ndarray:
    """Whether the options ``order`` [n], ranked by source phrase, are within the limits of the tables they are from."""
    kept = np.ones(len(order), bool)
    tables = looked_up.table_of[order]
    for number, limit in enumerate(model.table_limits):
        own = np.flatnonzero(tables == number)
        if limit > 0 and len(own):
            sources = looked_up.source_of[order[own]]
            begins = np.flatnonzero(np.concatenate([[True], sources[1:] != sources[:-1]]))
            kept[own] = np.arange(len(own)) - np.repeat(begins, np.diff([*begins, len(own)])) < limit
    return kept


def rank(model: SearchModel, looked_up: TranslationOptions, weights: np.ndarray) -> RankedOptions:
    """Rank every source phrase's options by estimate under ``weights`` [F] and keep the table limit.

    Where there is a neural LM, the n-gram LM's score of a phrase alone is the estimate of both; of several, their mean
    by weight.
    """
    static = looked_up.static @ weights
    lm_weights = weights[model.columns["LM"]]
    if model.neural is not None:
        sizes = np.abs(lm_weights)
        shares = sizes / sizes.sum() if len(sizes) > 1 and sizes.any() else np.full(len(sizes), 1.0 / len(sizes))
        lm_weights = lm_weights + weights[model.columns["CSLM"][0]] * shares
    estimate = static + (lm_weights @ looked_up.targets.alone_total)[looked_up.target_of]
    order = np.lexsort((-estimate, looked_up.source_of))
    counts = np.bincount(looked_up.source_of, minlength=looked_up.sources)
    starts = np.concatenate([[0], np.cumsum(counts)])
    if any(model.table_limits):
        order = order[_within_limits(model, looked_up, order)]
        counts = np.bincount(looked_up.source_of[order], minlength=looked_up.sources)
        starts = np.concatenate([[0], np.cumsum(counts)])
    places = model.reordering_places
    reordering = looked_up.reordering[order] * np.where(places >= 0, weights[places], 0.0)
    backward, forward = reordering[:, :4], reordering[:, 4:]
    guess = estimate[order][:, None] + backward
    reach = guess.copy()
    suffix_maxima(starts.astype(np.int64), reach)
    targets = looked_up.targets
    return RankedOptions(
        starts.astype(np.int64),
        order.astype(np.int32),
        looked_up.target_of[order],
        estimate[order],
        static[order][:, None] + backward,
        guess,
        reach,
        np.ascontiguousarray(forward),
        looked_up.forward_class[order],
        targets.bounds,
        targets.lm_words,
        targets.alone_state,
        targets.alone_rest,
    )
