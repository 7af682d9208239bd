"""Loading of the neural features that an ini names."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from rnnsmt.base.io import InputError
from rnnsmt.moses.ini import BILINGUAL
from rnnsmt.moses.nplm_file import BilingualSizes
from rnnsmt.networks.options import need_torch
from rnnsmt.search.joint_model import JointFeature
from rnnsmt.search.neural import NeuralFeature, NeuralLM


class NetworkOptions(NamedTuple):
    """How the networks of a search are computed.

    Attributes:
        threads: number of threads on a CPU.
        device: device, see ``rnnsmt.networks.devices.set_up_device``.
        precision: precision of the sum over the vocabulary, ``float32`` or ``reduced``, see
            ``rnnsmt.cslm.ngram_scorer.NGramScorer``.
    """

    threads: int = 1
    device: str = "auto"
    precision: str = "reduced"


def _load_cslm(name: str, path: Path, options: Mapping[str, str], network: NetworkOptions) -> NeuralFeature:
    from rnnsmt.cslm.ngram_scorer import NGramScorer

    reduced = network.precision == "reduced"
    scorer = NGramScorer(path, network.device, network.threads, reduced=reduced, unknown_score=options["unknown"])
    return NeuralLM(name, scorer)


def _load_nnjm(name: str, path: Path, options: Mapping[str, str], network: NetworkOptions) -> NeuralFeature:
    from rnnsmt.nnjm.scorer import JointScorer

    reduced = network.precision == "reduced"
    scorer = JointScorer(path, network.device, network.threads, reduced=reduced, unknown_score=options["unknown"])
    if scorer.direction != "direct":
        raise InputError(
            f"{path}: has direction {scorer.direction}, and the search needs direct; use nnjm rescore with n-best lists"
        )
    return JointFeature(name, scorer)


def _load_bilingual(name: str, path: Path, options: Mapping[str, str], network: NetworkOptions) -> NeuralFeature:
    from rnnsmt.nnjm.scorer import NplmScorer

    sizes = BilingualSizes(int(options["order"]), int(options["source_window"]))
    scorer = NplmScorer(
        path, (options["source_vocab"], options["target_vocab"]), sizes, network.device, network.threads
    )
    return JointFeature(name, scorer, scores_end=False)


LOADERS: dict[str, Callable[[str, Path, Mapping[str, str], NetworkOptions], NeuralFeature]] = {
    "CSLM": _load_cslm,
    "NNJM": _load_nnjm,
    BILINGUAL: _load_bilingual,
}
"""How the features of each kind of ``rnnsmt.moses.ini.NEURAL_MODELS`` are loaded: from their name, model file and
options in the ini."""


def load_feature(
    kind: str, name: str, path: Path, options: Mapping[str, str], network: NetworkOptions
) -> NeuralFeature:
    """Load a neural feature from a model file.

    Args:
        kind: kind of the feature, one of ``LOADERS``.
        name: name of the feature in the ini.
        path: the model file.
        options: options of the feature with their defaults, see ``rnnsmt.moses.ini.NEURAL_MODELS``.
        network: how the network is computed.

    Raises:
        InputError: the file is missing or damaged, or the device is not available.
    """
    need_torch()
    return LOADERS[kind](name, path, options, network)
