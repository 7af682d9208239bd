"""Alignment, training, decoding and tuning with the programs of Moses, MGIZA, GIZA++ and fast_align.

Decoding and tuning work for models of rnnsmt or of Moses.
"""

import gzip
import hashlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from rnnsmt.base.io import (
    InputError,
    atomic_path,
    count_lines,
    read_byte_lines,
    read_json,
    read_lines,
    scratch_directory,
    sha256,
    words_of,
    write_json,
    write_lines,
    write_plain,
)
from rnnsmt.base.resuming import CheckpointDirectory
from rnnsmt.config.paths import PHRASE_TABLE, REORDERING_TABLE
from rnnsmt.moses.ini import NEURAL_MODELS, RESCORING, Feature, MosesIni
from rnnsmt.moses.installation import MERT, MOSES, TRAIN, Installation, run
from rnnsmt.moses.nbest import fields_of
from rnnsmt.stages import STAGES

SIDES = ("f", "e")
"""Moses' names of source side and target side in file names, as in ``lex.f2e``."""

TABLES = ("lex.e2f", "lex.f2e", PHRASE_TABLE, REORDERING_TABLE)
"""Files written by training."""

ATOOLS = {"intersection": "intersect"}
"""Heuristics whose name in atools differs from that in symal."""

PROBLEMS = ("not found", "No space left", "write failed", "Killed", "cannot open", "No such file", "Out of memory")
"""Messages of a failed step of training; the script itself does not stop at such a failure."""

SCORE_OPTIONS = {"none": "", "kneser-ney": "--KneserNey"}
"""Options of Moses' ``score`` for each value of ``phrases.smoothing``."""


def align(
    moses: Installation,
    aligner: str,
    source: str | Path,
    target: str | Path,
    heuristic: str,
    output: str | Path,
    log: Path,
    threads: int,
) -> dict[str, object]:
    """Align the words of a parallel text in both directions, and combine the two alignments.

    Args:
        aligner: ``model4`` (the default sequence of models of GIZA++, with MGIZA if that is installed) or
            ``fast_align``.
        heuristic: name of the combination in Moses' symal and fast_align's atools.
        output: the alignment, links ``i-j`` of each line.
        log: log file for the output of the programs.
    """
    with scratch_directory(Path(output).resolve()) as work:
        texts = [work / f"corpus.{side}" for side in SIDES]
        lines, others = (write_plain([path], text) for path, text in zip((source, target), texts, strict=True))
        if lines != others:
            raise InputError(
                f"{source} has {lines} lines, but {target} has {others}; both must have the same number of lines"
            )
        if aligner == "model4":
            giza = moses.giza()
            if giza is None:
                raise InputError(f"{moses.home}: has neither a complete MGIZA nor a complete GIZA++")
            name, directory = giza
            seconds, _ = run(
                [
                    moses.program(TRAIN), "-root-dir", work, "-corpus", work / "corpus", "-f", SIDES[0], "-e", SIDES[1],
                    "-alignment", heuristic, "-first-step", "1", "-last-step", "3", "-external-bin-dir", directory,
                    *(["-mgiza", "-mgiza-cpus", str(threads)] if name == "mgiza" else []),
                ],
                log, work,
            )  # fmt: skip
            links = work / "model" / f"aligned.{heuristic}"
        else:
            name, links = aligner, work / "links"
            both = work / "both"
            with both.open("wb") as out:
                for source_line, target_line in zip_longest(*map(read_byte_lines, texts)):
                    out.write(source_line + b" ||| " + target_line + b"\n")
            directions: list[tuple[Path, list[str]]] = [(work / "forward", []), (work / "reverse", ["-r"])]
            program = moses.program("fast_align")
            done = [
                run([program, "-i", both, "-d", "-o", "-v", *options], log, work, stdout=path, threads=threads)
                for path, options in directions
            ]
            combine = ["-i", directions[0][0], "-j", directions[1][0], "-c", ATOOLS.get(heuristic, heuristic)]
            done.append(run([moses.program("atools"), *combine], log, work, stdout=links))
            seconds = sum(completed.seconds for completed in done)
        aligned = list(read_byte_lines(links))
        if len(aligned) != lines:
            raise InputError(f"{name}: aligned {len(aligned)} of {lines} lines; full output in {log}")
        write_lines(output, (line.decode("ascii").strip() for line in aligned))
    links_made = sum(len(line.split()) for line in aligned)
    return {"aligner": name, "sentences": lines, "links": links_made, "CPU seconds": round(seconds, 1)}


