"""How the stages from text to tables grow with the corpus: time, memory, disk, and what they come to at another size.

    python benchmarks/growth.py --data DATA --work DIR --sizes 1.5 3 6 12 --extrapolate 348

DATA: the files of workflow/configs/mini-wmt.yaml. Its four bitexts, tokenised, have about 6 million French words. A
smaller corpus is the first lines of them in a shuffled order; a larger one repeats them. In a repetition words and
sentences are new as they would be in more text of the same kind:

* types: of the words of a side as many get a new name, rare ones first, as Heaps' law V = k N^b asks for, whose b is
  that of the corpus itself between its first half and the whole;
* sentences: pairs of up to 60 words together are joined to one at random, so that other words meet in a sentence.

Every stage is run on one thread; its CPU seconds, peak memory and output size are kept in DIR/growth.json (what is
there is not measured again), and fitted by a power of the number of French words.
"""

import argparse
import gzip
import json
import multiprocessing
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

BITEXTS = ("laws", "tatoeba", "python-docs", "news0811")

MEMORY_MB = 4000


def run(*words: object) -> dict[str, float]:
    """Run one stage on its own; CPU seconds and peak megabytes."""
    command = [str(Path(sys.executable).with_name("rnnsmt")), *map(str, words)]
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {' '.join(command)}")
    return {"cpu_s": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024}


def base_text(data: Path, work: Path) -> list[tuple[list[str], list[str]]]:
    """All sentence pairs of the bitexts, tokenised, in a shuffled order."""
    rows = []
    for name in BITEXTS:
        outputs = [work / f"{name}.{language}.gz" for language in ("en", "fr")]
        if not all(path.exists() for path in outputs):
            inputs = ["--source", data / f"{name}.en.xz", "--target", data / f"{name}.fr.xz"]
            languages = ["--source-lang", "en", "--target-lang", "fr"]
            written = ["--output-source", outputs[0], "--output-target", outputs[1]]
            run("corpus", "prepare", *inputs, *languages, *written, "--report", work / f"{name}.json", "--threads", 2)
        from rnnsmt.io import read_parallel

        rows += [(source.split(), target.split()) for source, target in read_parallel(*outputs)]
    random.Random(1).shuffle(rows)
    return rows


def types(rows: list[tuple[list[str], list[str]]], side: int) -> int:
    """Number of distinct words of a side."""
    return len({word for row in rows for word in row[side]})


def repetition(rows: list[tuple[list[str], list[str]]], number: int) -> list[tuple[list[str], list[str]]]:
    """The text once more, as the ``number``-th time (from 2): with new words and new sentences."""
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
    new = [
        tuple(
            [f"{word}\u00a7{number}" if word in names else word for word in row[side]]
            for side, names in enumerate(renamed)
        )
        for row in rows
    ]
    draw.shuffle(new)
    joined = []
    while new:
        row = new.pop()
        if new and len(row[0]) + len(new[-1][0]) <= 60 and len(row[1]) + len(new[-1][1]) <= 60:
            other = new.pop()
            row = (row[0] + other[0], row[1] + other[1])
        joined.append(row)
    return joined


def write_text(data: Path, words: float, folder: Path) -> None:
    """The corpus of so many French words, as ``folder``/text.en.gz and .fr.gz, and its numbers as text.json."""
    base = base_text(data, folder.parent)
    left, lines, number = int(words), 0, 1
    seen: tuple[set[str], set[str]] = (set(), set())
    rows = base
    with gzip.open(folder / "text.en.gz", "wt", 1) as source, gzip.open(folder / "text.fr.gz", "wt", 1) as target:
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
    (folder / "text.json").write_text(json.dumps(found))


