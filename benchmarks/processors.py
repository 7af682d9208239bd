"""Run the demo corpus with the instructions of other kinds of processors, and compare the results with this processor.

    python benchmarks/processors.py --directory DIR --kinds float32 haswell nehalem avx2 [--cores 2]
        [--configfile FILE] [--target results/table1.json ...]

A kind of processor is emulated by the variables with which libraries choose their instructions (``KINDS``): numba,
oneDNN, MKL, the operations of PyTorch, OpenBLAS, NumPy and the mathematical functions of glibc. Without bfloat16
instructions, products take float32 factors, so these kinds have ``precision: float32``. ``native`` is this processor
without changes, ``float32`` the same without bfloat16. ``avx2`` is not a processor but a mode: the variables fix the
instructions to AVX2, on any processor that has them; if its files are equal to those of ``haswell``, an AVX2 processor
without these variables but with the same libraries has the same results.

Every kind is run in a separate directory; an existing directory is completed. The command prints for every kind the
files that differ from those of ``native``, in the order of their creation, the differences between the figures of the
tables, and the standard deviation of ``native``.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

FLOAT32 = {name: {"settings": {"precision": "float32"}} for name in ("rnn", "cslm", "nnjm", "seq2seq")}
"""Settings of processors without bfloat16 instructions."""

AVX512 = "-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD"

KINDS: dict[str, dict[str, str]] = {
    "native": {},
    "float32": {},
    "skylake": {
        "OPENBLAS_CORETYPE": "SkylakeX",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512",
        "NUMBA_CPU_NAME": "skylake-avx512",
        "NUMBA_CPU_FEATURES": "",
        "NPY_DISABLE_CPU_FEATURES": "AVX512_ICL AVX512_SPR",
    },
    "haswell": {
        "OPENBLAS_CORETYPE": "Haswell",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
        "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={AVX512}",
    },
    "nehalem": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "NUMBA_CPU_NAME": "nehalem",
        "NUMBA_CPU_FEATURES": "",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
        "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={AVX512},-AVX2,-AVX,-FMA",
    },
    "avx2": {
        "OPENBLAS_CORETYPE": "Haswell",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_CBWR": "AVX2",
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "",
    },
}
"""Environment of every kind of processor; all but ``native`` have the settings ``FLOAT32``."""

UNEQUAL = ("results/logs/", "results/provenance.json", "results/report/", "results/figures/")
"""Files that contain times, paths or settings, or are drawn from other files."""


def command(args: argparse.Namespace, kind: str) -> list[str]:
    """Return the command that runs the workflow for a kind of processor."""
    settings = args.directory / f"{kind}.json"
    settings.write_text(json.dumps({} if kind == "native" else FLOAT32))
    return [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", str(args.cores)),
        *("--directory", str(args.directory / kind), *args.target),
        *("--configfile", *args.configfile, str(settings)),
    ]


def files(run: Path) -> dict[str, str]:
    """Return SHA-256 by path of the results of a run, in the order of their creation."""
    found = sorted((run / "results").rglob("*"), key=lambda path: path.stat().st_mtime_ns)
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in found
        if path.is_file() and not (name := str(path.relative_to(run))).startswith(UNEQUAL) and "/checkpoint" not in name
    }


def table(run: Path) -> dict[tuple[str, str], tuple[float, float]]:
    """Return BLEU and its standard deviation over tuning runs by system and test set."""
    path = run / "results/table1.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    return {(row["system"], row["test_set"]): (row["bleu"], row["bleu_sd"]) for row in rows}


def compared(run: Path, other: Path) -> Iterator[str]:
    """Yield descriptions of the differences between two runs."""
    ours, theirs = files(run), files(other)
    common = [name for name in theirs if name in ours]
    different = [name for name in common if ours[name] != theirs[name]]
    yield f"{run.name} against {other.name}: {len(common) - len(different)} of {len(common)} files have the same bytes"
    if different:
        yield f"  first: {', '.join(different[:6])}"
    before, after = table(other), table(run)
    for row in before.keys() & after.keys():
        (a, sd), (b, _) = before[row], after[row]
        yield f"  {row[0]:16}{row[1]:16}{a:7.2f} ± {sd or 0:.2f} {b:7.2f}  {b - a:+.2f}"


def main() -> None:
    """Run all kinds, compare every one with native, and avx2 with haswell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, required=True, metavar="DIR", help="where the runs are")
    parser.add_argument("--kinds", nargs="+", default=["float32", "haswell", "avx2"], choices=KINDS, metavar="KIND")
    parser.add_argument("--configfile", nargs="*", default=[], metavar="FILE", help="settings of all kinds")
    parser.add_argument("--target", nargs="*", default=["results/table1.json"], metavar="FILE", help="what is made")
    parser.add_argument("--cores", type=int, default=2, help="cores of a run (default: 2)")
    args = parser.parse_args()
    args.directory = args.directory.resolve()
    args.directory.mkdir(parents=True, exist_ok=True)
    for kind in dict.fromkeys(["native", *args.kinds]):
        subprocess.run(command(args, kind), env=os.environ | KINDS[kind], check=True)
    pairs = [(kind, "native") for kind in args.kinds if kind != "native"]
    pairs += [(kind, "float32") for kind in args.kinds if "float32" in args.kinds and kind not in ("float32", "native")]
    pairs += [("avx2", "haswell")] if {"avx2", "haswell"} <= set(args.kinds) else []
    for one, other in pairs:
        print("\n".join(compared(args.directory / one, args.directory / other)))


if __name__ == "__main__":
    main()
