"""Measure the CPU time of the CSLM in the search, per iteration of a MERT run, compared with the system without it.

    python benchmarks/cslm_search.py --source DEV --nbest 100
        --without results/systems/rnn results/augmented/rnn/network1/moses.ini
        --with results/systems/cslm_rnn results/augmented/cslm_rnn/network1/moses.ini
        [--normalize exact|self] [--cells 200] [--rounds 3]

--without, --with: directory of a tuned system, and its ini file before tuning. The development set is decoded with the
weights of the iterations of run1, one after the other in one process, as in MERT. The table has CPU milliseconds of the
search per sentence, n-grams requested, n-grams scored for the first time, and batches. The systems are run in turn,
with newly loaded models; the best round of each iteration is printed.
"""

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rnnsmt.base.io import read_json, read_lines
from rnnsmt.cslm.ngram_scorer import NGramScorer
from rnnsmt.moses.ini import MosesIni
from rnnsmt.search import SearchOptions, decode, load_model
from rnnsmt.search.neural import NeuralLM, total_counts


class Iteration(NamedTuple):
    """Figures of a decoding: CPU milliseconds per sentence, n-grams, batches, sum of the best model scores."""

    milliseconds: float
    requested: int
    scored: int
    batches: int
    score: float


def measure(
    directory: str, ini: str, sources: list[str], options: SearchOptions, normalize: bool | None
) -> list[Iteration]:
    """Decode with the weights of each iteration of run1, with an empty n-gram cache before the first."""
    history = read_json(Path(directory) / "run1" / "history.json")
    untuned = MosesIni.read(ini)
    table = untuned.file_of(next(f for f in untuned.features if f.name == "TranslationModel0"))
    model = load_model(untuned, sources, table.parent / "filtered" / "dev")
    if model.neural and normalize is not None:
        cslm = next(f for f in model.ini.features if f.kind == "CSLM")
        scorer = NGramScorer(model.ini.file_of(cslm), normalize=normalize)
        model.neural = [NeuralLM(cslm.name, scorer)]
    tuned = [model.feature_names.index(name) for name in history["features"]]
    decode(model, sources[:5], model.weights(model.ini), options)  # compiles the kernels
    before = total_counts(model.neural)
    found = []
    for iteration in history["iterations"]:
        weights = model.weights(model.ini).copy()
        weights[tuned] = iteration["weights"]
        start = time.process_time()
        results = decode(model, sources, weights, options)
        seconds = time.process_time() - start
        after = total_counts(model.neural)
        asked, scored, batches = np.subtract(after, before).tolist()
        before = after
        found.append(Iteration(1000 * seconds / len(sources), asked, scored, batches, sum(r.score for r in results)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, help="source side of the development set")
    parser.add_argument("--without", nargs=2, required=True, metavar=("SYSTEM", "INI"), help="system without CSLM")
    parser.add_argument(
        "--with", nargs=2, metavar=("SYSTEM", "INI"), dest="with_", required=True, help="system with CSLM"
    )
    parser.add_argument("--nbest", type=int, default=100, help="n-best list size")
    parser.add_argument(
        "--cells", type=int, default=SearchOptions.cslm_cells, help="hypotheses per stack scored by the CSLM"
    )
    parser.add_argument("--in-flight", type=int, default=SearchOptions.in_flight, help="sentences decoded at once")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds; the best is printed")
    parser.add_argument("--normalize", choices=("exact", "self"), help="override the normalisation of the model")
    args = parser.parse_args()
    options = SearchOptions(nbest=args.nbest, cslm_cells=args.cells, in_flight=args.in_flight)
    sources = list(read_lines(args.source))
    normalize = {"exact": True, "self": False, None: None}[args.normalize]
    systems = [args.without, args.with_]
    for option, (_, ini), wanted in (("--without", args.without, False), ("--with", args.with_, True)):
        if any(feature.kind == "CSLM" for feature in MosesIni.read(ini).features) != wanted:
            parser.error(f"{option}: {ini} has {'no' if wanted else 'a'} CSLM")
    rounds = [[measure(name, ini, sources, options, normalize) for name, ini in systems] for _ in range(args.rounds)]
    without, with_ = [[min(turn) for turn in zip(*(found[k] for found in rounds), strict=True)] for k in range(2)]
    print("| iteration | without | with | ratio | n-grams asked for | scored first | known | batches | sum of scores |")
    print("|---|---|---|---|---|---|---|---|---|")
    for number, (plain, neural) in enumerate(zip(without, with_, strict=False), 1):  # a MERT run may be longer
        known = 1 - neural.scored / max(neural.requested, 1)
        print(
            f"| {number} | {plain.milliseconds:.2f} | {neural.milliseconds:.2f} | "
            f"{neural.milliseconds / plain.milliseconds:.2f} | {neural.requested:,} | {neural.scored:,} | {known:.1%} "
            f"| {neural.batches} | {neural.score:.2f} |"
        )


if __name__ == "__main__":
    main()
