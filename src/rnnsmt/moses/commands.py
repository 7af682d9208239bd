"""The commands for the files and programs of Moses."""

import argparse
import math
from pathlib import Path

from rnnsmt.base.io import InputError, write_report
from rnnsmt.base.options import add_threads, positive
from rnnsmt.config.derived import MOSES_OPTIMIZERS, PARTS
from rnnsmt.config.paths import LM, PHRASE_TABLE, REORDERING_TABLE
from rnnsmt.moses.ini import (
    CSLM_UNKNOWN,
    RESCORING,
    Feature,
    MosesIni,
)


def ini_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.base.fields import add_fields
    from rnnsmt.config.sections import Search

    add = parser.add_argument
    add("--model-dir", type=Path, required=True, metavar="DIR", help="directory with the tables and the language model")
    add("--output", type=Path, required=True, metavar="FILE", help="output file: moses.ini")
    add("--phrase-table", default=PHRASE_TABLE, metavar="FILE", help="phrase table, relative to --model-dir")
    add("--reordering-table", default=REORDERING_TABLE, metavar="FILE",
        help="lexicalised reordering table, relative to --model-dir; none: only distance-based reordering")  # fmt: skip
    add("--lm", default=LM, metavar="FILE", help="n-gram language model (ARPA), relative to --model-dir")
    add("--lm-order", type=int, default=5, help="n-gram order of the language model")
    add("--cslm", metavar="FILE", help="model file of a continuous-space language model, relative to --model-dir")
    add("--cslm-unknown", choices=CSLM_UNKNOWN, default=CSLM_UNKNOWN[0],
        help="CSLM probability of a word outside the shortlist; class: p(UNK), as in the paper; word: p(UNK) divided "
        "by the number of such words in the training text")  # fmt: skip
    add("--nnjm", metavar="FILE", help="model file of a joint model, relative to --model-dir")
    add("--nnjm-unknown", choices=CSLM_UNKNOWN, default=CSLM_UNKNOWN[0],
        help="joint model probability of a word outside the shortlist; see --cslm-unknown")  # fmt: skip
    add("--num-features", type=int, default=4, help="number of scores per phrase pair in the phrase table")
    add("--further-weights", type=float, nargs="+", metavar="W",
        help="weights of the additional phrase table scores, from the fifth on (default: 0.2 each)")  # fmt: skip
    add_fields(parser, Search, "distortion_limit", "table_limit")


def ini(args: argparse.Namespace) -> dict[str, object]:
    """Write the moses.ini of a model directory with Moses' default weights before tuning.

    The files that it names need not exist yet. Paths in the ini are relative to its directory. Moses itself reads the
    file if it is started in that directory.

    Example, in the directory of a run of the demo corpus:

        rnnsmt moses ini --model-dir results/model --lm-order 5 --output try/moses.ini
    """
    from rnnsmt.moses.default_ini import default_ini

    reordering = None if args.reordering_table == "none" else args.reordering_table
    networks = {"CSLM": (args.cslm, args.cslm_unknown), "NNJM": (args.nnjm, args.nnjm_unknown)}
    neural = {kind: (path, unknown) for kind, (path, unknown) in networks.items() if path}
    if args.num_features < 1 or args.lm_order < 1:
        raise InputError("--num-features and --lm-order must be at least 1")
    if args.further_weights is not None and len(args.further_weights) != args.num_features - 4:
        raise InputError(
            f"--further-weights: {len(args.further_weights)} given, but --num-features {args.num_features} has "
            f"{max(args.num_features - 4, 0)} scores after the fourth; specify one weight for each"
        )
    ini = default_ini(
        args.model_dir,
        args.phrase_table,
        reordering,
        args.lm,
        args.lm_order,
        args.num_features,
        args.distortion_limit,
        args.table_limit,
        neural,
        args.further_weights,
    )
    ini.write(args.output)
    return {"features": len(ini.features), "weights": sum(len(w) for w in ini.weights.values())}


def add_feature_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--ini", required=True, nargs="+", metavar="FILE", help="moses.ini used to create the n-best lists")
    add("--output", required=True, nargs="+", metavar="FILE",
        help="output files: moses.ini with the feature, one for each --ini")  # fmt: skip
    add("--name", default="LSTM0", metavar="NAME", help="name of the feature in the n-best lists")
    add("--weight", type=float, required=True, metavar="W",
        help="weight of the feature; 1: unweighted mean of system score and feature")  # fmt: skip


