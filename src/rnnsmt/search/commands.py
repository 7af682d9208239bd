"""The commands of the decoder."""

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.base.io import InputError, write_lines_or_stdout, write_report
from rnnsmt.base.options import add_threads
from rnnsmt.base.progress import say, track
from rnnsmt.search.options import add_search_options, search_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rnnsmt.search.model import SearchModel
    from rnnsmt.search.nbest import Translation
    from rnnsmt.search.neural import NeuralCounts
    from rnnsmt.search.options import SearchOptions


def decode_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--ini", type=Path, required=True, nargs="+", metavar="FILE",
        help="moses.ini with weights; paths in it are relative to its directory")  # fmt: skip
    add("--input", type=Path, required=True, nargs="+", metavar="FILE",
        help="input files: tokenised text, one segment per line (- is standard input)")  # fmt: skip
    add("--output", type=Path, required=True, nargs="+", metavar="FILE",
        help="output files, one translation per line (- is standard output); first one file per --input for the first "
        "--ini, then for the second --ini, and so on")  # fmt: skip
    add("--nbest", type=int, default=0,
        help="number of distinct translations per n-best list; 0: no lists. With n-best lists, the beam is wider, so "
        "the best translations may differ")  # fmt: skip
    add("--nbest-file", type=Path, nargs="+", metavar="FILE",
        help="output files: n-best lists in Moses format, one file for each --output")  # fmt: skip
    add("--output-details", type=Path, nargs="+", metavar="FILE",
        help="output files: phrases and features of every translation, as 1-best lists in Moses format")  # fmt: skip
    add("--model-dir", type=Path, nargs="+", metavar="DIR",
        help="directory in which model files are looked up by base name before the paths in moses.ini are used; one, "
        "or one for each --ini")  # fmt: skip
    add_threads(parser)
    add_search_options(parser)
    add("--report", type=Path, nargs="+", metavar="FILE",
        help="output files: search statistics for each --output (JSON)")  # fmt: skip


def decode(args: argparse.Namespace) -> dict[str, object]:
    r"""Translate tokenised texts with the Moses model described by a moses.ini.

    The decoder writes one output line for every input line, including empty lines. Unknown words are copied to the
    output, or dropped if the ini has [drop-unknown] 1. If the ini has unsupported sections that would change the
    translations, the command exits with an error.

    The model is loaded once for all input texts. Several ini files share the loaded model if they differ only in
    weights; otherwise, the models are loaded one after another.

    N-best files are in Moses format with the phrase segmentation as the last field (2-5=2-8: source words 2 to 5 are
    translated as target words 2 to 8; 0-based). --output-details files have the same format, but contain only the best
    translation of every sentence.

    Example, in the directory of a run of the demo corpus:

        rnnsmt search decode --ini results/systems/rnn/run1/moses.ini \
            --input results/corpus/joined/truecased/dev.en.gz --output try/dev.first --nbest 100 \
            --nbest-file try/dev.nbest
    """
    if args.nbest < 0 or (args.nbest > 0) != (args.nbest_file is not None):
        raise InputError("--nbest N (N at least 1) and --nbest-file must be used together")
    tasks = len(args.ini) * len(args.input)
    reports, details, lists = (paths or [None] * tasks for paths in (args.report, args.output_details, args.nbest_file))
    for option, files in (
        ("--output", args.output), ("--report", reports), ("--output-details", details), ("--nbest-file", lists)
    ):  # fmt: skip
        if len(files) != tasks:
            raise InputError(
                f"{option}: {len(args.ini)} --ini and {len(args.input)} --input require {tasks} files, got {len(files)}"
            )

    from rnnsmt.moses.ini import same_models
    from rnnsmt.search.model import load_model
    from rnnsmt.search.source_text import read_sentences

    models = same_models(args.ini, args.model_dir)
    texts = [read_sentences(path) for path in args.input]
    every = [sentence for sentences in texts for sentence in sentences]

    all_stats: list[dict[str, int | float]] = []
    load_seconds = 0.0
    for number, (directory, inis) in enumerate(models):
        first = next(iter(inis.values()))
        options = search_options(args, first)
        limits = {"pop_limit": options.pop_limit, "stack": options.stack_size}
        began = time.process_time()
        model = load_model(first, every, directory, args.threads, args.device)
        load_seconds += time.process_time() - began
        for text, sentences in enumerate(texts):
            for index, ini in inis.items():
                task = index * len(texts) + text
                warn = number == 0 and ini is first
                weights = model.weights(ini)
                outputs = args.output[task], details[task], lists[task]
                all_stats.append(_translate(model, weights, sentences, options, *outputs, warn))
                if reports[task] is not None:
                    write_report(reports[task], {**all_stats[-1], **limits})
        del model  # free the memory before the next model is loaded
    sums = {name: round(sum(stats[name] for stats in all_stats), 6) for name in all_stats[0]}
    return {**sums, "load_cpu_seconds": round(load_seconds, 3)}


@dataclass
class _Totals:
    """Sums over the sentences of one text."""

    words: int = 0
    unknown_words: int = 0
    score: float = 0


