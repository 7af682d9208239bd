"""The training of preset ``paper`` against a float64 implementation written from the paper's equations alone.

It shares only the initial parameters and the order of the minibatches with ``rnnsmt``. It processes one pair at a time
and has autograd gradients, its own clipping and its own Adadelta (Zeiler 2012).
"""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rnnsmt.networks.devices import set_up_device  # noqa: E402
from rnnsmt.networks.training import Training  # noqa: E402
from rnnsmt.rnn.settings import PRESETS  # noqa: E402
from rnnsmt.rnn.training import RnnTask  # noqa: E402

from .test_training import directory, pairs  # noqa: E402, F401

UPDATES = 200


def log_probability(p, source, target):
    """Return log p(y | x) of one pair of id lists with EOS: section 2.2 and equations 5 to 8 of the paper."""

    def unit(side, e, h, context):
        of = {name: p[f"{side}.{name}"] for name in ("W", "W_r", "W_z", "U", "U_r", "U_z", "b")}
        r = torch.sigmoid(of["W_r"] @ e + of["U_r"] @ h + context[1])
        z = torch.sigmoid(of["W_z"] @ e + of["U_z"] @ h + context[2])
        proposed = torch.tanh(of["W"] @ e + of["b"] + of["U"] @ (r * h) + context[0])
        return z * h + (1 - z) * proposed

    h = torch.zeros_like(p["encoder.b"])
    for word in source:
        h = unit("encoder", p["encoder.embedding"][word] + p["encoder.b_embedding"], h, (0, 0, 0))
    context = [p[f"decoder.{name}"] @ h for name in ("C", "C_r", "C_z")]
    s, e, total = torch.tanh(p["decoder.V"] @ h + p["decoder.b_V"]), None, 0
    for word in target:
        a = p["output.O_h"] @ s + p["output.O_c"] @ h + p["output.b_o"]
        if e is not None:
            a = a + p["output.O_y"] @ e
        maxout = torch.maximum(a[0::2], a[1::2])
        scores = p["output.G_l"] @ (p["output.G_r"] @ maxout) + p["output.b_G"]
        total = total + scores[word] - torch.log(torch.exp(scores).sum())
        e = p["decoder.embedding"][word] + p["decoder.b_embedding"]
        s = unit("decoder", e, s, context)
    return total


class TwinTraining:
    """Parameters in float64 and their updates: sum of the loss, norm clipped at 1, Adadelta."""

    def __init__(self, parameters):
        self.p = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in parameters}
        self.squares = {name: np.zeros(tuple(value.shape)) for name, value in self.p.items()}
        self.steps = {name: np.zeros(tuple(value.shape)) for name, value in self.p.items()}

    def update(self, minibatch):
        """Update the parameters; return the loss before the update, and whether the gradient was clipped."""
        loss = -sum(log_probability(self.p, *pair) for pair in minibatch)
        gradients = dict(zip(self.p, torch.autograd.grad(loss, list(self.p.values())), strict=True))
        norm = np.sqrt(sum(float((g**2).sum()) for g in gradients.values()))
        with torch.no_grad():
            for name, gradient in gradients.items():
                g = gradient.numpy() * min(1.0, 1.0 / norm)
                self.squares[name] = 0.95 * self.squares[name] + 0.05 * g**2
                step = np.sqrt(self.steps[name] + 1e-6) / np.sqrt(self.squares[name] + 1e-6) * g
                self.steps[name] = 0.95 * self.steps[name] + 0.05 * step**2
                self.p[name] -= torch.from_numpy(step)
        return float(loss.detach()), norm > 1.0


@pytest.fixture
def in_float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_two_hundred_updates_of_the_paper_s_training(pairs, in_float64):  # noqa: F811
    settings = replace(PRESETS["paper"], embedding=4, hidden=6, maxout=3, batch=8, updates=UPDATES, deviation=0.3)
    assert (settings.optimizer, settings.loss, settings.clip, settings.variant) == ("adadelta", "sum", 1.0, "paper")
    trainer, order = (Training(RnnTask(pairs, settings, 1, set_up_device("cpu", 1))) for _ in range(2))
    twin = TwinTraining((name, value.detach().numpy()) for name, value in trainer.task.model.named_parameters())
    curve, expected, clipped = [], [], 0
    for _ in range(UPDATES):
        index = next(order.task.batches)
        loss, was_clipped = twin.update(
            [(trainer.task.pairs.source(i).tolist(), trainer.task.pairs.target(i).tolist()) for i in index]
        )
        expected.append(loss)
        clipped += was_clipped
        before = float(trainer.sums.measured[0])
        trainer.step()
        curve.append(float(trainer.sums.measured[0]) - before)
    assert curve == pytest.approx(expected, rel=1e-8)
    assert trainer.sums.measured[-2] == clipped > UPDATES / 2
    assert np.mean(curve[-20:]) < 0.95 * np.mean(curve[:20])
    for name, value in trainer.task.model.named_parameters():
        assert np.allclose(value.detach().numpy(), twin.p[name].detach().numpy(), rtol=1e-6, atol=1e-8), name
