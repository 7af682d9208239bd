"""The commands of sequence to sequence learning."""

import argparse
from itertools import groupby, product

from rnnsmt.io import InputError, write_json
from rnnsmt.networks.options import (
    add_device,
    add_settings,
    add_training,
    chosen_settings,
    need_torch,
    print_description,
)
from rnnsmt.options import positive
from rnnsmt.seq2seq.settings import PRESETS, SUBWORDS
from rnnsmt.stopping import Stop


def _add_ensembles(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        action="append",
        nargs="+",
        required=True,
        metavar="FILE",
        help="what seq2seq train wrote; several are an ensemble; may be repeated",
    )
    add_device(parser)


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
            help="ids without </s>: N - 2 words or subwords, UNK and 0",
        )
    parser.add_argument(
        "--subwords",
        choices=SUBWORDS,
        default="none",
        help="learn the units of each side with sentencepiece: bpe or unigram; none: words, as in the paper",
    )
    parser.add_argument("--max-length", type=positive, default=80, help="words of a sentence, longer ones are left out")
    parser.add_argument("--output-dir", required=True, metavar="DIR")


def prepare(args: argparse.Namespace) -> dict[str, object]:
    r"""Turn a bitext into ids on disk, with the most frequent words of each side as vocabularies.

    Words outside the vocabularies become UNK. Pairs of sentences with an empty side or a long one are left out. With
    --subwords the units are pieces of words, so that hardly anything is unknown. The models of sentencepiece that take
    words apart lie in the folder, and then in the file of the network: all other commands read and write tokenised
    text.

    Examples, in the folder of a run of the embedded corpus:

        rnnsmt seq2seq prepare --source results/corpus/joined/train.en.gz --target results/corpus/joined/train.fr.gz \
            --source-vocab-size 1500 --target-vocab-size 1500 --output-dir try/sentences
        rnnsmt seq2seq prepare --source results/corpus/joined/train.en.gz --target results/corpus/joined/train.fr.gz \
            --source-vocab-size 1000 --target-vocab-size 1000 --subwords bpe --output-dir try/subwords
    """
    from rnnsmt.seq2seq.sentences import prepare_sentences

    sizes = args.source_vocab_size, args.target_vocab_size
    return prepare_sentences(args.source, args.target, args.output_dir, sizes, args.max_length, args.subwords)


def train_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sentences", required=True, metavar="DIR", help="what seq2seq prepare wrote")
    add_settings(parser, PRESETS, "small")
    add_training(parser)


def train(args: argparse.Namespace) -> dict[str, object]:
    r"""Train an LSTM encoder-decoder on sentence pairs.

    The state folder holds the last checkpoint: a run that is ended at any time goes on from it, and on a CPU ends bit
    for bit like one that was not. On SIGTERM, and shortly before --time-limit, the state is saved and the exit code is
    75 (after Ctrl-C 130): run the same command again. With --processes, or started by torchrun, several processes share
    every minibatch: the network is that of one process, up to rounding, and to what --dropout and --sampled-classes
    draw.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt seq2seq train --sentences try/sentences --preset demo --epochs 1 --seed 1 --output-model try/lstm.pt \
            --output-history try/lstm.json --state-dir try/lstm.state --threads 2
    """
    settings = chosen_settings(args, PRESETS)
    need_torch()

    from rnnsmt.networks.processes import started_processes

    with Stop(args.time_limit) as stop, started_processes(args.processes):
        from rnnsmt.networks.devices import choose_place
        from rnnsmt.seq2seq.sentences import SentencePairs
        from rnnsmt.seq2seq.training import Seq2SeqTrainer

        with choose_place(args.device, 1, settings.precision, join=True) as place:
            trainer = Seq2SeqTrainer(SentencePairs.open(args.sentences), settings, args.seed, place, args.threads)
            trainer.fit(args.state_dir, args.save_every, stop)
            return trainer.save(args.output_model, args.output_history)


def translate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", required=True, nargs="+", metavar="FILE", help="tokenised texts, one segment a line")
    parser.add_argument(
        "--output",
        required=True,
        nargs="+",
        metavar="FILE",
        help="their translations; of several --model in their order",
    )
    parser.add_argument("--report", nargs="+", metavar="FILE", help="figures of every output, as JSON")
    parser.add_argument("--beam", type=positive, default=12, help="hypotheses of a sentence")
    parser.add_argument(
        "--unknown",
        choices=("keep", "copy", "lexicon"),
        default="keep",
        help="words outside it: <unk>, the source's, or what --lexicon says",
    )
    parser.add_argument("--lexicon", metavar="FILE", help="p(target | source) of words: lex.f2e of phrases lexical")
    parser.add_argument(
        "--batch", type=positive, default=64, metavar="N", help="sentences that are translated together"
    )
    _add_ensembles(parser)


