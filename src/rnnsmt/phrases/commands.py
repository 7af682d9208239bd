"""The commands that make the phrase table and the reordering table, filter them, add pairs and columns."""

import argparse
import math

from rnnsmt.options import positive


def add_resources(parser: argparse.ArgumentParser) -> None:
    """``--threads`` and ``--memory-mb``; neither changes an output."""
    parser.add_argument("--threads", type=positive, default=1, help="threads of counting, reading and compression")
    parser.add_argument("--memory-mb", type=positive, default=2000, help="about how much memory to use before spilling")


def lexical_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", nargs="+", required=True, metavar="FILE", help="tokenised source text")
    parser.add_argument("--target", nargs="+", required=True, metavar="FILE", help="tokenised target text, in parallel")
    parser.add_argument("--alignment", nargs="+", required=True, metavar="FILE", help="links i-j, line by line")
    parser.add_argument("--output-e2f", required=True, metavar="FILE", help="p(source word | target word)")
    parser.add_argument("--output-f2e", required=True, metavar="FILE", help="p(target word | source word)")


def lexical(args: argparse.Namespace) -> dict[str, object]:
    r"""Lexical translation probabilities from a word alignment, Moses' ``lex.e2f`` and ``lex.f2e``.

    Relative frequencies over the links (Koehn, Och and Marcu 2003, section 4.4); a word without a link counts as linked
    to NULL, as in ``train-model.perl`` step 4. f is the source, e the target: a line of ``lex.e2f`` is ``f e p(f|e)``,
    one of ``lex.f2e`` is ``e f p(e|f)``; seven decimals; both files are sorted by f, then e.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt phrases lexical --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz \
            --alignment results/align/model4/aligned.grow-diag-final-and.gz --output-e2f try/lex.e2f \
            --output-f2e try/lex.f2e
    """
    from rnnsmt.phrases.lexical_table import count_lexical, write_lexical_tables

    counts, figures = count_lexical(args.source, args.target, args.alignment)
    write_lexical_tables(counts, args.output_e2f, args.output_f2e)
    return figures.as_dict() | {"word pairs": len(counts.pairs)}


def extract_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", nargs="+", required=True, metavar="FILE", help="tokenised source text")
    parser.add_argument("--target", nargs="+", required=True, metavar="FILE", help="tokenised target text, in parallel")
    parser.add_argument("--alignment", nargs="+", required=True, metavar="FILE", help="links i-j, line by line")
    parser.add_argument("--max-length", type=int, choices=range(1, 9), default=7, help="words of a phrase, each side")
    parser.add_argument("--output", required=True, metavar="FILE", help="counted phrase pairs (parquet)")
    add_resources(parser)


def extract(args: argparse.Namespace) -> dict[str, object]:
    r"""Phrase pairs consistent with a word alignment, counted (Koehn, Och and Marcu 2003; Moses' ``extract``).

    The output holds every distinct (source phrase, target phrase, alignment inside the phrase) once, with how often it
    occurs and in which orientations (word-based msd model, previous and next), sorted as the phrase table is; the
    stages ``score`` and ``reordering`` read it. Words are numbers there; the vocabularies are in the file's metadata.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt phrases extract --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz \
            --alignment results/align/model4/aligned.grow-diag-final-and.gz --max-length 7 \
            --output try/extract.parquet --threads 2 --memory-mb 2000
    """
    from rnnsmt.phrases.extraction import extract_phrases

    return extract_phrases(
        args.source, args.target, args.alignment, args.output, args.max_length, args.threads, args.memory_mb
    )


def score_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--extract", required=True, metavar="FILE", help="what 'phrases extract' wrote")
    parser.add_argument("--lex-e2f", required=True, metavar="FILE", help="p(source word | target word)")
    parser.add_argument("--lex-f2e", required=True, metavar="FILE", help="p(target word | source word)")
    parser.add_argument("--output", required=True, metavar="FILE", help="the phrase table")
    parser.add_argument(
        "--output-origins", metavar="FILE", help="to write: folds of a pair's sentences, and their number (.npy)"
    )
    add_resources(parser)
    parser.add_argument(
        "--smoothing",
        choices=["none", "kneser-ney"],
        default="none",
        help="of the phrase probabilities: none (Moses' default), or modified Kneser-Ney (Foster et al. 2006)",
    )


