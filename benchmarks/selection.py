"""Evaluate data selection: LM perplexity with the selected part of a pool, with a random part, and with all of it.

From prepared (tokenised, truecased) text::

    python benchmarks/selection.py --work DIR \
        --in-domain dev.en.gz=dev.fr.gz --test test.fr.gz \
        --pool laws=laws.en.gz=laws.fr.gz tatoeba=tatoeba.en.gz=tatoeba.fr.gz

With one text per corpus instead of two, the method is that of Moore and Lewis instead of Axelrod et al. Models are
estimated and lines scored by the stages of ``rnnsmt selection``. Then language models of the last text (the target
side) are estimated from

* selected: the best fraction of the lines,
* random: the same number of random lines, mean and standard deviation over --seeds draws,
* random, same words: random lines with the same number of words (selected lines are often shorter),

and evaluated on held-out in-domain text (a tenth of --in-domain, not used for the in-domain model) and on --test. All
models have the same vocabulary, the words that occur at least twice in the pool, so that perplexities, including
unknown words, are comparable. The script writes DIR/selection.tsv and DIR/selection.json and prints the table.
"""

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnsmt.base.io import read_byte_lines, read_lines, write_json, write_lines
from rnnsmt.base.progress import say
from rnnsmt.cli import main as rnnsmt
from rnnsmt.lm.estimation import estimate
from rnnsmt.lm.queries import load_kenlm, measure
from rnnsmt.lm.text import frequent_words
from rnnsmt.selection.pool import best, read_scores

COLUMNS = ["fraction", "lines", "words", "selected", "random", "random_sd", "random_same_words", "oov", "random_oov"]


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-domain", required=True, metavar="TEXT1[=TEXT2]", help="in-domain text")
    parser.add_argument("--pool", nargs="+", required=True, metavar="NAME=TEXT1[=TEXT2]", help="corpora to select from")
    parser.add_argument("--test", metavar="FILE", help="another in-domain text, in the language of the last text")
    parser.add_argument("--work", required=True, type=Path, help="output directory")
    parser.add_argument(
        "--fractions",
        nargs="+",
        type=float,
        default=[0.0625, 0.125, 0.25, 0.375, 0.5, 1.0],
        help="fractions of the lines of the pool",
    )
    parser.add_argument("--seeds", type=int, default=3, help="number of random draws")
    parser.add_argument("--order", type=int, default=5, help="n-gram order of the evaluated models")
    parser.add_argument("--threads", type=int, default=1, help="number of threads")
    return parser.parse_args()


def stage(*words: object) -> None:
    """Run a stage of the package."""
    code = rnnsmt([str(word) for word in words])
    if code:
        raise SystemExit(code)


def score(args: argparse.Namespace) -> tuple[npt.NDArray[np.float32], list[Path]]:
    """Return the scores of all lines of the pool, and the files of its last side."""
    in_domain = args.in_domain.split("=")
    pool = [entry.split("=")[1:] for entry in args.pool]
    for side, text in enumerate(in_domain, 1):
        texts = [row[side - 1] for row in pool]
        directory = args.work / f"models{side}"
        stage("selection", "models", "--in-domain", text, "--pool", *texts, "--output-dir", directory, "--seed", 1)
    scores = []
    for i, row in enumerate(pool):
        words: list[object] = ["--text", row[0], "--models", args.work / "models1"]
        if len(in_domain) == 2:
            words += ["--text2", row[1], "--models2", args.work / "models2"]
        output = args.work / f"scores{i}.gz"
        stage("selection", "score", *words, "--output", output, "--threads", args.threads)
        scores.append(read_scores(output))
    return np.concatenate(scores), [Path(row[-1]) for row in pool]


class Measure:
    """Perplexities of fixed texts under language models of subsets of the pool."""

    def __init__(self, pool: Sequence[Path], tests: dict[str, list[str]], args: argparse.Namespace) -> None:
        self.pool, self.tests, self.args = pool, tests, args
        self.vocabulary = frequent_words(pool, 2)
        self.only = {word for lines in tests.values() for line in lines for word in line.split(" ")}

    def __call__(self, mask: npt.NDArray[np.bool_]) -> dict[str, tuple[float, float]]:
        """Return (perplexity, rate of words that are not in the subset) for each test text."""
        subset, arpa = self.args.work / "subset", self.args.work / "subset.arpa"
        lines = (line for path in self.pool for line in read_lines(path))
        write_lines(subset, (line for line, kept in zip(lines, mask.tolist(), strict=True) if kept))
        estimate([subset], self.args.order, arpa, vocabulary=self.vocabulary, only=self.only)
        model = load_kenlm(arpa)
        seen = {word for line in read_lines(subset) for word in line.split(" ")}
        result = {}
        for name, text in self.tests.items():
            words = [word for line in text for word in line.split(" ")]
            oov = sum(word not in seen for word in words) / len(words)
            result[name] = (measure(model, text, name).perplexity, oov)
        arpa.unlink()
        subset.unlink()
        return result


def run(args: argparse.Namespace) -> None:
    """Measure all fractions, write and print the table."""
    args.work.mkdir(parents=True, exist_ok=True)
    scores, pool = score(args)
    side = len(args.in_domain.split("="))
    tests = {"held-out": list(read_lines(args.work / f"models{side}" / "held-out.gz"))}
    if args.test:
        tests["test"] = list(read_lines(args.test))
    lengths = np.array([len(line.split()) for path in pool for line in read_byte_lines(path)])
    measured = Measure(pool, tests, args)
    rows: list[dict[str, object]] = []
    for fraction in sorted(args.fractions):
        chosen = best(scores, [fraction]) == 0
        lines, words = int(chosen.sum()), int(lengths[chosen].sum())
        of_selected = measured(chosen)
        same_lines: list[dict[str, tuple[float, float]]] = []
        same_words: list[dict[str, tuple[float, float]]] = []
        for seed in range(args.seeds if lines < len(scores) else 1):
            order = np.random.default_rng(seed).permutation(len(scores))
            for size, found in (
                (lines, same_lines),
                (int(np.searchsorted(np.cumsum(lengths[order]), words)), same_words),
            ):
                mask = np.zeros(len(scores), bool)
                mask[order[: max(size, 1)]] = True
                found.append(of_selected if lines == len(scores) else measured(mask))
        for name in tests:
            random = [found[name][0] for found in same_lines]
            rows.append({
                "text": name, "fraction": fraction, "lines": lines, "words": words,
                "selected": round(of_selected[name][0], 2),
                "random": round(statistics.mean(random), 2),
                "random_sd": round(statistics.stdev(random), 2) if len(random) > 1 else 0.0,
                "random_same_words": round(statistics.mean(found[name][0] for found in same_words), 2),
                "oov": round(of_selected[name][1], 4),
                "random_oov": round(statistics.mean(found[name][1] for found in same_lines), 4),
            })  # fmt: skip
            say("  ".join(f"{key} {value}" for key, value in rows[-1].items()))
    table = ["\t".join(["text", *COLUMNS]), *("\t".join(str(value) for value in row.values()) for row in rows)]
    write_lines(args.work / "selection.tsv", table)
    write_json(args.work / "selection.json", rows)
    print("\n".join(table))


if __name__ == "__main__":
    run(parse())
