"""The order of phrase pairs in training."""

from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rnnsmt.networks import batches  # noqa: E402
from rnnsmt.networks.batches import draw_held_out  # noqa: E402
from rnnsmt.networks.data import Sequences  # noqa: E402
from rnnsmt.rnn.settings import RnnSettings  # noqa: E402
from rnnsmt.rnn.training import PairBatches, group_by_length, pair_tensors  # noqa: E402


def held_out(n, at_most=5000, seed=1):
    return draw_held_out(n, replace(RnnSettings(), held_out=at_most).held_out_of(n), seed)


class MadePairs:
    """Pairs of random lengths in memory."""

    def __init__(self, n, seed=0, longest=5):
        rng = np.random.default_rng(seed)
        sides = []
        for _ in range(2):
            offsets = np.concatenate([[0], np.cumsum(rng.integers(2, longest + 1, n))])
            sides.append(Sequences(rng.integers(1, 50, offsets[-1]).astype(np.int32), offsets))
        self.sides = tuple(sides)

    def __len__(self):
        return len(self.sides[0].offsets) - 1


def epoch_of(stream):
    """Return the remaining minibatches of the current epoch."""
    epoch, found = stream.epoch, []
    while True:
        before = stream.state()
        found.append(next(stream))
        if stream.epoch != epoch:
            stream.restore(before)
            found.pop()
            return found


@pytest.mark.parametrize(("n", "batch"), [(1, 4), (50, 7), (1000, 16), (1000, 2000)])
def test_every_pair_once_an_epoch(monkeypatch, n, batch):
    monkeypatch.setattr(batches, "WINDOW", 256)
    pairs = MadePairs(n)
    out = held_out(n, 10)
    stream = PairBatches(pairs, batch, 3, out)
    orders = []
    for _ in range(2):
        found = epoch_of(stream)
        next(stream)
        stream.taken = 0
        stream._ready = None
        seen = np.concatenate(found)
        assert sorted(seen) == sorted(set(range(n)) - set(out.tolist()))
        assert all(len(index) <= batch for index in found)
        for index in found:
            assert all(len(set(side.lengths(index).tolist())) == 1 for side in pairs.sides)
        orders.append(seen)
    if n > 40:
        assert not np.array_equal(*orders)


def test_most_minibatches_are_whole(monkeypatch):
    monkeypatch.setattr(batches, "WINDOW", 512)
    pairs = MadePairs(10_000, longest=4)
    found = epoch_of(PairBatches(pairs, 32, 3, held_out(10_000, 100)))
    assert sum(len(index) < 32 for index in found) <= 9  # three lengths on each side
    lengths = [int(pairs.sides[1].lengths(index[:1])[0]) for index in found]
    changes = sum(a != b for a, b in pairwise(lengths))
    assert changes > len(found) / 3  # not sorted by length


def test_a_stream_resumes_where_it_was(monkeypatch):
    monkeypatch.setattr(batches, "WINDOW", 128)
    pairs = MadePairs(700)

    def stream():
        return PairBatches(pairs, 8, 3, held_out(700, 10))

    expected = [index.tolist() for index in islice(stream(), 200)]
    for stop in (0, 1, 5, 30, 88, 110, 150):
        first = stream()
        for _ in range(stop):
            next(first)
        second = stream()
        second.restore(first.state())
        assert [index.tolist() for index in islice(second, 200 - stop)] == expected[stop:]


def test_words_of_pairs():
    pairs = MadePairs(100)
    for group in group_by_length(pairs, np.arange(100)):
        source, target = pair_tensors(pairs, group)
        for column, i in enumerate(group):
            assert source[:, column].tolist() == pairs.sides[0].phrase(i).tolist()
            assert target[:, column].tolist() == pairs.sides[1].phrase(i).tolist()


def test_held_out_pairs():
    assert len(held_out(1)) == 0
    assert len(held_out(2)) == 1
    assert len(held_out(100_000)) == 1000
    found = held_out(1_000_000)
    assert len(set(found.tolist())) == 5000
    assert np.all(np.diff(found) > 0)
    assert 450_000 < found.mean() < 550_000
    assert np.array_equal(found, held_out(1_000_000))
    assert not np.array_equal(found, held_out(1_000_000, seed=2))
