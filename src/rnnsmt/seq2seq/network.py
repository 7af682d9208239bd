"""The LSTM encoder-decoder as a kind of network."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.networks.network import ListScores, Network, TrainingTexts
from rnnsmt.seq2seq.settings import PRESETS, Seq2SeqSettings

if TYPE_CHECKING:
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.task import Task


class LstmNetwork(Network):
    """An LSTM encoder-decoder (Sutskever, Vinyals and Le 2014), trained on sentence pairs."""

    data = ("sentences",)
    texts = ("source", "max_length")
    presets = PRESETS
    list_feature = "LSTM0"
    reads_source = True
    version = 3

    def prepare(self, texts: TrainingTexts, output_dir: str) -> dict[str, object]:
        """Write the sentence pairs of a bitext as ids; pairs with an empty or too long side are skipped."""
        from rnnsmt.seq2seq.sentences import prepare_sentences

        return prepare_sentences(texts.source, texts.target, output_dir, texts.vocab_sizes, texts.max_length)

    def task(self, data: Sequence[Path], settings: Seq2SeqSettings, seed: int, setup: "DeviceSetup") -> "Task":
        """Return the training task, given the directory of sentence pairs."""
        from rnnsmt.seq2seq.sentences import SentencePairs
        from rnnsmt.seq2seq.training import Seq2SeqTask

        return Seq2SeqTask(SentencePairs.open(data[0]), settings, seed, setup)

    def read_source(self, path: StrPath) -> list[str]:
        """Read the sentences of a file, and check that they satisfy the requirements of the decoder."""
        from rnnsmt.search.source_text import read_sentences

        return read_sentences(path)

    def list_scores(self, models: Sequence[str], unknown: str, device: str, threads: int) -> ListScores:
        """Return the function that computes ln p of translations, including EOS, under an ensemble."""
        from functools import partial

        from rnnsmt.networks.devices import set_up_device
        from rnnsmt.seq2seq.model import load_ensemble
        from rnnsmt.seq2seq.translation_scores import Scorer, scores_of_block

        if unknown != "class":
            raise InputError(
                f"--unknown {unknown}: must be class for an LSTM, whose file has no number of unknown words"
            )
        return partial(scores_of_block, Scorer(load_ensemble(list(models), set_up_device(device, threads).device)))
