"""The runs of ``tuning mert``: seeds, files and nested models of each, and the runs that share a model."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rnnsmt.base.io import InputError, write_json
from rnnsmt.base.state_folder import StateFolder
from rnnsmt.base.stopping import Stop
from rnnsmt.bleu.batch import BatchBleu
from rnnsmt.moses.ini import MosesIni
from rnnsmt.tuning.loop import Tuned, tune
from rnnsmt.tuning.model_decoder import ModelDecoder
from rnnsmt.tuning.options import LoopOptions
from rnnsmt.tuning.state import TuningState, fingerprint
from rnnsmt.tuning.weights import in_order, nested_weights


@dataclass(frozen=True)
class TuningRun:
    """One run.

    Attributes:
        number: number of the run, from 1.
        seed: random seed.
        ini: moses.ini with the initial weights.
        model_dir: directory that overrides the model files, None for none.
        output_ini, output_history: output files.
        state_dir: checkpoint directory.
        nested: weights of nested models by score name, see ``nested_weights``.
    """

    number: int
    seed: int
    ini: str
    model_dir: str | None
    output_ini: str
    output_history: str
    state_dir: str
    nested: list[dict[str, float]]

    def tune(
        self, decoder: ModelDecoder, bleu: BatchBleu, state: TuningState, options: LoopOptions, stop: Stop
    ) -> Tuned:
        """Tune, and write the outputs; arguments as of ``loop.tune``."""
        nested = [in_order(weights, decoder.feature_names) for weights in self.nested]
        tuned = tune(decoder, bleu, decoder.start, state, options, stop, nested)
        decoder.set_weights(tuned.weights)
        decoder.ini.write(self.output_ini)
        write_json(self.output_history, tuned.history(decoder.feature_names, self.seed))
        state.finish()
        return tuned


def tuning_runs(args: argparse.Namespace) -> list[TuningRun]:
    """Return the runs that a command line requests.

    Raises:
        InputError: an option is not given once for each run.
    """
    count = len(args.seed)
    if not count == len(args.output_ini) == len(args.output_history) == len(args.state_dir):
        raise InputError(
            "--seed, --output-ini, --output-history and --state-dir: give as many of each as there are runs"
        )
    folders = _one_a_run("--model-dir", args.model_dir or [None], count)
    inis = _one_a_run("--ini", args.ini, count)
    nested = _nested_of_runs(MosesIni.read(args.ini[0]), args.nested_ini, args.nested_columns, count)
    of_each = zip(args.seed, inis, folders, args.output_ini, args.output_history, args.state_dir, nested, strict=True)
    return [TuningRun(number, *values) for number, values in enumerate(of_each, 1)]


def by_model(runs: Sequence[TuningRun]) -> dict[tuple[str, str | None], list[TuningRun]]:
    """Return the runs by their ini and model directory, in order of first appearance."""
    groups: dict[tuple[str, str | None], list[TuningRun]] = {}
    for run in runs:
        groups.setdefault((run.ini, run.model_dir), []).append(run)
    return groups


def open_states(runs: Sequence[TuningRun], args: argparse.Namespace) -> dict[str, TuningState]:
    """Open the checkpoint directories of runs, by path; interrupted runs first.

    These may refuse to continue with other settings, which must happen before a finished run starts over.

    Raises:
        InputError: see ``TuningState``.
    """
    prints = {}
    for (path, folder), sharing in by_model(runs).items():
        common = fingerprint(args, MosesIni.read(path), folder)
        for run in sharing:
            prints[run.state_dir] = common | {"--seed": str(run.seed)}
    return {place: TuningState(place, prints[place]) for place in sorted(prints, key=StateFolder.is_finished)}


def _one_a_run(option: str, given: list[Any], runs: int) -> list[Any]:
    """Return the value of an option for each run; it is given once, or once for each run.

    Raises:
        InputError: it is given neither once nor once for each run.
    """
    if len(given) not in (1, runs):
        raise InputError(f"{option}: {len(given)} given; give one, or one for each of the {runs} runs")
    return given * (runs if len(given) == 1 else 1)


def _nested_of_runs(
    ini: MosesIni, files: Sequence[Sequence[str]], columns: Sequence[Sequence[int]], runs: int
) -> list[list[dict[str, float]]]:
    """Return ``nested_weights`` of every nested model for every run, from ``--nested-ini`` and ``--nested-columns``.

    Args:
        ini: the full model.
        files: for every nested model, the ini of every run.
        columns: for every nested model, the columns as in ``nested_weights``; or empty.
        runs: number of runs.

    Raises:
        InputError: the number of files differs from the number of runs, or the number of column lists from the number
            of nested models; see also ``nested_weights``.
    """
    for paths in files:
        if len(paths) != runs:
            raise InputError(f"--nested-ini {' '.join(paths)}: give one file of every run; there are {runs}")
    if columns and len(columns) != len(files):
        raise InputError("--nested-columns: give it once for every --nested-ini, or omit it")
    return [
        [
            nested_weights(ini, MosesIni.read(paths[run]), columns[number] if columns else None)
            for number, paths in enumerate(files)
        ]
        for run in range(runs)
    ]
