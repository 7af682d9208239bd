"""Gradients: operations of networks with hand-written gradients, and the gradient of a minibatch from all its parts.

The operations are matrix products of rounded factors, dropout, and gradients in place. The masks of dropout (Srivastava
et al. 2014) depend on the seed and the examples, not on the number of threads.

For the gradient of a minibatch, the parameters are in one flat tensor. On a CPU, threads share the minibatch. On a GPU,
the kernels of a small batch take less time than launching them: a graph (``torch.cuda.CUDAGraph``) records the launched
kernels with the addresses of all their tensors and replays them in one launch.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from rnnsmt.base.progress import say


class Products:
    """Matrix products of factors that are rounded to ``dtype`` (bfloat16), or not rounded (None).

    Products of rounded factors are summed in float32 and the result is rounded as well; later additions are not.
    """

    def __init__(self, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype

    def round(self, x: Tensor) -> Tensor:
        """Round a factor that is used in several products, so that it is rounded only once."""
        return x if self.dtype is None else x.to(self.dtype)

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        """Compute a @ b, float32."""
        if self.dtype is None:
            return a @ b
        return (a.to(self.dtype) @ b.to(self.dtype)).float()

    def add_to(self, total: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """Compute total + a @ b, which may overwrite ``total``: on a GPU this saves a kernel launch."""
        if total.is_cuda and self.dtype is None:
            return total.addmm_(a, b)
        return self(a, b).add_(total)


def put_gradient(parameter: nn.Parameter, gradient: Tensor) -> None:
    """Copy a gradient into the existing ``.grad`` of a parameter, which may be a view of a flat tensor."""
    assert parameter.grad is not None
    parameter.grad.copy_(gradient)


def put_gradients(parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor]) -> None:
    """Copy gradients into the existing ``.grad`` of several parameters, in one launch on a GPU."""
    torch._foreach_copy_([parameter.grad for parameter in parameters if parameter.grad is not None], list(gradients))


DROPOUT_ROWS = 32
"""Number of examples per random generator on a CPU; the parts of a minibatch for threads begin at multiples of it."""


def seed_of(seed: int, example: int) -> int:
    """Return the seed of the random numbers that begin with this example of the training run with seed ``seed``."""
    return (seed * 1_000_003 + example) % (1 << 63)


Randomness = Tensor | torch.Generator
"""Source of the random numbers of a minibatch: on a CPU the example numbers [B], from which generators are seeded; on a
GPU a generator that was seeded for the minibatch."""


class Dropout:
    """Dropout with a rate in 256ths (at least 1/256 if not 0); the remaining units are scaled up.

    On a CPU, the masks depend on the seed and the index of the first of every ``DROPOUT_ROWS`` examples, not on the
    thread that computes them. On a GPU, one generator draws for the whole batch, so its masks differ from those of a
    CPU.
    """

    def __init__(self, share: float, seed: int) -> None:
        self.limit = min(max(round(256 * share), 1), 255) if share > 0 else 0
        self.seed = seed

    def generators(self, randomness: Randomness) -> list[torch.Generator]:
        """Return the random generators for a batch of examples; an empty list if the rate is 0."""
        if not self.limit:
            return []
        if isinstance(randomness, torch.Generator):
            return [randomness]
        return [torch.Generator().manual_seed(seed_of(self.seed, n)) for n in randomness[::DROPOUT_ROWS].tolist()]

    def factors(self, rows: int, units: int, generators: list[torch.Generator]) -> Tensor | None:
        """Draw the next factors, float32 [rows, units]: 0 for dropped units, else 1 / (1 - rate); None: no dropout."""
        if not generators:
            return None
        device = generators[0].device
        size = (DROPOUT_ROWS if device.type == "cpu" else rows) * units
        # one random byte per unit, drawn as int64: a byte below ``limit`` drops its unit
        draws = torch.empty(len(generators), -(-size // 8), dtype=torch.int64, device=device)
        for row, generator in zip(draws, generators, strict=True):
            row.random_(-(1 << 63), None, generator=generator)
        bytes_ = draws.view(torch.uint8)[:, :size].reshape(-1)[: rows * units]
        return (bytes_ >= self.limit).float().mul_(256 / (256 - self.limit)).view(rows, units)


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
    """The gradient of a minibatch from several threads, each with a part of the examples and its own gradient buffer.

    An update consists of hundreds of small operations. Parallelism inside each operation synchronises the threads every
    time, which is slow if other processes use the same cores. Here, each thread computes independently, and they
    synchronise once per minibatch. The threads share the parameters; with a single thread no pool is created.
    """

    def __init__(self, model: nn.Module, flat: nn.Parameter, threads: int, dimension: int, grain: int = 1) -> None:
        """Create a network and a gradient buffer for each further thread.

        Args:
            model: the network; its parameters are views of ``flat``.
            flat: all parameters, with their gradient.
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
        """Fill the gradient of ``flat``; return the sums. ``gradient_of`` is ``Trainer.loss_and_gradient``."""
        if self._pool is None:
            return gradient_of(self.models[0], *batch)
        grains = -(-batch[0].shape[self.dimension] // self.grain)
        number = min(len(self.models), grains)
        borders = tuple(self.grain * (grains * k // number) for k in range(1, number))
        parts = zip(*(tensor.tensor_split(borders, self.dimension) for tensor in batch), strict=True)
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
    """Copy all parameters into one flat tensor and make parameters and gradients views of flat tensors; return it.

    Norm, clipping and the optimiser step are then one operation each.
    """
    flat = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    flat.grad = torch.zeros_like(flat)
    lay_out(model, flat.data, flat.grad)
    return flat


AGREEMENT = 1e-3
"""Maximum distance of a replayed gradient from the launched one, relative to its norm; atomic additions are rounded
differently each time, because their order varies."""


class CapturedGradient(NamedTuple):
    """A graph, the tensors of a minibatch that it reads, and the sums that it writes.

    All graphs share one memory pool: the sums are valid until the next replay of any graph.
    """

    graph: torch.cuda.CUDAGraph
    batch: tuple[Tensor, ...]
    sums: Tensor


class GraphedGradient:
    """A function that fills a gradient from a minibatch, replayed as a graph from the third call with a shape on.

    The function must launch the same kernels for all minibatches of a shape, read no CPU memory, draw all random
    numbers from the given generator, and never synchronise with the device. A replay draws from the generator as it is
    seeded at that time. The first call with a shape is a warm-up, in which torch initialises its libraries. The second
    one also captures the graph, replays it and compares the gradients. If they differ or the capture fails, a warning
    is logged, and all kernels are launched one by one.
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
        """Fill the gradient and return the sums over a minibatch, which are valid until the next call."""
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
        """Capture the function for these shapes; overwrite the gradient; return the problem, or an empty string."""
        read = tuple(tensor.clone() for tensor in batch)
        graph = torch.cuda.CUDAGraph()
        try:
            graph.register_generator_state(self.generator)
            # "global" would forbid device queries in other threads
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                sums = self.function(*read)
            self.generator.manual_seed(self.generator.initial_seed())  # draws what the launched kernels drew
            graph.replay()
            difference = torch.linalg.vector_norm(self.gradient - launched).item()
        except RuntimeError as error:
            return f"the capture failed: {error}"
        norm = torch.linalg.vector_norm(launched).item()
        if not difference <= AGREEMENT * norm:
            return f"the gradient of the graph differs from that without a graph by {difference:.3g} (norm: {norm:.3g})"
        self._captured[shapes] = CapturedGradient(graph, read, sums)
        return ""
