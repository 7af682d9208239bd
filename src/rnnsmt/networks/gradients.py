"""Gradients: operations that several networks use, and the gradient of a minibatch by threads or by a CUDA graph.

Gradients are computed by autograd, except where a hand-written gradient is faster: the softmax (``softmax_gradient``),
the gated units and the readout of the RNN (``rnn.steps``), and feed-forward networks (``feed_forward``).

All parameters of a network are in one flat tensor. On a CPU, threads share a minibatch. On a GPU, launching the kernels
of a small minibatch takes longer than their computation: a graph (``torch.cuda.CUDAGraph``) records the launched
kernels with the addresses of all their tensors and replays them in one launch.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from rnnsmt.base.progress import say


def product(a: Tensor, b: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Compute a @ b after rounding both factors to ``dtype`` (bfloat16), or without rounding if it is None.

    The products of rounded factors are summed in float32, and the sum is rounded to ``dtype`` too. The result is
    float32.
    """
    return a @ b if dtype is None else (a.to(dtype) @ b.to(dtype)).float()


def put_gradient(parameter: nn.Parameter, gradient: Tensor) -> None:
    """Copy a gradient into the existing ``.grad`` of a parameter, so that ``.grad`` remains a view of a flat tensor."""
    assert parameter.grad is not None
    parameter.grad.copy_(gradient)


def look_up(embedding: nn.Parameter, ids: Tensor) -> Tensor:
    """Return the rows [n, E] of an embedding for n ids, as a leaf of autograd's graph (see ``Lookup``)."""
    return embedding.detach().index_select(0, ids.flatten()).requires_grad_()


class Lookup(NamedTuple):
    """The rows that ``look_up`` returned for some ids of an embedding.

    Autograd computes only the gradient of these rows. The dense gradient of the embedding would take more time.
    """

    embedding: nn.Parameter
    ids: Tensor
    rows: Tensor


