"""Compare speed and memory with Moses on the same work: ``python benchmarks/peers.py MOSES_HOME --run RUN``.

MOSES_HOME is the directory of a compiled Moses: ``bin/moses2``, ``bin/CreateProbingPT2``, ``bin/build_binary``,
``bin/lmplz``, ``bin/extract``, ``bin/score``, ``bin/consolidate``, and optionally ``bin/moses``. RUN is the directory
of a complete run of the workflow, for example one of ``held_out.py``; it is only read.

decode: the tuned baseline of RUN translates the dev and the test text, cube pruning with a pop limit and stacks of
1000, one thread, no n-best lists. Moses has the phrase and reordering tables in memory, Moses2 as probing tables; both
use a binary KenLM model. rnnsmt is measured with the text files and with its binary files. CPU time is user and system
time of the whole process, minus that of a process that translates only the first sentence. Scores are compared with
those that Moses prints (``-output-hypo-score``).

phrases: extraction with orientations, scoring with relative frequencies, and consolidation of the text of RUN and its
first alignment, uncompressed, one thread. Moses: its programs and ``LC_ALL=C sort -S 1G``, without its scripts. rnnsmt:
with the default memory limit, and with the smallest limit, with which it sorts on disk.

lm: a 5-gram model of the target side, ``lmplz -S 200M`` and the built-in estimator.

Programs are run in turn, ``--repeat`` times; the figures are medians.
"""

import argparse
import gzip
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rnnsmt.base.reading import read_lines
from rnnsmt.phrases.extract_file import LEAST_MB, PROCESS_MB

RNNSMT = [sys.executable, "-m", "rnnsmt"]
SORT = "LC_ALL=C sort -S 1G -T ."


class Cost(NamedTuple):
    """Resources of a process: CPU seconds including its children, and the peak memory of the largest process in MB."""

    seconds: float
    megabytes: float


LAUNCHER = """
import os, sys
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1], "w") as file:
    file.write(f"{usage.ru_utime + usage.ru_stime} {usage.ru_maxrss / 1024}")
sys.exit(os.waitstatus_to_exitcode(status) and 1)
"""
"""Program that runs a command and writes its cost. The peak memory of a process includes that of the process that
started it (Linux, ``getrusage``), so the command is started by a process that has 10 MB, not by this one."""


def measure(command: Sequence[str] | str, cwd: Path, log: str = "log") -> Cost:
    """Run a command or a shell command line in a directory; raise SystemExit with its log if it fails."""
    arguments = ["bash", "-ec", f"set -o pipefail; {command}"] if isinstance(command, str) else list(command)
    launch = [sys.executable, "-I", "-S", "-c", LAUNCHER, "cost", *arguments]
    with (cwd / log).open("wb") as output, (cwd / f"{log}.err").open("wb") as errors:
        done = subprocess.run(launch, cwd=cwd, stdout=output, stderr=errors, check=False)
    if done.returncode:
        told = (cwd / f"{log}.err").read_text()[-2000:]
        raise SystemExit(f"{shlex.join(arguments)} failed\n{told}")
    return Cost(*map(float, (cwd / "cost").read_text().split()))


def medians(measured: Sequence[Cost]) -> Cost:
    """Return the median time and the median memory."""
    return Cost(*(statistics.median(values) for values in zip(*measured, strict=True)))


def in_turn(repeat: int, commands: dict[str, Callable[[], Cost]]) -> dict[str, Cost]:
    """Run commands in turn, each `repeat` times; return the medians by name."""
    found: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(repeat):
        for name, command in commands.items():
            found[name].append(command())
    return {name: medians(costs) for name, costs in found.items()}


def copy_text(source: Sequence[Path], target: Path, lines: int | None = None) -> int:
    """Write texts uncompressed into one file; return the number of lines."""
    number = 0
    with target.open("w", encoding="utf-8") as output:
        for path in source:
            for line in read_lines(path):
                if lines is None or number < lines:
                    output.write(line + "\n")
                    number += 1
    return number


def ini_of(run: Path, replaced: dict[str, str], extra: str = "") -> str:
    """Return the ini of the tuned baseline, with its feature lines replaced by class name."""
    lines = (run / "results/systems/baseline/run1/moses.ini").read_text().splitlines()
    limits = "[search-algorithm]\n1\n\n[cube-pruning-pop-limit]\n1000\n\n[stack]\n1000\n\n"
    return limits + extra + "\n".join(replaced.get(line.split(" ")[0], line) for line in lines) + "\n"


def join_tables(phrases: Path, reordering: Path, joined: Path) -> None:
    """Write a phrase table with the reordering probabilities as property LexRO, as ``CreateProbingPT2`` reads it."""
    with joined.open("w", encoding="utf-8") as output:
        for pair, probabilities in zip(read_lines(phrases), read_lines(reordering), strict=True):
            fields, orientation = pair.split(" |||"), probabilities.split(" ||| ")
            if [field.strip() for field in fields[:2]] != orientation[:2]:
                raise SystemExit(f"{reordering}: other phrase pairs than {phrases}")
            fields = [field.strip() for field in fields[:5]]
            output.write(" ||| ".join([*fields, "", f"{{{{LexRO {orientation[2]}}}}}"]) + "\n")


