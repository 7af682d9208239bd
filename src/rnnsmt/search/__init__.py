"""Stack decoder for Moses' phrase-based models: n-best lists, and neural features inside the search.

With neural features, many sentences are searched in lockstep, stack by stack.
``from rnnsmt.search import load_model, decode, SearchOptions`` is the Python interface; its names are imported on first
use, so that commands start quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rnnsmt.search.decoder import decode
    from rnnsmt.search.model import load_model
    from rnnsmt.search.nbest import NBest, Translation
    from rnnsmt.search.options import SearchOptions

__all__ = ["NBest", "SearchOptions", "Translation", "decode", "load_model"]

_PLACES = {"NBest": "nbest", "Translation": "nbest", "SearchOptions": "options", "decode": "decoder"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"rnnsmt.search.{_PLACES.get(name, 'model')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
