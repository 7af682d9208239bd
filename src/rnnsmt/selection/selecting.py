"""Keep the lines with the lowest scores, in their original order.

All corpora without a --keep of their own are ranked together and --fraction of their lines is kept. ``--keep NAME=all``
keeps a corpus whole (its scores may be given as ``-``), ``--keep NAME=0.5`` keeps half of it by its own ranking. With
``--fraction auto`` a language model is estimated for every fraction of --fractions from the kept lines of the ranked
corpora, and the fraction whose model has the least perplexity on the --held-out text is taken; corpora with a --keep
play no part in this. Perplexity is of the last text of each corpus (the target side of a bitext), so the held-out
text must be of that language and must not be what the in-domain model was trained on: ``selection models`` writes it.
All models of a curve share one vocabulary (words that occur twice or more in the whole pool), so that their
perplexities can be compared.

Exact copies of a line (of a pair) have the same score and are kept or dropped together; --unique keeps at most the
first of them, over each corpus.

Writes DIR/NAME.1.gz and, for a bitext, DIR/NAME.2.gz for every corpus, DIR/selected.json, and the curve as TSV:
fraction, lines, words, perplexity, oov_rate, chosen.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnsmt.io import InputError, read_byte_lines, scratch_folder, write_lines
from rnnsmt.parallel_gzip import atomic_blocks
from rnnsmt.selection.curve import Point, curve
from rnnsmt.selection.ranking import Corpus, Ranked, best


def settled(corpora: Sequence[Corpus], keep: Sequence[tuple[str, float]]) -> list[Corpus]:
    """The corpora with their own settings, checked."""
    names = [corpus.name for corpus in corpora]
    wanted = dict(keep)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--corpus {name}: given twice; every corpus needs a name of its own")
    for name in wanted:
        if name not in names:
            raise InputError(f"--keep {name}: there is no such corpus; there are {', '.join(names)}")
    if len({len(corpus.texts) for corpus in corpora}) > 1:
        raise InputError("--corpus: some have one text and some two; select bitexts and monolingual texts separately")
    for corpus in corpora:
        corpus.keep = wanted.get(corpus.name)
        if corpus.scores is None and corpus.keep != 1.0:
            raise InputError(f"--corpus {corpus.name}: with - for scores it needs --keep {corpus.name}=all")
    return list(corpora)


def _shells(together: Sequence[Ranked], fractions: list[float]) -> dict[str, npt.NDArray[np.uint8]]:
    """The shell of every line of the corpora that are ranked together, by name."""
    if not together:
        return {}
    scores = np.concatenate([item.scores for item in together])
    if not len(scores):
        raise InputError(f"{', '.join(str(i.corpus.texts[0]) for i in together)}: no lines; there is nothing to select")
    ends = np.cumsum([item.lines for item in together])[:-1]
    parts = np.split(best(scores, fractions), ends)
    return {item.corpus.name: part for item, part in zip(together, parts, strict=True)}


def _curve(
    together: Sequence[Ranked],
    shells: dict[str, npt.NDArray[np.uint8]],
    fractions: list[float],
    held_out: list[str],
    args: argparse.Namespace,
) -> list[Point]:
    with scratch_folder(Path(args.output_dir) / "selected.json") as work:
        return curve(
            [(item.corpus.texts[-1], shells[item.corpus.name]) for item in together],
            [item.corpus.texts[-1] for item in together],
            fractions,
            held_out,
            order=args.curve_order,
            work=work,
            memory_mb=args.memory_mb,
            threads=args.threads,
        )


def _masks(
    ranked: Sequence[Ranked], shells: dict[str, npt.NDArray[np.uint8]], fractions: list[float], chosen: float | None
) -> list[npt.NDArray[np.bool_]]:
    """Which lines of each corpus are kept."""
    masks = []
    for item in ranked:
        keep = item.corpus.keep
        if keep is None:
            masks.append(shells[item.corpus.name] <= fractions.index(chosen if chosen is not None else fractions[-1]))
        elif item.corpus.scores is None or keep == 1.0:
            masks.append(np.isfinite(item.scores))
        else:
            masks.append(best(item.scores, [keep]) == 0)
    return masks


def write(path: Path, text: Path, mask: npt.NDArray[np.bool_], threads: int) -> None:
    with atomic_blocks(path, threads) as out:
        for line, kept in zip(read_byte_lines(text), mask.tolist(), strict=True):
            if kept:
                out.write(line + b"\n")


def write_curve(path: str, points: Sequence[Point], chosen: float | None) -> None:
    rows = ["fraction\tlines\twords\tperplexity\toov_rate\tchosen"]
    for p in points:
        rows.append(
            f"{p.fraction:.6g}\t{p.lines}\t{p.words}\t{p.perplexity:.4f}\t{p.oov_rate:.6f}\t{int(p.fraction == chosen)}"
        )
    write_lines(path, rows)


def report(
    args: argparse.Namespace, ranked: Sequence[Ranked], kept: dict[str, int], chosen: float | None, points: list[Point]
) -> dict[str, object]:
    corpora = {
        item.corpus.name: {
            "lines": item.lines,
            "kept": kept[item.corpus.name],
            "repeated": int(np.isinf(item.scores).sum()),
            "keep": "ranked" if item.corpus.keep is None else item.corpus.keep,
        }
        for item in ranked
    }
    return {
        "fraction": chosen,
        "asked": "auto" if args.fraction is None else args.fraction,
        "corpora": corpora,
        "curve": [vars(point) for point in points],
    }