def prepare_decoders(home: Path, run: Path, work: Path) -> dict[str, str]:
    """Write the models and one ini for each decoder; return the names of the decoders and of the files they read."""
    model = run / "results/model"
    reordering = next(model.glob("reordering-table.*.gz"))
    with gzip.open(model / "lm.arpa.gz", "rb") as packed:
        (work / "lm.arpa").write_bytes(packed.read())
    measure([str(home / "bin/build_binary"), "lm.arpa", "lm.binary"], work)
    binary = {"KENLM": "KENLM lazyken=0 name=LM0 factor=0 path=lm.binary order=5"}
    table = "name=TranslationModel0 num-features=4 input-factor=0 output-factor=0"
    lexical = "LexicalReordering name=LexicalReordering0 num-features=6 type=wbe-msd-bidirectional-fe-allff"
    lexical += " input-factor=0 output-factor=0"
    memory = {
        "PhraseDictionaryMemory": f"PhraseDictionaryMemory {table} path={model / 'phrase-table.gz'}",
        "LexicalReordering": f"{lexical} path={reordering}",
    }
    probing = {
        "PhraseDictionaryMemory": f"ProbingPT {table} path={work / 'probing'}",
        "LexicalReordering": f"{lexical} property-index=0",
    }
    join_tables(model / "phrase-table.gz", reordering, work / "joined.txt")
    measure(
        f"{home}/bin/CreateProbingPT2 --num-scores 4 --log-prob --num-lex-scores 6 --input-pt joined.txt "
        "--output-dir probing",
        work,
    )
    (work / "moses.ini").write_text(ini_of(run, binary | memory))
    (work / "moses2.ini").write_text(ini_of(run, binary | probing))
    text = {**memory, "KENLM": f"KENLM lazyken=0 name=LM0 factor=0 path={model / 'lm.arpa.gz'} order=5"}
    (work / "text.ini").write_text(ini_of(run, text))
    copy = work / "binary"
    copy.mkdir()
    for path in (model / "phrase-table.gz", reordering, model / "lm.arpa.gz"):
        (copy / path.name).symlink_to(path.resolve())
    (copy / "moses.ini").write_text(ini_of(run, text).replace(f"{model}/", ""))
    measure([*RNNSMT, "search", "binarize", "--ini", "moses.ini"], copy)
    found = {"moses": "tables in memory", "moses2": "probing tables", "text": "text files", "binary": "binary files"}
    if not (home / "bin/moses").is_file():
        del found["moses"]
    return found


def decode_command(home: Path, name: str, text: str) -> list[str]:
    """Return the command that translates a text."""
    if name in ("moses", "moses2"):
        options = ["-f", f"{name}.ini", "-i", text, "-threads", "1", "-v", "0", "-output-hypo-score"]
        return [str(home / "bin" / name), *options]
    ini = "binary/moses.ini" if name == "binary" else "text.ini"
    return [*RNNSMT, "search", "decode", "--ini", ini, "--input", text, "--output", f"{name}.output", "--threads", "1"]


def compare_decoders(home: Path, run: Path, work: Path, repeat: int) -> None:
    """Print speed and memory of the decoders, and the numbers of scores of Moses below and above those of rnnsmt."""
    names = prepare_decoders(home, run, work)
    corpus = run / "results/corpus/tokenized"
    inputs = sorted(corpus.glob("val.en*")) + sorted(corpus.glob("test.en*"))
    if len(inputs) != 2:
        raise SystemExit(f"{corpus}: val.en and test.en are required, as in a run of held_out.py")
    number = copy_text(inputs, work / "all")
    copy_text(inputs, work / "one", 1)
    costs = in_turn(
        repeat,
        {
            f"{name} {text}": partial(measure, decode_command(home, name, text), work, f"{name}.{text}.log")
            for name in names
            for text in ("one", "all")
        },
    )
    measure([*decode_command(home, "text", "all"), "--output-details", "details"], work)
    ours = [float(line.split(" ||| ")[3]) for line in (work / "details").read_text().splitlines()]
    print(f"\n{number:,} sentences, {platform.processor() or platform.machine()}, medians of {repeat}\n")
    head = ["decoder", "reads", "CPU s, one sentence", "CPU s, all", "sentences per CPU s", "of Moses2's", "MB"]
    print("|", " | ".join([*head, "below / above ours"]), "|\n|---|---|---:|---:|---:|---:|---:|---|")
    speed = {name: number / (costs[f"{name} all"].seconds - costs[f"{name} one"].seconds) for name in names}
    for name, what in names.items():
        one, whole = costs[f"{name} one"], costs[f"{name} all"]
        scores = ""
        if name in ("moses", "moses2"):
            lines = (work / f"{name}.all.log").read_text().splitlines()
            theirs = [float(line.split(" ", 1)[0]) for line in lines]
            pairs = list(zip(theirs, ours, strict=True))
            scores = f"{sum(a < b - 1e-3 for a, b in pairs)} / {sum(a > b + 1e-3 for a, b in pairs)}"
            scores += f", sum {sum(theirs) - sum(ours):+.2f}"
        row = [name, what, f"{one.seconds:.2f}", f"{whole.seconds:.2f}", f"{speed[name]:.0f}"]
        row += [f"{speed[name] / speed['moses2']:.2f}", f"{whole.megabytes:.0f}", scores]
        print("|", " | ".join(row), "|", flush=True)


