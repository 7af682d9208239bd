"""The gradient of a minibatch as a CUDA graph: one launch instead of hundreds.

The kernels of a small batch are shorter than the time that launching them takes. A graph (``torch.cuda.CUDAGraph``)
keeps what was launched, with the addresses of all tensors, and launches it again at once.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from rnnsmt.progress import say

AGREEMENT = 1e-3
"""How far a replayed gradient may be from the launched one, as a share of its norm: sums of atomic additions differ."""


class CapturedGradient(NamedTuple):
    """A graph, the minibatch that it reads and the sums that it writes, which the next replay of any graph ends."""

    graph: torch.cuda.CUDAGraph
    batch: tuple[Tensor, ...]
    sums: Tensor


class GraphedGradient:
    """A function of a minibatch that fills a gradient, replayed for shapes that it was called with twice.

    For functions that launch the same kernels for all minibatches of a shape, read nothing from the processor but the
    tensors given, and ask the device nothing. The first call with a shape makes torch load what it needs. The second
    one is captured and, so that no training depends on a graph that does something else, compared: where the replayed
    gradient differs, or the capture fails, the log says so and all is launched as before.
    """

    def __init__(self, function: Callable[..., Tensor], gradient: Tensor) -> None:
        """function: of the tensors of a minibatch, returns sums and fills ``gradient``."""
        self.function, self.gradient = function, gradient
        self.works = True
        self._seen: set[tuple[torch.Size, ...]] = set()
        self._captured: dict[tuple[torch.Size, ...], CapturedGradient] = {}
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, batch: tuple[Tensor, ...]) -> Tensor:
        """The sums over a minibatch, to be used before the next call."""
        shapes = tuple(part.shape for part in batch)
        if shapes in self._captured:
            graph, read, sums = self._captured[shapes]
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
                say(f"without CUDA graphs, which makes updates slower: {problem}")
            self.gradient.copy_(launched)
        self._seen.add(shapes)
        return sums

    def _capture(self, shapes: tuple[torch.Size, ...], batch: tuple[Tensor, ...], launched: Tensor) -> str:
        """Capture the function for minibatches of these shapes; what went wrong, if anything. Spoils the gradient."""
        read = tuple(part.clone() for part in batch)
        graph = torch.cuda.CUDAGraph()
        try:
            # with several processes a thread of NCCL asks the device too
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
