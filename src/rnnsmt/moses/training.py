"""Word alignment and phrase tables with the programs of Moses, MGIZA, GIZA++ and fast_align."""

import shutil
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from rnnsmt.base.io import (
    InputError,
    atomic_path,
    count_lines,
    read_byte_lines,
    scratch_folder,
    write_lines,
    write_plain,
)
from rnnsmt.moses.installation import TRAIN, Installation, run

SIDES = ("f", "e")
"""Moses' names of source side and target side in file names, as in ``lex.f2e``."""

TABLES = ("lex.e2f", "lex.f2e", "phrase-table.gz", "reordering-table.wbe-msd-bidirectional-fe.gz")
"""Files written by training."""

ATOOLS = {"intersection": "intersect"}
"""Heuristics that have another name in atools than in symal."""

PROBLEMS = ("not found", "No space left", "write failed", "Killed", "cannot open", "No such file", "Out of memory")
"""Messages of a failed part of training; the script itself continues without it."""

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
        moses: the installation.
        aligner: ``model4`` (the default sequence of models of GIZA++, with MGIZA if that is installed) or
            ``fast_align``.
        source, target: the parallel text.
        heuristic: name of the combination in Moses' symal and fast_align's atools.
        output: the alignment, links ``i-j`` of each line.
        log: log file for the output of the programs.
        threads: number of threads.

    Raises:
        InputError: as ``run``; the numbers of lines differ.
    """
    with scratch_folder(Path(output).resolve()) as work:
        texts = [work / f"corpus.{side}" for side in SIDES]
        lines, others = (write_plain([path], text) for path, text in zip((source, target), texts, strict=True))
        if lines != others:
            raise InputError(f"{source} has {lines} lines, but {target} has {others}; give a parallel corpus")
        if aligner == "model4":
            found = moses.giza()
            if found is None:
                raise InputError(f"{moses.home}: has neither a complete MGIZA nor a complete GIZA++")
            name, folder = found
            seconds, _ = run(
                [
                    moses.program(TRAIN), "-root-dir", work, "-corpus", work / "corpus", "-f", SIDES[0], "-e", SIDES[1],
                    "-alignment", heuristic, "-first-step", "1", "-last-step", "3", "-external-bin-dir", folder,
                    *(["-mgiza", "-mgiza-cpus", str(threads)] if name == "mgiza" else []),
                ],
                log, work,
            )  # fmt: skip
            links = work / "model" / f"aligned.{heuristic}"
        else:
            name, links = aligner, work / "links"
            both = work / "both"
            with both.open("wb") as out:
                for one, other in zip_longest(*map(read_byte_lines, texts)):
                    out.write(one + b" ||| " + other + b"\n")
            directions: list[tuple[Path, list[str]]] = [(work / "forward", []), (work / "reverse", ["-r"])]
            program = moses.program("fast_align")
            done = [
                run([program, "-i", both, "-d", "-o", "-v", *options], log, work, stdout=path, threads=threads)
                for path, options in directions
            ]
            combine = ["-i", directions[0][0], "-j", directions[1][0], "-c", ATOOLS.get(heuristic, heuristic)]
            done.append(run([moses.program("atools"), *combine], log, work, stdout=links))
            seconds = sum(one.seconds for one in done)
        aligned = list(read_byte_lines(links))
        if len(aligned) != lines:
            raise InputError(f"{name}: aligned {len(aligned)} of {lines} lines; see its output in {log}")
        write_lines(output, (line.decode("ascii").strip() for line in aligned))
    return {"aligner": name, "sentences": lines, "links": sum(map(_words, aligned)), "CPU seconds": round(seconds, 1)}


def _words(line: bytes) -> int:
    return len(line.split())


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
    """Make lexical, phrase and reordering tables, named as ``TABLES``, with steps 4 to 7 of ``train-model.perl``.

    Args:
        moses: the installation.
        sources, targets: the parallel text, in one or more files, which are concatenated.
        alignments: word alignments, in the same order. If the same text is given with several alignments, these are
            counted together.
        output_dir: directory of the tables.
        log: log file for the output of the programs.
        max_length: maximum number of words of a phrase.
        smoothing: a key of ``SCORE_OPTIONS``.
        threads: number of threads.
        memory_mb: memory in MB; a fifth is used as the buffer of the sort program.

    Raises:
        InputError: as ``run``; the numbers of lines differ, or the tables are incomplete.
    """
    with scratch_folder(output_dir.resolve() / TABLES[2]) as work:
        files = [work / f"corpus.{side}" for side in SIDES]
        numbers = [write_plain(paths, file) for paths, file in zip((sources, targets), files, strict=True)]
        (work / "model").mkdir()
        numbers.append(write_plain(alignments, work / "model" / "aligned.links"))
        if len(set(numbers)) > 1:
            raise InputError(
                f"source, target and alignment have {', '.join(map(str, numbers))} lines; give one of each"
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
        if len(lines) < len(TABLES) or not all(lines.values()) or lines[TABLES[2]] != lines[TABLES[3]]:
            made = ", ".join(f"{name} {lines.get(name, 'no')} lines" for name in TABLES)
            raise InputError(f"{TRAIN}: its tables are incomplete ({made}); see its output in {log}")
        for name in TABLES:
            with atomic_path(output_dir / name) as place:
                shutil.copyfile(work / "model" / name, place)
    return {"sentences": numbers[0], "phrase pairs": lines[TABLES[2]], "CPU seconds": round(seconds, 1)}
