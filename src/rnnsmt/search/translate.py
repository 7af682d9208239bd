"""Translate a tokenised text with the Moses model directory that a moses.ini describes.

One output line an input line; an empty line stays empty, unknown words are passed through. The n-best file has Moses'
format with the phrase segmentation as last field (2-5=2-8: source words 2 to 5 became target words 2 to 8, from 0).
"""

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path

from rnnsmt.io import InputError, read_lines, write_json, write_lines
from rnnsmt.moses.ini import MosesIni
from rnnsmt.progress import track
from rnnsmt.search.decoder import Decoder, SearchOptions, Translation, look_up
from rnnsmt.search.limits import add_search_options, search_options
from rnnsmt.search.model import SearchModel, load_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the stage."""
    parser.add_argument("--ini", type=Path, required=True, help="moses.ini with weights; paths relative to its folder")
    parser.add_argument("--input", type=Path, required=True, help="tokenised text, one segment a line")
    parser.add_argument("--output", type=Path, required=True, help="translations, one a line")
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
    parser.add_argument("--report", type=Path, help="figures of the run as JSON")


def read_sentences(path: Path) -> list[str]:
    """The lines of a tokenised text.

    Raises:
        InputError: a line is not UTF-8, has a control character, or has ``|||``, which separates Moses' fields.
    """
    sentences = []
    for number, line in enumerate(read_lines(path), 1):
        if "|||" in line:
            raise InputError(f"{path}, line {number}: ||| separates fields in Moses' files; escape it first")
        for character in line:
            if character < " " or "\x7f" <= character <= "\x9f":
                raise InputError(
                    f"{path}, line {number}: control character U+{ord(character):04X}; "
                    "clean the text with 'rnnsmt corpus prepare --keep-all' first"
                )
        sentences.append(line)
    return sentences


def nbest_lines(model: SearchModel, number: int, translation: Translation) -> Iterator[str]:
    """The n-best entries of one sentence in Moses' format."""
    groups: list[tuple[str, int, int]] = []
    for name, at in ((name.rsplit(":", 1)[0], k) for k, name in enumerate(model.feature_names)):
        if at in model.columns.get("UnknownWordPenalty", ()):
            continue
        if groups and groups[-1][0] == name:
            groups[-1] = (name, groups[-1][1], at + 1)
        else:
            groups.append((name, at, at + 1))
    nbest = translation.nbest
    for text, features, score, phrases in zip(nbest.texts, nbest.features, nbest.scores, nbest.phrases, strict=True):
        values = features.tolist()
        parts = [f"{name}= " + " ".join(f"{v:g}" for v in values[a:b]) for name, a, b in groups]
        yield f"{number} ||| {text}  ||| {' '.join(parts)} ||| {score:g} ||| {segmentation(phrases)}"


def segmentation(phrases: list[tuple[int, int, int]]) -> str:
    """Moses' notation of a segmentation: source range = target range, a single position without a dash."""
    parts, position = [], 0
    for first, last, size in phrases:
        target = ""
        if size > 0:
            target = f"{position}" if size == 1 else f"{position}-{position + size - 1}"
        parts.append((f"{first}" if first == last else f"{first}-{last}") + "=" + target)
        position += size
    return " ".join(parts)


def _options(args: argparse.Namespace) -> SearchOptions:
    if args.nbest < 0 or (args.nbest > 0) != (args.nbest_file is not None):
        raise InputError("--nbest N (N at least 1) and --nbest-file belong together")
    return search_options(args)


def run(args: argparse.Namespace) -> dict[str, object]:
    """Load the model, translate, write the outputs."""
    options = _options(args)
    sentences = read_sentences(args.input)
    loading = time.process_time()
    model = load_model(
        MosesIni.read(args.ini), sentences, args.model_dir, options.threads, args.device, args.cslm_precision
    )
    searching = time.process_time()
    decoder = Decoder(model, look_up(model, sentences), model.initial_weights, options)
    texts: list[str] = []
    nbest: list[str] = []
    total, unknown = 0.0, 0
    for number, translation in enumerate(track(decoder.translations(), "translating", len(sentences), "sentences")):
        texts.append(translation.text)
        total += translation.score
        unknown += translation.unknown
        nbest += nbest_lines(model, number, translation)
    done = time.process_time()
    if args.nbest_file is not None:
        write_lines(args.nbest_file, nbest)
    write_lines(args.output, texts)
    figures: dict[str, object] = {
        "sentences": len(sentences),
        "words": sum(len(spans) for spans in decoder.prepared.spans),
        "unknown_words": unknown,
        "load_cpu_seconds": round(searching - loading, 3),
        "search_cpu_seconds": round(done - searching, 3),
        "score_sum": round(total, 6) if math.isfinite(total) else 0.0,
    }
    if model.neural is not None:
        counts = model.neural.counts()
        figures |= {"ngrams_requested": counts.requested, "ngrams_scored": counts.scored, "batches": counts.batches}
    if args.report is not None:
        write_json(args.report, {**figures, "pop_limit": options.pop_limit, "stack": options.stack_size})
    return figures
