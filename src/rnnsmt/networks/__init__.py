"""Neural networks: the interface of a network, training, scoring, minibatches, gradients, softmax and model files."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rnnsmt.networks.operations import perplexity as perplexity
    from rnnsmt.networks.operations import prepare as prepare
    from rnnsmt.networks.operations import rescore as rescore
    from rnnsmt.networks.operations import train as train

__all__ = ["perplexity", "prepare", "rescore", "train"]


def __getattr__(name: str) -> object:
    """Import an operation on first use: an import here would be circular, since the operations import the networks."""
    if name in __all__:
        return getattr(import_module("rnnsmt.networks.operations"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names in the module, including those that are loaded on first use."""
    return sorted({*globals(), *__all__})
