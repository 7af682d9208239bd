"""The commands for Moses' files and programs."""

import argparse
import math
from pathlib import Path

from rnnsmt.config import PARTS
from rnnsmt.io import InputError, write_json
from rnnsmt.moses.ini import CSLM_UNKNOWN, RESCORING, Feature, MosesIni
from rnnsmt.options import positive


def ini_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model-dir", type=Path, required=True, help="folder with the tables and the LM")
    parser.add_argument("--output", type=Path, required=True, help="the moses.ini to write")
    parser.add_argument("--phrase-table", default="phrase-table.gz", help="file name inside the model directory")
    parser.add_argument(
        "--reordering-table",
        default="reordering-table.wbe-msd-bidirectional-fe.gz",
        help="file name inside the model directory; 'none' for distance-based reordering alone",
    )
    parser.add_argument(
        "--lm", nargs="+", default=["lm.arpa.gz"], metavar="FILE", help="in the model directory; each is a feature"
    )
    parser.add_argument("--lm-order", type=int, default=5, help="order of the LMs")
    parser.add_argument(
        "--cslm", metavar="FILE", help="model of a continuous-space LM, relative to the model directory"
    )
    parser.add_argument(
        "--cslm-unknown",
        choices=CSLM_UNKNOWN,
        default=CSLM_UNKNOWN[0],
        help="what it gives words outside its shortlist: the probability of all of them, as in the paper, or a share",
    )
    parser.add_argument("--num-features", type=int, default=4, help="score columns of the phrase table")
    parser.add_argument(
        "--further-weights",
        type=float,
        nargs="+",
        metavar="W",
        help="weights of the columns after the fourth, where they should not be 0.2",
    )
    parser.add_argument("--distortion-limit", type=int, default=6, help="in words, -1 for none")
    parser.add_argument("--table-limit", type=int, default=20, help="translations per source phrase, 0 for all")


def ini(args: argparse.Namespace) -> dict[str, object]:
    """Write the ``moses.ini`` of a freshly trained model directory, with Moses' default weights before tuning.

    Paths inside are relative to the folder of the ini. Real Moses reads the file when it is started in that folder.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt moses ini --model-dir results/model --lm-order 5 --output try/moses.ini
    """
    from rnnsmt.moses.ini import default_ini

    reordering = None if args.reordering_table == "none" else args.reordering_table
    for name in [args.phrase_table, *args.lm, *(name for name in (reordering, args.cslm) if name)]:
        if not (args.model_dir / name).is_file():
            raise InputError(f"{args.model_dir / name}: no such file; build the model before its moses.ini")
    if args.num_features < 1 or args.lm_order < 1 or args.table_limit < 0 or args.distortion_limit < -1:
        raise InputError("--num-features and --lm-order start at 1, --table-limit at 0, --distortion-limit at -1")
    if args.further_weights is not None and len(args.further_weights) != args.num_features - 4:
        raise InputError(
            f"--further-weights: {len(args.further_weights)} given, but --num-features {args.num_features} leaves "
            f"{max(args.num_features - 4, 0)} columns after the fourth; give one for each"
        )
    ini = default_ini(
        args.model_dir,
        args.phrase_table,
        reordering,
        args.lm[0],
        args.lm_order,
        args.num_features,
        args.distortion_limit,
        args.table_limit,
        args.cslm,
        args.further_weights,
        args.cslm_unknown,
        args.lm[1:],
    )
    ini.write(args.output)
    return {"features": len(ini.features), "weights": sum(len(w) for w in ini.weights.values())}


def add_feature_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--ini", required=True, nargs="+", metavar="FILE", help="moses.ini of the lists")
    add("--output", required=True, nargs="+", metavar="FILE", help="the moses.ini to write, as many")
    add("--kind", choices=RESCORING, default=RESCORING[0], help="the kind of the feature")
    add("--name", default="LSTM0", metavar="NAME", help="as the lists call it")
    add("--weight", type=float, required=True, metavar="W", help="1 for an even average of both scores")


def add_feature(args: argparse.Namespace) -> dict[str, object]:
    r"""Add a feature that n-best lists have and no search: `tuning optimise` and `tuning rerank` read such an ini.

    The other weights stay. With weight 1 the score of a translation is the sum of the system's and of the feature.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt moses add-feature --ini results/systems/baseline/run1/moses.ini --weight 1 --output try/even.ini
    """
    if len(args.ini) != len(args.output):
        raise InputError(f"{len(args.ini)} --ini but {len(args.output)} --output; give as many of each")
    if not args.name.isidentifier() or not math.isfinite(args.weight):
        raise InputError(f"--name {args.name} --weight {args.weight}: a name like LSTM0 and a finite weight are needed")
    for path, output in zip(args.ini, args.output, strict=True):
        ini = MosesIni.read(path)
        if args.name in ini.weights:
            raise InputError(f"{path}: has a feature {args.name} already; give another --name")
        ini.features.append(Feature(args.kind, args.name, {"name": args.name}))
        ini.weights[args.name] = [args.weight]
        ini.write(output)
    return {"inis": len(args.ini)}


