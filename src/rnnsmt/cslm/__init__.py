"""The continuous-space language model (CSLM), a feed-forward network whose inputs are the preceding words."""

from rnnsmt.cslm.settings import CslmSettings

__all__ = ["CslmSettings"]