def stages(folder: Path) -> dict[str, tuple[list[object], list[str]]]:
    """Every stage: its command, and what it writes."""
    text = ["--source", folder / "text.en.gz", "--target", folder / "text.fr.gz"]
    links = ["--alignment", folder / "aligned.gz"]
    lexical = ["--lex-e2f", folder / "lex.e2f", "--lex-f2e", folder / "lex.f2e"]
    memory = ["--memory-mb", MEMORY_MB]
    extract = ["--extract", folder / "extract.parquet"]
    table = folder / "phrase-table.gz"
    found: dict[str, tuple[list[object], list[str]]] = {}
    for aligner in ("fast_align", "model4"):
        for direction in ("forward", "reverse") if aligner == "model4" else ("forward",):
            output = f"{aligner}.{direction}.gz"
            options = ["--aligner", aligner, "--direction", direction, "--output", folder / output]
            found[f"align words, {aligner}, {direction}"] = (["align", "words", *text, *options], [output])
    ends = ["--forward", folder / "model4.forward.gz", "--reverse", folder / "model4.reverse.gz"]
    found["align symmetrize"] = (["align", "symmetrize", *ends, "--output", folder / "aligned.gz"], ["aligned.gz"])
    lexes = ["--output-e2f", folder / "lex.e2f", "--output-f2e", folder / "lex.f2e"]
    found["phrases lexical"] = (["phrases", "lexical", *text, *links, *lexes], ["lex.e2f", "lex.f2e"])
    counted = ["--output", folder / "extract.parquet"]
    found["phrases extract"] = (["phrases", "extract", *text, *links, *counted, *memory], ["extract.parquet"])
    scored = ["--output", table, "--output-origins", folder / "origins.npy"]
    smoothing = ["--smoothing", "kneser-ney"]
    found["phrases score"] = (["phrases", "score", *extract, *lexical, *smoothing, *scored, *memory], [table.name])
    turned = ["--output", folder / "reordering.gz"]
    found["phrases reordering"] = (["phrases", "reordering", *extract, *turned, *memory], ["reordering.gz"])
    arpa = ["--input", folder / "text.fr.gz", "--order", 5, "--output", folder / "lm.arpa.gz", "--estimator", "builtin"]
    found["lm estimate"] = (["lm", "estimate", *arpa, *memory], ["lm.arpa.gz"])
    return found


def fit(sizes: list[float], values: list[float]) -> tuple[float, float]:
    """a and b of value = a size^b, by least squares of the logarithms."""
    b, log_a = np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-3)), 1)
    return float(np.exp(log_a)), float(b)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--sizes", type=float, nargs="+", required=True, help="millions of French words")
    parser.add_argument("--extrapolate", type=float, default=348.0, help="millions of French words")
    parser.add_argument("--only", nargs="+", help="stages whose names begin so")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    results_path = args.work / "growth.json"
    results = json.loads(results_path.read_text()) if results_path.exists() else {}
    for size in args.sizes:
        folder = args.work / f"{size:g}"
        folder.mkdir(exist_ok=True)
        found = results.setdefault(f"{size:g}", {})
        if not (
            folder / "text.json"
        ).exists():  # in a process of its own: what this one holds would count as a stage's peak
            process = multiprocessing.get_context("spawn").Process(
                target=write_text, args=(args.data, size * 1e6, folder)
            )
            process.start()
            process.join()
        for name, (command, outputs) in stages(folder).items():
            if name in found or (args.only and not name.startswith(tuple(args.only))):
                continue
            found[name] = run(*command)
            found[name]["disk_mb"] = sum((folder / output).stat().st_size for output in outputs) / 1e6
            results_path.write_text(json.dumps(results, indent=1))
    names = [name for name in stages(args.work) if all(name in results[f"{size:g}"] for size in args.sizes)]
    sizes = " / ".join(f"{size:g}" for size in args.sizes)
    kinds = {"cpu_s": "CPU s", "peak_mb": "peak MB", "disk_mb": "disk MB"}
    print(
        f"| {sizes} million words | "
        + " | ".join(f"{kind}, exponent, at {args.extrapolate:g}" for kind in kinds.values())
        + " |"
    )
    print("|---" * (len(kinds) + 1) + "|")
    for name in names:
        rows = [results[f"{size:g}"][name] for size in args.sizes]
        cells = [name]
        for key in kinds:
            values = [row[key] for row in rows]
            a, b = fit(args.sizes, values)
            at = a * args.extrapolate**b
            far = f"{at / 3600:.1f} h" if key == "cpu_s" else f"{at / 1000:.1f} GB"
            cells.append(f"{' / '.join(f'{value:.0f}' for value in values)}, {b:.2f}, {far}")
        print("| " + " | ".join(cells) + " |")
    for size in args.sizes:
        print(size, (args.work / f"{size:g}" / "text.json").read_text())


if __name__ == "__main__":
    main()