def add_installation(parser: argparse.ArgumentParser) -> None:
    """The options of every command that runs programs of Moses."""
    parser.add_argument("--moses-home", required=True, metavar="DIR", help="an installation: bin, scripts, tools")
    parser.add_argument("--program-log", type=Path, required=True, metavar="FILE", help="what its programs print")


def add_limits(parser: argparse.ArgumentParser) -> None:
    """How Moses' decoder searches."""
    add = parser.add_argument
    add("--pop-limit", type=positive, default=1000, metavar="N", help="of cube pruning")
    add("--stack", type=positive, default=1000, metavar="N", help="hypotheses kept per stack")
    add("--threads", type=positive, default=1, metavar="N", help="of the decoder")


def align_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--source", required=True, metavar="FILE", help="tokenised source text")
    add("--target", required=True, metavar="FILE", help="tokenised target text, in parallel")
    add("--aligner", choices=("model4", "fast_align"), default="model4", help="MGIZA or GIZA++; or fast_align")
    add("--heuristic", default="grow-diag-final-and", metavar="NAME", help="how both directions are combined")
    add("--output", required=True, metavar="FILE", help="links i-j, line by line")
    add("--threads", type=positive, default=1, metavar="N", help="of MGIZA")
    add_installation(parser)


def align(args: argparse.Namespace) -> dict[str, object]:
    r"""Align words by MGIZA or GIZA++ as train-model.perl calls them, or by fast_align, and combine both directions.

    Example, in the folder of a run of the embedded corpus:

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
    from rnnsmt.moses.training import SCORE_OPTIONS

    add = parser.add_argument
    add("--source", nargs="+", required=True, metavar="FILE", help="tokenised source text")
    add("--target", nargs="+", required=True, metavar="FILE", help="tokenised target text, in parallel")
    add("--alignment", nargs="+", required=True, metavar="FILE", help="links i-j, line by line")
    add("--max-length", type=positive, default=7, metavar="N", help="words of a phrase, each side")
    add("--smoothing", choices=SCORE_OPTIONS, default="none", help="of phrase probabilities")
    add("--output-dir", type=Path, required=True, metavar="DIR", help="the model directory")
    add("--threads", type=positive, default=1, metavar="N", help="of extraction and sorting")
    add("--memory-mb", type=positive, default=2000, metavar="N", help="about how much memory sorting may use")
    add_installation(parser)


def train(args: argparse.Namespace) -> dict[str, object]:
    r"""Make lexical, phrase and reordering tables of aligned text by train-model.perl.

    Several texts with their alignments are taken as one; for two alignments of the same text name the text twice.

    Example, in the folder of a run of the embedded corpus:

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
    add("--ini", nargs="+", required=True, metavar="FILE", help="moses.ini with weights; paths relative to its folder")
    add("--input", nargs="+", required=True, metavar="FILE", help="tokenised texts, one segment a line")
    add("--output", nargs="+", required=True, metavar="FILE", help="translations; of several --ini in their order")
    add("--output-details", nargs="+", required=True, metavar="FILE", help="phrases and features of every output")
    add("--report", nargs="+", required=True, metavar="FILE", help="figures of the search for every text, JSON")
    add("--model-dir", nargs="+", metavar="DIR", help="as of `search decode`")
    add_limits(parser)
    add_installation(parser)


def decode(args: argparse.Namespace) -> dict[str, object]:
    r"""Translate tokenised texts with Moses' decoder; the files are those of `search decode`.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt moses decode --ini try/tuned/moses.ini --model-dir results/model/filtered/all \
            --input results/corpus/joined/truecased/dev.en.gz --output try/dev.out \
            --output-details try/dev.details --report try/dev.json --pop-limit 150 --stack 100 --threads 2 \
            --moses-home $MOSES_HOME --program-log try/moses.log
    """
    tasks = len(args.ini) * len(args.input)
    if not tasks == len(args.output) == len(args.output_details) == len(args.report):
        raise InputError(
            f"{len(args.ini)} --ini and {len(args.input)} --input need {tasks} --output, --output-details, --report, "
            f"but there are {len(args.output)}, {len(args.output_details)} and {len(args.report)}"
        )

    from rnnsmt.moses.decoding import Limits
    from rnnsmt.moses.decoding import decode as translate
    from rnnsmt.moses.ini import same_models
    from rnnsmt.moses.installation import Installation

    moses, limits = Installation(args.moses_home), Limits(args.pop_limit, args.stack, args.threads)
    found = []
    for folder, inis in same_models(args.ini, args.model_dir):
        for place, ini in inis.items():
            for text, path in enumerate(args.input):
                task = place * len(args.input) + text
                files = path, args.output[task], args.output_details[task]
                found.append(translate(moses, ini, folder, *files, args.program_log, limits))
                shown = {"pop_limit": limits.pop_limit, "stack": limits.stack, "engine": "moses"}
                write_json(args.report[task], {**found[-1], **shown})
    return {name: round(sum(stats[name] for stats in found), 6) for name in found[0]}


