"""The network and an n-gram LM on the same words of the same text."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.cslm.ngram_events import event_scores
from rnnsmt.cslm.scorer import NGramScorer
from rnnsmt.cslm.text_scoring import LINES, ngram_scores
from rnnsmt.io import InputError, read_lines
from rnnsmt.lm.automaton import load_automaton
from rnnsmt.networks.vocabulary import split
from rnnsmt.progress import track


def compare(model: str | Path, inputs: list[str], lm: str | Path | None, device: str, threads: int) -> dict[str, Any]:
    """The report of ``cslm perplexity``.

    Raises:
        InputError: no lines, a text, model or LM that is missing or damaged.
    """
    scorer = NGramScorer(model, device, threads, normalize=True)
    lines = [split(line) for path in inputs for line in read_lines(path)]
    if not lines:
        raise InputError(f"{', '.join(inputs)}: no lines; perplexity needs text")
    own, classes = _network_scores(scorer, lines)
    known = classes != scorer.unknown
    words = len(classes) - len(lines)
    report: dict[str, Any] = {
        "sentences": len(lines),
        "words": words,
        "oov": int((~known).sum()),
        "oov_rate": float((~known).sum() / max(words, 1)),
        "order": scorer.order,
        "cslm": _perplexities(own, known),
    }
    if scorer.self_normalised:
        bare, _ = _network_scores(NGramScorer(model, device, threads, normalize=False), lines)
        log_sums = bare - own
        report["ln Z"] = {"mean": float(log_sums.mean()), "sd": float(log_sums.std())}
    if lm is not None:
        automaton = load_automaton(lm)
        other = event_scores(automaton, lines, scorer.words[2:-1])
        report["ngram_order"] = automaton.order
        report["ngram"] = _perplexities(other, known)
        report["mixture"] = _perplexities(np.logaddexp(own, other) - np.log(2.0), known)
    return report


def _network_scores(scorer: NGramScorer, lines: list[list[str]]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    blocks = [lines[begin : begin + LINES] for begin in range(0, len(lines), LINES)]
    found = [ngram_scores(scorer, block) for block in track(blocks, "measuring", unit=f"blocks of {LINES} lines")]
    return np.concatenate([scores for scores, _ in found]).astype(np.float64), np.concatenate([ids for _, ids in found])


def _perplexities(log_p: NDArray[np.float64], known: NDArray[np.bool_]) -> dict[str, float]:
    """Words outside the shortlist as one class, and without them; ``</s>`` is always counted."""
    return {
        "ln_p": float(log_p.sum()),
        "perplexity": float(np.exp(min(-log_p.mean(), 700.0))),
        "perplexity_without_oov": float(np.exp(min(-log_p[known].mean(), 700.0))),
    }
