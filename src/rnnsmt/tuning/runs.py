"""The runs of ``tuning tune``: the decoder for a model, and the seed and the files of each run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.options import option
from rnnsmt.base.resuming import CheckpointDirectory
from rnnsmt.base.writing import write_json
from rnnsmt.bleu.batch import NumberedTexts
from rnnsmt.formats.ini import UNKNOWN_WORDS, MosesIni
from rnnsmt.search.decoder import decode
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.translation_options import look_up
from rnnsmt.tuning.checkpoint import TuningCheckpoint, fingerprint
from rnnsmt.tuning.loop import Decoded
from rnnsmt.tuning.nbest_pool import Weights, normalised, start_weights

if TYPE_CHECKING:
    from rnnsmt.search.model import SearchModel


class ModelDecoder:
    """Decoder of the dev set for weights of the tuned features; the other features keep their weights, as in Moses.

    Every run begins with the weights of the ini; the translations with these weights are cached for later runs.
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
        """Decode, and collect n-best lists as word numbers with the values of the tuned features."""
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
            # The pool has the tuned features only. A candidate with more unknown words than others could be the best in
            # the pool, but never in the search, so it is discarded. Good candidates also differ in other features that
            # are not tuned; as in Moses, the pool ignores these.
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
        """Return the weights of all features, in the order of the model, from the weights of the tuned features."""
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
        model_dir: directory in which model files are looked up first, or None.
        output_ini, output_history: output files, or None.
        checkpoint_dir: checkpoint directory.
    """

    number: int
    seed: int
    ini: Path
    model_dir: Path | None
    output_ini: Path | None
    output_history: Path | None
    checkpoint_dir: Path


def tuning_runs(
    seeds: Sequence[int], once: Mapping[str, list[Any]], each_run: Mapping[str, list[Any]]
) -> list[TuningRun]:
    """Return the runs with these seeds.

    Args:
        once: values of ``ini`` and of ``model_dir``: one value for all runs, or one value per run.
        each_run: values of ``output_ini``, of ``output_history`` and of ``checkpoint_dir``: one value per run.

    Raises:
        InputError: the number of values does not match the number of seeds.
    """
    if any(len(values) != len(seeds) for values in each_run.values()):
        raise InputError(
            "--seed, --output-ini, --output-history and --checkpoint-dir: specify one value of each for each run"
        )
    for name, values in once.items():
        if len(values) not in (1, len(seeds)):
            raise InputError(
                f"{option(name)}: {len(values)} given; specify one, or one for each of the {len(seeds)} runs"
            )
    columns = {name: values if len(values) > 1 else values * len(seeds) for name, values in once.items()}
    columns.update(each_run)
    rows = zip(*columns.values(), strict=True)
    runs = []
    for number, (seed, row) in enumerate(zip(seeds, rows, strict=True), 1):
        paths: dict[str, Any] = {name: _path(value) for name, value in zip(columns, row, strict=True)}
        runs.append(TuningRun(number, seed, **paths))
    return runs


def by_model(runs: Sequence[TuningRun]) -> dict[tuple[Path, Path | None], list[TuningRun]]:
    """Group runs by ini and model directory, in order of first appearance."""
    groups: dict[tuple[Path, Path | None], list[TuningRun]] = {}
    for run in runs:
        groups.setdefault((run.ini, run.model_dir), []).append(run)
    return groups


def open_checkpoints(
    runs: Sequence[TuningRun], source: str, references: Sequence[str], options: Mapping[str, object]
) -> dict[Path, TuningCheckpoint]:
    """Open the checkpoint directories of runs; return them by path, interrupted runs first.

    If the settings have changed, opening the checkpoint of an interrupted run fails, and opening that of a finished run
    deletes it. Interrupted runs come first, so that nothing is deleted if opening fails.
    """
    prints = {}
    for (path, directory), sharing in by_model(runs).items():
        common = fingerprint(MosesIni.read(path), directory, source, references, options)
        for run in sharing:
            prints[run.checkpoint_dir] = common | {"--seed": str(run.seed)}
    return {
        checkpoint_dir: TuningCheckpoint(checkpoint_dir, prints[checkpoint_dir])
        for checkpoint_dir in sorted(prints, key=CheckpointDirectory.is_finished)
    }


def write_outputs(run: TuningRun, ini: MosesIni, history: Mapping[str, object]) -> None:
    """Write the outputs of a run that were requested; ``ini`` has the tuned weights."""
    if run.output_ini is not None:
        ini.write(run.output_ini)
    if run.output_history is not None:
        write_json(run.output_history, history)


def _path(value: Any) -> Any:
    return None if value is None else Path(value)
