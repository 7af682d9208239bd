"""The commands of sequence to sequence learning."""

import argparse

from rnnsmt.io import InputError
from rnnsmt.networks.options import (
    add_device,
    add_settings,
    add_training,
    chosen_settings,
    need_torch,
    print_description,
)
from rnnsmt.options import positive
from rnnsmt.seq2seq.settings import PRESETS
from rnnsmt.stopping import Stop


def _add_ensemble(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", nargs="+", required=True, metavar="FILE", help="what seq2seq train wrote; several are an ensemble"
    )
    add_device(parser)


def describe_options(parser: argparse.ArgumentParser) -> None:
    add_settings(parser, PRESETS, "paper")
    parser.add_argument("--source-classes", type=positive, default=160_000, help="id 0, UNK, words, EOS")
    parser.add_argument("--target-classes", type=positive, default=80_000, help="id 0, UNK, words, EOS")


def describe(args: argparse.Namespace) -> dict[str, object]:
    """Print the sizes, the layers and the number of parameters of a network, without building it.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt seq2seq describe
    """
    return print_description(chosen_settings(args, PRESETS), args.source_classes, args.target_classes)


def prepare_options(parser: argparse.ArgumentParser) -> None:
    for side in ("source", "target"):
        parser.add_argument(f"--{side}", nargs="+", required=True, metavar="FILE", help="tokenised text")
        parser.add_argument(
            f"--{side}-vocab-size",
            type=int,
            required=True,
            metavar="N",
            help="ids without </s>: N - 2 words, UNK and 0",
        )
    parser.add_argument("--max-length", type=positive, default=80, help="words of a sentence, longer ones are left out")
    parser.add_argument("--output-dir", required=True, metavar="DIR")


def prepare(args: argparse.Namespace) -> dict[str, object]:
    r"""Turn a bitext into ids on disk, with the most frequent words of each side as vocabularies.

    Words outside the vocabularies become UNK. Pairs of sentences with an empty side or a long one are left out.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt seq2seq prepare --source results/corpus/joined/train.en.gz --target results/corpus/joined/train.fr.gz \
            --source-vocab-size 1500 --target-vocab-size 1500 --output-dir try/sentences
    """
    from rnnsmt.seq2seq.sentences import prepare_sentences

    sizes = args.source_vocab_size, args.target_vocab_size
    return prepare_sentences(args.source, args.target, args.output_dir, sizes, args.max_length)


def train_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sentences", required=True, metavar="DIR", help="what seq2seq prepare wrote")
    add_settings(parser, PRESETS, "small")
    add_training(parser)


def train(args: argparse.Namespace) -> dict[str, object]:
    r"""Train an LSTM encoder-decoder on sentence pairs.

    The state folder holds the last checkpoint: a run that is ended at any time goes on from it, and on a CPU ends bit
    for bit like one that was not. On SIGTERM, and shortly before --time-limit, the state is saved and the exit code is
    75 (after Ctrl-C 130): run the same command again. Started by torchrun, all processes share every minibatch.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt seq2seq train --sentences try/sentences --preset demo --epochs 1 --seed 1 --output-model try/lstm.pt \
            --output-history try/lstm.json --state-dir try/lstm.state --threads 2
    """
    settings = chosen_settings(args, PRESETS)
    need_torch()

    with Stop(args.time_limit) as stop:
        from rnnsmt.networks.devices import choose_place
        from rnnsmt.seq2seq.sentences import SentencePairs
        from rnnsmt.seq2seq.training import Seq2SeqTrainer

        with choose_place(args.device, 1, settings.precision, join=True) as place:
            trainer = Seq2SeqTrainer(SentencePairs.open(args.sentences), settings, args.seed, place, args.threads)
            trainer.fit(args.state_dir, args.save_every, stop)
            return trainer.save(args.output_model, args.output_history)


def translate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--output", required=True, metavar="FILE")
    parser.add_argument("--beam", type=positive, default=12, help="hypotheses of a sentence")
    parser.add_argument(
        "--unknown",
        choices=("keep", "copy"),
        default="keep",
        help="words outside it: <unk>, or the source's",
    )
    parser.add_argument(
        "--batch", type=positive, default=64, metavar="N", help="sentences that are translated together"
    )
    _add_ensemble(parser)


