"""Estimate an interpolated modified Kneser-Ney language model and write it as an ARPA file.

The figures are those of KenLM's lmplz without options (Heafield et al. 2013): no pruning, interpolated unigrams,
``<s>``-initial n-grams counted as they occur. ``--estimator auto`` takes lmplz where it is on PATH and the built-in
estimator where it is not. Words are separated by space and tab; ``<s>``, ``</s>`` and ``<unk>`` may not occur as words.
A text that is too small to estimate discounts gets lmplz's fallback discounts 0.5, 1 and 1.5, and a warning.

Memory: the text and its n-grams stay in memory while they fit in ``--memory-mb``, and go to temporary files beside the
output when they do not; the vocabulary always stays in memory.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rnnsmt.common_options import positive
from rnnsmt.lm.arpa_writer import write_arpa
from rnnsmt.lm.columns import Workspace
from rnnsmt.lm.counts import count_ngrams
from rnnsmt.lm.lmplz import find_lmplz, run_lmplz
from rnnsmt.lm.smoothing import smooth
from rnnsmt.lm.text import Vocabulary

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rnnsmt lm estimate``."""
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--output", required=True, metavar="ARPA", help="compressed by suffix")
    parser.add_argument("--order", type=order_between(1, MAX_ORDER), default=5, help="length of the longest n-grams")
    parser.add_argument("--estimator", choices=["auto", "lmplz", "builtin"], default="auto")
    parser.add_argument("--memory-mb", type=positive, default=2000, help="memory to stay within")
    parser.add_argument("--threads", type=positive, default=1)


def run(args: argparse.Namespace) -> dict[str, object]:
    """Estimate the model; the figures are lines, words, types and n-grams."""
    lmplz = find_lmplz(args.estimator)
    if lmplz is not None:
        return run_lmplz(lmplz, args.input, args.order, args.output, args.memory_mb)
    return estimate(args.input, args.order, args.output, memory_mb=args.memory_mb, threads=args.threads)


def estimate(
    inputs: Sequence[str | Path],
    order: int,
    output: str | Path,
    *,
    vocabulary: Iterable[str] | None = None,
    only: Iterable[str] | None = None,
    memory_mb: int = 2000,
    threads: int = 1,
) -> dict[str, object]:
    """The built-in estimator.

    Args:
        vocabulary: where given, every other word of the text is counted as ``<unk>``.
        only: see ``rnnsmt.lm.arpa_writer.write_arpa``.

    Raises:
        InputError: see ``rnnsmt.lm.counts.count_ngrams``.
    """
    workspace = Workspace(max(memory_mb - OWN_MB, 16) << 20, Path(output).parent)
    counts = count_ngrams(inputs, order, Vocabulary(vocabulary), workspace)
    model, discounts = smooth(counts, workspace)
    write_arpa(output, counts, model, threads, only)
    return {
        "lines": counts.lines,
        "words": counts.tokens,
        "types": counts.vocabulary.size,
        "n-grams": "/".join(str(len(level)) for level in counts.orders),
        "fallback discounts": sum(d.fallback for d in discounts),
        "on disk": "yes" if workspace.on_disk else "no",
    }
