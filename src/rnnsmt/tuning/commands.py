"""The commands that tune weights."""

import argparse
from dataclasses import replace
from itertools import product
from typing import Any

from rnnsmt.io import InputError, read_lines, write_json, write_lines
from rnnsmt.options import positive
from rnnsmt.progress import say
from rnnsmt.stopping import Stop
from rnnsmt.tuning.options import LoopOptions, OptimiserOptions

LOOP = LoopOptions()
DEFAULTS = LOOP.optimiser


def add_optimiser(parser: argparse.ArgumentParser) -> None:
    """Which algorithm, and how far it looks."""
    add = parser.add_argument
    add("--optimiser", choices=("mert", "mira", "pro"), default=DEFAULTS.optimiser,
        help="minimum error rate training, batch MIRA or pairwise ranking; --restarts, --combine and "
        "--random-directions are of mert")  # fmt: skip
    add("--restarts", type=int, default=DEFAULTS.restarts, metavar="N", help="climbs of one optimisation")
    add("--combine", choices=("mean", "best"), default=DEFAULTS.combine,
        help="mean of what the better half of the climbs reach, or the best of them")  # fmt: skip
    add("--random-directions", type=int, default=DEFAULTS.random_directions, metavar="N",
        help="random directions beside the coordinates")  # fmt: skip


def optimiser_options(args: argparse.Namespace) -> OptimiserOptions:
    """The options of a command with those of ``add_optimiser``."""
    return OptimiserOptions(
        optimiser=args.optimiser,
        restarts=args.restarts,
        random_directions=args.random_directions,
        combine=args.combine,
    )


def mert_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.search.options import add_search_options

    add = parser.add_argument
    add("--ini", required=True, nargs="+", metavar="FILE",
        help="moses.ini with the weights to start from; one, or one for each run")  # fmt: skip
    add("--source", required=True, metavar="FILE", help="development set, source side")
    add("--reference", required=True, nargs="+", metavar="FILE", help="development set, one or more references")
    add("--seed", type=int, required=True, nargs="+", metavar="N", help="seeds of the runs")
    add("--output-ini", required=True, nargs="+", metavar="FILE", help="moses.ini to write, with the tuned weights")
    add("--output-history", required=True, nargs="+", metavar="FILE", help="iterations, to write (JSON)")
    add("--state-dir", required=True, nargs="+", metavar="DIR", help="where the state of a run is kept")
    add("--nested-ini", action="append", nargs="+", default=[], metavar="FILE",
        help="tuned moses.ini of a nested model, which has some of the features, of every run: its weights are decoded "
        "too; may be repeated for other models")  # fmt: skip
    add("--nested-columns", action="append", nargs="+", type=int, default=[], metavar="N",
        help="which columns of the phrase table those of the nested model's table are, from 0, once for every "
        "--nested-ini; without it the first ones")  # fmt: skip
    add("--model-dir", nargs="+", metavar="DIR",
        help="take an ini's files from here where they exist, e.g. filtered tables; one, or one a run")  # fmt: skip
    add("--nbest", type=int, default=100, metavar="N", help="distinct translations of a sentence and iteration")
    add_optimiser(parser)
    add("--max-iterations", type=positive, default=LOOP.max_iterations, metavar="N",
        help="most iterations; a run that is done goes on where this is raised")  # fmt: skip
    add(
        "--patience",
        type=positive,
        default=LOOP.patience,
        metavar="N",
        help=f"iterations in which dev BLEU must rise by {LOOP.least_rise}, or the run ends",
    )
    add("--time-limit", type=float, metavar="SECONDS", help="stop before, save, and exit with 75")
    add_search_options(parser)
    add("--threads", type=int, default=1, metavar="N", help="threads; the result does not depend on them")


