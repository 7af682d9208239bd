"""Commands of word alignment."""

import argparse
from collections.abc import Iterator
from contextlib import nullcontext

from rnnsmt.align import ALIGNERS, DIRECTIONS, HEURISTICS, MAX_PAIRS, ORDERS
from rnnsmt.base.io import InputError, count_lines
from rnnsmt.base.options import add_threads, positive
from rnnsmt.base.resuming import Stop
from rnnsmt.config.sections import Alignment


def _add_texts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="FILE", help="tokenised source side, one sentence per line")
    parser.add_argument("--target", required=True, metavar="FILE", help="tokenised target side, one sentence per line")


def words_options(parser: argparse.ArgumentParser) -> None:
    _add_texts(parser)
    add = parser.add_argument
    add("--aligner", choices=ALIGNERS, default="model4", help="alignment model")
    add("--direction", choices=DIRECTIONS, required=True,
        help="forward: at most one source word per target word; reverse: at most one target word per source "
        "word")  # fmt: skip
    add("--max-pairs", type=positive, default=MAX_PAIRS, metavar="N",
        help="maximum number of co-occurring word pairs (16 bytes each); if there are more, the pairs with the "
        "weakest association are discarded")  # fmt: skip
    add(
        "--output",
        required=True,
        metavar="FILE",
        help="output file: alignment links as source-target index pairs (i-j) for both directions",
    )
    add_threads(parser)
    add("--checkpoint-dir", metavar="DIR",
        help="checkpoint directory, used to resume an interrupted run (default: no checkpoints)")  # fmt: skip
    add("--save-every", type=float, default=300.0, metavar="SECONDS", help="minimum time between checkpoints")
    add("--time-limit", type=float, metavar="SECONDS",
        help="save a checkpoint and exit with status 75 before this time limit; requires --checkpoint-dir")  # fmt: skip


def words(args: argparse.Namespace) -> dict[str, object]:
    r"""Align the words of a parallel corpus in one direction.

    The output is in Pharaoh format: ``i-j`` links source word i to target word j (0-based). Line n contains the links
    of sentence pair n; the line of a pair with an empty side is empty.

    Aligners:

    * fast_align: IBM Model 2 with a prior that favours the diagonal (Dyer et al. 2013);
    * hmm: HMM with word-class dependent jumps (Vogel et al. 1996; Och and Ney 2003), initialised by Model 1;
    * model4: IBM Model 4 with word classes (Brown et al. 1993), initialised by the HMM and Model 3. The training
      schedule, smoothing, and collection of counts over neighbouring alignments follow GIZA++ and MGIZA in the
      standard Moses recipe.

    The result is deterministic and does not depend on the number of threads.

    With --checkpoint-dir, checkpoints are saved between iterations (passes over the corpus). On SIGTERM, and shortly
    before --time-limit, a checkpoint is saved and the exit status is 75 (130 after Ctrl-C); run the same command again
    to resume. The alignment is identical to that of an uninterrupted run.

    Example, in the directory of a run of the demo corpus:

        rnnsmt align words --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --aligner model4 --direction forward --output try/forward.gz \
            --threads 2
    """
    from rnnsmt.align.bitext import read_bitext
    from rnnsmt.align.pharaoh import write_links
    from rnnsmt.align.training import AlignmentCheckpoint, align, fingerprint
    from rnnsmt.base.resuming import CheckpointDirectory
    from rnnsmt.stages import STAGES

    if args.time_limit is not None and not args.checkpoint_dir:
        raise InputError("--time-limit requires --checkpoint-dir")
    bitext = read_bitext(args.source, args.target)
    with Stop(args.time_limit) if args.checkpoint_dir else nullcontext() as stop:
        checkpoint = None
        if stop is not None:
            job = {
                "--aligner": args.aligner,
                "--direction": args.direction,
                "--max-pairs": args.max_pairs,
                "version of this stage": STAGES["align"]["words"].version,
            }
            directory = CheckpointDirectory(args.checkpoint_dir, job | fingerprint(bitext))
            checkpoint = AlignmentCheckpoint(directory, args.save_every, stop)
        links = align(bitext, args.aligner, args.direction, args.threads, args.max_pairs, checkpoint)
        written = write_links(args.output, links)
        if checkpoint:
            checkpoint.finish()
    return {"sentences": bitext.sentences, "links": written}