def add_feature(args: argparse.Namespace) -> dict[str, object]:
    r"""Add the feature of rescored n-best lists to a moses.ini, for `tuning optimize` and `tuning rerank`.

    The feature has the type Rescored. Decoders cannot compute such a feature and reject the ini. The other weights are
    not changed. With weight 1, the score of a hypothesis is the sum of the system score and the feature value.

    Example, in the directory of a run of the demo corpus:

        rnnsmt moses add-feature --ini results/systems/baseline/run1/moses.ini --weight 1 --output try/even.ini
    """
    if len(args.ini) != len(args.output):
        raise InputError(f"{len(args.ini)} --ini but {len(args.output)} --output; the numbers of files must be equal")
    if not args.name.isidentifier() or not math.isfinite(args.weight):
        raise InputError(
            f"--name {args.name} --weight {args.weight}: the name must have the form LSTM0, and the weight must be "
            "finite"
        )
    for path, output in zip(args.ini, args.output, strict=True):
        ini = MosesIni.read(path)
        if args.name in ini.weights:
            raise InputError(f"{path}: already has a feature {args.name}; choose another --name")
        ini.features.append(Feature(RESCORING, args.name, {"name": args.name}))
        ini.weights[args.name] = [args.weight]
        ini.write(output)
    return {"inis": len(args.ini)}


def add_installation(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that runs Moses programs."""
    parser.add_argument("--moses-home", required=True, metavar="DIR",
        help="Moses installation, with bin, scripts and tools")  # fmt: skip
    parser.add_argument("--program-log", type=Path, required=True, metavar="FILE",
        help="log file; the output of the programs is appended")  # fmt: skip


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the limits of Moses' decoder."""
    from rnnsmt.base.fields import add_fields
    from rnnsmt.config.sections import Search

    add_fields(parser, Search, "pop_limit", "stack")
    add_threads(parser)


def add_model_dir(parser: argparse.ArgumentParser) -> None:
    """Add ``--model-dir``, the directory of filtered tables."""
    parser.add_argument("--model-dir", nargs="+", metavar="DIR",
        help="directory in which model files are looked up by base name before the paths in moses.ini are used; one, "
        "or one for each --ini")  # fmt: skip


def align_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--source", required=True, metavar="FILE", help="source side of the parallel corpus, tokenised")
    add("--target", required=True, metavar="FILE", help="target side of the parallel corpus, tokenised")
    add("--aligner", choices=("model4", "fast_align"), default="model4",
        help="word aligner; model4: IBM Model 4 by MGIZA or GIZA++")  # fmt: skip
    add("--heuristic", default="grow-diag-final-and", metavar="NAME", help="symmetrisation heuristic")
    add("--output", required=True, metavar="FILE",
        help="output file: one line of alignment links i-j per sentence pair")  # fmt: skip
    add_threads(parser)
    add_installation(parser)


def align(args: argparse.Namespace) -> dict[str, object]:
    r"""Align a parallel corpus with MGIZA or GIZA++ (run by train-model.perl) or fast_align, and symmetrise the links.

    Example, in the directory of a run of the demo corpus:

        rnnsmt moses align --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --aligner model4 --output try/aligned.gz --threads 2 \
            --moses-home $MOSES_HOME --program-log try/moses.log
    """
    from rnnsmt.moses.installation import Installation
    from rnnsmt.moses.training import align as align_words

    return align_words(
        Installation(args.moses_home), args.aligner, args.source, args.target, args.heuristic, args.output,
        args.program_log, args.threads,
    )  # fmt: skip


def train_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.base.fields import add_fields
    from rnnsmt.config.sections import Phrases

    add = parser.add_argument
    add("--source", nargs="+", required=True, metavar="FILE", help="source side of the parallel corpus, tokenised")
    add("--target", nargs="+", required=True, metavar="FILE", help="target side of the parallel corpus, tokenised")
    add("--alignment", nargs="+", required=True, metavar="FILE", help="alignment links i-j, one line per sentence pair")
    add_fields(parser, Phrases, "max_length")
    add_fields(parser, Phrases, "smoothing", default="none")
    add("--output-dir", type=Path, required=True, metavar="DIR", help="output directory of the model")
    add_threads(parser)
    add("--memory-mb", type=positive, default=2000, metavar="N", help="approximate memory for sorting in MB")
    add_installation(parser)


def train(args: argparse.Namespace) -> dict[str, object]:
    r"""Train lexical, phrase and reordering tables on an aligned corpus with train-model.perl.

    Multiple files are concatenated, with texts and alignments in the same order. To use two alignments of the same
    text, specify the text twice.

    Example, in the directory of a run of the demo corpus:

        rnnsmt moses train --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --alignment try/aligned.gz --max-length 7 \
            --output-dir try/model --threads 2 --moses-home $MOSES_HOME --program-log try/moses.log
    """
    from rnnsmt.moses.installation import Installation
    from rnnsmt.moses.training import train as train_tables

    return train_tables(
        Installation(args.moses_home), args.source, args.target, args.alignment, args.output_dir, args.program_log,
        max_length=args.max_length, smoothing=args.smoothing, threads=args.threads, memory_mb=args.memory_mb,
    )  # fmt: skip


def decode_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--ini", nargs="+", required=True, metavar="FILE",
        help="moses.ini with weights; paths in it are relative to its directory")  # fmt: skip
    add("--input", nargs="+", required=True, metavar="FILE", help="input files: tokenised text, one segment per line")
    add("--output", nargs="+", required=True, metavar="FILE",
        help="output files, one translation per line; first one file per --input for the first --ini, then for the "
        "second --ini, and so on")  # fmt: skip
    add("--output-details", nargs="+", required=True, metavar="FILE",
        help="output files: phrases and features of every translation, as 1-best lists in Moses format")  # fmt: skip
    add("--report", nargs="+", required=True, metavar="FILE",
        help="output files: search statistics for each --output (JSON)")  # fmt: skip
    add_model_dir(parser)
    add_limits(parser)
    add_installation(parser)


