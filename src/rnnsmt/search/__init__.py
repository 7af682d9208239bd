"""Stack decoder for Moses' phrase-based models: n-best lists, and neural features inside the search.

With neural features, many sentences are searched in lockstep, stack by stack. ``model.load_model`` and
``decoder.decode`` keep a model in memory for several calls.
"""

from rnnsmt.search.operations import binarize, decode
from rnnsmt.search.results import Hypothesis, Translations

__all__ = ["Hypothesis", "Translations", "binarize", "decode"]
