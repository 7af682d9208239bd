"""Commands that create and filter the phrase and reordering tables, and add score columns."""

import argparse

from rnnsmt.base.io import InputError
from rnnsmt.base.options import add_threads, positive


def add_resources(parser: argparse.ArgumentParser) -> None:
    """Add ``--threads`` and ``--memory-mb``; neither changes the output."""
    add_threads(parser)
    parser.add_argument("--memory-mb", type=positive, default=2000,
        help="approximate memory limit in MB, beyond which disk is used")  # fmt: skip


def _add_aligned_text(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--source", nargs="+", required=True, metavar="FILE", help="source side of the training corpus, tokenised"
    )
    parser.add_argument(
        "--target", nargs="+", required=True, metavar="FILE", help="target side of the training corpus, tokenised"
    )
    parser.add_argument("--alignment", nargs="+", required=True, metavar="FILE",
        help="word alignment in Pharaoh format (i-j), parallel to the text")  # fmt: skip


def lexical_options(parser: argparse.ArgumentParser) -> None:
    _add_aligned_text(parser)
    parser.add_argument("--output-e2f", required=True, metavar="FILE",
        help="output file: lex.e2f, p(source word | target word)")  # fmt: skip
    parser.add_argument("--output-f2e", required=True, metavar="FILE",
        help="output file: lex.f2e, p(target word | source word)")  # fmt: skip


def lexical(args: argparse.Namespace) -> dict[str, object]:
    r"""Compute lexical translation probabilities from a word alignment: Moses' ``lex.e2f`` and ``lex.f2e``.

    The probabilities are relative frequencies of links (Koehn, Och and Marcu 2003, section 4.4). A word without a link
    is counted as linked to NULL, as in step 4 of ``train-model.perl``.

    f stands for a source and e for a target word. A line of ``lex.e2f`` is ``f e p(f|e)``, a line of ``lex.f2e`` is
    ``e f p(e|f)``, with seven decimals. Both files are sorted by f, then e.

    Example, in the directory of a run of the demo corpus:

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
    from rnnsmt.base.fields import add_fields
    from rnnsmt.config.sections import Phrases

    _add_aligned_text(parser)
    add_fields(parser, Phrases, "max_length")
    parser.add_argument("--output", required=True, metavar="FILE",
        help="output file: phrase pairs and counts (Parquet)")  # fmt: skip
    add_resources(parser)


def extract(args: argparse.Namespace) -> dict[str, object]:
    r"""Extract and count the phrase pairs consistent with a word alignment (Koehn, Och and Marcu 2003), as in Moses.

    The output (Parquet) contains every distinct triple of source phrase, target phrase and phrase-internal alignment
    with its count and the counts of its orientations (word-based msd model, previous and next), sorted like the phrase
    table. `phrases score` and `phrases reordering` read it. Words are stored as ids, and the vocabularies are stored in
    the metadata of the file.

    Example, in the directory of a run of the demo corpus:

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
    from rnnsmt.base.fields import add_fields
    from rnnsmt.config.sections import Phrases

    add = parser.add_argument
    add("--extract", required=True, metavar="FILE", help="phrase pairs written by `phrases extract`")
    add("--lex-e2f", required=True, metavar="FILE", help="p(source word | target word) written by `phrases lexical`")
    add("--lex-f2e", required=True, metavar="FILE", help="p(target word | source word) written by `phrases lexical`")
    add("--output", required=True, metavar="FILE", help="output file: phrase table in Moses format")
    add_resources(parser)
    add_fields(parser, Phrases, "smoothing", default="none")


def score(args: argparse.Namespace) -> dict[str, object]:
    r"""Compute the phrase table: p(f|e), lex(f|e), p(e|f) and lex(e|f) of every distinct phrase pair.

    f is the source and e the target side; format and sort order are the same as in Moses. Phrase probabilities are
    relative frequencies, or smoothed by modified Kneser-Ney (Foster et al. 2006) with --smoothing kneser-ney. Lexical
    weights are those of Koehn, Och and Marcu (2003, section 4.4). The alignment written for a pair is its most frequent
    one, with ties broken as in Moses.

    Example, in the directory of a run of the demo corpus:

        rnnsmt phrases score --extract try/extract.parquet --lex-e2f try/lex.e2f --lex-f2e try/lex.f2e \
            --smoothing kneser-ney --output try/phrase-table.gz
    """
    from rnnsmt.phrases.phrase_table import score_phrases

    return score_phrases(
        args.extract,
        args.lex_e2f,
        args.lex_f2e,
        args.output,
        args.threads,
        args.memory_mb,
        args.smoothing,
    )


def reordering_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--extract", required=True, metavar="FILE", help="phrase pairs written by `phrases extract`")
    add("--output", required=True, metavar="FILE", help="output file: reordering table in Moses format")
    add("--smoothing", type=float, default=0.5, help="constant added to every count")
    add_resources(parser)


