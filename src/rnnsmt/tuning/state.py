"""The state of a tuning run on disk: what it was made from, its iterations, the n-best lists they added.

A state folder holds ``state.json``, replaced whole after every iteration, and one ``nbest-NNN.npz`` an iteration,
written before it. So a run that is ended at any time goes on after its last complete iteration.
"""

import argparse
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rnnsmt.io import InputError, atomic_path, open_binary, read_json, write_json
from rnnsmt.moses.ini import MosesIni
from rnnsmt.stages import STAGES
from rnnsmt.state_folder import StateFolder
from rnnsmt.tuning.nbest_pool import CandidateBatch

FORMAT = "rnnsmt-mert-1"


class TuningState:
    """The state folder of one run."""

    def __init__(self, folder: str | Path, fingerprint: Mapping[str, str]) -> None:
        """Open a state folder, or begin one.

        Raises:
            InputError: the folder holds the state of another run, or is damaged.
        """
        self._state = StateFolder(folder, fingerprint)
        self.folder = self._state.path
        self.iterations: list[dict[str, Any]] = []
        self.comparisons: list[dict[str, Any]] = []
        """What else was decoded: ``weights`` and their ``dev_bleu``."""
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
        iterations, comparisons = saved.get("iterations"), saved.get("comparisons", [])
        if (
            not isinstance(before, dict)
            or not (isinstance(iterations, list) and all(_whole(one, ITERATION) for one in iterations))
            or not (isinstance(comparisons, list) and all(_whole(one, COMPARISON) for one in comparisons))
        ):
            raise InputError(f"{self.path}: damaged; {self._state.remedy}")
        self._state.check(before)
        self.iterations = iterations
        self.comparisons = comparisons

    def save(self, iteration: Mapping[str, Any], batch: CandidateBatch) -> None:
        """Add a complete iteration with the candidates that it found."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_path(self._batch_path(len(self.iterations))) as temporary, temporary.open("wb") as out:
            np.savez(out, features=batch.features, statistics=batch.statistics, sentences=batch.sentences)
        self.iterations.append(dict(iteration))
        self._write()

    def save_comparison(self, comparison: Mapping[str, Any]) -> None:
        """Add what else was decoded."""
        self.comparisons.append(dict(comparison))
        self._write()

    def _write(self) -> None:
        saved = {"format": FORMAT, "fingerprint": self._state.fingerprint}
        write_json(self.path, saved | {"iterations": self.iterations, "comparisons": self.comparisons})

    def finish(self) -> None:
        """Remember that the outputs of the run are written: other settings may then start over."""
        self._state.finish()

    def batches(self, iterations: int) -> list[CandidateBatch]:
        """The candidates of the first iterations.

        Raises:
            InputError: a file is missing or damaged.
        """
        found = []
        for number in range(iterations):
            path = self._batch_path(number)
            try:
                with np.load(path) as arrays:
                    found.append(CandidateBatch(arrays["features"], arrays["statistics"], arrays["sentences"]))
            except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
                raise InputError(f"{path}: damaged ({error}); {self._state.remedy}") from None
        return found

    def _batch_path(self, number: int) -> Path:
        return self.folder / f"nbest-{number + 1:03}.npz"


ITERATION = {"iteration": int, "dev_bleu": (int, float), "weights": list, "new_candidates": int}
COMPARISON = {"dev_bleu": (int, float), "weights": list}
"""What records have, beside others."""


def _whole(record: object, kinds: Mapping[str, Any]) -> bool:
    """Whether this is what was saved."""
    return isinstance(record, dict) and all(isinstance(record.get(name), kind) for name, kind in kinds.items())


def content_hash(*paths: str | Path) -> str:
    """SHA-256 over the (decompressed) contents of files."""
    digest = hashlib.sha256()
    for path in paths:
        with open_binary(path) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        digest.update(b"\0")
    return digest.hexdigest()


def file_hash(path: str | Path) -> str:
    """SHA-256 of a file as it lies on disk: a gigabyte takes a second or two.

    Raises:
        InputError: there is no such file.
    """
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


FINGERPRINT_OPTIONS = ("nbest", "optimiser", "restarts", "combine", "random_directions", "pop_limit", "stack",
                       "cslm_cells", "cslm_precision")  # fmt: skip
"""Options that every iteration depends on, beside the seed of the run; when the loop ends is not among them, so that a
run can be extended."""


def fingerprint(args: argparse.Namespace, ini: MosesIni, folder: str | None) -> dict[str, str]:
    """What the iterations of the runs of a model depend on, by the names of options: contents, not paths.

    folder: of --model-dir.
    """
    assert ini.path is not None
    found = {
        "version of this stage": str(STAGES["tuning"]["mert"].version),
        "version of search decode": str(STAGES["search"]["decode"].version),
        "--ini": content_hash(ini.path),
        "--source": content_hash(args.source),
        "--reference": content_hash(*args.reference),
    }
    for feature in ini.features:
        if "path" in feature.options:
            path = ini.located(feature, Path(folder) if folder else None)
            found[f"file of {feature.name}"] = file_hash(path)
    return found | {f"--{name.replace('_', '-')}": str(getattr(args, name)) for name in FINGERPRINT_OPTIONS}
