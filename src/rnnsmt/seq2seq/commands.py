"""The commands of sequence to sequence learning."""

import argparse
from collections import Counter
from functools import lru_cache, partial
from itertools import product
from typing import TYPE_CHECKING

from rnnsmt.base.fields import add_fields
from rnnsmt.base.io import InputError, write_report
from rnnsmt.base.options import positive
from rnnsmt.config.sections import Lstms, Preprocessing
from rnnsmt.networks.options import add_description, add_device, need_torch, print_description
from rnnsmt.networks.run_training import add_training, run_training
from rnnsmt.seq2seq.settings import PRESETS, Seq2SeqSettings

if TYPE_CHECKING:
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.seq2seq.training import Seq2SeqTask


def _add_ensemble(parser: argparse.ArgumentParser, repeated: bool = False) -> None:
    """Add ``--model`` for an ensemble, or for several if it may be repeated, and the device."""
    text = "model file written by `seq2seq train`; several files form an ensemble"
    if repeated:
        text += "; may be repeated"
    action = "append" if repeated else "store"
    parser.add_argument("--model", action=action, nargs="+", required=True, metavar="FILE", help=text)
    add_device(parser)


def describe_options(parser: argparse.ArgumentParser) -> None:
    add_description(parser, PRESETS, source_classes=160_000, target_classes=80_000)


def describe(args: argparse.Namespace) -> dict[str, object]:
    """Print the layer sizes and the number of parameters of a network, without building it.

    The training settings of the preset are printed as well. torch is not required.

    Example, in the directory of a run of the demo corpus:

        rnnsmt seq2seq describe
    """
    return print_description(args, PRESETS, "source_classes", "target_classes")


def prepare_options(parser: argparse.ArgumentParser) -> None:
    for side in ("source", "target"):
        parser.add_argument(f"--{side}", nargs="+", required=True, metavar="FILE", help=f"tokenised {side} text")
        add_fields(parser, Lstms, f"{side}_vocab_size")
    add_fields(parser, Preprocessing, "max_length")
    parser.add_argument("--output-dir", required=True, metavar="DIR", help="output directory")


def prepare(args: argparse.Namespace) -> dict[str, object]:
    r"""Convert a parallel corpus into memory-mapped arrays of ids, with a vocabulary for each side.

    The vocabulary of a side consists of its most frequent words; all other words are mapped to UNK. Sentence pairs with
    an empty side, or a side longer than --max-length, are discarded.

    Example, in the directory of a run of the demo corpus:

        rnnsmt seq2seq prepare --source results/corpus/joined/train.en.gz --target results/corpus/joined/train.fr.gz \
            --source-vocab-size 1500 --target-vocab-size 1500 --output-dir try/sentences
    """
    from rnnsmt.seq2seq.sentences import prepare_sentences

    sizes = args.source_vocab_size, args.target_vocab_size
    return prepare_sentences(args.source, args.target, args.output_dir, sizes, args.max_length)


def train_options(parser: argparse.ArgumentParser) -> None:
    add_training(parser, "seq2seq", "sentences", PRESETS)


def train(args: argparse.Namespace) -> dict[str, object]:
    r"""Train an LSTM encoder-decoder (Sutskever, Vinyals and Le 2014) on sentence pairs.

    Input is the directory written by `seq2seq prepare`; outputs are the network and its learning curve (JSON).

    Example, in the directory of a run of the demo corpus:

        rnnsmt seq2seq train --sentences try/sentences --preset demo --epochs 1 --seed 1 \
            --output-model try/lstm.safetensors --output-history try/lstm.json \
            --checkpoint-dir try/lstm.checkpoint --threads 2
    """

    def make_task(settings: Seq2SeqSettings, setup: "DeviceSetup") -> "Seq2SeqTask":
        from rnnsmt.seq2seq.sentences import SentencePairs
        from rnnsmt.seq2seq.training import Seq2SeqTask

        return Seq2SeqTask(SentencePairs.open(args.sentences), settings, args.seed, setup)

    return run_training(args, PRESETS, make_task)


def translate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", required=True, nargs="+", metavar="FILE", help="tokenised texts, one sentence per line"
    )
    parser.add_argument(
        "--output",
        required=True,
        nargs="+",
        metavar="FILE",
        help="output files, one translation per line; first one file per --input for the first --model, then for the "
        "second --model, and so on",
    )
    parser.add_argument(
        "--report", nargs="+", metavar="FILE", help="output files: statistics, one file for each --output (JSON)"
    )
    add_fields(parser, Lstms, "beam")
    parser.add_argument("--batch", type=positive, default=64, metavar="N", help="batch size in sentences")
    _add_ensemble(parser, repeated=True)


