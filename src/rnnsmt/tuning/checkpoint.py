"""Checkpoint of a tuning run: fingerprint of its inputs, its iterations, and the candidates that each of them added.

A checkpoint directory contains ``checkpoint.json``, which is replaced atomically after every iteration, and one
``nbest-NNN.npz`` per iteration, which is written before ``checkpoint.json``. A run that is interrupted at any time
resumes after the last complete iteration.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rnnsmt.base.opening import open_binary, sha256
from rnnsmt.base.options import option
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_json
from rnnsmt.base.resuming import CheckpointDirectory
from rnnsmt.base.writing import atomic_path, write_json
from rnnsmt.formats.ini import MosesIni
from rnnsmt.search.model import used_file
from rnnsmt.stages import operations
from rnnsmt.tuning.nbest_pool import CandidateBatch, Weights


class TuningCheckpoint:
    """Checkpoint directory of one run."""

    def __init__(self, directory: StrPath, fingerprint: Mapping[str, str]) -> None:
        """Open or create a checkpoint directory, and lock it."""
        self._checkpoint = CheckpointDirectory(directory, fingerprint)
        self.directory = self._checkpoint.path
        self.iterations: list[dict[str, Any]] = []
        self._result: dict[str, Any] | None = None
        """Result of the run: ``weights``, their ``dev_bleu``, and the number of requested ``iterations``; or None."""
        self.path = self.directory / "checkpoint.json"
        self._checkpoint.lock()
        self._checkpoint.clear_finished("checkpoint.json", "nbest-*.npz")
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        """Read ``checkpoint.json``, and compare its fingerprint with that of this run."""
        saved = read_json(self.path)
        self._checkpoint.check(saved["fingerprint"])
        self.iterations = saved["iterations"]
        self._result = saved["result"]

    def save(self, iteration: Mapping[str, Any], batch: CandidateBatch) -> None:
        """Save a completed iteration and the candidates that it added to the pool."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with atomic_path(self._batch_path(len(self.iterations))) as temporary, temporary.open("wb") as out:
            np.savez(out, features=batch.features, statistics=batch.statistics, sentences=batch.sentences)
        self.iterations.append(dict(iteration))
        self._write()

    def save_result(self, iterations: int, weights: Weights, dev_bleu: float) -> None:
        """Save the result of the run with this number of requested iterations."""
        self._result = {"iterations": iterations, "weights": weights.tolist(), "dev_bleu": dev_bleu}
        self._write()

    def result_of(self, iterations: int) -> tuple[Weights, float] | None:
        """Return weights and BLEU of the result for this number of requested iterations; None if it is not saved."""
        if self._result is None or self._result["iterations"] != iterations:
            return None
        return np.array(self._result["weights"]), self._result["dev_bleu"]

    def _write(self) -> None:
        saved = {
            "fingerprint": self._checkpoint.fingerprint,
            "iterations": self.iterations,
            "result": self._result,
        }
        write_json(self.path, saved)

    def finish(self) -> None:
        """Mark the run as finished, after its outputs were written; a run with other settings may replace its files."""
        self._checkpoint.finish()

    def batches(self) -> list[CandidateBatch]:
        """Return the candidates that each iteration added."""
        batches = []
        for number in range(len(self.iterations)):
            with np.load(self._batch_path(number)) as arrays:
                batches.append(CandidateBatch(arrays["features"], arrays["statistics"], arrays["sentences"]))
        return batches

    def _batch_path(self, number: int) -> Path:
        """Return the path of the candidates of an iteration; ``number`` is 0-based, the number in the path 1-based."""
        return self.directory / f"nbest-{number + 1:03}.npz"


def content_hash(*paths: StrPath) -> str:
    """Return the SHA-256 of the decompressed contents of files, each followed by a zero byte."""
    digest = hashlib.sha256()
    for path in paths:
        with open_binary(path) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        digest.update(b"\0")
    return digest.hexdigest()


def fingerprint(
    ini: MosesIni, directory: Path | None, source: str, references: Sequence[str], options: Mapping[str, object]
) -> dict[str, str]:
    """Return the inputs and options on which the iterations of all runs of a model depend, by option name.

    Input files are identified by their contents, not by their paths. The number of iterations is left out, so
    that a run can be extended.

    Args:
        directory: the directory in which model files are looked up first.
        source, references: files of the dev set.
        options: options that affect every iteration, except the seed, by argument name.
    """
    assert ini.path is not None
    values = {
        "version of this stage": str(operations("tuning")["tune"].version),
        "version of search decode": str(operations("search")["decode"].version),
        "--ini": content_hash(ini.path),
        "--source": content_hash(source),
        "--reference": content_hash(*references),
    }
    digest = cache(sha256)  # phrase table and reordering table can be the same file
    for feature in ini.features:
        if "path" in feature.options:
            values[f"file of {feature.name}"] = digest(used_file(ini, directory, feature))
    return values | {option(name): str(value) for name, value in options.items()}
