"""Estimating an n-gram LM: by KenLM's lmplz where it is installed, or by the estimator here."""

import argparse
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rnnsmt.io import InputError, atomic_binary, read_byte_lines, scratch_folder
from rnnsmt.lm.arpa import write_arpa
from rnnsmt.lm.columns import Workspace
from rnnsmt.lm.counts import count_ngrams
from rnnsmt.lm.smoothing import smooth
from rnnsmt.lm.text import LmVocabulary
from rnnsmt.options import pruning_mistake
from rnnsmt.progress import say

MAX_ORDER = 10

KENLM_ORDERS = (2, 6)
"""What KenLM's Python module can load."""

OWN_MB = 150
"""What the process needs before it has read anything."""


def order_between(least: int, most: int) -> Callable[[str], int]:
    """The type of an option that is a model's order."""

    def order(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"must be from {least} to {most}")
        return value

    return order


def estimate(
    inputs: Sequence[str | Path],
    order: int,
    output: str | Path,
    *,
    vocabulary: Iterable[str] | None = None,
    only: Iterable[str] | None = None,
    prune: Sequence[int] = (),
    memory_mb: int = 2000,
    threads: int = 1,
) -> dict[str, object]:
    """The built-in estimator.

    Args:
        vocabulary: where given, every other word of the text is counted as ``<unk>``.
        only: see ``rnnsmt.lm.arpa.write_arpa``.
        prune: thresholds of the orders from 1 on, the last for all that follow: n-grams that do not occur more often
            are left out. Empty: none is.

    Raises:
        InputError: see ``rnnsmt.lm.counts.count_ngrams``; the thresholds do not fit.
    """
    thresholds = _padded(prune, order)
    workspace = Workspace(max(memory_mb - OWN_MB, 16) << 20, Path(output).parent)
    counts = count_ngrams(inputs, order, LmVocabulary(vocabulary), workspace)
    model, discounts = smooth(counts, workspace, thresholds)
    written = write_arpa(output, counts, model, threads, only, thresholds)
    return {
        "lines": counts.lines,
        "words": counts.tokens,
        "types": counts.vocabulary.size,
        "n-grams": "/".join(map(str, written)),
        **({"before pruning": "/".join(str(len(level)) for level in counts.orders)} if prune else {}),
        "fallback discounts": sum(d.fallback for d in discounts),
        "on disk": "yes" if workspace.on_disk else "no",
    }


def _padded(prune: Sequence[int], order: int) -> list[int]:
    """A threshold for every order, or none at all."""
    if wrong := pruning_mistake(prune, order):
        raise InputError(f"--prune {' '.join(map(str, prune))}: {wrong}")
    return [*prune, *[prune[-1]] * (order - len(prune))] if prune else []


def find_lmplz(estimator: str) -> str | None:
    """The path of lmplz, or None for the built-in estimator.

    Args:
        estimator: ``auto``, ``lmplz`` or ``builtin``.

    Raises:
        InputError: lmplz is asked for and not on PATH.
    """
    found = None if estimator == "builtin" else shutil.which("lmplz")
    if estimator == "lmplz" and found is None:
        raise InputError("--estimator lmplz: no lmplz on PATH; install KenLM or use --estimator builtin")
    return found


def run_lmplz(
    lmplz: str,
    inputs: Sequence[str | Path],
    order: int,
    output: str | Path,
    memory_mb: int,
    prune: Sequence[int] = (),
) -> dict[str, object]:
    """Estimate with lmplz, reading compressed input and writing the ARPA file whole or not at all.

    Raises:
        InputError: lmplz failed; its last words are in the sentence. Or as ``estimate``, of the thresholds.
    """
    thresholds = ["--prune", *map(str, _padded(prune, order))] if prune else []
    lines = 0
    with scratch_folder(output) as temporary:
        arpa = temporary / "lm.arpa"
        memory = ["-S", f"{memory_mb}M", "-T", f"{temporary}/"]
        command = [lmplz, "-o", str(order), *memory, *thresholds, "--discount_fallback", "--arpa", str(arpa)]
        say("running " + " ".join(command))
        log = temporary / "log"
        with log.open("wb") as errors:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors)
            assert process.stdin is not None
            try:
                for path in inputs:
                    for line in read_byte_lines(path):
                        process.stdin.write(line + b"\n")
                        lines += 1
                process.stdin.close()
            except BrokenPipeError:
                pass  # lmplz ended before its input: its exit status says why
            except BaseException:
                process.kill()
                process.wait()
                raise
            status = process.wait()
        words = log.read_text("utf-8", "replace").strip().splitlines()
        if status != 0 or not arpa.exists():
            raise InputError(f"lmplz ended with status {status}: {' '.join(words[-3:])}")
        with arpa.open("rb") as source, atomic_binary(output) as target:
            shutil.copyfileobj(source, target, 1 << 20)
    return {"lines": lines, "estimator": lmplz}