def mert(args: argparse.Namespace) -> dict[str, object]:
    r"""Tune the weights of a model for corpus BLEU on a development set.

    By minimum error rate training (Och 2003), after which the command is called, or with --optimiser by batch MIRA
    (Cherry and Foster 2012) or PRO (Hopkins and May 2011), which learn from the same n-best lists in the same loop.

    One process: the model is loaded once; every iteration but the first optimises, then it decodes the development set,
    adds the n-best lists to those of all iterations before, and saves its state, so that the same command after an
    interruption goes on and ends with the same weights (with a CSLM: on the same kind of processor; other last digits
    of a score make a known translation a new one). Where another iteration would be over after --time-limit, the exit
    code is 75: run the same command again. Output: the ini with the weights of the iteration whose decoded development
    set had the highest BLEU, and the history of all iterations.

    --nested-ini names the tuned weights of models with some of the features. In the end they are decoded with 0 as the
    weight of the other features, and where they are better on the development set than all iterations, so are points
    between the two. The best of all is taken: a further feature costs no BLEU there (but that the search with a CSLM of
    weight 0 differs a little).

    Several seeds make as many runs, one after the other, with as many --output-ini, --output-history and --state-dir.
    Each ends as it would alone; those of the same --ini share the model, the first decoding, and what a CSLM has
    answered. With an --ini for each run they may be of different models, such as networks of other trainings.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt tuning mert --ini model/moses.ini --source dev.en --reference dev.fr --seed 1 \
            --output-ini tuned.ini --output-history tuned.json --state-dir tuned.state
    """
    from rnnsmt.bleu.batch import BatchBleu
    from rnnsmt.bleu.texts import read_texts
    from rnnsmt.moses.ini import MosesIni
    from rnnsmt.search import load_model
    from rnnsmt.search.options import search_options
    from rnnsmt.state_folder import StateFolder
    from rnnsmt.tuning.loop import tune
    from rnnsmt.tuning.model_decoder import ModelDecoder
    from rnnsmt.tuning.state import TuningState, fingerprint
    from rnnsmt.tuning.weights import in_order, nested_weights_of_runs

    stop = Stop(args.time_limit)
    if args.nbest < 2:
        raise InputError(f"--nbest {args.nbest}: must be at least 2")
    runs = len(args.seed)
    if not runs == len(args.output_ini) == len(args.output_history) == len(args.state_dir):
        raise InputError(
            "--seed, --output-ini, --output-history and --state-dir: give as many of each as there are runs"
        )
    runs_of: dict[tuple[str, str | None], list[int]] = {}
    folders = _one_a_run("--model-dir", args.model_dir or [None], runs)
    for run, place in enumerate(zip(_one_a_run("--ini", args.ini, runs), folders, strict=True)):
        runs_of.setdefault(place, []).append(run)
    sources, references = read_texts(args.source, args.reference)
    nested = nested_weights_of_runs(MosesIni.read(args.ini[0]), args.nested_ini, args.nested_columns, runs)
    prints = {}
    for (path, folder), own in runs_of.items():
        common = fingerprint(args, MosesIni.read(path), folder)
        for run in own:
            prints[args.state_dir[run]] = common | {"--seed": str(args.seed[run])}
    # those that were interrupted first: they may refuse, before a finished one starts over
    states = {place: TuningState(place, prints[place]) for place in sorted(prints, key=StateFolder.is_finished)}
    bleu = BatchBleu(references)
    iterations, scores = 0, []
    for (path, folder), own in runs_of.items():
        ini = MosesIni.read(path)
        model = load_model(ini, sources, folder, args.threads, args.device, args.cslm_precision)
        decoder = ModelDecoder(ini, sources, model, search_options(args, ini))
        for run in own:
            if runs > 1:
                say(f"run {run + 1} of {runs}, seed {args.seed[run]}")
            options = LoopOptions(
                seed=args.seed[run],
                max_iterations=args.max_iterations,
                patience=args.patience,
                threads=args.threads,
                optimiser=optimiser_options(args),
            )
            compared = [in_order(weights, decoder.feature_names) for weights in nested[run]]
            state = states[args.state_dir[run]]
            tuned = tune(decoder, bleu, decoder.start, state, options, stop, compared)
            decoder.set_weights(tuned.weights)
            ini.write(args.output_ini[run])
            write_json(args.output_history[run], tuned.history(decoder.feature_names, args.seed[run]))
            state.finish()
            iterations += len(tuned.iterations)
            scores.append(tuned.bleu)
            if len(scores) < runs and tuned.seconds and stop.asked():
                say(f"stopped {stop.reason()} after run {run + 1}: run again to go on")
                raise SystemExit(stop.exit_code())
        del model, decoder
    return {"runs": runs, "iterations": iterations, "dev BLEU": sum(scores) / runs}


def _one_a_run(option: str, given: list[Any], runs: int) -> list[Any]:
    """What an option that is given once, or for each run, says of each.

    Raises:
        InputError: it is given neither once nor for each.
    """
    if len(given) not in (1, runs):
        raise InputError(f"{option}: {len(given)} given; give one, or one for each of the {runs} runs")
    return given * (runs if len(given) == 1 else 1)


