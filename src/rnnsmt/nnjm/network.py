"""The neural network joint model as a kind of network."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.networks.network import Network, TrainingTexts
from rnnsmt.nnjm.settings import PRESETS, JointSettings

if TYPE_CHECKING:
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.task import Task
    from rnnsmt.networks.text_scores import PerplexityReport


class NnjmNetwork(Network):
    """The neural network joint model (Devlin et al. 2014), trained like the CSLM, but on a word-aligned bitext."""

    data = ("examples",)
    texts = ("source", "alignment", "source_vocabulary", "target_vocabulary")
    presets = PRESETS
    version = 3

    def prepare(self, texts: TrainingTexts, output_dir: str) -> dict[str, object]:
        """Write both sides of a bitext as ids, and the affiliation of every target word."""
        from rnnsmt.nnjm.examples import prepare_examples

        vocabularies = texts.vocabulary(0), texts.vocabulary(1)
        return prepare_examples(texts.source, texts.target, texts.alignment, vocabularies, output_dir)

    def task(self, data: Sequence[Path], settings: JointSettings, seed: int, setup: "DeviceSetup") -> "Task":
        """Return the training task, given the directory of a bitext."""
        from rnnsmt.nnjm.examples import Examples
        from rnnsmt.nnjm.training import nnjm_task

        return nnjm_task(Examples.open(data[0]), settings, seed, setup)

    def perplexity(
        self, model: StrPath, inputs: list[str], other: StrPath | None, device: str, threads: int
    ) -> "PerplexityReport":
        """Compute the perplexity of the target side of a directory of `networks prepare`; ``other`` is a CSLM."""
        from rnnsmt.nnjm.scorer import perplexity_report

        if len(inputs) > 1:
            raise InputError(f"--input {' '.join(inputs)}: must be one directory of `networks prepare`")
        return perplexity_report(model, inputs[0], other, device, threads)
