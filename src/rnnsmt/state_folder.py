"""Folders for the state of long jobs: one process at a time, only ever continued with the settings it was begun with.

A lock of the system, which goes with its process, keeps a second process out: a stage can outlive the Snakemake that
was killed. ``finished.json`` says that the outputs of the job were written: then other settings start over, while a job
that was interrupted is never thrown away.
"""

import fcntl
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from rnnsmt.io import TEMPORARY, InputError, read_json, write_json
from rnnsmt.progress import say

FINISHED = "finished.json"

LONGEST_VALUE = 40
"""Longer values, hashes above all, are not shown."""


class StateFolder:
    """The state folder of one job."""

    def __init__(self, path: str | Path, fingerprint: Mapping[str, object]) -> None:
        """fingerprint: name -> value of everything that the result depends on."""
        self.path = Path(path)
        self.fingerprint = {name: str(value) for name, value in fingerprint.items()}
        self.remedy = f"remove {self.path} to start over"
        self._finished = self.path / FINISHED
        self._lock: IO[str] | None = None

    @staticmethod
    def is_finished(path: str | Path) -> bool:
        """Whether a folder holds the state of a finished job: other settings start over there, and refuse elsewhere."""
        return (Path(path) / FINISHED).exists()

    def lock(self) -> None:
        """Wait until no other process works in the folder; the lock is held as long as this object lives.

        What a process that was killed, on whatever machine, had begun to write there is removed.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = (self.path / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is at work in {self.path}; waiting until it ends")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        except OSError as error:  # some file systems of clusters have no locks
            say(f"{self.path}: cannot be locked ({error.strerror}); take care that no other process works there")
            return
        for leftover in self.path.glob(f"{TEMPORARY}*"):
            leftover.unlink(missing_ok=True)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """That of the lock: a program that inherits it holds the lock as long as it lives."""
        return () if self._lock is None else (self._lock.fileno(),)

    def clear_finished(self, *patterns: str) -> None:
        """Remove the state (files by ``patterns``) of a finished job of other settings."""
        if not self._finished.exists() or not (changed := self._changed(read_json(self._finished))):
            return
        say(f"{self.path}: finished with other settings before, starting over; changed since: {', '.join(changed)}")
        for pattern in patterns:
            for path in self.path.glob(pattern):
                path.unlink()
        self._finished.unlink()

    def check(self, before: Mapping[str, object]) -> None:
        """Compare the fingerprint of a saved state.

        Raises:
            InputError: it is of another job.
        """
        if changed := self._changed(before):
            raise InputError(
                f"{self.path}: was begun with other settings, changed since: {', '.join(changed)}; "
                f"undo the change to go on, or {self.remedy}"
            )

    def finish(self) -> None:
        """Remember that the outputs of this job are written."""
        write_json(self._finished, self.fingerprint)

    def _changed(self, before: object) -> list[str]:
        found = before if isinstance(before, Mapping) else {}
        names = [*self.fingerprint, *(name for name in found if name not in self.fingerprint)]
        changed = []
        for name in names:
            old, new = found.get(name, "not there"), self.fingerprint.get(name, "not there")
            if old != new:
                short = max(len(str(old)), len(new)) <= LONGEST_VALUE
                changed.append(f"{name} (was {old}, is {new})" if short else name)
        return changed
