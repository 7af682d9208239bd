"""The RNN Encoder-Decoder, equation by equation (Cho et al. 2014, section 2 and the supplementary), and its gradient.

Shapes: B phrases of a batch, N source and T target positions (both with EOS), E units of an embedding, H hidden units,
M maxout units, V target classes. Words are int64 ids: 0 is "no word", 1 an unknown word, the last id EOS.

The gated unit applies the reset gate BEFORE the recurrent matrix (``torch.nn.GRU`` and cuDNN apply it after)::

    r  = sigmoid(W_r x + U_r h)             z  = sigmoid(W_z x + U_z h)
    h~ = tanh(W x + b + U (r * h))          h' = z * h + (1 - z) * h~

``Encoder.step`` and ``Decoder.step`` compute one step for scoring, for generation and for the variant
``supplementary``. In training, ``GatedSteps`` computes all steps of a batch. ``Readout`` is used in scoring and in
training. ``GatedSteps`` and ``Readout`` have hand-written gradients (``rnnsmt.rnn.steps``); autograd differentiates the
rest of the network in ``loss_and_gradient``. The module also reads and writes model files, which contain sizes,
parameters and the hashes of the vocabularies.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import say
from rnnsmt.networks.data import Vocabulary
from rnnsmt.networks.devices import DeviceSetup
from rnnsmt.networks.draws import NOTHING_DRAWN, Draws
from rnnsmt.networks.gradients import Lookup, backpropagate, look_up, product
from rnnsmt.networks.model_file import ModelContent, ModelFormat, read_model, write_model
from rnnsmt.networks.softmax import softmax_gradient
from rnnsmt.rnn.settings import RnnSizes
from rnnsmt.rnn.steps import GatedSteps, Readout


class DecoderContext(NamedTuple):
    """The terms of the decoder that depend only on c, computed once per source phrase.

    Attributes:
        state: [B, H], s_0, from which the first word is predicted.
        terms: [B, 3H], the concatenation of C c, C_r c and C_z c, for the next states.
        readout: [B, 2M], O_c c + b_o, for the prediction of words.
    """

    state: Tensor
    terms: Tensor
    readout: Tensor

    def rows(self, index: Tensor) -> "DecoderContext":
        """Return the context of the phrases ``index``, int64 [K]; an index may occur several times."""
        return DecoderContext(*(tensor.index_select(0, index) for tensor in self))


class GatedUnit(nn.Module):
    """Parameters of a layer of gated hidden units: word embedding with a bias, input matrices, recurrent matrices.

    The input matrices W, W_r and W_z share one embedding, so their products with it have rank E.
    """

    def __init__(self, vocabulary: int, E: int, H: int) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(vocabulary, E))
        self.b_embedding = nn.Parameter(torch.empty(E))
        self.W, self.W_r, self.W_z = (nn.Parameter(torch.empty(H, E)) for _ in range(3))
        self.b = nn.Parameter(torch.empty(H))
        self.U, self.U_r, self.U_z = (nn.Parameter(torch.empty(H, H)) for _ in range(3))

    def embed(self, words: Tensor) -> Tensor:
        """Return the embeddings e [..., E] of words [...], with the bias."""
        return embedding(words, self.embedding) + self.b_embedding

    def steps(self, x: Tensor, h: Tensor, terms: Tensor | None, dtype: torch.dtype | None) -> Tensor:
        """Compute the states [K + 1, B, H] of K steps that begin in state h; arguments as in ``GatedSteps``."""
        matrices = self.W_r, self.W_z, self.W, self.b, self.U_r, self.U_z, self.U
        states: Tensor = GatedSteps.apply(x, h, terms, dtype, *matrices)
        return states


class Encoder(GatedUnit):
    """Recurrent encoder: c is the state h after x_1 .. x_N and EOS; in the variant ``supplementary``, c = tanh(V h)."""

    def __init__(self, sizes: RnnSizes) -> None:
        super().__init__(sizes.source_vocabulary, sizes.embedding, sizes.hidden)
        self.V = None
        if sizes.variant == "supplementary":
            self.V = nn.Parameter(torch.empty(sizes.hidden, sizes.hidden))

    def finish(self, h: Tensor) -> Tensor:
        """Return c [B, H], given the state after EOS [B, H]."""
        return h if self.V is None else torch.tanh(linear(h, self.V))

    def step(self, h: Tensor, e: Tensor) -> Tensor:
        """Return the next state [B, H], given the state h [B, H] and the next embedding e [B, E]."""
        r = torch.sigmoid(linear(e, self.W_r) + linear(h, self.U_r))
        z = torch.sigmoid(linear(e, self.W_z) + linear(h, self.U_z))
        candidate = torch.tanh(linear(e, self.W, self.b) + linear(r * h, self.U))
        return z * h + (1 - z) * candidate


class Decoder(GatedUnit):
    """Recurrent decoder, with the matrices C, C_r, C_z and V' that multiply c."""

    def __init__(self, sizes: RnnSizes) -> None:
        super().__init__(sizes.target_vocabulary, sizes.embedding, sizes.hidden)
        H = sizes.hidden
        self.C, self.C_r, self.C_z, self.V = (nn.Parameter(torch.empty(H, H)) for _ in range(4))
        self.b_V = nn.Parameter(torch.empty(H))
        self.supplementary = sizes.variant == "supplementary"

    def begin(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """Return s_0 = tanh(V' c + b) [B, H] and ``DecoderContext.terms`` [B, 3H], given c [B, H].

        In the variant ``supplementary``, s_0 is the state after one more step, whose embedding is 0.
        """
        s = torch.tanh(linear(c, self.V, self.b_V))
        terms = torch.cat([linear(c, C) for C in (self.C, self.C_r, self.C_z)], 1)
        if self.supplementary:
            s = self.advance(s, c.new_zeros(len(c), self.W.shape[1]), terms)
        return s, terms

    def step(self, s: Tensor, words: Tensor, terms: Tensor) -> Tensor:
        """Return s_k [B, H], given s_{k-1} [B, H], the words y_k [B] and the ``terms`` that ``begin`` returned."""
        return self.advance(s, self.embed(words), terms)

    def advance(self, s: Tensor, e: Tensor, terms: Tensor) -> Tensor:
        """Return the next state [B, H], given the state s [B, H] and the embedding e [B, E] of the last word."""
        of_candidate, of_reset, of_update = terms.chunk(3, 1)
        r = torch.sigmoid(linear(e, self.W_r) + linear(s, self.U_r) + of_reset)
        z = torch.sigmoid(linear(e, self.W_z) + linear(s, self.U_z) + of_update)
        if self.supplementary:
            # this variant applies the reset gate after the matrices, and also to the term of c
            recurrent = r * (linear(s, self.U) + of_candidate)
        else:
            recurrent = linear(r * s, self.U) + of_candidate
        candidate = torch.tanh(linear(e, self.W, self.b) + recurrent)
        return z * s + (1 - z) * candidate


class Output(nn.Module):
    """The maxout readout, and the parameters of the softmax: the low-rank weight matrix G_l G_r and the bias b_G."""

    def __init__(self, sizes: RnnSizes) -> None:
        super().__init__()
        V, E, H, M = sizes.target_vocabulary, sizes.embedding, sizes.hidden, sizes.maxout
        self.O_h, self.O_c = (nn.Parameter(torch.empty(2 * M, H)) for _ in range(2))
        self.O_y = nn.Parameter(torch.empty(2 * M, E))
        self.b_o = nn.Parameter(torch.empty(2 * M))
        self.G_r = nn.Parameter(torch.empty(E, M))
        self.G_l = nn.Parameter(torch.empty(V, E))
        self.b_G = nn.Parameter(torch.empty(V))

    def forward(self, s: Tensor, e: Tensor | None, term: Tensor, dtype: torch.dtype | None, draws: Draws) -> Tensor:
        """Compute the input of the softmax layer [..., B, E]; arguments as in ``Readout``."""
        g: Tensor = Readout.apply(s, e, term, dtype, draws, self.O_h, self.O_y, self.G_r)
        return g


class RNNEncoderDecoder(nn.Module):
    """The model of p(target | source) of a phrase pair, in either variant."""

    def __init__(self, sizes: RnnSizes, seed: int | None = 0, deviation: float = 0.01) -> None:
        """Build a network and initialise it as in the paper, independently of torch's global random state.

        Weights are drawn from N(0, deviation^2), with 0.01 in the paper; U, U_r and U_z of both sides are the left
        singular vectors of a matrix drawn from N(0, 1); biases are 0.

        Args:
            seed: seed of the initial parameters; None: the parameters are not initialised.
        """
        super().__init__()
        self.sizes = sizes
        self.encoder, self.decoder, self.output = Encoder(sizes), Decoder(sizes), Output(sizes)
        if seed is not None:
            self.initialise(seed, deviation)

    @torch.no_grad()
    def initialise(self, seed: int, deviation: float = 0.01) -> None:
        """Initialise all parameters; the same seed gives the same parameters."""
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in self.named_parameters():
            symbol = name.split(".")[-1]
            if symbol.startswith("b"):
                parameter.zero_()
            elif symbol.startswith("U"):
                square = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.copy_(torch.linalg.svd(square).U)
            else:
                drawn = torch.randn(parameter.shape, generator=generator)
                parameter.copy_(deviation * drawn)

    def encode(self, words: Tensor, lengths: Tensor) -> Tensor:
        """Encode source phrases; return c [B, H].

        Args:
            words: ids [B, N], each row ending in EOS, followed by arbitrary ids as padding.
            lengths: [B], length of each row with EOS; padding does not change the state.
        """
        e = self.encoder.embed(words)
        h = e.new_zeros(words.shape[0], self.sizes.hidden)
        for k in range(words.shape[1]):
            h = torch.where((k < lengths)[:, None], self.encoder.step(h, e[:, k]), h)
        return self.encoder.finish(h)

    def decoder_context(self, c: Tensor) -> DecoderContext:
        """Compute s_0 and the terms of all later steps that depend on c [B, H]."""
        return DecoderContext(*self.decoder.begin(c), linear(c, self.output.O_c, self.output.b_o))

    def softmax_input(self, s: Tensor, previous: Tensor | None, readout: Tensor) -> Tensor:
        """Compute the input of the softmax layer, G_r m_k [B, E].

        Args:
            s: [B, H], the states s_{k-1}.
            previous: [B], the words y_{k-1}, id 0 in rows without a previous word; None: no row has a previous word.
            readout: [B, 2M], ``DecoderContext.readout``.
        """
        e = None if previous is None else self.decoder.embed(previous) * (previous != 0)[:, None]
        units: Tensor = self.output(s, e, readout, None, NOTHING_DRAWN)
        return units

    def logits(self, s: Tensor, previous: Tensor | None, readout: Tensor) -> Tensor:
        """Compute the units before the softmax, G_l (G_r m_k) + b_G [B, V]; arguments as in ``softmax_input``."""
        return linear(self.softmax_input(s, previous, readout), self.output.G_l, self.output.b_G)

    def log_probability(self, source: Tensor, source_lengths: Tensor, target: Tensor, target_lengths: Tensor) -> Tensor:
        """Compute log p(y | x) [B], the sum over the target words and EOS; natural logarithm, not length-normalised.

        Args:
            source, target: ids [B, N] and [B, T], each row ending in EOS, followed by arbitrary ids as padding.
            source_lengths, target_lengths: [B], lengths with EOS.
        """
        context = self.decoder_context(self.encode(source, source_lengths))
        s, previous = context.state, None
        total = s.new_zeros(s.shape[0])
        for k in range(target.shape[1]):
            word = target[:, k]
            scores = torch.log_softmax(self.logits(s, previous, context.readout), -1)
            chosen = scores.gather(1, word[:, None])[:, 0]
            total = total + torch.where(k < target_lengths, chosen, torch.zeros_like(chosen))
            if k + 1 < target.shape[1]:
                s, previous = self.decoder.step(s, word, context.terms), word
        return total


def loss_and_gradient(
    model: RNNEncoderDecoder,
    source: Tensor,
    target: Tensor,
    lengths: Tensor,
    dtype: torch.dtype | None = None,
    draws: Draws = NOTHING_DRAWN,
) -> Tensor:
    """Fill ``.grad`` of every parameter with the gradient of -sum log p(y | x) over the batch; return that sum.

    Every parameter must have a ``.grad``, which is overwritten. The loss and the gradients of padding are 0.

    Args:
        source, target: ids [N, B] and [T, B], ending in EOS and padded with EOS.
        lengths: [2, B], numbers of source ids and of target ids without padding.
        dtype: type to which the factors of matrix products are rounded; None: they are not rounded.
        draws: the dropout masks, and the classes of the softmax. Dropout is applied to the non-recurrent units (Zaremba
            et al. 2014): embeddings and maxout units.

    Returns:
        A float64 scalar tensor.
    """
    encoder, decoder, output = model.encoder, model.decoder, model.output
    H = model.sizes.hidden
    lookups = [
        Lookup(unit.embedding, words, look_up(unit.embedding, words))
        for unit, words in ((encoder, source), (decoder, target[:-1]))
    ]
    x, y = (
        draws.drop((rows + unit.b_embedding).unflatten(0, words.shape))
        for unit, (_, words, rows) in zip((encoder, decoder), lookups, strict=True)
    )
    h = encoder.steps(x, x.new_zeros(x.shape[1], H), None, dtype)
    c = h.gather(0, lengths[0][None, :, None].expand(1, -1, H))[0]
    # all matrices that multiply c are stacked, so the forward pass and the backward pass need one product each
    of_c = torch.cat([decoder.V, decoder.C_r, decoder.C_z, decoder.C, output.O_c])
    first, terms, readout = product(c, of_c.t(), dtype).split([H, 3 * H, len(output.O_c)], 1)
    s = decoder.steps(y, torch.tanh(first + decoder.b_V), terms, dtype)
    g = output(s, y, readout + output.b_o, dtype, draws).flatten(0, 1)

    words = target.flatten()
    counted = (torch.arange(len(target), device=target.device)[:, None] < lengths[1]).flatten()
    sample = draws.classes(words, counted)
    sums, d_g = softmax_gradient(output.G_l, output.b_G, g.detach(), words, dtype, sample=sample, counted=counted)
    others = {encoder.embedding, decoder.embedding, output.G_l, output.b_G}
    backpropagate(g, d_g, [parameter for parameter in model.parameters() if parameter not in others], lookups)
    return sums.loss


FORMAT = ModelFormat("rnnsmt-rnn-1", "an RNN Encoder-Decoder", "train the network again with `networks train`")


def save_model(path: StrPath, model: RNNEncoderDecoder, meta: dict[str, Any]) -> None:
    """Write a network, atomically. meta: values of built-in types, including those of ``hashes_of``."""
    write_model(path, FORMAT, model, model.sizes, {"meta": meta})


class RnnContent(ModelContent):
    """Metadata of a model file; the words are in separate vocabulary files."""

    sizes: RnnSizes


def load_model(path: StrPath, device: torch.device | str = "cpu") -> tuple[RNNEncoderDecoder, dict[str, Any]]:
    """Load a network on ``device``; return it and the ``meta`` of ``save_model``."""
    model, content = read_model(path, FORMAT, RnnContent, lambda sizes: RNNEncoderDecoder(sizes, seed=None), device)
    return model, content.meta


def hashes_of(vocabularies: Sequence[Vocabulary]) -> dict[str, str]:
    """Return the hashes of the source and the target vocabulary, which are entries of ``meta``."""
    source, target = vocabularies
    return {"source vocabulary": source.hash(), "target vocabulary": target.hash()}


def load_model_with(
    path: StrPath, vocabularies: Sequence[Vocabulary], place: StrPath, device: torch.device | str = "cpu"
) -> RNNEncoderDecoder:
    """Load a network, and check that it was trained with these vocabularies (see ``check_vocabularies``)."""
    model, meta = load_model(path, device)
    numbers = model.sizes.source_vocabulary, model.sizes.target_vocabulary
    check_vocabularies(path, meta, numbers, vocabularies, place)
    return model


def check_vocabularies(
    path: StrPath,
    meta: dict[str, Any],
    numbers: Sequence[int],
    vocabularies: Sequence[Vocabulary],
    place: StrPath,
) -> None:
    """Check that a network was trained with these vocabularies of source and target.

    Args:
        path, place: file of the network and directory of the vocabularies, for error messages.
        meta: entry ``meta`` of the network's metadata, with the hashes of the vocabularies.
        numbers: numbers of source and target ids of the network.

    Raises:
        InputError: the vocabularies are those of another network.
    """
    for (name, value), vocabulary, number in zip(hashes_of(vocabularies).items(), vocabularies, numbers, strict=True):
        if meta.get(name) != value or len(vocabulary) != number:
            raise InputError(
                f"{path} and {place} do not match: their {name} differs; use the network and the vocabularies of one "
                "training run"
            )


def load_model_of(
    vocabularies: Sequence[Vocabulary], place: StrPath, path: StrPath, setup: DeviceSetup
) -> RNNEncoderDecoder:
    """Load a network as ``load_model_with`` does, and write its device to the log."""
    model = load_model_with(path, vocabularies, place, setup.device)
    say(f"{Path(path).name}: computed on {setup}")
    return model
