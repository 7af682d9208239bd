"""Operations of the phrase-based decoder."""

import time
from pathlib import Path
from typing import Annotated

from rnnsmt.base.arguments import (
    THREADS,
    InputFile,
    InputFiles,
    ModelDirs,
    OptionalOutputs,
    OutputDirectory,
    OutputFiles,
    SeveralTexts,
    TextFiles,
    Threads,
    each,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field
from rnnsmt.base.operations import WrittenFiles, operation
from rnnsmt.base.writing import write_report
from rnnsmt.config.sections import CslmCells, Device, Rnn, Search
from rnnsmt.search.options import PopLimitOrIni, StackOrIni, options_for
from rnnsmt.search.results import Hypothesis, Translations


@operation(version=4)
def decode(
    ini: InputFiles,
    input: SeveralTexts,
    output: OptionalOutputs = None,
    *,
    nbest: Annotated[int, Field(ge=0)] = 0,
    nbest_file: OutputFiles | None = None,
    output_details: OutputFiles | None = None,
    model_dir: ModelDirs = None,
    pop_limit: PopLimitOrIni = None,
    stack: StackOrIni = None,
    cslm_cells: CslmCells = Search.cslm_cells,
    device: Device = Rnn.device,
    threads: Threads = THREADS,
    report: OutputFiles | None = None,
) -> Translations:
    r"""Translate tokenised texts with the Moses model described by a moses.ini.

    The decoder writes one output line for every input line, including empty lines. Unknown words are copied to the
    output, or dropped if the ini has [drop-unknown] 1. If the ini has unsupported sections that would change the
    translations, the command exits with an error.

    The model is loaded once for all input texts. If several ini files differ only in their weights, they share the
    loaded model; otherwise, the models are loaded one after another.

    N-best files are in Moses format with the phrase segmentation as the last field (2-5=2-8: source words 2 to 5 are
    translated as target words 2 to 8; 0-based). Files of ``output_details`` have the same format, but contain only the
    best translation of every sentence.

    Examples, in the directory of a run of the demo corpus:

        rnnsmt search decode --ini results/systems/rnn/run1/moses.ini \
            --input results/corpus/truecased/harbour-test.en.gz --output try/test.out \
            --output-details try/test.details --report try/test.json --threads 2
        rnnsmt search decode --ini results/systems/cslm_rnn/run1/moses.ini \
            --model-dir results/augmented/rnn/network1/selected/all \
            --input results/corpus/truecased/harbour-test.en.gz --output try/test.cslm --nbest 100 \
            --nbest-file try/test.nbest

    Args:
        ini: moses.ini with weights; paths in it are relative to its directory.
        input: input files: tokenised text, one segment per line (- is standard input).
        output: output files, one translation per line (- is standard output); first one file per ``input`` for the
            first ``ini``, then for the second ``ini``, and so on.
        nbest: number of distinct translations per n-best list; 0: no lists. With n-best lists, the beam is wider, so
            the best translations may differ.
        nbest_file: output files: n-best lists in Moses format, one file for each ``output``.
        output_details: output files: phrases and features of every translation, as 1-best lists in Moses format.
        report: output files: search statistics for each ``output`` (JSON).

    Returns:
        The translations in the order of ``output``, and the n-best lists if ``nbest_file`` is not specified.

    Raises:
        InputError: a file of the model is missing or malformed, the input is not tokenised, or the numbers of files do
            not match.
    """
    if (nbest > 0) != (nbest_file is not None) and (nbest == 0 or output is not None):
        raise InputError("--nbest N (N at least 1) and --nbest-file must be used together")

    from rnnsmt.formats.ini import same_models
    from rnnsmt.search.model import load_model
    from rnnsmt.search.source_text import read_sentences
    from rnnsmt.search.texts import translate_text

    inis = each(ini)
    with TextFiles() as files:
        inputs = files.each_of("input", input)
        tasks = len(inis) * len(inputs)
        given = {"--output": output, "--report": report, "--output-details": output_details, "--nbest-file": nbest_file}
        outputs, reports, details, lists = (each(paths) or [None] * tasks for paths in given.values())
        for name, paths in zip(given, (outputs, reports, details, lists), strict=True):
            if len(paths) != tasks:
                raise InputError(
                    f"{name}: {len(inis)} --ini and {len(inputs)} --input require {tasks} files, got {len(paths)}"
                )
        texts = [read_sentences(path) for path in inputs]
    every = [sentence for sentences in texts for sentence in sentences]
    results: dict[int, tuple[list[str], list[list[Hypothesis]], dict[str, int | float]]] = {}
    load_seconds = 0.0
    for number, (directory, alike) in enumerate(same_models(inis, each(model_dir))):
        first = next(iter(alike.values()))
        options = options_for(first, pop_limit, stack, cslm_cells, nbest, threads)
        limits = {"pop_limit": options.pop_limit, "stack": options.stack_size}
        began = time.process_time()
        model = load_model(first, every, directory, threads, device)
        load_seconds += time.process_time() - began
        for text, sentences in enumerate(texts):
            for index, read in alike.items():
                task = index * len(texts) + text
                warn = number == 0 and read is first
                files_of_task = outputs[task], details[task], lists[task]
                results[task] = translate_text(model, model.weights(read), sentences, options, *files_of_task, warn)
                if reports[task] is not None:
                    write_report(reports[task], {**results[task][2], **limits})
        del model  # free the memory before the next model is loaded
    translated, found, statistics = zip(*(results[task] for task in range(tasks)), strict=True)
    sums = {name: round(sum(one[name] for one in statistics), 6) for name in statistics[0]}
    figures = {**sums, "load_cpu_seconds": round(load_seconds, 3)}
    return Translations(
        (translation for of_text in translated for translation in of_text),
        [nbest_list for of_text in found for nbest_list in of_text],
        figures,
    )


@operation(version=3)
def binarize(
    ini: InputFile,
    *,
    model_dir: Annotated[InputFile, Field(metavar="DIR")] | None = None,
    output_dir: OutputDirectory | None = None,
) -> WrittenFiles:
    """Convert the tables and the n-gram language models of a model to memory-mapped binary files.

    The command corresponds to processPhraseTableMin (Moses) and build_binary (KenLM), without quantisation. The table
    phrase-table.gz is converted to phrase-table.binary.safetensors, which also contains the reordering scores, and
    lm.arpa.gz is converted to lm.binary.safetensors. Each binary file is written to the directory of the text file, or
    to ``output_dir``, which must then be the ``model_dir`` of the decoder.

    `search decode`, `translate` and `tuning tune` then memory-map these files instead of reading the text files that
    the ini names. All processes on a machine share the memory pages. Translations and scores are identical, and
    moses.ini need not be changed.

    The binary files are checked against the text files, if these exist. If a text file has changed, its binary file is
    ignored with a warning; run the same command again.

    Example, in the directory of a run of the demo corpus:

        rnnsmt search binarize --ini results/systems/rnn/run1/moses.ini

    Args:
        ini: moses.ini of the model; weights are not used.
        model_dir: directory in which model files are looked up by base name before the paths in moses.ini are used.
        output_dir: output directory of the binary files (default: the directories of the text files).

    Returns:
        The binary files, that of the tables first; the figures are the numbers of phrase pairs, language models and
        bytes.

    Raises:
        InputError: a file of the model is missing or malformed, or ``model_dir`` does not exist.
    """
    from rnnsmt.base.progress import say
    from rnnsmt.formats.ini import MosesIni
    from rnnsmt.search.model import binarize as write_binary_forms

    directory = None if model_dir is None else Path(model_dir)
    if directory is not None and not directory.is_dir():
        raise InputError(f"{directory}: no such directory")
    output = None if output_dir is None else Path(output_dir)
    paths, table = write_binary_forms(MosesIni.read(ini), directory, output)
    for path in paths:
        say(f"{path}: written")
    size = sum(path.stat().st_size for path in paths)
    return WrittenFiles(paths, {"phrase pairs": len(table), "language models": len(paths) - 1, "bytes": size})
