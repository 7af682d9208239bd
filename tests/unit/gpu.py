"""Tests that need a GPU: one that torch sees, not one that the machine has."""

from importlib.util import find_spec

import pytest


def torch_sees_a_gpu() -> bool:
    """False where torch is not installed, or has no CUDA that fits the driver."""
    if find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


NEEDS_GPU = pytest.mark.skipif(not torch_sees_a_gpu(), reason="torch finds no GPU")
