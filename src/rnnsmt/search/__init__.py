"""The decoder: Moses' model, cube pruning, n-best lists.

``from rnnsmt.search import load_model, decode, SearchOptions`` is the Python interface; it is imported on first use, so
that the start of a stage stays quick.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rnnsmt.search.decoder import SearchOptions, Translation, decode
    from rnnsmt.search.model import load_model
    from rnnsmt.search.nbest import NBest

__all__ = ["NBest", "SearchOptions", "Translation", "decode", "load_model"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from rnnsmt.search import decoder

        return getattr(decoder, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
