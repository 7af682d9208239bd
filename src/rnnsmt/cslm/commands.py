"""The commands of the continuous-space language model."""

import argparse
from functools import partial

from rnnsmt.cslm.settings import CHOICES, PRESETS, Settings
from rnnsmt.io import InputError
from rnnsmt.networks import options
from rnnsmt.networks.options import add_device, print_description
from rnnsmt.options import positive


def add_scoring(parser: argparse.ArgumentParser) -> None:
    """``--model``, ``--normalize``, ``--device`` and ``--threads``: the arguments of ``NGramScorer``."""
    parser.add_argument("--model", required=True, metavar="FILE", help="what cslm train wrote")
    parser.add_argument(
        "--normalize",
        choices=("auto", "yes", "no"),
        default="auto",
        help="sum over all classes: yes, exact; no, the bare output unit; auto: no for self-normalised models",
    )
    add_device(parser)


def normalize_of(args: argparse.Namespace) -> bool | None:
    """What ``NGramScorer`` is to be told."""
    return {"auto": None, "yes": True, "no": False}[args.normalize]


def add_settings(parser: argparse.ArgumentParser, default: str) -> None:
    """``--preset``, and an option for every setting of it."""
    parser.add_argument("--preset", choices=tuple(PRESETS), default=default)
    options.add_settings(parser, Settings, CHOICES)


def settings_of(args: argparse.Namespace) -> Settings:
    """The preset with what the command line says instead.

    Raises:
        InputError: a number that makes no sense.
    """
    sizes = ("projection", "hidden_1", "hidden_2")
    found = options.chosen_settings(
        args,
        PRESETS[args.preset],
        above_zero=(*sizes, "batch", "epochs", "patience", "held_out_least", "learning_rate", "clip"),
        not_negative=("spread", "dropout", "singletons", "self_normalised", "held_out", "warmup"),
    )
    if found.order < 2:
        raise InputError(f"--order {found.order}: must be at least 2, a word and one before it")
    if found.dropout >= 1:
        raise InputError(f"--dropout {found.dropout}: must be below 1")
    if found.singletons > 1:
        raise InputError(f"--singletons {found.singletons}: is a share, at most 1")
    if found.held_out > 0.1:
        raise InputError(f"--held-out {found.held_out}: must be at most 0.1, the others are for training")
    return found


def describe_options(parser: argparse.ArgumentParser) -> None:
    add_settings(parser, "paper")
    parser.add_argument(
        "--vocabulary", type=positive, default=15_001, help="classes: id 0 (padding), UNK, the words, </s>"
    )


def describe(args: argparse.Namespace) -> dict[str, object]:
    """Print the sizes, the layers and the number of parameters of a CSLM, without building it."""
    return print_description(settings_of(args), args.vocabulary)


def prepare_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one segment a line")
    shortlist = parser.add_mutually_exclusive_group(required=True)
    shortlist.add_argument("--vocabulary", metavar="FILE", help="vocab.target.txt of rnn prepare")
    shortlist.add_argument(
        "--vocab-size", type=int, metavar="N", help="without one: ids without </s>, N - 2 words, UNK and 0"
    )
    parser.add_argument("--output-dir", required=True, metavar="DIR")


def prepare(args: argparse.Namespace) -> dict[str, object]:
    """Turn the text of the language model into ids on disk, with a shortlist of words as vocabulary.

    The shortlist is the networks' (--vocabulary, of `rnn prepare`) or the most frequent words of the text
    (--vocab-size). Words outside it become UNK, as one class; no word is left out.
    """
    from rnnsmt.cslm.text import prepare
    from rnnsmt.networks.vocabulary import Vocabulary, check_size, count_words

    if args.vocabulary is not None:
        vocabulary = Vocabulary.read(args.vocabulary)
    else:
        check_size(args.vocab_size)
        vocabulary = Vocabulary.from_counts(count_words(args.input, "to learn from"), args.vocab_size)
    return prepare(args.input, vocabulary, args.output_dir)


def train_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text", required=True, metavar="DIR", help="what cslm prepare wrote")
    add_settings(parser, "small")
    options.add_training(parser)


