"""Static linear interpolation of n-gram LMs into one (Stolcke 2002, section 4; SRILM's ``-mix-lm``).

The n-grams of the result are those of any model, with ``p(w | h) = sum_i lambda_i p_i(w | h)``; back-off weights are
computed anew, so that every context sums to one. A model gives words that it does not know the probability 0 and takes
them for ``<unk>`` in a history; ``<unk>`` of the result stands for words that no model knows. Where each model sums to
one over its vocabulary with ``<unk>``, so does the result over the union.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnsmt.io import InputError, read_byte_lines
from rnnsmt.kernels.strings import Interner
from rnnsmt.lm.arpa import LOWEST, Arpa, read_arpa, write_ngrams
from rnnsmt.lm.automaton import Automaton, build_automaton
from rnnsmt.lm.kernels.interpolation import score_last, score_sentences
from rnnsmt.lm.text import refuse_reserved
from rnnsmt.progress import say

WORD_BITS = 31

TOLERANCE = 1e-10
"""EM ends when no weight changes by more."""

MOST_ITERATIONS = 10_000

LEAST_WEIGHT = 1e-6
"""A model of less weight is left out: words that no other knows would have a probability of almost 0, not that of
``<unk>``."""


class TuningText:
    """Tokenised text as numbers of its own: ``words`` int32 [n] with ``</s>`` after each sentence, ``ends`` int64.

    Raises:
        InputError: there are no lines, or a reserved word is among them.
    """

    def __init__(self, path: str | Path) -> None:
        self.strings = Interner()
        tokens: list[bytes] = []
        ends: list[int] = []
        for number, line in enumerate(read_byte_lines(path), 1):
            words = line.split()
            refuse_reserved(words, path, number)
            tokens += [*words, b"</s>"]
            ends.append(len(tokens))
        if not ends:
            raise InputError(f"{path}: no lines; weights need text")
        self.words, self.ends = self.strings.add(tokens), np.array(ends, np.int64)

    def log_probabilities(self, model: Automaton) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Natural-log probability of every event under a model, and whether the model knows its word."""
        ids = model.word_ids(self.strings)[self.words]
        out = np.empty(len(ids))
        score_sentences(model.arrays, model.start, ids, self.ends, out)
        return out, ids != model.unk


