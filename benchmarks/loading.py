"""Compare models in text and binary format: time to the first translation, memory of a second process, speed.

    python benchmarks/loading.py MODEL TEXT

MODEL: directory with moses.ini and its tables, such as results/model; it is copied first. TEXT: tokenised source text,
plain or compressed. Each time is the median of --repeat measurements, in wall and CPU seconds of whole processes.
Memory is that of the second of two processes that have loaded the whole model and translated a sentence, from
/proc/PID/smaps_rollup, minus that of a process with a model of one phrase pair.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rnnsmt.base.io import read_lines, write_lines

PROCESS = """
import sys
from rnnsmt.base.io import read_lines
from rnnsmt.moses.ini import MosesIni
from rnnsmt.search import SearchOptions, decode, load_model

ini = MosesIni.read(sys.argv[1])
sentences = list(read_lines(sys.argv[2]))
model = load_model(ini)
print(len(decode(model, sentences, model.weights(ini), SearchOptions())), flush=True)
sys.stdin.readline()
"""


ONE_BY_ONE = """
import sys
import time
from rnnsmt.base.io import read_lines
from rnnsmt.moses.ini import MosesIni
from rnnsmt.search import decode, load_model

ini = MosesIni.read(sys.argv[1])
sentences = list(read_lines(sys.argv[2]))[:300]
model = load_model(ini)
weights = model.weights(ini)
decode(model, sentences[:3], weights)
began = time.process_time()
for sentence in sentences:
    decode(model, [sentence], weights)
print(round(len(sentences) / (time.process_time() - began), 1))
"""


def timed(command: list[str], text: str | None = None) -> tuple[float, float]:
    """Run a process with ``text`` as standard input; return its wall and CPU seconds."""
    before, began = os.times(), time.perf_counter()
    subprocess.run(command, check=True, input=text, text=True, capture_output=True)
    wall, after = time.perf_counter() - began, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def median(measure: Callable[[], tuple[float, float]], repeat: int) -> str:
    """Return the medians of wall and CPU seconds, without the first measurement, which has cold caches."""
    measure()
    wall, cpu = zip(*(measure() for _ in range(repeat)), strict=True)
    return f"{statistics.median(wall):.2f} s wall, {statistics.median(cpu):.2f} CPU s"


def memory(ini: Path, text: Path, processes: int) -> dict[str, float]:
    """Return the memory in MB of the last of several processes with a loaded model, by the names of smaps_rollup."""
    command = [sys.executable, "-c", PROCESS, str(ini), str(text)]
    started = []
    try:
        for _ in range(processes):
            started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            assert started[-1].stdout is not None
            started[-1].stdout.readline()
        found = Path(f"/proc/{started[-1].pid}/smaps_rollup").read_text()
    finally:
        for process in started:
            process.communicate("\n")
    lines = re.findall(r"(?m)^(Rss|Pss|Private_Dirty):\s+(\d+) kB", found)
    return {name: int(size) / 1024 for name, size in lines}


def tiny_model(directory: Path, model: Path) -> Path:
    """Write a model of one phrase pair with the features of another model; return its ini file."""
    directory.mkdir()
    shutil.copy(model / "moses.ini", directory)
    for name in re.findall(r"path=(\S+)", (directory / "moses.ini").read_text()):
        kind = Path(name).name.partition("-")[0].partition(".")[0]
        lines = {
            "phrase": ["a ||| b ||| 1 1 1 1"],
            "reordering": ["a ||| b ||| .5 .5 .5 .5 .5 .5"],
            "lm": ["\\data\\", "ngram 1=3", "", "\\1-grams:", "-1\t<s>", "-1\t</s>", "-1\tb", "", "\\end\\"],
        }[kind]
        write_lines(directory / name, lines)
    return directory / "moses.ini"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="directory with moses.ini and its tables")
    parser.add_argument("text", type=Path, help="tokenised source text")
    parser.add_argument("--repeat", type=int, default=5, help="number of measurements")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        shutil.copytree(args.model, directory / "model", ignore=shutil.ignore_patterns("filtered", "model.binary"))
        ini, text, one = directory / "model/moses.ini", directory / "text", directory / "one"
        sentences = list(read_lines(args.text))
        write_lines(text, sentences)
        write_lines(one, sentences[:1])
        run = [sys.executable, "-m", "rnnsmt"]
        system = directory / "model"
        subprocess.run(
            [*run, "translation", "describe", "--name", "x", "--source-lang", "en", "--target-lang", "fr",
             "--no-normalize", "--no-tokenize", "--output-dir", str(system)], check=True, capture_output=True,
        )  # fmt: skip
        base = memory(tiny_model(directory / "tiny", args.model), one, 2)
        print("modules alone, MB:", {name: round(size) for name, size in base.items()})
        written: dict[str, bytes] = {}
        for kind in ("text", "binary"):
            if kind == "binary":
                binarise = [*run, "search", "binarise", "--ini", str(ini)]
                print("binarise:", median(lambda: timed(binarise), 1))  # noqa: B023
                print("bytes:", f"{(system / 'model.binary').stat().st_size:,}")
            for name, lines in (("one sentence", one), (f"{len(sentences)} sentences", text)):
                decode = [*run, "search", "decode", "--ini", str(ini), "--input", str(lines), "--output",
                          str(directory / "out")]  # fmt: skip
                print(f"{kind}: decode, {name}:", median(lambda: timed(decode), args.repeat))  # noqa: B023
            translation = (directory / "out").read_bytes()
            assert written.setdefault("out", translation) == translation
            pipe = [*run, "translate", "--system", str(system)]
            print(
                f"{kind}: translate, one line of a pipe:",
                median(lambda: timed(pipe, sentences[0] + "\n"), args.repeat),  # noqa: B023
            )
            alone = [sys.executable, "-c", ONE_BY_ONE, str(ini), str(text)]
            speed = [float(subprocess.run(alone, check=True, capture_output=True).stdout) for _ in range(args.repeat)]
            print(f"{kind}: sentences a CPU second, one by one:", statistics.median(speed))
            sizes = memory(ini, one, 2)
            print(f"{kind}: model in a second process, MB:", {n: round(sizes[n] - base[n], 1) for n in sizes})


if __name__ == "__main__":
    main()
