"""Networks: their kinds and training, and what all of them share: minibatches, gradients, softmax, model files."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rnnsmt.networks.operations import perplexity as perplexity
    from rnnsmt.networks.operations import prepare as prepare
    from rnnsmt.networks.operations import rescore as rescore
    from rnnsmt.networks.operations import train as train

__all__ = ["perplexity", "prepare", "rescore", "train"]


def __getattr__(name: str) -> object:
    """Provide the operations; the packages of the networks, whose settings they show, import modules of this one."""
    if name in __all__:
        return getattr(import_module("rnnsmt.networks.operations"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names in the module, including those that are loaded on first use."""
    return sorted({*globals(), *__all__})
