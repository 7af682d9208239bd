"""Rescore n-best lists with a CSLM, for comparison with the same CSLM in the search.

    python benchmarks/cslm_rescoring.py --ini TUNED.ini --cslm MODEL --dev SOURCE=REFERENCE=TABLES
        --test NAME=SOURCE=REFERENCE=TABLES ... [--nbest 1000] [--unknown word] [--seeds 1 2 3]

TUNED.ini: a tuned system without CSLM. The commands are those of docs/cslm.md (Rescoring instead of searching): `search
decode` writes n-best lists of every text, `cslm rescore` adds the CSLM score, `tuning optimise` optimises the weights
on the lists of the development set, and `tuning rerank` selects the best translations. Prints tokenised BLEU, to be
compared with that of the same system tuned with the CSLM in the search.
"""

import argparse
import shlex
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rnnsmt.base.io import read_lines
from rnnsmt.bleu.multi_bleu import bleu_of, corpus_statistics, read_texts
from rnnsmt.cli import main as rnnsmt
from rnnsmt.moses.ini import Feature, MosesIni


def run(command: str) -> None:
    """Run a stage."""
    if rnnsmt(shlex.split(command)) != 0:
        raise SystemExit(f"failed: rnnsmt {command}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("ini", "cslm", "dev"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--test", nargs="+", required=True, help="test texts: NAME=SOURCE=REFERENCE=TABLES")
    parser.add_argument("--nbest", type=int, default=1000, help="n-best list size")
    parser.add_argument(
        "--unknown", choices=("class", "word"), default="class", help="probability of a word outside the shortlist"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="seeds of the optimisations")
    args = parser.parse_args()
    texts = {name: files for name, *files in (text.split("=") for text in (f"dev={args.dev}", *args.test))}
    if len(texts) != 1 + len(args.test) or any(len(files) != 3 for files in texts.values()):
        parser.error("--dev requires SOURCE=REFERENCE=TABLES, --test NAME=SOURCE=REFERENCE=TABLES with distinct names")
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        ini = MosesIni.read(args.ini)
        ini.features.append(Feature("CSLM", "CSLM0", {"name": "CSLM0", "path": str(Path(args.cslm).resolve())}))
        ini.weights["CSLM0"] = [0.0]
        ini.write(work / "with.ini")
        for name, (source, _, tables) in texts.items():
            began = time.process_time()
            run(f"search decode --ini {args.ini} --model-dir {tables} --input {source} --output {work}/{name}.out "
                f"--nbest {args.nbest} --nbest-file {work}/{name}.plain")  # fmt: skip
            cost = 1000 * (time.process_time() - began) / sum(1 for _ in read_lines(source))
            print(f"{name}: {cost:.1f} CPU ms a sentence without the CSLM, loading included")
            run(f"cslm rescore --model {args.cslm} --unknown {args.unknown} "
                f"--nbest {work}/{name}.plain --output {work}/{name}.nbest")  # fmt: skip
        runs = []
        for seed in args.seeds:
            source, reference, _ = texts["dev"]
            run(f"tuning optimise --ini {work}/with.ini --nbest {work}/dev.nbest --source {source} "
                f"--reference {reference} --output-ini {work}/{seed}.ini --seed {seed}")  # fmt: skip
            runs.append(bleu_of_all(work, f"{work}/{seed}.ini", texts))
            print(f"seed {seed}: " + ", ".join(f"{b:.2f}" for b in runs[-1]), flush=True)
    figures = zip([*texts, "all tests"], zip(*runs, strict=True), strict=True)
    print(" ".join(f"{name} {spread(scores)};" for name, scores in figures))


def spread(scores: Sequence[float]) -> str:
    """Format the mean and, for several seeds, the standard deviation."""
    deviation = f" +- {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
    return f"{statistics.fmean(scores):.2f}{deviation}"


def bleu_of_all(work: Path, ini: str, texts: dict[str, list[str]]) -> list[float]:
    """Return the BLEU of the best entries of each text, and of all tests joined."""
    sums = []
    for name, (source, reference, _) in texts.items():
        run(f"tuning rerank --ini {ini} --nbest {work}/{name}.nbest --input {source} --output {work}/{name}.best")
        found, references = read_texts(f"{work}/{name}.best", [reference])
        sums.append(corpus_statistics(found, references).sum(axis=0))
    return [bleu_of(s).bleu for s in (*sums, np.sum(sums[1:], axis=0))]


if __name__ == "__main__":
    main()
