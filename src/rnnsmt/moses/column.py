"""Score of an RNN Encoder-Decoder as an additional column of the phrase table of a Moses model.

The stages of the workflow are run, each as a process with a separate log. A stage that has already been run with the
same command and input files is not repeated.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rnnsmt.base.io import KENLM_MAGIC, InputError, open_binary, read_json, write_json
from rnnsmt.base.progress import say
from rnnsmt.moses.ini import PHRASE_DICTIONARY, MosesIni, default_ini

COLUMN_WEIGHT = 0.2
"""Weight of the column before tuning, the same as that of every phrase score in Moses' untuned models."""

BINARY_TABLES = {
    "PhraseDictionaryCompact": "processPhraseTableMin",
    "PhraseDictionaryBinary": "processPhraseTable",
    "PhraseDictionaryOnDisk": "CreateOnDiskPt",
    "ProbingPT": "CreateProbingPT",
}
"""Features of Moses that read a binary form of a phrase table, with the programs that create it from the text."""

BINARY_SUFFIXES = (".minphr", ".binphr.idx", ".binphr.srctree.wa", ".binphr.tgtdata.wa", ".dat")

FIRST_BYTES = 1 << 16

SAMPLED_LINES = 20_000
"""Number of lines of a phrase table whose words are compared with its training text."""


class StageRunner:
    """Runner of stages in a directory, which records the finished ones."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._record = directory / "steps.json"
        self._done: dict[str, Any] = read_json(self._record) if self._record.is_file() else {}

    def run(self, name: str, command: Sequence[object], inputs: Sequence[Path], outputs: Sequence[Path]) -> None:
        """Run a stage, unless it has been run with the same command and the same files.

        Args:
            name: name of the step; its log is ``logs/NAME.log``.
            command: words after ``rnnsmt``.
            inputs: files that the stage reads.
            outputs: files and directories that it writes.

        Raises:
            InputError: the stage failed; the message is that of the stage.
            SystemExit: the stage was stopped by a signal or a time limit.
        """
        words = list(map(str, command))
        record = {"command": words, "inputs": [[str(path), *_state(path)] for path in inputs]}
        if self._done.get(name) == record and all(path.exists() for path in outputs):
            say(f"{name}: already done")
            return
        log = self._directory / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        say(f"{name} ... (log: {log})")
        with log.open("w", encoding="utf-8") as file:
            status = subprocess.run([sys.executable, "-m", "rnnsmt", *words], stderr=file, stdout=file, check=False)
        lines = log.read_text(encoding="utf-8", errors="replace").replace("\r", "\n").strip().splitlines() or [""]
        for line in lines:
            if line.startswith("warning: "):
                say(line)
        if status.returncode == 2:
            raise InputError(f"{name}: {lines[-1].partition('error: ')[2] or lines[-1]} (log: {log})")
        if status.returncode:
            say(f"{name} ended with status {status.returncode}; run the same command again to resume; log: {log}")
            raise SystemExit(status.returncode if status.returncode > 0 else 128 - status.returncode)
        say(lines[-1])
        self._done[name] = record
        write_json(self._record, self._done)


def _state(path: Path) -> list[int]:
    """Return the size in bytes and the modification time in nanoseconds of a file."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def number_of_scores(table: Path) -> int:
    """Return the number of scores of a phrase table in text form.

    Raises:
        InputError: the file is missing, empty, binary or not a phrase table.
    """
    if table.is_dir() or table.name.endswith(BINARY_SUFFIXES):
        raise InputError(
            f"{table}: is a binary phrase table, to which no score can be added; use the text file (phrase-table.gz) "
            "from which it was built"
        )
    with open_binary(table) as stream:
        start = stream.read(FIRST_BYTES)
    line = start.split(b"\n", 1)[0]
    if b"\0" in start:
        raise InputError(
            f"{table}: is a binary file, not a plain-text phrase table; use the text file (phrase-table.gz) from "
            "which it was built"
        )
    fields = line.split(b" ||| ")
    try:
        scores = [float(score) for score in fields[2].split()]
    except (IndexError, ValueError):
        scores = []
    if not scores:
        raise InputError(f"{table}, line 1: expected SOURCE ||| TARGET ||| SCORES; is this a Moses phrase table?")
    return len(scores)


@dataclass(frozen=True)
class Model:
    """A Moses model to which a column is added.

    Attributes:
        ini: its features and weights; None: default weights for the files below.
        table: phrase table in text form.
        reordering: reordering table, if there is no ini.
        lm: language model (ARPA), if there is no ini.
        lm_order: its order.
    """

    ini: MosesIni | None
    table: Path
    reordering: Path | None = None
    lm: Path | None = None
    lm_order: int = 5


