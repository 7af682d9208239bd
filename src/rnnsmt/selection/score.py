"""Score every line by how much better the in-domain model likes it than the general one; lower is more in-domain.

Of a monolingual text (Moore and Lewis 2010): H_in(s) - H_gen(s), the cross-entropies in bits per word, the end of the
sentence counted as a word. Of a bitext (Axelrod, He and Gao 2011): the sum of that difference over both sides.
The models are those of ``rnnsmt selection models``. The output has one score a line.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rnnsmt.corpus.workers import map_chunks
from rnnsmt.io import InputError, open_binary, read_parallel, write_lines
from rnnsmt.lm.estimate import positive
from rnnsmt.lm.queries import LOG2_10, load_kenlm
from rnnsmt.progress import track
from rnnsmt.selection.models import GENERAL, IN_DOMAIN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rnnsmt selection score``."""
    parser.add_argument("--text", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--models", required=True, metavar="DIR", help="models of the text's language")
    parser.add_argument("--text2", metavar="FILE", help="the other side of a bitext")
    parser.add_argument("--models2", metavar="DIR", help="models of its language")
    parser.add_argument("--output", required=True, metavar="TSV", help="one score a line, compressed by suffix")
    parser.add_argument("--threads", type=positive, default=1, help="processes")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Score and write; the figures are lines and the mean score."""
    if (args.text2 is None) != (args.models2 is None):
        raise InputError("--text2 and --models2 go together: give both for a bitext, none for monolingual text")
    texts = [args.text] if args.text2 is None else [args.text, args.text2]
    folders = [Path(args.models)] if args.text2 is None else [Path(args.models), Path(args.models2)]
    for folder in folders:
        for name in (IN_DOMAIN, GENERAL):
            open_binary(folder / name).close()
    chunks = map_chunks(partial(_scorer, folders), track(read_parallel(*texts), "scoring"), args.threads)
    total = 0.0

    def formatted() -> Iterator[str]:
        nonlocal total
        for scores in chunks:
            total += sum(scores)
            yield from (f"{score:.6f}" for score in scores)

    number = write_lines(args.output, formatted())
    return {"lines": number, "mean score": total / max(number, 1)}


def _scorer(folders: Sequence[Path]) -> Callable[[Sequence[tuple[str, ...]]], list[float]]:
    """A function that scores rows of one line per side."""
    models = [(load_kenlm(folder / IN_DOMAIN), load_kenlm(folder / GENERAL)) for folder in folders]

    def score(rows: Sequence[tuple[str, ...]]) -> list[float]:
        return [sum(_difference(pair, line) for pair, line in zip(models, row, strict=True)) for row in rows]

    return score


def _difference(models: tuple[Any, Any], line: str) -> float:
    """H_in - H_gen of a line, in bits per word and ``</s>``."""
    text = line.encode()
    in_domain, general = models
    return LOG2_10 * (general.score(text) - in_domain.score(text)) / (len(text.split()) + 1)
