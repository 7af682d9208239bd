"""Training of an aligner in one direction, pass by pass over the corpus, from where an earlier process ended.

One process makes all passes (``align``), or jobs on several machines share them (``rnnsmt.align.parts``).
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from rnnsmt.align import fast_align, hmm, model1, model4
from rnnsmt.align.bitext import Bitext, BitextSide, Offsets
from rnnsmt.align.direction import Counts, Direction, Parameters, Sentences, Statistics
from rnnsmt.align.lexicon import MAX_PAIRS
from rnnsmt.align.pharaoh import BLOCK, Links
from rnnsmt.io import InputError, atomic_path
from rnnsmt.progress import Meter, say
from rnnsmt.state_folder import StateFolder
from rnnsmt.stopping import Stop

DIRECTIONS = ("forward", "reverse")


@dataclass(frozen=True)
class Pass:
    """Counting, which sentences may share, and what the counts of all of them change in the parameters."""

    count: Callable[[Sentences, Parameters], Counts]
    estimate: Callable[[Statistics, Parameters, Counts], None]


class Aligner(NamedTuple):
    """What training begins with, and its passes over the corpus, the last of which sets the links."""

    begin: Callable[[Direction], Parameters]
    passes: list[Pass]


_FAST_ALIGN = [Pass(fast_align.count, fast_align.estimate)] * fast_align.ITERATIONS

_HMM = [Pass(model1.count, model1.estimate)] * model1.ITERATIONS + [Pass(hmm.count, hmm.estimate)] * hmm.ITERATIONS

ALIGNERS = {
    "fast_align": Aligner(fast_align.begin, _FAST_ALIGN),
    "hmm": Aligner(hmm.begin, [*_HMM, Pass(hmm.align, hmm.estimate)]),
    "model4": Aligner(model4.begin, [*_HMM, *[Pass(model4.count, model4.estimate)] * len(model4.PASSES)]),
}


def train(
    direction: Direction, aligner: Aligner, state: "AlignmentState | None" = None, what: str = "aligning"
) -> Parameters:
    """All passes, or those that are not over yet; ``best`` holds the links."""
    meter = Meter(what, len(aligner.passes), "passes")
    done, parameters = state.load() if state else (0, {})
    if done:
        meter.add(done)
    else:
        parameters = aligner.begin(direction)
    statistics = direction.statistics()
    for number, step in enumerate(aligner.passes[done:], done + 1):
        step.estimate(statistics, parameters, step.count(direction, parameters))
        meter.add(1)
        if state and number < len(aligner.passes):
            state.after_pass(number, parameters)
    return parameters


def align(
    bitext: Bitext,
    aligner: str,
    direction: str,
    threads: int = 1,
    max_pairs: int = MAX_PAIRS,
    state: "AlignmentState | None" = None,
) -> Iterator[Links]:
    """Links, source-target, of the ``forward`` (one source word a target word) or the ``reverse`` direction.

    They do not depend on the number of threads, and come ``BLOCK`` sentence pairs at a time.
    """
    given, generated = sides(bitext, direction)
    one = Direction(given, generated, threads, max_pairs)
    best = train(one, ALIGNERS[aligner], state, f"aligning with {aligner}, {direction}")["best"]
    del one
    yield from links_of(best, generated.offsets, direction)


def sides(bitext: Bitext, direction: str) -> tuple[BitextSide, BitextSide]:
    """The given and the generated side."""
    return bitext if direction == "forward" else (bitext.target, bitext.source)


def links_of(best: npt.NDArray[np.int16], generated: Offsets, direction: str) -> Iterator[Links]:
    """Links, source-target, from the given positions (-1: NULL) of all words of sentences with these offsets."""
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


class AlignmentState:
    """The parameters after a pass, on disk."""

    def __init__(self, folder: StateFolder, save_every: float, stop: Stop) -> None:
        """save_every: seconds between two savings, which are only made after a pass."""
        self._folder, self._save_every, self._stop = folder, save_every, stop
        self._path = folder.path / "passes.npz"
        self._saved = self._last = time.monotonic()
        folder.lock()
        folder.clear_finished(self._path.name)

    def load(self) -> tuple[int, Parameters]:
        """How many passes are over and what they have learnt: 0 and nothing without a state.

        Raises:
            InputError: the state is of another job, or damaged.
        """
        self._last = time.monotonic()  # a pass takes no time before this
        if not self._path.exists():
            return 0, {}
        fingerprint, parameters = load_arrays(self._path, self._folder.remedy)
        self._folder.check(fingerprint)
        done = int(parameters.pop("done"))
        say(f"{self._folder.path}: going on after pass {done}")
        return done, parameters

    def after_pass(self, done: int, parameters: Parameters) -> None:
        """Save when it is time to.

        Raises:
            SystemExit: a signal or the time limit ask to stop; the state is saved.
        """
        now = time.monotonic()
        stopping = self._stop.asked(ahead=now - self._last)
        self._last = now
        if not stopping and now - self._saved < self._save_every:
            return
        self._saved = now
        save_arrays(self._path, self._folder.fingerprint, done=np.array(done), **parameters)
        if stopping:
            say(f"stopped {self._stop.reason()} after pass {done}; the same command goes on")
            raise SystemExit(self._stop.exit_code())

    def finish(self) -> None:
        """The links are written: nothing is to be gone on with."""
        self._folder.finish()
        self._path.unlink(missing_ok=True)


def save_arrays(path: str | Path, fingerprint: Mapping[str, str], **arrays: npt.NDArray[Any]) -> None:
    """Write arrays, and what they depend on, as .npz, whole or not at all."""
    names, values = zip(*fingerprint.items(), strict=True)
    with atomic_path(path) as temporary, temporary.open("wb") as out:
        np.savez(out, names=np.array(names), values=np.array(values), **arrays)  # type: ignore[arg-type]


def load_arrays(path: str | Path, remedy: str, *names: str) -> tuple[dict[str, str], dict[str, npt.NDArray[Any]]]:
    """The fingerprint and the arrays, or only those of these names, of a file that ``save_arrays`` wrote.

    Raises:
        InputError: it is not there, damaged, or another file.
    """
    try:
        with np.load(path, allow_pickle=False) as saved:
            fingerprint = dict(zip(saved["names"].tolist(), saved["values"].tolist(), strict=True))
            wanted = names or [name for name in saved.files if name not in ("names", "values")]
            return fingerprint, {name: saved[name] for name in wanted}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except KeyError:
        raise InputError(
            f"{path}: another file of an alignment than is asked for here; give that one, or {remedy}"
        ) from None
    except (ValueError, OSError, EOFError, BadZipFile):
        raise InputError(f"{path}: damaged; {remedy}") from None


def fingerprint(bitext: Bitext) -> dict[str, object]:
    """Of the text, for a ``StateFolder``."""
    digests: dict[str, object] = {}
    for name, side in zip(("source", "target"), bitext, strict=True):
        digest = hashlib.sha256("\n".join(side.vocabulary).encode())
        for array in (side.ids, side.offsets):
            digest.update(array.data)
        digests[f"{name} text"] = digest.hexdigest()
    return digests
