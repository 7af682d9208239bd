"""Commands of the continuous-space language model."""

import argparse
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from rnnsmt.base.fields import add_fields
from rnnsmt.base.io import InputError
from rnnsmt.config.sections import Cslm, Rnn
from rnnsmt.cslm.settings import PRESETS, CslmSettings
from rnnsmt.networks.options import (
    add_description,
    add_device,
    need_torch,
    print_description,
)
from rnnsmt.networks.run_training import add_training, run_training

if TYPE_CHECKING:
    from rnnsmt.cslm.ngram_scorer import NGramScorer
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.feed_forward_training import FeedForwardTask


def describe_options(parser: argparse.ArgumentParser) -> None:
    add_description(parser, PRESETS, classes=15_001)


def describe(args: argparse.Namespace) -> dict[str, object]:
    """Print the layer sizes and the number of parameters of a CSLM, without building it.

    The training settings of the preset are printed as well. torch is not required.

    Example, in the directory of a run of the demo corpus:

        rnnsmt cslm describe --preset small
    """
    return print_description(args, PRESETS, "classes")


def prepare_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one sentence per line"
    )
    shortlist = parser.add_mutually_exclusive_group(required=True)
    shortlist.add_argument(
        "--vocabulary",
        metavar="FILE",
        help="vocabulary file with the shortlist, for example vocab.target.txt written by `rnn prepare`",
    )
    add_fields(shortlist, Rnn, "vocab_size", default=None)
    parser.add_argument(
        "--vocabulary-text",
        nargs="+",
        metavar="FILE",
        help="text whose word counts determine the shortlist for --vocab-size (default: --input)",
    )
    parser.add_argument("--output-dir", required=True, metavar="DIR", help="output directory")


def prepare(args: argparse.Namespace) -> dict[str, object]:
    r"""Convert the training text of the language model into memory-mapped arrays of word ids.

    The vocabulary is a shortlist: the words of a file (--vocabulary), or the most frequent words (--vocab-size) of the
    input or of another text (--vocabulary-text). All words outside the shortlist are mapped to one class, UNK. Lines
    without words are skipped.

    Example, in the directory of a run of the demo corpus:

        rnnsmt cslm prepare \
            --input results/corpus/truecased/harbour.fr.gz results/corpus/truecased/gazette.fr.gz \
            --vocab-size 1500 --output-dir try/text
    """
    from rnnsmt.cslm.text import prepare_text
    from rnnsmt.networks.data import Vocabulary

    if args.vocabulary is not None:
        if args.vocabulary_text is not None:
            raise InputError("--vocabulary-text: requires --vocab-size and cannot be combined with --vocabulary")
        vocabulary = Vocabulary.read(args.vocabulary)
    else:
        vocabulary = Vocabulary.of_texts(args.vocabulary_text or args.input, args.vocab_size, "to learn from")
    return prepare_text(args.input, vocabulary, args.output_dir)


def train_options(parser: argparse.ArgumentParser) -> None:
    add_training(parser, "cslm", "text", PRESETS)


def train(args: argparse.Namespace) -> dict[str, object]:
    r"""Train the continuous-space language model (Schwenk 2007) on text.

    Input is the directory written by `cslm prepare`; outputs are the network and its learning curve (JSON). The
    perplexity of the validation n-grams is computed after every epoch. Training ends after --epochs epochs, or when the
    perplexity has not improved for --patience epochs; the best parameters are saved.

    Example, in the directory of a run of the demo corpus:

        rnnsmt cslm train --text try/text --preset demo --self-normalised 0.1 --seed 1 \
            --output-model try/cslm.safetensors --output-history try/cslm.json --checkpoint-dir try/cslm.checkpoint \
            --threads 2
    """

    def make_task(settings: CslmSettings, setup: "DeviceSetup") -> "FeedForwardTask":
        from rnnsmt.cslm.model import cslm_task
        from rnnsmt.cslm.text import Text

        return cslm_task(Text.open(args.text), settings, args.seed, setup)

    return run_training(args, PRESETS, make_task)


def perplexity_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one sentence per line"
    )
    parser.add_argument("--lm", metavar="ARPA", help="n-gram language model for comparison")
    parser.add_argument("--output", required=True, metavar="JSON", help="output file (JSON)")
    parser.add_argument("--model", required=True, metavar="FILE", help="model file written by `cslm train`")
    add_device(parser)


