"""A network of another package that scores phrase pairs: its settings, its training and its score column.

A subclass of ``PairNetwork`` says what the network computes. Training, held-out pairs, learning curve, model file,
checkpoints and scores follow (``rnnsmt.rnn.pair_model``). This module does not import torch.
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
    """A network that computes log p(target | source) of phrase pairs, in the vocabularies of the run.

    Attributes:
        name: its name in the entry points.
    """

    name: str
    data = ("pairs", "vocabularies")

    @abstractmethod
    def module(self, settings: Any, source: int, target: int) -> "nn.Module":
        """Return the network, which has parameters but no buffers, for the numbers of source and target ids.

        Its function ``log_probability(source, source_lengths, target, target_lengths)`` returns log p [B] of pairs,
        natural logarithms. Its arguments are int64 ids [B, N] and [B, T], which end in EOS, and the lengths [B] with
        EOS. All pairs of a call have equal lengths. Id 1 are words outside the vocabulary, the last id is EOS.
        """

    def task(self, data: Sequence[Path], settings: Any, seed: int, setup: "DeviceSetup") -> "Task":
        """Return the training on phrase pairs."""
        from rnnsmt.rnn.pair_model import PairNetworkTask
        from rnnsmt.rnn.pairs import Pairs

        pairs, vocabularies = data
        return PairNetworkTask(self, Pairs.open(pairs, vocabularies), settings, seed, setup)


class PairNetworkScore(ScoreColumn):
    """log p(target | source) of a ``PairNetwork``; the attribute ``network`` is its name in the entry points."""

    uses_vocabularies = True

    def scores(self, inputs: ColumnInputs) -> "Iterator[NDArray[Any]]":
        """Yield the scores of the pairs."""
        need_torch()

        from rnnsmt.rnn.pair_model import pair_scores

        if inputs.vocabularies is None or inputs.model is None:
            raise InputError(f"--vocabularies and --model: are required for a score of the network {self.network}")
        return pair_scores(self.network, inputs)
