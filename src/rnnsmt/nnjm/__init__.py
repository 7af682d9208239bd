"""The neural network joint model (Devlin et al. 2014), a language model that also reads a window of source words."""

from rnnsmt.nnjm.settings import JointSettings

__all__ = ["JointSettings"]
