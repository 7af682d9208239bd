"""Networks that the search can use as features: CSLM and NNJM."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.config.features import SystemFeature
from rnnsmt.networks.options import need_torch

if TYPE_CHECKING:
    from rnnsmt.search.neural import NetworkOptions, NeuralFeature


class SearchFeature(SystemFeature, ABC):
    """Base class of a network that the search uses as a feature. Subclasses import torch and numba only in ``load``.

    Attributes:
        needs_links: whether the feature requires the word alignments of the phrase pairs.
    """

    in_search = True
    weight = 0.25
    needs_links: bool = False

    @abstractmethod
    def load(self, name: str, path: Path, unknown: str, network: "NetworkOptions") -> "NeuralFeature":
        """Load the network from a model file.

        Args:
            name: name of the feature in moses.ini.
            unknown: score of words outside the shortlist, see ``rnnsmt.config.features.UnknownScore``.
        """


class CslmFeature(SearchFeature):
    """The continuous-space language model (Schwenk 2007)."""

    label = "CSLM"
    network = "cslm"
    title = "CSLM"

    def load(self, name: str, path: Path, unknown: str, network: "NetworkOptions") -> "NeuralFeature":
        """Load a model file of a CSLM."""
        need_torch()

        from rnnsmt.cslm.scorer import CslmScorer
        from rnnsmt.search.neural import NeuralLM

        return NeuralLM(name, CslmScorer(path, network.device, network.threads, unknown_score=unknown))


class NnjmFeature(SearchFeature):
    """The neural network joint model (Devlin et al. 2014)."""

    label = "NNJM"
    network = "nnjm"
    title = "NNJM"
    needs_links = True

    def load(self, name: str, path: Path, unknown: str, network: "NetworkOptions") -> "NeuralFeature":
        """Load a model file of a joint model."""
        need_torch()

        from rnnsmt.nnjm.scorer import JointScorer
        from rnnsmt.search.neural import JointFeature

        return JointFeature(name, JointScorer(path, network.device, network.threads, unknown_score=unknown))
