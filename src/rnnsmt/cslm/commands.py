"""The commands of the continuous-space language model."""

import argparse

from rnnsmt.cslm.settings import PRESETS
from rnnsmt.io import InputError
from rnnsmt.moses.ini import CSLM_UNKNOWN
from rnnsmt.networks.options import (
    add_device,
    add_settings,
    add_training,
    chosen_settings,
    need_torch,
    print_description,
)
from rnnsmt.options import positive
from rnnsmt.stopping import Stop


def add_scoring(parser: argparse.ArgumentParser) -> None:
    """``--model``, ``--normalize``, ``--unknown``, ``--device``, ``--threads``: the arguments of ``NGramScorer``."""
    parser.add_argument("--model", required=True, metavar="FILE", help="what cslm train wrote")
    parser.add_argument(
        "--normalize",
        choices=("auto", "yes", "no"),
        default="auto",
        help="sum over all classes: yes, exact; no, the bare output unit; auto: no for self-normalised models",
    )
    parser.add_argument(
        "--unknown",
        choices=CSLM_UNKNOWN,
        default=CSLM_UNKNOWN[0],
        help="what words outside the shortlist score: the probability of all of them, as in the paper, or a share",
    )
    add_device(parser)


def normalize_of(args: argparse.Namespace) -> bool | None:
    """What ``NGramScorer`` is to be told."""
    return {"auto": None, "yes": True, "no": False}[args.normalize]


def describe_options(parser: argparse.ArgumentParser) -> None:
    add_settings(parser, PRESETS, "paper")
    parser.add_argument(
        "--vocabulary", type=positive, default=15_001, help="classes: id 0 (padding), UNK, the words, </s>"
    )


def describe(args: argparse.Namespace) -> dict[str, object]:
    """Print the sizes, the layers and the number of parameters of a CSLM, without building it.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt cslm describe --preset small
    """
    return print_description(chosen_settings(args, PRESETS), args.vocabulary)


def prepare_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one segment a line")
    shortlist = parser.add_mutually_exclusive_group(required=True)
    shortlist.add_argument("--vocabulary", metavar="FILE", help="vocab.target.txt of rnn prepare")
    shortlist.add_argument(
        "--vocab-size", type=int, metavar="N", help="without one: ids without </s>, N - 2 words, UNK and 0"
    )
    parser.add_argument(
        "--vocabulary-text", nargs="+", metavar="FILE", help="the text whose words are counted, if it is not --input"
    )
    parser.add_argument("--output-dir", required=True, metavar="DIR")


def prepare(args: argparse.Namespace) -> dict[str, object]:
    r"""Turn the text of the language model into ids on disk, with a shortlist of words as vocabulary.

    The shortlist is given (--vocabulary), or it is the most frequent words of the text (--vocab-size), or those of
    another one (--vocabulary-text); with the target side of the bitext it is the RNN's. Words outside it become UNK, as
    one class; no word is left out.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt cslm prepare \
            --input results/corpus/truecased/harbour.fr.gz results/corpus/truecased/gazette.fr.gz \
            --vocab-size 1500 --output-dir try/text
    """
    from rnnsmt.cslm.text import prepare_text
    from rnnsmt.networks.vocabulary import Vocabulary, check_size, count_words

    if args.vocabulary is not None:
        if args.vocabulary_text is not None:
            raise InputError("--vocabulary-text: is for --vocab-size; with --vocabulary nothing is counted")
        vocabulary = Vocabulary.read(args.vocabulary)
    else:
        check_size(args.vocab_size)
        counts = count_words(args.vocabulary_text or args.input, "to learn from")
        vocabulary = Vocabulary.from_counts(counts, args.vocab_size)
    return prepare_text(args.input, vocabulary, args.output_dir)


def train_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text", required=True, metavar="DIR", help="what cslm prepare wrote")
    add_settings(parser, PRESETS, "small")
    add_training(parser)


