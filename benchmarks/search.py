"""Measure speed and search quality of the decoder on a Moses model: one thread, CPU seconds after compilation.

    python benchmarks/search.py MODEL_DIR [--input input.en] [--repeat 3]

``MODEL_DIR`` contains ``moses.ini`` and the files named in it, the input, and optionally best scores of Moses
(``moses.cube.best-score.tsv``, ``moses.stack.best-score.tsv``: sentence number and score on each line). For the fixture
of Multi30k, copy its directory ``search`` and unpack ``lm.arpa.xz`` in the copy as ``lm.arpa``.

Two speeds are printed: that of the search alone, with options looked up and ranked beforehand, and that of the whole
command. The latter includes loading the parts of the model needed for the text, look-up, ranking, search, and output of
translations, minus the same for one sentence.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from rnnsmt.formats.ini import MosesIni
from rnnsmt.search.decoder import translations
from rnnsmt.search.kernels import stack as kernels
from rnnsmt.search.kernels.records import CELLS, QUERIES, REQUESTS, Derivations
from rnnsmt.search.model import SearchModel, load_model
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.sentence_search import SentenceSearch
from rnnsmt.search.translation_options import look_up


def best_time(work, repeat: int) -> float:
    """Return the minimum CPU time of several runs of a function."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def table(model: SearchModel, sentences: list[str], directory: Path, repeat: int) -> None:
    """Print sentences per second, cells and scores at several pop limits and margins."""
    references = {}
    for name in ("cube", "stack"):
        path = directory / f"moses.{name}.best-score.tsv"
        if path.is_file():
            references[name] = np.array([float(line.split()[1]) for line in path.read_text().splitlines()])
            if len(references[name]) != len(sentences):
                raise SystemExit(f"{path}: {len(references[name])} scores for {len(sentences)} sentences")
    head = f"{'pop limit':>9} {'margin':>6} {'sent/s':>7} {'cells/s':>10} {'cells/sent':>10} {'score sum':>11}"
    print(head + "".join(f"  below / above moses {name}" for name in references))
    for pops, margin in (
        (50, 20),
        (100, 20),
        (200, 20),
        (500, 20),
        (1000, 12),
        (1000, 16),
        (1000, 20),
        (2000, 20),
        (5000, 20),
    ):
        options = SearchOptions(pop_limit=pops, stack_size=pops, margin=margin)
        search = SentenceSearch(model, look_up(model, sentences), model.weights(model.ini), options)
        scores = np.array([result.score for result in translations(search)])
        cells = int(search.counts[CELLS])
        seconds = best_time(lambda search=search: list(translations(search)), repeat)
        line = f"{pops:9} {margin:6} {len(sentences) / seconds:7.0f} {cells / seconds:10.0f} "
        line += f"{cells / len(sentences):10.0f} {scores.sum():11.3f}"
        for reference in references.values():
            line += f"  {int((scores < reference - 1e-3).sum()):5} / {int((scores > reference + 1e-3).sum()):<16}"
        print(line, flush=True)


def split(model: SearchModel, sentences: list[str], repeat: int) -> None:
    """Print the time of each part of the search, with and without n-best lists."""
    for nbest in (0, 100):
        search = SentenceSearch(model, look_up(model, sentences), model.weights(model.ini), SearchOptions(nbest=nbest))
        list(translations(search))
        counts = search.counts.copy()
        total = best_time(lambda search=search: list(translations(search)), repeat)
        work = search.work_for(max(len(spans) for spans in search.looked_up.spans))
        searching = best_time(
            lambda search=search, work=work: [
                kernels.search_sentence(spans, search.lms, search.several, search.ranked, work, search.constants)
                for spans in search.looked_up.spans
            ],
            repeat,
        )
        derivations = Derivations.empty(1, len(search.looked_up.spans[0]))
        best = kernels.search_sentence(
            search.looked_up.spans[0],
            search.lms,
            search.several,
            search.ranked,
            work,
            search.constants,
        )
        kernels.trace(work, best, derivations, 0)
        output = best_time(
            lambda search=search, derivations=derivations: [
                search.realized(derivations, np.zeros(1, np.int64)) for _ in sentences
            ],
            repeat,
        )
        print(
            f"nbest {nbest}: {total:.3f} s for {len(sentences)} sentences ({len(sentences) / total:.0f}/s): search "
            f"{searching:.3f}, best path {output:.3f}, n-best and rest {total - searching - output:.3f}; per sentence "
            f"{counts[CELLS] / len(sentences):.0f} cells, {counts[REQUESTS] / len(sentences):.0f} LM requests, "
            f"{counts[QUERIES] / len(sentences):.0f} LM look-ups"
        )
    ranking = best_time(
        lambda: SentenceSearch(model, look_up(model, sentences), model.weights(model.ini), SearchOptions()), repeat
    )
    print(f"weighting and ranking all options: {ranking:.3f} s")


def whole(directory: Path, sentences: list[str], repeat: int) -> None:
    """Print sentences per second of the search alone, and of all steps minus the time of one sentence."""

    def everything(some: list[str]) -> None:
        model = load_model(MosesIni.read(directory / "moses.ini"), some)
        list(translations(SentenceSearch(model, look_up(model, some), model.weights(model.ini), SearchOptions())))

    model = load_model(MosesIni.read(directory / "moses.ini"), sentences)
    search = SentenceSearch(model, look_up(model, sentences), model.weights(model.ini), SearchOptions())
    alone = best_time(lambda: list(translations(search)), repeat)
    more = best_time(lambda: everything(sentences), repeat) - best_time(lambda: everything(sentences[:1]), repeat)
    print(
        f"search alone: {len(sentences) / alone:.0f} sentences/s; everything, less loading and translating one "
        f"sentence: {(len(sentences) - 1) / more:.0f} sentences/s"
    )


def main() -> None:
    """Load the model, compile, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_dir", type=Path, help="directory with moses.ini and the input")
    parser.add_argument("--input", default="input.en", help="input text, in model_dir")
    parser.add_argument("--repeat", type=int, default=3, help="number of measurements; the fastest is printed")
    args = parser.parse_args()
    sentences = (args.model_dir / args.input).read_text(encoding="utf-8").splitlines()
    for moment in ("with compilation or its cache", "warm"):
        start = time.process_time()
        model = load_model(MosesIni.read(args.model_dir / "moses.ini"), sentences)
        print(f"loading, {moment}: {time.process_time() - start:.2f} s")
    start = time.process_time()
    search = SentenceSearch(model, look_up(model, sentences), model.weights(model.ini), SearchOptions(nbest=2))
    search.batch(0)
    print(f"first sentence, with compilation or its cache: {time.process_time() - start:.2f} s")
    whole(args.model_dir, sentences, args.repeat)
    split(model, sentences, args.repeat)
    table(model, sentences, args.model_dir, args.repeat)


if __name__ == "__main__":
    main()
