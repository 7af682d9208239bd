"""Base classes for networks that are defined in other packages and score phrase pairs.

A subclass of ``PairNetwork`` defines the network. Training, evaluation on held-out pairs, learning curve, model files,
checkpoints and scores are provided by ``rnnsmt.rnn.pair_model``. This module does not import torch.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnsmt.base.errors import InputError
from rnnsmt.networks.network import Network
from rnnsmt.networks.options import need_torch
from rnnsmt.phrases.columns import ColumnInputs, ScoreColumn
from rnnsmt.rnn.pair_settings import PairSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.task import Task


__all__ = ["PairNetwork", "PairNetworkScore", "PairSettings"]


class PairNetwork(Network):
    """Base class of a network that computes log p(target | source) of phrase pairs.

    Attributes:
        name: name of the network's entry point.
    """

    name: str
    data = ("pairs", "vocabularies")

    @abstractmethod
    def module(self, settings: Any, source: int, target: int) -> "nn.Module":
        """Create a network without buffers, given its settings and the numbers of source and target ids.

        The network must have the method ``log_probability(source, source_lengths, target, target_lengths)``, which
        returns log p [B] of B phrase pairs, natural logarithms. ``source`` and ``target`` are int64 ids [B, N] and
        [B, T], each row ending in EOS; the lengths [B] include EOS. All pairs of a call have the same source length and
        the same target length. Id 1 is UNK (words outside the vocabulary), the last id is EOS.
        """

    def task(self, data: Sequence[Path], settings: Any, seed: int, setup: "DeviceSetup") -> "Task":
        """Return the training task, given the file of phrase pairs and the directory of vocabularies."""
        from rnnsmt.rnn.pair_model import PairNetworkTask
        from rnnsmt.rnn.pairs import Pairs

        pairs, vocabularies = data
        return PairNetworkTask(self, Pairs.open(pairs, vocabularies), settings, seed, setup)


class PairNetworkScore(ScoreColumn):
    """log p(target | source) of a ``PairNetwork``; a subclass sets ``network`` to the name of its entry point."""

    uses_vocabularies = True

    def scores(self, inputs: ColumnInputs) -> "Iterator[NDArray[Any]]":
        """Yield the scores of the pairs."""
        need_torch()

        from rnnsmt.rnn.pair_model import pair_scores

        if inputs.vocabularies is None or inputs.model is None:
            raise InputError(f"--vocabularies and --model: are required for a score of the network {self.network}")
        return pair_scores(self.network, inputs)
