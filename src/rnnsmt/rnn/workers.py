"""The gradient of a minibatch from several threads of one process, each with some of its pairs.

A step is hundreds of small operations. Threads inside each of them wait for each other every time, and where other
processes use the same cores they wait long: here every thread computes alone, and they meet once a minibatch.
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor, nn

from rnnsmt.rnn.gradients import Products, loss_and_gradient
from rnnsmt.rnn.model import RNNEncoderDecoder


def lay_out(model: nn.Module, values: Tensor, gradients: Tensor) -> None:
    """Make the parameters of a network, and their gradients, views of two flat tensors."""
    parameters = list(model.parameters())
    sizes = [parameter.numel() for parameter in parameters]
    for parameter, value, gradient in zip(parameters, values.split(sizes), gradients.split(sizes), strict=True):
        parameter.data = value.view(parameter.shape)
        parameter.grad = gradient.view(parameter.shape)


class Workers:
    """Networks that share their parameters and have a gradient each; with one thread, the network itself."""

    def __init__(self, model: RNNEncoderDecoder, flat: nn.Parameter, threads: int, products: Products) -> None:
        """flat: the parameters of ``model``, which are views of it, and their gradients."""
        assert flat.grad is not None
        self.products = products
        self.models, self.gradients = [model], [flat.grad]
        for _ in range(threads - 1):
            with torch.device("meta"):
                other = RNNEncoderDecoder(model.sizes, seed=None)
            other.to_empty(device=flat.device)
            self.gradients.append(torch.zeros_like(flat.grad))
            lay_out(other, flat.data, self.gradients[-1])
            self.models.append(other)
        self._pool = ThreadPoolExecutor(threads, "gradient", torch.set_num_threads, (1,)) if threads > 1 else None

    def __call__(self, source: Tensor, target: Tensor) -> Tensor:
        """-sum log p(y | x) of the pairs source [N, B], target [T, B]; its gradient goes to ``flat``'s."""
        if self._pool is None:
            return self._compute(0, source, target)
        number = min(len(self.models), source.shape[1])
        parts = source.tensor_split(number, 1), target.tensor_split(number, 1)
        losses = list(self._pool.map(self._compute, range(number), *parts))
        for gradient in self.gradients[1:number]:
            self.gradients[0] += gradient
        return torch.stack(losses).sum()

    def _compute(self, worker: int, source: Tensor, target: Tensor) -> Tensor:
        model = self.models[worker]
        if model.sizes.variant == "paper":
            return loss_and_gradient(model, source, target, self.products)
        # the supplementary's variant has no gradient by hand
        self.gradients[worker].zero_()
        lengths = [torch.full((side.shape[1],), len(side), device=side.device) for side in (source, target)]
        loss = -model.log_probability(source.t(), lengths[0], target.t(), lengths[1]).sum()
        loss.backward()
        return loss.detach().double()
