"""The gradient of a minibatch: parameters in one flat tensor, threads on a CPU, CUDA graphs on a GPU.

The kernels of a small batch take less time than launching them. A graph (``torch.cuda.CUDAGraph``) records the launched
kernels with the addresses of all their tensors and replays them in one launch.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import torch
from torch import Tensor, nn

from rnnsmt.base.progress import say


class GradientThreads:
    """The gradient of a minibatch from several threads, each with a part of the examples and its own gradient buffer.

    An update consists of hundreds of small operations. Parallelism inside each operation synchronises the threads every
    time, which is slow where other processes use the same cores. Here each thread computes alone, and they synchronise
    once per minibatch. The threads share the parameters; with a single thread no pool is created.
    """

    def __init__(self, model: nn.Module, flat: nn.Parameter, threads: int, dimension: int, grain: int = 1) -> None:
        """Create a network and a gradient buffer for each further thread.

        Args:
            model: the network; its parameters are views of ``flat``.
            flat: all parameters, with their gradient.
            threads: number of threads.
            dimension: the dimension along which the tensors of a minibatch are split.
            grain: the parts of a minibatch begin at multiples of it.
        """
        assert flat.grad is not None
        self.dimension, self.grain = dimension, grain
        self.models, self.gradients = [model], [flat.grad]
        for _ in range(threads - 1):
            with torch.device("meta"):
                other: nn.Module = type(model)(model.sizes, seed=None)
            other.to_empty(device=flat.device)  # without initial values: lay_out makes the parameters views of flat
            self.gradients.append(torch.zeros_like(flat.grad))
            lay_out(other, flat.data, self.gradients[-1])
            self.models.append(other)
        self._pool = ThreadPoolExecutor(threads, "gradient", torch.set_num_threads, (1,)) if threads > 1 else None

    def run(self, gradient_of: Callable[..., Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        """Fill the gradient of ``flat``; return the sums. gradient_of: ``Trainer.loss_and_gradient``."""
        if self._pool is None:
            return gradient_of(self.models[0], *batch)
        grains = -(-batch[0].shape[self.dimension] // self.grain)
        number = min(len(self.models), grains)
        borders = tuple(self.grain * (grains * k // number) for k in range(1, number))
        parts = zip(*(tensor.tensor_split(borders, self.dimension) for tensor in batch), strict=True)
        sums = list(self._pool.map(lambda model, part: gradient_of(model, *part), self.models[:number], parts))
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


def flatten(model: nn.Module, space: Tensor | None = None) -> nn.Parameter:
    """Copy all parameters into one flat tensor and make parameters and gradients views of flat tensors; return it.

    Norm, clipping, the sum over processes and the optimiser step are then one operation each.

    Args:
        model: the network.
        space: a buffer of zeros for the gradient, at least as long as all parameters; None: a new one.
    """
    flat = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    flat.grad = torch.zeros_like(flat) if space is None else space[: len(flat)]
    lay_out(model, flat.data, flat.grad)
    return flat


AGREEMENT = 1e-3
"""Maximum distance of a replayed gradient from the launched one, relative to its norm; atomic additions round anew."""


class CapturedGradient(NamedTuple):
    """A graph, the tensors of a minibatch that it reads, and the sums that it writes.

    All graphs share one memory pool: the sums are valid until the next replay of any graph.
    """

    graph: torch.cuda.CUDAGraph
    batch: tuple[Tensor, ...]
    sums: Tensor


class GraphedGradient:
    """A function that fills a gradient from a minibatch, replayed as a graph from the third call with a shape on.

    The function must launch the same kernels for all minibatches of a shape, read no CPU memory but the given tensors,
    and never synchronise with the device. The first call with a shape is a warm-up, in which torch loads what it needs.
    The second one also captures the graph, replays it and compares the gradients. If they differ or the capture fails,
    a warning goes to the log and all kernels are launched one by one as before.
    """

    def __init__(self, function: Callable[..., Tensor], gradient: Tensor) -> None:
        """Wrap ``function``, which takes the tensors of a minibatch, fills ``gradient`` and returns sums."""
        self.function, self.gradient = function, gradient
        self.works = True
        self._seen: set[tuple[torch.Size, ...]] = set()
        self._captured: dict[tuple[torch.Size, ...], CapturedGradient] = {}
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Fill the gradient and return the sums over a minibatch, which are valid until the next call."""
        shapes = tuple(part.shape for part in batch)
        if shapes in self._captured:
            graph, read, sums = self._captured[shapes]
            # the graph reads fixed addresses
            for part, new in zip(read, batch, strict=True):
                part.copy_(new)
            graph.replay()
            return sums
        sums = self.function(*batch)
        if shapes in self._seen and self.works:
            launched = self.gradient.clone()
            problem = self._capture(shapes, batch, launched)
            if problem:
                self.works = False
                self._captured.clear()
                say(f"CUDA graphs are not used, updates are slower: {problem}")
            self.gradient.copy_(launched)
        self._seen.add(shapes)
        return sums

    def _capture(self, shapes: tuple[torch.Size, ...], batch: tuple[Tensor, ...], launched: Tensor) -> str:
        """Capture the function for minibatches of these shapes; overwrite the gradient.

        Returns:
            What went wrong; an empty string if nothing did.
        """
        read = tuple(part.clone() for part in batch)
        graph = torch.cuda.CUDAGraph()
        try:
            # "global" would forbid the device queries that a thread of NCCL makes with several processes
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                sums = self.function(*read)
            graph.replay()
            difference = torch.linalg.vector_norm(self.gradient - launched).item()
        except RuntimeError as error:
            return f"the capture failed: {error}"
        norm = torch.linalg.vector_norm(launched).item()
        if not difference <= AGREEMENT * norm:
            return f"a replayed gradient was {difference:.3g} away from the launched one, whose norm is {norm:.3g}"
        self._captured[shapes] = CapturedGradient(graph, read, sums)
        return ""
