"""Decoding and tuning with the programs of Moses, for models of rnnsmt or of Moses."""

import hashlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import sha256
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_json, read_lines, words_of
from rnnsmt.base.resuming import CheckpointDirectory
from rnnsmt.base.writing import scratch_directory, write_json, write_lines, write_plain
from rnnsmt.formats.ini import RESCORING, Feature, MosesIni
from rnnsmt.formats.nbest import fields_of
from rnnsmt.moses.installation import MERT, MOSES, Installation, run
from rnnsmt.plan.derived import MOSES_OPTIMIZERS
from rnnsmt.stages import operations

BEGUN, ENDED = "begun.json", "ended"
"""Files of a tuning directory: the settings and inputs that the result depends on; the marker that the script has
finished."""


class Limits(NamedTuple):
    """Limits of the decoder's search, and the number of threads."""

    pop_limit: int
    stack: int
    threads: int

    def options(self) -> list[str]:
        """Return the options of the decoder: cube pruning with the limits of ``search decode``."""
        return [
            "-search-algorithm", "1", "-cube-pruning-pop-limit", str(self.pop_limit), "-s", str(self.stack),
            "-threads", str(self.threads), "-v", "0",
        ]  # fmt: skip


def for_moses(ini: MosesIni, directory: Path | None) -> MosesIni:
    """Return the ini with absolute paths, so that Moses can be started in any directory.

    Args:
        directory: as in ``MosesIni.located``.

    Raises:
        InputError: the ini has a feature that Moses does not support.
    """
    features = []
    for feature in ini.features:
        if feature.kind == RESCORING:
            raise InputError(
                f"{ini.path}: {feature.name} is a score of complete translations, which Moses does not support; use "
                "the system whose n-best lists were rescored"
            )
        if feature.network is not None:
            raise InputError(
                f"{ini.path}: {feature.name}: the Moses decoder does not support networks; decode with rnnsmt, or "
                "rescore n-best lists of Moses with `networks rescore`"
            )
        path = {"path": str(ini.located(feature, directory).resolve())} if "path" in feature.options else {}
        features.append(Feature(feature.kind, feature.name, feature.options | path))
    return replace(ini, features=features)


def decode(
    moses: Installation,
    ini: MosesIni,
    directory: Path | None,
    text: StrPath,
    output: StrPath,
    details: StrPath,
    log: Path,
    limits: Limits,
) -> dict[str, int | float]:
    """Translate a tokenised text with ``moses``.

    Args:
        directory: as in ``MosesIni.located``.
        details: output file: n-best lists of size 1, with features and segmentations.
        log: log file for Moses' output.

    Returns:
        The statistics that `search decode` reports, under the same names. Instead of the time of the search, there is
        the CPU time including loading, since Moses does not separate the two.
    """
    with scratch_directory(Path(output).resolve()) as work:
        lines = write_plain([text], work / "input")
        for_moses(ini, directory).write(work / "moses.ini")
        options = ["-n-best-list", work / "nbest", "1", "distinct", "-include-segmentation-in-n-best"]
        options += ["-output-unknowns", work / "unknown"]
        seconds, _ = run(
            [moses.program(MOSES), "-f", work / "moses.ini", *limits.options(), *options, "-i", work / "input"],
            log, work, stdout=work / "output",
        )  # fmt: skip
        translations = [" ".join(words_of(line)) for line in read_lines(work / "output")]
        if len(translations) != lines:
            raise InputError(f"{MOSES}: translated {len(translations)} of {lines} lines; full output in {log}")
        best = [line for line in read_lines(work / "nbest") if line.strip()]
        score = sum(float(fields_of(line, work / "nbest", number)[3]) for number, line in enumerate(best, 1))
        unknown = sum(len(words_of(line)) for line in read_lines(work / "unknown"))
        write_lines(details, best)
        write_lines(output, translations)
        words = sum(len(words_of(line)) for line in read_lines(work / "input"))
    return {
        "sentences": lines,
        "words": words,
        "unknown_words": unknown,
        "cpu_seconds_with_loading": round(seconds, 3),
        "score_sum": round(score, 6),
    }