def optimise_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--ini", required=True, metavar="FILE", help="moses.ini with the lists' features, and weights to start from")
    add("--nbest", required=True, metavar="FILE", help="n-best lists of the development set")
    add("--source", required=True, metavar="FILE", help="development set, source side")
    add("--reference", required=True, nargs="+", metavar="FILE", help="development set, one or more references")
    add("--output-ini", required=True, metavar="FILE", help="moses.ini to write, with the tuned weights")
    add("--seed", type=int, required=True, metavar="N", help="seed of the random starts and directions")
    add_optimiser(parser)
    add("--threads", type=int, default=1, metavar="N", help="threads; the result does not depend on them")


def optimise(args: argparse.Namespace) -> dict[str, object]:
    r"""Optimise weights for corpus BLEU on given n-best lists, once: the tuning of rescored lists.

    The lists are those of a development set in Moses' format, perhaps with further features (`cslm rescore`). The ini
    has exactly their features; its weights are where the optimisation starts. What one iteration of `tuning mert` does,
    but nothing is decoded again: choose with the new weights from lists (`tuning rerank`); a search with them may find
    what no list has held. Where the weights of the start have a higher BLEU on the lists, they stay.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt tuning optimise --ini results/augmented/cslm_rnn/network1/moses.ini --nbest try/dev.rescored \
            --source results/corpus/joined/truecased/dev.en.gz \
            --reference results/corpus/joined/truecased/dev.fr.gz --seed 1 --output-ini try/rescored.ini
    """
    from rnnsmt.bleu.batch import BatchBleu
    from rnnsmt.bleu.texts import read_texts
    from rnnsmt.moses.ini import MosesIni
    from rnnsmt.moses.nbest import read_lists
    from rnnsmt.tuning.nbest_pool import NbestPool, candidate_batch, pool_bleu, tunable_features
    from rnnsmt.tuning.optimisation import optimise_weights
    from rnnsmt.tuning.weights import start_weights

    ini = MosesIni.read(args.ini)
    sources, references = read_texts(args.source, args.reference)
    lists = read_lists(args.nbest, ini, sources)
    start = start_weights(ini, lists.names)
    pool = NbestPool(len(lists.texts), len(lists.names))
    pool.add(candidate_batch(lists.features, BatchBleu(references).statistics(lists.texts)))
    flat = pool.flat()
    active = tunable_features(flat, lists.names)
    options = replace(optimiser_options(args), interpolation=1.0)  # there are no iterations to steady
    weights = optimise_weights(flat, start, active, [args.seed, 1], options, args.threads)
    if pool_bleu(flat, weights) < pool_bleu(flat, start):
        weights = start
    for name, weight in zip(lists.names, weights, strict=True):
        ini.set_weight(name, float(weight))
    ini.write(args.output_ini)
    before, after = (round(100 * pool_bleu(flat, one), 2) for one in (start, weights))
    return {"sentences": len(lists.texts), "translations": len(pool), "BLEU before": before, "BLEU": after}


def rerank_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--ini", required=True, nargs="+", metavar="FILE",
        help="moses.ini with the features of the lists and their weights")  # fmt: skip
    add(
        "--nbest",
        required=True,
        nargs="+",
        metavar="FILE",
        help="n-best lists of every text; of several --ini in their order",
    )
    add("--input", required=True, nargs="+", metavar="FILE", help="the texts themselves")
    add(
        "--output",
        required=True,
        nargs="+",
        metavar="FILE",
        help="translations to write, one a line, as many as --nbest",
    )
    add("--report", nargs="+", metavar="FILE", help="figures of every output, as JSON")


def rerank(args: argparse.Namespace) -> dict[str, object]:
    r"""Choose the best translation of every sentence from its n-best list, with the weights of an ini.

    For lists whose features or weights have changed since they were made: `cslm rescore`, `seq2seq rescore`, `tuning
    optimise`. Where two are equally good, the earlier one of the list is taken.

    Example, in the folder of a run of the embedded corpus:

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
            f"{len(args.ini)} --ini and {len(args.input)} --input need {len(tasks)} --nbest, as many --output and "
            f"--report, if any, but there are {len(args.nbest)}, {len(args.output)} and {len(reports)}"
        )
    sums = {"sentences": 0, "not the first of their list": 0}
    for (path, text), nbest, output, report in zip(tasks, args.nbest, args.output, reports, strict=True):
        ini = MosesIni.read(path)
        lists = read_lists(nbest, ini, list(read_lines(text)))
        weights = np.array([ini.weight(name) for name in lists.names])
        best = [int(np.argmax(rows @ weights)) for rows in lists.features]
        write_lines(output, (texts[place] for texts, place in zip(lists.texts, best, strict=True)))
        found = {"sentences": len(best), "not the first of their list": sum(place > 0 for place in best)}
        if report is not None:
            write_json(report, found)
        sums = {name: sums[name] + number for name, number in found.items()}
    return dict(sums)
