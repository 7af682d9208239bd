"""Estimation of an n-gram LM with KenLM's lmplz, if it is installed, or with the built-in estimator.

The built-in estimator computes interpolated modified Kneser-Ney probabilities (Chen and Goodman 1999, section 3) from
adjusted counts, with the conventions of lmplz (Heafield et al. 2013, section 3). For an n-gram ``v w`` with context v
and adjusted count a::

    p(w | v) = (a - D_k(a)) / sum_x a(v x) + gamma(v) p(w | v without its first word)
    gamma(v) = sum_x D_k(a(v x)) / sum_x a(v x)

The discount D_k depends on the order k and on whether a is 1, 2, or 3 and more. Unigrams are interpolated with the
uniform distribution over all words, including ``<unk>`` and ``</s>``, but without ``<s>``, which is never predicted.
``<unk>`` has count 0 and therefore only the probability from the uniform distribution; with a closed vocabulary,
``<unk>`` is counted like any word.

If an n-gram is pruned, its whole count instead of the discount is added to the numerator of gamma. The discounts, the
denominators and the counts of shorter n-grams are computed without pruning; the uniform distribution covers the words
that are kept.
"""

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.options import pruning_mistake
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import say, warn
from rnnsmt.base.reading import read_byte_lines
from rnnsmt.base.writing import atomic_binary, scratch_directory
from rnnsmt.lm import KENLM_ORDERS
from rnnsmt.lm.arpa import write_arpa
from rnnsmt.lm.columns import Workspace, slices
from rnnsmt.lm.counts import Counts, SmoothedOrder, count_ngrams
from rnnsmt.lm.text import LmVocabulary

OWN_MB = 150
"""Memory of the process before it reads the text, in MB."""


def estimate(
    inputs: Sequence[StrPath],
    order: int,
    output: StrPath,
    *,
    vocabulary: Iterable[str] | None = None,
    only: Iterable[str] | None = None,
    prune: Sequence[int] = (),
    memory_mb: int = 2000,
    threads: int = 1,
) -> dict[str, object]:
    """Estimate a model with the built-in estimator, and write it as an ARPA file.

    Args:
        inputs: text files.
        order: maximum n-gram length.
        output: the ARPA file.
        vocabulary: closed vocabulary; all other words of the text are counted as ``<unk>``. None: open vocabulary.
        only: see ``rnnsmt.lm.arpa.write_arpa``.
        prune: thresholds of orders 1, 2 and so on; the last threshold also applies to all higher orders. N-grams that
            occur at most as often as the threshold are pruned. Empty: no pruning.
        memory_mb: memory limit in MB.
        threads: number of compression threads.

    Returns:
        The statistics of the stage.
    """
    thresholds = _padded(prune, order)
    if order < KENLM_ORDERS[0]:
        say("note: KenLM and Moses cannot read models of order 1; `search decode` can")
    workspace = Workspace(max(memory_mb - OWN_MB, 16) << 20, Path(output).parent)
    counts = count_ngrams(inputs, order, LmVocabulary(vocabulary), workspace)
    model, discounts = smooth(counts, workspace, thresholds)
    written = write_arpa(output, counts, model, thresholds, threads, only)
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
    """Return a threshold for every order; 0 means no pruning."""
    if wrong := pruning_mistake(prune, order):
        raise InputError(f"--prune {' '.join(map(str, prune))}: {wrong}")
    return [*prune, *[prune[-1] if prune else 0] * (order - len(prune))]


def find_lmplz(estimator: str) -> str | None:
    """Return the path of lmplz, or None for the built-in estimator.

    Args:
        estimator: ``auto``, ``lmplz`` or ``builtin``.
    """
    program = None if estimator == "builtin" else shutil.which("lmplz")
    if estimator == "lmplz" and program is None:
        raise InputError("--estimator lmplz: no lmplz on PATH; install KenLM or use --estimator builtin")
    return program


