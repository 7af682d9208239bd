"""Compare rules of tuning on held-out text: BLEU and its standard deviation over seeds, order of dev BLEU, CPU time.

research/protocol.md (E6, E7) describes the measurements. The splits are those of ``held_out.py split``; its step
``run`` makes their models. A finished run is not repeated, and an interrupted one is resumed:

    python benchmarks/tuning.py run --split WORK/random1 --systems baseline rnn cslm cslm_rnn --optimiser mert \\
        --seeds 1 2 3 4 5
    python benchmarks/tuning.py report WORK/random1 WORK/random2 --variants mert mira

``moses`` tunes with Moses' ``mert-moses.pl`` (MOSES has bin/mert, bin/extractor and scripts/); rnnsmt's search decodes:

    python benchmarks/tuning.py moses --split WORK/fresh1 --moses MOSES --systems baseline rnn --seeds 1 2

``run`` tunes and decodes the held-out text with the weights that each rule selects from the iterations of one run:

* ``half``: mean weights of the second half of the iterations, the result of ``rnnsmt tuning mert``;
* ``1.0.0``: the rule of version 1.0.0, ``iteration_of_1_0_0``.

The scores are written in the layout of a run of the workflow, for ``held_out.py report`` and ``archive``:
``WORK/mert-half-random1/none/results/systems/rnn/run1/test.bleu.json``.
"""

import argparse
import copy
import os
import resource
import shutil
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from rnnsmt.base.io import read_json, read_lines, write_json, write_lines
from rnnsmt.base.progress import say
from rnnsmt.bleu.batch import BatchBleu
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.evaluation.scores import score_output, write_score
from rnnsmt.moses.ini import MosesIni
from rnnsmt.search import SearchOptions, decode, load_model
from rnnsmt.tuning.checkpoint import TuningCheckpoint
from rnnsmt.tuning.loop import Weights, tune
from rnnsmt.tuning.options import LoopOptions, OptimiserOptions
from rnnsmt.tuning.runs import ModelDecoder

