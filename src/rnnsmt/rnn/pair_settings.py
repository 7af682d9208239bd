"""Sizes and training settings of a network that another package defines. This module does not import torch."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from rnnsmt.base.fields import Field
from rnnsmt.config.declaration import section
from rnnsmt.networks.settings import (
    Batch,
    Clip,
    Epochs,
    Evaluations,
    Keep,
    LearningRate,
    NetworkSizes,
    Optimizer,
    Precision,
    Schedule,
    Size,
    TrainingSettings,
    Warmup,
    WeightDecay,
    held_out_pairs,
    network_sizes,
)


@network_sizes
class PairSizes(NetworkSizes):
    """The sizes of a network: numbers of source ids, target ids and weights, and the settings of its training."""

    source_vocabulary: Size
    target_vocabulary: Size
    weights: Size
    settings: dict[str, Any]

    def parameters(self) -> dict[str, dict[str, int]]:
        """Return the number of weights."""
        return {"network": {"weights": self.weights}}


@section
class PairSettings(TrainingSettings):
    """The settings of a training run on phrase pairs; a subclass adds those of its network.

    The decorator of subclasses is ``section``. The pairs of a minibatch have equal source lengths and equal target
    lengths. The loss is the mean of -log p.
    """

    batch: Batch = 64
    epochs: Epochs = 1.0
    optimizer: Optimizer = "adam"
    learning_rate: LearningRate = 0.01
    schedule: Schedule = "linear"
    warmup: Warmup = 50
    clip: Clip = 20.0
    weight_decay: WeightDecay = 0.0
    held_out: Annotated[
        int, Field(ge=0, description="maximum number of held-out pairs, drawn at random (at most 1 % of all pairs)")
    ] = 1000
    evaluations: Evaluations = 8
    keep: Keep = "best"
    precision: Precision = "float32"

    dropout: ClassVar[float] = 0.0  # type: ignore[misc]
    sampled_classes: ClassVar[int] = 0  # type: ignore[misc]
    updates: ClassVar[int] = 0
    loss: ClassVar[str] = "mean"
    batching: ClassVar[str] = "lengths"

    @classmethod
    def presets(cls) -> Mapping[str, Any]:
        """Return the defaults as the only preset."""
        return {"small": cls()}

    def sizes(self, *vocabularies: int) -> PairSizes:
        """Raise ``NotImplementedError``: the number of weights is known only after the network has been created."""
        raise NotImplementedError

    def held_out_of(self, pairs: int) -> int:
        """Return the number of held-out pairs to draw from ``pairs`` pairs."""
        return held_out_pairs(pairs, self.held_out, 100)