def translate(args: argparse.Namespace) -> dict[str, object]:
    r"""Translate texts with a network, or with an ensemble that averages the probabilities of its networks.

    The method is left-to-right beam search. When a hypothesis is completed, it is removed from the beam and the beam
    size is reduced by one. The output is the hypothesis with the highest probability, not normalised by length; unknown
    words are <unk>. If --model is repeated, every model (or ensemble) translates all texts. If the same model is given
    twice, its translations are computed once.

    Example, in the directory of a run of the demo corpus:

        rnnsmt seq2seq translate --model try/lstm.safetensors --input results/corpus/joined/truecased/dev.en.gz \
            --output try/dev.lstm --beam 4
    """
    need_torch()

    tasks = list(product(map(tuple, args.model), args.input))
    reports = args.report or [None] * len(tasks)
    if not len(tasks) == len(args.output) == len(reports):
        raise InputError(
            f"{len(args.model)} --model and {len(args.input)} --input require {len(tasks)} --output files, and as "
            f"many --report files or none, but there are {len(args.output)} and {len(reports)}"
        )

    from rnnsmt.base.io import write_lines
    from rnnsmt.networks.data import split
    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.search.source_text import read_sentences
    from rnnsmt.seq2seq.decoding import translate_all
    from rnnsmt.seq2seq.model import load_ensemble

    setup = set_up_device(args.device, args.threads)
    texts = {path: [split(line) for line in read_sentences(path)] for path in args.input}
    translations = {}
    for models in dict.fromkeys(map(tuple, args.model)):
        ensemble = load_ensemble(list(models), setup.device)
        for path in args.input:
            translations[models, path] = translate_all(ensemble, texts[path], args.beam, args.batch)
    for task, output, report in zip(tasks, args.output, reports, strict=True):
        lines, stats = translations[task]
        write_lines(output, lines)
        if report is not None:
            write_report(report, stats)
    sums = [stats for _, stats in translations.values()]
    return {name: round(sum(stats[name] for stats in sums), 4) for name in sums[0]}


def score_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="FILE", help="tokenised source text, one sentence per line")
    parser.add_argument("--target", required=True, metavar="FILE", help="tokenised translation of every source line")
    parser.add_argument("--output", required=True, metavar="FILE", help="output file: log probabilities, one per line")
    _add_ensemble(parser)


def score(args: argparse.Namespace) -> dict[str, object]:
    r"""Compute the log probability of every line of a translation, given the source line.

    The output has one natural logarithm per line. It includes EOS and is not normalised by length.

    Example, in the directory of a run of the demo corpus:

        rnnsmt seq2seq score --model try/lstm.safetensors --source results/corpus/joined/truecased/dev.en.gz \
            --target results/corpus/joined/truecased/dev.fr.gz --output try/dev.lstm.scores
    """
    need_torch()

    from rnnsmt.base.io import read_parallel
    from rnnsmt.base.progress import track
    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.networks.scoring import write_scores
    from rnnsmt.seq2seq.model import load_ensemble
    from rnnsmt.seq2seq.translation_scores import Scorer, line_scores

    setup = set_up_device(args.device, args.threads)
    scorer = Scorer(load_ensemble(args.model, setup.device))
    return write_scores(args.output, line_scores(scorer, track(read_parallel(args.source, args.target), "scoring")))


def rescore_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--nbest", required=True, nargs="+", metavar="FILE", help="n-best lists in Moses format")
    add("--source", required=True, nargs="+", metavar="FILE",
        help="tokenised source text: one file for all n-best lists, or one file for each")  # fmt: skip
    add("--output", required=True, nargs="+", metavar="FILE", help="output files, one for each n-best list")
    add("--feature", default="LSTM0", metavar="NAME", help="name of the feature")
    _add_ensemble(parser, repeated=True)


def rescore(args: argparse.Namespace) -> dict[str, object]:
    r"""Add the log probability of every translation to the features of n-best lists in Moses format.

    The feature ``LSTM0= x`` (see --feature) is appended to the features of every hypothesis; x is ln p of the whole
    translation, including EOS. The total score of a hypothesis is not changed: `tuning optimize` determines the weight
    of the feature (weight 1 corresponds to the unweighted mean of the paper), and `tuning rerank` selects the best
    hypotheses with it. `moses add-feature` writes the moses.ini for both commands.

    One --model is used for all n-best lists, or one for each list. Every source sentence and every common prefix of its
    translations is computed once, even across n-best lists.

    Example, in the directory of a run of the demo corpus:

        rnnsmt seq2seq rescore --model try/lstm.safetensors --nbest try/dev.nbest \
            --source results/corpus/joined/truecased/dev.en.gz --output try/dev.lstm.nbest
    """
    if not args.feature.isidentifier():
        raise InputError(f"--feature {args.feature}: must be a name such as LSTM0")
    from rnnsmt.networks.scoring import add_to_nbest, scored_alike

    groups = scored_alike(args.nbest, args.output, model=list(map(tuple, args.model)), source=args.source)
    need_torch()

    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.search.source_text import read_sentences
    from rnnsmt.seq2seq.model import load_ensemble
    from rnnsmt.seq2seq.translation_scores import Scorer, scores_of_block

    setup = set_up_device(args.device, args.threads)

    @lru_cache(1)  # the groups of an ensemble follow one another
    def scorer_of(models: tuple[str, ...]) -> Scorer:
        return Scorer(load_ensemble(list(models), setup.device))

    counts: Counter[str] = Counter()
    for (models, source), nbest, outputs in groups:
        sources = read_sentences(source)
        scores = partial(scores_of_block, scorer_of(models), sources)
        counts.update(add_to_nbest(scores, nbest, outputs, args.feature, len(sources)))
    return dict(counts)