def tune(
    moses: Installation,
    ini: MosesIni,
    directory: Path | None,
    source: StrPath,
    references: Sequence[StrPath],
    output_ini: Path,
    output_history: Path,
    work: Path,
    log: Path,
    limits: Limits,
    *,
    seed: int,
    optimizer: str,
    nbest: int,
    max_iterations: int,
) -> dict[str, object]:
    """Tune weights with ``mert-moses.pl``; the result is the last iteration that was decoded.

    If the script ends at the maximum number of iterations, its own result is the weights of one further optimisation,
    with which it does not decode.

    An interrupted run resumes after its last complete iteration if everything that the result depends on is unchanged;
    a finished run with other settings is deleted first. BLEU is computed by Moses' ``evaluator``.

    Args:
        ini: the ini with the initial weights.
        directory: as in ``MosesIni.located``.
        source: the tokenised dev set.
        references: one or more reference translations.
        output_history: the history, in the format of `tuning tune`.
        work: directory of the run, including all files of the script.
        log: log file for the output of the programs.
        optimizer: a key of ``MOSES_OPTIMIZERS``.
    """
    work = work.resolve()
    for feature in ini.features:
        if "tuneable-components" in feature.options:
            raise InputError(
                f"{ini.place_of(feature)}: {feature.name} has tuneable-components, whose fixed weights {MERT} loses; "
                "tune with rnnsmt, or remove the option"
            )
    located = for_moses(ini, directory)
    fingerprint = {
        "version of this stage": operations("moses")["tune"].version,
        **{name: sha256(moses.program(name)) for name in (MERT, MOSES, "extractor", MOSES_OPTIMIZERS[optimizer][0])},
        **_ini_fingerprint(located, work),
        "source": sha256(source),
        "reference": " ".join(map(sha256, references)),
        "seed": seed, "optimizer": optimizer, "nbest": nbest, "max-iterations": max_iterations,
        "pop-limit": limits.pop_limit, "stack": limits.stack,
    }  # fmt: skip
    checkpoint = CheckpointDirectory(work, fingerprint)
    work = checkpoint.path.resolve()
    checkpoint.lock()
    checkpoint.clear_finished("mert/*", BEGUN, ENDED)
    if (work / BEGUN).is_file():
        checkpoint.check(read_json(work / BEGUN))
    else:
        write_json(work / BEGUN, checkpoint.fingerprint)
    write_plain([source], work / "source")
    for number, reference in enumerate(references):
        write_plain([reference], work / f"reference{number}")
    located.write(work / "untuned.ini")
    options = {
        "mert": [f"--mertmertargs=-r {seed} "],
        "mira": ["--batch-mira", f"--batch-mira-args=--random-seed {seed}", "--mertargs= "],
    }[optimizer]
    tuning = work / "mert"
    seconds = 0.0
    if not (work / ENDED).is_file():
        run([moses.program(MOSES), "-f", work / "untuned.ini", "-show-weights"], log, work)
        goes_on = _rewind(tuning, nbest)
        seconds, _ = run(
            [
                moses.program(MERT), work / "source", work / "reference", moses.program(MOSES), work / "untuned.ini",
                f"--nbest={nbest}", f"--working-dir={tuning}", f"--mertdir={moses.program('extractor').parent}",
                f"--rootdir={moses.scripts()}", "--no-filter-phrase-table", f"--maximum-iterations={max_iterations}",
                f"--threads={limits.threads}", f"--decoder-flags={' '.join(limits.options())}", *options,
                *(["--continue"] if goes_on else []),
            ],
            log, work, held=checkpoint.descriptors, more_logs=[tuning / "mert.log", tuning / "extract.err"],
        )  # fmt: skip
        (work / ENDED).touch()
    iterations = _iterations(moses, ini, work, len(references), log)
    if not iterations:
        raise InputError(f"{MERT}: wrote no translations to {tuning}; full output in {log}")
    last = iterations[-1]
    scores = [f"{name}:{index}" for name, values in last["weights"].items() for index in range(len(values))]
    chosen = replace(ini, weights=ini.weights | last["weights"])
    write_json(
        output_history,
        {
            "features": scores,
            "engine": MOSES,
            "seed": seed,
            "dev_bleu": last["dev_bleu"],
            "weights": _flat(last["weights"]),
            "averaged": [last["iteration"]],
            "iterations": [iteration | {"weights": _flat(iteration["weights"])} for iteration in iterations],
        },
    )
    chosen.write(output_ini)
    checkpoint.finish()
    return {"iterations": len(iterations), "dev BLEU": last["dev_bleu"], "CPU seconds": round(seconds, 1)}


