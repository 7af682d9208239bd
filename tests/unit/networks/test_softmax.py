"""Probabilities of single classes of a softmax that is computed in blocks of classes."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from rnnsmt.networks.draws import ClassSample, ClassSampler  # noqa: E402
from rnnsmt.networks.exact_softmax import COLUMNS, ExactSoftmax, add_exponentials  # noqa: E402
from rnnsmt.networks.softmax import softmax_gradient  # noqa: E402

torch.set_num_threads(1)


def random_layer(classes: int, scale: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(classes)
    weights = scale * torch.randn(classes, 7, generator=generator)
    return weights, scale * torch.randn(classes, generator=generator), torch.randn(5, 7, generator=generator)


@pytest.mark.parametrize("classes", [1, 63, 64, 65, COLUMNS, COLUMNS + 1, 3 * COLUMNS - 1])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 20.0])
def test_log_p_is_that_of_the_whole_softmax(classes: int, scale: float) -> None:
    weights, biases, g = random_layer(classes, scale)
    rows, words = (grid.flatten() for grid in torch.meshgrid(torch.arange(5), torch.arange(classes), indexing="ij"))
    expected = torch.log_softmax((g @ weights.t() + biases).double(), 1)[rows, words]
    found = ExactSoftmax(weights, biases).log_p(g, rows, words)
    assert found.dtype == torch.float64
    assert found.numpy() == pytest.approx(expected.numpy(), rel=1e-6, abs=1e-5)


def layer_with_gradients(classes: int) -> tuple[nn.Parameter, nn.Parameter, torch.Tensor]:
    weights, biases, g = (part.double() for part in random_layer(classes, 1.0))
    parameters = nn.Parameter(weights), nn.Parameter(biases)
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 9.0)
    return *parameters, g


def test_a_sample_of_all_classes_is_the_whole_softmax() -> None:
    weights, biases, g = layer_with_gradients(30)
    words = torch.tensor([3, 29, 0, 3, 7])
    (loss, _), d_g = softmax_gradient(weights, biases, g, words)
    expected = weights.grad.clone(), biases.grad.clone()
    everything = ClassSample(torch.arange(30), words, torch.zeros(30))
    (sampled, _), d_sampled = softmax_gradient(weights, biases, g, words, sample=everything)
    assert float(sampled) == pytest.approx(float(loss), abs=1e-12)
    assert torch.allclose(d_sampled, d_g)
    assert torch.allclose(weights.grad, expected[0])
    assert torch.allclose(biases.grad, expected[1])


@pytest.mark.parametrize("sampled", [False, True])
def test_padding_has_no_loss_and_no_gradient(sampled: bool) -> None:
    """Rows that are not counted change neither the loss nor the gradients, nor the sample of the classes."""
    weights, biases, g = layer_with_gradients(40)
    words, counted = torch.tensor([3, 39, 39, 0, 39]), torch.tensor([True, True, False, True, False])
    sampler = ClassSampler(np.arange(1, 41), 12, 1)
    results = []
    for rows, mask in ((slice(None), counted), (counted, None)):
        sample = sampler.draw(words[rows], 5, mask) if sampled else None
        sums, d_g = softmax_gradient(weights, biases, g[rows], words[rows], None, 0.1, sample, mask)
        results.append([*sums, d_g, weights.grad.clone(), biases.grad.clone()])
    assert not results[0][2][~counted].any()
    results[0][2] = results[0][2][counted]
    for one, other in zip(*results, strict=True):
        assert torch.allclose(one, other, atol=1e-12)


def test_gradient_over_sampled_classes() -> None:
    """The loss over sampled classes follows its definition, and its gradient equals autograd's."""
    weights, biases, g = layer_with_gradients(40)
    words = torch.tensor([3, 39, 0, 3, 7])
    sampler = ClassSampler(np.arange(1, 41), 12, 1)
    sample = sampler.draw(words, 5)
    classes, places, log_pi = sample
    assert classes[places].tolist() == words.tolist()
    assert len(classes) < 17
    (loss, _), d_g = softmax_gradient(weights, biases, g, words, sample=sample)
    found = weights.grad.clone(), biases.grad.clone()
    leaves = [part.detach().clone().requires_grad_() for part in (weights, biases, g)]
    units = leaves[2] @ leaves[0][classes].t() + leaves[1][classes]
    own = torch.arange(len(classes)) == places[:, None]
    log_sum = torch.logsumexp(torch.where(own, units, units - log_pi.double()), 1)
    expected = (log_sum - units[own]).sum()
    expected.backward()
    assert float(loss) == pytest.approx(expected.item(), abs=1e-6)
    for part, leaf in zip((*found, d_g), leaves, strict=True):
        assert torch.allclose(part, leaf.grad, atol=1e-6)


