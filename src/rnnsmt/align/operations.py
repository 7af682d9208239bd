"""Operations on word alignments."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

from rnnsmt.base.arguments import (
    SAVE_EVERY,
    THREADS,
    Alignment,
    CheckpointDir,
    OptionalOutput,
    Positive,
    SaveEvery,
    Text,
    TextFiles,
    Threads,
    TimeLimit,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.operations import operation
from rnnsmt.base.reading import count_lines
from rnnsmt.base.resuming import check_time_limit
from rnnsmt.config import sections
from rnnsmt.registries import ALIGNERS

if TYPE_CHECKING:
    from rnnsmt.formats.pharaoh import Links, WordAlignment

MAX_PAIRS: Final = 500_000_000
"""Maximum number of word pairs in a lexicon; each pair takes 16 bytes in a pass over the corpus."""


@operation(version=3)
def words(
    source: Text,
    target: Text,
    output: OptionalOutput = None,
    *,
    direction: Literal["forward", "reverse"],
    aligner: sections.Aligner = "model4",
    max_pairs: Positive = MAX_PAIRS,
    threads: Threads = THREADS,
    checkpoint_dir: CheckpointDir | None = None,
    save_every: SaveEvery = SAVE_EVERY,
    time_limit: TimeLimit | None = None,
) -> "WordAlignment":
    r"""Align the words of a parallel corpus in one direction.

    The output is in Pharaoh format: ``i-j`` links source word i to target word j (0-based). Line n contains the links
    of sentence pair n; the line of a pair with an empty side is empty.

    ``direction="forward"`` is the direction of GIZA++ in ``giza.TARGET-SOURCE`` of Moses (``tgttosrc`` in symal), and
    ``direction="reverse"`` the direction in ``giza.SOURCE-TARGET`` (``srctotgt``).

    The result is deterministic and does not depend on the number of threads.

    With ``checkpoint_dir``, checkpoints are saved between iterations (passes over the corpus). On SIGTERM, and shortly
    before ``time_limit``, a checkpoint is saved and the exit status is 75 (130 after Ctrl-C); run the same command
    again to resume. The alignment is the same as after an uninterrupted run.

    Examples, in the directory of a run of the demo corpus:

        rnnsmt align words --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --aligner model4 --direction forward --output try/forward.gz \
            --threads 2
        rnnsmt align words --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --aligner model4 --direction reverse --output try/reverse.gz \
            --threads 2 --checkpoint-dir try/reverse.checkpoint

    Args:
        source: tokenised source side, one sentence per line.
        target: tokenised target side, one sentence per line.
        output: output file: alignment links as source-target index pairs (i-j), in both directions.
        direction: forward: at most one source word per target word; reverse: at most one target word per source word.
        max_pairs: maximum number of co-occurring word pairs (16 bytes each); if there are more, the pairs with the
            weakest association are discarded.

    Returns:
        The links (source word, target word) of every sentence pair. If they are written to ``output``, they are read
        from this file on first use.

    Raises:
        InputError: the texts differ in length, or contain no sentence pair with words on both sides; ``time_limit`` is
            used without ``checkpoint_dir``; the checkpoint belongs to another job.
        SystemExit: the job was stopped after a checkpoint was saved.
    """
    from rnnsmt.align.bitext import read_bitext
    from rnnsmt.align.training import align, checkpoint_of
    from rnnsmt.formats.pharaoh import WordAlignment
    from rnnsmt.stages import operations

    check_time_limit(time_limit, checkpoint_dir)
    with TextFiles() as files:
        bitext = read_bitext(files.of("source", source), files.of("target", target))
    job = {
        "--aligner": ALIGNERS.versioned(aligner),
        "--direction": direction,
        "--max-pairs": max_pairs,
        "version of this stage": operations("align")["words"].version,
    }
    with checkpoint_of(checkpoint_dir, job, bitext, save_every, time_limit) as checkpoint:
        links = align(bitext, aligner, direction, threads, max_pairs, checkpoint)
        return WordAlignment.of(links, output, {"sentences": bitext.sentences})


@operation(version=1)
def symmetrize(
    forward: Alignment,
    reverse: Alignment,
    output: OptionalOutput = None,
    *,
    heuristic: sections.Symmetrization = sections.Alignment.symmetrization,
    order: Literal["atools", "symal"] = "atools",
) -> "WordAlignment":
    r"""Combine the alignments of both directions (Och and Ney 2003), like symal (Moses) and atools (fast_align).

    All files are in Pharaoh format, with source-target index pairs (i-j) in both directions. The results of
    ``order="atools"`` and ``order="symal"`` differ in about one of eight sentences (on Multi30k).

    Example, in the directory of a run of the demo corpus:

        rnnsmt align symmetrize --forward try/forward.gz --reverse try/reverse.gz \
            --heuristic grow-diag-final-and --output try/aligned.gz

    Args:
        forward: alignment with at most one source word per target word.
        reverse: alignment with at most one target word per source word.
        output: output file: combined alignment, sorted by source position.
        order: order in which grow-diag tries links: as in atools (fast_align) or in symal (Moses).

    Returns:
        The combined links of every sentence pair, sorted. If they are written to ``output``, they are read from this
        file on first use.

    Raises:
        InputError: the alignments have different numbers of lines, or a line is not a list of links.
    """
    from itertools import zip_longest

    from rnnsmt.align.symmetrization import symmetrize_links
    from rnnsmt.formats.pharaoh import WordAlignment, links_file, read_link_blocks

    counts = {"sentences": 0, "forward links": 0, "reverse links": 0, "links": 0}

    def combined(*paths: str) -> "Iterator[Links]":
        for given, back in zip_longest(*map(read_link_blocks, paths)):
            if given is None or back is None or given.sentences != back.sentences:
                raise InputError(
                    f"{paths[0]} has {count_lines(paths[0])} lines, but {paths[1]} has {count_lines(paths[1])}; "
                    "both must be alignments of the same text"
                )
            counts["sentences"] += given.sentences
            counts["forward links"] += len(given.source)
            counts["reverse links"] += len(back.source)
            yield symmetrize_links(given, back, heuristic, order)

    with TextFiles() as files:
        blocks = combined(links_file(files, "forward", forward), links_file(files, "reverse", reverse))
        return WordAlignment.of(blocks, output, counts)
