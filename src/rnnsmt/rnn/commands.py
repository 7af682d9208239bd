"""The commands of the RNN Encoder-Decoder."""

import argparse

from rnnsmt.io import InputError, write_lines
from rnnsmt.networks.options import (
    add_device,
    add_settings,
    add_training,
    chosen_settings,
    need_torch,
    print_description,
)
from rnnsmt.options import bounds_of_part, part, positive
from rnnsmt.rnn.settings import PRESETS
from rnnsmt.stopping import Stop


def describe_options(parser: argparse.ArgumentParser) -> None:
    add_settings(parser, PRESETS, "paper")
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}-vocabulary", type=positive, default=15_001, help="classes: id 0, UNK, the words, EOS"
        )


def describe(args: argparse.Namespace) -> dict[str, object]:
    """Print the sizes, the parts and the number of parameters of a network, without building it.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt rnn describe --preset paper
    """
    return print_description(chosen_settings(args, PRESETS), args.source_vocabulary, args.target_vocabulary)


def prepare_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--phrase-table", required=True, metavar="FILE")
    parser.add_argument("--source", nargs="+", required=True, metavar="FILE", help="source side of the corpus")
    parser.add_argument("--target", nargs="+", required=True, metavar="FILE", help="target side of the corpus")
    parser.add_argument(
        "--vocab-size", type=positive, default=15_000, help="ids of each side without EOS: N - 2 words, UNK and 0"
    )
    parser.add_argument("--max-length", type=positive, default=50, help="words of a phrase; a longer one is an error")
    parser.add_argument("--origins", metavar="FILE", help="where the table's pairs come from, of `phrases score`")
    parser.add_argument("--output-dir", required=True, metavar="DIR")


def prepare(args: argparse.Namespace) -> dict[str, object]:
    r"""Turn a phrase table into pairs of ids on disk, with the vocabularies of the corpus that it was extracted from.

    Every line becomes a pair, in the table's order: a table holds every distinct pair once, its counts are not looked
    at. A vocabulary holds the most frequent words of one side of the corpus; all other words become UNK. With --origins
    the training will measure the network on pairs of held-out sentences: those that come from the first of a hundred
    folds of the sentences alone. It is not trained on them. They also have the counts, for --weighting counts.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt rnn prepare --phrase-table results/model/phrase-table.gz --origins results/phrases/origins.npy \
            --vocab-size 1500 --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --output-dir try/pairs
    """
    from rnnsmt.rnn.pairs import prepare_pairs

    return prepare_pairs(
        args.phrase_table,
        args.source,
        args.target,
        args.output_dir,
        size=args.vocab_size,
        max_length=args.max_length,
        origins=args.origins,
    )


def train_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pairs", required=True, metavar="DIR", help="what rnn prepare wrote")
    add_settings(parser, PRESETS, "small")
    parser.add_argument(
        "--leave-out",
        type=part,
        metavar="K/N",
        help="do not train on pairs that only sentences of part K of N contain: `rnn score` then scores them unseen",
    )
    add_training(parser)


def train(args: argparse.Namespace) -> dict[str, object]:
    r"""Train the RNN Encoder-Decoder on phrase pairs.

    The state folder holds the last checkpoint: a run that is ended at any time goes on from it, and on a CPU ends bit
    for bit like one that was not. On SIGTERM, and shortly before --time-limit, the state is saved and the exit code is
    75 (after Ctrl-C 130): run the same command again. With --processes, or started by torchrun, several processes share
    every minibatch: the network is that of one process, up to rounding, and to what --dropout and --sampled-classes
    draw.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt rnn train --pairs try/pairs --preset demo --epochs 2 --seed 1 --output-model try/rnn.pt \
            --output-history try/rnn.json --state-dir try/rnn.state --threads 2
    """
    settings = chosen_settings(args, PRESETS)
    need_torch()

    from rnnsmt.networks.processes import started_processes

    with Stop(args.time_limit) as stop, started_processes(args.processes):
        from rnnsmt.networks.devices import choose_place
        from rnnsmt.rnn.pairs import Pairs
        from rnnsmt.rnn.training import RnnTrainer

        with choose_place(args.device, 1, settings.precision, join=True) as place:
            pairs = Pairs.open(args.pairs)
            trainer = RnnTrainer(pairs, settings, args.seed, place, args.threads, args.leave_out)
            trainer.fit(args.state_dir, args.save_every, stop)
            return trainer.save(args.output_model, args.output_history)


