"""Training of an aligner in one direction, pass by pass over the corpus, in one process or in shards.

``align`` runs all passes in one process, with checkpoints between them.

Separate jobs, on one or several machines, can each process a shard of the corpus and exchange files; the passes and the
links are the same for any number of shards. ``cut_shards`` collects statistics of the corpus and splits it into shards.
In every iteration, ``count_shard`` computes the counts of one shard, and ``estimate_from_shards`` the next parameters
from the counts of all shards. ``links_of_shards`` concatenates the links of all shards from the last iteration. Every
file stores the fingerprint of its job.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align import FAST_ALIGN_ITERATIONS, HMM_ITERATIONS, MAX_PAIRS, MODEL1_ITERATIONS, fast_align, hmm, model4
from rnnsmt.align.bitext import Bitext, BitextSide, Offsets
from rnnsmt.align.direction import Counts, Direction, Parameters, Sentences, Statistics
from rnnsmt.align.lexicon import Lexicon, mark_pairs
from rnnsmt.align.pharaoh import BLOCK, Links
from rnnsmt.base.arrays import DAMAGED_ARRAY
from rnnsmt.base.io import InputError, atomic_path
from rnnsmt.base.options import bounds_of_shard
from rnnsmt.base.parallel import in_threads
from rnnsmt.base.progress import say, time_left
from rnnsmt.base.resuming import CheckpointDirectory, Stop


@dataclass(frozen=True)
class Pass:
    """One pass over the corpus.

    Attributes:
        count: function that computes counts, of all sentences or of a part of them.
        estimate: function that updates the parameters, in place, from the counts of all sentences.
    """

    count: Callable[[Sentences, Parameters], Counts]
    estimate: Callable[[Statistics, Parameters, Counts], None]


class Aligner(NamedTuple):
    """An aligner: the function that returns its initial parameters, and its passes; the last pass sets the links."""

    begin: Callable[[Direction], Parameters]
    passes: list[Pass]


_FAST_ALIGN = [Pass(fast_align.count, fast_align.estimate)] * FAST_ALIGN_ITERATIONS

_HMM = [Pass(hmm.count_model1, hmm.estimate_model1)] * MODEL1_ITERATIONS
_HMM += [Pass(hmm.count, hmm.estimate)] * HMM_ITERATIONS

ALIGNERS = {
    "fast_align": Aligner(fast_align.begin, _FAST_ALIGN),
    "hmm": Aligner(hmm.begin, [*_HMM, Pass(hmm.align, hmm.estimate)]),
    "model4": Aligner(model4.begin, [*_HMM, *[Pass(model4.count, model4.estimate)] * len(model4.PASSES)]),
}
"""Aligners by name."""


def train(
    direction: Direction, aligner: Aligner, checkpoint: "AlignmentCheckpoint | None" = None, what: str = "aligning"
) -> Parameters:
    """Run all passes, or those after ``checkpoint``; return the parameters, with the links in ``best``."""
    done, parameters = checkpoint.load() if checkpoint else (0, {})
    if not done:
        parameters = aligner.begin(direction)
    statistics = direction.statistics()
    passes, started, left = len(aligner.passes), time.monotonic(), ""
    for number, step in enumerate(aligner.passes[done:], done + 1):
        say(f"{what}: iteration {number} of {passes}{left}")  # `rnnsmt status` prints the last line of the log
        step.estimate(statistics, parameters, step.count(direction, parameters))
        left = f", {time_left(passes - number, (number - done) / max(time.monotonic() - started, 1e-9))}"
        if checkpoint and number < passes:
            checkpoint.after_pass(number, parameters)
    return parameters


def align(
    bitext: Bitext,
    aligner: str,
    direction: str,
    threads: int = 1,
    max_pairs: int = MAX_PAIRS,
    checkpoint: "AlignmentCheckpoint | None" = None,
) -> Iterator[Links]:
    """Align a bitext and yield its links, ``BLOCK`` sentence pairs at a time.

    The links do not depend on the number of threads.

    Args:
        bitext: the corpus.
        aligner: a key of ``ALIGNERS``.
        direction: ``forward`` (each target word is linked to at most one source word) or ``reverse``.
        threads: number of threads.
        max_pairs: as in ``build_lexicon``.
        checkpoint: checkpoint to resume from and to write to.

    Yields:
        Links, source-target in both directions.
    """
    given, generated = sides(bitext, direction)
    directed = Direction(given, generated, threads, max_pairs)
    best = train(directed, ALIGNERS[aligner], checkpoint, f"aligning with {aligner}, {direction}")["best"]
    del directed  # free the lexicon and the cached indices
    yield from links_of(best, generated.offsets, direction)


def sides(bitext: Bitext, direction: str) -> tuple[BitextSide, BitextSide]:
    """Return the given and the generated side of a direction."""
    return bitext if direction == "forward" else (bitext.target, bitext.source)


def links_of(best: npt.NDArray[np.int16], generated: Offsets, direction: str) -> Iterator[Links]:
    """Yield source-target links, ``BLOCK`` sentence pairs at a time.

    Args:
        best: given position of every generated word, -1 for NULL.
        generated: offsets of the generated sentences.
        direction: ``forward`` or ``reverse``.
    """
    for first in range(0, len(generated) - 1, BLOCK):
        bounds = generated[first : first + BLOCK + 1]
        positions = best[bounds[0] : bounds[-1]].astype(np.int32)
        lengths, linked = np.diff(bounds), positions >= 0
        sentence_of = np.repeat(np.arange(len(lengths)), lengths)
        words = (np.arange(len(positions)) + bounds[0] - bounds[sentence_of]).astype(np.int32)
        offsets = np.zeros(len(bounds), np.int64)
        np.cumsum(np.bincount(sentence_of[linked], minlength=len(lengths)), out=offsets[1:])
        ends = positions[linked], words[linked]
        yield Links(offsets, *(ends if direction == "forward" else ends[::-1]))


class AlignmentCheckpoint:
    """Checkpoint of the parameters after a pass, on disk."""

    def __init__(self, directory: CheckpointDirectory, save_every: float, stop: Stop) -> None:
        """Lock the checkpoint directory, and remove the files of a finished run with other settings.

        Args:
            directory: the checkpoint directory.
            save_every: minimum number of seconds between checkpoints, which are written only after a pass.
            stop: stop request, by a signal or the time limit.
        """
        self._directory, self._save_every, self._stop = directory, save_every, stop
        self._path = directory.path / "passes.npz"
        self._saved = self._last = time.monotonic()
        directory.lock()
        directory.clear_finished(self._path.name)

    def load(self) -> tuple[int, Parameters]:
        """Return the number of completed passes and the parameters after them; 0 and {} if there is no checkpoint.

        Raises:
            InputError: the checkpoint was written by another job, or is damaged.
        """
        self._last = time.monotonic()  # the first pass is timed from here
        if not self._path.exists():
            return 0, {}
        fingerprint, parameters = load_arrays(self._path, self._directory.remedy)
        self._directory.check(fingerprint)
        done = int(parameters.pop("done"))
        say(f"{self._directory.path}: resuming after iteration {done}")
        return done, parameters

    def after_pass(self, done: int, parameters: Parameters) -> None:
        """Write a checkpoint if one is due, or if the process must stop.

        Raises:
            SystemExit: the process must stop because of a signal or the time limit; the checkpoint is written.
        """
        now = time.monotonic()
        # the next pass may take as long as the longest one so far: stop if it would exceed the time limit
        stopping = self._stop.asked(ahead=now - self._last)
        self._last = now
        if not stopping and now - self._saved < self._save_every:
            return
        self._saved = now
        save_arrays(self._path, self._directory.fingerprint, done=np.array(done), **parameters)
        if stopping:
            say(f"stopped {self._stop.reason()} after iteration {done}; run the same command again to resume")
            raise SystemExit(self._stop.exit_code())

    def finish(self) -> None:
        """Record that the job is finished, after the links are written, and remove the checkpoint."""
        self._directory.finish()
        self._path.unlink(missing_ok=True)


ARRAYS = "arrays"
"""Name of the list of all arrays, which detects a damaged archive in which one is missing or has another name."""


def save_arrays(path: str | Path, fingerprint: dict[str, str], **arrays: npt.NDArray[Any]) -> None:
    """Write arrays, their names, and the fingerprint of the job to a ``.npz`` file, atomically."""
    names, values = zip(*(fingerprint | {ARRAYS: " ".join(arrays)}).items(), strict=True)
    with atomic_path(path) as temporary, temporary.open("wb") as out:
        np.savez(out, names=np.array(names), values=np.array(values), **arrays)  # type: ignore[arg-type]


def load_arrays(path: str | Path, remedy: str, *names: str) -> tuple[dict[str, str], dict[str, npt.NDArray[Any]]]:
    """Read the fingerprint and the arrays, or only those with the given names, of a file written by ``save_arrays``.

    Raises:
        InputError: the file is missing, damaged, or lacks an array.
    """
    try:
        with np.load(path, allow_pickle=False) as saved:
            fingerprint = dict(zip(saved["names"].tolist(), saved["values"].tolist(), strict=True))
            array_names = [name for name in saved.files if name not in ("names", "values")]
            # files of earlier versions have no list
            if fingerprint.pop(ARRAYS, " ".join(array_names)) != " ".join(array_names):
                raise ValueError
            return fingerprint, {name: saved[name] for name in names or array_names}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except KeyError:
        raise InputError(
            f"{path}: was written by a different alignment step; use a file of this step, or {remedy}"
        ) from None
    except (OSError, *DAMAGED_ARRAY):
        raise InputError(f"{path}: damaged; {remedy}") from None


def fingerprint(bitext: Bitext) -> dict[str, object]:
    """Return SHA-256 digests of both sides of the text, for the fingerprint of a ``CheckpointDirectory``."""
    digests: dict[str, object] = {}
    for name, side in zip(("source", "target"), bitext, strict=True):
        digest = hashlib.sha256("\n".join(side.vocabulary).encode())
        for array in (side.ids, side.offsets):
            digest.update(array.data)
        digests[f"{name} text"] = digest.hexdigest()
    return digests


REMEDY = "create it and all later files again"
"""Advice at the end of the error messages about a file of another job."""

TEXT = ("given_ids", "given_offsets", "generated_ids", "generated_offsets")
"""Names of the arrays of a shard's sentences: ids and offsets of both sides."""

