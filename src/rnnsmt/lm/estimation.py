"""Estimation of an n-gram LM with KenLM's lmplz, if it is installed, or with the built-in estimator."""

import argparse
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rnnsmt.base.io import InputError, atomic_binary, read_byte_lines, scratch_folder
from rnnsmt.base.options import pruning_mistake
from rnnsmt.base.progress import say
from rnnsmt.lm.arpa import write_arpa
from rnnsmt.lm.columns import Workspace
from rnnsmt.lm.counts import count_ngrams
from rnnsmt.lm.smoothing import smooth
from rnnsmt.lm.text import LmVocabulary

MAX_ORDER = 10
"""Maximum order of the built-in estimator."""

KENLM_ORDERS = (2, 6)
"""Minimum and maximum order that KenLM's Python module can load."""

OWN_MB = 150
"""Memory of the process before it has read anything."""


def order_between(least: int, most: int) -> Callable[[str], int]:
    """Return the argparse type of an option for a model's order."""

    def order(text: str) -> int:
        """Convert the value of the option.

        Raises:
            ArgumentTypeError: the order is out of range.
        """
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
    """Estimate a model with the built-in estimator, and write it.

    Args:
        inputs: text files.
        order: maximum n-gram length.
        output: the ARPA file.
        vocabulary: closed vocabulary: all other words of the text are counted as ``<unk>``; None: open vocabulary.
        only: see ``rnnsmt.lm.arpa.write_arpa``.
        prune: thresholds of the orders from 1, the last one also for all higher orders: n-grams that do not occur more
            often are pruned; empty: no pruning.
        memory_mb: memory limit.
        threads: number of compression threads.

    Returns:
        The statistics of the stage.

    Raises:
        InputError: as ``rnnsmt.lm.counts.count_ngrams``, or the thresholds are invalid.
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
    """Return a threshold for every order, or an empty list without pruning.

    Raises:
        InputError: the thresholds are invalid.
    """
    if wrong := pruning_mistake(prune, order):
        raise InputError(f"--prune {' '.join(map(str, prune))}: {wrong}")
    return [*prune, *[prune[-1]] * (order - len(prune))] if prune else []


def find_lmplz(estimator: str) -> str | None:
    """Return the path of lmplz, or None for the built-in estimator.

    Args:
        estimator: ``auto``, ``lmplz`` or ``builtin``.

    Raises:
        InputError: lmplz is requested, but not on PATH.
    """
    program = None if estimator == "builtin" else shutil.which("lmplz")
    if estimator == "lmplz" and program is None:
        raise InputError("--estimator lmplz: no lmplz on PATH; install KenLM or use --estimator builtin")
    return program


def run_lmplz(
    lmplz: str,
    inputs: Sequence[str | Path],
    order: int,
    output: str | Path,
    memory_mb: int,
    prune: Sequence[int] = (),
) -> dict[str, object]:
    """Estimate a model with lmplz; inputs may be compressed, and the ARPA file is written atomically.

    Args:
        lmplz: path of the program.
        inputs: text files.
        order: maximum n-gram length.
        output: the ARPA file.
        memory_mb: memory limit.
        prune: as in ``estimate``.

    Returns:
        The statistics of the stage.

    Raises:
        InputError: lmplz failed (the message contains the end of its output), or the thresholds are invalid.
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
