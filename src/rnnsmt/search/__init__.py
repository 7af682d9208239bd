"""Stack decoder for phrase-based models of Moses, with n-best lists and with neural features in the search.

With neural features, many sentences are decoded in lockstep, stack by stack. To keep a model in memory for several
calls, use ``model.load_model`` and ``decoder.decode``.
"""

from rnnsmt.search.operations import binarize, decode
from rnnsmt.search.results import Hypothesis, Translations

__all__ = ["Hypothesis", "Translations", "binarize", "decode"]
