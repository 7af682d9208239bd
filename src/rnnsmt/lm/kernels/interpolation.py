"""Probabilities of single events under the LM's automaton; ``rnnsmt.lm.interpolation`` says what for."""

from rnnsmt.kernels.decorator import kernel
from rnnsmt.lm.kernels.automaton import query


@kernel()
def score_last(lm, ngrams, out):
    """Natural-log probability of the last word of each of ``ngrams``, int32 [n, order], into ``out`` [n]."""
    for i in range(ngrams.shape[0]):
        state = 0
        for k in range(ngrams.shape[1]):
            prob, state = query(lm, state, ngrams[i, k])
            out[i] = prob


@kernel()
def score_sentences(lm, start, words, ends, out):
    """Natural-log probability of every word of sentences after its history, into ``out`` [n].

    Args:
        words: int32 [n], sentences one after the other, each with its ``</s>``.
        ends: int64 [sentences], where they end.
    """
    at = 0
    for end in ends:
        state = start
        while at < end:
            out[at], state = query(lm, state, words[at])
            at += 1