def _translate(
    model: "SearchModel",
    weights: "NDArray[np.float64]",
    sentences: list[str],
    options: "SearchOptions",
    output: Path,
    details: Path | None,
    nbest_file: Path | None,
    warn: bool,
) -> dict[str, int | float]:
    """Translate one text with ``weights`` [F], write the outputs, and return the statistics of the search.

    warn: whether to log a warning if the first sentences of the text do not look tokenised.
    """
    from rnnsmt.search.nbest import detail_lines, write_lists
    from rnnsmt.search.neural import total_counts

    totals, counts_before = _Totals(), total_counts(model.neural)
    began = time.process_time()
    results = track(
        _search_text(model, weights, sentences, options, totals, warn), "translating", len(sentences), "sentences"
    )
    if nbest_file is not None:
        results = write_lists(nbest_file, results, model.feature_names, model.listed)
    texts, detailed = [], []
    for translation in results:
        texts.append(translation.text)
        if details is not None:
            detailed.append(translation)
    seconds = time.process_time() - began

    if details is not None:
        write_lines_or_stdout(details, detail_lines(detailed, model.feature_names, model.listed))
    write_lines_or_stdout(output, texts)
    return {
        "sentences": len(sentences),
        "words": totals.words,
        "unknown_words": totals.unknown_words,
        "search_cpu_seconds": round(seconds, 3),
        "score_sum": round(totals.score, 6) if math.isfinite(totals.score) else 0.0,
        **(_query_statistics(counts_before, total_counts(model.neural)) if model.neural else {}),
    }


def _search_text(
    model: "SearchModel",
    weights: "NDArray[np.float64]",
    sentences: list[str],
    options: "SearchOptions",
    totals: _Totals,
    warn: bool,
) -> "Iterator[Translation]":
    """Yield the translations of a text, ``CHUNK`` sentences per search, and update ``totals``."""
    from rnnsmt.search.decoder import CHUNK, translations
    from rnnsmt.search.sentence_search import SentenceSearch
    from rnnsmt.search.translation_options import look_up

    for begin in range(0, len(sentences), CHUNK):
        chunk = sentences[begin : begin + CHUNK]
        search = SentenceSearch(model, look_up(model, chunk), weights, options)
        totals.words += sum(map(len, search.looked_up.spans))
        if warn and begin == 0:
            _warn_about_raw_text(chunk, search.looked_up.unknown)
        for translation in translations(search):
            totals.unknown_words += translation.unknown
            totals.score += translation.score
            yield translation
        del search  # free the memory before the next search is created


def _warn_about_raw_text(sentences: list[str], unknown: list[str]) -> None:
    from rnnsmt.search.source_text import raw_text_warning

    warning = raw_text_warning(sentences, unknown)
    if warning is not None:
        say(warning)


def _query_statistics(before: "NeuralCounts", after: "NeuralCounts") -> dict[str, int]:
    """Return the statistics of the neural features, from the counts before and after a search."""
    return {
        "ngrams_requested": after.requested - before.requested,
        "ngrams_scored": after.scored - before.scored,
        "batches": after.batches - before.batches,
    }


def binarise_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--ini", type=Path, required=True, metavar="FILE", help="moses.ini of the model; weights are not used")
    add("--model-dir", type=Path, metavar="DIR",
        help="directory in which model files are looked up by base name before the paths in moses.ini are "
        "used")  # fmt: skip
    add("--output-dir", type=Path, metavar="DIR",
        help="output directory of model.binary (default: the directory of the first phrase table)")  # fmt: skip


def binarise(args: argparse.Namespace) -> dict[str, object]:
    """Convert the tables and n-gram language models of a model to one memory-mapped binary file.

    The command corresponds to processPhraseTableMin (Moses) and build_binary (KenLM), without quantisation. The file is
    called model.binary and is written to the directory of the phrase table, or to --output-dir, which must then be the
    --model-dir of the decoder.

    `search decode`, `translate` and `tuning mert` then memory-map model.binary instead of reading the text files that
    the ini names. All processes on a machine share its memory pages. Translations and scores are identical, and
    moses.ini need not be changed. The text files are still needed, because the binary file is checked against them and
    because Moses reads them.

    If one of the text files has changed, the binary file is ignored with a warning; run the same command again.

    Example, in the directory of a run of the demo corpus:

        rnnsmt search binarise --ini results/systems/rnn/run1/moses.ini
    """
    from rnnsmt.moses.ini import MosesIni
    from rnnsmt.search.binary import NAME, make_binary
    from rnnsmt.search.model import binary_directories, model_texts, read_tables

    if args.model_dir is not None and not args.model_dir.is_dir():
        raise InputError(f"{args.model_dir}: no such directory")
    texts = model_texts(MosesIni.read(args.ini), args.model_dir)
    output = (args.output_dir or binary_directories(texts, None)[0]) / NAME
    tables, size = make_binary(output, texts, read_tables)
    say(f"{output}: written from {', '.join(text.path.name for text in texts)}")
    return {"phrase pairs": len(tables.phrases.source_of), "language models": len(tables.lms), "bytes": size}
