"""Compare optimizers on held-out text: dev and held-out BLEU, standard deviation over seeds, CPU time.

research/protocol.md (E10, E11) describes the measurements. The splits are those of ``held_out.py split``; its step
``run`` makes their models. A finished run is not repeated, and an interrupted one is resumed:

    python benchmarks/tuning.py run --split WORK/fresh1 --optimizer mert --seeds 1 2
    python benchmarks/tuning.py moses --split WORK/fresh1 --moses MOSES --systems baseline rnn --seeds 1 2
    python benchmarks/tuning.py pool --split WORK/fresh1 --moses MOSES --system baseline --seed 1
    python benchmarks/tuning.py report WORK/fresh1 WORK/fresh2
    python benchmarks/tuning.py agreement WORK/fresh1 WORK/fresh2 --seeds 1 2 3 4 5

``run`` tunes as ``rnnsmt tuning tune``, and translates the held-out text. ``moses`` tunes with Moses' ``mert-moses.pl``
(MOSES has bin/mert, bin/extractor and scripts/); rnnsmt's search decodes. ``pool`` optimises on the n-best lists that
``mert-moses.pl`` has left, from the same starting points with Moses' ``mert`` and rnnsmt's. ``agreement`` compares the
runs of both.

The scores are written in the layout of a run of the workflow, for ``held_out.py report`` and ``archive``:
``WORK/mert-fresh1/none/results/systems/rnn/run1/test.bleu.json``.
"""

import argparse
import copy
import os
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.progress import say
from rnnsmt.base.reading import read_json, read_lines
from rnnsmt.base.writing import write_json, write_lines
from rnnsmt.bleu.batch import BatchBleu
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.config.sections import default_iterations
from rnnsmt.evaluation.scores import score_output, write_score
from rnnsmt.formats.ini import MosesIni
from rnnsmt.registries import OPTIMIZERS
from rnnsmt.search.decoder import decode
from rnnsmt.search.model import load_model
from rnnsmt.search.options import SearchOptions
from rnnsmt.tuning import mert
from rnnsmt.tuning.checkpoint import TuningCheckpoint
from rnnsmt.tuning.loop import tune
from rnnsmt.tuning.nbest_pool import FlatPool, NbestPool, Weights, candidate_batch, normalised
from rnnsmt.tuning.options import LoopOptions, OptimizerOptions
from rnnsmt.tuning.runs import ModelDecoder

DECODER = Path(__file__).resolve().with_name("mert_moses.py")
"""The program that `mert-moses.pl` runs as `moses`."""
MERT_MOSES = "moses"
"""Directory of the runs of ``mert-moses.pl``."""
SUBSETS = [
    ("baseline", "rnn"),
    ("baseline", "cslm"),
    ("baseline", "cslm_rnn"),
    ("rnn", "cslm_rnn"),
    ("cslm", "cslm_rnn"),
]
"""Pairs of a system and one with more features."""


class System:
    """A system of a split, loaded for its dev set and its held-out text."""

    def __init__(self, split: Path, smoothing: str, name: str, threads: int) -> None:
        results = split / smoothing / "results"
        features = name.split("_") if name != "baseline" else []
        augmented = results / "augmented"
        ini = augmented / name / "network1/moses.ini" if features else results / "model/moses.ini"
        tables = augmented / "rnn/network1" if "rnn" in features else results / "model"
        self.split, self.name = split, name
        self.tables = tables / "selected/all"
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

    def run(self, optimizer: str, seed: int, loop: LoopOptions) -> None:
        """Tune with a seed, and translate and score the held-out text."""
        directory = self.split / "tuning" / optimizer / self.name / f"run{seed}"
        checkpoint = TuningCheckpoint(directory, {"optimizer": optimizer})
        tuned = tune(self.decoder, self.bleu, self.decoder.start, checkpoint, loop)
        result = {
            "seconds": sum(map(sum, tuned.seconds)),
            "decodings": len(tuned.seconds),
            "dev": tuned.bleu,
            "test": self.score(optimizer, seed, tuned.weights),
        }
        write_json(directory / "result.json", result)
        say(f"{self.split.name} {optimizer} {self.name} {seed}: {result}")

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
        directory = self.split / "tuning" / MERT_MOSES / self.name / f"run{seed}"
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
            "dev": bleu_of(dev).bleu,
            "test": self.score(MERT_MOSES, seed, weights),
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