def _ini_fingerprint(ini: MosesIni, work: Path) -> dict[str, str]:
    """Return SHA-256 digests of an ini that ``for_moses`` returned, and of the files of its features."""
    digests = {"ini": hashlib.sha256(replace(ini, path=None).text_for(work).encode()).hexdigest()}
    for feature in ini.features:
        if "path" in feature.options:
            digests[f"file of {feature.name}"] = sha256(feature.options["path"])
    return digests


def _iterations(moses: Installation, ini: MosesIni, work: Path, references: int, log: Path) -> list[dict[str, Any]]:
    """Return number, BLEU and weights of every iteration for which the script has written translations.

    Args:
        ini: the ini with the initial weights; its features are those of the result.
    """
    tuning = work / "mert"
    numbers = sorted(int(match[1]) for path in tuning.iterdir() if (match := re.fullmatch(r"run(\d+)\.out", path.name)))
    iterations = []
    for number in numbers:
        used = tuning / f"run{number}.moses.ini"  # the script compresses those of earlier iterations
        tuned = MosesIni.read(used if used.is_file() else f"{used}.gz")
        iterations.append(
            {
                "iteration": number,
                "dev_bleu": _bleu(moses, work, tuning / f"run{number}.out", references, log),
                "weights": {name: tuned.weights[name] for name in ini.weights if name in tuned.weights},
            }
        )
    return iterations


def _flat(weights: dict[str, list[float]]) -> list[float]:
    return [value for values in weights.values() for value in values]


def _rewind(directory: Path, nbest: int) -> bool:
    """Reset an interrupted run of the script to its last complete iteration; return whether there is one.

    The script records an iteration before all files of the iteration are written. If it ends at the maximum number of
    iterations, it also records an iteration that it does not run. It cannot resume from either record.
    """
    suffixes = ("features.dat", "scores.dat", "weights.txt", "mert.log", f"best{nbest}.out.gz")
    whole = 0
    while all((directory / f"run{whole + 1}.{name}").is_file() for name in suffixes):
        whole += 1
    if whole:
        (directory / "finished_step.txt").write_text(f"{whole}\n")
    elif directory.is_dir():
        shutil.rmtree(directory)
    return whole > 0


def _bleu(moses: Installation, work: Path, output: Path, references: int, log: Path) -> float:
    """Compute BLEU in percent with Moses' evaluator."""
    names = ",".join(str(work / f"reference{number}") for number in range(references))
    printed = work / "bleu"
    command: list[Any] = [moses.program("evaluator"), "--sctype", "BLEU", "--reference", names, "--candidate", output]
    run(command, log, work, stdout=printed)
    words = printed.read_text(encoding="ascii", errors="replace").split()
    try:
        return 100.0 * float(words[0])
    except (IndexError, ValueError):
        raise InputError(
            f"evaluator: expected a BLEU score, but it printed {' '.join(words)[:100] or 'nothing'}; full output in "
            f"{log}"
        ) from None
