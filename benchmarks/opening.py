"""Compare the CPU time of opening a binary model in several versions of this program, e.g. before and after checks.

    python benchmarks/opening.py --version SRC MODEL [--version SRC MODEL ...] [--repeat N]

SRC: directory `src` of a checkout. MODEL: directory with moses.ini, its tables and a model.binary written by this
version. Every measurement is a separate process; the versions are measured in turn. The medians of all measurements are
printed: the whole process, opening the model (`load_model`), and the subsequent translation of one sentence.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

PROCESS = """
import json
import sys
import time
from rnnsmt.moses.ini import MosesIni
from rnnsmt.search import SearchOptions, decode, load_model

ini = MosesIni.read(sys.argv[1])
times = [time.process_time()]
model = load_model(ini)
times.append(time.process_time())
decode(model, [sys.argv[2]], model.weights(ini), SearchOptions())
times.append(time.process_time())
print(json.dumps(times))
"""


def measured(source: str, model: str, sentence: str) -> list[float]:
    """Return CPU seconds of a whole process, of opening its model, and of translating a sentence."""
    environment = os.environ | {"PYTHONPATH": source}
    command = [sys.executable, "-c", PROCESS, f"{model}/moses.ini", sentence]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if "warning" in done.stderr:
        sys.exit(f"{model}: {done.stderr}")
    begun, opened, translated = json.loads(done.stdout)
    whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [whole, opened - begun, translated - opened]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", nargs=2, action="append", required=True, metavar=("SRC", "MODEL"))
    parser.add_argument(
        "--sentence", default="a man in an orange hat starring at something .", help="tokenised sentence"
    )
    parser.add_argument("--repeat", type=int, default=11, help="number of measurements of every version")
    args = parser.parse_args()
    for _, model in args.version:
        if not Path(model, "model.binary").is_file():
            parser.error(f"{model} has no model.binary; write it with `rnnsmt search binarise`")
    found: list[list[list[float]]] = [[] for _ in args.version]
    for number in range(args.repeat + 1):
        for (source, model), times in zip(args.version, found, strict=True):
            times.append(measured(source, model, args.sentence))
            if number == 0:
                times.clear()  # the first measurement compiles kernels and fills the page cache
    for (source, _), times in zip(args.version, found, strict=True):
        whole, opening, sentence = (statistics.median(column) for column in zip(*times, strict=True))
        spread = f"{min(row[1] for row in times):.3f} to {max(row[1] for row in times):.3f}"
        print(f"{source}: process {whole:.3f}, opening {opening:.3f} ({spread}), sentence {sentence:.3f} CPU s")


if __name__ == "__main__":
    main()