def translate(args: argparse.Namespace) -> dict[str, object]:
    r"""Translate a text by the network alone, or by several that give the mean of their probabilities.

    Beam search from left to right; a hypothesis that ends leaves the beam, and the best by probability is taken, not
    normalised by length. With --unknown copy the n-th unknown word of a translation becomes the n-th word of the
    source that the network does not know.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt seq2seq translate --model try/lstm.pt --input results/corpus/joined/truecased/dev.en.gz \
            --output try/dev.lstm --beam 4
    """
    need_torch()

    from rnnsmt.io import write_lines
    from rnnsmt.networks.devices import choose_place
    from rnnsmt.networks.vocabulary import UNK, split
    from rnnsmt.progress import track
    from rnnsmt.search.source_text import read_sentences
    from rnnsmt.seq2seq.decoding import beam_search, translation_text
    from rnnsmt.seq2seq.model import load_ensemble

    place = choose_place(args.device, args.threads)
    ensemble = load_ensemble(args.model, place.device)
    sentences = [split(line) for line in read_sentences(args.input)]
    order = sorted(range(len(sentences)), key=lambda i: (len(sentences[i]), i))
    found: list[str] = [""] * len(sentences)
    total, unknown = 0.0, 0
    for begin in track(range(0, len(order), args.batch), "translating", unit="batches"):
        numbers = [i for i in order[begin : begin + args.batch] if sentences[i]]
        sources = [ensemble[0].source.ids(sentences[i], eos=True) for i in numbers]
        for i, hypotheses in zip(numbers, beam_search(ensemble, sources, args.beam) if numbers else [], strict=True):
            best = hypotheses[0]
            found[i] = translation_text(ensemble[0], best.words, sentences[i], args.unknown == "copy")
            total += best.score
            unknown += best.words.count(UNK)
    write_lines(args.output, found)
    return {
        "sentences": len(sentences),
        "networks": len(ensemble),
        "unknown words": unknown,
        "score sum": round(total, 4),
    }


def score_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--target", required=True, metavar="FILE", help="its translation")
    parser.add_argument("--output", required=True, metavar="FILE")
    _add_ensemble(parser)


def score(args: argparse.Namespace) -> dict[str, object]:
    r"""Score translations: ln p of every target line given its source line, EOS included; one number a line.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt seq2seq score --model try/lstm.pt --source results/corpus/joined/truecased/dev.en.gz \
            --target results/corpus/joined/truecased/dev.fr.gz --output try/dev.lstm.scores
    """
    need_torch()

    from rnnsmt.io import atomic_text, read_parallel
    from rnnsmt.networks.devices import choose_place
    from rnnsmt.progress import track
    from rnnsmt.seq2seq.model import load_ensemble
    from rnnsmt.seq2seq.scoring import Scorer, line_scores

    place = choose_place(args.device, args.threads)
    scorer = Scorer(load_ensemble(args.model, place.device))
    number, total = 0, 0.0
    with atomic_text(args.output) as out:
        for value in line_scores(scorer, track(read_parallel(args.source, args.target), "scoring")):
            out.write(f"{value:.6f}\n")
            number += 1
            total += value
    return {"lines": number, "mean score": total / max(number, 1)}


def rescore_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nbest", nargs="+", required=True, metavar="FILE", help="n-best lists in Moses' format")
    parser.add_argument(
        "--source",
        nargs="+",
        required=True,
        metavar="FILE",
        help="the text that the lists are translations of; several: one for every list",
    )
    parser.add_argument("--output", nargs="+", required=True, metavar="FILE", help="one for every list")
    parser.add_argument("--feature", default="LSTM0", metavar="NAME")
    _add_ensemble(parser)


def rescore(args: argparse.Namespace) -> dict[str, object]:
    r"""Add ln p of every translation to the features of n-best lists in Moses' format: ``LSTM0= x`` behind the others.

    Every source is read once, and what translations of a sentence begin with alike is computed once. Lists of the same
    text, as of several tuning runs, are scored together: what is in several of them costs as much as in one. The total
    score of a line is not changed: the feature's weight is the business of `tuning optimise`, or 1 for an even
    average, and `tuning rerank` takes the best of the lists with it.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt seq2seq rescore --model try/lstm.pt --nbest try/dev.nbest \
            --source results/corpus/joined/truecased/dev.en.gz --output try/dev.lstm.nbest
    """
    if not args.feature.isidentifier():
        raise InputError(f"--feature {args.feature}: must be a name like LSTM0")
    if len(args.nbest) != len(args.output):
        raise InputError(f"{len(args.nbest)} --nbest but {len(args.output)} --output files; they go in pairs")
    if len(args.source) not in (1, len(args.nbest)):
        raise InputError(f"{len(args.source)} --source but {len(args.nbest)} --nbest files; give one, or one a list")
    need_torch()

    from rnnsmt.networks.devices import choose_place
    from rnnsmt.search.source_text import read_sentences
    from rnnsmt.seq2seq.model import load_ensemble
    from rnnsmt.seq2seq.scoring import Scorer, add_to_nbest

    place = choose_place(args.device, args.threads)
    scorer = Scorer(load_ensemble(args.model, place.device))
    texts = {path: read_sentences(path) for path in args.source}
    paths = args.source * len(args.nbest) if len(args.source) == 1 else args.source
    return add_to_nbest(scorer, [texts[path] for path in paths], args.nbest, args.output, args.feature)._asdict()