def score_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pairs", required=True, metavar="DIR", help="what rnn prepare wrote")
    parser.add_argument("--model", required=True, nargs="+", metavar="FILE", help="one network, or an ensemble")
    parser.add_argument("--output", required=True, metavar="FILE", help="scores (.npy)")
    parser.add_argument("--shard", type=part, default=(1, 1), metavar="K/N", help="part K of N only")
    add_device(parser)


def score(args: argparse.Namespace) -> dict[str, object]:
    """Score phrase pairs with the network: log p(target | source), natural logarithm, EOS included, no normalisation.

    Writes one float32 a line of the phrase table, in its order (.npy). --shard K/N scores the K-th of N nearly equal
    parts of the table, for jobs side by side; the parts follow each other. The scores of a pair are those of the pair
    alone to within 1e-4, however the table is cut. Products are float32 in full precision. Of a network that was
    trained with --direction inverse the score is log p(source | target), of one with --direction target log p(target).
    Of several networks it is the logarithm of the
    mean of their probabilities; a pair that some of them have not seen in training, because they left its sentences out
    (rnn train --leave-out), is scored by those alone.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt rnn score --pairs try/pairs --model try/rnn.pt --output try/scores.npy --threads 2
    """
    need_torch()

    import numpy as np

    from rnnsmt.arrays import growing_array
    from rnnsmt.networks.devices import choose_place
    from rnnsmt.progress import say
    from rnnsmt.rnn.model import check_lengths, load_model_of
    from rnnsmt.rnn.pairs import Pairs
    from rnnsmt.rnn.scoring import batches_at_once, mean_of_networks, score_batches

    pairs, place = Pairs.open(args.pairs), choose_place(args.device, 1)
    bounds = bounds_of_part(args.shard, len(pairs))
    networks = [load_model_of(pairs, path, place) for path in args.model]
    if len({own.direction for _, own, _ in networks}) > 1:
        raise InputError("--model: networks of several directions; score with those of one at a time")
    for model, _, _ in networks:
        check_lengths(model.sizes, pairs)
    threads = batches_at_once(place.device, args.threads, len(networks))
    batches = [score_batches(model, own, *bounds, place.device, threads) for model, own, _ in networks]
    left_out = [own for _, _, own in networks]
    parts = {tuple(own) for own in left_out if own}
    if parts and parts != {(k, len(parts)) for k in range(1, len(parts) + 1)}:
        say("the networks do not leave out all parts of the sentences: other pairs have scores that are memory")
    total, unseen = 0.0, 0
    with growing_array(args.output, np.float32) as out:
        for every in zip(*batches, strict=True):
            scores, number = mean_of_networks(pairs, bounds[0] + out.length, np.stack(every), left_out)
            out.append(scores)
            total, unseen = total + float(scores.sum(dtype=np.float64)), unseen + number
    stats: dict[str, object] = {"pairs": out.length, "mean score": total / max(out.length, 1)}
    return stats | ({"of sentences left out in training": unseen} if any(left_out) else {})


def shortlist_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pairs", required=True, metavar="DIR", help="what rnn prepare wrote")
    parser.add_argument("--output", required=True, metavar="FILE", help="numbers of words (.npy)")


def shortlist(args: argparse.Namespace) -> dict[str, object]:
    """Count the target words of every phrase pair that are outside the networks' shortlist: the paper's word penalty
    (WP).

    Not Moses' WordPenalty, which counts all words. Writes one number n a line of the phrase table, in its order (.npy),
    as `phrases augment` takes it: the column holds e^n and its logarithm is n, so the counts of the phrases of a
    translation add up to its number of words outside the shortlist. Needs no network, only the pairs.

    A source word that the phrase table does not know is passed through by the decoder with 0 in every column, although
    it is outside the shortlist as well. Such words are the same in every translation of a sentence, so counting them
    would add a constant and could change no ranking.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt rnn shortlist --pairs try/pairs --output try/shortlist.npy
    """
    import numpy as np

    from rnnsmt.arrays import growing_array
    from rnnsmt.progress import say
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
            "every target word of the phrase table is in the shortlist: the feature is 0 everywhere and changes nothing"
        )
    return {"pairs": out.length, "pairs with such words": touched, "words outside the shortlist": words}


