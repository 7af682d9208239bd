"""Alignment and training with the programs of Moses, MGIZA, GIZA++ and fast_align."""

import shutil
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import count_lines, read_byte_lines
from rnnsmt.base.writing import atomic_path, scratch_directory, write_lines, write_plain
from rnnsmt.formats.pharaoh import distinct, read_links_of, write_links
from rnnsmt.moses.installation import TRAIN, Installation, run
from rnnsmt.plan.derived import MOSES_SYMMETRIZATIONS
from rnnsmt.plan.paths import PHRASE_TABLE, REORDERING_TABLE

SIDES = ("f", "e")
"""Moses' names of source side and target side in file names, as in ``lex.f2e``."""

TABLES = ("lex.e2f", "lex.f2e", PHRASE_TABLE, REORDERING_TABLE)
"""Files written by training."""

PROBLEMS = ("not found", "No space left", "write failed", "Killed", "cannot open", "No such file", "Out of memory")
"""Messages of a failed step of training; the script itself does not stop at such a failure."""

SCORE_OPTIONS = {"none": "", "kneser-ney": "--KneserNey"}
"""Options of Moses' ``score`` for each value of ``phrases.smoothing``."""


def align(
    moses: Installation,
    aligner: str,
    source: StrPath,
    target: StrPath,
    heuristic: str,
    output: StrPath,
    log: Path,
    threads: int,
) -> dict[str, object]:
    """Align the words of a parallel text in both directions, and combine the two alignments.

    Args:
        aligner: ``model4`` (the default sequence of models of GIZA++, with MGIZA if that is installed) or
            ``fast_align``.
        heuristic: symmetrisation heuristic, by its name in Moses' symal.
        output: output file: alignment links ``i-j``, one line per sentence pair.
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
            combine = [
                "-i",
                directions[0][0],
                "-j",
                directions[1][0],
                "-c",
                MOSES_SYMMETRIZATIONS.get(heuristic, heuristic),
            ]
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
    sources: Sequence[StrPath],
    targets: Sequence[StrPath],
    alignments: Sequence[StrPath],
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
        alignments: word alignment of each file, which is checked. If the same text is specified with several
            alignments, their counts are added.
        log: log file for the output of the programs.
        max_length: maximum number of words of a phrase.
        smoothing: a key of ``SCORE_OPTIONS``.
        memory_mb: memory in MB; a fifth is used as the buffer of the sort program.
    """
    if not len(sources) == len(targets) == len(alignments):
        raise InputError(
            f"--source has {len(sources)} files, --target {len(targets)} and --alignment {len(alignments)}; "
            "specify the same number of each, in the same order"
        )
    with scratch_directory(output_dir.resolve() / PHRASE_TABLE) as work:
        files = [work / f"corpus.{side}" for side in SIDES]
        sentences, _ = (write_plain(paths, file) for paths, file in zip((sources, targets), files, strict=True))
        (work / "model").mkdir()
        # the script neither checks the bounds of links, nor counts a repeated one once
        corpora = zip(alignments, sources, targets, strict=True)
        links = (distinct(block) for paths in corpora for block in read_links_of(*paths))
        write_links(work / "model" / "aligned.links", links)
        options = SCORE_OPTIONS[smoothing]
        # at most ``threads``, but few enough that no part of the text is empty when the script splits it
        cores = -(-sentences // max(sentences // threads + 1, 1)) or 1
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
    return {"sentences": sentences, "phrase pairs": lines[PHRASE_TABLE], "CPU seconds": round(seconds, 1)}
