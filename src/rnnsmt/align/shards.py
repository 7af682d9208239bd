"""Training in separate jobs that each process a shard of the corpus, on one or several machines, and exchange files.

The iterations are those of ``rnnsmt.align.training``, and the links are the same for any number of shards. ``cut``
collects statistics of the corpus and splits it into shards. In every iteration, ``count`` computes the counts of one
shard, and ``estimate`` the next parameters from the counts of all shards. ``links`` concatenates the links of all
shards from the last iteration. Every file stores the fingerprint of its job.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rnnsmt.align.bitext import Bitext
from rnnsmt.align.direction import Counts, Direction, Parameters, Sentences, Statistics
from rnnsmt.align.lexicon import MAX_PAIRS, Lexicon, mark_pairs
from rnnsmt.align.pharaoh import Links
from rnnsmt.align.training import ALIGNERS, links_of, load_arrays, save_arrays, sides
from rnnsmt.base.io import InputError
from rnnsmt.base.options import bounds_of_part
from rnnsmt.base.parallel import in_threads

REMEDY = "create it again, and then all later files"
"""Advice at the end of the error messages about a file of another job."""

TEXT = ("given_ids", "given_offsets", "generated_ids", "generated_offsets")
"""Names of the arrays of a shard's sentences: ids and offsets of both sides."""

IN_ORDER = ("sums", "best")
"""Results of an iteration that are concatenated in the order of the shards; all others are added up."""


def cut(
    bitext: Bitext, fingerprint: Mapping[str, object], folder: str | Path, threads: int = 1, max_pairs: int = MAX_PAIRS
) -> int:
    """Write the inputs of all iterations: ``corpus.npz``, ``parameters.0.npz`` and the shards, ``part.K-of-N.npz``.

    The corpus is split at block boundaries; if there are fewer blocks than shards, some shards are empty.

    Args:
        bitext: the corpus.
        fingerprint: fingerprint of the job, with ``--aligner``, ``--direction`` and ``--parts``.
        folder: output directory.
        threads: number of threads.
        max_pairs: as in ``build_lexicon``.

    Returns:
        The number of word pairs of the lexicon.
    """
    folder, job = Path(folder), {name: str(value) for name, value in fingerprint.items()}
    given, generated = sides(bitext, job["--direction"])
    direction = Direction(given, generated, threads, max_pairs)
    statistics: dict[str, Any] = direction.statistics()._asdict()
    save_arrays(folder / "corpus.npz", job, **statistics, offsets=generated.offsets)
    parts = int(job["--parts"])
    for number in range(1, parts + 1):
        arrays = _shard(direction, (number, parts))
        save_arrays(folder / f"part.{number}-of-{parts}.npz", job, part=np.array(number), **arrays)
    parameters = ALIGNERS[job["--aligner"]].begin(direction)
    save_arrays(folder / "parameters.0.npz", job, done=np.array(0), **parameters)
    return direction.pairs


