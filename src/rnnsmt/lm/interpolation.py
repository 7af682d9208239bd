"""Static linear interpolation of n-gram LMs into one (Stolcke 2002, section 4; SRILM's ``-mix-lm``).

The result contains the n-grams of all models, with ``p(w | h) = sum_i lambda_i p_i(w | h)``; back-off weights are
recomputed, so probabilities sum to one in every context. A model assigns probability 0 to words that it does not
contain, and treats them as ``<unk>`` in a history; ``<unk>`` of the result represents words that no model contains. If
each model sums to one over its vocabulary with ``<unk>``, so does the result over the union of the vocabularies.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnsmt.base.io import InputError, read_byte_lines
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.strings import Interner
from rnnsmt.base.progress import say
from rnnsmt.lm.arpa import LOWEST, Arpa, log10, read_arpa, write_ngrams
from rnnsmt.lm.automaton import Automaton, build_automaton, query
from rnnsmt.lm.text import refuse_reserved

WORD_BITS = 31
"""Number of bits of a word id in the key of an n-gram."""

TOLERANCE = 1e-10
"""EM stops if no weight changes by more than this."""

MOST_ITERATIONS = 10_000
"""Maximum number of EM iterations."""

LEAST_WEIGHT = 1e-6
"""Minimum weight of a model; models with smaller weights are not used. Otherwise, words that no other model contains
would have a probability of almost 0 instead of that of ``<unk>``."""


class TuningText:
    """Tokenised text as ids of a vocabulary that contains exactly its words.

    Attributes:
        strings: the vocabulary.
        words: int32 [n], concatenated sentences, each with ``</s>``.
        ends: int64 [sentences], end offset of each sentence in ``words``.

    Raises:
        InputError: there are no lines, or a line contains a reserved word.
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
            raise InputError(f"{path}: contains no lines; the weights cannot be estimated without text")
        self.words, self.ends = self.strings.add(tokens), np.array(ends, np.int64)

    def log_probabilities(self, model: Automaton) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Return the natural-log probability of every event under a model, and whether the model contains its word."""
        ids = model.word_ids(self.strings)[self.words]
        out = np.empty(len(ids))
        score_sentences(model.arrays, model.start, ids, self.ends, out)
        return out, ids != model.unk


def best_weights(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the weights that maximise the likelihood of events, by EM from equal weights; the maximum is global.

    Args:
        probabilities: float64 [events, models]; each event has a probability above 0 under at least one model.
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
    """Return the interpolated model; its n-grams are sorted by word numbers.

    Args:
        arpas: the models.
        models: the automata of ``arpas``.
        weights: float64 [models], of sum 1.
    """
    # in_result: ids of each model's words in the result; in_models: ids of the result's words in each model; known:
    # whether each model contains a word of the result
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
        # n-grams as sorted keys: index of the context in the order below << WORD_BITS | last word
        if order == 1:
            ngrams, contexts = np.arange(len(words), dtype=np.int32)[:, None], np.zeros(len(words), np.int64)
        else:
            parts = [
                _keys(keys, ids[arpa.ngrams[order - 1]])
                for arpa, ids in zip(arpas, in_result, strict=True)
                if arpa.order >= order
            ]
            keys.append(np.unique(np.concatenate(parts)))
            contexts = keys[-1] >> WORD_BITS
            last = (keys[-1] & ((1 << WORD_BITS) - 1)).astype(np.int32)
            ngrams = np.column_stack([result.ngrams[-1][contexts], last])
        mixed = np.zeros(len(ngrams))
        for weight, model, ids, knows in zip(weights, models, in_models, known, strict=True):
            mixed += weight * np.where(knows[ngrams[:, -1]], _probabilities(model, ids[ngrams]), 0)
        if order == 1:
            mixed[1] = 1.0  # <s> is never predicted
        else:
            # the new back-off weight: one minus the mass of the n-grams of the context, divided by the lower-order mass
            # of all other words
            lower = _probabilities(build_automaton(result), np.ascontiguousarray(ngrams[:, 1:]))
            left, below = (_remainder(contexts, values, len(result.ngrams[-1])) for values in (mixed, lower))
            backoff = np.divide(left, below, out=np.ones(len(left)), where=below > LOWEST)
            result.log10_backoffs[-1] = log10(backoff).astype(np.float32)
        result.ngrams.append(ngrams)
        result.log10_probs.append(log10(np.minimum(mixed, 1)).astype(np.float32))
        result.log10_backoffs.append(np.zeros(len(ngrams), np.float32))
        result.lines.append(0)
    return result


def _keys(keys: Sequence[npt.NDArray[np.int64]], ngrams: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the keys of n-grams: index of the context << WORD_BITS | last word.

    Args:
        keys: sorted keys of the orders from 2 to that of the contexts, which contain all contexts.
        ngrams: words of the n-grams, in the numbering of the result.
    """
    context = ngrams[:, 0].astype(np.int64)
    for k, level in enumerate(keys, 1):
        context = np.searchsorted(level, context << WORD_BITS | ngrams[:, k])
    return context << WORD_BITS | ngrams[:, -1]


def _probabilities(model: Automaton, ngrams: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Return p(last word | preceding words) of n-grams.

    Args:
        model: the model.
        ngrams: int32 [n, order], in the numbering of the model.
    """
    out = np.empty(len(ngrams))
    score_last(model.arrays, ngrams, out)
    return np.exp(out)


def _remainder(contexts: npt.NDArray[np.int64], values: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    """Return one minus the mass of the n-grams of each context; 0 if it is negative or only a rounding error.

    Args:
        contexts: context of each n-gram, 0 .. ``size`` - 1.
        values: probability of each n-gram.
        size: number of contexts.
    """
    left = 1 - np.bincount(contexts, values, size)
    return np.where(left > 1e-7, left, 0)


def interpolate(
    paths: Sequence[str | Path], tune: str | Path, output: str | Path, threads: int = 1
) -> dict[str, object]:
    """Interpolate ARPA files with the weights that maximise the likelihood of a text, and write the result.

    Args:
        paths: the ARPA files.
        tune: tokenised text.
        output: the ARPA file of the result.
        threads: number of compression threads.

    Returns:
        The statistics of the stage.

    Raises:
        InputError: a file is not a language model, or the text has no lines or contains reserved words.
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


@kernel()
def score_last(lm, ngrams, out):
    """Compute the natural-log probability of the last word of each n-gram.

    Args:
        lm: the automaton.
        ngrams: int32 [n, order]; the first word is in the empty context.
        out: float64 [n], filled.
    """
    for i in range(ngrams.shape[0]):
        state = 0
        for k in range(ngrams.shape[1]):
            prob, state = query(lm, state, ngrams[i, k])
            out[i] = prob


@kernel()
def score_sentences(lm, start, words, ends, out):
    """Compute the natural-log probability of every word of sentences.

    Args:
        lm: the automaton.
        start: state at the beginning of a sentence.
        words: int32 [n], concatenated sentences, each with ``</s>``.
        ends: int64 [sentences], end offset of each sentence in ``words``.
        out: float64 [n], filled.
    """
    at = 0
    for end in ends:
        state = start
        while at < end:
            out[at], state = query(lm, state, words[at])
            at += 1
