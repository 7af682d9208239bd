"""The commands of word alignment."""

import argparse
from collections.abc import Iterator
from contextlib import nullcontext

from rnnsmt.align import PASSES_OF
from rnnsmt.io import InputError, count_lines
from rnnsmt.options import positive
from rnnsmt.stopping import Stop


def _add_job(parser: argparse.ArgumentParser) -> None:
    """The options that decide about the links."""
    parser.add_argument("--source", required=True, metavar="FILE", help="tokenised text, one sentence a line")
    parser.add_argument("--target", required=True, metavar="FILE", help="its translation, line by line")
    parser.add_argument(
        "--aligner", choices=tuple(PASSES_OF), default="model4", help="the model of the alignment (default: model4)"
    )
    parser.add_argument(
        "--direction",
        choices=("forward", "reverse"),
        required=True,
        help="forward: at most one source word for each target word; reverse: the other way round",
    )
    parser.add_argument(
        "--max-pairs",
        type=positive,
        default=500_000_000,
        metavar="N",
        help="pairs of words that may be linked; where more occur together, the strongest are kept (16 bytes each)",
    )


def _fingerprint(args: argparse.Namespace) -> dict[str, object]:
    """What the options decide, as ``_add_job`` adds them, for the state of a job."""
    from rnnsmt.stages import STAGES

    settings = {"--aligner": args.aligner, "--direction": args.direction, "--max-pairs": args.max_pairs}
    return {**settings, "version of this stage": STAGES["align"]["words"].version}


def words_options(parser: argparse.ArgumentParser) -> None:
    _add_job(parser)
    parser.add_argument("--output", required=True, metavar="FILE", help="the links, source-target in both directions")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--state-dir", metavar="DIR", help="where what was learnt is kept, to go on after a stop")
    parser.add_argument("--save-every", type=float, default=300.0, metavar="SECONDS", help="time between savings")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="stop before, save, and exit with 75")


def words(args: argparse.Namespace) -> dict[str, object]:
    r"""Align the words of a parallel corpus in one direction.

    The output is in Pharaoh format, ``i-j`` = source word i with target word j, from 0; line n belongs to sentence pair
    n, a pair with an empty side gets an empty line.

    Aligners:

    * fast_align: IBM Model 2 with a preference for the diagonal (Dyer et al. 2013);
    * hmm: HMM with jumps that depend on word classes (Vogel et al. 1996; Och and Ney 2003), after Model 1;
    * model4: IBM Model 4 with word classes (Brown et al. 1993) after the HMM and Model 3, with the schedule, the
      smoothing and the counts over neighbourhoods of GIZA++ and MGIZA in Moses' standard recipe.

    No aligner draws random numbers, and the number of threads does not change the result. With ``--state-dir`` what was
    learnt is saved between passes over the corpus, and the same command goes on where an earlier one was interrupted.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt align words --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --aligner model4 --direction forward --output try/forward.gz \
            --threads 2
    """
    from rnnsmt.align.bitext import read_bitext
    from rnnsmt.align.pharaoh import write_links
    from rnnsmt.align.training import AlignmentState, align, fingerprint
    from rnnsmt.state_folder import StateFolder

    if args.time_limit is not None and not args.state_dir:
        raise InputError("--time-limit: where is the state to be saved? give --state-dir too")
    bitext = read_bitext(args.source, args.target)
    with Stop(args.time_limit) if args.state_dir else nullcontext() as stop:
        state = None
        if stop is not None:
            folder = StateFolder(args.state_dir, _fingerprint(args) | fingerprint(bitext))
            state = AlignmentState(folder, args.save_every, stop)
        links = align(bitext, args.aligner, args.direction, args.threads, args.max_pairs, state)
        written = write_links(args.output, links)
        if state:
            state.finish()
    return {"sentences": bitext.sentences, "links": written}


def cut_options(parser: argparse.ArgumentParser) -> None:
    _add_job(parser)
    parser.add_argument("--parts", type=positive, required=True, metavar="N", help="how many")
    parser.add_argument("--output-dir", required=True, metavar="DIR", help="corpus.npz, parameters.0.npz, the parts")
    parser.add_argument("--threads", type=int, default=1)


def cut(args: argparse.Namespace) -> dict[str, object]:
    r"""Cut a parallel corpus into parts, so that several machines share the alignment of its words in one direction.

    Writes the parts (part.K-of-N.npz), what they have in common (corpus.npz), and the parameters before the first pass
    over the corpus (parameters.0.npz). In every pass 'align count' finds the counts of each part, one job a part, and
    'align estimate' the next parameters (5 passes of fast_align, 11 of hmm, 16 of model4); after the last 'align count'
    the links are written by 'align links', in place of the last 'align estimate'. They are those of 'align words', for
    any number of parts.

    A part has whole blocks of sentences: 500, or a 256th of a large corpus. Where there are too few, parts are empty.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt align cut --source results/corpus/joined/train.en.gz --target results/corpus/joined/train.fr.gz \
            --aligner fast_align --direction forward --parts 2 --output-dir try/parts
        for pass in 0 1 2 3 4; do
            for part in 1 2; do
                rnnsmt align count --part try/parts/part.$part-of-2.npz --parameters try/parts/parameters.$pass.npz \
                    --output try/parts/counts.$pass.$part.npz
            done
            rnnsmt align estimate --corpus try/parts/corpus.npz --parameters try/parts/parameters.$pass.npz \
                --counts try/parts/counts.$pass.*.npz --output try/parts/parameters.$((pass + 1)).npz
        done
        rnnsmt align links --corpus try/parts/corpus.npz --counts try/parts/counts.4.*.npz --output try/in-parts.gz
    """
    from rnnsmt.align import parts
    from rnnsmt.align.bitext import read_bitext
    from rnnsmt.align.training import fingerprint

    bitext = read_bitext(args.source, args.target)
    about = {**_fingerprint(args), "--parts": args.parts, **fingerprint(bitext)}
    pairs = parts.cut(bitext, about, args.output_dir, args.threads, args.max_pairs)
    return {"sentences": bitext.sentences, "word pairs": pairs, "parts": args.parts}