def test_the_sum_over_sampled_classes_has_the_right_expectation() -> None:
    """The expectation of the sum over sampled classes is the sum over all classes; samples are reproducible."""
    counts = np.array([1000, 500, 200, 100, 50, 20, 10, 5, 2, 1] * 3)
    rng = np.random.default_rng(1)
    units = rng.normal(0, 1, 30)
    sampler = ClassSampler(counts, 8, 2)
    sums = []
    for first in range(4000):
        words = torch.from_numpy(rng.choice(30, 6, p=counts / counts.sum()))
        classes, _, log_pi = sampler.draw(words, first)
        sums.append(np.exp(units[classes.numpy()] - log_pi.numpy()).sum())
    error = np.std(sums) / math.sqrt(len(sums))
    assert np.mean(sums) == pytest.approx(np.exp(units).sum(), abs=4 * error)
    assert error < 0.02 * np.mean(sums)
    again = sampler.draw(words, 3999)
    assert all(torch.equal(*pair) for pair in zip(again, (classes, _, log_pi), strict=True))


@pytest.mark.parametrize("top", [-3e4, -200.0, 0.0, 200.0, 3e4])
def test_sums_of_any_size(top: float) -> None:
    """Log-sums are accurate for large and small units, whose exponentials would be infinite or 0."""
    units = top - np.linspace(0.0, 300.0, 1001, dtype=np.float32)[None, :]
    for order in (slice(None), slice(None, None, -1)):
        tops, totals = np.full(1, -np.inf, np.float32), np.zeros(1)
        for part in np.array_split(np.ascontiguousarray(units[:, order]), 7, axis=1):
            add_exponentials(part.copy(), np.zeros(part.shape[1], np.float32), tops, totals)
        expected = np.logaddexp.reduce(units.astype(np.float64), axis=1)
        assert tops + np.log(totals) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_a_row_does_not_depend_on_the_others() -> None:
    units = np.random.default_rng(1).normal(0, 5, (9, 700)).astype(np.float32)
    tops, totals = np.full(9, -np.inf, np.float32), np.zeros(9)
    add_exponentials(units, np.zeros(units.shape[1], np.float32), tops, totals)
    for row in range(9):
        top, total = np.full(1, -np.inf, np.float32), np.zeros(1)
        add_exponentials(units[row : row + 1], np.zeros(units.shape[1], np.float32), top, total)
        assert (top[0], total[0]) == (tops[row], totals[row])


def test_units_that_are_no_numbers_give_no_number() -> None:
    weights, biases, g = random_layer(70, 1.0)
    g[2, 3] = torch.nan
    found = ExactSoftmax(weights, biases).log_p(g, torch.arange(5), torch.full((5,), 4))
    assert torch.isfinite(found).tolist() == [True, True, False, True, True]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_no_number_of_either_sign(sign: float) -> None:
    units = np.linspace(-3.0, 3.0, 200, dtype=np.float32)[None, :].copy()
    units[0, 70] = np.copysign(np.float32(np.nan), np.float32(sign))
    tops, totals = np.full(1, -np.inf, np.float32), np.zeros(1)
    add_exponentials(units, np.zeros(units.shape[1], np.float32), tops, totals)
    assert np.isnan(tops + np.log(totals)).all()
