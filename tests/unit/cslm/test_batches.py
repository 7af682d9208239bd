"""The n-grams of sentences, and the order in which they are trained on."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnsmt.cslm.batches import NGramBatches
from rnnsmt.cslm.ngrams import contexts_at, sentence_ngrams
from rnnsmt.cslm.settings import CslmSettings
from rnnsmt.networks.batches import draw_held_out


def test_contexts_are_padded_at_the_beginning_of_each_sentence():
    sentences = [np.array([2, 3, 4], np.int32), np.array([], np.int32), np.array([1, 2], np.int32)]
    contexts, words = sentence_ngrams(sentences, 2, 9)
    assert words.tolist() == [2, 3, 4, 9, 9, 1, 2, 9]
    assert contexts.tolist() == [[0, 0], [0, 2], [2, 3], [3, 4], [0, 0], [0, 0], [0, 1], [1, 2]]


@given(st.lists(st.lists(st.integers(1, 8), max_size=9), min_size=1, max_size=6), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_contexts_against_a_slow_version(sentences, context):
    ids = [np.array(sentence, np.int32) for sentence in sentences]
    contexts, words = sentence_ngrams(ids, context, 9)
    row = 0
    for sentence in sentences:
        history = [0] * context
        for word in [*sentence, 9]:
            assert (contexts[row].tolist(), words[row]) == (history, word)
            history = [*history, word][1:]
            row += 1
    assert row == len(words)
    places = np.arange(len(words))[::-1]
    assert np.array_equal(contexts_at(words, places, context, 9), contexts[::-1])


@given(st.integers(1, 300), st.integers(1, 40), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_every_ngram_once_an_epoch(n, size, seed):
    held_out = draw_held_out(n, replace(CslmSettings(), held_out=0.05, held_out_least=2).held_out_of(n), seed)
    assert len(held_out) == min(max(round(n * 0.05), 2), n // 10)
    stream = NGramBatches(n, size, seed, held_out)
    orders = []
    for epoch in (1, 2):
        found = [next(stream) for _ in range(stream.updates)]
        assert (stream.epoch, stream.position) == (epoch, 0)
        orders.append(np.concatenate(found))
        assert sorted(orders[-1].tolist()) == sorted(set(range(n)) - set(held_out.tolist()))
    assert n < 30 or not np.array_equal(*orders)


def test_stream_goes_on_at_any_minibatch():
    held_out = draw_held_out(1000, 10, 3)
    whole = NGramBatches(1000, 64, 3, held_out)
    for _ in range(40):
        part = NGramBatches(1000, 64, 3, held_out)
        part.restore(whole.state())
        assert np.array_equal(next(part), next(whole))