def decode(args: argparse.Namespace) -> dict[str, object]:
    r"""Translate tokenised texts with the Moses decoder; inputs and outputs are the same as in `search decode`.

    Example, in the directory of a run of the demo corpus:

        rnnsmt moses decode --ini try/tuned/moses.ini --model-dir results/model/filtered/all \
            --input results/corpus/joined/truecased/dev.en.gz --output try/dev.out \
            --output-details try/dev.details --report try/dev.json --pop-limit 150 --stack 100 --threads 2 \
            --moses-home $MOSES_HOME --program-log try/moses.log
    """
    tasks = len(args.ini) * len(args.input)
    if not tasks == len(args.output) == len(args.output_details) == len(args.report):
        raise InputError(
            f"{len(args.ini)} --ini and {len(args.input)} --input require {tasks} --output, --output-details and "
            f"--report files each, but there are {len(args.output)}, {len(args.output_details)} and {len(args.report)}"
        )

    from rnnsmt.moses.engine import Limits
    from rnnsmt.moses.engine import decode as translate
    from rnnsmt.moses.ini import same_models
    from rnnsmt.moses.installation import Installation

    moses, limits = Installation(args.moses_home), Limits(args.pop_limit, args.stack, args.threads)
    all_stats = []
    for directory, inis in same_models(args.ini, args.model_dir):
        for index, ini in inis.items():
            for text, path in enumerate(args.input):
                task = index * len(args.input) + text
                files = path, args.output[task], args.output_details[task]
                all_stats.append(translate(moses, ini, directory, *files, args.program_log, limits))
                shown = {"pop_limit": limits.pop_limit, "stack": limits.stack, "engine": "moses"}
                write_report(args.report[task], {**all_stats[-1], **shown})
    return {name: round(sum(stats[name] for stats in all_stats), 6) for name in all_stats[0]}