def compare_phrases(home: Path, run: Path, work: Path, repeat: int) -> None:
    """Print time and memory of phrase extraction and scoring."""
    results = run / "results"
    corpus = results / "corpus/tokenized"
    for lang in ("en", "fr"):
        copy_text(sorted(corpus.glob(f"train.{lang}*")), work / f"train.{lang}")
    copy_text(sorted(results.glob("align/model4/aligned.*")), work / "links")
    lex = {name: results / f"model/lex.{name}" for name in ("e2f", "f2e")}
    b = home / "bin"
    moses = (
        f"{b}/extract train.fr train.en links extract 7 orientation --model wbe-msd; "
        "for name in extract extract.inv extract.o; do " + SORT + " $name > $name.sorted; done; "
        f"{b}/score extract.sorted {lex['f2e']} half.f2e; "
        f"{b}/score extract.inv.sorted {lex['e2f']} half.e2f --Inverse; "
        f"{SORT} half.e2f > half.e2f.sorted; {b}/consolidate half.f2e half.e2f.sorted table.moses"
    )
    files = "--source train.en --target train.fr --alignment links --threads 1"
    tables = f"--lex-e2f {lex['e2f']} --lex-f2e {lex['f2e']} --threads 1"
    rnnsmt, extracted = shlex.join(RNNSMT), "--extract extract.parquet --pairs pairs"
    ours = {
        # the reordering scores are more than Moses' commands compute; the export needs them
        f"rnnsmt{memory}": f"{rnnsmt} phrases extract {files}{memory} --output extract.parquet --output-pairs pairs; "
        f"{rnnsmt} phrases score --smoothing none {extracted} {tables}{memory} --output scores; "
        f"{rnnsmt} phrases reordering {extracted} --threads 1{memory} --output orientations; "
        f"{rnnsmt} phrases export --pairs pairs --scores scores --reordering orientations --threads 1 "
        "--output-phrase-table table.rnnsmt --output-reordering-table reordering.rnnsmt"
        for memory in ("", f" --memory-mb {LEAST_MB + PROCESS_MB}")
    }
    commands = {"Moses": moses, **ours}
    costs = in_turn(repeat, {name: partial(measure, line, work) for name, line in commands.items()})
    lines = {name: sum(1 for _ in (work / f"table.{name}").open("rb")) for name in ("moses", "rnnsmt")}
    print_costs("phrases", costs)
    print(f"\nphrase pairs: Moses {lines['moses']:,}, rnnsmt {lines['rnnsmt']:,}")


def compare_lm(home: Path, work: Path, repeat: int) -> None:
    """Print time and memory of language model estimation; needs the text of ``compare_phrases``."""
    lmplz = f"{home}/bin/lmplz -o 5 -S 200M -T . --text train.fr --arpa lmplz.arpa"
    ours = [*RNNSMT, "lm", "estimate", "--input", "train.fr", "--order", "5", "--output", "ours.arpa"]
    ours += ["--estimator", "builtin", "--memory-mb", "200", "--threads", "1"]
    costs = in_turn(repeat, {"lmplz -S 200M": lambda: measure(lmplz, work), "rnnsmt": lambda: measure(ours, work)})
    print_costs("lm", costs)


def print_costs(what: str, costs: dict[str, Cost]) -> None:
    """Print the table of a comparison."""
    print(f"\n| {what} | CPU s | MB |\n|---|---:|---:|")
    for name, cost in costs.items():
        print(f"| {name} | {cost.seconds:.2f} | {cost.megabytes:.0f} |", flush=True)


def main() -> None:
    """Parse the command line and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("moses_home", type=Path, help="directory of a compiled Moses")
    parser.add_argument("--run", type=Path, required=True, help="directory of a complete run of the workflow")
    parser.add_argument("--repeat", type=int, default=5, help="number of measurements (default: %(default)s)")
    parser.add_argument("--only", choices=("decode", "phrases", "lm"), nargs="+", default=["decode", "phrases", "lm"])
    args = parser.parse_args()
    home, run = args.moses_home.resolve(), args.run.resolve()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(prefix="peers.") as name:
        work = Path(name)
        if "decode" in args.only:
            compare_decoders(home, run, work, args.repeat)
        if "phrases" in args.only:
            compare_phrases(home, run, work, args.repeat)
        if "lm" in args.only:
            copy_text(sorted((run / "results/corpus/tokenized").glob("train.fr*")), work / "train.fr")
            compare_lm(home, work, args.repeat)


if __name__ == "__main__":
    main()