def run_lmplz(
    lmplz: str, inputs: Sequence[StrPath], order: int, output: StrPath, memory_mb: int, prune: Sequence[int] = ()
) -> dict[str, object]:
    """Estimate a model with lmplz; inputs may be compressed, and the ARPA file is written atomically.

    Args:
        lmplz: path of the program.
        order: maximum n-gram length.
        prune: as in ``estimate``.

    Returns:
        The statistics of the stage.
    """
    thresholds = ["--prune", *map(str, _padded(prune, order))] if prune else []
    lines = 0
    with scratch_directory(output) as temporary:
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
                pass  # lmplz exited before it had read all input; its exit status is checked below
            except BaseException:
                process.kill()
                process.wait()
                raise
            status = process.wait()
        messages = log.read_text("utf-8", "replace").strip().splitlines()
        if status != 0 or not arpa.exists():
            raise InputError(f"lmplz exited with status {status}: {' '.join(messages[-3:])}")
        with arpa.open("rb") as source, atomic_binary(output) as target:
            shutil.copyfileobj(source, target, 1 << 20)
    return {"lines": lines, "estimator": lmplz}


FALLBACK = (0.5, 1.0, 1.5)
"""Discounts of the option ``--discount_fallback`` of lmplz, used if the text is too small to estimate discounts."""


@dataclass(frozen=True)
class Discounts:
    """Discounts of one order.

    Attributes:
        values: D1, D2, D3+: the discounts for adjusted counts of 1, 2, and 3 or more.
        fallback: whether these are the fallback discounts.
    """

    values: tuple[float, float, float]
    fallback: bool


def estimate_discounts(counts_of_counts: npt.NDArray[np.int64]) -> Discounts:
    """Estimate discounts in closed form (Chen and Goodman 1999, equation 26).

    ``FALLBACK`` is returned if no n-gram has the count 1, 2 or 3, or if the discount for a count is negative or exceeds
    the count.

    Args:
        counts_of_counts: int64 [5], number of n-grams with adjusted count 0, 1, 2, 3 and 4.
    """
    n = counts_of_counts.astype(np.float64)
    if not (n[1] and n[2] and n[3]):
        return Discounts(FALLBACK, True)
    y = n[1] / (n[1] + 2 * n[2])
    values = tuple(float(k - (k + 1) * y * n[k + 1] / n[k]) for k in (1, 2, 3))
    if any(not 0 <= value <= k for k, value in enumerate(values, 1)):
        return Discounts(FALLBACK, True)
    return Discounts((values[0], values[1], values[2]), False)


def smooth(
    counts: Counts, workspace: Workspace, thresholds: Sequence[int]
) -> tuple[list[SmoothedOrder], list[Discounts]]:
    """Compute probabilities and back-off weights of all orders.

    Args:
        thresholds: for each order, the maximum count of pruned n-grams, see ``OrderCounts.kept``; 0 for no pruning.
            Probabilities and back-off weights of pruned n-grams are undefined.

    Returns:
        The smoothed orders, and the discounts of each order.
    """
    all_discounts = []
    for k, level in enumerate(counts.orders, 1):
        n = np.zeros(5, np.int64)
        for start, stop in slices(len(level), workspace.slice_length(16)):
            # counts above 4 are combined into a single bin, which is discarded
            n += np.bincount(np.minimum(level.adjusted.read(start, stop), 5), minlength=6)[:5]
        discounts = estimate_discounts(n)
        if discounts.fallback:
            say(f"{k}-grams with count 1, 2, 3, 4: {', '.join(str(int(x)) for x in n[1:])}; fallback discounts")
        all_discounts.append(discounts)
    if any(discounts.fallback for discounts in all_discounts):
        warn("small text: the fallback discounts 0.5, 1 and 1.5 are used for some n-grams (harmless)")
    result = [_unigrams(counts, all_discounts[0], thresholds[0], workspace)]
    for k in range(2, len(counts.orders) + 1):
        result.append(_order(counts, k, all_discounts[k - 1], thresholds[k - 1], result[-1], workspace))
    return result, all_discounts


def _unigrams(counts: Counts, discounts: Discounts, threshold: int, workspace: Workspace) -> SmoothedOrder:
    adjusted = counts.orders[0].adjusted.read(0, counts.vocabulary.size).astype(np.float64)
    table = np.array([0.0, *discounts.values])
    taken = table[np.minimum(adjusted, 3).astype(np.int64)]
    words = counts.vocabulary.size
    if threshold:
        unpruned = counts.orders[0].kept(0, words, threshold)
        taken, words = np.where(unpruned, taken, adjusted), int(unpruned.sum())
    total = adjusted.sum()
    uniform = taken.sum() / total / (words - 1)
    result = SmoothedOrder(workspace.column(np.float32), workspace.column(np.float32))
    probability = (adjusted - taken) / total + uniform
    probability[1] = 1.0  # <s>: lmplz writes logarithm 0; it is never queried
    result.probability.append(probability)
    return result