def count_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--part", required=True, metavar="FILE", help="a part that align cut wrote")
    parser.add_argument("--parameters", required=True, metavar="FILE", help="those before this pass")
    parser.add_argument("--output", required=True, metavar="FILE", help="the counts (.npz); of the last pass the links")
    parser.add_argument("--threads", type=int, default=1)


def count(args: argparse.Namespace) -> dict[str, object]:
    r"""Count what the next pass over the corpus finds in one of its parts; 'align cut' says what it belongs to.

    Example, in the loop of 'align cut --help':

        rnnsmt align count --part try/parts/part.$part-of-2.npz --parameters try/parts/parameters.$pass.npz \
            --output try/parts/counts.$pass.$part.npz
    """
    from rnnsmt.align import parts

    return {"pass": parts.count(args.part, args.parameters, args.output, args.threads)}


def estimate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpus", required=True, metavar="FILE", help="corpus.npz of align cut")
    parser.add_argument("--parameters", required=True, metavar="FILE", help="those before this pass")
    parser.add_argument("--counts", required=True, nargs="+", metavar="FILE", help="those of all parts")
    parser.add_argument("--output", required=True, metavar="FILE", help="the parameters after this pass (.npz)")


def estimate(args: argparse.Namespace) -> dict[str, object]:
    r"""Estimate the parameters after a pass over the corpus from the counts of all parts; see 'align cut'.

    Example, in the loop of 'align cut --help':

        rnnsmt align estimate --corpus try/parts/corpus.npz --parameters try/parts/parameters.$pass.npz \
            --counts try/parts/counts.$pass.*.npz --output try/parts/parameters.$((pass + 1)).npz
    """
    from rnnsmt.align import parts

    return {"pass": parts.estimate(args.corpus, args.parameters, args.counts, args.output)}


def links_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpus", required=True, metavar="FILE", help="corpus.npz of align cut")
    parser.add_argument("--counts", required=True, nargs="+", metavar="FILE", help="those of all parts, last pass")
    parser.add_argument("--output", required=True, metavar="FILE", help="the links, as align words writes them")


def links(args: argparse.Namespace) -> dict[str, object]:
    r"""Write the links of a corpus that was aligned in parts; see 'align cut'.

    Example, after the last 'align count' of both parts:

        rnnsmt align links --corpus try/parts/corpus.npz --counts try/parts/counts.4.*.npz --output try/in-parts.gz
    """
    from rnnsmt.align import parts
    from rnnsmt.align.pharaoh import write_links

    return {"links": write_links(args.output, parts.links(args.corpus, args.counts))}


def check_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="FILE", help="tokenised text, one sentence a line")
    parser.add_argument("--target", required=True, metavar="FILE", help="its translation, line by line")
    parser.add_argument("--alignment", required=True, metavar="FILE", help="the alignment to check")
    parser.add_argument("--output", required=True, metavar="FILE", help="the same links, sorted by source position")


def check(args: argparse.Namespace) -> dict[str, object]:
    r"""Check an alignment made elsewhere against its text, and write it in the form the other stages read.

    The alignment is in Pharaoh format, ``i-j`` = source word i with target word j, from 0, one line for each sentence
    pair. Links are sorted and doubled ones dropped; nothing else is changed.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt align check --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --alignment try/aligned.gz --output try/checked.gz
    """
    import numpy as np

    from rnnsmt.align.pharaoh import Links, distinct, read_links_of, write_links

    counts = {"sentences": 0, "links": 0, "doubled links dropped": 0, "sentences without links": 0}

    def once_each() -> Iterator[Links]:
        for links in read_links_of(args.alignment, args.source, args.target):
            once = distinct(links)
            counts["sentences"] += links.sentences
            counts["doubled links dropped"] += len(links.source) - len(once.source)
            counts["sentences without links"] += int(np.count_nonzero(np.diff(links.offsets) == 0))
            yield once

    counts["links"] = write_links(args.output, once_each())
    return dict(counts)


def symmetrize_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--forward", required=True, metavar="FILE", help="alignment with at most one source word per target word"
    )
    parser.add_argument(
        "--reverse", required=True, metavar="FILE", help="alignment with at most one target word per source word"
    )
    parser.add_argument(
        "--heuristic",
        choices=["grow-diag-final-and", "grow-diag-final", "grow-diag", "intersection", "union"],
        default="grow-diag-final-and",
        help="how to combine them",
    )
    parser.add_argument(
        "--order",
        choices=["atools", "symal"],
        default="atools",
        help="whose order of trying links grow-diag follows: they differ in one sentence in eight",
    )
    parser.add_argument(
        "--output", required=True, metavar="FILE", help="the combined alignment, sorted by source position"
    )


def symmetrize(args: argparse.Namespace) -> dict[str, object]:
    r"""Combine the alignments of both directions into one (Moses: symal; fast_align: atools).

    All files are in Pharaoh format, source-target in both directions.

    Example, in the folder of a run of the embedded corpus:

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
