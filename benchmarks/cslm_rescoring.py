"""What the CSLM inside the search is worth beyond rescoring n-best lists with the same CSLM.

    python benchmarks/cslm_rescoring.py --ini TUNED.ini --cslm MODEL --model-dir DEV_TABLES --source DEV
        --reference DEV_REFERENCE --test NAME=SOURCE=REFERENCE=TABLES ... [--nbest 1000] [--seeds 1 2 3]

TUNED.ini: a system without CSLM, tuned. Its n-best lists of the development set get the CSLM's score as one more
feature; weights are then optimised on these fixed lists (as one iteration of MERT does), and the best entries of the
test sets' lists scored. Compare with the same system tuned with the CSLM in the search. Tokenised BLEU.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from rnnsmt.evaluation.batch_bleu import BatchBleu
from rnnsmt.evaluation.bleu import read_texts
from rnnsmt.evaluation.multi_bleu import bleu_of
from rnnsmt.moses.ini import Feature, MosesIni
from rnnsmt.search import SearchOptions, decode, load_model
from rnnsmt.tuning.nbest_pool import NbestPool, lump_of
from rnnsmt.tuning.optimise import OptimiserOptions, active_features, optimise


class Lists:
    """n-best lists of one text with all features, the CSLM's among them (its weight is 0 in the search)."""

    def __init__(self, ini: MosesIni, tables: str, source: str, reference: str, nbest: int) -> None:
        sources, references = read_texts(source, [reference])
        model = load_model(ini, sources, tables)
        start = time.process_time()
        found = decode(model, sources, model.initial_weights, SearchOptions(nbest=nbest))
        self.seconds = time.process_time() - start
        self.names = model.feature_names
        self.texts = [t.nbest.texts or [t.text] for t in found]
        self.features = [t.nbest.features if t.nbest.texts else t.features[None] for t in found]
        self.bleu = BatchBleu(references)
        self.weights = model.initial_weights

    def best(self, weights: np.ndarray) -> np.ndarray:
        """BLEU's statistics [S, 9] of the best entries."""
        chosen = [t[int(np.argmax(f @ weights))] for t, f in zip(self.texts, self.features, strict=True)]
        return self.bleu.statistics([[text] for text in chosen])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("ini", "cslm", "model-dir", "source", "reference"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--test", nargs="+", required=True)
    parser.add_argument("--nbest", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    args = parser.parse_args()
    ini = MosesIni.read(args.ini)
    ini.features.append(Feature("CSLM", "CSLM0", {"name": "CSLM0", "path": str(Path(args.cslm).resolve())}))
    ini.weights["CSLM0"] = [0.0]

    dev = Lists(ini, args.model_dir, args.source, args.reference, args.nbest)
    tests = {}
    for test in args.test:
        name, source, reference, tables = test.split("=")
        tests[name] = Lists(ini, tables, source, reference, args.nbest)
    tuned = np.array([not name.startswith("UnknownWordPenalty") for name in dev.names])
    pool = NbestPool(len(dev.texts), int(tuned.sum()))
    pool.add(lump_of([f[:, tuned] for f in dev.features], dev.bleu.statistics(dev.texts)))
    flat = pool.flat()
    print(f"n-best {args.nbest}: {len(pool):,} entries; CPU s a sentence of dev: {dev.seconds / len(dev.texts):.4f}")
    runs = []
    for seed in args.seeds:
        found = optimise(flat, [dev.weights[tuned]], active_features(flat), [seed, 1], OptimiserOptions(), 1)
        weights = dev.weights.copy()
        weights[tuned] = found.weights
        statistics = [lists.best(weights) for lists in (dev, *tests.values())]
        joint = np.concatenate(statistics[1:]).sum(axis=0)
        runs.append([bleu_of(s.sum(axis=0)).bleu for s in statistics] + [bleu_of(joint).bleu])
        print(f"seed {seed}: " + ", ".join(f"{b:.2f}" for b in runs[-1]), flush=True)
    names = ["dev", *tests, "all tests"]
    print(
        " ".join(
            f"{n} {m:.2f} +- {s:.2f};" for n, m, s in zip(names, np.mean(runs, 0), np.std(runs, 0, ddof=1), strict=True)
        )
    )


if __name__ == "__main__":
    main()