DECODER = Path(__file__).resolve().with_name("mert_moses.py")
"""The program that `mert-moses.pl` runs as `moses`."""
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
        self.tables = tables / "filtered/all"
        self.texts = {
            part: [list(read_lines(split / f"{part}.{lang}")) for lang in ("en", "fr")] for part in ("val", "test")
        }
        os.chdir(split / smoothing)  # paths in the ini are relative to the directory of the run
        self.ini = MosesIni.read(ini)
        sources = [*self.texts["val"][0], *self.texts["test"][0]]
        self.model = load_model(self.ini, sources, self.tables, threads)
        self.options = SearchOptions(1000, 1000, threads=threads, nbest=100)
        self.decoder = ModelDecoder(self.ini, self.texts["val"][0], self.model, self.options)
        self.bleu = BatchBleu([self.texts["val"][1]])

    def translate(self, weights: Weights, part: str = "test") -> list[str]:
        """Translate the held-out text or the dev set."""
        full = self.decoder.full(weights)
        return [t.text for t in decode(self.model, self.texts[part][0], full, replace(self.options, nbest=0))]

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
            result[rule] = {"dev": dev, "test": self.score(f"{variant}-{rule}", seed, weights)}
        write_json(directory / "result.json", result)
        say(f"{self.split.name} {variant} {self.name} {seed}: {result}")

    def score(self, variant: str, seed: int, weights: Weights) -> float:
        """Translate the held-out text, write the score file of a run, and return BLEU."""
        system = scores_directory(self.split, variant) / f"none/results/systems/{self.name}/run{seed}"
        system.mkdir(parents=True, exist_ok=True)
        write_lines(system / "test.output", self.translate(weights))
        score = score_output(self.name, "test", seed, str(system / "test.output"), [str(self.split / "test.fr")])
        write_score(system / "test.bleu.json", score)
        return float(score.bleu.bleu)

    def run_moses(self, moses: Path, seed: int) -> None:
        """Tune with `mert-moses.pl`, and translate and score dev and held-out text with the weights that it writes."""
        directory = self.split / "tuning/moses" / self.name / f"run{seed}"
        shutil.rmtree(directory, ignore_errors=True)  # mert-moses.pl would reuse files of an interrupted run
        programs = directory / "programs"
        programs.mkdir(parents=True)
        for name in ("extractor", "pro", "kbmira", "evaluator"):  # it asks for all of them, and runs the first
            (programs / name).symlink_to(moses / "bin/extractor")
        # other random starts in every iteration, as without -r, but the same ones whenever the run is repeated
        (programs / "mert").write_text(
            f"""#!/bin/sh
iteration=$(echo "$*" | sed -n 's/.*--ifile run\\([0-9]*\\)\\.init.*/\\1/p')
exec {moses}/bin/mert -r $(({seed} * 1000 + iteration)) "$@"
"""
        )
        (programs / "mert").chmod(0o755)
        ini = copy.deepcopy(self.ini)
        for feature in ini.features:
            if "path" in feature.options:
                feature.options["path"] = str(self.ini.file_of(feature).resolve())
        ini.write(directory / "start.ini")
        script = moses / "scripts/training/mert-moses.pl"
        command = [
            "perl", str(script), str(self.split / "val.en"), str(self.split / "val.fr"),
            str(DECODER), str(directory / "start.ini"), "--nbest=100",
            f"--working-dir={directory / 'work'}", f"--mertdir={programs}", f"--rootdir={moses / 'scripts'}",
            "--no-filter-phrase-table", "--maximum-iterations=25",
        ]  # fmt: skip
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with (directory / "log").open("w") as log:
            environment = {**os.environ, "TABLES": str(self.tables)}
            subprocess.run(command, check=True, stdout=log, stderr=log, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        tuned = MosesIni.read(directory / "work/moses.ini")
        weights = np.array([tuned.weight(name) for name in self.decoder.feature_names])
        dev = self.bleu.statistics([[text] for text in self.translate(weights, "val")]).sum(axis=0)
        result = {
            "seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "decodings": len(list((directory / "work").glob("run*.best100.out.gz"))),
            "moses": {"dev": bleu_of(dev).bleu, "test": self.score("moses", seed, weights)},
        }
        write_json(directory / "result.json", result)
        say(f"{self.split.name} mert-moses.pl {self.name} {seed}: {result}")


def scores_directory(split: Path, variant: str) -> Path:
    """Return the directory of the score files of a split, with the texts that `held_out.py` needs."""
    directory = split.parent / f"{variant}-{split.name}"
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


def run_moses(args: argparse.Namespace) -> None:
    """Make the missing runs of `mert-moses.pl` on the systems of a split."""
    split, moses = Path(args.split).resolve(), Path(args.moses).resolve()
    for name in args.systems:
        missing = [seed for seed in args.seeds if not (split / f"tuning/moses/{name}/run{seed}/result.json").exists()]
        if missing:
            system = System(split, "none", name, args.network, args.threads)
            for seed in missing:
                system.run_moses(moses, seed)


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
    new = commands.add_parser("moses", help="tune with mert-moses.pl, and translate the held-out text")
    new.add_argument("--split", required=True, help="directory of a split, with models (`held_out.py run`)")
    new.add_argument("--moses", required=True, metavar="DIR", help="directory with bin/mert, bin/extractor, scripts/")
    new.add_argument("--systems", nargs="+", default=["baseline", "rnn"], help="systems to tune")
    new.add_argument("--network", type=int, default=1, help="number of the networks")
    new.add_argument("--seeds", nargs="+", type=int, required=True)
    new.add_argument("--threads", type=int, default=1)
    new.set_defaults(function=run_moses)
    new = commands.add_parser("report", help="print a table")
    new.add_argument("split", nargs="+", help="directories of splits")
    new.add_argument("--variants", nargs="+", default=["mert", "mira"], help="names of the settings below tuning/")
    new.set_defaults(function=report)
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
