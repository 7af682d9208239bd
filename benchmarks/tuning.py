"""Compare rules of tuning on held-out text: BLEU and its standard deviation over seeds, order of dev BLEU, CPU time.

research/protocol.md (E6, E7) describes the measurements. The splits are those of ``held_out.py split``; its step
``run`` makes their models. A finished run is not repeated, and an interrupted one is resumed:

    python benchmarks/tuning.py run --split WORK/random1 --systems baseline rnn cslm cslm_rnn --optimiser mert \\
        --seeds 1 2 3 4 5
    python benchmarks/tuning.py report WORK/random1 WORK/random2 --variants mert mira

``run`` tunes and decodes the held-out text with the weights that each rule selects from the iterations of one run:

* ``half``: mean weights of the second half of the iterations, the result of ``rnnsmt tuning mert``;
* ``1.0.0``: the rule of version 1.0.0, ``iteration_of_1_0_0``.

The scores are written in the layout of a run of the workflow, for ``held_out.py report`` and ``archive``:
``WORK/mert-half-random1/none/results/systems/rnn/run1/test.bleu.json``.
"""

import argparse
import os
import shutil
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from rnnsmt.base.io import read_json, read_lines, write_json, write_lines
from rnnsmt.base.progress import say
from rnnsmt.bleu.batch import BatchBleu
from rnnsmt.evaluation.scores import score_output, write_score
from rnnsmt.moses.ini import MosesIni
from rnnsmt.search import SearchOptions, decode, load_model
from rnnsmt.tuning.checkpoint import TuningCheckpoint
from rnnsmt.tuning.loop import Weights, tune
from rnnsmt.tuning.options import LoopOptions, OptimiserOptions
from rnnsmt.tuning.runs import ModelDecoder

RULES = ("half", "1.0.0")
SUBSETS = [
    ("baseline", "rnn"),
    ("baseline", "cslm"),
    ("baseline", "cslm_rnn"),
    ("rnn", "cslm_rnn"),
    ("cslm", "cslm_rnn"),
]
"""Pairs of a system and one with more features."""


