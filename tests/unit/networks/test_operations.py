"""Dropout: the mask, and its dependence on the numbers of the examples alone."""

import pytest

torch = pytest.importorskip("torch")

from rnnsmt.networks.gradients import DROPOUT_ROWS, Dropout  # noqa: E402


def test_it_keeps_the_mean_whichever_examples_come_together():
    dropout = Dropout(0.25, 1)
    rows = torch.arange(400)
    factors = dropout.factors(400, 501, dropout.generators(rows))
    assert factors.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert float(factors.mean()) == pytest.approx(1.0, abs=0.01)
    again, other = (dropout.factors(400, 501, dropout.generators(rows + n)) for n in (0, 400))
    assert torch.equal(again, factors)
    assert not torch.equal(other, factors)
    begin = 3 * DROPOUT_ROWS
    part = dropout.factors(400 - begin, 501, dropout.generators(rows[begin:]))
    assert torch.equal(part, factors[begin:])
    assert len(Dropout(0.25, 2**63 - 1).generators(rows)) == 13


def test_without_it():
    nothing = Dropout(0.0, 0)
    assert not nothing.generators(torch.arange(4))
    assert nothing.factors(4, 7, []) is None
    assert Dropout(0.001, 1).limit == 1
