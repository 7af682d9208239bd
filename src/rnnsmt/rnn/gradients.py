"""The loss of a batch with a hand-written gradient: the equations of ``model``, several times faster on a CPU.

Autograd keeps a node for every small operation of every step and computes the gradient of a weight matrix step by step.
This module computes it as one matrix product over all steps of the batch. The softmax, which takes most of the time,
and its gradient are computed together for a few rows at a time, while these are in the CPU cache.

All pairs of a batch have equal numbers of source words and of target words, so nothing is padded. Shapes are those of
``model`` with the steps first: source [N, B], target [T, B], both with EOS. 3H: reset gate, update gate and candidate
side by side. A variable ``d_x`` is the gradient of the loss with respect to x.

``_encode`` and ``_decode`` return their results and a function for the backward pass.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from rnnsmt.networks.gradients import Dropout, Products, Randomness, put_gradient, put_gradients
from rnnsmt.networks.softmax import ClassSample, ClassSampler, softmax_gradient
from rnnsmt.rnn.model import Decoder, Encoder, GatedUnit, Output, RNNEncoderDecoder


class Trace(NamedTuple):
    """The values of a forward pass over K steps that the backward pass needs.

    Attributes:
        states: [K + 1, B, H], before the first step and after each step.
        gates: [K, B, 2H], reset gate r and update gate z.
        reset_state: [K, B, H], r * h.
        candidate: [K, B, H], h~.
        recurrent: [2H, H], U_r above U_z, rounded.
        candidate_matrix: [H, H], U, rounded.
        of_inputs: [3H, E], W_r above W_z above W.
    """

    states: Tensor
    gates: Tensor
    reset_state: Tensor
    candidate: Tensor
    recurrent: Tensor
    candidate_matrix: Tensor
    of_inputs: Tensor


NO_DROPOUT = Dropout(0.0, 0)


@torch.no_grad()
def loss_and_gradient(
    model: RNNEncoderDecoder,
    source: Tensor,
    target: Tensor,
    mm: Products | None = None,
    dropout: Dropout = NO_DROPOUT,
    sampler: ClassSampler | None = None,
    randomness: Randomness | None = None,
) -> Tensor:
    """Fill ``.grad`` of every parameter with the gradient of -sum log p(y | x) over the batch; return that sum.

    Every parameter must have a ``.grad``, which is overwritten. Not for the variant ``supplementary``.

    Args:
        source, target: ids [N, B] and [T, B]; the last row is EOS.
        mm: the matrix products; without rounding by default.
        dropout: applied to the non-recurrent units, embeddings and maxout units (Zaremba et al. 2014).
        sampler: sampler of the classes of the softmax; None: all classes.
        randomness: the source of the random numbers of dropout and sampler; None: no dropout and no sampling.

    Returns:
        A float64 scalar tensor.
    """
    mm = mm or Products()
    generators = [] if randomness is None else dropout.generators(randomness)
    embed = partial(_embed, dropout=dropout, generators=generators)
    x, x_factors = embed(model.encoder, source)
    c, encoder_gradient = _encode(model.encoder, mm, x)
    states, y, context, decoder_gradient = _decode(model.decoder, mm, model.output, c, target, embed)

    m_factors = _factors(dropout, len(target), source.shape[1], model.sizes.maxout, generators)
    sample = None if sampler is None or randomness is None else sampler.draw(target.flatten(), randomness)
    loss, d_states, d_y, d_context = _readout(mm, model.output, states, y, context, target, m_factors, sample)

    d_x = encoder_gradient(decoder_gradient(d_states, d_y, d_context))
    _embedding_gradient(model.encoder, source, d_x, x_factors)
    return loss


EncoderGradient = Callable[[Tensor], Tensor]
"""Backward pass of an encoder: d_c -> d_x; fills the gradients of its parameters except the embedding."""


def _encode(encoder: Encoder, mm: Products, x: Tensor) -> tuple[Tensor, EncoderGradient]:
    """Compute c [B, H] from embedded words x [N, B, E]; return it and the backward pass."""
    trace = _forward(mm, encoder, x, x.new_zeros(x.shape[1], len(encoder.b)), None)

    def gradient(d_c: Tensor) -> Tensor:
        _, d_inputs = _backward(mm, encoder, trace, d_c, None)
        return _input_gradient(mm, encoder, trace, x, d_inputs)

    return trace.states[-1], gradient


class Decoding(NamedTuple):
    """The inputs of the readout, and the backward pass of the decoder.

    Attributes:
        states: [T, B, H], s_{k-1} for k = 1 .. T.
        y: [T - 1, B, E], e_{k-1} for k > 1.
        context: [B, 2M], O_c c.
        gradient: (d_states, d_y, d_context) -> d_c; fills the gradients of the decoder's parameters and of O_c.
    """

    states: Tensor
    y: Tensor
    context: Tensor
    gradient: Callable[[Tensor, Tensor, Tensor], Tensor]


Embed = Callable[[GatedUnit, Tensor], tuple[Tensor, Tensor | None]]
"""``_embed`` with dropout and generators bound."""


def _decode(decoder: Decoder, mm: Products, output: Output, c: Tensor, target: Tensor, embed: Embed) -> Decoding:
    """Compute the states and the context from c [B, H] and target words [T, B].

    All matrices that multiply c are stacked, so forward and backward pass take one product each.
    """
    H = c.shape[1]
    users = (decoder.V, decoder.C_r, decoder.C_z, decoder.C, output.O_c)
    matrices = mm.round(torch.cat(users))
    first, terms, context = mm(c, matrices.t()).split([H, 3 * H, len(output.O_c)], 1)
    s_0 = torch.tanh(first + decoder.b_V)
    y, factors = embed(decoder, target[:-1])
    trace = _forward(mm, decoder, y, s_0, terms)

    def gradient(d_states: Tensor, d_y: Tensor, d_context: Tensor) -> Tensor:
        # d_states[0] is added to d_s0 below; without steps (T = 1) it is d_states[-1] and is included already
        d_s0, d_inputs = _backward(mm, decoder, trace, d_states[-1], d_states[1:-1])
        _embedding_gradient(decoder, target[:-1], _input_gradient(mm, decoder, trace, y, d_inputs) + d_y, factors)
        d_first = torch.ops.aten.tanh_backward(d_s0 + d_states[0] if len(y) else d_s0, s_0)
        # C_r c, C_z c and C c are added at every step: their gradient is the sum over the steps
        d_uses = torch.cat([d_first, d_inputs.sum(0), d_context], 1)
        put_gradients(users, mm(d_uses.t(), c).split([len(matrix) for matrix in users]))
        put_gradient(decoder.b_V, d_first.sum(0))
        return mm(d_uses, matrices)

    return Decoding(trace.states, y, context, gradient)


def _embed(
    unit: GatedUnit, words: Tensor, dropout: Dropout, generators: list[torch.Generator]
) -> tuple[Tensor, Tensor | None]:
    """Embed words [K, B]; return the embeddings [K, B, E] and their dropout factors, of the same shape, or None."""
    e = (unit.embedding.index_select(0, words.flatten()) + unit.b_embedding).unflatten(0, words.shape)
    factors = _factors(dropout, len(words), words.shape[1], e.shape[2], generators)
    return (e, None) if factors is None else (e * factors, factors)


def _factors(dropout: Dropout, K: int, B: int, units: int, generators: list[torch.Generator]) -> Tensor | None:
    """Draw the factors of dropout for K steps, [K, B, units]; return None without dropout."""
    factors = dropout.factors(B, K * units, generators)
    return None if factors is None else factors.view(B, K, units).transpose(0, 1)


def _forward(mm: Products, unit: GatedUnit, x: Tensor, h: Tensor, terms: Tensor | None) -> Trace:
    """Run gated units over K steps.

    Args:
        x: [K, B, E], the embedded words.
        h: [B, H], the first state.
        terms: [B, 3H], the terms of c at every step, or None.
    """
    K, B, H = *x.shape[:2], h.shape[1]
    # the terms of x in gates and candidate do not depend on the states: one product for all steps
    of_inputs = torch.cat([unit.W_r, unit.W_z, unit.W])
    inputs = mm(x.flatten(0, 1), of_inputs.t()).view(K, B, 3 * H)
    inputs[:, :, 2 * H :] += unit.b
    if terms is not None:
        inputs += terms
    for_gates, for_candidate = inputs.split([2 * H, H], 2)
    matrices = mm.round(torch.cat([unit.U_r, unit.U_z])), mm.round(unit.U)
    # on a GPU, products are added to ``inputs`` in place (addmm); on a CPU, contiguous results are faster
    uses_kernel = not x.is_cuda or mm.dtype is not None
    gates, candidates = (
        tensor.new_empty(tensor.shape) if uses_kernel else tensor for tensor in (for_gates, for_candidate)
    )
    trace = Trace(x.new_empty(K + 1, B, H), gates, x.new_empty(K, B, H), candidates, *matrices, of_inputs)
    trace.states[0] = h
    for k in range(K):
        h, gate, candidate = trace.states[k], gates[k], candidates[k]
        _sum_into(gate, mm, h, trace.recurrent.t(), for_gates[k] if uses_kernel else None)
        gate.sigmoid_()
        reset_state = torch.mul(gate[:, :H], h, out=trace.reset_state[k])
        _sum_into(candidate, mm, reset_state, trace.candidate_matrix.t(), for_candidate[k] if uses_kernel else None)
        candidate.tanh_()
        # h' = h~ + z (h - h~) = z h + (1 - z) h~
        torch.lerp(candidate, h, gate[:, H:], out=trace.states[k + 1])
    return trace


def _sum_into(out: Tensor, mm: Products, a: Tensor, b: Tensor, total: Tensor | None) -> None:
    """Compute total + a @ b into ``out``; total None: ``out`` already contains it."""
    if total is None:
        out.addmm_(a, b)
    else:
        torch.add(mm(a, b), total, out=out)


def _backward(
    mm: Products, unit: GatedUnit, trace: Trace, d_last: Tensor, d_between: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Run the backward pass of ``_forward`` and fill the gradients of U, U_r and U_z.

    Args:
        d_last: [B, H], gradient of the last state from outside the recurrence.
        d_between: [K - 1, B, H], the same for the states between the first and the last one; None: 0.

    Returns:
        The gradients of the first state [B, H] (``d_last`` if K is 0) and of the inputs, i.e. the pre-activations of
        reset gate, update gate and candidate, [K, B, 3H].
    """
    K, B, H = trace.candidate.shape
    d, d_inputs = d_last, d_last.new_empty(K, B, 3 * H)
    before = trace.states[:-1]
    gains = before - trace.candidate  # d h' / d z = h - h~
    aten = torch.ops.aten
    for k in reversed(range(K)):
        if d_between is not None and k < K - 1:
            d += d_between[k]
        r, z = trace.gates[k].split(H, 1)
        d_r, d_z, d_candidate = d_inputs[k].split(H, 1)
        d_direct = d * z  # d h' / d h = z, d h' / d h~ = 1 - z: d h~ is d - d_direct
        aten.tanh_backward.grad_input(d - d_direct, trace.candidate[k], grad_input=d_candidate)
        aten.sigmoid_backward.grad_input(d * gains[k], z, grad_input=d_z)
        d_reset_state = mm(d_candidate, trace.candidate_matrix)
        aten.sigmoid_backward.grad_input(d_reset_state * before[k], r, grad_input=d_r)
        # h is also an input of both gates (U_r, U_z) and, times r, of the candidate
        d = mm.add_to(d_direct, d_inputs[k, :, : 2 * H], trace.recurrent).addcmul_(d_reset_state, r)
    # one product over all steps for each matrix
    flat = mm.round(d_inputs.view(K * B, 3 * H))
    put_gradients((unit.U_r, unit.U_z), mm(flat[:, : 2 * H].t(), before.flatten(0, 1)).split(H))
    put_gradient(unit.U, mm(flat[:, 2 * H :].t(), trace.reset_state.view(-1, H)))
    return d, d_inputs


