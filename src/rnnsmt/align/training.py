"""Training of an aligner in one direction, with checkpoints between the iterations."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from rnnsmt.align import MAX_PAIRS
from rnnsmt.align.bitext import Bitext, BitextSide, Offsets
from rnnsmt.align.direction import Aligner, Direction, Parameters
from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import say, time_left
from rnnsmt.base.resuming import CheckpointDirectory, Stop
from rnnsmt.base.writing import atomic_path
from rnnsmt.formats.pharaoh import BLOCK, Links
from rnnsmt.registries import ALIGNERS


def train(
    direction: Direction, aligner: Aligner, checkpoint: "AlignmentCheckpoint | None" = None, what: str = "aligning"
) -> Parameters:
    """Run all iterations that ``checkpoint`` does not contain; return the parameters, with the links in ``best``."""
    done, parameters = checkpoint.load() if checkpoint else (0, {})
    if not done:
        parameters = aligner.begin(direction)
    iterations = aligner.iterate(direction, parameters, done)
    started, left = time.monotonic(), ""
    for number in range(done + 1, aligner.iterations + 1):
        say(
            f"{what}: iteration {number} of {aligner.iterations}{left}"
        )  # `rnnsmt status` prints the last line of the log
        next(iterations)
        speed = (number - done) / max(time.monotonic() - started, 1e-9)
        left = f", {time_left(aligner.iterations - number, speed)}"
        if checkpoint and number < aligner.iterations:
            checkpoint.after_iteration(number, parameters)
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
        aligner: name in ``ALIGNERS``.
        direction: ``forward`` (each target word is linked to at most one source word) or ``reverse``.
        max_pairs: as in ``build_lexicon``.
        checkpoint: checkpoint from which to resume and to which to write.

    Yields:
        Links of source and target positions, in both directions.

    Raises:
        InputError: an aligner of another package returns invalid links.
    """
    given, generated = bitext if direction == "forward" else (bitext.target, bitext.source)
    directed = Direction(given, generated, threads, max_pairs)
    best = train(directed, ALIGNERS[aligner], checkpoint, f"aligning with {aligner}, {direction}")["best"]
    del directed  # free the lexicon and the cached indices
    if ALIGNERS.package(aligner):
        _check_links(best, given, generated, f"aligner {ALIGNERS.versioned(aligner)}")
    yield from links_of(best, generated.offsets, direction)


def _check_links(best: npt.NDArray[np.int16], given: BitextSide, generated: BitextSide, name: str) -> None:
    """Check that ``best`` contains, for every generated word, a position in the given sentence or -1."""
    shape, kind = (len(generated.ids),), "int16"
    if getattr(best, "shape", None) != shape or best.dtype != kind:
        raise InputError(f"{name}: best must be an array of shape {shape} and type {kind}; correct this package")
    lengths = np.repeat(given.lengths, generated.lengths)
    if wrong := int(np.count_nonzero((best < -1) | (best >= lengths))):
        raise InputError(
            f"{name}: {wrong} of {len(best)} elements of best are not a position of the given sentence, or -1; "
            "correct this package"
        )


def links_of(best: npt.NDArray[np.int16], generated: Offsets, direction: str) -> Iterator[Links]:
    """Convert ``best`` to links of source and target positions; yield ``BLOCK`` sentence pairs at a time.

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
    """Checkpoint of the parameters after an iteration, on disk."""

    def __init__(self, directory: CheckpointDirectory, save_every: float, stop: Stop) -> None:
        """Lock the checkpoint directory, and remove the files of a finished run with other settings.

        Args:
            directory: the checkpoint directory.
            save_every: minimum time in seconds between checkpoints, which are written only after an iteration.
            stop: object that records signals and watches the time limit.
        """
        self._directory, self._save_every, self._stop = directory, save_every, stop
        self._path = directory.path / "parameters.npz"
        self._saved = self._last = time.monotonic()
        with stop.waiting():
            directory.lock()
        directory.clear_finished(self._path.name)

    def load(self) -> tuple[int, Parameters]:
        """Return the number of completed iterations and the parameters after them; 0 and {} without a checkpoint."""
        self._last = time.monotonic()  # the first iteration is timed from here
        if not self._path.exists():
            return 0, {}
        with np.load(self._path) as saved:
            parameters = dict(saved)
        self._directory.check(json.loads(str(parameters.pop("fingerprint"))))
        done = int(parameters.pop("done"))
        say(f"{self._directory.path}: resuming after iteration {done}")
        return done, parameters

    def after_iteration(self, done: int, parameters: Parameters) -> None:
        """Write a checkpoint if ``save_every`` seconds have passed or if the process must stop.

        Raises:
            SystemExit: the process must stop because of a signal or the time limit; the checkpoint is written.
        """
        now = time.monotonic()
        # stop if the next iteration, taking as long as the longest iteration so far, would exceed the time limit
        stopping = self._stop.asked(ahead=now - self._last)
        self._last = now
        if not stopping and now - self._saved < self._save_every:
            return
        self._saved = now
        fingerprint = np.array(json.dumps(self._directory.fingerprint))
        with atomic_path(self._path) as temporary, temporary.open("wb") as out:
            np.savez(out, fingerprint=fingerprint, done=np.array(done), **parameters)  # type: ignore[arg-type]
        if stopping:
            say(f"stopped {self._stop.reason()} after iteration {done}; run the same command again to resume")
            raise SystemExit(self._stop.exit_code())

    def finish(self) -> None:
        """Record that the job is finished, after the links are written, and remove the checkpoint."""
        self._directory.finish()
        self._path.unlink(missing_ok=True)


@contextmanager
def checkpoint_of(
    directory: StrPath | None,
    job: Mapping[str, object],
    bitext: Bitext,
    save_every: float,
    time_limit: float | None,
) -> Iterator[AlignmentCheckpoint | None]:
    """Provide the checkpoint of a job, or None without a directory; at the end of the block, the job is finished.

    Args:
        directory: the checkpoint directory.
        job: all settings on which the links depend, by name.
        save_every: minimum time in seconds between checkpoints.
        time_limit: time limit in seconds, as in ``Stop``.
    """
    if directory is None:
        yield None
        return
    files = CheckpointDirectory(directory, {**job, **fingerprint(bitext)})
    with Stop(time_limit) as stop:
        try:
            checkpoint = AlignmentCheckpoint(files, save_every, stop)
            yield checkpoint
            checkpoint.finish()
        finally:
            files.release()


def fingerprint(bitext: Bitext) -> dict[str, object]:
    """Return SHA-256 digests of both sides of the text, for the fingerprint of a ``CheckpointDirectory``."""
    digests: dict[str, object] = {}
    for name, side in zip(("source", "target"), bitext, strict=True):
        digest = hashlib.sha256("\n".join(side.vocabulary).encode())
        for array in (side.ids, side.offsets):
            digest.update(array.data)
        digests[f"{name} text"] = digest.hexdigest()
    return digests