def train(args: argparse.Namespace) -> dict[str, object]:
    """Train the continuous-space language model on text.

    After every epoch the perplexity of the validation n-grams is measured; training ends after --epochs, or when it has
    not become better for --patience epochs, and the best parameters are kept. The state folder holds the last
    checkpoint: a run that is ended at any time goes on from it, and on a CPU ends bit for bit like one that was not. On
    SIGTERM, and shortly before --time-limit, the state is saved and the exit code is 75: run the same command again.
    Started by torchrun, all processes share every minibatch.
    """
    settings = settings_of(args)
    options.need_torch()

    from rnnsmt.cslm.text import Text
    from rnnsmt.cslm.training import train

    return options.train(args, settings.precision, partial(train, Text.open(args.text), settings))


def perplexity_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--lm", metavar="ARPA", help="the n-gram LM to compare with")
    parser.add_argument("--output", required=True, metavar="JSON")
    add_scoring(parser)


def perplexity(args: argparse.Namespace) -> dict[str, object]:
    """Perplexity of a text under the CSLM, beside that of an n-gram LM, natural logarithms and exact softmax.

    Both models predict the same events: every word and ``</s>``. For both the words outside the CSLM's shortlist are
    one class (for the n-gram LM: the sum over all words that it knows besides the shortlist, and ``<unk>``); the second
    figure leaves these words out of sum and count. The JSON also has the even mixture of the two models, and for models
    that were trained self-normalised how far from 0 the logarithm of the sum over all classes is.
    """
    from rnnsmt.networks.options import need_torch

    need_torch()

    from rnnsmt.cslm.perplexity import compare
    from rnnsmt.io import write_json

    report = compare(args.model, args.input, args.lm, args.device, args.threads)
    write_json(args.output, report)
    figures = {"sentences": report["sentences"], "words": report["words"], "OOV": report["oov"]}
    for name in ("cslm", "ngram", "mixture"):
        if name in report:
            figures[f"{name} perplexity"] = report[name]["perplexity"]
            figures[f"{name} without OOV"] = report[name]["perplexity_without_oov"]
    return figures


def score_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--output", required=True, metavar="FILE")
    add_scoring(parser)


def score(args: argparse.Namespace) -> dict[str, object]:
    """Score a text: ln p of every line, ``</s>`` included, no normalisation by length; one number a line."""
    from rnnsmt.networks.options import need_torch

    need_torch()

    from rnnsmt.cslm.scoring import NGramScorer, sentence_scores
    from rnnsmt.io import atomic_text, read_lines
    from rnnsmt.progress import track

    scorer = NGramScorer(args.model, args.device, args.threads, normalize_of(args))
    number, total = 0, 0.0
    with atomic_text(args.output) as out:
        for score in sentence_scores(scorer, track(read_lines(args.input), "scoring")):
            out.write(f"{score:.6f}\n")
            number += 1
            total += score
    return {"lines": number, "mean score": total / max(number, 1)}


def rescore_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nbest", required=True, metavar="FILE")
    parser.add_argument("--output", required=True, metavar="FILE")
    add_scoring(parser)


def rescore(args: argparse.Namespace) -> dict[str, object]:
    """Add the CSLM's score to the features of an n-best list in Moses' format: ``CSLM0= x`` behind the others.

    x is ln p of the whole translation, ``</s>`` included. The total score of a line is not changed: its weight is the
    business of `tuning optimise`, and `tuning rerank` takes the best of the lists with it.
    """
    from rnnsmt.cslm.scoring import FEATURE
    from rnnsmt.networks.options import need_torch

    need_torch()

    from itertools import islice

    from rnnsmt.cslm.scoring import LINES, NGramScorer, nbest_fields, sentence_scores
    from rnnsmt.io import InputError, atomic_text, read_lines
    from rnnsmt.moses.nbest import with_feature
    from rnnsmt.progress import track

    scorer = NGramScorer(args.model, args.device, args.threads, normalize_of(args))
    number = 0
    stream = track(read_lines(args.nbest), "scoring", unit="translations")
    with atomic_text(args.output) as out:
        while block := [nbest_fields(line, args.nbest, number + i) for i, line in enumerate(islice(stream, LINES), 1)]:
            number += len(block)
            scores = sentence_scores(scorer, (fields[1] for fields in block))
            for fields, score in zip(block, scores, strict=True):
                out.write(with_feature(fields, FEATURE, score) + "\n")
        if not number:
            raise InputError(f"{args.nbest}: is empty, an n-best list is needed")
    return {"translations": number}
