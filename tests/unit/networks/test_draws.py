"""Dropout: the mask, and its dependence on the numbers of the examples alone."""

import pytest

torch = pytest.importorskip("torch")

from rnnsmt.networks.draws import DROPOUT_ROWS, Draws  # noqa: E402

UNITS = torch.ones(400, 501)


def test_it_keeps_the_mean_whichever_examples_come_together():
    rows = torch.arange(400)
    factors = Draws(rows, 1, 0.25).drop(UNITS)
    assert factors.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert float(factors.mean()) == pytest.approx(1.0, abs=0.01)
    again, other = (Draws(rows + n, 1, 0.25).drop(UNITS) for n in (0, 400))
    assert torch.equal(again, factors)
    assert not torch.equal(other, factors)
    begin = 3 * DROPOUT_ROWS
    assert torch.equal(Draws(rows[begin:], 1, 0.25).drop(UNITS[begin:]), factors[begin:])
    assert Draws(rows, 2**63 - 1, 0.25).drop(UNITS).shape == UNITS.shape


def test_every_step_has_its_own_mask():
    rows = torch.arange(400)
    factors = Draws(rows, 1, 0.25).drop(torch.ones(3, 400, 167))
    assert torch.equal(factors.transpose(0, 1).reshape(400, 501), Draws(rows, 1, 0.25).drop(UNITS))


def test_the_rate_is_at_least_a_256th():
    assert Draws(torch.arange(4), 1).drop(UNITS) is UNITS
    assert 0 < float((Draws(torch.arange(400), 1, 0.001).drop(UNITS) == 0).float().mean()) < 0.01
