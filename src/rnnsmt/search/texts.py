"""Translation of a whole text, one chunk of sentences at a time, with its output files and statistics."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import track, warn
from rnnsmt.base.writing import write_lines_or_stdout
from rnnsmt.search import decoder
from rnnsmt.search.model import SearchModel
from rnnsmt.search.nbest import Translation, detail_lines, write_lists
from rnnsmt.search.neural import NeuralCounts, total_counts
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.results import Hypothesis
from rnnsmt.search.sentence_search import SentenceSearch
from rnnsmt.search.source_text import raw_text_warning
from rnnsmt.search.translation_options import look_up


@dataclass
class _Totals:
    """Sums over the sentences of one text."""

    words: int = 0
    unknown_words: int = 0
    score: float = 0


def translate_text(
    model: SearchModel,
    weights: NDArray[np.float64],
    sentences: list[str],
    options: SearchOptions,
    output: StrPath | None,
    details: StrPath | None,
    nbest_file: StrPath | None,
    checks: bool,
) -> tuple[list[str], list[list[Hypothesis]], dict[str, int | float]]:
    """Translate one text, and write the outputs that are not None.

    Args:
        weights: ``float64`` [F].
        checks: whether to log a warning if the first sentences of the text do not look tokenised.

    Returns:
        The translations, the n-best lists (none if they are written to ``nbest_file``), and the statistics of the
        search.
    """
    totals, counts_before = _Totals(), total_counts(model.neural)
    began = time.process_time()
    results = track(
        _search_text(model, weights, sentences, options, totals, checks), "translating", len(sentences), "sentences"
    )
    if nbest_file is not None:
        results = write_lists(nbest_file, results, model.feature_names, model.listed)
    texts, detailed, lists = [], [], []
    names = [model.feature_names[column] for column in model.listed]
    for translation in results:
        texts.append(translation.text)
        if options.nbest and nbest_file is None:
            best = translation.nbest
            columns = best.features[:, model.listed].tolist()
            lists.append(
                [
                    Hypothesis(text, score, dict(zip(names, row, strict=True)))
                    for text, score, row in zip(best.texts, best.scores.tolist(), columns, strict=True)
                ]
            )
        if details is not None:
            detailed.append(translation)
    seconds = time.process_time() - began

    if details is not None:
        write_lines_or_stdout(details, detail_lines(detailed, model.feature_names, model.listed))
    if output is not None:
        write_lines_or_stdout(output, texts)
    return (
        texts,
        lists,
        {
            "sentences": len(sentences),
            "words": totals.words,
            "unknown_words": totals.unknown_words,
            "search_cpu_seconds": round(seconds, 3),
            "score_sum": round(totals.score, 6) if math.isfinite(totals.score) else 0.0,
            **(_query_statistics(counts_before, total_counts(model.neural)) if model.neural else {}),
        },
    )


def _search_text(
    model: SearchModel,
    weights: NDArray[np.float64],
    sentences: list[str],
    options: SearchOptions,
    totals: _Totals,
    checks: bool,
) -> Iterator[Translation]:
    """Yield the translations of a text, ``CHUNK`` sentences per search, and update ``totals``."""
    for begin in range(0, len(sentences), decoder.CHUNK):
        chunk = sentences[begin : begin + decoder.CHUNK]
        search = SentenceSearch(model, look_up(model, chunk), weights, options)
        totals.words += sum(map(len, search.looked_up.spans))
        if checks and begin == 0:
            _warn_about_raw_text(chunk, search.looked_up.unknown)
        for translation in decoder.translations(search):
            totals.unknown_words += translation.unknown
            totals.score += translation.score
            yield translation
        del search  # free the memory before the next search is created


def _warn_about_raw_text(sentences: list[str], unknown: list[str]) -> None:
    warning = raw_text_warning(sentences, unknown)
    if warning is not None:
        warn(warning)


def _query_statistics(before: NeuralCounts, after: NeuralCounts) -> dict[str, int]:
    """Return the statistics of the neural features, from the counts before and after a search."""
    return {
        "ngrams_requested": after.requested - before.requested,
        "ngrams_scored": after.scored - before.scored,
        "batches": after.batches - before.batches,
    }
