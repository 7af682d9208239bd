"""Former place of a constant that a rule file imports; see ``options``."""

from rnnsmt.search.options import MOST_NEURAL_MEGABYTES

__all__ = ["MOST_NEURAL_MEGABYTES"]
