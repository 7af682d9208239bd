"""Measure the resources of the rules from text to scored phrase pairs by corpus size, and extrapolate them.

    python benchmarks/growth.py --data DATA --work DIR --sizes 0.75 1.5 3 6 --extrapolate 348

DATA: directory of the files of workflow/configs/mini-wmt.yaml. Its four bitexts, tokenised, have about 6 million French
words. A smaller corpus consists of their first lines in a shuffled order; a larger corpus repeats them. A repetition
has new words and new sentences, as more text of the same kind would have:

* types: words of each side are renamed, rare words first. Their number follows Heaps' law V = k N^b, with the b of the
  corpus itself, estimated from its first half and the whole;
* sentences: pairs are joined at random into pairs of up to 60 words per side, so that there are new co-occurrences.

The workflow runs on the text of each size, one job on one thread at a time, with newstest2012 as dev text and
newstest2013 as test text. It runs from raw text to the tables and the language model, and scores one of 64 shards of
the phrase pairs with a network of preset small. Selection scores all lines and keeps nearly all. The resources of the
jobs are those of `rnnsmt usage`. As functions of N million French words, CPU seconds and memory are fitted by
a line, because the fixed cost of a stage is a large part of a small run, and disk space by a power. Results are kept in
the directory of each size and are not measured again. Only the last part of a job that was interrupted and resumed is
counted, so remove the directory of a size whose run was interrupted.
"""

import argparse
import gzip
import json
import multiprocessing
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

BITEXTS = ("laws", "tatoeba", "python-docs", "news0811")

SHARDS = 64

TARGETS = [
    "results/model/moses.ini",
    "results/model/filtered/dev/phrase-table.gz",
    f"results/rnn/network1/scores/1-of-{SHARDS}.npy",
]

NOT_SCALED = ("join_dev", "moses_ini", "rnn_train", "rnn_score")
"""Rules whose resources depend on the dev text, the number of updates, or a single shard of the pairs."""

MEMORY_MB = 6000


def command(name: str) -> str:
    """Return the path of a program in the directory of the running Python."""
    return str(Path(sys.executable).with_name(name))


def base_text(data: Path, work: Path) -> list[tuple[list[str], list[str]]]:
    """Return all sentence pairs of the bitexts, tokenised, in a shuffled order."""
    from rnnsmt.base.io import read_parallel

    rows = []
    for name in BITEXTS:
        outputs = [work / f"{name}.{language}.gz" for language in ("en", "fr")]
        if not all(path.exists() for path in outputs):
            inputs = ["--source", data / f"{name}.en.xz", "--target", data / f"{name}.fr.xz"]
            written = ["--output-source", outputs[0], "--output-target", outputs[1]]
            options = ["--no-escape", "--report", work / f"{name}.json", "--threads", 2]
            words = [command("rnnsmt"), "corpus", "prepare", *inputs, *written, *options]
            subprocess.run(list(map(str, words)), check=True)
        rows += [(source.split(), target.split()) for source, target in read_parallel(*outputs)]
    random.Random(1).shuffle(rows)
    return rows


def types(rows: list[tuple[list[str], list[str]]], side: int) -> int:
    """Return the number of distinct words of a side."""
    return len({word for row in rows for word in row[side]})


