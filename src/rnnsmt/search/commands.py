"""The command of the decoder, and the options that it shares with tuning."""

import argparse
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.io import InputError, write_json, write_lines
from rnnsmt.networks.options import PRECISIONS
from rnnsmt.options import positive
from rnnsmt.progress import track

if TYPE_CHECKING:
    from rnnsmt.search.decoder import SearchOptions
    from rnnsmt.search.model import SearchModel


def add_search_options(parser: argparse.ArgumentParser) -> None:
    """How far it looks, and how a CSLM is computed."""
    from rnnsmt.search.decoder import NEURAL_CELLS

    add = parser.add_argument
    add("--pop-limit", type=positive, default=1000, metavar="N", help="cube pruning: hypotheses made per stack")
    add("--stack", type=positive, default=1000, metavar="N", help="hypotheses kept per stack")
    add("--cslm-cells", type=positive, default=NEURAL_CELLS, metavar="N", help="hypotheses of a stack a CSLM scores")
    add("--cslm-precision", choices=PRECISIONS, default="reduced", help="of a CSLM's sum over its vocabulary")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where a CSLM is computed")


def search_options(args: argparse.Namespace) -> "SearchOptions":
    """The options of a command with ``--threads``, ``--nbest`` and those of ``add_search_options``."""
    from rnnsmt.search.decoder import SearchOptions

    return SearchOptions(
        pop_limit=args.pop_limit,
        stack_size=args.stack,
        threads=args.threads,
        nbest=args.nbest,
        neural_cells=args.cslm_cells,
    )


def _options(args: argparse.Namespace) -> "SearchOptions":
    if args.nbest < 0 or (args.nbest > 0) != (args.nbest_file is not None):
        raise InputError("--nbest N (N at least 1) and --nbest-file belong together")
    return search_options(args)


def decode_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ini", type=Path, required=True, help="moses.ini with weights; paths relative to its folder")
    add = parser.add_argument
    add("--input", type=Path, required=True, nargs="+", metavar="FILE", help="tokenised texts, one segment a line")
    add("--output", type=Path, required=True, nargs="+", metavar="FILE", help="their translations, one a line")
    parser.add_argument(
        "--nbest",
        type=int,
        default=0,
        help="distinct translations per sentence for --nbest-file; wider beam, so that the best may differ",
    )
    parser.add_argument("--nbest-file", type=Path, help="where to write them, in Moses' format")
    parser.add_argument("--model-dir", type=Path, help="take files of the same base name from here where they exist")
    parser.add_argument("--threads", type=int, default=1, help="sentences translated at the same time")
    add_search_options(parser)
    parser.add_argument("--report", type=Path, nargs="+", metavar="FILE", help="figures of every text as JSON")


def decode(args: argparse.Namespace) -> dict[str, object]:
    """Translate tokenised texts with the Moses model directory that a moses.ini describes.

    One output line an input line; an empty line stays empty, unknown words are passed through. Several texts are
    translated one after the other with one model, loaded once. The n-best file has Moses' format with the phrase
    segmentation as last field (2-5=2-8: source words 2 to 5 became target words 2 to 8, from 0).
    """
    from rnnsmt.moses.ini import MosesIni
    from rnnsmt.search.decoder import read_sentences
    from rnnsmt.search.model import load_model

    options = _options(args)
    reports = args.report or [None] * len(args.input)
    if not len(args.input) == len(args.output) == len(reports):
        raise InputError("--input, --output and --report: give as many files to each of them")
    if args.nbest_file is not None and len(args.input) > 1:
        raise InputError("--nbest-file: one --input only")
    texts = [read_sentences(path) for path in args.input]
    began = time.process_time()
    every = [sentence for sentences in texts for sentence in sentences]
    model = load_model(
        MosesIni.read(args.ini), every, args.model_dir, options.threads, args.device, args.cslm_precision
    )
    loading = round(time.process_time() - began, 3)
    found: list[dict[str, int | float]] = []
    for sentences, output, report in zip(texts, args.output, reports, strict=True):
        figures = _translate(model, sentences, options, output, args.nbest_file)
        found.append(figures)
        if report is not None:
            limits = {"pop_limit": options.pop_limit, "stack": options.stack_size}
            write_json(report, {**figures, "load_cpu_seconds": loading, **limits})
    sums = {name: round(sum(figures[name] for figures in found), 6) for name in found[0]}
    return {**sums, "load_cpu_seconds": loading}


def _translate(
    model: "SearchModel", sentences: list[str], options: "SearchOptions", output: Path, nbest_file: Path | None
) -> dict[str, int | float]:
    """Translate one text, write it; figures of the search."""
    from rnnsmt.search.decoder import Decoder, look_up
    from rnnsmt.search.nbest import nbest_lines

    before = model.neural.counts() if model.neural is not None else None
    began = time.process_time()
    decoder = Decoder(model, look_up(model, sentences), model.initial_weights, options)
    texts: list[str] = []
    nbest: list[str] = []
    total, unknown = 0.0, 0
    for number, translation in enumerate(track(decoder.translations(), "translating", len(sentences), "sentences")):
        texts.append(translation.text)
        total += translation.score
        unknown += translation.unknown
        nbest += nbest_lines(model, number, translation)
    seconds = time.process_time() - began
    if nbest_file is not None:
        write_lines(nbest_file, nbest)
    write_lines(output, texts)
    figures: dict[str, int | float] = {
        "sentences": len(sentences),
        "words": sum(len(spans) for spans in decoder.prepared.spans),
        "unknown_words": unknown,
        "search_cpu_seconds": round(seconds, 3),
        "score_sum": round(total, 6) if math.isfinite(total) else 0.0,
    }
    if model.neural is not None and before is not None:
        counts = model.neural.counts()
        figures["ngrams_requested"] = counts.requested - before.requested
        figures["ngrams_scored"] = counts.scored - before.scored
        figures["batches"] = counts.batches - before.batches
    return figures