def _shard(direction: Direction, part: tuple[int, int]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a shard: its sentences, numbered from 0, and the lexicon entries that occur in them.

    ``words_before`` is the number of generated words in the shards before. ``cells`` [pairs of the shard] contains the
    index of each pair in the lexicon of the corpus.
    """
    first, behind = bounds_of_part(part, len(direction.bounds) - 1)
    bounds = direction.bounds[first : behind + 1]
    marks = np.zeros(direction.pairs + 1, np.bool_)

    def mark(block: tuple[int, int]) -> None:
        """Mark the lexicon entries of a block."""
        mark_pairs(*block, *direction.lexicon, *direction.text, marks)

    for _ in in_threads(mark, list(pairwise(bounds.tolist())), direction.threads):
        pass
    # the last mark stands for pairs that the lexicon does not contain
    cells = np.flatnonzero(marks[:-1])
    text: list[npt.NDArray[Any]] = []
    for side in (direction.given, direction.generated):
        offsets = side.offsets[bounds[0] : bounds[-1] + 1]
        text += [side.ids[offsets[0] : offsets[-1]], offsets - offsets[0]]
    return {
        **dict(zip(TEXT, text, strict=True)),
        "bounds": bounds - bounds[0],
        "starts": np.searchsorted(cells, direction.lexicon.starts),
        "words": direction.lexicon.words[cells],
        "cells": cells.astype(np.min_scalar_type(direction.pairs)),
        "words_before": np.array(direction.generated.offsets[bounds[0]]),
    }


def count(part: str | Path, parameters: str | Path, output: str | Path, threads: int = 1) -> int:
    """Write the counts of a shard in the next iteration; return the number of that iteration, from 1.

    Only the non-zero counts of ``t`` are stored, with their indices in the lexicon of the corpus in ``cells``.

    Raises:
        InputError: the parameters are those of the last iteration, or a file belongs to another job.
    """
    names = ("part", "bounds", "starts", "words", "cells", "words_before", *TEXT)
    job, shard = load_arrays(part, REMEDY, *names)
    done, learnt = _parameters(parameters, job)
    passes = ALIGNERS[job["--aligner"]].passes
    if done == len(passes):
        raise InputError(f"{parameters}: parameters of the last iteration; the next step is rnnsmt align links")
    text = (shard["given_ids"], shard["given_offsets"], shard["generated_ids"], shard["generated_offsets"])
    sentences = Sentences(Lexicon(shard["starts"], shard["words"]), text, shard["bounds"], threads, room=0)
    # restrict t and best to the shard; the last element of t is the value of pairs that are not in the lexicon
    learnt["t"] = np.append(learnt["t"][shard["cells"]], learnt["t"][-1])
    before = int(shard["words_before"])
    learnt["best"] = learnt["best"][before : before + len(shard["generated_ids"])].copy()
    counts = passes[done].count(sentences, learnt)
    if "t" in counts:
        nonzero = np.flatnonzero(counts["t"])
        counts |= {"t": counts["t"][nonzero], "cells": shard["cells"][nonzero]}
    save_arrays(output, job, part=shard["part"], done=np.array(done), **counts)
    return done + 1


def estimate(corpus: str | Path, parameters: str | Path, counts: Sequence[str | Path], output: str | Path) -> int:
    """Write the parameters after an iteration, from those before it and the counts of all shards.

    Returns:
        The number of the iteration, from 1.

    Raises:
        InputError: a file belongs to another job or iteration, or the counts of a shard are missing.
    """
    job, statistics = load_arrays(corpus, REMEDY, *Statistics._fields)
    done, learnt = _parameters(parameters, job)
    totals = _add_up(_in_order(counts, job, done), len(learnt["t"]) - 1)
    if "best" in totals:
        learnt["best"] = totals["best"]
    ALIGNERS[job["--aligner"]].passes[done].estimate(Statistics(**statistics), learnt, totals)
    save_arrays(output, job, done=np.array(done + 1), **learnt)
    return done + 1


def links(corpus: str | Path, counts: Sequence[str | Path]) -> Iterable[Links]:
    """Return the links of the corpus from the counts files of all shards in the last iteration.

    Raises:
        InputError: as ``estimate``.
    """
    job, text = load_arrays(corpus, REMEDY, "offsets")
    last = len(ALIGNERS[job["--aligner"]].passes) - 1
    best = [load_arrays(path, REMEDY, "best")[1]["best"] for path in _in_order(counts, job, last)]
    return links_of(np.concatenate(best), text["offsets"], job["--direction"])


def _add_up(paths: Sequence[str | Path], pairs: int) -> Counts:
    """Return the counts of the corpus: the sums over all shards, or the concatenation for the names in ``IN_ORDER``.

    Args:
        paths: counts files, in the order of the shards.
        pairs: number of word pairs of the lexicon of the corpus.
    """
    totals: Counts = {}
    rows: dict[str, list[npt.NDArray[Any]]] = {}
    for path in paths:
        counts = {name: array for name, array in load_arrays(path, REMEDY)[1].items() if name not in ("part", "done")}
        if "cells" in counts:
            cells, values = counts.pop("cells"), counts.pop("t")
            totals.setdefault("t", np.zeros(pairs, np.int64))[cells] += values
        for name, array in counts.items():
            if name in IN_ORDER:
                rows.setdefault(name, []).append(array)
            elif name in totals:
                totals[name] += array
            else:
                totals[name] = array
    return totals | {name: np.concatenate(arrays) for name, arrays in rows.items()}


def _parameters(path: str | Path, job: dict[str, str]) -> tuple[int, Parameters]:
    """Return the number of completed iterations and the parameters after them.

    Raises:
        InputError: the file belongs to another job.
    """
    fingerprint, _ = load_arrays(path, REMEDY, "done", "t_null")
    if fingerprint != job:
        raise InputError(f"{path}: belongs to another alignment; {REMEDY}")
    learnt = load_arrays(path, REMEDY)[1]
    return int(learnt.pop("done")), learnt


def _in_order(paths: Sequence[str | Path], job: dict[str, str], done: int) -> list[str | Path]:
    """Return the counts files of all shards for the iteration after ``done`` others, sorted by shard.

    Raises:
        InputError: a file belongs to another job or iteration, or a shard is missing.
    """
    by_number: dict[int, str | Path] = {}
    for path in paths:
        fingerprint, of = load_arrays(path, REMEDY, "part", "done")
        if fingerprint != job or int(of["done"]) != done:
            raise InputError(f"{path}: does not belong to iteration {done + 1} of this alignment; {REMEDY}")
        by_number[int(of["part"])] = path
    if missing := [str(k) for k in range(1, int(job["--parts"]) + 1) if k not in by_number]:
        raise InputError(f"--counts: shard {', '.join(missing)} of {job['--parts']} is missing")
    return [by_number[number] for number in sorted(by_number)]
