"""Measure the effect of the comparison with nested systems in tuning on text that is not used for tuning.

Splits the dev set of a finished run into two halves (even and odd lines), tunes all systems on one half and translates
the other, in both directions. Two weight vectors are compared: that of the best iteration, and that with the highest
BLEU on the tuned half after the comparison with the same run of the nested systems. Prints a Markdown table of means
over halves and seeds.

    python benchmarks/mert_nested.py --results RUN/results --seeds 1 2 3 --work-dir DIR

The settings are those of the demo corpus. Finished runs in --work-dir are not repeated.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rnnsmt.base.io import read_json, read_lines, write_json
from rnnsmt.bleu.batch import BatchBleu
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.moses.ini import MosesIni
from rnnsmt.search import SearchOptions, decode, load_model
from rnnsmt.tuning.checkpoint import TuningCheckpoint
from rnnsmt.tuning.loop import tune
from rnnsmt.tuning.options import LoopOptions, OptimiserOptions
from rnnsmt.tuning.runs import ModelDecoder

SYSTEMS = ((), ("rnn",), ("wp",), ("rnn", "wp"), ("cslm",), ("cslm", "rnn"), ("cslm", "wp"), ("cslm", "rnn", "wp"))
"""Features of each system in addition to the baseline; nested systems come first."""

SEARCH = SearchOptions(pop_limit=150, stack_size=100, nbest=50, cslm_cells=50)


class System:
    """The model of a system, and the two halves of the dev set."""

    def __init__(self, results: Path, added: tuple[str, ...], work: Path) -> None:
        self.added, self.work = added, work
        self._columns = [name for name in added if name != "cslm"]
        dev = [list(read_lines(results / f"corpus/joined/truecased/dev.{language}.gz")) for language in ("en", "fr")]
        self.halves = [[side[half::2] for side in dev] for half in (0, 1)]
        tables = results / (f"augmented/{'_'.join(self._columns)}/network1" if self._columns else "model")
        untuned = f"augmented/{'_'.join(added)}/network1" if added else "model"
        self.ini = MosesIni.read(results / untuned / "moses.ini")
        self.model = load_model(self.ini, dev[0], tables / "filtered/dev", 1)

    def shared_name(self, score: str) -> str:
        """Return a name of a score that is equal in all systems: for added table columns, the name of the feature."""
        name, _, place = score.partition(":")
        return self._columns[int(place) - 4] if name == "TranslationModel0" and int(place) > 3 else score

    def run(self, half: int, seed: int, nested: list[dict[str, float]], loop: LoopOptions) -> dict[str, Any]:
        """Tune on a half, translate the other, and return the result; nested: tuned weights by ``shared_name``."""
        directory = self.work / "_".join(self.added or ("baseline",)) / f"{half}.{seed}"
        if (directory / "result.json").exists():
            return read_json(directory / "result.json")
        source, reference = self.halves[half]
        decoder = ModelDecoder(self.ini, source, self.model, SEARCH)
        names = [self.shared_name(score) for score in decoder.feature_names]
        weights = [np.array([one.get(name, 0.0) for name in names]) for one in nested]
        tuned = tune(
            decoder,
            BatchBleu([reference]),
            decoder.start,
            TuningCheckpoint(directory, {}),
            replace(loop, seed=seed),
            None,
            weights,
        )
        own = tuned.iterations[tuned.best_iteration - 1]
        result = {
            "own": [own["dev_bleu"], self._translate(decoder, np.array(own["weights"]), 1 - half)],
            "compared": [tuned.bleu, self._translate(decoder, tuned.weights, 1 - half)],
            "decodings": [len(tuned.iterations), len(tuned.comparisons)],
            "weights": dict(zip(names, tuned.weights.tolist(), strict=True)),
        }
        write_json(directory / "result.json", result)
        return result

    def _translate(self, decoder: ModelDecoder, weights: np.ndarray, half: int) -> float:
        """Translate a half and return its BLEU."""
        source, reference = self.halves[half]
        texts = decode(self.model, source, decoder.full(weights), replace(SEARCH, nbest=0))
        return bleu_of(BatchBleu([reference]).statistics([[one.text] for one in texts]).sum(axis=0)).bleu


def main() -> None:
    """Run the missing runs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", required=True, type=Path, help="directory results of a finished run")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], help="seeds of the runs on each half")
    parser.add_argument("--optimiser", default="mert", help="mert, mira or pro")
    parser.add_argument("--restarts", type=int, default=8, help="number of random restarts of MERT")
    parser.add_argument("--max-iterations", type=int, default=4, help="maximum number of iterations")
    parser.add_argument("--work-dir", required=True, type=Path, help="output directory")
    args = parser.parse_args()
    optimiser = OptimiserOptions(optimiser=args.optimiser, restarts=args.restarts)
    loop = LoopOptions(max_iterations=args.max_iterations, patience=9, optimiser=optimiser)
    found: dict[tuple[tuple[str, ...], int, int], dict[str, Any]] = {}
    print("| system | tuned half | other half | compared: tuned half | other half | decodings |")
    print("|---|---|---|---|---|---|")
    rows = []
    for added in SYSTEMS:
        system = System(args.results, added, args.work_dir)
        smaller = [other for other in SYSTEMS if len(other) == len(added) - 1 and set(other) < set(added)]
        for half in (0, 1):
            for seed in args.seeds:
                nested = [found[other, half, seed]["weights"] for other in smaller]
                found[added, half, seed] = system.run(half, seed, nested, loop)
        results = [found[added, half, seed] for half in (0, 1) for seed in args.seeds]
        means = np.array([[*one["own"], *one["compared"], *one["decodings"]] for one in results]).mean(axis=0)
        rows.append(means)
        print(line("_".join(added) or "baseline", means), flush=True)
    print(line("all", np.mean(rows, axis=0)))


def line(name: str, means: np.ndarray) -> str:
    """Format a row of the table."""
    return f"| {name} | " + " | ".join(f"{mean:.2f}" for mean in means[:4]) + f" | {means[4]:.1f} + {means[5]:.1f} |"


if __name__ == "__main__":
    main()
