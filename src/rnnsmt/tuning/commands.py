"""The commands that tune weights."""

import argparse
from itertools import product

from rnnsmt.base.fields import add_fields
from rnnsmt.base.io import InputError, read_lines, write_json, write_lines, write_report
from rnnsmt.base.options import add_threads
from rnnsmt.base.progress import say
from rnnsmt.base.resuming import Stop
from rnnsmt.config.sections import Tuning, default_iterations
from rnnsmt.tuning.options import LoopOptions, add_optimiser, optimiser_options


def mert_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.search.options import add_search_options

    add = parser.add_argument
    add("--ini", required=True, nargs="+", metavar="FILE",
        help="moses.ini with the initial weights; one file, or one per run")  # fmt: skip
    add("--source", required=True, metavar="FILE", help="source side of the dev set, tokenised")
    add("--reference", required=True, nargs="+", metavar="FILE",
        help="one or more references of the dev set, tokenised")  # fmt: skip
    add("--seed", type=int, required=True, nargs="+", metavar="N", help="random seed of each run")
    add("--output-ini", required=True, nargs="+", metavar="FILE",
        help="output file of each run: moses.ini with the tuned weights")  # fmt: skip
    add("--output-history", required=True, nargs="+", metavar="FILE",
        help="output file of each run: BLEU and weights of every iteration (JSON)")  # fmt: skip
    add("--checkpoint-dir", required=True, nargs="+", metavar="DIR",
        help="checkpoint directory of each run, used to resume an interrupted run")  # fmt: skip
    add("--model-dir", nargs="+", metavar="DIR",
        help="directory, e.g. of filtered tables, in which model files are looked up by base name before the paths in "
        "moses.ini are used; one, or one for each run")  # fmt: skip
    add_fields(parser, Tuning, "nbest", "iterations")
    add_optimiser(parser)
    add("--time-limit", type=float, metavar="SECONDS",
        help="save a checkpoint and exit with status 75 before this time limit")  # fmt: skip
    add_search_options(parser)
    add_threads(parser)


