"""Turn the text of the language model into ids on disk, with a shortlist of words as vocabulary.

The shortlist is the networks' (--vocabulary, of `rnn prepare`) or the most frequent words of the text (--vocab-size).
Words outside it become UNK, as one class; no word is left out.
"""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one segment a line")
    shortlist = parser.add_mutually_exclusive_group(required=True)
    shortlist.add_argument("--vocabulary", metavar="FILE", help="vocab.target.txt of rnn prepare")
    shortlist.add_argument(
        "--vocab-size", type=int, metavar="N", help="without one: ids without </s>, N - 2 words, UNK and 0"
    )
    parser.add_argument("--output-dir", required=True, metavar="DIR")


def run(args: argparse.Namespace) -> dict[str, object]:
    from rnnsmt.cslm.text import prepare
    from rnnsmt.networks.vocabulary import Vocabulary, check_size, count_words

    if args.vocabulary is not None:
        vocabulary = Vocabulary.read(args.vocabulary)
    else:
        check_size(args.vocab_size)
        vocabulary = Vocabulary.from_counts(count_words(args.input, "to learn from"), args.vocab_size)
    return prepare(args.input, vocabulary, args.output_dir)