IN_ORDER = ("sums", "best")
"""Results of an iteration that are concatenated in the order of the shards; all others are added up."""


def cut_shards(
    bitext: Bitext,
    fingerprint: Mapping[str, object],
    directory: str | Path,
    threads: int = 1,
    max_pairs: int = MAX_PAIRS,
) -> int:
    """Write the inputs of all iterations: ``corpus.npz``, ``parameters.0.npz`` and the shards, ``shard.K-of-N.npz``.

    The corpus is split at block boundaries; if there are fewer blocks than shards, some shards are empty.

    Args:
        bitext: the corpus.
        fingerprint: fingerprint of the job, with ``--aligner``, ``--direction`` and ``--shards``.
        directory: output directory.
        threads: number of threads.
        max_pairs: as in ``build_lexicon``.

    Returns:
        The number of word pairs of the lexicon.
    """
    directory, job = Path(directory), {name: str(value) for name, value in fingerprint.items()}
    given, generated = sides(bitext, job["--direction"])
    direction = Direction(given, generated, threads, max_pairs)
    statistics: dict[str, Any] = direction.statistics()._asdict()
    save_arrays(directory / "corpus.npz", job, **statistics, offsets=generated.offsets)
    shards = int(job["--shards"])
    for number in range(1, shards + 1):
        arrays = _shard(direction, (number, shards))
        save_arrays(directory / f"shard.{number}-of-{shards}.npz", job, shard=np.array(number), **arrays)
    parameters = ALIGNERS[job["--aligner"]].begin(direction)
    save_arrays(directory / "parameters.0.npz", job, done=np.array(0), **parameters)
    return direction.pairs