def tune_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.moses.decoding import OPTIMISERS

    add = parser.add_argument
    add("--ini", nargs="+", required=True, metavar="FILE", help="untuned moses.ini: one, or one for each run")
    add("--source", required=True, metavar="FILE", help="tokenised dev text")
    add("--reference", nargs="+", required=True, metavar="FILE", help="tokenised reference, several of one text")
    add("--seed", type=int, nargs="+", required=True, metavar="N", help="of each run")
    add("--output-ini", nargs="+", required=True, type=Path, metavar="FILE", help="with the tuned weights, of each run")
    add("--output-history", nargs="+", required=True, type=Path, metavar="FILE", help="iterations of each run, JSON")
    add("--state-dir", nargs="+", required=True, type=Path, metavar="DIR", help="what mert-moses.pl leaves of each run")
    add("--model-dir", nargs="+", metavar="DIR", help="as of `search decode`")
    add("--optimiser", choices=OPTIMISERS, default="mert", help="MERT, kbmira or PRO")
    add("--nbest", type=positive, default=100, metavar="N", help="translations of a list")
    add("--max-iterations", type=positive, default=25, metavar="N")
    add_limits(parser)
    add_installation(parser)


def tune(args: argparse.Namespace) -> dict[str, object]:
    r"""Tune weights by mert-moses.pl, which decodes with Moses; the files are those of `tuning mert`.

    The weights of the iteration that translates the dev text best are kept. A run that was interrupted goes on in its
    --state-dir after its last iteration.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt moses tune --ini results/model/moses.ini --model-dir results/model/filtered/dev \
            --source results/corpus/joined/truecased/dev.en.gz \
            --reference results/corpus/joined/truecased/dev.fr.gz --seed 2 --output-ini try/tuned/moses.ini \
            --output-history try/tuned.json --state-dir try/tuned.state --nbest 50 --max-iterations 2 \
            --pop-limit 150 --stack 100 --threads 2 --moses-home $MOSES_HOME --program-log try/moses.log
    """
    runs = len(args.seed)
    if not runs == len(args.output_ini) == len(args.output_history) == len(args.state_dir):
        raise InputError(f"{runs} --seed need as many --output-ini, --output-history and --state-dir")
    if len(args.ini) not in (1, runs):
        raise InputError(f"{len(args.ini)} --ini for {runs} runs; give one, or one for each")

    from rnnsmt.moses.decoding import Limits
    from rnnsmt.moses.decoding import tune as tune_weights
    from rnnsmt.moses.ini import same_models
    from rnnsmt.moses.installation import Installation

    moses, limits = Installation(args.moses_home), Limits(args.pop_limit, args.stack, args.threads)
    inis = args.ini * runs if len(args.ini) == 1 else args.ini
    found: list[dict[str, object]] = [{}] * runs
    for folder, alike in same_models(inis, args.model_dir):
        for run, ini in alike.items():
            found[run] = tune_weights(
                moses, ini, folder, args.source, args.reference, args.output_ini[run], args.output_history[run],
                args.state_dir[run], args.program_log, limits, seed=args.seed[run], optimiser=args.optimiser,
                nbest=args.nbest, max_iterations=args.max_iterations,
            )  # fmt: skip
    bleu = [float(str(one["dev BLEU"])) for one in found]
    return {"runs": runs, "dev BLEU": sum(bleu) / runs}


def check_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--moses-home", required=True, metavar="DIR", help="an installation: bin, scripts, tools")
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what it is to do")
    add("--aligners", nargs="+", choices=("model4", "fast_align"), default=["model4"])
    add("--optimiser", choices=("mert", "mira", "pro"), default="mert")
    add("--lm-order", type=positive, default=5, metavar="N", help="of the language model")


def check(args: argparse.Namespace) -> dict[str, object]:
    """See whether an installation of Moses has what a part of the pipeline needs, and that its decoder translates.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt moses check --moses-home $MOSES_HOME
    """
    from rnnsmt.moses.installation import Installation, Needs

    moses = Installation(args.moses_home)
    needs = Needs(args.parts, args.aligners, args.optimiser, args.lm_order)
    moses.check(needs)
    return {"programs": len(moses.about(needs)), "parts": " ".join(args.parts)}
