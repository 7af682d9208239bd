"""The commands of word alignment."""

import argparse

from rnnsmt.io import InputError

ALIGNERS = ("fast_align", "hmm", "model4")


def words_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="FILE", help="tokenised text, one sentence a line")
    parser.add_argument("--target", required=True, metavar="FILE", help="its translation, line by line")
    parser.add_argument("--aligner", choices=ALIGNERS, default="model4", help="the model, see above")
    parser.add_argument(
        "--output-forward", required=True, metavar="FILE", help="at most one source word for each target word"
    )
    parser.add_argument(
        "--output-reverse", required=True, metavar="FILE", help="at most one target word for each source word"
    )
    parser.add_argument("--threads", type=int, default=1, help="2: both directions at the same time")


def words(args: argparse.Namespace) -> dict[str, object]:
    r"""Align the words of a parallel corpus in both directions.

    Both outputs are in Pharaoh format, ``i-j`` = source word i with target word j, from 0; line n belongs to sentence
    pair n, a pair with an empty side gets an empty line.

    Aligners:

    * fast_align: IBM Model 2 with a preference for the diagonal (Dyer et al. 2013);
    * hmm: HMM with jumps that depend on word classes (Vogel et al. 1996; Och and Ney 2003), after Model 1;
    * model4: IBM Model 4 with word classes (Brown et al. 1993) after the HMM and Model 3, with the schedule, the
      smoothing and the counts over neighbourhoods of GIZA++ and MGIZA in Moses' standard recipe.

    No aligner draws random numbers, and the number of threads does not change the result.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt align words --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --aligner model4 --output-forward try/forward.gz \
            --output-reverse try/reverse.gz --threads 2
    """
    from rnnsmt.align.bitext import read_bitext
    from rnnsmt.align.directions import align_both_directions
    from rnnsmt.align.pharaoh import write_links

    bitext = read_bitext(args.source, args.target)
    forward, reverse = align_both_directions(bitext, args.aligner, args.threads)
    write_links(args.output_forward, forward)
    write_links(args.output_reverse, reverse)
    return {
        "sentences": bitext.sentences,
        "forward links": len(forward.source),
        "reverse links": len(reverse.source),
    }


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

    from rnnsmt.align.bitext import read_bitext
    from rnnsmt.align.pharaoh import check_bounds, distinct, read_links, write_links

    bitext = read_bitext(args.source, args.target)
    links = read_links(args.alignment)
    check_bounds(args.alignment, links, bitext.source.lengths, bitext.target.lengths)
    once = distinct(links)
    write_links(args.output, once)
    return {
        "sentences": links.sentences,
        "links": len(once.source),
        "doubled links dropped": len(links.source) - len(once.source),
        "sentences without links": int(np.count_nonzero(np.diff(links.offsets) == 0)),
    }


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
    from rnnsmt.align.pharaoh import read_links, write_links
    from rnnsmt.align.symmetrization import symmetrize_links

    forward, reverse = read_links(args.forward), read_links(args.reverse)
    if forward.sentences != reverse.sentences:
        raise InputError(
            f"{args.forward} has {forward.sentences} lines, but {args.reverse} has {reverse.sentences}; "
            "both must be alignments of the same text"
        )
    links = symmetrize_links(forward, reverse, args.heuristic, args.order)
    write_links(args.output, links)
    return {
        "sentences": links.sentences,
        "forward links": len(forward.source),
        "reverse links": len(reverse.source),
        "links": len(links.source),
    }
