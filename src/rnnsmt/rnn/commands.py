"""The commands of the RNN Encoder-Decoder."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rnnsmt.base.fields import add_fields
from rnnsmt.base.io import InputError, write_lines
from rnnsmt.base.options import bounds_of_shard, k_of_n, positive
from rnnsmt.config.sections import Rnn
from rnnsmt.networks.options import add_description, add_device, need_torch, print_description
from rnnsmt.networks.run_training import add_training, run_training
from rnnsmt.rnn.settings import PRESETS, RnnSettings

if TYPE_CHECKING:
    from rnnsmt.networks.data import Vocabulary
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.rnn.model import RNNEncoderDecoder
    from rnnsmt.rnn.training import RnnTask


def describe_options(parser: argparse.ArgumentParser) -> None:
    add_description(parser, PRESETS, source_classes=15_001, target_classes=15_001)


def describe(args: argparse.Namespace) -> dict[str, object]:
    """Print the layer sizes and the number of parameters of a network, without building it.

    The training settings of the preset are printed as well. torch is not required.

    Example, in the directory of a run of the demo corpus:

        rnnsmt rnn describe --preset paper
    """
    return print_description(args, PRESETS, "source_classes", "target_classes")


def prepare_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--phrase-table", required=True, metavar="FILE", help="phrase table in Moses format")
    parser.add_argument(
        "--source", nargs="+", required=True, metavar="FILE", help="source side of the parallel corpus, tokenised"
    )
    parser.add_argument(
        "--target", nargs="+", required=True, metavar="FILE", help="target side of the parallel corpus, tokenised"
    )
    add_fields(parser, Rnn, "vocab_size")
    parser.add_argument(
        "--max-length", type=positive, default=50, help="maximum phrase length in words; longer phrases are an error"
    )
    parser.add_argument("--output-dir", required=True, metavar="DIR", help="output directory")


def prepare(args: argparse.Namespace) -> dict[str, object]:
    r"""Convert a phrase table into memory-mapped arrays of word ids, with the vocabularies of the training corpus.

    The pairs are in phrase table order; the counts of the table are ignored. The vocabulary of a side consists of the
    most frequent words of that side of the corpus; all other words are mapped to UNK.

    Example, in the directory of a run of the demo corpus:

        rnnsmt rnn prepare --phrase-table results/model/phrase-table.gz --vocab-size 1500 \
            --source results/corpus/joined/train.en.gz --target results/corpus/joined/train.fr.gz \
            --output-dir try/pairs
    """
    from rnnsmt.rnn.pairs import prepare_pairs

    return prepare_pairs(
        args.phrase_table,
        args.source,
        args.target,
        args.output_dir,
        size=args.vocab_size,
        max_length=args.max_length,
    )


def train_options(parser: argparse.ArgumentParser) -> None:
    add_training(parser, "rnn", "pairs", PRESETS)


def train(args: argparse.Namespace) -> dict[str, object]:
    r"""Train the RNN Encoder-Decoder (Cho et al. 2014) on phrase pairs.

    Input is the directory written by `rnn prepare`; outputs are the network and its learning curve (JSON).

    Example, in the directory of a run of the demo corpus:

        rnnsmt rnn train --pairs try/pairs --preset demo --epochs 2 --seed 1 --output-model try/rnn.safetensors \
            --output-history try/rnn.json --checkpoint-dir try/rnn.checkpoint --threads 2
    """

    def make_task(settings: RnnSettings, setup: "DeviceSetup") -> "RnnTask":
        from rnnsmt.rnn.pairs import Pairs
        from rnnsmt.rnn.training import RnnTask

        return RnnTask(Pairs.open(args.pairs), settings, args.seed, setup)

    return run_training(args, PRESETS, make_task)


def score_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pairs", required=True, metavar="DIR", help="directory written by `rnn prepare`")
    parser.add_argument("--model", required=True, metavar="FILE", help="model file written by `rnn train`")
    parser.add_argument("--output", required=True, metavar="FILE", help="output file: scores (.npy)")
    parser.add_argument("--shard", type=k_of_n, default="1/1", metavar="K/N", help="score only shard K of N")
    parser.add_argument(
        "--lines",
        metavar="FILE",
        help="score only these lines of the phrase table: output of `phrases filter --output-lines`",
    )
    add_device(parser)


def score(args: argparse.Namespace) -> dict[str, object]:
    """Compute log p(target | source) of all phrase pairs with the network.

    The score is a natural logarithm; it includes EOS and is not normalised by length. The output is a float32 array
    (.npy) with one score per line of the phrase table, in the order of the table.

    --shard K/N scores the K-th of N consecutive shards of nearly equal size, for parallel jobs. Scores do not depend on
    the sharding: each differs by less than 1e-4 from the score of the pair computed alone. Matrix products are computed
    in full float32 precision.

    With --lines, the output has one score for each of these lines, and the shards are shards of these lines. `phrases
    augment` adds them to the filtered table, without --kept-lines.

    Example, in the directory of a run of the demo corpus:

        rnnsmt rnn score --pairs try/pairs --model try/rnn.safetensors --output try/scores.npy --threads 2
    """
    need_torch()

    import numpy as np

    from rnnsmt.base.arrays import growing_array
    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.rnn.model import load_model_of
    from rnnsmt.rnn.pairs import Pairs
    from rnnsmt.rnn.phrase_scores import lines_of, score_batches

    pairs, setup = Pairs.open(args.pairs), set_up_device(args.device, 1)
    if args.lines is not None:
        pairs = pairs.at(lines_of(args.lines, pairs))
    model = load_model_of(pairs, args.model, setup)
    bounds = bounds_of_shard(args.shard, len(pairs))
    total = 0.0
    with growing_array(args.output, np.float32) as out:
        for scores in score_batches(model, pairs, *bounds, setup.device, args.threads):
            out.append(scores)
            total += float(scores.sum(dtype=np.float64))
    return {"pairs": out.length, "mean score": total / max(out.length, 1)}


def shortlist_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pairs", required=True, metavar="DIR", help="directory written by `rnn prepare`")
    parser.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help="output file: number of words outside the shortlist for every phrase pair (.npy)",
    )


def shortlist(args: argparse.Namespace) -> dict[str, object]:
    """Count the target words of every phrase pair that are not in the shortlist, the word penalty (WP) of the paper.

    This is not the WordPenalty of Moses, which counts all words. The output is an array (.npy) with one count n per
    line of the phrase table, in the order of the table. `phrases augment` adds the score e^n to the table. The decoder
    takes the logarithm, so the feature value of a translation is its number of words outside the shortlist. No trained
    network is required, only the directory written by `rnn prepare`.

    Source words that are not in the phrase table are copied to the output by the decoder and are not counted. Their
    number is the same in every translation of a sentence, so counting them would not change any ranking.

    Example, in the directory of a run of the demo corpus:

        rnnsmt rnn shortlist --pairs try/pairs --output try/shortlist.npy
    """
    import numpy as np

    from rnnsmt.base.arrays import growing_array
    from rnnsmt.base.progress import say
    from rnnsmt.rnn.pairs import Pairs, words_outside

    pairs = Pairs.open(args.pairs)
    words, touched = 0, 0
    with growing_array(args.output, np.float32) as out:
        for counts in words_outside(pairs.sides[1]):
            out.append(counts)
            words += int(counts.sum())
            touched += int(np.count_nonzero(counts))
    if not words:
        say(
            "all target words of the phrase table are in the shortlist, so that the feature is 0 for all entries and "
            "has no effect"
        )
    outside = {"pairs with words outside the shortlist": touched, "words outside the shortlist": words}
    return {"pairs": out.length, **outside}


def _network_and_vocabularies(args: argparse.Namespace) -> "tuple[RNNEncoderDecoder, Sequence[Vocabulary]]":
    """Load the network of the arguments of ``add_phrase_options`` and its source and target vocabulary."""
    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.rnn.model import load_model_of
    from rnnsmt.rnn.pairs import Pairs

    pairs, setup = Pairs.open(args.pairs), set_up_device(args.device, args.threads)
    return load_model_of(pairs, args.model, setup), pairs.vocabularies


def add_phrase_options(parser: argparse.ArgumentParser) -> None:
    """Add the options shared by ``rnn sample`` and ``rnn translate``: network, vocabularies, input and output."""
    parser.add_argument("--model", required=True, metavar="FILE", help="model file written by `rnn train`")
    parser.add_argument(
        "--pairs", required=True, metavar="DIR", help="directory written by `rnn prepare`, for its vocabularies"
    )
    parser.add_argument("--input", required=True, metavar="FILE", help="source phrases, tokenised, one per line")
    parser.add_argument("--output", required=True, metavar="FILE", help="output file: target phrases")
    parser.add_argument(
        "--max-length", type=positive, default=30, metavar="N", help="maximum length of a target phrase in words"
    )
    add_device(parser)


def sample_options(parser: argparse.ArgumentParser) -> None:
    add_phrase_options(parser)
    parser.add_argument("--draws", type=positive, default=50, metavar="N", help="number of samples per source phrase")
    parser.add_argument(
        "--top", type=positive, default=5, metavar="N", help="maximum number of distinct samples to write per phrase"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed")


def sample(args: argparse.Namespace) -> dict[str, object]:
    r"""Sample targets of source phrases from the network, word by word (Table 3 of the paper).

    --draws targets are sampled for every source phrase; samples that exceed --max-length are discarded. The distinct
    targets of a phrase are counted and sorted by log p(target | source). The --top best targets are written, one per
    line: ``0-based line number ||| target ||| log p ||| number of samples``.

    Example, in the directory of a run of the demo corpus:

        rnnsmt rnn sample --model try/rnn.safetensors --pairs try/pairs --input try/phrases --output try/samples \
            --draws 50 --top 5
    """
    need_torch()

    from rnnsmt.rnn.generation import read_phrases, sample_targets

    model, (source, target) = _network_and_vocabularies(args)
    sources = read_phrases(args.input, source)
    samples = sample_targets(model, sources, args.draws, args.seed, args.max_length)
    lines = [
        f"{number} ||| {target.text(sampled.words)} ||| {sampled.score:.6f} ||| {sampled.times}"
        for number, targets in enumerate(samples)
        for sampled in targets[: args.top]
    ]
    write_lines(args.output, lines)
    drawn = sum(sampled.times for targets in samples for sampled in targets)
    return {
        "phrases": len(sources),
        "draws": len(sources) * args.draws,
        "distinct samples": sum(map(len, samples)),
        f"samples discarded, longer than {args.max_length} words": len(sources) * args.draws - drawn,
    }


def translate_options(parser: argparse.ArgumentParser) -> None:
    add_phrase_options(parser)
    parser.add_argument(
        "--beam", type=positive, default=10, metavar="N", help="beam size: number of partial hypotheses per phrase"
    )
    parser.add_argument(
        "--nbest",
        type=int,
        metavar="N",
        help="write n-best lists of N targets per phrase, at most the beam size (default: write the best target only)",
    )


def translate(args: argparse.Namespace) -> dict[str, object]:
    r"""Translate phrases with the network, by beam search for the target with the highest log p(target | source).

    The output has one target per line. With --nbest N, it has the N best targets of every phrase instead, one per line:
    ``0-based line number ||| target ||| log p``.

    Example, in the directory of a run of the demo corpus:

        rnnsmt rnn translate --model try/rnn.safetensors --pairs try/pairs --input try/phrases \
            --output try/translations --nbest 5
    """
    nbest = 1 if args.nbest is None else args.nbest
    if not 1 <= nbest <= args.beam:
        raise InputError(f"--nbest {nbest}: must be an integer from 1 to the beam size, {args.beam}")

    need_torch()

    from rnnsmt.rnn.generation import beam_search, read_phrases

    model, (source, target) = _network_and_vocabularies(args)
    sources = read_phrases(args.input, source)
    translations = beam_search(model, sources, args.beam, args.max_length, nbest)
    if args.nbest is None:
        write_lines(args.output, [target.text(targets[0].words) for targets in translations])
    else:
        write_lines(
            args.output,
            [
                f"{number} ||| {target.text(hypothesis.words)} ||| {hypothesis.score:.6f}"
                for number, targets in enumerate(translations)
                for hypothesis in targets
            ],
        )
    return {
        "phrases": len(sources),
        "mean log p": sum(targets[0].score for targets in translations) / len(translations),
    }
