"""Word alignment and phrase tables by the programs of Moses, MGIZA, GIZA++ and fast_align."""

import shutil
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

from rnnsmt.io import InputError, atomic_path, read_byte_lines, scratch_folder, write_lines
from rnnsmt.moses.installation import TRAIN, Installation
from rnnsmt.moses.running import run

SIDES = ("f", "e")
"""What Moses calls source and target in names of files, and in ``lex.f2e``."""

TABLES = ("lex.e2f", "lex.f2e", "phrase-table.gz", "reordering-table.wbe-msd-bidirectional-fe.gz")
"""What training writes."""

SCORE_OPTIONS = {"none": "", "kneser-ney": "--KneserNey"}
"""Options of Moses' ``score`` by ``phrases.smoothing``."""


def _join(paths: Iterable[str | Path], output: Path) -> int:
    """Write texts, plain, one after the other; the number of lines."""
    lines = 0
    with output.open("wb") as out:
        for path in paths:
            for line in read_byte_lines(path):
                out.write(line + b"\n")
                lines += 1
    return lines


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
    """Align words in both directions and combine them.

    aligner: ``model4``, GIZA++'s default sequence of models, by MGIZA where that is installed; or ``fast_align``.
    heuristic: as Moses' symal and fast_align's atools call it. output: links ``i-j`` of every line.

    Raises:
        InputError: as ``run``; there are other numbers of lines.
    """
    with scratch_folder(Path(output).resolve()) as work:
        texts = [work / f"corpus.{side}" for side in SIDES]
        lines, others = (_join([path], text) for path, text in zip((source, target), texts, strict=True))
        if lines != others:
            raise InputError(f"{source} has {lines} lines, {target} has {others}; give parallel texts")
        if aligner == "model4":
            found = moses.giza()
            if found is None:
                raise InputError(f"{moses.home}: has neither MGIZA nor GIZA++ with all that belongs to them")
            name, folder = found
            seconds = run(
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
            seconds = sum(
                run([moses.program("fast_align"), "-i", both, "-d", "-o", "-v", *options], log, work, stdout=path)
                for path, options in directions
            )
            combine = ["-i", directions[0][0], "-j", directions[1][0], "-c", heuristic]
            seconds += run([moses.program("atools"), *combine], log, work, stdout=links)
        aligned = list(read_byte_lines(links))
        if len(aligned) != lines:
            raise InputError(f"{name}: aligned {len(aligned)} of {lines} lines; its output: {log}")
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
    """Lexical, phrase and reordering tables by ``train-model.perl``, steps 4 to 7, named as ``TABLES``.

    Several alignments of the same text are counted together. smoothing: a key of ``SCORE_OPTIONS``.

    Raises:
        InputError: as ``run``; texts and alignments have other numbers of lines.
    """
    with scratch_folder(output_dir.resolve() / TABLES[2]) as work:
        files = [work / f"corpus.{side}" for side in SIDES]
        numbers = [_join(paths, file) for paths, file in zip((sources, targets), files, strict=True)]
        (work / "model").mkdir()
        numbers.append(_join(alignments, work / "model" / "aligned.links"))
        if len(set(numbers)) > 1:
            raise InputError(
                f"source, target and alignment have {', '.join(map(str, numbers))} lines; give one of each"
            )
        options = SCORE_OPTIONS[smoothing]
        seconds = run(
            [
                moses.program(TRAIN), "-root-dir", work, "-corpus", work / "corpus", "-f", SIDES[0], "-e", SIDES[1],
                "-alignment", "links", "-first-step", "4", "-last-step", "7", "-reordering", "msd-bidirectional-fe",
                "-max-phrase-length", str(max_length), "-cores", str(threads), "-sort-parallel", str(threads),
                "-sort-buffer-size", f"{max(memory_mb // 2, 100)}M", "-temp-dir", work,
                *(["-score-options", options] if options else []),
            ],
            log, work,
        )  # fmt: skip
        for name in TABLES:
            made = work / "model" / name
            if not made.is_file():
                raise InputError(f"{TRAIN}: wrote no {name}; its output: {log}")
        for name in TABLES:
            with atomic_path(output_dir / name) as place:
                shutil.copyfile(work / "model" / name, place)
    return {"sentences": numbers[0], "CPU seconds": round(seconds, 1)}