def missing(args: argparse.Namespace, optimizer: str) -> Iterator[tuple[System, list[int]]]:
    """Yield the systems of a split that lack runs, and the seeds of these runs."""
    split = Path(args.split).resolve()
    for name in args.systems:
        results = split / "tuning" / optimizer / name
        seeds = [seed for seed in args.seeds if not (results / f"run{seed}/result.json").exists()]
        if seeds:
            yield System(split, "none", name, args.threads), seeds


def run(args: argparse.Namespace) -> None:
    """Make the missing runs of the systems of a split."""
    options = OptimizerOptions(args.optimizer)
    for system, seeds in missing(args, args.optimizer):
        for seed in seeds:
            loop = LoopOptions(seed, default_iterations(args.optimizer), args.threads, options)
            system.run(args.optimizer, seed, loop)


def run_moses(args: argparse.Namespace) -> None:
    """Make the missing runs of `mert-moses.pl` on the systems of a split."""
    moses = Path(args.moses).resolve()
    for system, seeds in missing(args, MERT_MOSES):
        for seed in seeds:
            system.run_moses(moses, seed)


def rows_of(path: Path, kind: str) -> list[NDArray[np.float64]]:
    """Read the numbers of every sentence ``[n, k]`` of a file of Moses' ``extractor``."""
    found: list[list[list[float]]] = []
    for line in path.read_text().splitlines():
        if line.startswith(f"{kind}_TXT_BEGIN"):
            found.append([])
        elif not line.startswith(f"{kind}_TXT_END"):
            found[-1].append([float(word) for word in line.split()])
    return [np.array(rows) for rows in found]


MOSES_ORDER = [0, 2, 4, 6, 1, 3, 5, 7, 8]
"""Places of matches, totals and reference length in Moses' BLEU statistics."""


def pool_of(work: Path, iterations: int) -> FlatPool:
    """Return the n-best lists of the first iterations of a run of `mert-moses.pl`."""
    pool = None
    for number in range(1, iterations + 1):
        features = rows_of(work / f"run{number}.features.dat", "FEATURES")
        statistics = np.concatenate(rows_of(work / f"run{number}.scores.dat", "SCORES"))[:, MOSES_ORDER]
        pool = pool or NbestPool(len(features), features[0].shape[1])
        pool.add(candidate_batch(features, statistics.astype(np.int32)))
    assert pool is not None
    return pool.flat()


def optima_of_moses(moses: Path, work: Path, number: int, starts: list[Weights]) -> tuple[list[float], str, float]:
    """Run Moses' `mert` on the lists of the first iterations of a run of `mert-moses.pl`.

    Returns:
        BLEU (0 to 1) of the optimum of every start, the line of the best point, and CPU seconds.
    """
    size = len(starts[0])
    files = [
        ",".join(str(work / f"run{k}.{name}.dat") for k in range(1, number + 1)) for name in ("features", "scores")
    ]
    with tempfile.TemporaryDirectory() as directory:
        for index, start in enumerate(starts):
            rows = (start, np.zeros(size), np.ones(size))
            write_lines(Path(directory) / f"start{index}", (" ".join(map(repr, map(float, row))) for row in rows))
        command = [
            str(moses / "bin/mert"), "-d", str(size), "-n", "0", "-r", "1", "-v", "3", "--scconfig", "case:true",
            "--ffile", files[0], "--scfile", files[1],
            "--ifile", ",".join(f"start{index}" for index in range(len(starts))),
        ]  # fmt: skip
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        log = subprocess.run(command, check=True, cwd=directory, capture_output=True, text=True).stderr
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    values = [float(value) for value in re.findall(r"Ending point: .*=> ([\d.e-]+)", log)]
    (best,) = re.findall(r"Best point:.*", log)
    return values, best, after.ru_utime - before.ru_utime