def _input_gradient(mm: Products, unit: GatedUnit, trace: Trace, x: Tensor, d_inputs: Tensor) -> Tensor:
    """Fill the gradients of W, W_r, W_z and b; return that of x [K, B, E]. d_inputs: [K, B, 3H], see ``_backward``."""
    flat = d_inputs.flatten(0, 1)
    # only the candidate has a bias
    put_gradient(unit.b, flat[:, 2 * len(unit.b) :].sum(0))
    flat = mm.round(flat)
    put_gradients((unit.W_r, unit.W_z, unit.W), mm(flat.t(), x.flatten(0, 1)).split(len(unit.W)))
    return mm(flat, trace.of_inputs).view_as(x)


def _embedding_gradient(unit: GatedUnit, words: Tensor, d_x: Tensor, factors: Tensor | None) -> None:
    """Fill the gradients of the embedding and its bias. d_x: [K, B, E]; factors: dropout factors of x, or None."""
    total = (d_x if factors is None else d_x * factors).flatten(0, 1)
    assert unit.embedding.grad is not None
    unit.embedding.grad.zero_().index_add_(0, words.flatten(), total)
    put_gradient(unit.b_embedding, total.sum(0))


def _readout(
    mm: Products,
    output: Output,
    states: Tensor,
    y: Tensor,
    context: Tensor,
    target: Tensor,
    factors: Tensor | None,
    sample: ClassSample | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compute readout, maxout, softmax and loss, with their gradients; fill those of the parameters except O_c.

    Args:
        states, y, context: see ``Decoding``.
        target: [T, B], the words to predict.
        factors: [T, B, M], dropout factors of the maxout units, or None.
        sample: of classes, see ``softmax_gradient``.

    Returns:
        The loss; the gradients of states, y and context.
    """
    T, B = target.shape
    s, e = mm.round(states.flatten(0, 1)), mm.round(y.flatten(0, 1))
    a = mm(s, output.O_h.t())
    a.view(T, B, -1).add_(context + output.b_o)
    # the first B rows predict the first words, which have no previous word
    a[B:] += mm(e, output.O_y.t())
    left, right = a.view(T * B, -1, 2).unbind(2)
    m = torch.maximum(left, right)
    if factors is not None:
        m *= factors.flatten(0, 1)
    g = mm(m, output.G_r.t())

    (loss, _), d_g = softmax_gradient(mm, output.G_l, output.b_G, g, target.flatten(), sample=sample)

    put_gradient(output.G_r, mm(d_g.t(), m))
    d_m = mm(d_g, output.G_r)
    if factors is not None:
        d_m *= factors.flatten(0, 1)
    # the gradient of a maximum goes to the larger unit of the pair, to the left one if both are equal
    first = left >= right
    d_a = torch.stack([d_m * first, d_m * ~first], 2).view_as(a)
    d_context = d_a.view(T, B, -1).sum(0)
    put_gradient(output.b_o, d_context.sum(0))
    d_a = mm.round(d_a)
    put_gradient(output.O_h, mm(d_a.t(), s))
    put_gradient(output.O_y, mm(d_a[B:].t(), e))
    d_y = mm(d_a[B:], output.O_y).view_as(y)
    return loss, mm(d_a, output.O_h).view_as(states), d_y, d_context


def autograd_loss_and_gradient(model: RNNEncoderDecoder, source: Tensor, target: Tensor) -> Tensor:
    """Compute ``loss_and_gradient`` by autograd, for ``supplementary``, which has no hand-written gradient."""
    for parameter in model.parameters():
        assert parameter.grad is not None
        parameter.grad.zero_()
    lengths = [torch.full((side.shape[1],), len(side), device=side.device) for side in (source, target)]
    loss = -model.log_probability(source.t(), lengths[0], target.t(), lengths[1]).sum()
    loss.backward()
    return loss.detach().double()