def reordering(args: argparse.Namespace) -> dict[str, object]:
    """Compute the lexicalised reordering table ``wbe-msd-bidirectional-fe`` (Koehn et al. 2005).

    Format and sort order are the same as in Moses. A phrase pair has six probabilities: monotone, swap and
    discontinuous with respect to the previous phrase, and the same with respect to the next phrase, from counts with
    additive smoothing. If `phrases extract` has read the same text with n alignments, each alignment contributes 1/n to
    the counts, so a duplicate alignment does not change the result.

    Example, in the directory of a run of the demo corpus:

        rnnsmt phrases reordering --extract try/extract.parquet --output try/reordering-table.gz
    """
    from rnnsmt.phrases.phrase_table import write_reordering_table

    return write_reordering_table(args.extract, args.output, args.smoothing, args.threads, args.memory_mb)


def filter_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--input", nargs="+", required=True, metavar="FILE", help="tokenised texts to translate")
    add("--phrase-table", required=True, metavar="FILE", help="phrase table in Moses format")
    add("--reordering-table", required=True, metavar="FILE", help="reordering table in Moses format")
    add("--output-dir", required=True, metavar="DIR", help="output directory: both filtered tables")
    add("--output-lines", metavar="FILE", help="output file: line numbers of the remaining phrase pairs (.npy)")
    add("--max-length", type=positive, default=7, help="maximum number of words of a source phrase in the tables")


def filter(args: argparse.Namespace) -> dict[str, object]:
    r"""Filter a phrase table and a reordering table for the given input texts.

    A line is kept if its source phrase occurs in the input. Both tables are streamed; the output files have the names
    of the input files. With the line numbers of --output-lines, `phrases augment` can add scores of the unfiltered
    table to the filtered table.

    Example, in the directory of a run of the demo corpus:

        rnnsmt phrases filter --input results/corpus/joined/truecased/dev.en.gz \
            --phrase-table try/phrase-table.gz --reordering-table try/reordering-table.gz \
            --output-dir try/filtered --output-lines try/filtered/lines.npy
    """
    from rnnsmt.phrases.filtering import filter_tables

    return filter_tables(
        args.input, args.phrase_table, args.reordering_table, args.output_dir, args.max_length, args.output_lines
    )


def augment_options(parser: argparse.ArgumentParser) -> None:
    table = parser.add_mutually_exclusive_group(required=True)
    table.add_argument("--phrase-table", metavar="FILE", help="phrase table in Moses format")
    table.add_argument("--ini", metavar="FILE",
        help="moses.ini of a model, whose phrase table gets the scores; requires --output-ini")  # fmt: skip
    add = parser.add_argument
    add("--column", nargs="+", action="append", required=True, metavar="FILE",
        help="scores of the lines of the table (.npy), in consecutive shards; may be repeated")  # fmt: skip
    add("--kept-lines", metavar="FILE",
        help="output of `phrases filter --output-lines`; required for a filtered table with scores of the unfiltered "
        "table")  # fmt: skip
    add("--output", required=True, metavar="FILE", help="output file: phrase table with the additional scores")
    add("--output-ini", metavar="FILE", help="output file: moses.ini that refers to this table; requires --ini")
    add_threads(parser)


def augment(args: argparse.Namespace) -> dict[str, object]:
    r"""Add scores to a phrase table.

    A score file contains one natural logarithm per line of the table. The probability exp(score) is added to each line,
    because Moses takes the logarithm of every score; probabilities below 1e-40 are replaced by 1e-40. The table is
    streamed; its other fields are not changed. Every --column adds one score; its files are consecutive shards.

    With --ini, the table is that of a model, for example of one that Moses built. --output-ini is a copy of this
    moses.ini that refers to the new table and has a further weight for every column: 0 for a column of whole numbers,
    which are counts (`rnn shortlist`), 0.2 for any other. All other weights and settings are those of --ini. The paths
    in the copy are absolute, so that Moses can read it in any directory. Tune the weights before you use it.

    Example, in the directory of a run of the demo corpus:

        rnnsmt phrases augment --phrase-table results/model/phrase-table.gz --output try/augmented.gz \
            --column results/rnn/network1/scores/1-of-2.npy results/rnn/network1/scores/2-of-2.npy \
            --column results/rnn/shortlist.npy
        rnnsmt phrases augment --phrase-table results/model/filtered/dev/phrase-table.gz --output try/augmented.dev.gz \
            --kept-lines results/model/filtered/dev/lines.npy --column results/rnn/shortlist.npy
        rnnsmt phrases augment --ini results/model/moses.ini --column try/column.npy --output try/column.gz \
            --output-ini try/column.ini
    """
    from rnnsmt.phrases.augmentation import augment_model, augment_table

    if (args.ini is None) != (args.output_ini is None):
        raise InputError("--ini and --output-ini: must be used together")
    if args.ini is not None:
        return augment_model(args.ini, args.column, args.output, args.output_ini, args.threads, args.kept_lines)
    return augment_table(args.phrase_table, args.column, args.output, args.threads, args.kept_lines)
