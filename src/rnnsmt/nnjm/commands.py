"""The commands of the neural network joint model."""

import argparse
from typing import TYPE_CHECKING

from rnnsmt.base.fields import add_fields
from rnnsmt.base.io import InputError
from rnnsmt.config.sections import Rnn
from rnnsmt.networks.options import (
    add_description,
    add_device,
    need_torch,
    print_description,
)
from rnnsmt.networks.run_training import add_training, run_training
from rnnsmt.nnjm.settings import PRESETS, JointSettings

if TYPE_CHECKING:
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.feed_forward_training import FeedForwardTask


def describe_options(parser: argparse.ArgumentParser) -> None:
    add_description(parser, PRESETS, target_classes=15_001, source_classes=15_001)


def describe(args: argparse.Namespace) -> dict[str, object]:
    """Print the layer sizes and the number of parameters of a joint model, without building it.

    The training settings of the preset are printed as well. torch is not required.

    Example, in the directory of a run of the demo corpus:

        rnnsmt nnjm describe --preset small
    """
    return print_description(args, PRESETS, "target_classes", "source_classes")


def prepare_options(parser: argparse.ArgumentParser) -> None:
    for name, text in (
        ("source", "source side, one tokenised sentence per line"),
        ("target", "target side"),
        ("alignment", "word alignment in Pharaoh format (i-j)"),
    ):
        parser.add_argument(f"--{name}", nargs="+", required=True, metavar="FILE", help=text)
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}-vocabulary",
            metavar="FILE",
            help=f"{side} shortlist: vocabulary file, for example vocab.{side}.txt written by `rnn prepare`",
        )
    add_fields(parser, Rnn, "vocab_size", default=None)
    parser.add_argument("--output-dir", required=True, metavar="DIR", help="output directory")


def prepare(args: argparse.Namespace) -> dict[str, object]:
    r"""Convert a bitext with its word alignment into memory-mapped arrays of word ids and affiliations.

    Every target word is affiliated with one source word (Devlin et al. 2014): the middle one of the source words to
    which it is linked. A target word without links takes the affiliation of the nearest linked target word. Sentence
    pairs without a link are skipped and counted.

    Example, in the directory of a run of the demo corpus:

        rnnsmt nnjm prepare --source results/corpus/joined/train.en.gz --target results/corpus/joined/train.fr.gz \
            --alignment results/align/model4/aligned.grow-diag-final-and.gz \
            --source-vocabulary results/rnn/pairs/vocab.source.txt \
            --target-vocabulary results/rnn/pairs/vocab.target.txt --output-dir try/examples
    """
    from rnnsmt.networks.data import Vocabulary
    from rnnsmt.nnjm.examples import prepare_examples

    vocabularies = []
    for side, vocabulary_path, paths in (
        ("source", args.source_vocabulary, args.source),
        ("target", args.target_vocabulary, args.target),
    ):
        if vocabulary_path is not None:
            vocabularies.append(Vocabulary.read(vocabulary_path))
        elif args.vocab_size is None:
            raise InputError(f"--{side}-vocabulary or --vocab-size is required")
        else:
            vocabularies.append(Vocabulary.of_texts(paths, args.vocab_size, f"on the {side} side"))
    source, target = vocabularies
    return prepare_examples(args.source, args.target, args.alignment, (source, target), args.output_dir)


def train_options(parser: argparse.ArgumentParser) -> None:
    add_training(parser, "nnjm", "examples", PRESETS)


def train(args: argparse.Namespace) -> dict[str, object]:
    r"""Train the neural network joint model (Devlin et al. 2014) on a word-aligned bitext.

    Input is the directory written by `nnjm prepare`; outputs are the network and its learning curve (JSON). The
    perplexity of held-out sentence pairs is computed after every epoch. Training ends after --epochs epochs, or when
    the perplexity has not improved for --patience epochs; the best parameters are saved.

    Example, in the directory of a run of the demo corpus:

        rnnsmt nnjm train --examples try/examples --preset demo --seed 1 --output-model try/nnjm.safetensors \
            --output-history try/nnjm.json --checkpoint-dir try/nnjm.checkpoint --threads 2
    """

    def make_task(settings: JointSettings, setup: "DeviceSetup") -> "FeedForwardTask":
        from rnnsmt.nnjm.examples import Examples
        from rnnsmt.nnjm.training import nnjm_task

        return nnjm_task(Examples.open(args.examples), settings, args.seed, setup)

    return run_training(args, PRESETS, make_task)


def perplexity_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="FILE", help="model file written by `nnjm train`")
    parser.add_argument(
        "--examples",
        required=True,
        metavar="DIR",
        help="directory written by `nnjm prepare` with the vocabularies of the model",
    )
    parser.add_argument("--cslm", metavar="FILE", help="CSLM with the same target vocabulary, for comparison")
    parser.add_argument("--output", required=True, metavar="JSON", help="output file (JSON)")
    add_device(parser)


def perplexity(args: argparse.Namespace) -> dict[str, object]:
    r"""Compute the perplexity of the target side of a bitext under the joint model, and under a CSLM for comparison.

    Both models predict the same events: every word and ``</s>``; words outside the vocabulary form one class, UNK. The
    softmax is exact. For a self-normalised model, the output also contains the mean and standard deviation of ln Z,
    where Z is the sum of the softmax over all classes.

    Example, in the directory of a run of the demo corpus:

        rnnsmt nnjm perplexity --model try/nnjm.safetensors --examples try/examples \
            --cslm results/cslm/network1/model.safetensors --output try/nnjm.perplexity.json
    """
    need_torch()

    from rnnsmt.base.io import write_json
    from rnnsmt.cslm.text_scores import report_statistics
    from rnnsmt.nnjm.scorer import perplexity_report

    report = perplexity_report(args.model, args.examples, args.cslm, args.device, args.threads)
    write_json(args.output, report)
    return report_statistics(report)
