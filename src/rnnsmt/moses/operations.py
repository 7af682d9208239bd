"""Operations that write files for Moses or call its programs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from rnnsmt.base.arguments import (
    MEMORY_MB,
    THREADS,
    CheckpointDirs,
    InputFile,
    InputFiles,
    MemoryMb,
    ModelDirs,
    OutputDirectory,
    OutputFile,
    OutputFiles,
    Positive,
    Seeds,
    SeveralTexts,
    Text,
    TextFiles,
    Texts,
    Threads,
    each,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field
from rnnsmt.base.operations import Values, Written, operation
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_dev_set, read_lines
from rnnsmt.base.writing import write_report
from rnnsmt.config.features import UnknownScore
from rnnsmt.config.sections import (
    DistortionLimit,
    NbestSize,
    PhraseLength,
    Phrases,
    PhraseSmoothing,
    PopLimit,
    Search,
    StackSize,
    TableLimit,
    Tuning,
)
from rnnsmt.plan.paths import LM, PHRASE_TABLE, REORDERING_TABLE
from rnnsmt.registries import SEARCH_FEATURES

ModelFile = Annotated[StrPath, Field(metavar="FILE", expected="a path")]
"""Path of a file relative to the model directory; the file need not exist."""

Home = Annotated[InputFile, Field("Moses installation, with bin, scripts and tools", metavar="DIR")]

ProgramLog = Annotated[
    StrPath, Field("log file; the output of the programs is appended", metavar="FILE", expected="a path")
]

Part = Literal["alignment", "training", "tuning", "decoding"]

SearchFeatureName = Annotated[str, Field(registry=SEARCH_FEATURES)]

MosesAligner = Literal["model4", "fast_align"]

MosesOptimizer = Annotated[
    Literal["mert", "mira"], Field("optimizer; mert: minimum error rate training, as in the paper; mira: batch MIRA")
]


@operation(version=2)
def write_ini(
    output: OutputFile,
    model_dir: Annotated[InputFile, Field(metavar="DIR", required=True)] = ".",
    *,
    phrase_table: ModelFile = PHRASE_TABLE,
    reordering_table: ModelFile | None = REORDERING_TABLE,
    lm: ModelFile = LM,
    lm_order: Positive = 5,
    network: Annotated[Mapping[SearchFeatureName, ModelFile], Field(metavar="NAME=FILE")] | None = None,
    unknown: Annotated[Mapping[SearchFeatureName, UnknownScore], Field(metavar="NAME=WORD")] | None = None,
    num_features: Positive = 4,
    further_weights: Annotated[Sequence[float], Field(metavar="W")] | None = None,
    distortion_limit: DistortionLimit = Search.distortion_limit,
    table_limit: TableLimit = Search.table_limit,
) -> Written:
    r"""Write the moses.ini of a model directory with Moses' default weights before tuning.

    The files of the model need not exist yet. Paths in the ini are relative to the directory of the ini, so Moses must
    be started in that directory.

    Examples, in the directory of a run of the demo corpus:

        rnnsmt moses write-ini --model-dir results/model --lm-order 5 --output try/moses.ini
        rnnsmt moses write-ini --model-dir results/model --network nnjm=../../try/nnjm.safetensors --output try/nnjm.ini
        rnnsmt moses write-ini --model-dir results/model --phrase-table ../augmented/rnn/network1/phrase-table.gz \
            --num-features 5 --further-weights 0.2 --network cslm=../cslm/network1/model.safetensors \
            --unknown cslm=class --output try/cslm_rnn.ini

    Args:
        output: output file: moses.ini.
        model_dir: directory with the tables and the language model.
        phrase_table: phrase table, relative to ``model_dir``.
        reordering_table: lexicalised reordering table, relative to ``model_dir``; none: only distance-based
            reordering.
        lm: n-gram language model (ARPA), relative to ``model_dir``.
        lm_order: n-gram order of the language model.
        network: model files of networks in the search, relative to ``model_dir``, by the names of the features.
        unknown: for these networks, the probability of a word outside the shortlist; class (default): p(UNK), as in the
            paper; word: p(UNK) divided by the number of such words in the training text.
        num_features: number of scores per phrase pair in the phrase table.
        further_weights: weights of the additional phrase table scores, from the fifth on (default: 0.2 each).

    Returns:
        The file; its figures are the numbers of features and weights.

    Raises:
        InputError: the numbers of further weights and scores differ.
    """
    from rnnsmt.formats.default_ini import default_ini

    if further_weights is not None and len(further_weights) != num_features - 4:
        raise InputError(
            f"--further-weights: {len(further_weights)} given, but --num-features {num_features} has "
            f"{max(num_features - 4, 0)} scores after the fourth; specify one weight for each"
        )
    for option, named in (("network", network or {}), ("unknown", unknown or {})):
        for name in named:
            try:
                SEARCH_FEATURES.check(name)
            except ValueError as error:
                raise InputError(f"--{option} {name}: {error}") from None
            if name not in (network or {}):
                raise InputError(f"--unknown {name}: requires --network {name}=FILE; add it")
    ini = default_ini(
        Path(model_dir),
        str(phrase_table),
        None if reordering_table in (None, "none") else str(reordering_table),
        str(lm),
        lm_order,
        num_features,
        distortion_limit,
        table_limit,
        {name: (str(path), (unknown or {}).get(name, "class")) for name, path in (network or {}).items()},
        further_weights,
    )
    ini.write(output)
    return Written(Path(output), {"features": len(ini.features), "weights": sum(len(w) for w in ini.weights.values())})


@operation(version=1)
def align(
    source: Text,
    target: Text,
    output: OutputFile,
    *,
    aligner: MosesAligner = "model4",
    heuristic: Annotated[str, Field(metavar="NAME")] = "grow-diag-final-and",
    threads: Threads = THREADS,
    moses_home: Home,
    program_log: ProgramLog,
) -> Written:
    r"""Align a parallel corpus with MGIZA or GIZA++ (run by train-model.perl) or fast_align, and symmetrise the links.

    Example, in the directory of a run of the demo corpus:

        rnnsmt moses align --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --aligner model4 --output try/aligned.gz --threads 2 \
            --moses-home $MOSES_HOME --program-log try/moses.log

    Args:
        source: source side of the parallel corpus, tokenised.
        target: target side of the parallel corpus, tokenised.
        output: output file: one line of alignment links i-j per sentence pair.
        aligner: word aligner; model4: IBM Model 4 by MGIZA or GIZA++.
        heuristic: symmetrisation heuristic.

    Returns:
        The file; its figures are the aligner, the numbers of sentence pairs and links, and CPU time.

    Raises:
        InputError: the texts differ in length, or a program is missing or fails.
    """
    from rnnsmt.moses.installation import Installation
    from rnnsmt.moses.training import align as align_words

    with TextFiles() as files:
        texts = files.of("source", source), files.of("target", target)
        moses = Installation(moses_home)
        figures = align_words(moses, aligner, *texts, heuristic, output, Path(program_log), threads)
    return Written(Path(output), figures)


@operation(version=2)
def train(
    source: Texts,
    target: Texts,
    alignment: InputFiles,
    output_dir: OutputDirectory,
    *,
    max_length: PhraseLength = Phrases.max_length,
    smoothing: PhraseSmoothing = Phrases.smoothing,
    threads: Threads = THREADS,
    memory_mb: Annotated[MemoryMb, Field("approximate memory for sorting in MB")] = MEMORY_MB,
    moses_home: Home,
    program_log: ProgramLog,
) -> Written:
    r"""Train lexical, phrase and reordering tables on an aligned corpus with train-model.perl.

    The n-th files of source, target and alignment are parallel. To use two alignments of the same text, specify the
    text twice. Repeated links of a line count once, and their order has no effect.

    Example, in the directory of a run of the demo corpus:

        rnnsmt moses train --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --alignment try/aligned.gz --max-length 7 \
            --output-dir try/model --threads 2 --moses-home $MOSES_HOME --program-log try/moses.log

    Args:
        source: source side of the parallel corpus, tokenised.
        target: target side of the parallel corpus, tokenised.
        alignment: alignment links i-j, one line per sentence pair.
        output_dir: output directory of the model.

    Returns:
        The directory; its figures are the numbers of sentence and phrase pairs, and CPU time.

    Raises:
        InputError: text and alignment differ in length, a link points beyond the end of a sentence, or a program is
            missing or fails.
    """
    from rnnsmt.moses.installation import Installation
    from rnnsmt.moses.training import train as train_tables

    with TextFiles() as files:
        texts = files.all_of("source", source), files.all_of("target", target)
        figures = train_tables(
            Installation(moses_home), *texts, each(alignment), Path(output_dir), Path(program_log),
            max_length=max_length, smoothing=smoothing, threads=threads, memory_mb=memory_mb,
        )  # fmt: skip
    return Written(Path(output_dir), figures)


@operation(version=1)
def decode(
    ini: InputFiles,
    input: SeveralTexts,
    output: OutputFiles,
    output_details: OutputFiles,
    report: OutputFiles,
    *,
    model_dir: ModelDirs = None,
    pop_limit: PopLimit = Search.pop_limit,
    stack: StackSize = Search.stack,
    threads: Threads = THREADS,
    moses_home: Home,
    program_log: ProgramLog,
) -> Values[str]:
    r"""Translate tokenised texts with the Moses decoder; inputs and outputs are the same as in `search decode`.

    Example, in the directory of a run of the demo corpus:

        rnnsmt moses decode --ini results/systems/baseline/run1/moses.ini --model-dir results/model \
            --input results/corpus/joined/truecased/dev.en.gz --output try/dev.out \
            --output-details try/dev.details --report try/dev.json --pop-limit 150 --stack 100 --threads 2 \
            --moses-home $MOSES_HOME --program-log try/moses.log

    Args:
        ini: moses.ini with weights; paths in it are relative to its directory.
        input: input files: tokenised text, one segment per line.
        output: output files, one translation per line; first one file per ``input`` for the first ``ini``, then for
            the second ``ini``, and so on.
        output_details: output files: phrases and features of every translation, as 1-best lists in Moses format.
        report: output files: search statistics for each ``output`` (JSON).

    Returns:
        The translations in the order of ``output``.

    Raises:
        InputError: the numbers of files do not match, or a program is missing or fails.
    """
    inis = each(ini)
    outputs, details, reports = each(output), each(output_details), each(report)
    with TextFiles() as files:
        inputs = files.each_of("input", input)
        tasks = len(inis) * len(inputs)
        if not tasks == len(outputs) == len(details) == len(reports):
            raise InputError(
                f"{len(inis)} --ini and {len(inputs)} --input require {tasks} --output, --output-details and "
                f"--report files each, but there are {len(outputs)}, {len(details)} and {len(reports)}"
            )

        from rnnsmt.formats.ini import same_models
        from rnnsmt.moses.engine import Limits
        from rnnsmt.moses.engine import decode as translate
        from rnnsmt.moses.installation import Installation

        moses, limits = Installation(moses_home), Limits(pop_limit, stack, threads)
        all_stats = []
        for directory, alike in same_models(inis, each(model_dir)):
            for index, read in alike.items():
                for text, path in enumerate(inputs):
                    task = index * len(inputs) + text
                    of_task = path, outputs[task], details[task]
                    all_stats.append(translate(moses, read, directory, *of_task, Path(program_log), limits))
                    shown = {"pop_limit": limits.pop_limit, "stack": limits.stack, "engine": "moses"}
                    write_report(reports[task], {**all_stats[-1], **shown})
    figures = {name: round(sum(stats[name] for stats in all_stats), 6) for name in all_stats[0]}
    return Values((line for path in outputs for line in read_lines(path)), figures)


@operation(version=2)
def tune(
    ini: InputFiles,
    source: Text,
    reference: SeveralTexts,
    output_ini: OutputFiles,
    output_history: OutputFiles,
    checkpoint_dir: CheckpointDirs,
    *,
    seed: Seeds = 1,
    model_dir: ModelDirs = None,
    optimizer: MosesOptimizer = "mert",
    nbest: NbestSize = Tuning.nbest,
    max_iterations: Positive = 25,
    pop_limit: PopLimit = Search.pop_limit,
    stack: StackSize = Search.stack,
    threads: Threads = THREADS,
    moses_home: Home,
    program_log: ProgramLog,
) -> Values[float]:
    r"""Tune weights with mert-moses.pl and the Moses decoder; inputs and outputs are the same as in `tuning tune`.

    The result is the last iteration that was decoded. If mert-moses.pl ends at the maximum number of iterations, its
    own result is the weights of one further optimisation, with which it does not decode. A run that was interrupted
    resumes from its ``checkpoint_dir`` after the last complete iteration.

    Example, in the directory of a run of the demo corpus:

        rnnsmt moses tune --ini results/model/moses.ini --model-dir results/model \
            --source results/corpus/joined/truecased/dev.en.gz \
            --reference results/corpus/joined/truecased/dev.fr.gz --seed 2 --output-ini try/tuned/moses.ini \
            --output-history try/tuned.json --checkpoint-dir try/tuned.checkpoint --nbest 50 --max-iterations 2 \
            --pop-limit 150 --stack 100 --threads 2 --moses-home $MOSES_HOME --program-log try/moses.log

    Args:
        ini: moses.ini with the initial weights; one file, or one per run.
        source: source side of the dev set, tokenised.
        reference: one or more references of the dev set, tokenised.
        output_ini: output file of each run: moses.ini with the tuned weights.
        output_history: output file of each run: BLEU and weights of every iteration (JSON).
        checkpoint_dir: working directory of mert-moses.pl for each run, used to resume an interrupted run.
        max_iterations: maximum number of iterations.

    Returns:
        BLEU of the dev set of each run, in percent.

    Raises:
        InputError: the numbers of files and seeds differ, ``checkpoint_dir`` has an interrupted run with other
            settings or inputs, or a program is missing or fails.
    """
    seeds, inis = each(seed), each(ini)
    runs = len(seeds)
    outputs, histories, directories = each(output_ini), each(output_history), each(checkpoint_dir)
    if not runs == len(outputs) == len(histories) == len(directories):
        raise InputError(f"{runs} --seed values require {runs} --output-ini, --output-history and --checkpoint-dir")
    if len(inis) not in (1, runs):
        raise InputError(f"{len(inis)} --ini for {runs} runs; specify one, or one for each")

    from rnnsmt.formats.ini import same_models
    from rnnsmt.moses.engine import Limits
    from rnnsmt.moses.engine import tune as tune_weights
    from rnnsmt.moses.installation import Installation

    moses, limits = Installation(moses_home), Limits(pop_limit, stack, threads)
    bleu = [0.0] * runs
    with TextFiles() as files:
        texts = files.of("source", source), files.each_of("reference", reference)
        read_dev_set(*texts)
        for directory, alike in same_models(inis * runs if len(inis) == 1 else inis, each(model_dir)):
            for run, read in alike.items():
                result = tune_weights(
                    moses, read, directory, *texts, Path(outputs[run]), Path(histories[run]), Path(directories[run]),
                    Path(program_log), limits, seed=seeds[run], optimizer=optimizer, nbest=nbest,
                    max_iterations=max_iterations,
                )  # fmt: skip
                bleu[run] = float(str(result["dev BLEU"]))
    return Values(bleu, {"runs": runs, "dev BLEU": sum(bleu) / runs})