def tune_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.base.fields import add_fields
    from rnnsmt.config.sections import Tuning

    add = parser.add_argument
    add("--ini", nargs="+", required=True, metavar="FILE",
        help="moses.ini with the initial weights; one file, or one per run")  # fmt: skip
    add("--source", required=True, metavar="FILE", help="source side of the dev set, tokenised")
    add("--reference", nargs="+", required=True, metavar="FILE",
        help="one or more references of the dev set, tokenised")  # fmt: skip
    add("--seed", type=int, nargs="+", required=True, metavar="N", help="random seed of each run")
    add("--output-ini", nargs="+", required=True, type=Path, metavar="FILE",
        help="output file of each run: moses.ini with the tuned weights")  # fmt: skip
    add("--output-history", nargs="+", required=True, type=Path, metavar="FILE",
        help="output file of each run: BLEU and weights of every iteration (JSON)")  # fmt: skip
    add("--checkpoint-dir", nargs="+", required=True, type=Path, metavar="DIR",
        help="working directory of mert-moses.pl for each run, used to resume an interrupted run")  # fmt: skip
    add_model_dir(parser)
    add_fields(parser, Tuning, "optimizer", choices=tuple(MOSES_OPTIMIZERS))
    add_fields(parser, Tuning, "nbest")
    add("--max-iterations", type=positive, default=25, metavar="N", help="maximum number of iterations")
    add_limits(parser)
    add_installation(parser)


def tune(args: argparse.Namespace) -> dict[str, object]:
    r"""Tune weights with mert-moses.pl and the Moses decoder; inputs and outputs are the same as in `tuning tune`.

    The result is the last iteration that was decoded. If mert-moses.pl ends at the maximum number of iterations, its
    own result is one optimisation further, whose weights it does not decode. A run that was interrupted resumes from
    its --checkpoint-dir after the last complete iteration.

    Example, in the directory of a run of the demo corpus:

        rnnsmt moses tune --ini results/model/moses.ini --model-dir results/model/filtered/dev \
            --source results/corpus/joined/truecased/dev.en.gz \
            --reference results/corpus/joined/truecased/dev.fr.gz --seed 2 --output-ini try/tuned/moses.ini \
            --output-history try/tuned.json --checkpoint-dir try/tuned.checkpoint --nbest 50 --max-iterations 2 \
            --pop-limit 150 --stack 100 --threads 2 --moses-home $MOSES_HOME --program-log try/moses.log
    """
    runs = len(args.seed)
    if not runs == len(args.output_ini) == len(args.output_history) == len(args.checkpoint_dir):
        raise InputError(f"{runs} --seed values require {runs} --output-ini, --output-history and --checkpoint-dir")
    if len(args.ini) not in (1, runs):
        raise InputError(f"{len(args.ini)} --ini for {runs} runs; specify one, or one for each")

    from rnnsmt.moses.engine import Limits
    from rnnsmt.moses.engine import tune as tune_weights
    from rnnsmt.moses.ini import same_models
    from rnnsmt.moses.installation import Installation

    moses, limits = Installation(args.moses_home), Limits(args.pop_limit, args.stack, args.threads)
    inis = args.ini * runs if len(args.ini) == 1 else args.ini
    results: list[dict[str, object]] = [{}] * runs
    for directory, alike in same_models(inis, args.model_dir):
        for run, ini in alike.items():
            results[run] = tune_weights(
                moses, ini, directory, args.source, args.reference, args.output_ini[run], args.output_history[run],
                args.checkpoint_dir[run], args.program_log, limits, seed=args.seed[run], optimizer=args.optimizer,
                nbest=args.nbest, max_iterations=args.max_iterations,
            )  # fmt: skip
    bleu = [float(str(result["dev BLEU"])) for result in results]
    return {"runs": runs, "dev BLEU": sum(bleu) / runs}


def check_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--moses-home", required=True, metavar="DIR", help="Moses installation, with bin, scripts and tools")
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="steps for which Moses is used")
    add("--aligners", nargs="+", choices=("model4", "fast_align"), default=["model4"],
        help="word aligners to use")  # fmt: skip
    add("--lm-order", type=positive, default=5, metavar="N",
        help="n-gram order of the language models to use")  # fmt: skip


def check(args: argparse.Namespace) -> dict[str, object]:
    """Check that a Moses installation has the required programs, and that its decoder works.

    All missing programs are listed. For tuning and decoding, the decoder translates one word with a small model that
    has a language model of the given order and a lexicalised reordering table.

    Example, in the directory of a run of the demo corpus:

        rnnsmt moses check --moses-home $MOSES_HOME
    """
    from rnnsmt.moses.installation import Installation, Needs

    moses = Installation(args.moses_home)
    needs = Needs(args.parts, args.aligners, args.lm_order)
    moses.check(needs)
    return {"programs": len(moses.about(needs)), "parts": " ".join(args.parts)}
