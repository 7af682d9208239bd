"""The gated units over all steps of a batch, and the readout, with hand-written gradients.

On a CPU, ``GatedSteps`` is several times faster than autograd, which keeps a node for every small operation of every
step and computes the gradient of a weight matrix step by step. Equations, names and shapes are those of
``rnnsmt.rnn.model``.
"""

from typing import Any

import torch
from torch import Tensor

from rnnsmt.networks.draws import Draws
from rnnsmt.networks.gradients import product


class GatedSteps(torch.autograd.Function):
    """States of gated units over K steps, and their gradient; where possible, one matrix product for all steps.

    A variable ``d_x`` is the gradient of the loss with respect to x. Factors that are used several times are rounded
    only once.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, h: Tensor, terms: Tensor | None, dtype: torch.dtype | None, *matrices: Tensor
    ) -> Tensor:
        """Compute the states, [K + 1, B, H], before the first step and after each step.

        Args:
            x: [K, B, E], the embedded words.
            h: [B, H], the first state.
            terms: [B, 3H], the terms of c in reset gate, update gate and candidate, the same at every step; or None.
            dtype: type to which the factors of matrix products are rounded; None: they are not rounded.
            matrices: W_r, W_z, W, b, U_r, U_z, U.
        """
        W_r, W_z, W, b, U_r, U_z, U = matrices
        K, B, H = *x.shape[:2], len(b)
        dtype_of_factors = dtype or x.dtype
        of_inputs, recurrent = torch.cat([W_r, W_z, W]).to(dtype_of_factors), torch.cat([U_r, U_z]).to(dtype_of_factors)
        U, x = U.to(dtype_of_factors), x.to(dtype_of_factors)
        # the terms of x do not depend on the states: one product for all steps
        gates, candidates = product(x, of_inputs[: 2 * H].t(), dtype), product(x, of_inputs[2 * H :].t(), dtype)
        candidates += b
        if terms is not None:
            gates += terms[:, : 2 * H]
            candidates += terms[:, 2 * H :]
        states, reset_states = h.new_empty(K + 1, B, H), h.new_empty(K, B, H)
        states[0] = h
        recurrent_t, U_t = recurrent.t(), U.t()
        steps = zip(gates, candidates, reset_states, states[1:], strict=True)
        for gate, candidate, reset_state, after in steps:
            r, z = _add_product(gate, h, recurrent_t, dtype).sigmoid_().split(H, 1)
            torch.mul(r, h, out=reset_state)
            _add_product(candidate, reset_state, U_t, dtype).tanh_()
            # h' = h~ + z (h - h~) = z h + (1 - z) h~
            h = torch.lerp(candidate, h, z, out=after)
        ctx.save_for_backward(x, states, gates, reset_states, candidates, of_inputs, recurrent, U)
        ctx.dtype, ctx.has_terms = dtype, terms is not None
        return states

    @staticmethod
    def backward(ctx: Any, d_states: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the arguments of ``forward``, given the gradient of the states."""
        x, states, gates, reset_states, candidates, of_inputs, recurrent, U = ctx.saved_tensors
        dtype, (K, B, H) = ctx.dtype, candidates.shape
        # d: of the state after the step; d_inputs: of the pre-activations of reset gate, update gate and candidate
        d, d_inputs = d_states[K], x.new_empty(K, B, 3 * H, dtype=d_states.dtype)
        before = states[:-1]
        gains = before - candidates  # d h' / d z = h - h~
        (r, z), (d_r, d_z, d_candidates) = gates.split(H, 2), d_inputs.split(H, 2)
        tensors = d_states[:-1], before, gains, candidates, r, z, d_inputs[:, :, : 2 * H], d_r, d_z, d_candidates
        aten = torch.ops.aten
        for d_state, h, gain, candidate, r, z, d_gates, d_r, d_z, d_candidate in reversed(
            list(zip(*(tensor.unbind() for tensor in tensors), strict=True))
        ):
            d_direct = d * z  # d h' / d h = z, d h' / d h~ = 1 - z: d h~ is d - d_direct
            aten.tanh_backward.grad_input(d - d_direct, candidate, grad_input=d_candidate)
            aten.sigmoid_backward.grad_input(d * gain, z, grad_input=d_z)
            d_reset_state = product(d_candidate, U, dtype)
            aten.sigmoid_backward.grad_input(d_reset_state * h, r, grad_input=d_r)
            # h is also an input of both gates (U_r, U_z) and, times r, of the candidate
            d = _add_product(d_direct, d_gates, recurrent, dtype).addcmul_(d_reset_state, r).add_(d_state)
        d_b = d_inputs[:, :, 2 * H :].sum((0, 1))  # only the candidate has a bias
        d_terms = d_inputs.sum(0) if ctx.has_terms else None
        flat = d_inputs.view(K * B, 3 * H).to(x.dtype)
        d_W = product(flat.t(), x.flatten(0, 1), dtype).split(H)
        d_U_gates = product(flat[:, : 2 * H].t(), before.flatten(0, 1), dtype).split(H)
        d_U = product(flat[:, 2 * H :].t(), reset_states.view(K * B, H), dtype)
        return product(flat, of_inputs, dtype).view(x.shape), d, d_terms, None, *d_W, d_b, *d_U_gates, d_U