def _shard(direction: Direction, number: tuple[int, int]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a shard: its sentences, numbered from 0, and the lexicon entries that occur in them.

    ``words_before`` is the number of generated words in the previous shards. ``cells`` [pairs of the shard] contains
    the index of each pair in the lexicon of the corpus.
    """
    first, end = bounds_of_shard(number, len(direction.bounds) - 1)
    bounds = direction.bounds[first : end + 1]
    marks = np.zeros(direction.pairs + 1, np.bool_)

    def mark(block: tuple[int, int]) -> None:
        """Mark the lexicon entries of a block."""
        mark_pairs(*block, *direction.lexicon, *direction.text, marks)

    for _ in in_threads(mark, list(pairwise(bounds.tolist())), direction.threads):
        pass
    # the last mark represents pairs that the lexicon does not contain
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


def count_shard(path: str | Path, parameters: str | Path, output: str | Path, threads: int = 1) -> int:
    """Write the counts of a shard in the next iteration; return the number of that iteration, from 1.

    Only the non-zero counts of ``t`` are stored, with their indices in the lexicon of the corpus in ``cells``.

    Raises:
        InputError: the parameters are those of the last iteration, or a file was written by another job.
    """
    names = ("shard", "bounds", "starts", "words", "cells", "words_before", *TEXT)
    job, shard = load_arrays(path, REMEDY, *names)
    done, learnt = _parameters(parameters, job)
    passes = ALIGNERS[job["--aligner"]].passes
    if done == len(passes):
        raise InputError(f"{parameters}: contains the parameters of the last iteration; run `rnnsmt align links` next")
    text = (shard["given_ids"], shard["given_offsets"], shard["generated_ids"], shard["generated_offsets"])
    sentences = Sentences(Lexicon(shard["starts"], shard["words"]), text, shard["bounds"], threads, max_cells=0)
    # restrict t and best to the shard; the last element of t is the value of pairs that are not in the lexicon
    learnt["t"] = np.append(learnt["t"][shard["cells"]], learnt["t"][-1])
    before = int(shard["words_before"])
    learnt["best"] = learnt["best"][before : before + len(shard["generated_ids"])].copy()
    counts = passes[done].count(sentences, learnt)
    if "t" in counts:
        nonzero = np.flatnonzero(counts["t"])
        counts |= {"t": counts["t"][nonzero], "cells": shard["cells"][nonzero]}
    save_arrays(output, job, shard=shard["shard"], done=np.array(done), **counts)
    return done + 1


def estimate_from_shards(
    corpus: str | Path, parameters: str | Path, counts: Sequence[str | Path], output: str | Path
) -> int:
    """Write the parameters after an iteration, from those before it and the counts of all shards.

    Returns:
        The number of the iteration, from 1.

    Raises:
        InputError: a file was written by another job or iteration, or the counts of a shard are missing.
    """
    job, statistics = load_arrays(corpus, REMEDY, *Statistics._fields)
    done, learnt = _parameters(parameters, job)
    totals = _add_up(_in_order(counts, job, done), len(learnt["t"]) - 1)
    if "best" in totals:
        learnt["best"] = totals["best"]
    ALIGNERS[job["--aligner"]].passes[done].estimate(Statistics(**statistics), learnt, totals)
    save_arrays(output, job, done=np.array(done + 1), **learnt)
    return done + 1


def links_of_shards(corpus: str | Path, counts: Sequence[str | Path]) -> Iterable[Links]:
    """Return the links of the corpus from the counts files of all shards in the last iteration.

    Raises:
        InputError: as ``estimate_from_shards``.
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
        counts = {name: array for name, array in load_arrays(path, REMEDY)[1].items() if name not in ("shard", "done")}
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
        InputError: the file was written by another job.
    """
    fingerprint, _ = load_arrays(path, REMEDY, "done", "t_null")
    if fingerprint != job:
        raise InputError(f"{path}: was written for a different alignment; {REMEDY}")
    learnt = load_arrays(path, REMEDY)[1]
    return int(learnt.pop("done")), learnt


def _in_order(paths: Sequence[str | Path], job: dict[str, str], done: int) -> list[str | Path]:
    """Return the counts files of all shards for the iteration that follows ``done`` completed ones, sorted by shard.

    Raises:
        InputError: a file was written by another job or iteration, or a shard is missing.
    """
    by_number: dict[int, str | Path] = {}
    for path in paths:
        fingerprint, of = load_arrays(path, REMEDY, "shard", "done")
        if fingerprint != job or int(of["done"]) != done:
            raise InputError(f"{path}: is not from iteration {done + 1} of this alignment; {REMEDY}")
        by_number[int(of["shard"])] = path
    if missing := [str(k) for k in range(1, int(job["--shards"]) + 1) if k not in by_number]:
        raise InputError(f"--counts: shard {', '.join(missing)} of {job['--shards']} is missing")
    return [by_number[number] for number in sorted(by_number)]