def score(args: argparse.Namespace) -> dict[str, object]:
    r"""The phrase table: p(f|e) lex(f|e) p(e|f) lex(e|f) for every distinct phrase pair, in Moses' format and order.

    f is the source, e the target. The alignment kept with a pair is its most frequent one; ties are broken as Moses
    breaks them. Phrase probabilities are relative frequencies, smoothed on demand; lexical weights after Koehn, Och and
    Marcu 2003, section 4.4. --output-origins: of every line, from which folds of the sentences the pair comes, so that
    networks can be measured on pairs that none of their sentences contains, and how often it was extracted.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt phrases score --extract try/extract.parquet --lex-e2f try/lex.e2f --lex-f2e try/lex.f2e \
            --smoothing kneser-ney --output try/phrase-table.gz --output-origins try/origins.npy
    """
    from rnnsmt.phrases.scoring import score_phrases

    return score_phrases(
        args.extract,
        args.lex_e2f,
        args.lex_f2e,
        args.output,
        args.threads,
        args.memory_mb,
        args.smoothing,
        args.output_origins,
    )


def reordering_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--extract", required=True, metavar="FILE", help="what 'phrases extract' wrote")
    parser.add_argument("--output", required=True, metavar="FILE", help="the reordering table")
    parser.add_argument("--smoothing", type=float, default=0.5, help="added to every count")
    add_resources(parser)


def reordering(args: argparse.Namespace) -> dict[str, object]:
    """The lexicalised reordering table ``wbe-msd-bidirectional-fe`` (Koehn et al. 2005), in Moses' format and order.

    Six probabilities of every phrase pair: monotone, swap, discontinuous towards the phrase before it, and the same
    towards the phrase after it; counts with additive smoothing. What one of n alignments of the same text shows counts
    as the n-th part, so that the same alignment given twice is the same as given once.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt phrases reordering --extract try/extract.parquet --output try/reordering-table.gz
    """
    from rnnsmt.phrases.reordering import write_reordering_table

    return write_reordering_table(args.extract, args.output, args.smoothing, args.threads, args.memory_mb)


def prune_options(parser: argparse.ArgumentParser) -> None:
    def threshold(text: str) -> str:
        if text not in ("a+e", "a-e") and not 0 < float(text) < math.inf:
            raise argparse.ArgumentTypeError(f"{text}: must be a+e, a-e or a number above 0")
        return text

    parser.add_argument("--phrase-table", required=True, metavar="FILE")
    parser.add_argument("--source", nargs="+", required=True, metavar="FILE", help="source text that it comes from")
    parser.add_argument("--target", nargs="+", required=True, metavar="FILE", help="target text, in parallel")
    parser.add_argument(
        "--threshold",
        type=threshold,
        default="a+e",
        metavar="a+e|a-e|N",
        help="least significance of a pair that stays",
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="the phrase table, pruned")
    parser.add_argument("--origins", metavar="FILE", help="where the table's pairs come from, of `phrases score`")
    parser.add_argument("--output-origins", metavar="FILE", help="to write: those of the pairs that stay")
    add_resources(parser)


def prune(args: argparse.Namespace) -> dict[str, object]:
    r"""Leave out of a phrase table the pairs that may share their sentences by chance (Johnson et al. 2007).

    As Moses' ``filter-pt -l``: of N sentence pairs count those that hold the source phrase, the target phrase and both,
    aligned or not. The significance of a pair is -ln p of Fisher's exact test, one-sided. A pair whose phrases occur in
    one sentence pair alone has ln N, called alpha: ``a-e``, a little below it, keeps such pairs, ``a+e``, a little
    above, leaves them out. A number is a threshold of its own. What stays, stays as it is: probabilities are not
    estimated again. A reordering table may keep the pairs that went.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt phrases prune --phrase-table try/phrase-table.gz --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --threshold a+e --output try/pruned.gz \
            --origins try/origins.npy --output-origins try/pruned.origins.npy
    """
    from rnnsmt.phrases.significance import prune_table

    return prune_table(
        args.phrase_table,
        args.source,
        args.target,
        args.threshold,
        args.output,
        origins=args.origins,
        output_origins=args.output_origins,
        threads=args.threads,
        memory_mb=args.memory_mb,
    )