def translate(args: argparse.Namespace) -> dict[str, object]:
    r"""Translate texts by the network alone, or by several that give the mean of their probabilities.

    Beam search from left to right; a hypothesis that ends leaves the beam, and the best by probability is taken, not
    normalised by length. --model may be given several times, for the runs of a table: all texts are translated by each;
    the same networks translate them once.

    With --unknown copy the n-th unknown word of a translation becomes the n-th word of the source that the network does
    not know. With --unknown lexicon it becomes the best translation, by the table of a word alignment, of a word of the
    source that the known words of the translation do not translate: first come those that the network does not know,
    then those whose best translation it does not know. Words that the table does not have are copied.

    Examples, in the folder of a run of the embedded corpus:

        rnnsmt seq2seq translate --model try/lstm.pt --input results/corpus/joined/truecased/dev.en.gz \
            --output try/dev.lstm --beam 4
        rnnsmt seq2seq translate --model try/lstm.pt --input results/corpus/joined/truecased/dev.en.gz \
            --output try/dev.filled --beam 4 --unknown lexicon --lexicon results/model/lex.f2e
    """
    if (args.unknown == "lexicon") != (args.lexicon is not None):
        raise InputError("--lexicon and --unknown lexicon go together; give both or neither")
    need_torch()

    tasks = list(product(map(tuple, args.model), args.input))
    reports = args.report or [None] * len(tasks)
    if not len(tasks) == len(args.output) == len(reports):
        raise InputError(
            f"{len(args.model)} --model and {len(args.input)} --input need {len(tasks)} --output and as many --report, "
            f"if any, but there are {len(args.output)} and {len(reports)}"
        )

    from rnnsmt.io import write_lines
    from rnnsmt.networks.devices import choose_place
    from rnnsmt.networks.vocabulary import split
    from rnnsmt.search.source_text import read_sentences
    from rnnsmt.seq2seq.decoding import translate_all
    from rnnsmt.seq2seq.model import load_ensemble
    from rnnsmt.seq2seq.unknown import Fill, LexicalTranslations, copy, keep

    place = choose_place(args.device, args.threads)
    texts = {path: [split(line) for line in read_sentences(path)] for path in args.input}
    fill: Fill = copy if args.unknown == "copy" else keep
    if args.lexicon is not None:
        fill = LexicalTranslations.read(
            args.lexicon, {word for text in texts.values() for words in text for word in words}
        )
    found = {}
    for models in dict.fromkeys(map(tuple, args.model)):
        ensemble = load_ensemble(list(models), place.device)
        for path in args.input:
            found[models, path] = translate_all(ensemble, texts[path], args.beam, args.batch, fill)
    for task, output, report in zip(tasks, args.output, reports, strict=True):
        lines, stats = found[task]
        write_lines(output, lines)
        if report is not None:
            write_json(report, stats)
    sums = [stats for _, stats in found.values()]
    return {name: round(sum(stats[name] for stats in sums), 4) for name in sums[0]}


def score_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--target", required=True, metavar="FILE", help="its translation")
    parser.add_argument("--output", required=True, metavar="FILE")
    _add_ensemble(parser)


def score(args: argparse.Namespace) -> dict[str, object]:
    r"""Score translations: ln p of every target line given its source line, EOS included; one number a line.

    Of subwords it is that of the pieces that sentencepiece takes the line apart into.

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
    add = parser.add_argument
    add("--nbest", required=True, nargs="+", metavar="FILE", help="n-best lists in Moses' format")
    add("--source", required=True, nargs="+", metavar="FILE",
        help="the text that the lists are translations of; one, or one for each of them")  # fmt: skip
    add("--output", required=True, nargs="+", metavar="FILE", help="as many as lists")
    add("--feature", default="LSTM0", metavar="NAME")
    _add_ensembles(parser)


def rescore(args: argparse.Namespace) -> dict[str, object]:
    r"""Add ln p of every translation to the features of n-best lists in Moses' format: ``LSTM0= x`` behind the others.

    Every source is read once, and what translations of a sentence begin with alike is computed once, also where they
    are in several lists. --model is given once, or for each list. The total score of a line is not changed: the
    feature's weight is the business of `tuning optimise`, or 1 for an even average, and `tuning rerank` takes the best
    of the lists with it; `moses add-feature` writes the ini that both read.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt seq2seq rescore --model try/lstm.pt --nbest try/dev.nbest \
            --source results/corpus/joined/truecased/dev.en.gz --output try/dev.lstm.nbest
    """
    if not args.feature.isidentifier():
        raise InputError(f"--feature {args.feature}: must be a name like LSTM0")
    number = len(args.nbest)
    if len(args.output) != number:
        raise InputError(f"{number} --nbest but {len(args.output)} --output; give as many of each")
    if len(args.source) not in (1, number) or len(args.model) not in (1, number):
        raise InputError(f"--source and --model: give one, or one for each of the {number} lists")
    need_torch()

    from rnnsmt.networks.devices import choose_place
    from rnnsmt.search.source_text import read_sentences
    from rnnsmt.seq2seq.model import load_ensemble
    from rnnsmt.seq2seq.scoring import Scorer, add_to_nbest

    place = choose_place(args.device, args.threads)
    alike: dict[tuple[tuple[str, ...], str], list[int]] = {}
    for n in range(number):
        alike.setdefault((tuple(args.model[n % len(args.model)]), args.source[n % len(args.source)]), []).append(n)
    entries = scored = 0
    for models, same in groupby(sorted(alike), key=lambda key: key[0]):
        scorer = Scorer(load_ensemble(list(models), place.device))
        for key in same:
            lists = [args.nbest[n] for n in alike[key]]
            outputs = [args.output[n] for n in alike[key]]
            found = add_to_nbest(scorer, read_sentences(key[1]), lists, outputs, args.feature)
            entries, scored = entries + found[0], scored + found[1]
    return {"translations": entries, "scored": scored}
