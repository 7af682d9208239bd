"""The order of phrase pairs in training."""

from dataclasses import replace
from itertools import islice, pairwise
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rnnsmt.networks import batches  # noqa: E402
from rnnsmt.networks.batches import SORTED_TOGETHER, ShuffledBatches, SortedBatches, draw_held_out  # noqa: E402
from rnnsmt.phrases.pairs import PhraseIds  # noqa: E402
from rnnsmt.rnn.pairs import PhraseSide  # noqa: E402
from rnnsmt.rnn.settings import RnnSettings  # noqa: E402
from rnnsmt.rnn.training import PairBatches, group_by_length, longer_side, pair_tensors  # noqa: E402


def held_out(n, at_most=5000, seed=1):
    return draw_held_out(n, replace(RnnSettings(), held_out=at_most).held_out_of(n), seed)


EOS = 50


class MadePairs:
    """Pairs of random lengths in memory."""

    def __init__(self, n, seed=0, longest=5):
        rng = np.random.default_rng(seed)
        sides = []
        for _ in range(2):
            offsets = np.concatenate([[0], np.cumsum(rng.integers(1, longest, n))])
            phrases = PhraseIds(rng.integers(1, 50, offsets[-1]).astype(np.uint16), offsets)
            sides.append(PhraseSide(phrases, None, np.arange(50, dtype=np.int32), EOS))
        self.sides, self.number = tuple(sides), n

    def __len__(self):
        return self.number

    def at(self, index):
        return SimpleNamespace(sides=tuple(side.at(index) for side in self.sides))


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


def sorted_stream(pairs, batch, out):
    return SortedBatches(len(pairs), batch, 3, out, lambda index: longer_side(pairs, index))


def test_ten_random_minibatches_are_sorted_together():
    """As in GroundHog's ``sort_k_batches``: 640 random pairs, by the length of the longer side, are ten minibatches."""
    pairs, out = MadePairs(5000), held_out(5000, 50)
    drawn, stream = ShuffledBatches(5000, SORTED_TOGETHER * 64, 3, out), sorted_stream(pairs, 64, out)
    for _ in range(7):
        ten = [next(stream) for _ in range(SORTED_TOGETHER)]
        assert [len(index) for index in ten] == [64] * 10
        assert sorted(np.concatenate(ten)) == sorted(next(drawn))
        longest = np.concatenate([[max(len(side.phrase(i)) for side in pairs.sides) for i in index] for index in ten])
        assert np.all(np.diff(longest) >= 0)
        assert longest[0] < longest[-1]


@pytest.mark.parametrize(("n", "batch"), [(1, 4), (50, 7), (1000, 16), (1000, 2000)])
def test_every_pair_once_an_epoch_of_random_minibatches(n, batch):
    pairs, out = MadePairs(n), held_out(n, 10)
    stream, epochs = sorted_stream(pairs, batch, out), []
    for _ in range(2):
        found = [next(stream) for _ in range(-(-(n - len(out)) // batch))]
        assert sorted(np.concatenate(found)) == sorted(set(range(n)) - set(out.tolist()))
        assert all(len(index) == batch for index in found[:-1])
        epochs.append(np.concatenate(found))
    assert n < 40 or not np.array_equal(*epochs)


def test_random_minibatches_resume_where_they_were():
    pairs, out = MadePairs(700), held_out(700, 10)
    whole = sorted_stream(pairs, 8, out)
    expected = [next(whole).tolist() for _ in range(200)]
    for stop in (0, 1, 5, 9, 10, 11, 86, 87, 88, 150):  # 87 minibatches are an epoch
        first, second = (sorted_stream(pairs, 8, out) for _ in range(2))
        for _ in range(stop):
            next(first)
        second.restore(first.state())
        assert second.state() == first.state()
        assert [next(second).tolist() for _ in range(200 - stop)] == expected[stop:]


def test_the_order_of_any_number_of_pairs_takes_no_memory():
    stream = SortedBatches(10**12, 64, 1, np.arange(0, 10**6, 1000), lambda index: index % 7)
    found = np.concatenate([next(stream) for _ in range(100)])
    assert len(np.unique(found)) == 6400
    assert found.min() < 10**11 < 9 * 10**11 < found.max()


def test_words_of_pairs():
    """A minibatch has the ids of its pairs, as many rows as the longest phrase, and EOS as padding."""
    pairs = MadePairs(100)
    for group in (*group_by_length(pairs, np.arange(100)), np.arange(100)):
        *sides, lengths = pair_tensors(pairs, group)
        for rows, side, of_side in zip(sides, pairs.sides, lengths.tolist(), strict=True):
            assert len(rows) == max(of_side)
            for column, (i, length) in enumerate(zip(group, of_side, strict=True)):
                assert rows[:length, column].tolist() == side.phrase(i).tolist()
                assert set(rows[length - 1 :, column].tolist()) == {EOS}


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
