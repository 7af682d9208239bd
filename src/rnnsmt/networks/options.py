"""What the commands of all networks share; does not import torch."""

from importlib.util import find_spec

from rnnsmt.base.errors import InputError


def need_torch() -> None:
    """Check that torch and safetensors, optional dependencies, are installed."""
    for package in ("torch", "safetensors"):
        if find_spec(package) is None:
            raise InputError(
                f"neural networks require {package}, which is not installed; install rnnsmt with the extra `networks`"
            )