def perplexity(args: argparse.Namespace) -> dict[str, object]:
    r"""Compute the perplexity of a text under the CSLM, and under an n-gram model for comparison.

    Both models predict the same events: every word and ``</s>``. Words outside the shortlist of the CSLM form one class
    in both models; the n-gram probability of this class is the sum over ``<unk>`` and all words of the n-gram model
    that are not in the shortlist. A second perplexity excludes these words. The softmax of the CSLM is exact;
    logarithms are natural.

    The output (JSON) also contains the perplexity of a mixture of both models with equal weights. For a self-normalised
    CSLM, it contains the mean and standard deviation of ln Z, where Z is the sum of the softmax over all classes.

    Example, in the directory of a run of the demo corpus:

        rnnsmt cslm perplexity --model try/cslm.safetensors --input results/corpus/joined/truecased/dev.fr.gz \
            --lm results/model/lm.arpa.gz --output try/cslm.perplexity.json
    """
    need_torch()

    from rnnsmt.base.io import write_json
    from rnnsmt.cslm.text_scores import perplexity_report, report_statistics

    report = perplexity_report(args.model, args.input, args.lm, args.device, args.threads)
    write_json(args.output, report)
    return report_statistics(report)


def _add_scoring(parser: argparse.ArgumentParser) -> None:
    """Add ``--normalize``, ``--unknown``, ``--device``, ``--threads``: arguments of ``NGramScorer``."""
    parser.add_argument(
        "--normalize",
        choices=("auto", "yes", "no"),
        default="auto",
        help="softmax normalisation; yes: exact sum over all classes; no: unnormalised logit; auto: no for "
        "self-normalised models, else yes",
    )
    add_fields(parser, Cslm, "unknown", default="class")
    add_device(parser)


def _scorer_of(model: str, args: argparse.Namespace) -> "NGramScorer":
    """Read a model for scoring with the options of ``_add_scoring``."""
    from rnnsmt.cslm.ngram_scorer import NGramScorer

    normalize = {"auto": None, "yes": True, "no": False}[args.normalize]
    return NGramScorer(model, args.device, args.threads, normalize, unknown_score=args.unknown)


def score_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", required=True, metavar="FILE", help="tokenised text, one sentence per line")
    parser.add_argument("--output", required=True, metavar="FILE", help="output file: log probabilities, one per line")
    parser.add_argument("--model", required=True, metavar="FILE", help="model file written by `cslm train`")
    _add_scoring(parser)


def score(args: argparse.Namespace) -> dict[str, object]:
    r"""Compute the log probability of every line of a text under the CSLM.

    The output has one natural logarithm per line. It includes ``</s>`` and is not normalised by length.

    Example, in the directory of a run of the demo corpus:

        rnnsmt cslm score --model try/cslm.safetensors --input results/corpus/joined/truecased/dev.fr.gz \
            --output try/dev.scores
    """
    need_torch()

    from rnnsmt.base.io import read_lines
    from rnnsmt.base.progress import track
    from rnnsmt.cslm.text_scores import sentence_scores
    from rnnsmt.networks.scoring import write_scores

    scorer = _scorer_of(args.model, args)
    return write_scores(args.output, sentence_scores(scorer, track(read_lines(args.input), "scoring")))


def rescore_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", required=True, action="append", metavar="FILE",
        help="model file written by `cslm train`; one model for all n-best lists, or one for each list")  # fmt: skip
    add("--nbest", required=True, nargs="+", metavar="FILE", help="n-best lists in Moses format")
    add("--output", required=True, nargs="+", metavar="FILE", help="output files, one for each n-best list")
    _add_scoring(parser)


def rescore(args: argparse.Namespace) -> dict[str, object]:
    r"""Add the score of the CSLM to the features of n-best lists in Moses format.

    The feature ``CSLM0= x`` is appended to the features of every hypothesis; x is ln p of the whole translation,
    including ``</s>``. The total score of a hypothesis is not changed: `moses add-feature` writes the moses.ini with
    the feature, `tuning optimize` determines its weight, and `tuning rerank` selects the best hypotheses with it. The
    lists of one model are read together, and a translation that several of them have is scored once.

    Example, in the directory of a run of the demo corpus:

        rnnsmt cslm rescore --model results/cslm/network1/model.safetensors --nbest try/dev.nbest \
            --output try/dev.rescored --unknown class
    """
    from rnnsmt.networks.scoring import add_to_nbest, scored_alike

    groups = scored_alike(args.nbest, args.output, model=args.model)
    need_torch()

    from rnnsmt.cslm.text_scores import scores_of_block

    counts: Counter[str] = Counter()
    for (model,), nbest, outputs in groups:
        scores = partial(scores_of_block, _scorer_of(model, args))
        counts.update(add_to_nbest(scores, nbest, outputs, "CSLM0"))
    return dict(counts)