class Readout(torch.autograd.Function):
    """Maxout readout, and its gradient; names and rounding as in ``GatedSteps``."""

    @staticmethod
    def forward(
        ctx: Any, s: Tensor, e: Tensor | None, term: Tensor, dtype: torch.dtype | None, draws: Draws, *matrices: Tensor
    ) -> Tensor:
        """Compute the input of the softmax layer, G_r m_k [..., B, E].

        a_k = O_h s_{k-1} + O_c c + b_o + O_y e_{k-1}; m_k = maxout(a_k) over the adjacent pairs (2i, 2i + 1).

        Args:
            s: [..., B, H], the states s_{k-1}.
            e: [..., B, E], the embeddings e_{k-1}, 0 in rows without a previous word. If ``e`` has fewer steps than
                ``s``, the first steps of ``s`` have no previous word. None: no row has a previous word.
            term: [B, 2M], the term of c, O_c c + b_o.
            dtype: type to which the factors of matrix products are rounded; None: they are not rounded.
            draws: the dropout masks of the maxout units.
            matrices: O_h, O_y, G_r.
        """
        O_h, O_y, G_r = matrices
        s, e = s.to(dtype or s.dtype), None if e is None else e.to(dtype or e.dtype)
        a = product(s, O_h.t(), dtype).add_(term)
        if e is not None:
            a[len(s) - len(e) :] += product(e, O_y.t(), dtype)
        left, right = a.unflatten(-1, (-1, 2)).unbind(-1)
        m = torch.maximum(left, right)
        factors = draws.factors(m)
        if factors is not None:
            m *= factors
        ctx.save_for_backward(s, e, a, m, factors, O_h, O_y, G_r)
        ctx.dtype, ctx.shape = dtype, term.shape
        return product(m, G_r.t(), dtype)

    @staticmethod
    def backward(ctx: Any, d_g: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the arguments of ``forward``, given the gradient of its result."""
        s, e, a, m, factors, O_h, O_y, G_r = ctx.saved_tensors
        dtype = ctx.dtype
        d_G_r = product(d_g.flatten(0, -2).t(), m.flatten(0, -2), dtype)
        d_m = product(d_g, G_r, dtype)
        if factors is not None:
            d_m *= factors
        # the gradient of a maximum goes to the larger unit of the pair, to the left one if both are equal
        left, right = a.unflatten(-1, (-1, 2)).unbind(-1)
        of_left = left >= right
        d_a = torch.stack([d_m * of_left, d_m * ~of_left], -1).flatten(-2)
        d_term = d_a.sum_to_size(ctx.shape)
        d_a = d_a.to(s.dtype)
        d_O_h, d_s = product(d_a.flatten(0, -2).t(), s.flatten(0, -2), dtype), product(d_a, O_h, dtype)
        d_O_y = d_e = None
        if e is not None:
            d_a = d_a[len(s) - len(e) :]
            d_O_y, d_e = product(d_a.flatten(0, -2).t(), e.flatten(0, -2), dtype), product(d_a, O_y, dtype)
        return d_s, d_e, d_term, None, None, d_O_h, d_O_y, d_G_r


def _add_product(total: Tensor, a: Tensor, b: Tensor, dtype: torch.dtype | None) -> Tensor:
    """Add a @ b to ``total`` in place."""
    if total.is_cuda and dtype is None:
        return total.addmm_(a, b)  # one launch; on a CPU, a product that is added afterwards is faster
    return total.add_(product(a, b, dtype))
