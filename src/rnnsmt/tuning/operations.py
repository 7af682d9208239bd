"""Operations that tune weights, or select translations from n-best lists with tuned weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rnnsmt.base.arguments import (
    THREADS,
    CheckpointDirs,
    InputFile,
    InputFiles,
    ModelDirs,
    OptionalOutput,
    OptionalOutputs,
    OutputFiles,
    Seed,
    Seeds,
    SeveralTexts,
    Text,
    TextFiles,
    Threads,
    TimeLimit,
    each,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field
from rnnsmt.base.operations import Values, operation
from rnnsmt.base.resuming import Stop, check_time_limit
from rnnsmt.config.sections import (
    CslmCells,
    Device,
    Iterations,
    NbestSize,
    Optimizer,
    Restarts,
    Rnn,
    Search,
    Tuning,
    default_iterations,
)
from rnnsmt.registries import OPTIMIZERS
from rnnsmt.search.options import PopLimitOrIni, StackOrIni

AddedFeatures = Annotated[
    Mapping[str, float],
    Field(
        "features of rescored n-best lists that the ini does not have, with their weights, e.g. LSTM0=1 for the sum of "
        "its score and that of the system",
        metavar="NAME=W",
    ),
]
"""Features that `networks rescore` adds to n-best lists. Decoders cannot compute them and reject an ini with them."""


@dataclass(frozen=True)
class TunedRun:
    """A tuning run.

    Attributes:
        seed: random seed.
        bleu: BLEU of the dev set decoded with the weights, in percent.
        weights: weights of the scores of all features, by feature name and 0-based number of the score: ``LM0:0``.
        history: content of the output ``output_history``: weights and BLEU of every iteration.
    """

    seed: int
    bleu: float
    weights: dict[str, float]
    history: dict[str, object]


@dataclass(frozen=True)
class OptimizedWeights:
    """Weights that were optimised on n-best lists.

    Attributes:
        weights: weights of the scores, named as in ``TunedRun``.
        bleu_before, bleu: BLEU of the best hypotheses with the initial weights and with these weights, in percent.
        figures: sizes of the lists, and both values of BLEU.
    """

    weights: dict[str, float]
    bleu_before: float
    bleu: float
    figures: dict[str, object]


@operation(version=10)
def tune(
    ini: InputFiles,
    source: Text,
    reference: SeveralTexts,
    output_ini: OptionalOutputs = None,
    output_history: OptionalOutputs = None,
    checkpoint_dir: CheckpointDirs | None = None,
    *,
    seed: Seeds = 1,
    model_dir: ModelDirs = None,
    optimizer: Optimizer = Tuning.optimizer,
    nbest: NbestSize = Tuning.nbest,
    restarts: Restarts = Tuning.restarts,
    iterations: Iterations = None,
    pop_limit: PopLimitOrIni = None,
    stack: StackOrIni = None,
    cslm_cells: CslmCells = Search.cslm_cells,
    device: Device = Rnn.device,
    threads: Threads = THREADS,
    time_limit: TimeLimit | None = None,
) -> Values[TunedRun]:
    r"""Tune the weights of a model for corpus BLEU on a dev set.

    The optimizer is minimum error rate training (MERT, Och 2003) or, with ``optimizer="mira"``, batch MIRA (Cherry and
    Foster 2012); both work in the same loop on the same n-best lists.

    Every iteration optimises the weights on the n-best lists of all previous iterations (except the first, which uses
    the initial weights), decodes the dev set, adds the new n-best lists, and saves a checkpoint. With mert, as with
    mert-moses.pl, a run ends when an optimisation no longer changes the weights or after the maximum number of
    iterations; the weights of the last optimisation are the result. With mert-averaged and mira, the number of
    iterations is fixed; the mean of the weights of the second half of the iterations is the result. The dev set is
    decoded once more with the result, unless an iteration used the same weights. The outputs are the ini with these
    weights, and the history of all iterations (JSON). A warning is printed if BLEU on the dev set is lower with the
    result than with the initial weights.

    An interrupted run resumes from ``checkpoint_dir`` and ends with the same weights (with a CSLM, only on the same
    processor model, because rounding differs between processors). If the next iteration would exceed ``time_limit``,
    the exit status is 75; run the same command again to resume.

    With several seeds, the runs are executed one after another, with one ``output_ini``, ``output_history`` and
    ``checkpoint_dir`` each. Each run gives the same result as a separate call. Runs with the same ``ini`` share the
    model, the first decoding and the cached scores of a CSLM. With one ``ini`` per run, the runs can use different
    models, e.g. networks of several training runs.

    Example, in the directory of a run of the demo corpus:

        rnnsmt tuning tune --ini results/augmented/rnn/network1/moses.ini \
            --model-dir results/augmented/rnn/network1/selected/dev \
            --source results/corpus/joined/truecased/dev.en.gz \
            --reference results/corpus/joined/truecased/dev.fr.gz --seed 2 3 --output-ini try/run1.ini try/run2.ini \
            --output-history try/run1.json try/run2.json --checkpoint-dir try/run1.checkpoint try/run2.checkpoint \
            --optimizer mert --nbest 50 --restarts 8 --iterations 4 --pop-limit 150 --stack 100 --threads 2

    Args:
        ini: moses.ini with the initial weights; one file, or one per run.
        source: source side of the dev set, tokenised.
        reference: one or more references of the dev set, tokenised.
        output_ini: output file of each run: moses.ini with the tuned weights.
        output_history: output file of each run: BLEU and weights of every iteration (JSON).
        checkpoint_dir: checkpoint directory of each run, used to resume an interrupted run.

    Returns:
        Seed, BLEU, weights and history of each run.

    Raises:
        InputError: the texts are empty or differ in length, a file of the model is missing or malformed, the numbers
            of files and seeds differ, or ``checkpoint_dir`` has an interrupted run with other settings or inputs.
    """
    from rnnsmt.base.progress import say
    from rnnsmt.base.reading import read_dev_set
    from rnnsmt.bleu.batch import BatchBleu
    from rnnsmt.formats.ini import MosesIni
    from rnnsmt.search.model import load_model
    from rnnsmt.search.options import options_for
    from rnnsmt.search.source_text import check_sentences
    from rnnsmt.tuning.loop import tune as tune_weights
    from rnnsmt.tuning.options import LoopOptions, OptimizerOptions
    from rnnsmt.tuning.runs import ModelDecoder, by_model, open_checkpoints, tuning_runs, write_outputs

    check_time_limit(time_limit, checkpoint_dir)
    stop = Stop(time_limit)
    seeds = each(seed)
    none = [None] * len(seeds)
    with TextFiles() as files:
        temporary = [files.directory / f"checkpoint {number}" for number in range(1, len(seeds) + 1)]
        runs = tuning_runs(
            seeds,
            {"ini": each(ini), "model_dir": each(model_dir) or [None]},
            {
                "output_ini": each(output_ini) or none,
                "output_history": each(output_history) or none,
                "checkpoint_dir": each(checkpoint_dir) or temporary,
            },
        )
        source_file, reference_files = files.of("source", source), files.each_of("reference", reference)
        sources, references = read_dev_set(source_file, reference_files)
        check_sentences(sources, source_file)
        affecting: dict[str, object] = {
            "nbest": nbest, "optimizer": OPTIMIZERS.versioned(optimizer), "restarts": restarts
        }  # fmt: skip
        limits: dict[str, object] = {"pop_limit": pop_limit, "stack": stack, "cslm_cells": cslm_cells}
        checkpoints = open_checkpoints(runs, source_file, reference_files, affecting | limits)
        bleu = BatchBleu(references)
        results = []
        number_of_iterations = 0
        for (path, directory), sharing in by_model(runs).items():
            read = MosesIni.read(path)
            model = load_model(read, sources, directory, threads, device)
            search = options_for(read, pop_limit, stack, cslm_cells, nbest, threads)
            decoder = ModelDecoder(read, sources, model, search)
            for run in sharing:
                label = f"run {run.number} of {len(runs)}, "
                say(f"{label}seed {run.seed}")
                options = LoopOptions(
                    run.seed,
                    iterations or default_iterations(optimizer),
                    threads,
                    OptimizerOptions(optimizer, restarts),
                )
                checkpoint = checkpoints[run.checkpoint_dir]
                tuned = tune_weights(decoder, bleu, decoder.start, checkpoint, options, stop, label)
                decoder.set_weights(tuned.weights)
                history = tuned.history(decoder.feature_names, run.seed)
                write_outputs(run, read, history)
                checkpoint.finish()
                weights = dict(zip(decoder.feature_names, tuned.weights.tolist(), strict=True))
                results.append(TunedRun(run.seed, tuned.bleu, weights, history))
                number_of_iterations += len(tuned.iterations)
                if len(results) < len(runs) and tuned.seconds and stop.asked():
                    say(f"stopped {stop.reason()} after run {run.number}; run the same command again to resume")
                    raise SystemExit(stop.exit_code())
            del model, decoder  # free the memory before the next model is loaded
    mean = sum(result.bleu for result in results) / len(runs)
    return Values(results, {"runs": len(runs), "iterations": number_of_iterations, "dev BLEU": mean})


@operation(version=2)
def optimize(
    ini: InputFile,
    nbest: InputFile,
    source: Text,
    reference: SeveralTexts,
    output_ini: OptionalOutput = None,
    *,
    feature: AddedFeatures | None = None,
    seed: Annotated[Seed, Field(required=True)] = 1,
    optimizer: Optimizer = Tuning.optimizer,
    restarts: Restarts = Tuning.restarts,
    threads: Threads = THREADS,
) -> OptimizedWeights:
    r"""Optimise weights for corpus BLEU on existing n-best lists, once and without decoding.

    The inputs are n-best lists of a dev set in Moses format, and an ini with the initial weights of their features;
    ``feature`` adds the features of `networks rescore` to this ini. The command corresponds to one iteration of
    `tuning tune` without decoding. The new weights are for selecting hypotheses from n-best lists (`tuning rerank`),
    not for decoding. If the initial weights have a higher BLEU on the lists, they are kept.

    Example, in the directory of a run of the demo corpus:

        rnnsmt tuning optimize --ini results/augmented/cslm_rnn/network1/moses.ini --nbest try/dev.rescored \
            --source results/corpus/joined/truecased/dev.en.gz \
            --reference results/corpus/joined/truecased/dev.fr.gz --seed 1 --output-ini try/rescored.ini

    Args:
        ini: moses.ini with the features of the n-best lists and the initial weights.
        nbest: n-best lists of the dev set, in Moses format.
        source: source side of the dev set, tokenised.
        reference: one or more references of the dev set, tokenised.
        output_ini: output file: moses.ini with the tuned weights.

    Returns:
        The weights, and BLEU before and after.

    Raises:
        InputError: the lists have other features than the ini or other sentences than the source, or the texts are
            empty or differ in length.
    """
    from rnnsmt.base.reading import read_dev_set
    from rnnsmt.bleu.batch import BatchBleu
    from rnnsmt.formats.ini import MosesIni
    from rnnsmt.formats.nbest import read_lists
    from rnnsmt.search.source_text import check_sentences
    from rnnsmt.tuning.nbest_pool import NbestPool, candidate_batch, pool_bleu, start_weights, tunable_features
    from rnnsmt.tuning.optimizers import optimize_weights
    from rnnsmt.tuning.options import OptimizerOptions

    read = MosesIni.read(ini)
    read.add_scores_of_lists(feature or {})
    with TextFiles() as files:
        source_file = files.of("source", source)
        sources, references = read_dev_set(source_file, files.each_of("reference", reference))
        check_sentences(sources, source_file)
    lists = read_lists(nbest, read, sources)
    start = start_weights(read, lists.names)
    pool = NbestPool(len(lists.texts), len(lists.names))
    pool.add(candidate_batch(lists.features, BatchBleu(references).statistics(lists.texts)))
    flat = pool.flat()
    active = tunable_features(flat, lists.names)
    weights = optimize_weights(flat, start, active, [seed, 1], OptimizerOptions(optimizer, restarts), threads)
    if pool_bleu(flat, weights) < pool_bleu(flat, start):
        weights = start
    by_name = dict(zip(lists.names, weights.tolist(), strict=True))
    for name, weight in by_name.items():
        read.set_weight(name, weight)
    if output_ini is not None:
        read.write(output_ini)
    before, after = (100 * pool_bleu(flat, vector) for vector in (start, weights))
    figures: dict[str, object] = {
        "sentences": len(lists.texts),
        "translations": len(pool),
        "BLEU before": round(before, 2),
        "BLEU": round(after, 2),
    }
    return OptimizedWeights(by_name, before, after, figures)


@operation(version=1)
def rerank(
    ini: InputFiles,
    nbest: InputFiles,
    input: InputFiles,
    output: OptionalOutputs = None,
    *,
    feature: AddedFeatures | None = None,
    output_ini: OutputFiles | None = None,
    report: OutputFiles | None = None,
) -> Values[str]:
    r"""Select the best hypothesis of every n-best list with the weights of an ini.

    Use this command for n-best lists with additional features (`networks rescore`) or new weights
    (`tuning optimize`). Among hypotheses with equal scores, the first in the list is selected.

    ``feature`` adds features of the lists to the ini: with LSTM0=1, the score of a hypothesis is the sum of the
    system's score and the network's score, as in Sutskever et al. (2014).

    Example, in the directory of a run of the demo corpus:

        rnnsmt tuning rerank --ini try/rescored.ini --nbest try/dev.rescored \
            --input results/corpus/joined/truecased/dev.en.gz --output try/dev.out

    Args:
        ini: moses.ini with the features of the n-best lists and their weights.
        nbest: n-best lists: first one file per ``input`` for the first ``ini``, then for the second ``ini``, and so
            on.
        input: source texts of the n-best lists, tokenised.
        output: output files, one translation per line; one file for each ``nbest``.
        output_ini: output files: moses.ini with the weights of all features, one file for each ``ini``.
        report: output files: statistics of each ``output`` (JSON).

    Returns:
        The selected translations for all files of ``nbest``, in the order of the files.

    Raises:
        InputError: the numbers of files do not match, or lists have other features or sentences than the ini or input.
    """
    from itertools import product

    import numpy as np

    from rnnsmt.base.reading import read_lines
    from rnnsmt.base.writing import write_lines, write_report
    from rnnsmt.formats.ini import MosesIni
    from rnnsmt.formats.nbest import read_lists

    inis, inputs, lists_of_tasks = each(ini), each(input), each(nbest)
    tasks = list(product(range(len(inis)), inputs))
    outputs, reports = each(output) or [None] * len(tasks), each(report) or [None] * len(tasks)
    if not len(tasks) == len(lists_of_tasks) == len(outputs) == len(reports):
        raise InputError(
            f"{len(inis)} --ini and {len(inputs)} --input require {len(tasks)} --nbest files, as many "
            f"--output files, and as many --report files or none, but there are {len(lists_of_tasks)}, "
            f"{len(outputs)} and {len(reports)}"
        )
    read_inis = [MosesIni.read(path) for path in inis]
    for read in read_inis:
        read.add_scores_of_lists(feature or {})
    inis_to_write = each(output_ini) or []
    if len(inis_to_write) not in (0, len(inis)):
        raise InputError(f"{len(inis)} --ini but {len(inis_to_write)} --output-ini; the numbers must be equal")
    sums = {"sentences": 0, "not the first of their list": 0}
    selected: list[str] = []
    for (number, text), nbest_file, output_file, report_file in zip(
        tasks, lists_of_tasks, outputs, reports, strict=True
    ):
        read = read_inis[number]
        lists = read_lists(nbest_file, read, list(read_lines(text)))
        weights = np.array([read.weight(name) for name in lists.names])
        best = [int(np.argmax(rows @ weights)) for rows in lists.features]
        translations = [texts[index] for texts, index in zip(lists.texts, best, strict=True)]
        selected += translations
        if output_file is not None:
            write_lines(output_file, translations)
        figures = {"sentences": len(best), "not the first of their list": sum(index > 0 for index in best)}
        if report_file is not None:
            write_report(Path(report_file), figures)
        sums = {name: sums[name] + number for name, number in figures.items()}
    for read, path in zip(read_inis, inis_to_write, strict=False):
        read.write(path)
    return Values(selected, dict(sums))
