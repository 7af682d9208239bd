"""Random permutations that are never held in memory as a whole."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnsmt.cslm.settings import CslmSettings
from rnnsmt.networks.batches import ShuffledBatches, draw_held_out, permuted


@pytest.mark.parametrize("n", [1, 2, 3, 64, 65, 1000, 40_000])
def test_permutations(n):
    positions = np.arange(n)
    found = permuted(positions, n, [1, 2])
    assert sorted(found) == list(range(n))
    assert np.array_equal(found[n // 3 :], permuted(positions[n // 3 :], n, [1, 2]))
    if n >= 64:
        assert not np.array_equal(found, permuted(positions, n, [1, 3]))
        assert abs(np.corrcoef(positions, found)[0, 1]) < 4 / np.sqrt(n)
        assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 4 / np.sqrt(n)


@given(st.integers(1, 300), st.integers(1, 40), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_every_example_once_an_epoch(n, size, seed):
    held_out = draw_held_out(n, replace(CslmSettings(), held_out=0.05, held_out_least=2).held_out_of(n), seed)
    assert len(held_out) == min(max(round(n * 0.05), 2), n // 10)
    stream = ShuffledBatches(n, size, seed, held_out)
    orders = []
    for epoch in (1, 2):
        found = [next(stream) for _ in range(stream.updates)]
        assert (stream.epoch, stream.position) == (epoch, 0)
        orders.append(np.concatenate(found))
        assert sorted(orders[-1].tolist()) == sorted(set(range(n)) - set(held_out.tolist()))
    assert n < 30 or not np.array_equal(*orders)


def test_stream_resumes_at_any_minibatch():
    held_out = draw_held_out(1000, 10, 3)
    whole = ShuffledBatches(1000, 64, 3, held_out)
    for _ in range(40):
        part = ShuffledBatches(1000, 64, 3, held_out)
        part.restore(whole.state())
        assert np.array_equal(next(part), next(whole))
