"""The gradient of a minibatch as a CUDA graph: one launch instead of hundreds.

The kernels of a small batch take less time than launching them. A graph (``torch.cuda.CUDAGraph``) records the launched
kernels with the addresses of all their tensors and replays them in one launch.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from rnnsmt.base.progress import say

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
