"""The runs of ``tuning mert``: the decoder of a model, and the seed and the files of each run."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.io import InputError
from rnnsmt.base.resuming import CheckpointDirectory
from rnnsmt.bleu.batch import NumberedTexts
from rnnsmt.moses.ini import UNKNOWN_WORDS, MosesIni
from rnnsmt.search import SearchOptions, decode
from rnnsmt.search.translation_options import look_up
from rnnsmt.tuning.checkpoint import TuningCheckpoint, fingerprint
from rnnsmt.tuning.loop import Decoded
from rnnsmt.tuning.nbest_pool import Weights, normalised, start_weights

if TYPE_CHECKING:
    from rnnsmt.search.model import SearchModel


class ModelDecoder:
    """Decoder of the dev set, with tuned features only; the other features keep their weights, as in Moses.

    The translations with the weights of the ini, from which every run starts, are cached for the following runs.
    """

    def __init__(self, ini: MosesIni, sources: list[str], model: "SearchModel", options: SearchOptions) -> None:
        """Prepare decoding of ``sources`` with ``model``, which must have been loaded for these sentences."""
        self.ini, self.sources = ini, sources
        self.model = model
        self._options = options
        names = list(self.model.feature_names)
        fixed = ini.fixed_scores()
        self._tuned = np.array([name not in fixed for name in names])
        self._unknown = [column for column in model.columns.get(UNKNOWN_WORDS, []) if not self._tuned[column]]
        self._weights = model.weights(ini)
        self.feature_names = [name for name, tuned in zip(names, self._tuned, strict=True) if tuned]
        self.start = start_weights(ini, self.feature_names)
        self._from_start: Decoded | None = None

    def decode(self, weights: Weights) -> Decoded:
        """Translate the dev set with these weights of the tuned features."""
        if not np.array_equal(weights, normalised(self.start)):
            return self._search(weights)
        if self._from_start is None:
            self._from_start = self._search(weights)
        return self._from_start

    def _search(self, weights: Weights) -> Decoded:
        """Decode, and collect n-best lists with word numbers and tuned features."""
        full = self.full(weights)
        translations = decode(self.model, self.sources, full, self._options)
        words: list[NDArray[np.int32]] = []
        lengths: list[NDArray[np.int64]] = []
        features: list[NDArray[np.float64]] = []
        for translation in translations:
            nbest = translation.nbest
            if len(nbest) == 0:  # empty sentence: one empty candidate
                lengths.append(np.zeros(1, np.int64))
                features.append(translation.features[None, self._tuned])
                continue
            # Candidates are stored without their fixed scores. A candidate with more unknown words could be the best in
            # the pool by its tuned features, but not in the search: it is discarded. Other features that are fixed
            # differ between good candidates; as in Moses, they are not considered in the pool.
            fixed = nbest.features[:, self._unknown] @ full[self._unknown]
            possible = fixed >= fixed.max() - 1e-6
            size = np.diff(nbest.bounds)
            words.append(nbest.words if possible.all() else nbest.words[np.repeat(possible, size)])
            lengths.append(size[possible])
            features.append(nbest.features[possible][:, self._tuned])
        texts = NumberedTexts(
            look_up(self.model, self.sources).words,
            np.concatenate([np.zeros(0, np.int32), *words]),
            np.concatenate([[0], np.cumsum(np.concatenate(lengths))]),
            np.concatenate([[0], np.cumsum([len(size) for size in lengths])]),
        )
        return Decoded([translation.text for translation in translations], texts, features)

    def full(self, weights: Weights) -> Weights:
        """Return the weights of all features of the model in model order, given the weights of the tuned features."""
        full = self._weights.copy()
        full[self._tuned] = weights
        return full

    def set_weights(self, weights: Weights) -> None:
        """Set the weights of the tuned features in the ini."""
        for name, weight in zip(self.feature_names, weights, strict=True):
            self.ini.set_weight(name, float(weight))


@dataclass(frozen=True)
class TuningRun:
    """One run.

    Attributes:
        number: 1-based number of the run.
        ini: moses.ini with the initial weights.
        model_dir: directory that overrides the model files, or None.
    """

    number: int
    seed: int
    ini: str
    model_dir: str | None
    output_ini: str
    output_history: str
    checkpoint_dir: str


def tuning_runs(args: argparse.Namespace) -> list[TuningRun]:
    """Return the runs that a command line requests."""
    count = len(args.seed)
    if not count == len(args.output_ini) == len(args.output_history) == len(args.checkpoint_dir):
        raise InputError(
            "--seed, --output-ini, --output-history and --checkpoint-dir: specify one value of each for each run"
        )
    directories = _one_a_run("--model-dir", args.model_dir or [None], count)
    inis = _one_a_run("--ini", args.ini, count)
    of_each = zip(args.seed, inis, directories, args.output_ini, args.output_history, args.checkpoint_dir, strict=True)
    return [TuningRun(number, *values) for number, values in enumerate(of_each, 1)]


def by_model(runs: Sequence[TuningRun]) -> dict[tuple[str, str | None], list[TuningRun]]:
    """Return the runs by their ini and model directory, in order of first appearance."""
    groups: dict[tuple[str, str | None], list[TuningRun]] = {}
    for run in runs:
        groups.setdefault((run.ini, run.model_dir), []).append(run)
    return groups


def open_checkpoints(runs: Sequence[TuningRun], args: argparse.Namespace) -> dict[str, TuningCheckpoint]:
    """Open the checkpoint directories of runs; return them by path, interrupted runs first.

    Opening fails for an interrupted run with other settings. This must happen before the checkpoints of finished runs
    with other settings are deleted.
    """
    prints = {}
    for (path, directory), sharing in by_model(runs).items():
        common = fingerprint(args, MosesIni.read(path), directory)
        for run in sharing:
            prints[run.checkpoint_dir] = common | {"--seed": str(run.seed)}
    return {
        checkpoint_dir: TuningCheckpoint(checkpoint_dir, prints[checkpoint_dir])
        for checkpoint_dir in sorted(prints, key=CheckpointDirectory.is_finished)
    }


def _one_a_run(option: str, values: list[Any], runs: int) -> list[Any]:
    """Return the value of an option for each run; it is given once, or once for each run."""
    if len(values) not in (1, runs):
        raise InputError(f"{option}: {len(values)} given; specify one, or one for each of the {runs} runs")
    return values * (runs if len(values) == 1 else 1)
