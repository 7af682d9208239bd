"""The RNN Encoder-Decoder as a kind of network."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.networks.network import Network, TrainingTexts
from rnnsmt.rnn.settings import PRESETS, RnnSettings

if TYPE_CHECKING:
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.task import Task


class RnnNetwork(Network):
    """The RNN Encoder-Decoder (Cho et al. 2014), trained on phrase pairs."""

    data = ("pairs", "vocabularies")
    texts = ("source",)
    presets = PRESETS
    version = 7

    def prepare(self, texts: TrainingTexts, output_dir: str) -> dict[str, object]:
        """Write the vocabularies of both sides; the phrase pairs are written by `phrases extract`."""
        from rnnsmt.rnn.pairs import write_vocabularies

        return write_vocabularies(texts.source, texts.target, output_dir, texts.vocab_sizes)

    def task(self, data: Sequence[Path], settings: RnnSettings, seed: int, setup: "DeviceSetup") -> "Task":
        """Return the training task, given the file of phrase pairs and the directory of vocabularies."""
        from rnnsmt.rnn.pairs import Pairs
        from rnnsmt.rnn.training import RnnTask

        pairs, vocabularies = data
        return RnnTask(Pairs.open(pairs, vocabularies), settings, seed, setup)
