"""The n-grams of sentences."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnsmt.cslm.text import contexts_at, sentence_ngrams


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