def pool(args: argparse.Namespace) -> None:
    """Print BLEU of the optima of Moses' and rnnsmt's `mert` for every iteration of a run of `mert-moses.pl`."""
    work = Path(args.split).resolve() / "tuning" / MERT_MOSES / args.system / f"run{args.seed}/work"
    head = ["iteration", "candidates", "mert", "rnnsmt", "optima equal to 1e-6", "largest difference of a weight"]
    print("| " + " | ".join([*head, "CPU s of mert, rnnsmt"]) + " |\n" + "|---" * 7 + "|")
    for number in range(1, len(list(work.glob("run*.features.dat"))) + 1):
        flat = pool_of(work, number)
        size = len(flat.features)
        first = np.array((work / f"run{number}.init.opt").read_text().split()[:size], np.float64)
        rng = np.random.default_rng([args.seed, number])
        starts = [first, *(rng.random(size) for _ in range(OptimizerOptions.restarts))]
        values, best, seconds = optima_of_moses(Path(args.moses).resolve(), work, number, starts)
        began = time.process_time()
        extremes = mert.extremes_of(flat)
        optima = [mert.search(flat, extremes, start, np.ones(size, bool)) for start in starts]
        own = time.process_time() - began
        ours = max(optima, key=lambda one: one.value)
        *weights, _, value = best.removeprefix("Best point:").split()
        change = np.abs(normalised(ours.weights.astype(float)) - np.array(weights, float)).max()
        equal = sum(abs(a - b.value) < 1e-6 for a, b in zip(values, optima, strict=True))
        cells = [str(number), f"{len(flat.statistics):,}", f"{100 * float(value):.3f}", f"{100 * ours.value:.3f}"]
        cells += [f"{equal} of {len(starts)}", f"{change:.1e}", f"{seconds:.0f}, {own:.0f}"]
        print("|", " | ".join(cells), "|", flush=True)


Runs = dict[tuple[str, int], dict[str, Any]]
"""Results of runs by system and seed."""


def results_of(split: Path, optimizer: str) -> Runs:
    """Return the results of the finished runs."""
    paths = sorted(split.glob(f"tuning/{optimizer}/*/run*/result.json"))
    return {(path.parent.parent.name, int(path.parent.name[3:])): read_json(path) for path in paths}


def report(args: argparse.Namespace) -> None:
    """Print a row for every split and optimizer."""
    head = ["split", "optimizer", "runs", "dev", "held out", "sd over seeds", "superset too low", "decodings", "CPU s"]
    print("| " + " | ".join([*head, "by system"]) + " |\n" + "|---" * 10 + "|")
    for split, optimizer in product(map(Path, args.split), (MERT_MOSES, *OPTIMIZERS)):
        found = {
            key: result
            for key, result in results_of(split, optimizer).items()
            if not args.seeds or key[1] in args.seeds
        }
        if not found:
            continue
        systems = list(dict.fromkeys(system for system, _ in found))
        tests = {name: [r["test"] for (system, _), r in found.items() if system == name] for name in systems}
        variances = [statistics.variance(values) for values in tests.values() if len(values) > 1]
        pairs = [
            (found[a, s]["dev"], found[b, s]["dev"]) for a, b in SUBSETS for x, s in found if x == a and (b, s) in found
        ]
        cells = [split.name, optimizer, str(len(found)), f"{statistics.fmean(r['dev'] for r in found.values()):.2f}"]
        cells += [f"{statistics.fmean(map(statistics.fmean, tests.values())):.2f}"]
        cells += [f"{statistics.fmean(variances) ** 0.5:.3f}" if variances else ""]
        cells += [f"{sum(b < a - 0.05 for a, b in pairs)} of {len(pairs)}"]
        cells += [f"{statistics.fmean(r['decodings'] for r in found.values()):.1f}"]
        cells += [f"{statistics.fmean(r['seconds'] for r in found.values()):.0f}"]
        cells += [", ".join(f"{name} {statistics.fmean(values):.2f}" for name, values in tests.items())]
        print("|", " | ".join(cells), "|")


