"""A score column with a network of its own: the words of the target, each given the words of the source as a bag."""

from typing import TYPE_CHECKING, Annotated

from rnnsmt.base.fields import Field
from rnnsmt.config.declaration import section
from rnnsmt.rnn.pair_network import PairNetwork, PairNetworkScore, PairSettings

if TYPE_CHECKING:
    from torch import nn


@section
class BagSettings(PairSettings):
    """Settings of the training; those of all networks on phrase pairs, and the size of this one."""

    size: Annotated[int, Field(gt=0, description="dimension of the word vectors")] = 64


class BagNetwork(PairNetwork):
    """A network in which the mean of the vectors of the source words predicts every target word and EOS."""

    name = "bag"
    presets = {"small": BagSettings(), "demo": BagSettings(size=16, epochs=2.0)}  # noqa: RUF012

    def module(self, settings: BagSettings, source: int, target: int) -> "nn.Module":
        """Return the network for the numbers of source and target ids."""
        from torch import log_softmax, nn

        class Bag(nn.Module):
            def __init__(self):
                super().__init__()
                self.vectors = nn.Embedding(source, settings.size)
                self.output = nn.Linear(settings.size, target)

            def log_probability(self, source, source_lengths, target, target_lengths):
                """Return log p(target | source) of pairs of equal lengths [B]; ids are [B, N] and [B, T]."""
                scores = log_softmax(self.output(self.vectors(source).mean(1)), -1)
                return scores.gather(1, target).sum(1)

        return Bag()


class BagScore(PairNetworkScore):
    """log p(target | source) of the network."""

    label = "bag of words"
    network = "bag"
    title = "Bag of words"
