"""The command of the decoder."""

import argparse
import math
import time
from pathlib import Path

from rnnsmt.io import InputError, write_json, write_lines, write_lines_or_stdout
from rnnsmt.progress import say, track
from rnnsmt.search.options import add_search_options, search_options


def decode_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ini", type=Path, required=True, help="moses.ini with weights; paths relative to its folder")
    parser.add_argument(
        "--input", type=Path, required=True, help="tokenised text, one segment a line; - is standard input"
    )
    parser.add_argument("--output", type=Path, required=True, help="translations, one a line; - is standard output")
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


def decode(args: argparse.Namespace) -> dict[str, object]:
    """Translate a tokenised text with the Moses model directory that a moses.ini describes.

    One output line an input line; an empty line stays empty, unknown words are passed through, or dropped where the ini
    has [drop-unknown] 1. Other sections of the ini that change what Moses does are refused. The n-best file has Moses'
    format with the phrase segmentation as last field (2-5=2-8: source words 2 to 5 became target words 2 to 8, from 0).
    """
    if args.nbest < 0 or (args.nbest > 0) != (args.nbest_file is not None):
        raise InputError("--nbest N (N at least 1) and --nbest-file belong together")

    from rnnsmt.moses.ini import MosesIni
    from rnnsmt.search.decoder import translations
    from rnnsmt.search.model import load_model
    from rnnsmt.search.nbest import nbest_file_lines
    from rnnsmt.search.sentence_search import SentenceSearch
    from rnnsmt.search.source_text import raw_text_warning, read_sentences, words_of
    from rnnsmt.search.translation_options import look_up

    ini = MosesIni.read(args.ini)
    options = search_options(args, ini)
    sentences = read_sentences(args.input)

    loading = time.process_time()
    model = load_model(ini, sentences, args.model_dir, args.threads, args.device, args.cslm_precision)
    searching = time.process_time()
    search = SentenceSearch(model, look_up(model, sentences), model.initial_weights, options)
    warning = raw_text_warning(sentences, search.looked_up.unknown)
    if warning is not None:
        say(warning)
    found = list(track(translations(search), "translating", len(sentences), "sentences"))
    done = time.process_time()

    if args.nbest_file is not None:
        lists = (translation.nbest for translation in found)
        write_lines(args.nbest_file, nbest_file_lines(lists, model.feature_names, model.listed))
    write_lines_or_stdout(args.output, (translation.text for translation in found))

    score = sum(translation.score for translation in found)
    figures: dict[str, object] = {
        "sentences": len(sentences),
        "words": sum(len(words_of(sentence)) for sentence in sentences),
        "unknown_words": sum(translation.unknown for translation in found),
        "load_cpu_seconds": round(searching - loading, 3),
        "search_cpu_seconds": round(done - searching, 3),
        "score_sum": round(score, 6) if math.isfinite(score) else 0.0,
    }
    if model.neural is not None:
        counts = model.neural.counts()
        figures |= {"ngrams_requested": counts.requested, "ngrams_scored": counts.scored, "batches": counts.batches}
    if args.report is not None:
        write_json(args.report, {**figures, "pop_limit": options.pop_limit, "stack": options.stack_size})
    return figures