def agreement(args: argparse.Namespace) -> None:
    """Print dev and held-out BLEU of `mert` minus those of `mert-moses.pl`, with Welch's interval over seeds."""
    from scipy import stats

    differences: list[float] = []
    variances: dict[tuple[str, str], list[float]] = defaultdict(list)
    costs: dict[str, list[float]] = defaultdict(list)
    print("| split | system | text | mert-moses.pl | mert | difference (95 %, seeds) |\n" + "|---" * 6 + "|")
    for split in map(Path, args.split):
        runs = {name: results_of(split, key) for name, key in (("mert-moses.pl", MERT_MOSES), ("mert", "mert"))}
        for system, text in product(("baseline", "rnn"), ("dev", "test")):
            both = {name: [found[system, seed][text] for seed in args.seeds] for name, found in runs.items()}
            welch = stats.ttest_ind(both["mert"], both["mert-moses.pl"], equal_var=False).confidence_interval()
            difference = statistics.fmean(both["mert"]) - statistics.fmean(both["mert-moses.pl"])
            differences.append(difference)
            for name, values in both.items():
                variances[name, text].append(statistics.variance(values))
                costs[name] += [runs[name][system, seed]["seconds"] for seed in args.seeds]
            shown = [f"{statistics.fmean(values):.2f} ± {statistics.stdev(values):.2f}" for values in both.values()]
            interval = f"{difference:+.2f} ({welch.low:+.2f} to {welch.high:+.2f})"
            print("|", " | ".join([split.name, system, {"test": "held out"}.get(text, text), *shown, interval]), "|")
    print(f"mean over the {len(differences)} cells: {statistics.fmean(differences):+.2f}")
    for name, seconds in costs.items():
        dev, test = (statistics.fmean(variances[name, text]) ** 0.5 for text in ("dev", "test"))
        print(
            f"{name}: sd over seeds {dev:.2f} on dev, {test:.2f} held out; {statistics.fmean(seconds):.0f} CPU s a run"
        )


def main() -> None:
    """Parse the command line and run the subcommand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)

    def tunes(name: str, function: Callable[[argparse.Namespace], None], text: str, systems: list[str]) -> Any:
        new = commands.add_parser(name, help=text)
        new.add_argument("--split", required=True, help="directory of a split, with models (`held_out.py run`)")
        new.add_argument("--systems", nargs="+", default=systems, help="systems to tune")
        new.add_argument("--seeds", nargs="+", type=int, required=True)
        new.add_argument("--threads", type=int, default=1)
        new.set_defaults(function=function)
        return new

    def moses(new: argparse.ArgumentParser) -> None:
        new.add_argument("--moses", required=True, metavar="DIR", help="has bin/mert, bin/extractor and scripts/")

    new = tunes("run", run, "tune, and translate the held-out text", ["baseline", "rnn", "cslm", "cslm_rnn"])
    new.add_argument("--optimizer", choices=OPTIMIZERS, required=True)
    moses(tunes("moses", run_moses, "tune with mert-moses.pl, and translate the held-out text", ["baseline", "rnn"]))
    new = commands.add_parser("pool", help="compare one optimisation on the n-best lists of `mert-moses.pl`")
    new.add_argument("--split", required=True, help="directory of a split with runs of `moses`")
    new.add_argument("--system", default="baseline")
    new.add_argument("--seed", type=int, default=1)
    moses(new)
    new.set_defaults(function=pool)
    new = commands.add_parser("report", help="print a table")
    new.add_argument("split", nargs="+", help="directories of splits")
    new.add_argument("--seeds", nargs="+", type=int, help="seeds to use (default: all)")
    new.set_defaults(function=report)
    new = commands.add_parser("agreement", help="compare the runs of `mert` with those of `mert-moses.pl`")
    new.add_argument("split", nargs="+", help="directories of splits")
    new.add_argument("--seeds", nargs="+", type=int, required=True)
    new.set_defaults(function=agreement)
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
