"""The continuous-space language model as a kind of network."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.cslm.settings import PRESETS, CslmSettings
from rnnsmt.networks.network import ListScores, Network, TrainingTexts

if TYPE_CHECKING:
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.task import Task
    from rnnsmt.networks.text_scores import PerplexityReport


class CslmNetwork(Network):
    """The continuous-space language model (Schwenk 2007), trained on text.

    The perplexity of the held-out n-grams is computed after every epoch. Training ends after ``epochs`` epochs, or when
    the perplexity has not improved for ``patience`` epochs; the best parameters are saved.
    """

    data = ("text",)
    texts = ("target_vocabulary", "vocabulary_text")
    presets = PRESETS
    list_feature = "CSLM0"
    version = 7

    def prepare(self, texts: TrainingTexts, output_dir: str) -> dict[str, object]:
        """Write a text as ids; words outside the vocabulary become UNK, and lines without words are skipped."""
        from rnnsmt.cslm.text import prepare_text

        return prepare_text(texts.target, texts.vocabulary(1), output_dir)

    def task(self, data: Sequence[Path], settings: CslmSettings, seed: int, setup: "DeviceSetup") -> "Task":
        """Return the training task, given the directory of a text."""
        from rnnsmt.cslm.model import cslm_task
        from rnnsmt.cslm.text import Text

        return cslm_task(Text.open(data[0]), settings, seed, setup)

    def list_scores(self, models: Sequence[str], unknown: str, device: str, threads: int) -> ListScores:
        """Return the function that computes ln p of translations, including ``</s>``, under a single network."""
        from rnnsmt.cslm.scorer import CslmScorer, sentence_scores

        if len(models) > 1:
            raise InputError(f"--model {' '.join(models)}: the networks of an ensemble must be LSTMs")
        scorer = CslmScorer(models[0], device, threads, unknown_score=unknown)
        return lambda sources, block: sentence_scores(scorer, (text for _, texts in block for text in texts))

    def perplexity(
        self, model: StrPath, inputs: list[str], other: StrPath | None, device: str, threads: int
    ) -> "PerplexityReport":
        """Compute the perplexity of a text in one or several files; ``other`` is an n-gram model."""
        from rnnsmt.cslm.scorer import perplexity_report

        return perplexity_report(model, inputs, other, device, threads)