def check_options(parser: argparse.ArgumentParser) -> None:
    _add_texts(parser)
    parser.add_argument("--alignment", required=True, metavar="FILE", help="alignment to check, in Pharaoh format")
    parser.add_argument("--output", required=True, metavar="FILE",
        help="output file: the same links, sorted by source position")  # fmt: skip


def check(args: argparse.Namespace) -> dict[str, object]:
    r"""Check a word alignment from another program against its text, and write it with sorted links.

    Input and output are in Pharaoh format: ``i-j`` links source word i to target word j (0-based), one line per
    sentence pair. Links are sorted and duplicates removed; nothing else is changed. An alignment with a different
    number of lines, or with a link beyond the end of a sentence, is an error.

    Example, in the directory of a run of the demo corpus:

        rnnsmt align check --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --alignment try/aligned.gz --output try/checked.gz
    """
    import numpy as np

    from rnnsmt.align.pharaoh import Links, distinct, read_links_of, write_links

    counts = {"sentences": 0, "links": 0, "duplicate links removed": 0, "sentences without links": 0}

    def once_each() -> Iterator[Links]:
        for links in read_links_of(args.alignment, args.source, args.target):
            once = distinct(links)
            counts["sentences"] += links.sentences
            counts["duplicate links removed"] += len(links.source) - len(once.source)
            counts["sentences without links"] += int(np.count_nonzero(np.diff(links.offsets) == 0))
            yield once

    counts["links"] = write_links(args.output, once_each())
    return dict(counts)


def symmetrize_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--forward", required=True, metavar="FILE", help="alignment with at most one source word per target word")
    add("--reverse", required=True, metavar="FILE", help="alignment with at most one target word per source word")
    add("--heuristic", choices=HEURISTICS, default=Alignment.symmetrization, help="symmetrisation heuristic")
    add("--order", choices=ORDERS, default=ORDERS[0],
        help="order in which grow-diag tries links: as in atools (fast_align) or in symal (Moses)")  # fmt: skip
    add("--output", required=True, metavar="FILE", help="output file: combined alignment, sorted by source position")


def symmetrize(args: argparse.Namespace) -> dict[str, object]:
    r"""Combine the alignments of both directions (Och and Ney 2003), like symal (Moses) and atools (fast_align).

    All files are in Pharaoh format, with source-target index pairs for both directions. The results of --order atools
    and --order symal differ in about one sentence in eight (on Multi30k).

    Example, in the directory of a run of the demo corpus:

        rnnsmt align symmetrize --forward try/forward.gz --reverse try/reverse.gz \
            --heuristic grow-diag-final-and --output try/aligned.gz
    """
    from itertools import zip_longest

    from rnnsmt.align.pharaoh import Links, read_link_blocks, write_links
    from rnnsmt.align.symmetrization import symmetrize_links

    counts = {"sentences": 0, "forward links": 0, "reverse links": 0, "links": 0}

    def combined() -> Iterator[Links]:
        blocks = zip_longest(read_link_blocks(args.forward), read_link_blocks(args.reverse))
        for forward, reverse in blocks:
            if forward is None or reverse is None or forward.sentences != reverse.sentences:
                raise InputError(
                    f"{args.forward} has {count_lines(args.forward)} lines, but {args.reverse} has "
                    f"{count_lines(args.reverse)}; both must be alignments of the same text"
                )
            counts["sentences"] += forward.sentences
            counts["forward links"] += len(forward.source)
            counts["reverse links"] += len(reverse.source)
            yield symmetrize_links(forward, reverse, args.heuristic, args.order)

    counts["links"] = write_links(args.output, combined())
    return dict(counts)
