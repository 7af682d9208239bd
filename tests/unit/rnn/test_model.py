"""The RNN Encoder-Decoder: number of parameters, equations, gradient."""

import copy
import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rnnsmt.networks.draws import Draws  # noqa: E402
from rnnsmt.rnn.model import RNNEncoderDecoder, loss_and_gradient  # noqa: E402
from rnnsmt.rnn.settings import PRESETS, RnnSettings, RnnSizes  # noqa: E402

from .twin import Twin  # noqa: E402

torch.set_num_threads(1)
SMALL = RnnSizes(9, 8, 4, 6, 3)
SUPPLEMENTARY = RnnSizes(9, 8, 4, 6, 3, "supplementary")
EVERY = [SMALL, SUPPLEMENTARY]


def network(sizes=SMALL, seed=3, scale=0.7):
    """Return a network in float64 with random parameters far from 0, biases included."""
    model = RNNEncoderDecoder(sizes, seed).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(scale * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return model


def batch(pairs):
    """Return padded tensors of (source, target) id lists with EOS; the padding is a word, not 0."""
    tensors = []
    for side in zip(*pairs, strict=True):
        width = max(map(len, side))
        tensors.append(torch.tensor([[*phrase, *[3] * (width - len(phrase))] for phrase in side]))
        tensors.append(torch.tensor([len(phrase) for phrase in side]))
    return tensors


PAIRS = [([2, 3, 4, 8], [2, 7]), ([8], [7]), ([1, 8], [1, 2, 3, 4, 7]), ([4, 3, 2, 8], [6, 5, 7])]


# size and initialisation


def test_the_paper_s_network_has_17_269_501_parameters():
    sizes = PRESETS["paper"].sizes(15_001, 15_001)
    parts = {name: sum(part.values()) for name, part in sizes.parameters().items()}
    assert parts == {"encoder": 4_801_200, "decoder": 8_802_200, "readout": 2_101_000, "softmax": 1_565_101}
    assert sizes.count() == 17_269_501
    with torch.device("meta"):
        model = RNNEncoderDecoder(sizes, seed=None)
    assert sum(parameter.numel() for parameter in model.parameters()) == 17_269_501


@pytest.mark.parametrize("sizes", [*EVERY, RnnSizes(3, 3, 1, 1, 1)])
def test_counted_and_built_parameters_agree(sizes):
    assert sum(parameter.numel() for parameter in RNNEncoderDecoder(sizes).parameters()) == sizes.count()


def test_the_table_of_sizes_has_the_parameters_of_every_part():
    shown = str(RnnSettings.preset("paper").sizes(15_001, 15_001)).splitlines()
    assert shown[-1].split() == ["all", "parameters", "17,269,501"]
    assert any(line.strip().startswith("U', U'_r, U'_z") for line in shown)


def test_initialisation():
    model = RNNEncoderDecoder(RnnSizes(400, 300, 40, 50, 30), seed=1)
    for name, parameter in model.named_parameters():
        symbol = name.split(".")[-1]
        if symbol.startswith("b"):
            assert not parameter.any()
        elif symbol.startswith("U"):
            assert torch.allclose(parameter @ parameter.T, torch.eye(50), atol=1e-5), name
        else:
            assert abs(parameter.detach().std() - 0.01) < 0.001, name
            assert abs(parameter.detach().mean()) < 0.001, name
    again = RNNEncoderDecoder(RnnSizes(400, 300, 40, 50, 30), seed=1)
    other = RNNEncoderDecoder(RnnSizes(400, 300, 40, 50, 30), seed=2)
    assert torch.equal(model.encoder.U, again.encoder.U)
    assert not torch.equal(model.encoder.U, other.encoder.U)
    assert not torch.equal(model.encoder.U, model.encoder.U_r)


# equations


@pytest.mark.parametrize("sizes", EVERY)
def test_agrees_with_the_independent_version(sizes):
    model = network(sizes)
    twin = Twin({name: value.detach() for name, value in model.named_parameters()}, sizes.variant)
    found = model.log_probability(*batch(PAIRS)).tolist()
    for (source, target), value in zip(PAIRS, found, strict=True):
        assert value == pytest.approx(twin.log_probability(source, target), abs=1e-10)


def test_the_variants_differ():
    ours, theirs = network(SMALL), network(SUPPLEMENTARY)
    theirs.load_state_dict(ours.state_dict(), strict=False)
    assert not torch.allclose(ours.log_probability(*batch(PAIRS)), theirs.log_probability(*batch(PAIRS)), atol=1e-3)


@pytest.mark.parametrize("sizes", EVERY)
def test_step_by_step_is_the_whole(sizes):
    """The functions for single steps (context, softmax_input, logits, step) give the score of the whole pair."""
    model = network(sizes)
    source, target = PAIRS[2]
    contexts = model.decoder_context(model.encode(torch.tensor([[3, 8], source]), torch.tensor([2, 2])))
    context = contexts.rows(torch.tensor([1]))
    s, previous, total = context.state, None, 0.0
    for word in target:
        logits = model.logits(s, previous, context.readout)
        assert torch.equal(
            logits,
            model.logits(s, torch.zeros(1, dtype=torch.int64) if previous is None else previous, context.readout),
        )
        total += torch.log_softmax(logits, 1)[0, word].item()
        previous = torch.tensor([word])
        s = model.decoder.step(s, previous, context.terms)
    assert total == pytest.approx(model.log_probability(*batch([PAIRS[2]])).item(), abs=1e-12)


@pytest.mark.parametrize("sizes", EVERY)
def test_probabilities_of_all_targets_sum_to_one(sizes):
    """The probabilities of all targets of up to L words and EOS increase to 1."""
    model = network(RnnSizes(5, 5, 3, 4, 2, sizes.variant))
    with torch.no_grad():
        model.output.b_G[4] += 2.0  # EOS is likely, so that short targets have most of the mass
    sums = []
    for length in range(7):
        targets = [[*words, 4] for n in range(length + 1) for words in itertools.product(range(4), repeat=n)]
        with torch.no_grad():
            sums.append(float(model.log_probability(*batch([([2, 3, 4], target) for target in targets])).exp().sum()))
    assert all(a < b < 1 for a, b in itertools.pairwise(sums))
    assert sums[-1] > 0.95
    # the missing mass decreases geometrically
    gaps = [1 - value for value in sums]
    assert all(b < 0.8 * a for a, b in itertools.pairwise(gaps))


@pytest.mark.parametrize("sizes", EVERY)
def test_padding_changes_nothing(sizes):
    model = network(sizes).float()
    together = model.log_probability(*batch(PAIRS)).detach()
    for i, pair in enumerate(PAIRS):
        assert float(model.log_probability(*batch([pair])).detach()) == pytest.approx(float(together[i]), abs=1e-5)


@pytest.mark.parametrize("sizes", EVERY)
def test_word_order_matters(sizes):
    model = network(sizes)
    first, last = model.log_probability(*batch([([2, 3, 4, 8], [2, 7]), ([4, 3, 2, 8], [2, 7])])).tolist()
    assert abs(first - last) > 1e-4


def test_the_reset_gate_is_before_the_matrix():
    """The reset gate is applied before U, unlike in torch.nn.GRU; both agree only where U (r * h) = r * (U h)."""
    model = network()
    unit, H = model.encoder, SMALL.hidden
    gru = torch.nn.GRU(SMALL.embedding, H, batch_first=True).double()
    with torch.no_grad():
        gru.weight_ih_l0.copy_(torch.cat([unit.W_r, unit.W_z, unit.W]))
        gru.weight_hh_l0.copy_(torch.cat([unit.U_r, unit.U_z, unit.U]))
        gru.bias_ih_l0.copy_(torch.cat([torch.zeros(2 * H), unit.b]))
        gru.bias_hh_l0.zero_()
    words = torch.tensor([[2, 3, 4, 8]])
    theirs = gru(unit.embed(words))[1][0]
    assert not torch.allclose(model.encode(words, torch.tensor([4])), theirs, atol=1e-3)
    with torch.no_grad():
        unit.U.copy_(torch.diag(torch.linspace(-1, 1, H)))
        gru.weight_hh_l0[2 * H :] = unit.U
    theirs = gru(unit.embed(words))[1][0]
    assert torch.allclose(model.encode(words, torch.tensor([4])), theirs, atol=1e-12)


def test_maxout_pools_adjacent_pairs():
    model = network()
    context = model.decoder_context(model.encode(torch.tensor([[2, 8]]), torch.tensor([2])))
    a = (model.output.O_h @ context.state[0] + context.readout[0]).detach().numpy()
    m = np.maximum(a[0::2], a[1::2])
    expected = model.output.G_r.detach().numpy() @ m
    assert np.allclose(model.softmax_input(context.state, None, context.readout)[0].detach().numpy(), expected)


# gradient


def whole(source, target):
    """Return the lengths [2, B] of pairs without padding."""
    return torch.tensor([[len(side)] * side.shape[1] for side in (source, target)])


def minibatches():
    """Yield source [N, B], target [T, B] and lengths [2, B]: of pairs of equal lengths, and of padded ones."""
    generator = torch.Generator().manual_seed(5)
    for N, T, B in ((3, 4, 5), (1, 1, 2), (2, 1, 1), (1, 3, 4)):
        source = torch.randint(1, 8, (N, B), generator=generator)
        target = torch.randint(1, 7, (T, B), generator=generator)
        source[-1], target[-1] = 8, 7
        yield source, target, whole(source, target)
        if N > 1 < T:
            lengths = torch.tensor([[1, 3, 2, 2, 3], [4, 1, 2, 4, 3]])
            for side, eos, of_side in zip((source, target), (8, 7), lengths, strict=True):
                side[torch.arange(len(side))[:, None] >= of_side - 1] = eos
            yield source, target, lengths


def gradients_of(model, source, target, lengths, dtype=None):
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 7.0)  # must be overwritten
    loss = loss_and_gradient(model, source, target, lengths, dtype)
    return loss, {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def by_autograd(model, source, target, lengths):
    model.zero_grad()
    loss = -model.log_probability(source.t(), lengths[0], target.t(), lengths[1]).sum()
    loss.backward()
    return loss.item(), {
        name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in model.named_parameters()
    }


@pytest.mark.parametrize("minibatch", list(minibatches()))
def test_gradient_by_hand_is_autograd_s(minibatch):
    model = network()
    loss, found = gradients_of(model, *minibatch)
    expected_loss, expected = by_autograd(model, *minibatch)
    assert float(loss) == pytest.approx(expected_loss, abs=1e-10)
    for name, value in expected.items():
        assert torch.allclose(found[name], value, atol=1e-11), name


def assert_slopes(model, loss, found, seed):
    """Check gradients against finite differences of the loss, in four elements of every parameter."""
    rng = np.random.default_rng(seed)
    for name, parameter in model.named_parameters():
        flat = parameter.data.view(-1)
        for place in rng.choice(len(flat), min(4, len(flat)), replace=False):
            before = float(flat[place])
            values = []
            for step in (1e-5, -1e-5):
                flat[place] = before + step
                values.append(loss())
            flat[place] = before
            expected = float(found[name].view(-1)[place])
            assert (values[0] - values[1]) / 2e-5 == pytest.approx(expected, abs=1e-6), name


@pytest.mark.parametrize("sizes", EVERY)
def test_gradient_against_finite_differences(sizes):
    model = network(sizes)
    source, target, lengths = next(minibatches())
    found = by_autograd(model, source, target, lengths)[1]

    @torch.no_grad()
    def loss():
        return -float(model.log_probability(source.t(), lengths[0], target.t(), lengths[1]).sum())

    assert_slopes(model, loss, found, seed=1)


def test_gradient_with_dropout():
    """The gradient with a fixed dropout mask equals finite differences."""
    model = network()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    minibatch = next(minibatches())
    rows = 7 + torch.arange(minibatch[0].shape[1])

    def loss(share=0.4):
        return float(loss_and_gradient(model, *minibatch, draws=Draws(rows, 3, share)))

    assert loss() != pytest.approx(loss(0.0))
    loss()
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    assert_slopes(model, loss, found, seed=2)


@torch.no_grad()
def test_small_states_keep_their_digits():
    """Small states, as with the paper's initial weights, are accurate in float32 (compared with float64)."""
    model = RNNEncoderDecoder(RnnSizes(9, 8, 40, 60, 30), 1, 0.01)
    source = torch.tensor([[3], [5], [8]])
    states = []
    for network_ in (model, copy.deepcopy(model).double()):
        x = network_.encoder.embed(source)
        states.append(network_.encoder.steps(x, x.new_zeros(1, 60), None, None)[1:].double())
    assert states[1].abs().max() < 1e-2
    error = torch.linalg.vector_norm(states[0] - states[1]) / torch.linalg.vector_norm(states[1])
    assert error < 1e-6


def test_gradient_with_rounded_factors_is_near():
    """Gradients with products in bfloat16 are within 8 % of the exact ones; maxout units may switch."""
    model = network(RnnSizes(50, 60, 16, 32, 16), scale=0.1).float()
    generator = torch.Generator().manual_seed(1)
    source, target = (
        torch.randint(1, 49, (4, 64), generator=generator),
        torch.randint(1, 59, (3, 64), generator=generator),
    )
    lengths = whole(source, target)
    exact_loss, exact = gradients_of(model, source, target, lengths)
    loss, rounded = gradients_of(model, source, target, lengths, torch.bfloat16)
    assert float(loss) == pytest.approx(float(exact_loss), rel=2e-3)
    for name, value in exact.items():
        assert torch.linalg.vector_norm(rounded[name] - value) < 0.08 * torch.linalg.vector_norm(value), name