def add_phrase_options(parser: argparse.ArgumentParser) -> None:
    """What ``rnn sample`` and ``rnn translate`` share: the network with its vocabularies, the source phrases."""
    parser.add_argument("--model", required=True, metavar="FILE")
    parser.add_argument("--pairs", required=True, metavar="DIR", help="what rnn prepare wrote, for the vocabularies")
    parser.add_argument("--input", required=True, metavar="FILE", help="source phrases, one a line, tokenised")
    parser.add_argument("--output", required=True, metavar="FILE")
    parser.add_argument("--max-length", type=positive, default=30, metavar="N", help="words of the longest target")
    add_device(parser)


def sample_options(parser: argparse.ArgumentParser) -> None:
    add_phrase_options(parser)
    parser.add_argument("--draws", type=positive, default=50, metavar="N", help="draws for each phrase")
    parser.add_argument("--top", type=positive, default=5, metavar="N", help="distinct draws that are written")
    parser.add_argument("--seed", type=int, default=1)


def sample(args: argparse.Namespace) -> dict[str, object]:
    r"""Draw targets of source phrases from the network, word by word from its distribution (Table 3 of the paper).

    Of 50 draws for each phrase the distinct ones are counted and sorted by log p(target | source), and the best 5
    written: ``number of the line, from 0 ||| target ||| log p ||| how often it was drawn``.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt rnn sample --model try/rnn.pt --pairs try/pairs --input try/phrases --output try/samples \
            --draws 50 --top 5
    """
    need_torch()

    from rnnsmt.networks.devices import choose_place
    from rnnsmt.rnn.generation import read_phrases, sample_targets
    from rnnsmt.rnn.model import load_model_of
    from rnnsmt.rnn.pairs import Pairs

    pairs, place = Pairs.open(args.pairs), choose_place(args.device, args.threads)
    model, pairs, _ = load_model_of(pairs, args.model, place)
    source, target = pairs.vocabularies
    sources = read_phrases(args.input, source, model.sizes.longest)
    max_length = min(args.max_length, model.sizes.longest)
    found = sample_targets(model, sources, args.draws, args.seed, max_length)
    lines = [
        f"{number} ||| {target.text(one.words)} ||| {one.score:.6f} ||| {one.times}"
        for number, targets in enumerate(found)
        for one in targets[: args.top]
    ]
    write_lines(args.output, lines)
    drawn = sum(one.times for targets in found for one in targets)
    return {
        "phrases": len(sources),
        "draws": len(sources) * args.draws,
        "distinct": sum(map(len, found)),
        f"dropped, longer than {max_length} words": len(sources) * args.draws - drawn,
    }


def translate_options(parser: argparse.ArgumentParser) -> None:
    add_phrase_options(parser)
    parser.add_argument("--beam", type=positive, default=10, metavar="N", help="open prefixes of a phrase")
    parser.add_argument("--nbest", type=int, metavar="N", help="write the N best of each phrase, at most the beam")


def translate(args: argparse.Namespace) -> dict[str, object]:
    r"""Translate phrases with the network alone: beam search for the target of the highest log p(target | source).

    Writes one target a line; with --nbest N the N best of each phrase instead: ``number of the line, from 0 ||| target
    ||| log p``.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt rnn translate --model try/rnn.pt --pairs try/pairs --input try/phrases \
            --output try/translations --nbest 5
    """
    nbest = 1 if args.nbest is None else args.nbest
    if not 1 <= nbest <= args.beam:
        raise InputError(f"--nbest {nbest}: must be between 1 and the beam, {args.beam}")

    need_torch()

    from rnnsmt.networks.devices import choose_place
    from rnnsmt.rnn.generation import beam_search, read_phrases
    from rnnsmt.rnn.model import load_model_of
    from rnnsmt.rnn.pairs import Pairs

    pairs, place = Pairs.open(args.pairs), choose_place(args.device, args.threads)
    model, pairs, _ = load_model_of(pairs, args.model, place)
    source, target = pairs.vocabularies
    sources = read_phrases(args.input, source, model.sizes.longest)
    found = beam_search(model, sources, args.beam, min(args.max_length, model.sizes.longest), nbest)
    if args.nbest is None:
        write_lines(args.output, [target.text(targets[0].words) for targets in found])
    else:
        write_lines(
            args.output,
            [
                f"{number} ||| {target.text(one.words)} ||| {one.score:.6f}"
                for number, targets in enumerate(found)
                for one in targets
            ],
        )
    return {"phrases": len(sources), "mean log p": sum(targets[0].score for targets in found) / len(found)}


