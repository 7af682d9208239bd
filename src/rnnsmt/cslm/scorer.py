"""Scores of n-grams and sentences under a CSLM, and the perplexity of a text under a CSLM and an n-gram LM."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

import numpy as np
import torch

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_lines
from rnnsmt.cslm.model import load_model
from rnnsmt.cslm.text import sentence_ngrams
from rnnsmt.lm.automaton import load_automaton
from rnnsmt.networks.data import split
from rnnsmt.networks.feed_forward import TrainedNetwork
from rnnsmt.networks.ngram_scorer import NGramScorer
from rnnsmt.networks.text_scores import (
    ContextsAndWords,
    PerplexityReport,
    event_scores,
    network_report,
    perplexities,
    word_scores,
)

LINES = 2000
"""Number of sentences that are scored together."""


class CslmScorer(NGramScorer):
    """Scorer of n-grams with a CSLM; a context consists of the ``order`` - 1 preceding words."""

    def load(self, path: StrPath, device: torch.device) -> TrainedNetwork:
        """Read the model file."""
        trained = load_model(path, device)
        self.order = trained.model.sizes.context + 1
        return trained


def sentence_scores(scorer: NGramScorer, lines: Iterable[str]) -> Iterator[float]:
    """Yield ln p of every line, including ``</s>``, not length-normalised."""
    stream = iter(lines)
    while block := [split(line) for line in islice(stream, LINES)]:
        scores = word_scores(scorer, *_ngrams(scorer, block))
        ends = np.cumsum([len(words) + 1 for words in block])
        yield from np.add.reduceat(scores.astype(np.float64), np.concatenate([[0], ends[:-1]])).tolist()


def _ngrams(scorer: NGramScorer, sentences: list[list[str]]) -> ContextsAndWords:
    return sentence_ngrams([scorer.ids(words) for words in sentences], scorer.order - 1, scorer.end)


def perplexity_report(
    model: StrPath, inputs: list[str], lm: StrPath | None, device: str, threads: int
) -> PerplexityReport:
    """Compute the report of ``networks perplexity``."""
    scorer = CslmScorer(model, device, threads, normalize=True)
    lines = [split(line) for path in inputs for line in read_lines(path)]
    if not lines:
        raise InputError(f"{', '.join(inputs)}: contains no lines; the perplexity of an empty text is undefined")

    def ngrams() -> Iterator[ContextsAndWords]:
        for begin in range(0, len(lines), LINES):
            yield _ngrams(scorer, lines[begin : begin + LINES])

    bare = partial(CslmScorer, model, device, threads, normalize=False)
    report, log_p, known = network_report("cslm", scorer, bare, ngrams)
    if lm is not None:
        automaton = load_automaton(lm)
        other = event_scores(automaton, lines, scorer.words[2:-1])
        report["ngram_order"] = automaton.order
        report["ngram"] = perplexities(other, known)
        report["mixture"] = perplexities(np.logaddexp(log_p, other) - np.log(2.0), known)
    return report
