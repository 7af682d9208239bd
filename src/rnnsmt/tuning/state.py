"""The state of a MERT run on disk: what it was made from, its iterations, the n-best lists they added.

A state folder holds ``state.json``, replaced whole after every iteration, and one ``nbest-NNN.npz`` an iteration,
written before it. So a run that is ended at any time goes on after its last complete iteration.
"""

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rnnsmt.io import InputError, atomic_path, open_binary, read_json, write_json
from rnnsmt.state_folder import StateFolder
from rnnsmt.tuning.nbest_pool import Lump

FORMAT = "rnnsmt-mert-1"


class MertState:
    """The state folder of one run."""

    def __init__(self, folder: str | Path, fingerprint: Mapping[str, str]) -> None:
        """Open a state folder, or begin one.

        Raises:
            InputError: the folder holds the state of another run, or is damaged.
        """
        self._state = StateFolder(folder, fingerprint)
        self.folder = self._state.path
        self.iterations: list[dict[str, Any]] = []
        self.path = self.folder / "state.json"
        self._state.lock()
        self._state.clear_finished("state.json", "nbest-*.npz")
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        saved = read_json(self.path)
        if not isinstance(saved, dict) or saved.get("format") != FORMAT:
            raise InputError(f"{self.path}: not the state of this version of MERT; {self._state.remedy}")
        before = saved.get("fingerprint")
        iterations = saved.get("iterations")
        if not isinstance(before, dict) or not isinstance(iterations, list) or not all(map(_whole, iterations)):
            raise InputError(f"{self.path}: damaged; {self._state.remedy}")
        self._state.check(before)
        self.iterations = iterations

    def save(self, iteration: Mapping[str, Any], lump: Lump) -> None:
        """Add a complete iteration with the candidates that it found."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_path(self._lump_path(len(self.iterations))) as temporary, temporary.open("wb") as out:
            np.savez(out, features=lump.features, statistics=lump.statistics, sentences=lump.sentences)
        self.iterations.append(dict(iteration))
        write_json(self.path, {"format": FORMAT, "fingerprint": self._state.fingerprint, "iterations": self.iterations})

    def finish(self) -> None:
        """Remember that the outputs of the run are written: other settings may then start over."""
        self._state.finish()

    def lumps(self) -> list[Lump]:
        """The candidates of all complete iterations.

        Raises:
            InputError: a file is missing or damaged.
        """
        found = []
        for number in range(len(self.iterations)):
            path = self._lump_path(number)
            try:
                with np.load(path) as arrays:
                    found.append(Lump(arrays["features"], arrays["statistics"], arrays["sentences"]))
            except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
                raise InputError(f"{path}: damaged ({error}); {self._state.remedy}") from None
        return found

    def _lump_path(self, number: int) -> Path:
        return self.folder / f"nbest-{number + 1:03}.npz"


def _whole(iteration: object) -> bool:
    """Whether this is what ``save`` was given."""
    return isinstance(iteration, dict) and all(
        isinstance(iteration.get(name), kind)
        for name, kind in (("iteration", int), ("dev_bleu", (int, float)), ("weights", list), ("next_weights", list))
    )


def content_hash(*paths: str | Path) -> str:
    """SHA-256 over the (decompressed) contents of files."""
    digest = hashlib.sha256()
    for path in paths:
        with open_binary(path) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        digest.update(b"\0")
    return digest.hexdigest()


def outline_hash(path: str | Path) -> str:
    """SHA-256 over the size, the first and the last 64 KiB of a large file, as it lies on disk.

    A gzip file ends in the checksum of its content, so this sees every change of a compressed table.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as stream:
        digest.update(stream.read(1 << 16))
        stream.seek(max(size - (1 << 16), 0))
        digest.update(stream.read())
    return digest.hexdigest()
