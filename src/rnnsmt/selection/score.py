"""Score every line by how much better the in-domain model likes it than the general one; lower is more in-domain.

Of a monolingual text (Moore and Lewis 2010): H_in(s) - H_gen(s), the cross-entropies in bits per word, the end of the
sentence counted as a word. Of a bitext (Axelrod, He and Gao 2011): the sum of that difference over both sides.
The models are those of ``rnnsmt selection models``; lines that its general model was trained on, and copies of them,
are scored with its second general model. The output has one score a line.

``--random`` gives every line a random score instead: the control, a random part of the same size.
"""

import argparse
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rnnsmt.common_options import positive
from rnnsmt.corpus.workers import map_chunks
from rnnsmt.io import InputError, read_lines, read_parallel, write_lines
from rnnsmt.lm.queries import LOG2_10, load_kenlm
from rnnsmt.progress import track
from rnnsmt.selection.models import GENERAL, GENERAL2, GENERAL_TEXT, IN_DOMAIN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rnnsmt selection score``."""
    parser.add_argument("--text", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--models", required=True, metavar="DIR", help="models of the text's language")
    parser.add_argument("--text2", metavar="FILE", help="the other side of a bitext")
    parser.add_argument("--models2", metavar="DIR", help="models of its language")
    parser.add_argument("--output", required=True, metavar="TSV", help="one score a line, compressed by suffix")
    parser.add_argument("--random", type=int, metavar="SEED", help="random scores, the control of an experiment")
    parser.add_argument("--threads", type=positive, default=1, help="processes")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Score and write; the figures are lines and the mean score."""
    if (args.text2 is None) != (args.models2 is None):
        raise InputError("--text2 and --models2 go together: give both for a bitext, none for monolingual text")
    texts = [args.text] if args.text2 is None else [args.text, args.text2]
    folders = [Path(args.models)] if args.text2 is None else [Path(args.models), Path(args.models2)]
    rows = track(read_parallel(*texts), "scoring")
    chunks: Iterable[Sequence[float]]
    if args.random is None:
        scorer = Scorer([Side.load(folder) for folder in folders])
        chunks = map_chunks(lambda: scorer, rows, args.threads)
    else:
        generator = random.Random(args.random)
        chunks = ([generator.random()] for _ in rows)
    total = 0.0

    def formatted() -> Iterator[str]:
        nonlocal total
        for scores in chunks:
            total += sum(scores)
            yield from (f"{score:.6f}" for score in scores)

    number = write_lines(args.output, formatted())
    return {"lines": number, "mean score": total / max(number, 1)}


@dataclass(frozen=True)
class Side:
    """The models of one language: KenLM models, and the lines that ``general`` was trained on."""

    in_domain: Any
    general: Any
    general2: Any
    seen: frozenset[str]

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what ``rnnsmt selection models`` wrote; ``InputError`` where something is missing or damaged."""
        in_domain, general, general2 = (load_kenlm(folder / name) for name in (IN_DOMAIN, GENERAL, GENERAL2))
        return cls(in_domain, general, general2, frozenset(read_lines(folder / GENERAL_TEXT)))

    def difference(self, line: str) -> float:
        """H_in - H_gen of a line, in bits per word and ``</s>``."""
        text = line.encode()
        general = self.general2 if line in self.seen else self.general
        return LOG2_10 * (general.score(text) - self.in_domain.score(text)) / (len(text.split()) + 1)


class Scorer:
    """Scores rows of one line per side."""

    def __init__(self, sides: Sequence[Side]) -> None:
        self._sides = sides

    def __call__(self, rows: Sequence[tuple[str, ...]]) -> list[float]:
        """The scores of rows: the sum of the sides' differences."""
        return [sum(side.difference(line) for side, line in zip(self._sides, row, strict=True)) for row in rows]