def mert(args: argparse.Namespace) -> dict[str, object]:
    r"""Tune the weights of a model for corpus BLEU on a dev set.

    The optimiser is minimum error rate training (MERT, Och 2003) or, with --optimiser mira, batch MIRA (Cherry and
    Foster 2012); both work in the same loop on the same n-best lists.

    Every iteration optimises the weights on the n-best lists of all previous iterations (except the first, which uses
    the initial weights), decodes the dev set, adds the new n-best lists, and saves a checkpoint. With mert, as with
    mert-moses.pl, a run ends when an optimisation no longer changes the weights, and its weights are the result. With
    mert-averaged and mira, the number of iterations is fixed, and the mean of the weights of their second half is the
    result. The dev set is decoded once more with the result, unless it was. Outputs are the ini with these weights, and
    the history of all iterations (JSON). A result with a lower BLEU on the dev set than the initial weights is a
    warning.

    An interrupted run resumes from --checkpoint-dir and ends with the same weights (with a CSLM, only on the same
    processor model, because rounding differs between processors). If the next iteration would exceed --time-limit,
    the exit status is 75; run the same command again to resume.

    With several seeds, the runs are executed one after another, with one --output-ini, --output-history and
    --checkpoint-dir each. Each run gives the same result as a separate call. Runs with the same --ini share the model,
    the first decoding and the cached scores of a CSLM. With one --ini per run, the runs can use different models, e.g.
    networks of several training runs.

    Example, in the directory of a run of the demo corpus:

        rnnsmt tuning mert --ini results/augmented/rnn/network1/moses.ini \
            --model-dir results/augmented/rnn/network1/filtered/dev \
            --source results/corpus/joined/truecased/dev.en.gz \
            --reference results/corpus/joined/truecased/dev.fr.gz --seed 2 3 --output-ini try/run1.ini try/run2.ini \
            --output-history try/run1.json try/run2.json --checkpoint-dir try/run1.checkpoint try/run2.checkpoint \
            --optimiser mert --nbest 50 --restarts 8 --iterations 4 --pop-limit 150 --stack 100 --threads 2
    """
    from rnnsmt.bleu.batch import BatchBleu
    from rnnsmt.bleu.multi_bleu import read_texts
    from rnnsmt.moses.ini import MosesIni
    from rnnsmt.search import load_model
    from rnnsmt.search.options import search_options
    from rnnsmt.search.source_text import check_sentences
    from rnnsmt.tuning.loop import tune
    from rnnsmt.tuning.runs import ModelDecoder, by_model, open_checkpoints, tuning_runs

    stop = Stop(args.time_limit)
    runs = tuning_runs(args)
    sources, references = read_texts(args.source, args.reference)
    check_sentences(sources, args.source)
    checkpoints = open_checkpoints(runs, args)
    bleu = BatchBleu(references)
    results = []
    for (path, directory), sharing in by_model(runs).items():
        ini = MosesIni.read(path)
        model = load_model(ini, sources, directory, args.threads, args.device)
        decoder = ModelDecoder(ini, sources, model, search_options(args, ini))
        for run in sharing:
            label = f"run {run.number} of {len(runs)}, "
            say(f"{label}seed {run.seed}")
            number = args.iterations or default_iterations(args.optimiser)
            options = LoopOptions(run.seed, number, args.threads, optimiser_options(args))
            checkpoint = checkpoints[run.checkpoint_dir]
            tuned = tune(decoder, bleu, decoder.start, checkpoint, options, stop, label)
            decoder.set_weights(tuned.weights)
            ini.write(run.output_ini)
            write_json(run.output_history, tuned.history(decoder.feature_names, run.seed))
            checkpoint.finish()
            results.append(tuned)
            if len(results) < len(runs) and tuned.seconds and stop.asked():
                say(f"stopped {stop.reason()} after run {run.number}; run the same command again to resume")
                raise SystemExit(stop.exit_code())
        del model, decoder  # free the memory before the next model is loaded
    return {
        "runs": len(runs),
        "iterations": sum(len(result.iterations) for result in results),
        "dev BLEU": sum(result.bleu for result in results) / len(runs),
    }


def optimise_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--ini", required=True, metavar="FILE",
        help="moses.ini with the features of the n-best lists and the initial weights")  # fmt: skip
    add("--nbest", required=True, metavar="FILE", help="n-best lists of the dev set, in Moses format")
    add("--source", required=True, metavar="FILE", help="source side of the dev set, tokenised")
    add("--reference", required=True, nargs="+", metavar="FILE",
        help="one or more references of the dev set, tokenised")  # fmt: skip
    add("--output-ini", required=True, metavar="FILE", help="output file: moses.ini with the tuned weights")
    add("--seed", type=int, required=True, metavar="N", help="random seed")
    add_optimiser(parser)
    add_threads(parser)


