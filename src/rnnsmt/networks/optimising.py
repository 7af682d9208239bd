"""What turns a gradient into an update: all parameters in one tensor, the optimiser, the learning rate."""

from typing import Protocol

import torch
from torch import Tensor, nn


class Settings(Protocol):
    """What is needed of the settings of a training; optimiser: adadelta or adam, schedule: constant or linear."""

    @property
    def optimiser(self) -> str: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def schedule(self) -> str: ...
    @property
    def warmup(self) -> int: ...


def lay_out(model: nn.Module, values: Tensor, gradients: Tensor) -> None:
    """Make the parameters of a network, and their gradients, views of two flat tensors."""
    parameters = list(model.parameters())
    sizes = [parameter.numel() for parameter in parameters]
    for parameter, value, gradient in zip(parameters, values.split(sizes), gradients.split(sizes), strict=True):
        parameter.data = value.view(parameter.shape)
        parameter.grad = gradient.view(parameter.shape)


def flatten(model: nn.Module) -> nn.Parameter:
    """Lay all parameters, and all gradients, one after the other in one tensor each, of which they become views.

    Norm, clipping, the sum over processes and the optimiser then are one operation each.
    """
    flat = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    flat.grad = torch.zeros_like(flat)
    lay_out(model, flat.data, flat.grad)
    return flat


def make_optimiser(flat: nn.Parameter, settings: Settings) -> torch.optim.Optimizer:
    """Adadelta with the paper's rho 0.95 and eps 1e-6, or Adam."""
    if settings.optimiser == "adadelta":
        return torch.optim.Adadelta([flat], lr=settings.learning_rate, rho=0.95, eps=1e-6)
    return torch.optim.Adam([flat], lr=settings.learning_rate, betas=(0.9, 0.999), eps=1e-8, fused=True)


def learning_rate(settings: Settings, update: int, total: int) -> float:
    """The learning rate of an update, counted from 0, of ``total``."""
    factor = 1.0 if settings.schedule == "constant" else max(1.0 - update / total, 0.0)
    return settings.learning_rate * factor * min((update + 1) / (settings.warmup + 1), 1.0)