def _order(
    counts: Counts, k: int, discounts: Discounts, threshold: int, below: SmoothedOrder, workspace: Workspace
) -> SmoothedOrder:
    """Smooth order k, and set the back-off weights of order k - 1; close the column of contexts."""
    level, contexts = counts.orders[k - 1], len(counts.orders[k - 2])
    occurrences = level.raw if threshold else level.adjusted  # without pruning, both exceed the threshold 0
    table = np.array([0.0, *discounts.values])
    denominators = workspace.column(np.float64)
    step = workspace.slice_length(32)
    # N-grams are not sorted by context: for every slice of contexts, all n-grams are read, and the kernels select the
    # n-grams with a context in the slice.
    for low, high in slices(contexts, step):
        denominator, mass = np.zeros(high - low), np.zeros(high - low)
        for start, stop in slices(len(level), step):
            context, adjusted = level.context.read(start, stop), level.adjusted.read(start, stop)
            often = occurrences.read(start, stop)
            add_contexts(context, adjusted, often, threshold, table, low, denominator, mass)
        denominators.append(denominator)
        below.backoff.append(np.divide(mass, denominator, out=np.ones(high - low), where=denominator > 0))
    result = SmoothedOrder(workspace.column(np.float32), workspace.column(np.float32))
    for start, stop in slices(len(level), step):
        context, adjusted = level.context.read(start, stop), level.adjusted.read(start, stop)
        share, weight = np.empty(stop - start), np.empty(stop - start)
        for low, high in slices(contexts, step):
            denominator, gamma = denominators.read(low, high), below.backoff.read(low, high)
            discounted(context, adjusted, table, low, denominator, gamma, share, weight)
        # suffix numbers are ascending, so that only a range of the next lower order is needed
        suffix = level.suffix.read(start, stop).astype(np.int64)
        lower = below.probability.read(int(suffix[0]), int(suffix[-1]) + 1)
        result.probability.append(share + weight * lower[suffix - suffix[0]])
    denominators.close()
    level.context.close()
    return result


@kernel()
def add_contexts(context, count, occurrences, threshold, discounts, low, denominator, mass):
    """Add adjusted counts and discounts of n-grams to their contexts, if ``low <= context < low + len(mass)``.

    For a pruned n-gram, the whole count is added to ``mass`` instead of the discount.

    Args:
        context: uint32 [n], context of each n-gram.
        count: uint32 [n], adjusted counts.
        occurrences: uint32 [n], number of occurrences; n-grams that occur more often than ``threshold`` are kept.
        discounts: float64 [4], discounts for counts 0, 1, 2, and 3 or more.
        low: first context of the slice.
        denominator: float64 [contexts of the slice], sums of counts, updated.
        mass: float64 [contexts of the slice], sums of discounts, updated.
    """
    for i in range(len(context)):
        at = np.int64(context[i]) - low
        if 0 <= at < len(mass):
            denominator[at] += count[i]
            if occurrences[i] > threshold:
                mass[at] += discounts[min(count[i], np.uint32(3))]
            else:
                mass[at] += count[i]


@kernel()
def discounted(context, count, discounts, low, denominator, gamma, share, weight):
    """Compute the terms of the interpolation for n-grams whose context is in a slice.

    Args:
        context: uint32 [n], context of each n-gram.
        count: uint32 [n], adjusted counts.
        discounts: float64 [4], discounts for counts 0, 1, 2, and 3 or more.
        low: first context of the slice.
        denominator: float64 [contexts of the slice], sums of counts.
        gamma: float32 [contexts of the slice], interpolation weights.
        share: float64 [n], set to (count - discount) / denominator.
        weight: float64 [n], set to the interpolation weight.
    """
    for i in range(len(context)):
        at = np.int64(context[i]) - low
        if 0 <= at < len(gamma):
            share[i] = (count[i] - discounts[min(count[i], np.uint32(3))]) / denominator[at]
            weight[i] = gamma[at]