def model_of_ini(path: Path) -> Model:
    """Return the model of a moses.ini with one phrase table in text form.

    Raises:
        InputError: as ``MosesIni.read``; it has no phrase table, several of them, or a binary one.
    """
    ini = MosesIni.read(path)
    for feature in ini.features:
        if feature.kind in BINARY_TABLES:
            raise InputError(
                f"{path}, line {feature.number}: {feature.kind} is a binary phrase table, created by "
                f"{BINARY_TABLES[feature.kind]}, to which no score can be added; replace it with "
                "PhraseDictionaryMemory and the text file (phrase-table.gz) from which it was built"
            )
    tables = [feature for feature in ini.features if feature.kind == PHRASE_DICTIONARY]
    if len(tables) != 1:
        raise InputError(
            f"{path}: has {len(tables)} phrase tables (PhraseDictionaryMemory); the model must have exactly one"
        )
    return Model(ini, ini.located(tables[0]))


def ini_with_column(model: Model, table: Path, scores: int, directory: Path) -> MosesIni:
    """Return the ini of a model with the column in its phrase table.

    Args:
        model: the model.
        table: the table with the column.
        scores: number of scores without the column.
        directory: directory of the ini.

    Raises:
        InputError: the ini and the table of the model have different numbers of scores.
    """
    if model.ini is None:
        reordering = None if model.reordering is None else str(model.reordering.resolve())
        assert model.lm is not None
        weights = [COLUMN_WEIGHT] * (scores - 3) if scores >= 4 else None
        return default_ini(
            directory, str(table.resolve()), reordering, str(model.lm.resolve()), model.lm_order, scores + 1,
            further_weights=weights,
        )  # fmt: skip
    ini = model.ini
    feature = next(feature for feature in ini.features if feature.kind == PHRASE_DICTIONARY)
    weights_before = ini.weights[feature.name]
    if len(weights_before) != scores:
        raise InputError(
            f"{model.table}: has {scores} scores in line 1, but {ini.path} has {len(weights_before)} weights of "
            f"{feature.name}; correct num-features and the weights"
        )
    for other in ini.features:
        if "path" in other.options:
            other.options["path"] = str(ini.file_of(other).resolve())
    feature.options |= {"path": str(table.resolve()), "num-features": str(scores + 1)}
    ini.weights[feature.name] = [*weights_before, COLUMN_WEIGHT]
    return ini


def check_language_models(ini: MosesIni) -> None:
    """Check that tuning can read the language models of a moses.ini, before a network is trained.

    Raises:
        InputError: a file is missing, or is a binary model of KenLM.
    """
    for path in (ini.file_of(feature) for feature in ini.features if feature.is_lm):
        binary = path.suffix in (".binlm", ".blm", ".bin", ".mmap")
        if not binary and not path.is_file():
            raise InputError(f"{path}: no such file; correct the path of the language model in {ini.path}")
        if not binary:
            with open_binary(str(path)) as file:
                binary = file.read(len(KENLM_MAGIC)) == KENLM_MAGIC
        if binary:
            raise InputError(
                f"{path}: binary language models are not supported in tuning; use the ARPA file in the ini, or omit "
                "--dev-source and tune with mert-moses.pl"
            )


def check_text_of_table(table: Path, texts: tuple[Path, Path]) -> None:
    """Check that a text can be the training text of a phrase table, before a network is trained on both.

    All words of a table occur in its training text. The words of its first ``SAMPLED_LINES`` lines are looked up.

    Raises:
        InputError: the two sides have different numbers of lines, or most of the words do not occur.
    """
    sampled: tuple[set[bytes], set[bytes]] = set(), set()
    with open_binary(str(table)) as file:
        for line in islice(file, SAMPLED_LINES):
            for words, phrase in zip(sampled, line.split(b" ||| "), strict=False):
                words.update(phrase.split())
    missing = tuple(set(words) for words in sampled)
    lines = [0, 0]
    for side, text in enumerate(texts):
        with open_binary(str(text)) as file:
            for line in file:
                lines[side] += 1
                missing[side].difference_update(line.split())
    if lines[0] != lines[1]:
        raise InputError(f"{texts[0]} has {lines[0]:,} lines, but {texts[1]} has {lines[1]:,}")
    for text, words, unknown in zip(texts, sampled, missing, strict=True):
        if unknown:
            reason = (
                f"{len(unknown):,} of the {len(words):,} words in the first lines of {table} do not occur in {text}, "
                "although it must be the text that the table was trained on"
            )
            if len(unknown) > len(words) / 2:
                raise InputError(f"{reason}; check that source and target are not swapped, and tokenisation and case")
            say(f"warning: {reason}")