def train(
    moses: Installation,
    sources: Sequence[str | Path],
    targets: Sequence[str | Path],
    alignments: Sequence[str | Path],
    output_dir: Path,
    log: Path,
    *,
    max_length: int,
    smoothing: str,
    threads: int,
    memory_mb: int,
) -> dict[str, object]:
    """Create lexical, phrase and reordering tables, named as ``TABLES``, with steps 4 to 7 of ``train-model.perl``.

    Args:
        sources, targets: the parallel text, in one or more files, which are concatenated.
        alignments: word alignments, in the same order. If the same text is given with several alignments, these are
            counted together.
        log: log file for the output of the programs.
        max_length: maximum number of words of a phrase.
        smoothing: a key of ``SCORE_OPTIONS``.
        memory_mb: memory in MB; a fifth is used as the buffer of the sort program.
    """
    with scratch_directory(output_dir.resolve() / PHRASE_TABLE) as work:
        files = [work / f"corpus.{side}" for side in SIDES]
        numbers = [write_plain(paths, file) for paths, file in zip((sources, targets), files, strict=True)]
        (work / "model").mkdir()
        numbers.append(write_plain(alignments, work / "model" / "aligned.links"))
        if len(set(numbers)) > 1:
            raise InputError(
                f"source, target and alignment have {', '.join(map(str, numbers))} lines; their numbers of lines "
                "must be equal"
            )
        options = SCORE_OPTIONS[smoothing]
        # at most ``threads``, but few enough that no part of the text is empty when the script splits it
        cores = -(-numbers[0] // max(numbers[0] // threads + 1, 1)) or 1
        seconds, printed = run(
            [
                moses.program(TRAIN), "-root-dir", work, "-corpus", work / "corpus", "-f", SIDES[0], "-e", SIDES[1],
                "-alignment", "links", "-first-step", "4", "-last-step", "7", "-reordering", "msd-bidirectional-fe",
                "-max-phrase-length", str(max_length), "-cores", str(cores),
                "-sort-parallel", str(max(threads // 3, 1)),
                "-sort-buffer-size", f"{max(memory_mb // 5, 100)}M", "-temp-dir", work,
                *(["-score-options", options] if options else []),
            ],
            log, work,
        )  # fmt: skip
        for line in printed.splitlines():
            if any(problem in line for problem in PROBLEMS):
                raise InputError(f"{TRAIN}: {line.strip()[:300]}; full output in {log}")
        lines = {name: count_lines(work / "model" / name) for name in TABLES if (work / "model" / name).is_file()}
        if len(lines) < len(TABLES) or not all(lines.values()) or lines[PHRASE_TABLE] != lines[REORDERING_TABLE]:
            line_counts = ", ".join(f"{name} {lines.get(name, 'no')} lines" for name in TABLES)
            raise InputError(f"{TRAIN}: its tables are incomplete ({line_counts}); full output in {log}")
        for name in TABLES:
            with atomic_path(output_dir / name) as temporary:
                shutil.copyfile(work / "model" / name, temporary)
    return {"sentences": numbers[0], "phrase pairs": lines[PHRASE_TABLE], "CPU seconds": round(seconds, 1)}


BEGUN, ENDED = "begun.json", "ended"
"""Files of a tuning directory: the settings and inputs that the result depends on; the marker that the script has
finished."""

OPTIMISERS = {"mert": "mert", "mira": "kbmira"}
"""Program of each optimiser."""


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
    """
    features = []
    for feature in ini.features:
        if feature.kind == RESCORING:
            raise InputError(
                f"{ini.path}: {feature.name} is a score of complete translations, which Moses does not support; use "
                "the system whose n-best lists were rescored"
            )
        if feature.kind == "CSLM":
            raise InputError(
                f"{ini.path}: {feature.name}: the Moses decoder does not support a continuous-space LM; decode with "
                "rnnsmt, or rescore n-best lists of Moses with `cslm rescore`"
            )
        if feature.kind in NEURAL_MODELS:
            raise InputError(
                f"{ini.path}: {feature.name}: the Moses decoder does not support {feature.kind}; decode with rnnsmt"
            )
        path = {"path": str(ini.located(feature, directory).resolve())} if "path" in feature.options else {}
        features.append(Feature(feature.kind, feature.name, feature.options | path))
    return replace(ini, features=features)


def decode(
    moses: Installation,
    ini: MosesIni,
    directory: Path | None,
    text: str | Path,
    output: str | Path,
    details: str | Path,
    log: Path,
    limits: Limits,
) -> dict[str, int | float]:
    """Translate a tokenised text with ``moses``.

    Args:
        directory: as in ``MosesIni.located``.
        details: n-best lists of size 1, with features and segmentations.
        log: log file for Moses' output.

    Returns:
        The statistics that `search decode` reports, under the same names, except for the time of the search, which
        Moses does not separate from the time of loading.
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
    source: str | Path,
    references: Sequence[str | Path],
    output_ini: Path,
    output_history: Path,
    work: Path,
    log: Path,
    limits: Limits,
    *,
    seed: int,
    optimiser: str,
    nbest: int,
    max_iterations: int,
) -> dict[str, object]:
    """Tune weights with ``mert-moses.pl``; the result is the last iteration that was decoded.

    If the script ends at the maximum number of iterations, its own result is one optimisation further, whose weights it
    does not decode.

    An interrupted run resumes after its last complete iteration if everything that the result depends on is unchanged;
    a finished run with other settings is deleted first. BLEU is computed by Moses' ``evaluator``.

    Args:
        ini: the ini with the initial weights.
        directory: as in ``MosesIni.located``.
        source: the tokenised dev text.
        references: one or more reference translations.
        output_history: the history, in the format of `tuning mert`.
        work: directory of the run, including all files of the script.
        log: log file for the output of the programs.
        optimiser: a key of ``OPTIMISERS``.
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
        "version of this stage": STAGES["moses"]["tune"].version,
        **{name: sha256(moses.program(name)) for name in (MERT, MOSES, "extractor", OPTIMISERS[optimiser])},
        **_ini_fingerprint(located, work),
        "source": sha256(source),
        "reference": " ".join(map(sha256, references)),
        "seed": seed, "optimiser": optimiser, "nbest": nbest, "max-iterations": max_iterations,
        "pop-limit": limits.pop_limit, "stack": limits.stack,
    }  # fmt: skip
    checkpoint = CheckpointDirectory(work, fingerprint)
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
    }[optimiser]
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
    """Return SHA-256 digests of an ini from ``for_moses`` and of the files of its features."""
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
        tuned = MosesIni.read(_run_ini(tuning, number))
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

    The script records an iteration before all its files are written. If it ends at the maximum number of iterations, it
    also records one that it does not run. It cannot resume from either.
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


def _run_ini(directory: Path, number: int) -> Path:
    """Return the ini with which an iteration decoded; decompress it if necessary."""
    path = directory / f"run{number}.moses.ini"
    if path.is_file():
        return path
    packed = path.with_name(f"{path.name}.gz")
    with gzip.open(packed, "rb") as reading, path.open("wb") as writing:
        shutil.copyfileobj(reading, writing)
    return path


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