def backpropagate(units: Tensor, d_units: Tensor, layers: Sequence[nn.Parameter], lookups: Sequence[Lookup]) -> None:
    """Compute the gradients of layers and embeddings by autograd, and overwrite ``.grad`` with them.

    ``Tensor.backward`` would add to ``.grad``, which would have to be set to 0 first.

    Args:
        units: units of the network.
        d_units: gradient of the loss with respect to ``units``.
        layers: parameters whose gradients are computed.
        lookups: the look-ups of the embeddings whose gradients are computed, one for each embedding.
    """
    rows = [lookup.rows for lookup in lookups]
    gradients = torch.autograd.grad(units, [*rows, *layers], d_units, materialize_grads=True)
    for (embedding, ids, _), gradient in zip(lookups, gradients, strict=False):
        assert embedding.grad is not None
        embedding.grad.zero_().index_add_(0, ids.flatten(), gradient)
    # one launch for all layers on a GPU
    torch._foreach_copy_([layer.grad for layer in layers if layer.grad is not None], list(gradients[len(rows) :]))


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Treat denormal numbers as 0 within the ``with`` block, in this thread and in threads that it starts there.

    Rows of embeddings and of the output layer have no gradient in most minibatches. In every update, Adam multiplies
    their first moment by 0.9. After about 800 updates it is a denormal number, and stays one, because the product is
    rounded to the nearest denormal number. Most processors are many times slower with denormal numbers.
    """
    was_flushed = bool(torch.tensor(torch.finfo(torch.float32).tiny) / 2 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(was_flushed)


class GradientThreads:
    """Computation of the gradient of a minibatch by threads; each has a part of the examples and a gradient buffer.

    An update consists of hundreds of small operations. Parallelism inside each operation synchronises the threads every
    time, which is slow if other processes use the same cores. Here, each thread computes independently, and they
    synchronise once per minibatch. The threads share the parameters; with a single thread no pool is created.
    """

    def __init__(self, model: nn.Module, flat: nn.Parameter, threads: int, grain: int) -> None:
        """Create a network and a gradient buffer for each thread after the first.

        Args:
            model: the network; its parameters are views of ``flat``.
            flat: all parameters, with their gradient.
            grain: the parts of a minibatch begin at multiples of this number of examples.
        """
        assert flat.grad is not None
        self.grain, self.models, self.gradients = grain, [model], [flat.grad]
        for _ in range(threads - 1):
            with torch.device("meta"):
                other: nn.Module = type(model)(model.sizes, seed=None)
            other.to_empty(device=flat.device)  # uninitialised, because lay_out makes the parameters views of flat
            self.gradients.append(torch.zeros_like(flat.grad))
            lay_out(other, flat.data, self.gradients[-1])
            self.models.append(other)
        self._pool = ThreadPoolExecutor(threads, "gradient", torch.set_num_threads, (1,)) if threads > 1 else None

    def run(self, gradient_of: Callable[..., Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        """Fill the gradient of ``flat`` from a minibatch; return the sums over the minibatch.

        Args:
            gradient_of: function that fills the gradient of a network from a part of the minibatch and returns the sums
                over the part (``Training.loss_and_gradient``).
            batch: tensors of the minibatch; the last dimension of each tensor is that of the examples.
        """
        if self._pool is None:
            return gradient_of(self.models[0], *batch)
        grains = -(-batch[0].shape[-1] // self.grain)
        number = min(len(self.models), grains)
        borders = tuple(self.grain * (grains * k // number) for k in range(1, number))
        parts = zip(*(tensor.tensor_split(borders, -1) for tensor in batch), strict=True)
        sums = list(self._pool.map(lambda model, chunk: gradient_of(model, *chunk), self.models[:number], parts))
        # in the order of the parts: the result does not depend on which thread ends first
        for gradient in self.gradients[1:number]:
            self.gradients[0] += gradient
        return torch.stack(sums).sum(0)


def lay_out(model: nn.Module, values: Tensor, gradients: Tensor) -> None:
    """Make the parameters of a network and their gradients views of two flat tensors, in ``parameters()`` order."""
    parameters = list(model.parameters())
    sizes = [parameter.numel() for parameter in parameters]
    for parameter, value, gradient in zip(parameters, values.split(sizes), gradients.split(sizes), strict=True):
        parameter.data = value.view(parameter.shape)
        parameter.grad = gradient.view(parameter.shape)


def flatten(model: nn.Module) -> nn.Parameter:
    """Move all parameters of a network into one flat tensor; return it.

    The parameters become views of the flat tensor, and their gradients views of its gradient. Norm, clipping and the
    optimizer step are then one operation each.
    """
    flat = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    flat.grad = torch.zeros_like(flat)
    lay_out(model, flat.data, flat.grad)
    return flat


AGREEMENT = 1e-3
"""Maximum norm of the difference between the gradients with and without a graph, relative to the norm of the latter.
They differ by rounding, because the order of atomic additions varies."""


class CapturedGradient(NamedTuple):
    """A graph, the tensors of a minibatch that it reads, and the sums that it writes.

    All graphs share one memory pool: the sums are valid until the next replay of any graph.
    """

    graph: torch.cuda.CUDAGraph
    batch: tuple[Tensor, ...]
    sums: Tensor


class GraphedGradient:
    """Function that computes the gradient of a minibatch; from the third call with a shape on, a graph is replayed.

    The function must launch the same kernels for all minibatches of a shape, read no CPU memory, draw all random
    numbers from ``generator``, and never synchronise with the device. A replay uses the seed that the generator has at
    that time. The first call with a shape is a warm-up, in which torch initialises its libraries. The second call also
    captures a graph, replays it and compares the gradients. If they differ or the capture fails, a warning is logged,
    and all kernels are launched one by one.
    """

    def __init__(self, function: Callable[..., Tensor], gradient: Tensor, generator: torch.Generator) -> None:
        """Wrap a function.

        Args:
            function: takes the tensors of a minibatch, fills ``gradient`` and returns sums.
            generator: the generator of the device from which the function draws; the caller seeds it before each call.
        """
        self.function, self.gradient, self.generator = function, gradient, generator
        self.works = True
        self._seen: set[tuple[torch.Size, ...]] = set()
        self._captured: dict[tuple[torch.Size, ...], CapturedGradient] = {}
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Fill the gradient from a minibatch, and return the sums over it, which are valid until the next call."""
        shapes = tuple(tensor.shape for tensor in batch)
        if shapes in self._captured:
            graph, read, sums = self._captured[shapes]
            # the graph reads fixed addresses
            for buffer, new in zip(read, batch, strict=True):
                buffer.copy_(new)
            graph.replay()
            return sums
        sums = self.function(*batch)
        if shapes in self._seen and self.works:
            launched = self.gradient.clone()
            problem = self._capture(shapes, batch, launched)
            if problem:
                self.works = False
                self._captured.clear()
                say(f"CUDA graphs are disabled, which makes updates slower: {problem}")
            self.gradient.copy_(launched)
        self._seen.add(shapes)
        return sums

    def _capture(self, shapes: tuple[torch.Size, ...], batch: tuple[Tensor, ...], launched: Tensor) -> str:
        """Capture the function for these shapes; return a description of the problem, if any, or an empty string.

        The gradient is overwritten.
        """
        read = tuple(tensor.clone() for tensor in batch)
        graph = torch.cuda.CUDAGraph()
        try:
            graph.register_generator_state(self.generator)
            # "global" would forbid device queries in other threads
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                sums = self.function(*read)
            self.generator.manual_seed(self.generator.initial_seed())  # so the replay draws the same numbers
            graph.replay()
            difference = torch.linalg.vector_norm(self.gradient - launched).item()
        except RuntimeError as error:
            return f"the capture failed: {error}"
        norm = torch.linalg.vector_norm(launched).item()
        if not difference <= AGREEMENT * norm:
            return f"the gradient of the graph differs from that without a graph by {difference:.3g} (norm: {norm:.3g})"
        self._captured[shapes] = CapturedGradient(graph, read, sums)
        return ""
