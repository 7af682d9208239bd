"""Measure the CPU time of tuning, and the variation of its results over seeds.

The script runs the tuning loop for several seeds and settings on one model, decodes test sets with each result, and
prints two Markdown tables: BLEU as mean ± standard deviation over seeds, and CPU seconds per iteration.

    python benchmarks/mert.py --ini model/moses.ini --source val.en --reference val.fr \\
        --test test_2016_flickr.en=test_2016_flickr.fr test_2017_flickr.en=test_2017_flickr.fr \\
        --variant best:combine=best mean:combine=mean mira:optimiser=mira --seeds 1 2 3 --work-dir DIR

The settings of a variant are the fields of OptimiserOptions, patience and max_iterations.

Finished runs in --work-dir are not repeated, so seeds and variants can be added later.
"""

import argparse
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rnnsmt.base.io import read_json, write_json
from rnnsmt.base.progress import say
from rnnsmt.bleu.batch import BatchBleu
from rnnsmt.bleu.multi_bleu import bleu_of, read_texts
from rnnsmt.moses.ini import MosesIni
from rnnsmt.search import SearchOptions, decode, load_model
from rnnsmt.tuning.checkpoint import TuningCheckpoint
from rnnsmt.tuning.loop import tune
from rnnsmt.tuning.options import OPTIMISERS, LoopOptions, OptimiserOptions
from rnnsmt.tuning.runs import ModelDecoder


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ini", required=True, help="ini file with the initial weights")
    parser.add_argument("--model-dir", help="directory searched first for the model files, by base name")
    parser.add_argument("--source", required=True, help="source side of the development set")
    parser.add_argument("--reference", required=True, help="reference of the development set")
    parser.add_argument("--test", nargs="+", required=True, metavar="SOURCE=REFERENCE", help="test sets")
    parser.add_argument(
        "--variant",
        nargs="+",
        required=True,
        metavar="NAME:key=value,...",
        help="settings to compare, with their names",
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], help="seeds of the runs of each variant")
    parser.add_argument("--work-dir", required=True, help="output directory; finished runs are not repeated")
    parser.add_argument("--nbest", type=int, default=100, help="n-best list size")
    parser.add_argument("--pop-limit", type=int, default=1000, help="maximum number of hypotheses scored per stack")
    parser.add_argument("--stack", type=int, default=1000, help="maximum number of hypotheses kept per stack")
    parser.add_argument(
        "--cslm-cells", type=int, default=SearchOptions.cslm_cells, help="hypotheses per stack scored by the CSLM"
    )
    parser.add_argument("--threads", type=int, default=1, help="number of threads")
    return parser.parse_args()


def loop_of(settings: str, seed: int, threads: int) -> LoopOptions:
    """Parse the settings of a variant, ``key=value,...``; raise SystemExit for an unknown key or value."""
    values = dict(pair.partition("=")[::2] for pair in settings.split(","))
    loop: dict[str, Any] = {}
    optimiser: dict[str, Any] = {}
    for name, value in values.items():
        options, chosen = (
            (LoopOptions(), loop) if name in ("patience", "max_iterations") else (OptimiserOptions(), optimiser)
        )
        try:
            chosen[name] = type(getattr(options, name))(value)
        except (AttributeError, ValueError):
            raise SystemExit(f"--variant {settings!r}: write NAME:key=value,...; unknown: {name!r}={value!r}") from None
    if optimiser.get("optimiser", "mert") not in OPTIMISERS or optimiser.get("combine", "mean") not in ("mean", "best"):
        raise SystemExit(f"--variant: {settings}: unknown optimiser or combination")
    return LoopOptions(seed=seed, threads=threads, optimiser=OptimiserOptions(**optimiser), **loop)


class Bench:
    """One model, its development set and its test sets."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.dev, references = read_texts(args.source, [args.reference])
        self.bleu = BatchBleu(references)
        pairs = [pair.split("=") for pair in args.test]
        self.tests = [read_texts(source, [reference]) for source, reference in pairs]
        sources = [*self.dev, *(line for source, _ in self.tests for line in source)]
        self.ini = MosesIni.read(args.ini)
        self.model = load_model(self.ini, sources, args.model_dir, args.threads)
        self.options = SearchOptions(
            args.pop_limit, args.stack, threads=args.threads, nbest=args.nbest, cslm_cells=args.cslm_cells
        )

    def run(self, name: str, settings: str, seed: int) -> dict[str, Any]:
        """Tune with a seed, decode the test sets, and return the result."""
        directory = Path(self.args.work_dir) / name / str(seed)
        loop = loop_of(settings, seed, self.args.threads)
        if (directory / "result.json").exists():
            result = read_json(directory / "result.json")
            if result.get("settings", settings) != settings:
                raise SystemExit(f"{directory}: a run with other settings ({result['settings']}); choose another name")
            return result
        decoder = ModelDecoder(self.ini, self.dev, self.model, self.options)
        tuned = tune(decoder, self.bleu, decoder.start, TuningCheckpoint(directory, {"settings": settings}), loop)
        total = np.zeros(9, np.int64)
        scores = []
        for source, references in self.tests:
            translations = decode(self.model, source, decoder.full(tuned.weights), replace(self.options, nbest=0))
            rows = BatchBleu(references).statistics([[translation.text] for translation in translations]).sum(axis=0)
            scores.append(bleu_of(rows).bleu)
            total += rows
        result = {"dev": tuned.bleu, "tests": [*scores, bleu_of(total).bleu], "iterations": len(tuned.iterations)}
        result |= {"seconds": tuned.seconds, "settings": settings}
        write_json(directory / "result.json", result)
        say(f"{name}, seed {seed}: {result}")
        return result


def spread(values: list[float]) -> str:
    """Format mean ± standard deviation."""
    deviation = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.2f}{deviation}"


def main() -> None:
    """Run the missing runs and print the tables."""
    args = arguments()
    for variant in args.variant:
        loop_of(variant.partition(":")[2], 1, 1)
    bench = Bench(args)
    names = [Path(pair.split("=")[0]).name for pair in args.test] + ["all tests"]
    quality = [
        "| variant | seeds | dev | " + " | ".join(names) + " | iterations |",
        "|---|---|---|" + "---|" * (len(names) + 1),
    ]
    cost = ["| variant | optimise | decode | merge | CPU s a run |", "|---|---|---|---|---|"]
    for variant in args.variant:
        name, _, settings = variant.partition(":")
        results = [bench.run(name, settings, seed) for seed in args.seeds]
        columns = [spread([result["dev"] for result in results])]
        columns += [spread([result["tests"][place] for result in results]) for place in range(len(names))]
        columns.append(", ".join(str(result["iterations"]) for result in results))
        quality.append(f"| {name} ({settings}) | {len(results)} | " + " | ".join(columns) + " |")
        seconds = np.array([row for result in results for row in result["seconds"]])
        per_run = seconds.sum() / len(results)
        cost.append(f"| {name} | " + " | ".join(f"{part:.1f}" for part in seconds.mean(axis=0)) + f" | {per_run:.0f} |")
    print("\n".join([*quality, "", "CPU seconds an iteration:", "", *cost]))


if __name__ == "__main__":
    main()