def optimise(args: argparse.Namespace) -> dict[str, object]:
    r"""Optimise weights for corpus BLEU on given n-best lists, once and without decoding.

    Inputs are n-best lists of a dev set in Moses format, possibly with additional features (`cslm rescore`),
    and an ini with the same features and the initial weights. The command corresponds to one iteration of `tuning mert`
    without decoding. The new weights are for selecting hypotheses from n-best lists (`tuning rerank`), not for
    decoding. If the initial weights have a higher BLEU on the lists, they are kept.

    Example, in the directory of a run of the demo corpus:

        rnnsmt tuning optimise --ini results/augmented/cslm_rnn/network1/moses.ini --nbest try/dev.rescored \
            --source results/corpus/joined/truecased/dev.en.gz \
            --reference results/corpus/joined/truecased/dev.fr.gz --seed 1 --output-ini try/rescored.ini
    """
    from rnnsmt.bleu.batch import BatchBleu
    from rnnsmt.bleu.multi_bleu import read_texts
    from rnnsmt.moses.ini import MosesIni
    from rnnsmt.moses.nbest import read_lists
    from rnnsmt.search.source_text import check_sentences
    from rnnsmt.tuning.nbest_pool import NbestPool, candidate_batch, pool_bleu, start_weights, tunable_features
    from rnnsmt.tuning.optimisers import optimise_weights

    ini = MosesIni.read(args.ini)
    sources, references = read_texts(args.source, args.reference)
    check_sentences(sources, args.source)
    lists = read_lists(args.nbest, ini, sources)
    start = start_weights(ini, lists.names)
    pool = NbestPool(len(lists.texts), len(lists.names))
    pool.add(candidate_batch(lists.features, BatchBleu(references).statistics(lists.texts)))
    flat = pool.flat()
    active = tunable_features(flat, lists.names)
    weights = optimise_weights(flat, start, active, [args.seed, 1], optimiser_options(args), args.threads)
    if pool_bleu(flat, weights) < pool_bleu(flat, start):
        weights = start
    for name, weight in zip(lists.names, weights, strict=True):
        ini.set_weight(name, float(weight))
    ini.write(args.output_ini)
    before, after = (round(100 * pool_bleu(flat, vector), 2) for vector in (start, weights))
    return {"sentences": len(lists.texts), "translations": len(pool), "BLEU before": before, "BLEU": after}


def rerank_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--ini", required=True, nargs="+", metavar="FILE",
        help="moses.ini with the features of the n-best lists and their weights")  # fmt: skip
    add("--nbest", required=True, nargs="+", metavar="FILE",
        help="n-best lists: first one file per --input for the first --ini, then for the second --ini, and so "
        "on")  # fmt: skip
    add("--input", required=True, nargs="+", metavar="FILE", help="source texts of the n-best lists, tokenised")
    add("--output", required=True, nargs="+", metavar="FILE",
        help="output files, one translation per line; one file for each --nbest")  # fmt: skip
    add("--report", nargs="+", metavar="FILE", help="output files: statistics of each --output (JSON)")


def rerank(args: argparse.Namespace) -> dict[str, object]:
    r"""Select the best hypothesis of every n-best list with the weights of an ini.

    Use this command for n-best lists with additional features (`cslm rescore`, `seq2seq rescore`) or new weights
    (`tuning optimise`). Among hypotheses with equal scores, the first in the list is selected.

    Example, in the directory of a run of the demo corpus:

        rnnsmt tuning rerank --ini try/rescored.ini --nbest try/dev.rescored \
            --input results/corpus/joined/truecased/dev.en.gz --output try/dev.out
    """
    import numpy as np

    from rnnsmt.moses.ini import MosesIni
    from rnnsmt.moses.nbest import read_lists

    tasks = list(product(args.ini, args.input))
    reports = args.report or [None] * len(tasks)
    if not len(tasks) == len(args.nbest) == len(args.output) == len(reports):
        raise InputError(
            f"{len(args.ini)} --ini and {len(args.input)} --input require {len(tasks)} --nbest files, as many "
            f"--output files, and as many --report files or none, but there are {len(args.nbest)}, "
            f"{len(args.output)} and {len(reports)}"
        )
    sums = {"sentences": 0, "not the first of their list": 0}
    for (path, text), nbest, output, report in zip(tasks, args.nbest, args.output, reports, strict=True):
        ini = MosesIni.read(path)
        lists = read_lists(nbest, ini, list(read_lines(text)))
        weights = np.array([ini.weight(name) for name in lists.names])
        best = [int(np.argmax(rows @ weights)) for rows in lists.features]
        write_lines(output, (texts[index] for texts, index in zip(lists.texts, best, strict=True)))
        figures = {"sentences": len(best), "not the first of their list": sum(index > 0 for index in best)}
        if report is not None:
            write_report(report, figures)
        sums = {name: sums[name] + number for name, number in figures.items()}
    return dict(sums)
