"""Training, model files and scores of networks that other packages define (``rnnsmt.rnn.pair_network``)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import Meter
from rnnsmt.networks.devices import DeviceSetup, set_up_device
from rnnsmt.networks.model_file import ModelContent, ModelFormat, read_model, write_model
from rnnsmt.phrases.columns import ColumnInputs
from rnnsmt.registries import NETWORKS
from rnnsmt.rnn.model import check_vocabularies, hashes_of
from rnnsmt.rnn.pair_settings import PairSettings, PairSizes
from rnnsmt.rnn.pairs import Pairs
from rnnsmt.rnn.training import PhrasePairTask, group_by_length, pair_tensors, rows_and_lengths

if TYPE_CHECKING:
    from rnnsmt.rnn.pair_network import PairNetwork

ROWS = 8192
"""Number of pairs that are read together for scoring."""


class PairContent(ModelContent):
    """Metadata of a model file; the words are in separate vocabulary files."""

    sizes: PairSizes


def format_of(network: "PairNetwork") -> ModelFormat:
    """Return the format of the model files of a network."""
    version = f"rnnsmt-{network.name}-{network.version}"
    return ModelFormat(version, f"a network {network.name}", "train it again with `networks train`")


class PairNetworkTask(PhrasePairTask):
    """Training of a ``PairNetwork``; autograd computes the gradient."""

    settings: PairSettings

    def __init__(
        self, network: "PairNetwork", pairs: Pairs, settings: PairSettings, seed: int, setup: DeviceSetup
    ) -> None:
        """Draw the held-out pairs and create the network; the seed determines its initial weights."""
        super().__init__(pairs, settings, seed, setup)
        self.kind, self.network = network, network.name
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = network.module(settings, *map(len, pairs.vocabularies)).to(setup.device)

    def save_model(self, path: StrPath, description: dict[str, object], stats: dict[str, object]) -> None:
        weights = sum(parameter.numel() for parameter in self.model.parameters())
        source, target = map(len, self.pairs.vocabularies)
        sizes = PairSizes(source, target, weights, self.settings.as_dict())
        meta = description | hashes_of(self.pairs.vocabularies) | self.inputs
        write_model(path, format_of(self.kind), self.model, sizes, {"meta": meta})


def pair_scores(name: str, inputs: ColumnInputs) -> Iterator[NDArray[np.float32]]:
    """Load the network of a score column, and yield log p(target | source) of the phrase pairs in blocks.

    name: name of the network in ``NETWORKS``.
    """
    network: Any = NETWORKS[name]

    def build(sizes: PairSizes) -> Any:
        return network.module(network.settings(**sizes.settings), sizes.source_vocabulary, sizes.target_vocabulary)

    assert inputs.vocabularies is not None and inputs.model is not None
    setup = set_up_device(inputs.device, inputs.threads)
    pairs = Pairs.of(inputs.pairs, inputs.vocabularies)
    model, content = read_model(inputs.model, format_of(network), PairContent, build, setup.device)
    sizes = content.sizes.source_vocabulary, content.sizes.target_vocabulary
    check_vocabularies(inputs.model, content.meta, sizes, pairs.vocabularies, inputs.vocabularies)
    return _scores(model, pairs, inputs.begin, inputs.end, setup.device)


@torch.inference_mode()
def _scores(model: Any, pairs: Pairs, begin: int, end: int, device: torch.device) -> Iterator[NDArray[np.float32]]:
    meter = Meter("scoring", end - begin, "pairs")
    for first in range(begin, end, ROWS):
        index = np.arange(first, min(first + ROWS, end))
        scores = np.empty(len(index), np.float32)
        for group in group_by_length(pairs, index):
            batch = rows_and_lengths(*pair_tensors(pairs, group, device))
            scores[group - first] = model.log_probability(*batch).cpu().numpy()
        yield scores
        meter.add(len(scores))
        pairs.release()