def propose_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="FILE")
    parser.add_argument("--pairs", required=True, metavar="DIR", help="what rnn prepare wrote, for the vocabularies")
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="texts to be translated")
    parser.add_argument("--phrase-table", required=True, metavar="FILE", help="filtered for the input or whole")
    parser.add_argument("--lex-e2f", required=True, metavar="FILE", help="p(source word | target word)")
    parser.add_argument("--lex-f2e", required=True, metavar="FILE", help="p(target word | source word)")
    parser.add_argument("--output", required=True, metavar="FILE", help="phrase table of the proposed pairs")
    parser.add_argument("--source-length", type=positive, default=3, metavar="N", help="words of the longest source")
    parser.add_argument("--max-length", type=positive, default=7, metavar="N", help="words of the longest target")
    parser.add_argument(
        "--extractions", type=int, default=0, metavar="N", help="sources extracted N times or less, too"
    )
    parser.add_argument("--targets", type=int, default=0, metavar="N", help="sources with N targets or less, too")
    parser.add_argument("--beam", type=positive, default=10, metavar="N", help="open prefixes of a phrase")
    parser.add_argument(
        "--nbest", type=positive, default=5, metavar="N", help="proposals for a phrase, at most the beam"
    )
    add_device(parser)


def propose(args: argparse.Namespace) -> dict[str, object]:
    r"""Propose targets of source phrases that the phrase table does not have (section 5 of the paper).

    For every phrase of the input that the table does not have, or has rarely (--extractions, --targets), and whose
    words the network knows: the targets of the highest p(target | source) that a beam search finds. What the table has
    already and targets with UNK are left out. Writes a phrase table in Moses' order, with the five scores that a table
    with this network's column has: p(f|e) and lex(f|e) are the lexical weight of the best alignment, so is lex(e|f);
    p(e|f) and the fifth are the network's probability. ``phrases fill-up`` adds it to such a table. A network of
    --direction inverse proposes for the other direction of translation.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt rnn propose --model try/rnn.pt --pairs try/pairs \
            --input results/corpus/joined/truecased/dev.en.gz \
            --phrase-table results/model/filtered/dev/phrase-table.gz --lex-e2f results/model/lex.e2f \
            --lex-f2e results/model/lex.f2e --output try/proposals.gz
    """
    if args.nbest > args.beam:
        raise InputError(f"--nbest {args.nbest}: must be between 1 and the beam, {args.beam}")
    need_torch()

    from rnnsmt.networks.devices import choose_place
    from rnnsmt.phrases.table import format_phrase_line
    from rnnsmt.rnn.model import load_model_of
    from rnnsmt.rnn.pairs import Pairs
    from rnnsmt.rnn.proposals import propose_targets, score_proposals, unfamiliar_phrases

    pairs, place = Pairs.open(args.pairs), choose_place(args.device, args.threads)
    model, pairs, _ = load_model_of(pairs, args.model, place)
    if pairs.direction == "target":
        raise InputError(
            f"{args.model}: was trained with --direction target, it reads no source phrases to propose for"
        )
    source_length, max_length = (min(n, model.sizes.longest) for n in (args.source_length, args.max_length))
    phrases = unfamiliar_phrases(args.input, args.phrase_table, source_length, args.extractions, args.targets)
    found = propose_targets(model, pairs.vocabularies, phrases, args.beam, max_length, args.nbest)
    score_proposals(found, args.lex_e2f, args.lex_f2e)
    write_lines(args.output, map(format_phrase_line, found))
    return {
        "phrases unseen or rare": len(phrases),
        "phrases with proposals": len({entry.source for entry in found}),
        "proposals": len(found),
    }