def best_weights(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The weights that maximise the likelihood of events, by EM from equal ones; the maximum is global.

    Args:
        probabilities: float64 [events, models], none of them 0 under all models.
    """
    weights = np.full(probabilities.shape[1], 1 / probabilities.shape[1])
    for _ in range(MOST_ITERATIONS):
        shares = probabilities * weights
        shares /= shares.sum(axis=1, keepdims=True)
        last, weights = weights, shares.mean(axis=0)
        if np.abs(weights - last).max() < TOLERANCE:
            break
    return weights


def mix(arpas: Sequence[Arpa], models: Sequence[Automaton], weights: npt.NDArray[np.float64]) -> Arpa:
    """The interpolated model; its n-grams are sorted by their words' numbers.

    Args:
        models: the automata of ``arpas``.
        weights: float64 [models], of sum 1.
    """
    words = Interner()
    words.add([b"<unk>", b"<s>", b"</s>"])
    in_result = [
        words.add([b"<unk>" if word == b"<UNK>" else word for word in arpa.words.strings()]).astype(np.int32)
        for arpa in arpas
    ]
    result = Arpa(words, [], [], [], [])
    keys: list[npt.NDArray[np.int64]] = []
    in_models = [model.word_ids(words) for model in models]
    known = [np.isin(np.arange(len(words)), ids) for ids in in_result]
    for order in range(1, max(arpa.order for arpa in arpas) + 1):
        if order == 1:
            ngrams, contexts = np.arange(len(words), dtype=np.int32)[:, None], np.zeros(len(words), np.int64)
        else:
            found = [
                _keys(keys, ids[arpa.ngrams[order - 1]])
                for arpa, ids in zip(arpas, in_result, strict=True)
                if arpa.order >= order
            ]
            keys.append(np.unique(np.concatenate(found)))
            contexts = keys[-1] >> WORD_BITS
            last = (keys[-1] & ((1 << WORD_BITS) - 1)).astype(np.int32)
            ngrams = np.column_stack([result.ngrams[-1][contexts], last])
        mixed = np.zeros(len(ngrams))
        for weight, model, ids, knows in zip(weights, models, in_models, known, strict=True):
            mixed += weight * np.where(knows[ngrams[:, -1]], _probabilities(model, ids[ngrams]), 0)
        if order == 1:
            mixed[1] = 1.0  # <s> is never predicted
        else:
            lower = _probabilities(build_automaton(result), np.ascontiguousarray(ngrams[:, 1:]))
            left, below = (_remainder(contexts, values, len(result.ngrams[-1])) for values in (mixed, lower))
            backoff = np.divide(left, below, out=np.ones(len(left)), where=below > LOWEST)
            result.log10_backoffs[-1] = _log10(backoff)
        result.ngrams.append(ngrams)
        result.log10_probs.append(_log10(np.minimum(mixed, 1)))
        result.log10_backoffs.append(np.zeros(len(ngrams), np.float32))
        result.lines.append(0)
    return result


def _keys(keys: Sequence[npt.NDArray[np.int64]], ngrams: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """(number of the context << WORD_BITS | last word) of n-grams whose contexts are among ``keys``, one an order."""
    context = ngrams[:, 0].astype(np.int64)
    for k, level in enumerate(keys, 1):
        context = np.searchsorted(level, context << WORD_BITS | ngrams[:, k])
    return context << WORD_BITS | ngrams[:, -1]


def _probabilities(model: Automaton, ngrams: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """p(last word | the words before) of n-grams in the model's numbers, [n, order]."""
    out = np.empty(len(ngrams))
    score_last(model.arrays, ngrams, out)
    return np.exp(out)


def _remainder(contexts: npt.NDArray[np.int64], values: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    """What the n-grams of each context leave of one, at least 0; 0 too where rounding alone left something."""
    left = 1 - np.bincount(contexts, values, size)
    return np.where(left > 1e-7, left, 0)


def _log10(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    return np.log10(np.maximum(values, LOWEST)).astype(np.float32)


def interpolate(
    paths: Sequence[str | Path], tune: str | Path, output: str | Path, threads: int = 1
) -> dict[str, object]:
    """Interpolate ARPA files with the weights that suit a text, and write the result.

    Raises:
        InputError: a file is no language model, the text has no lines or reserved words.
    """
    text = TuningText(tune)
    arpas = [read_arpa(path) for path in paths]
    models = [build_automaton(arpa, str(path)) for arpa, path in zip(arpas, paths, strict=True)]
    logs, known = (np.column_stack(x) for x in zip(*map(text.log_probabilities, models), strict=True))
    some = known.any(axis=1)
    weights = best_weights(np.where(known, np.exp(logs), 0)[some])
    weights[weights < LEAST_WEIGHT] = 0
    weights /= weights.sum()
    say("weights " + " ".join(f"{weight:.6f}" for weight in weights))
    used = np.flatnonzero(weights)
    result = mix([arpas[i] for i in used], [models[i] for i in used], weights[used])
    write_ngrams(output, result, threads)
    mixed, _ = text.log_probabilities(build_automaton(result))
    return {
        "n-grams": "/".join(str(len(ngrams)) for ngrams in result.ngrams),
        "OOV of all": int((~some).sum()),
        "weights": "/".join(f"{weight:.4f}" for weight in weights),
        "perplexities": "/".join(f"{np.exp(-column.mean()):.6g}" for column in logs.T),
        "perplexity": float(np.exp(-mixed.mean())),
    }