def filter_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="texts to be translated")
    parser.add_argument("--phrase-table", required=True, metavar="FILE")
    parser.add_argument("--reordering-table", required=True, metavar="FILE")
    parser.add_argument("--output-dir", required=True, metavar="DIR", help="where both filtered tables go")
    parser.add_argument("--output-lines", metavar="FILE", help="numbers of the kept lines of the phrase table (.npy)")
    parser.add_argument(
        "--max-length", type=positive, default=7, help="words of the longest source phrase in the tables"
    )


def filter(args: argparse.Namespace) -> dict[str, object]:
    r"""Keep of a phrase table and a reordering table what given input texts can use.

    A line stays when its source phrase occurs in the input. Both tables are streamed; the outputs have the tables'
    names. With --output-lines `phrases augment` can add columns to what is left, from scores of the whole table.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt phrases filter --input results/corpus/joined/truecased/dev.en.gz \
            --phrase-table try/phrase-table.gz --reordering-table try/reordering-table.gz \
            --output-dir try/filtered --output-lines try/filtered/lines.npy
    """
    from rnnsmt.phrases.filtering import filter_tables

    return filter_tables(
        args.input, args.phrase_table, args.reordering_table, args.output_dir, args.max_length, args.output_lines
    )


def fill_up_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--phrase-table", required=True, metavar="FILE")
    parser.add_argument("--reordering-table", required=True, metavar="FILE")
    parser.add_argument("--pairs", required=True, metavar="FILE", help="phrase table with more pairs, of `rnn propose`")
    parser.add_argument("--output-dir", required=True, metavar="DIR", help="where both filled tables go")
    parser.add_argument("--threads", type=positive, default=1, help="threads of compression")


def fill_up(args: argparse.Namespace) -> dict[str, object]:
    r"""Add the pairs of another phrase table that a phrase table does not have (fill-up: Bisazza et al. 2011).

    The phrase table gets one more column, the last: e^1 for the pairs that came in and e^0 for its own, whose other
    scores stay what they are to six digits; both tables have the same number of scores. The reordering probabilities of
    a pair that came in are 1/3, as without evidence. All tables are sorted as Moses sorts them; the outputs have the
    tables' names.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt phrases fill-up --phrase-table results/augmented/rnn/network1/filtered/dev/phrase-table.gz \
            --reordering-table \
            results/augmented/rnn/network1/filtered/dev/reordering-table.wbe-msd-bidirectional-fe.gz \
            --pairs try/proposals.gz --output-dir try/filled
    """
    from rnnsmt.phrases.fill_up import fill_up_tables

    return fill_up_tables(args.phrase_table, args.reordering_table, args.pairs, args.output_dir, args.threads)


def augment_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--phrase-table", required=True, metavar="FILE")
    parser.add_argument(
        "--column", nargs="+", action="append", required=True, metavar="FILE", help="scores of the table's lines (.npy)"
    )
    parser.add_argument(
        "--kept-lines",
        metavar="FILE",
        help="the table is what `phrases filter --output-lines` left of another one, which the scores are of",
    )
    parser.add_argument("--output", required=True, metavar="FILE")
    parser.add_argument("--threads", type=positive, default=1, help="threads of compression")


def augment(args: argparse.Namespace) -> dict[str, object]:
    r"""Add columns to a phrase table: probabilities exp(score), from scores with one natural logarithm for every line.

    Moses takes the logarithm of every column; probabilities below 1e-40 become 1e-40. The table is streamed, its other
    fields stay as they are. Repeat --column for several columns; the files of one are parts that follow each other.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt phrases augment --phrase-table results/model/phrase-table.gz --output try/augmented.gz \
            --column results/rnn/network1/scores/1-of-2.npy results/rnn/network1/scores/2-of-2.npy \
            --column results/rnn/shortlist.npy
        rnnsmt phrases augment --phrase-table results/model/filtered/dev/phrase-table.gz --output try/augmented.dev.gz \
            --kept-lines results/model/filtered/dev/lines.npy --column results/rnn/shortlist.npy
    """
    from rnnsmt.phrases.augmentation import augment_table

    return augment_table(args.phrase_table, args.column, args.output, args.threads, args.kept_lines)
