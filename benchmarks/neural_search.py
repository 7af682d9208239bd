"""Compare the CPU time of the search without a neural model, with the CSLM, with the joint model, and with both.

    python benchmarks/neural_search.py RUN --source SOURCE [--systems baseline cslm nnjm cslm_nnjm] [--rounds 1]

RUN: directory of a finished run of the workflow, which is only read. SOURCE: tokenised source text of one of its sets.
Every system translates the text with the weights of run1, in a separate process on one thread, with an empty cache of
n-grams. The table has CPU seconds of search and loading, n-grams looked up, n-grams scored for the first time, and the
peak resident memory of the process. With several rounds, the systems are run in turn, and the least CPU seconds are
printed.

The second table has the CPU seconds of decoding in the tuning of run1, from the log of the run: those of the first
iteration, in which no n-gram is cached and kernels may be compiled, and the mean of the other iterations.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rnnsmt.moses.ini import MosesIni


def translate(ini: Path, source: str) -> dict[str, float]:
    """Translate a text in a new process; return the figures of its last line, and ``peak``, its peak memory in MB."""
    read = MosesIni.read(str(ini))
    table = read.file_of(next(f for f in read.features if f.name == "TranslationModel0"))
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "rnnsmt", "search", "decode", "--ini", str(ini)]
        command += ["--model-dir", str(table.parent / "filtered" / "all"), "--input", source, "--threads", "1"]
        command += ["--output", f"{directory}/output", "--device", "cpu"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        messages = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            sys.exit(f"{' '.join(command)}\n{messages}")
    last = messages.splitlines()[-1]
    figures = {name: float(value.replace(",", "")) for name, value in re.findall(r"(\w+) (-?[\d,]*[\d.]*\d)", last)}
    return figures | {"peak": used.ru_maxrss / 1024}


def decoding_of_tuning(log: Path) -> list[float]:
    """Return the CPU seconds of decoding in every iteration of the first tuning run of a log."""
    found: list[float] = []
    for number, seconds in re.findall(
        r"\biteration (\d+) of .*CPU s: .*decode ([0-9.]+)", log.read_text(), re.MULTILINE
    ):
        if int(number) <= len(found):
            break
        found.append(float(seconds))
    if not found:
        sys.exit(f"{log}: no line with the CPU seconds of an iteration")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN", help="directory of a finished run")
    parser.add_argument("--source", required=True, help="tokenised source text")
    parser.add_argument(
        "--systems", nargs="+", default=["baseline", "cslm", "nnjm", "cslm_nnjm"], help="the first one has ratio 1"
    )
    parser.add_argument("--rounds", type=int, default=1, help="number of rounds")
    args = parser.parse_args()
    results = Path(args.run) / "results"
    for system in args.systems:
        if not (results / "systems" / system / "run1" / "moses.ini").is_file():
            parser.error(f"--systems {system}: {results} has no such system")

    measured: dict[str, list[dict[str, float]]] = {system: [] for system in args.systems}
    for _ in range(args.rounds):
        for system in args.systems:
            measured[system].append(translate(results / "systems" / system / "run1" / "moses.ini", args.source))
    first = min(one["search_cpu_seconds"] for one in measured[args.systems[0]])
    print("| system | CPU s of the search | ratio | CPU s of loading | n-grams looked up | scored | peak memory, MB |")
    print("|---|---|---|---|---|---|---|")
    for system, rounds in measured.items():
        best = min(rounds, key=lambda one: one["search_cpu_seconds"])
        ngrams = [f"{best[name]:,.0f}" if name in best else "" for name in ("ngrams_requested", "ngrams_scored")]
        print(
            f"| {system} | {best['search_cpu_seconds']:.1f} | {best['search_cpu_seconds'] / first:.2f} | "
            f"{min(one['load_cpu_seconds'] for one in rounds):.1f} | {' | '.join(ngrams)} | {best['peak']:,.0f} |"
        )

    logs = {system: results / "logs" / "tuning" / f"mert.{system}.log" for system in args.systems}
    if missing := [str(log) for log in logs.values() if not log.is_file()]:
        sys.exit(f"no second table, because these logs are missing: {', '.join(missing)}")
    tunings = {system: decoding_of_tuning(log) for system, log in logs.items()}
    plain = tunings[args.systems[0]]
    print("\n| system | iterations | CPU s of the first | mean CPU s of the others | ratio |\n|---|---|---|---|---|")
    for system, found in tunings.items():
        mean, of_plain = (sum(seconds[1:]) / max(len(seconds) - 1, 1) for seconds in (found, plain))
        print(f"| {system} | {len(found)} | {found[0]:.1f} | {mean:.1f} | {mean / of_plain:.2f} |")


if __name__ == "__main__":
    main()
