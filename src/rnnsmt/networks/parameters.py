"""The parameters of a network that was read from a file."""

from pathlib import Path

import torch
from torch import nn

from rnnsmt.io import InputError


def check_parameters(path: str | Path, model: nn.Module, remedy: str) -> None:
    """See that all are float32 numbers; no gradients are taken of them.

    Raises:
        InputError: names the file and the parameter; the sentence ends in ``remedy``.
    """
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(False)
        plain = parameter.dtype == torch.float32 and parameter.layout == torch.strided
        if not plain or not torch.isfinite(parameter).all():
            raise InputError(f"{path}: {name} holds values that are no numbers, or of another kind; {remedy}")
