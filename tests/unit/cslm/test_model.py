"""The feed-forward LM: sizes, equations and gradients, against a NumPy implementation and finite differences."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")


from rnnsmt.cslm.settings import PRESETS, CslmSizes  # noqa: E402
from rnnsmt.networks.draws import ClassSampler, Draws  # noqa: E402
from rnnsmt.networks.feed_forward import FeedForwardLM, loss_and_gradient  # noqa: E402
from rnnsmt.networks.gradients import flatten  # noqa: E402

from .twin import Twin  # noqa: E402

torch.set_num_threads(1)
TINY = CslmSizes(vocabulary=11, order=4, projection=3, hidden_1=7, hidden_2=5)


def tiny(spread=0.5, sizes=TINY):
    model = FeedForwardLM(sizes, 1, spread)
    generator = torch.Generator().manual_seed(2)
    for bias in (model.b_1, model.b_2, model.b_o):
        bias.data.uniform_(-0.3, 0.3, generator=generator)
    return model


def twin_of(model):
    return Twin({name: value.detach().numpy() for name, value in model.named_parameters()})


def batch(number=9, sizes=TINY):
    rng = np.random.default_rng(3)
    contexts = torch.from_numpy(rng.integers(0, sizes.vocabulary, (number, sizes.context)))
    return contexts, torch.from_numpy(rng.integers(1, sizes.vocabulary, number)), torch.arange(number)


# sizes


def test_sizes_of_the_paper():
    sizes = PRESETS["paper"].sizes(15_001)
    assert (sizes.context * sizes.projection, sizes.hidden_1, sizes.hidden_2) == (3072, 1536, 1024)
    # 15,001 x 512, 3,072 x 1,536 + 1,536, 1,536 x 1,024 + 1,024, 1,024 x 15,001 + 15,001
    assert sizes.count() == 7_680_512 + 4_720_128 + 1_573_888 + 15_376_025 == 29_350_553


@pytest.mark.parametrize("preset", PRESETS)
def test_count_is_that_of_the_network(preset):
    sizes = PRESETS[preset].sizes(50)
    with torch.device("meta"):
        model = FeedForwardLM(sizes, None)
    assert sum(parameter.numel() for parameter in model.parameters()) == sizes.count()
    named = {name for part in sizes.parameters().values() for name in part}
    assert named == {name for name, _ in model.named_parameters()}


def test_paper_preset():
    paper = PRESETS["paper"]
    assert (paper.order, paper.spread, paper.output_bias, paper.dropout) == (7, 0.01, "zero", 0.0)
    assert (paper.patience, paper.held_out, paper.self_normalised, paper.singletons) == (10, 0.001, 0.0, 0.0)


def test_initial_weights():
    model = FeedForwardLM(CslmSizes(200, 7, 32, 64, 48), 1, 0.01)
    for name, value in model.named_parameters():
        if name.startswith("b_"):
            assert not value.any()
        else:
            assert 0.009 < float(value.detach().abs().max()) <= 0.01
            assert float(value.detach().std()) == pytest.approx(0.01 / 3**0.5, rel=0.05)
    same, other = (
        FeedForwardLM(CslmSizes(200, 7, 32, 64, 48), 1, 0.01),
        FeedForwardLM(CslmSizes(200, 7, 32, 64, 48), 2, 0.01),
    )
    assert torch.equal(model.W_1, same.W_1)
    assert not torch.equal(model.W_1, other.W_1)


# equations


def test_probabilities_are_the_twins():
    model = tiny().double()
    twin = twin_of(model)
    contexts, words, _ = batch()
    found = model.log_probability(contexts, words).detach().numpy()
    expected = [twin.log_probability(c, w) for c, w in zip(contexts.tolist(), words.tolist(), strict=True)]
    assert np.allclose(found, expected, atol=1e-12)
    assert torch.allclose(torch.softmax(model.logits(contexts), 1).sum(1), torch.ones(9, dtype=torch.float64))


def test_order_of_the_context_matters():
    model = tiny()
    forward, backward = torch.tensor([[2, 3, 4]]), torch.tensor([[4, 3, 2]])
    assert not torch.allclose(model.logits(forward), model.logits(backward), atol=1e-3)


# gradients


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_gradient_by_hand_is_autograds(alpha):
    model = tiny().double()
    flat = flatten(model)
    contexts, words, _ = batch(600)  # more rows than a chunk of the softmax
    loss, squares = loss_and_gradient(model, contexts, words, None, alpha)
    log_sums = torch.logsumexp(model.logits(contexts), 1)
    expected = -model.log_probability(contexts, words).sum() + alpha * (log_sums**2).sum()
    gradient = torch.autograd.grad(expected, list(model.parameters()))
    assert float(loss + alpha * squares) == pytest.approx(float(expected.detach()), rel=1e-10)
    assert torch.allclose(flat.grad, torch.cat([part.flatten() for part in gradient]), atol=1e-9)


@pytest.mark.parametrize("sampled", [0, 3])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_gradient_by_finite_differences(alpha, sampled):
    model = tiny().double()
    flat = flatten(model)
    sampler = ClassSampler(np.arange(1, model.sizes.vocabulary + 1), sampled, 1) if sampled else None
    contexts, words, rows = batch()
    args = (model, contexts, words, None, alpha, Draws(rows, 1, sampler=sampler))

    def value():
        loss, squares = loss_and_gradient(*args)
        return float(loss + alpha * squares)

    value()
    gradient = flat.grad.clone()
    rng = np.random.default_rng(4)
    for i in rng.choice(flat.numel(), 60, replace=False):
        before = float(flat.data[i])
        values = []
        for step in (1e-6, -1e-6):
            flat.data[i] = before + step
            values.append(value())
        flat.data[i] = before
        assert float(gradient[i]) == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-6)


def test_gradient_with_dropout():
    """The gradient with a fixed dropout mask equals finite differences."""
    model = tiny().double()
    flat = flatten(model)
    contexts, words, rows = batch()

    def value():
        return float(loss_and_gradient(model, contexts, words, draws=Draws(rows, 7, 0.4))[0])

    value()
    gradient = flat.grad.clone()
    assert not torch.allclose(gradient, flat.grad * 0)
    for i in np.random.default_rng(5).choice(flat.numel(), 60, replace=False):
        before = float(flat.data[i])
        values = []
        for step in (1e-6, -1e-6):
            flat.data[i] = before + step
            values.append(value())
        flat.data[i] = before
        assert float(gradient[i]) == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-6)


def test_rounded_factors_change_little():
    model = tiny()
    flat = flatten(model)
    contexts, words, _ = batch(300)
    exact = loss_and_gradient(model, contexts, words, None, 0.1)
    gradient = flat.grad.clone()
    rounded = loss_and_gradient(model, contexts, words, torch.bfloat16, 0.1)
    assert torch.allclose(exact, rounded, rtol=0.01)
    assert float((flat.grad - gradient).norm() / gradient.norm()) < 0.02
