"""Check that five stages have not become slower, by CPU time relative to a yardstick of the same run (``make bench``).

    python benchmarks/regression.py [--run DIR] [--repeat 3] [--record]

DIR is the directory of a complete run on the demo corpus (``make table``); its results are only read. Each case is one
command on files of that run, in a separate process with one thread; the start of the process is included. The yardstick
is a process that sorts and gathers numbers in NumPy, multiplies matrices in PyTorch and loops in Python. Cases and
yardstick are run in turn, ``--repeat`` times; the figure of a case is the median of its CPU seconds divided by the
median of the yardstick.

This ratio depends on the processor (caches, instruction sets), so ``regression.json`` has one record for each processor
model. If the ratio of a case is more than 20 % above the record, the exit status is 1. On a processor without a record,
no case can fail; ``--record`` writes the figures of this version as the record for later versions.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from rnnsmt.plan.paths import Texts
from rnnsmt.plan.validation import checked_config

TOLERANCE = 0.2
RECORDS = Path(__file__).with_suffix(".json")
BASELINE = "results/systems/baseline/run1/moses.ini"

YARDSTICK = """
import numpy, torch
torch.set_num_threads(1)
random = numpy.random.default_rng(1)
keys = random.integers(0, 1 << 40, 1 << 21)
for _ in range(3):
    order = numpy.argsort(keys, kind="stable")
    keys = keys[order] ^ numpy.roll(keys, 1)
factor = torch.ones(512, 512)
for _ in range(200):
    factor = (factor @ factor).tanh_()
total = 0
for number in range(5_000_000):
    total += number & 7
"""


def commands(run: Path, out: Path) -> dict[str, list[str]]:
    """Return the command of every case.

    Args:
        run: directory of a complete run on the demo corpus.
        out: existing output directory of the commands.
    """
    texts = Texts(checked_config(yaml.safe_load((Path(__file__).parents[1] / "config.yaml").read_text())))
    source, target = (texts.training_text(lang) for lang in (texts.source, texts.target))
    lines = {
        "align": f"align words --source {source} --target {target} --aligner fast_align --direction forward "
        "--output {out}/forward.gz --checkpoint-dir {out}/align",
        "phrases": "phrases score --extract results/phrases/extract.parquet --pairs results/phrases/pairs.safetensors "
        "--lex-e2f results/model/lex.e2f --lex-f2e results/model/lex.f2e --smoothing none "
        "--output {out}/scores.safetensors",
        "lm": f"lm estimate --estimator builtin --order 5 --input {' '.join(texts.lm_texts())} "
        "--output {out}/lm.arpa.gz",
        "search": f"search decode --ini {BASELINE} --model-dir results/model/selected/all "
        f"--input {texts.set_text('preprocessed', 'dev', texts.source)} --output {{out}}/dev.output",
        "rnn": "networks train --network rnn --data results/phrases/pairs.safetensors results/rnn/vocabularies "
        "--preset small --updates 40 --batch 128 --evaluations 1 --seed 1 "
        "--output-model {out}/model.safetensors --output-history {out}/history.tsv --checkpoint-dir {out}/rnn",
    }
    program = [sys.executable, "-m", "rnnsmt"]
    return {name: [*program, *shlex.split(line.format(out=out)), "--threads", "1"] for name, line in lines.items()}


def cpu_seconds(command: list[str], directory: Path) -> float:
    """Return the CPU seconds (user and system) of all processes of a command; exit with its error if it fails."""
    before = os.times()
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)} failed:\n{done.stderr}")
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def measure(run: Path, repeat: int) -> dict[str, float]:
    """Return the ratio of every case to the yardstick; the first execution, which compiles kernels, is ignored."""
    seconds: dict[str, list[float]] = {}
    for turn in range(repeat + 1):
        with tempfile.TemporaryDirectory() as out:
            for name, command in {
                "yardstick": [sys.executable, "-c", YARDSTICK],
                **commands(run, Path(out)),
            }.items():
                taken = cpu_seconds(command, run)
                if turn:
                    seconds.setdefault(name, []).append(taken)
    medians = {name: statistics.median(taken) for name, taken in seconds.items()}
    yardstick = medians.pop("yardstick")
    print(f"yardstick {yardstick:.2f} CPU s, cases: {', '.join(f'{n} {s:.2f}' for n, s in medians.items())}")
    return {name: taken / yardstick for name, taken in medians.items()}


def processor() -> str:
    """Return the name of the processor with family and model, since virtual machines may give only a general name."""
    info = Path("/proc/cpuinfo")
    first = info.read_text().split("\n\n", 1)[0] if info.is_file() else ""
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in first.splitlines())}
    if "model name" not in fields:
        return os.uname().machine
    return f"{fields['model name']}, family {fields.get('cpu family')}, model {fields.get('model')}"


def main() -> int:
    """Measure, compare with the record of this processor, and return the exit status."""
    parser = argparse.ArgumentParser(description="Check that five stages have not become slower.")
    parser.add_argument("--run", type=Path, default=Path(), metavar="DIR", help="directory of a complete run")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="executions of every case")
    parser.add_argument("--record", action="store_true", help="write the record of this processor")
    args = parser.parse_args()
    if not (args.run / BASELINE).is_file():
        raise SystemExit(f"{args.run / BASELINE} does not exist; run `make table` first")
    ratios = measure(args.run.resolve(), args.repeat)
    records = json.loads(RECORDS.read_text()) if RECORDS.is_file() else {}
    if args.record:
        records[processor()] = {name: round(ratio, 3) for name, ratio in ratios.items()} | {
            "date": time.strftime("%Y-%m-%d")
        }
        RECORDS.write_text(json.dumps(records, indent=2) + "\n")
    record = records.get(processor())
    if record is None:
        print(f"no record of {processor()}: nothing to compare with; --record writes one")
        return 0
    print("| case | ratio | record | change |\n|---|---|---|---|")
    slower = [name for name, ratio in ratios.items() if ratio > record.get(name, ratio) * (1 + TOLERANCE)]
    for name, ratio in ratios.items():
        if name not in record:
            print(f"| {name} | {ratio:.2f} | | not in the record |")
            continue
        failed = " **slower**" if name in slower else ""
        print(f"| {name} | {ratio:.2f} | {record[name]:.2f} | {ratio / record[name] - 1:+.0%}{failed} |")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
