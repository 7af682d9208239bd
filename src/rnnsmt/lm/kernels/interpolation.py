"""Kernels that compute probabilities of single events with the automaton of an LM, for ``rnnsmt.lm.interpolation``."""

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.lm.kernels.automaton import query


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
        words: int32 [n], sentences one after the other, each with its ``</s>``.
        ends: int64 [sentences], where each sentence ends.
        out: float64 [n], filled.
    """
    at = 0
    for end in ends:
        state = start
        while at < end:
            out[at], state = query(lm, state, words[at])
            at += 1