def repetition(rows: list[tuple[list[str], list[str]]], number: int) -> list[tuple[list[str], list[str]]]:
    """Return the ``number``-th repetition of the text (from 2), with new words and new sentences."""
    draw = random.Random(number)
    renamed: list[set[str]] = []
    for side in (0, 1):
        counts = Counter(word for row in rows for word in row[side])
        half = rows[: len(rows) // 2]
        whole, part = types(rows, side), types(half, side)
        exponent = np.log2(whole / part)
        wanted = round(whole * (number**exponent - (number - 1) ** exponent))
        order = sorted(counts, key=lambda word: (counts[word], draw.random()))
        renamed.append(set(order[:wanted]))
    new = []
    for row in rows:
        source, target = (
            [f"{word}qz{number}" if word in names else word for word in side]
            for side, names in zip(row, renamed, strict=True)
        )
        new.append((source, target))
    draw.shuffle(new)
    joined = []
    while new:
        row = new.pop()
        if new and len(row[0]) + len(new[-1][0]) <= 60 and len(row[1]) + len(new[-1][1]) <= 60:
            other = new.pop()
            row = (row[0] + other[0], row[1] + other[1])
        joined.append(row)
    return joined


def write_text(data: Path, words: float, directory: Path) -> None:
    """Write a corpus of ``words`` French words to ``directory``/text.en.gz and .fr.gz, and its counts to text.json."""
    base = base_text(data, directory.parent)
    left, lines, number = int(words), 0, 1
    seen: tuple[set[str], set[str]] = (set(), set())
    rows = base
    with gzip.open(directory / "text.en.gz", "wt", 1) as source, gzip.open(directory / "text.fr.gz", "wt", 1) as target:
        while left > 0:
            for row in rows:
                source.write(" ".join(row[0]) + "\n")
                target.write(" ".join(row[1]) + "\n")
                seen[0].update(row[0])
                seen[1].update(row[1])
                left -= len(row[1])
                lines += 1
                if left <= 0:
                    break
            number += 1
            rows = repetition(base, number) if left > 0 else []
    found = {"lines": lines, "words": int(words) - left, "types": [len(words) for words in seen]}
    (directory / "text.json").write_text(json.dumps(found))


def configuration(data: Path, directory: Path) -> dict:
    """Return the configuration of a run on the text of a directory."""
    text = {
        "name": "text",
        "role": "bitext",
        "source": str(directory / "text.en.gz"),
        "target": str(directory / "text.fr.gz"),
    }
    sets = [
        {"name": name, "role": role, "source": str(data / f"{name}.en.xz"), "target": str(data / f"{name}.fr.xz")}
        for name, role in (("newstest2012", "dev"), ("newstest2013", "test"))
    ]
    return {
        "corpora": [text, *sets],
        "selection": {"bitext": 0.99, "mono": 0.99},
        "rnn": {"preset": "small", "vocab_size": 15000, "settings": {"updates": 20, "evaluations": 1}},
        "compare": ["baseline", "rnn"],
    }


def run(data: Path, directory: Path) -> None:
    """Run the workflow; existing results are not created again."""
    (directory / "config.json").write_text(json.dumps(configuration(data, directory), indent=1))
    snakefile = Path(__file__).resolve().parents[1] / "Snakefile"
    words = [command("snakemake"), "-s", snakefile, "--cores", 1, "--directory", directory, *TARGETS]
    words += ["--configfile", directory / "config.json", "--resources", f"mem_mb={MEMORY_MB}"]
    words += ["--set-scatter", f"rnn_score={SHARDS}"]
    subprocess.run(list(map(str, words)), check=True)


def line(sizes: list[float], values: list[float]) -> tuple[float, float]:
    """Fit a and b of value = a + b size, both at least 0, by least squares of the relative errors."""
    x, y = np.array(sizes), np.maximum(values, 1e-3)
    b, a = np.polyfit(x, y, 1, w=1 / y)
    if a < 0:
        return 0.0, float((x / y).sum() / ((x / y) ** 2).sum())
    if b < 0:
        return float((1 / y).sum() / (1 / y**2).sum()), 0.0
    return float(a), float(b)


def power(sizes: list[float], values: list[float]) -> tuple[float, float]:
    """Fit a and b of value = a size^b by least squares of the logarithms."""
    b, log_a = np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-3)), 1)
    return float(np.exp(log_a)), float(b)


def taken(directory: Path) -> dict[str, dict[str, float]]:
    """Return the resources of each rule: CPU seconds and MB of disk of all jobs, MB of memory of the largest job."""
    from rnnsmt.monitoring.runs import by_rule

    return {
        rule: {
            "CPU s": sum(job.cpu for job in jobs),
            "MB of memory": max(job.peak_mb for job in jobs),
            "MB of disk": sum(job.output_mb for job in jobs),
        }
        for rule, jobs in by_rule(directory).items()
    }


def main() -> None:
    """Measure all sizes and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True, help="directory of the files of mini-wmt.yaml")
    parser.add_argument("--work", type=Path, required=True, help="output directory")
    parser.add_argument("--sizes", type=float, nargs="+", required=True, help="sizes, in millions of French words")
    parser.add_argument("--extrapolate", type=float, default=348.0, help="size to extrapolate to, in millions of words")
    args = parser.parse_args()
    data, work = args.data.resolve(), args.work.resolve()
    results = []
    for size in args.sizes:
        directory = work / f"{size:g}"
        directory.mkdir(parents=True, exist_ok=True)
        if not (directory / "text.json").exists():
            # In a separate process: memory held by this one would count towards the peak of its children.
            process = multiprocessing.get_context("spawn").Process(
                target=write_text, args=(data, size * 1e6, directory)
            )
            process.start()
            process.join()
        run(data, directory)
        results.append(taken(directory))
    print_table(args.sizes, results, args.extrapolate)
    for size in args.sizes:
        print(f"{size:g}: {(work / f'{size:g}' / 'text.json').read_text()}")


def print_table(sizes: list[float], results: list[dict[str, dict[str, float]]], far: float) -> None:
    """Print a Markdown table: resources of each rule, their fit, and its value at ``far`` million words."""
    print(f"| rule | CPU s | at {far:g} M, hours | MB of memory | GB | MB of disk | GB |")
    print("|---" * 7 + "|")
    for rule in results[-1]:
        if rule in NOT_SCALED:
            continue
        cells = [rule]
        for kind, units in (("CPU s", 3600), ("MB of memory", 1000), ("MB of disk", 1000)):
            values = [found[rule][kind] for found in results]
            if kind == "MB of disk":
                a, b = power(sizes, values)
                fitted, at = f"{a:.3g} N^{b:.2f}", a * far**b
            else:
                a, b = line(sizes, values)
                fitted, at = f"{a:.3g} + {b:.3g} N", a + b * far
            took = " / ".join(f"{value:.3g}" if value < 1000 else f"{value:,.0f}" for value in values)
            cells += [f"{took}: {fitted}", f"{at / units:.{2 if kind == 'CPU s' else 1}f}"]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
