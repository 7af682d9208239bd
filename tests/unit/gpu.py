"""The condition for tests that require a GPU that torch can use."""

from importlib.util import find_spec

import pytest


def torch_sees_a_gpu() -> bool:
    """Return whether torch is installed and can use a GPU."""
    if find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


NEEDS_GPU = pytest.mark.skipif(not torch_sees_a_gpu(), reason="torch finds no GPU")