def iteration_of_1_0_0(iterations: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the iteration that version 1.0.0 selects.

    It stops when an iteration finds no new candidate, or when dev BLEU has not risen by 0.05 in 3 iterations, and
    selects the iteration with the highest dev BLEU so far.
    """
    for end in range(1, len(iterations) + 1):
        scores = [iteration["dev_bleu"] for iteration in iterations[:end]]
        if iterations[end - 1]["new_candidates"] == 0 or (end > 3 and max(scores) < max(scores[:-3]) + 0.05):
            break
    return max(iterations[:end], key=lambda iteration: float(iteration["dev_bleu"])) | {"stopped": end}


def variant_name(args: argparse.Namespace) -> str:
    """Return the name of the settings of a run: the optimiser, and what differs from the defaults."""
    name = str(args.optimiser)
    name += f"-{args.restarts}restarts" if args.restarts != OptimiserOptions.restarts else ""
    name += f"-{args.iterations}iterations" if args.iterations != LoopOptions.iterations else ""
    return name + (f"-network{args.network}" if args.network != 1 else "")


class System:
    """A system of a split, loaded for its dev set and its held-out text."""

    def __init__(self, split: Path, smoothing: str, name: str, network: int, threads: int) -> None:
        results = split / smoothing / "results"
        features = name.split("_") if name != "baseline" else []
        augmented = results / "augmented"
        ini = augmented / name / f"network{network}/moses.ini" if features else results / "model/moses.ini"
        tables = augmented / f"rnn/network{network}" if "rnn" in features else results / "model"
        self.split, self.name = split, name
        self.texts = {
            part: [list(read_lines(split / f"{part}.{lang}")) for lang in ("en", "fr")] for part in ("val", "test")
        }
        os.chdir(split / smoothing)  # paths in the ini are relative to the directory of the run
        self.ini = MosesIni.read(ini)
        sources = [*self.texts["val"][0], *self.texts["test"][0]]
        self.model = load_model(self.ini, sources, tables / "filtered/all", threads)
        self.options = SearchOptions(1000, 1000, threads=threads, nbest=100)
        self.decoder = ModelDecoder(self.ini, self.texts["val"][0], self.model, self.options)
        self.bleu = BatchBleu([self.texts["val"][1]])

    def translate(self, weights: Weights) -> list[str]:
        """Translate the held-out text."""
        full = self.decoder.full(weights)
        return [t.text for t in decode(self.model, self.texts["test"][0], full, replace(self.options, nbest=0))]

    def run(self, variant: str, seed: int, loop: LoopOptions) -> None:
        """Tune with a seed, and translate and score the held-out text by every rule."""
        directory = self.split / "tuning" / variant / self.name / f"run{seed}"
        tuned = tune(
            self.decoder, self.bleu, self.decoder.start, TuningCheckpoint(directory, {"variant": variant}), loop
        )
        old = iteration_of_1_0_0(tuned.iterations)
        chosen = {"half": (tuned.weights, tuned.bleu), "1.0.0": (np.array(old["weights"]), old["dev_bleu"])}
        result: dict[str, Any] = {"seconds": tuned.seconds, "stopped": old["stopped"], "iteration": old["iteration"]}
        for rule, (weights, dev) in chosen.items():
            system = scores_directory(self.split, variant, rule) / f"none/results/systems/{self.name}/run{seed}"
            system.mkdir(parents=True, exist_ok=True)
            write_lines(system / "test.output", self.translate(weights))
            score = score_output(self.name, "test", seed, str(system / "test.output"), [str(self.split / "test.fr")])
            write_score(system / "test.bleu.json", score)
            result[rule] = {"dev": dev, "test": score.bleu.bleu}
        write_json(directory / "result.json", result)
        say(f"{self.split.name} {variant} {self.name} {seed}: {result}")


def scores_directory(split: Path, variant: str, rule: str) -> Path:
    """Return the directory of the score files of a split, with the texts that `held_out.py` needs."""
    directory = split.parent / f"{variant}-{rule}-{split.name}"
    directory.mkdir(exist_ok=True)
    for name in ("test.en", "train.en"):
        if not (directory / name).exists():
            shutil.copyfile(split / name, directory / name)
    return directory


def run(args: argparse.Namespace) -> None:
    """Make the missing runs of the systems of a split."""
    split = Path(args.split).resolve()
    optimiser = OptimiserOptions(args.optimiser, args.restarts)
    variant = variant_name(args)
    for name in args.systems:
        results = split / "tuning" / variant / name
        missing = [seed for seed in args.seeds if not (results / f"run{seed}/result.json").exists()]
        if missing:
            system = System(split, "none", name, args.network, args.threads)
            for seed in missing:
                loop = LoopOptions(seed, args.iterations, args.threads, optimiser)
                system.run(variant, seed, loop)


def results_of(split: Path, variant: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield system, seed and result of every finished run."""
    for path in sorted(split.glob(f"tuning/{variant}/*/run*/result.json")):
        yield path.parent.parent.name, int(path.parent.name[3:]), read_json(path)


def report(args: argparse.Namespace) -> None:
    """Print a row for every split, variant and rule."""
    print("| split | settings | rule | runs | dev | held out | sd over seeds | superset too low | CPU s | by system |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for split, variant, rule in product(map(Path, args.split), args.variants, RULES):
        found = {(system, seed): result for system, seed, result in results_of(split, variant)}
        systems = list(dict.fromkeys(system for system, _ in found))
        tests = {name: [r[rule]["test"] for (system, _), r in found.items() if system == name] for name in systems}
        if not found:
            continue
        variances = [statistics.variance(values) for values in tests.values() if len(values) > 1]
        pairs = [
            (found[a, s][rule]["dev"], found[b, s][rule]["dev"])
            for a, b in SUBSETS
            for x, s in found
            if x == a and (b, s) in found
        ]
        # 1.0.0 ends with the iteration at which it stops; the mean of the second half has one more decoding. Runs that
        # were resumed are left out: they have only the seconds of their last process.
        whole = max(len(r["seconds"]) for r in found.values())
        seconds = [
            sum(map(sum, r["seconds"][: r["stopped"]] if rule == "1.0.0" else r["seconds"]))
            for r in found.values()
            if len(r["seconds"]) == whole
        ]
        cells = [
            split.name,
            variant,
            rule,
            str(len(found)),
            f"{statistics.fmean(r[rule]['dev'] for r in found.values()):.2f}",
        ]
        cells += [f"{statistics.fmean(map(statistics.fmean, tests.values())):.2f}"]
        cells += [f"{statistics.fmean(variances) ** 0.5:.3f}" if variances else ""]
        cells += [f"{sum(b < a - 0.05 for a, b in pairs)} of {len(pairs)}", f"{statistics.fmean(seconds):.0f}"]
        cells += [", ".join(f"{name} {statistics.fmean(values):.2f}" for name, values in tests.items())]
        print("|", " | ".join(cells), "|")


def main() -> None:
    """Parse the command line and run the subcommand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    new = commands.add_parser("run", help="tune, and translate the held-out text")
    new.add_argument("--split", required=True, help="directory of a split, with models (`held_out.py run`)")
    new.add_argument("--systems", nargs="+", default=["baseline", "rnn", "cslm", "cslm_rnn"], help="systems to tune")
    new.add_argument("--optimiser", choices=("mert", "mira"), required=True)
    new.add_argument("--restarts", type=int, default=OptimiserOptions.restarts, help="random restarts of MERT")
    new.add_argument("--iterations", type=int, default=LoopOptions.iterations)
    new.add_argument("--network", type=int, default=1, help="number of the networks")
    new.add_argument("--seeds", nargs="+", type=int, required=True)
    new.add_argument("--threads", type=int, default=1)
    new.set_defaults(function=run)
    new = commands.add_parser("report", help="print a table")
    new.add_argument("split", nargs="+", help="directories of splits")
    new.add_argument("--variants", nargs="+", default=["mert", "mira"], help="names of the settings below tuning/")
    new.set_defaults(function=report)
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