def train(args: argparse.Namespace) -> dict[str, object]:
    r"""Train the continuous-space language model on text.

    After every epoch the perplexity of the validation n-grams is measured; training ends after --epochs, or when it has
    not become better for --patience epochs, and the best parameters are kept. The state folder holds the last
    checkpoint: a run that is ended at any time goes on from it, and on a CPU ends bit for bit like one that was not. On
    SIGTERM, and shortly before --time-limit, the state is saved and the exit code is 75 (after Ctrl-C 130): run the
    same command again. With --processes, or started by torchrun, several processes share every minibatch: the network
    is that of one process, up to rounding, and to what --dropout, --singletons and --sampled-classes draw.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt cslm train --text try/text --preset demo --self-normalised 0.1 --seed 1 \
            --output-model try/cslm.pt --output-history try/cslm.json --state-dir try/cslm.state --threads 2
    """
    settings = chosen_settings(args, PRESETS)
    need_torch()

    from rnnsmt.networks.processes import started_processes

    with Stop(args.time_limit) as stop, started_processes(args.processes):
        from rnnsmt.cslm.text import Text
        from rnnsmt.cslm.training import CslmTrainer
        from rnnsmt.networks.devices import choose_place

        with choose_place(args.device, 1, settings.precision, join=True) as place:
            trainer = CslmTrainer(Text.open(args.text), settings, args.seed, place, args.threads)
            trainer.fit(args.state_dir, args.save_every, stop)
            return trainer.save(args.output_model, args.output_history)


def perplexity_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--lm", metavar="ARPA", help="the n-gram LM to compare with")
    parser.add_argument("--output", required=True, metavar="JSON")
    parser.add_argument("--model", required=True, metavar="FILE", help="what cslm train wrote")
    add_device(parser)


def perplexity(args: argparse.Namespace) -> dict[str, object]:
    r"""Perplexity of a text under the CSLM, beside that of an n-gram LM, natural logarithms and exact softmax.

    Both models predict the same events: every word and ``</s>``. For both the words outside the CSLM's shortlist are
    one class (for the n-gram LM: the sum over all words that it knows besides the shortlist, and ``<unk>``); the second
    figure leaves these words out of sum and count. The JSON also has the even mixture of the two models, and for models
    that were trained self-normalised how far from 0 the logarithm of the sum over all classes is.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt cslm perplexity --model try/cslm.pt --input results/corpus/joined/truecased/dev.fr.gz \
            --lm results/model/lm.arpa.gz --output try/cslm.perplexity.json
    """
    need_torch()

    from rnnsmt.cslm.perplexity import perplexity_report
    from rnnsmt.io import write_json

    report = perplexity_report(args.model, args.input, args.lm, args.device, args.threads)
    write_json(args.output, report)
    stats = {"sentences": report["sentences"], "words": report["words"], "OOV": report["oov"]}
    for name in ("cslm", "ngram", "mixture"):
        if name in report:
            stats[f"{name} perplexity"] = report[name]["perplexity"]
            stats[f"{name} without OOV"] = report[name]["perplexity_without_oov"]
    return stats


def score_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--output", required=True, metavar="FILE")
    add_scoring(parser)


def score(args: argparse.Namespace) -> dict[str, object]:
    r"""Score a text: ln p of every line, ``</s>`` included, no normalisation by length; one number a line.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt cslm score --model try/cslm.pt --input results/corpus/joined/truecased/dev.fr.gz \
            --output try/dev.scores
    """
    need_torch()

    from rnnsmt.cslm.scoring import NGramScorer, sentence_scores
    from rnnsmt.io import atomic_text, read_lines
    from rnnsmt.progress import track

    scorer = NGramScorer(args.model, args.device, args.threads, normalize_of(args), unknown_score=args.unknown)
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
    r"""Add the CSLM's score to the features of an n-best list in Moses' format: ``CSLM0= x`` behind the others.

    x is ln p of the whole translation, ``</s>`` included. The total score of a line is not changed: its weight is the
    business of `tuning optimise`, and `tuning rerank` takes the best of the lists with it.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt cslm rescore --model results/cslm/network1/model.pt --nbest try/dev.nbest \
            --output try/dev.rescored --unknown class
    """
    need_torch()

    from rnnsmt.cslm.scoring import NGramScorer, add_to_nbest

    scorer = NGramScorer(args.model, args.device, args.threads, normalize_of(args), unknown_score=args.unknown)
    return {"translations": add_to_nbest(scorer, args.nbest, args.output)}
