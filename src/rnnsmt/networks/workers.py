"""The gradient of a minibatch from several threads of one process, each with some of its pairs.

A step is hundreds of small operations. Threads inside each of them wait for each other every time, and where other
processes use the same cores they wait long: here every thread computes alone, and they meet once a minibatch.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor, nn

from rnnsmt.networks.optimising import lay_out


class Workers:
    """Networks that share their parameters and have a gradient each; with one thread, the network itself."""

    def __init__(
        self,
        model: nn.Module,
        flat: nn.Parameter,
        threads: int,
        gradient: Callable[..., Tensor],
        dimension: int,
        grain: int = 1,
    ) -> None:
        """flat: the parameters of ``model``, which are views of it, and their gradients.

        gradient: takes a network and the tensors of a minibatch, fills the network's ``.grad``, and returns sums over
        it. dimension: of these tensors, which is shared out in multiples of ``grain``.
        """
        assert flat.grad is not None
        self.gradient, self.dimension, self.grain = gradient, dimension, grain
        self.models, self.gradients = [model], [flat.grad]
        for _ in range(threads - 1):
            with torch.device("meta"):
                other: nn.Module = type(model)(model.sizes, seed=None)
            other.to_empty(device=flat.device)
            self.gradients.append(torch.zeros_like(flat.grad))
            lay_out(other, flat.data, self.gradients[-1])
            self.models.append(other)
        self._pool = ThreadPoolExecutor(threads, "gradient", torch.set_num_threads, (1,)) if threads > 1 else None

    def __call__(self, *batch: Tensor) -> Tensor:
        """The sums over a minibatch; its gradient goes to ``flat``'s."""
        if self._pool is None:
            return self.gradient(self.models[0], *batch)
        grains = -(-batch[0].shape[self.dimension] // self.grain)
        number = min(len(self.models), grains)
        borders = tuple(self.grain * (grains * k // number) for k in range(1, number))
        parts = zip(*(tensor.tensor_split(borders, self.dimension) for tensor in batch), strict=True)
        sums = list(self._pool.map(lambda model, part: self.gradient(model, *part), self.models[:number], parts))
        for gradient in self.gradients[1:number]:
            self.gradients[0] += gradient
        return torch.stack(sums).sum(0)
