"""Checkpoint directories of long jobs, used by one process at a time and resumed only with the same settings.

A system lock, which is released when its process ends, keeps out a second process: a stage may outlive a killed
Snakemake. ``finished.json`` marks that the outputs of the job were written; after that, other settings replace the
state, while the state of an interrupted job is never discarded.
"""

import fcntl
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from rnnsmt.base.io import TEMPORARY, InputError, read_json, write_json
from rnnsmt.base.progress import say

FINISHED = "finished.json"
"""Name of the file that marks a finished job."""

LONGEST_VALUE = 40
"""Maximum length of values shown in messages; longer ones are mostly hashes."""


class StateFolder:
    """Checkpoint directory of one job."""

    def __init__(self, path: str | Path, fingerprint: Mapping[str, object]) -> None:
        """Create an object for a directory, without touching it.

        Args:
            path: the directory.
            fingerprint: name and value of everything that the result depends on.
        """
        self.path = Path(path)
        self.fingerprint = {name: str(value) for name, value in fingerprint.items()}
        self.remedy = f"remove {self.path} to start over"
        self._finished = self.path / FINISHED
        self._lock: IO[str] | None = None

    @staticmethod
    def is_finished(path: str | Path) -> bool:
        """Return whether a directory holds the state of a finished job, which other settings may replace."""
        return (Path(path) / FINISHED).exists()

    def lock(self) -> None:
        """Wait until no other process uses the directory; the lock is held for the lifetime of this object.

        Temporary files of killed processes, on any machine, are removed.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = (self.path / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is using {self.path}; waiting until it ends")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        except OSError as error:  # some cluster file systems do not support locks
            say(f"{self.path}: cannot be locked ({error.strerror}); make sure that no other process uses it")
            return
        for leftover in self.path.glob(f"{TEMPORARY}*"):
            leftover.unlink(missing_ok=True)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """File descriptor of the lock; a child process that inherits it holds the lock while it runs."""
        return () if self._lock is None else (self._lock.fileno(),)

    def clear_finished(self, *patterns: str) -> None:
        """Remove the state (files that match ``patterns``) of a finished job with other settings."""
        if not self._finished.exists() or not (changed := self._changed(read_json(self._finished))):
            return
        say(
            f"{self.path}: the finished run in this directory had other settings; starting over; changed: "
            f"{', '.join(changed)}"
        )
        for pattern in patterns:
            for path in self.path.glob(pattern):
                path.unlink()
        self._finished.unlink()

    def check(self, before: Mapping[str, object]) -> None:
        """Compare the fingerprint of a saved state with that of this job.

        Raises:
            InputError: they differ.
        """
        if changed := self._changed(before):
            raise InputError(
                f"{self.path}: the checkpoint was written with other settings; changed: {', '.join(changed)}; "
                f"undo the change to resume, or {self.remedy}"
            )

    def finish(self) -> None:
        """Mark the job as finished: its outputs are written."""
        write_json(self._finished, self.fingerprint)

    def _changed(self, before: object) -> list[str]:
        """Return the names of the settings that differ, with old and new values if these are short."""
        saved = before if isinstance(before, Mapping) else {}
        names = [*self.fingerprint, *(name for name in saved if name not in self.fingerprint)]
        changed = []
        for name in names:
            old, new = saved.get(name, "not there"), self.fingerprint.get(name, "not there")
            if old != new:
                short = max(len(str(old)), len(new)) <= LONGEST_VALUE
                changed.append(f"{name} (was {old}, is {new})" if short else str(name))
        return changed
