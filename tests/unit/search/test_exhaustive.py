"""The search against exhaustive enumeration on tiny random models."""

import random
import re
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.formats.ini import MosesIni
from rnnsmt.registries import SEARCH_FEATURES
from rnnsmt.search.decoder import decode, translations
from rnnsmt.search.kernels import stack as kernels
from rnnsmt.search.kernels.records import BINS, EDGES, RankedOptions, Work
from rnnsmt.search.model import SUPPORTED, SearchModel, load_model
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.sentence_search import SentenceSearch
from rnnsmt.search.translation_options import look_up

from .twin import SOURCE, TinyModel, exhaustive, features, path_of, tiny_model

UNLIMITED = SearchOptions(pop_limit=20000, stack_size=20000, beam_threshold=0.0, margin=1e9, nbest=50)


def _sentences(seed: int, count: int = 4, longest: int = 5) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(SOURCE, weights=[3, 3, 3, 1], k=rng.randint(1, longest))) for _ in range(count)]


def _loaded(tiny: TinyModel, sentences: list[str] | None = None) -> tuple[SearchModel, dict[str, list[float]]]:
    ini = MosesIni.read(tiny.directory / "moses.ini")
    return load_model(ini, sentences), ini.weights


def _vector(model: SearchModel, found: dict[str, list[float]]) -> np.ndarray:
    return np.array([found[n.split(":")[0]][int(n.split(":")[1])] for n in model.feature_names])


@pytest.mark.parametrize(
    ("seed", "limit", "reordering"),
    [
        *((seed, limit, "wbe-msd-bidirectional-fe-allff") for seed, limit in [(1, 6), (2, 6), (3, 2), (4, 0), (5, -1)]),
        (6, 3, "wbe-msd-bidirectional-fe"),
        (7, 6, "phrase-mslr-bidirectional-fe-allff"),
        (8, 6, "wbe-monotonicity-bidirectional-fe-allff"),
        (9, 6, "phrase-leftright-bidirectional-fe"),
        (10, 6, "hier-mslr-bidirectional-fe-allff"),
        (11, 6, "hier-msd-backward-fe"),
        (12, 6, "hier-mslr-forward-fe"),
        (13, 6, "hier-leftright-bidirectional-fe"),
        (14, 3, "hier-monotonicity-bidirectional-fe"),
        (10, 6, "wbe-msd-backward-fe"),
        (11, 6, "wbe-mslr-forward-fe"),
        (15, 6, "wbe-msd-bidirectional-fe two LMs"),
        (16, 2, "wbe-msd-bidirectional-fe two LMs"),
        (17, 6, "hier-mslr-bidirectional-fe two LMs"),
    ],
)
def test_search_finds_the_exhaustive_best_and_nbest(tmp_path: Path, seed: int, limit: int, reordering: str) -> None:
    reordering, *two_lms = reordering.split()
    tiny = tiny_model(tmp_path, seed, limit, reordering_type=reordering, two_lms=bool(two_lms))
    if limit == -1:
        tiny.limit = 99
    sentences = _sentences(seed)
    model, weights = _loaded(tiny, sentences)
    for sentence, result in zip(sentences, decode(model, sentences, model.weights(model.ini), UNLIMITED), strict=True):
        everything = exhaustive(tiny, sentence.split(), weights)
        ranked = sorted(everything.items(), key=lambda item: -item[1])[:50]
        assert result.score == pytest.approx(ranked[0][1], abs=1e-4)
        assert everything[result.text] == pytest.approx(result.score, abs=1e-4)
        assert len(result.nbest.texts) == len(set(result.nbest.texts)) == len(ranked)
        assert result.nbest.scores == pytest.approx([score for _, score in ranked], abs=1e-4)
        for text, score in zip(result.nbest.texts, result.nbest.scores, strict=True):
            assert everything[text] == pytest.approx(score, abs=1e-4)


HAND_WRITTEN = """
[mapping]
0 T 0

[distortion-limit]
4

[feature]
KENLM name=Near path=further.arpa factor=0 order=2
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory path=phrase-table table-limit=3
LexicalReordering type=hier-msd-bidirectional-fe num-features=6 path=reordering
Distortion
KENLM path=lm.arpa factor=0 order=3

[weight]
Near= 0.37
KENLM1= 0.6
WordPenalty0= -0.4
PhrasePenalty0= 0.1
PhraseDictionaryMemory0= 0.1 0.3 0.2 0.15
LexicalReordering0= 0.2 0.1 0.3 0.25 0.15 0.2
Distortion0= 0.3
"""
"""A model with two LMs, a hierarchical reordering model, and names that Moses chooses."""


def test_a_hand_written_ini_with_two_language_models(tmp_path: Path) -> None:
    tiny = tiny_model(tmp_path, 18, limit=4, reordering_type="hier-msd-bidirectional-fe", two_lms=True)
    (tmp_path / "moses.ini").write_text(HAND_WRITTEN)
    names = {"Near": "LM1", "KENLM1": "LM0", "PhraseDictionaryMemory0": "TranslationModel0"}
    sentences = _sentences(18)
    model, weights = _loaded(tiny, sentences)
    assert len(model.lms) == 2
    weights = {names.get(name, name): values for name, values in weights.items()}
    for sentence, result in zip(sentences, decode(model, sentences, model.weights(model.ini), UNLIMITED), strict=True):
        everything = exhaustive(tiny, sentence.split(), weights)
        assert result.score == pytest.approx(max(everything.values()), abs=1e-4)
        for text, score in zip(result.nbest.texts, result.nbest.scores, strict=True):
            assert everything[text] == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("columns", [1, 4, 6])
@pytest.mark.parametrize(
    "reordering", ["wbe-msd-bidirectional-fe-allff", "wbe-mslr-bidirectional-fe", "phrase-leftright-forward-fe"]
)
def test_features_are_those_of_the_definitions(tmp_path: Path, columns: int, reordering: str) -> None:
    tiny = tiny_model(tmp_path, 11, columns=columns, reordering_type=reordering)
    sentences = ["a b c d", "d d", "c b a"]
    model, _ = _loaded(tiny)
    options = SearchOptions(nbest=20)
    search = SentenceSearch(model, look_up(model, sentences), model.weights(model.ini), options)
    for number, result in enumerate(translations(search)):
        words = sentences[number].split()
        nbest = result.nbest
        assert nbest.texts[0] == result.text
        assert (np.diff(nbest.scores) < 1e-5).all()
        assert nbest.scores == pytest.approx(nbest.features @ model.weights(model.ini))
        for text, vector, phrases in zip(nbest.texts, nbest.features, nbest.phrases, strict=True):
            path = path_of(text, phrases)
            assert vector == pytest.approx(_vector(model, features(tiny, words, path)), abs=1e-4)


@pytest.mark.parametrize("pop_limit", [1, 5, 20, 60])
def test_listed_cells_are_those_of_the_best_whole_bins(tmp_path: Path, pop_limit: int) -> None:
    """The search counts no cells in bins beyond the pop limit; the expected selection is made by counting all cells."""
    model, _ = _loaded(tiny_model(tmp_path, 5))
    options = SearchOptions(pop_limit=pop_limit, beam_threshold=0.0, margin=200.0)
    search = SentenceSearch(model, look_up(model, ["a b c b a c c b a"]), model.weights(model.ini), options)
    work, ranked, constants = search.new_work(40, search.new_scratch()), search.ranked, search.constants
    (spans,) = search.looked_up.spans
    kernels.begin(spans, search.lms, search.several, ranked, work, constants)
    more_than_limit = 0
    for stack in range(1, len(spans) + 1):
        before = int(work.counts[EDGES])
        cells = kernels.propose(stack, spans, search.lms, search.several, ranked, work, constants)
        edges = work.edges[: int(work.counts[EDGES]) - before]
        found = work.cells[:cells]
        bins = _bins_of_cells(edges, work, ranked, constants.margin)
        more_than_limit += sum(map(len, bins)) > pop_limit
        whole = 1
        while sum(map(len, bins[: whole + 1])) <= pop_limit and whole < BINS:
            whole += 1
        best = sorted(cell for content in bins[:whole] for cell in content)[:pop_limit]
        listed = zip(found["edge"].tolist(), found["hypothesis"].tolist(), found["option"].tolist(), strict=True)
        assert list(listed) == best
        kernels.add_cells(stack, cells, ranked, work, constants, False, 0)
    assert more_than_limit >= (5 if pop_limit < 60 else 1)


def _bins_of_cells(
    edges: np.ndarray, work: Work, ranked: RankedOptions, margin: float
) -> list[list[tuple[int, int, int]]]:
    """Return (edge, hypothesis, option) of all cells within the margin, by bin."""
    bins: list[list[tuple[int, int, int]]] = [[] for _ in range(BINS)]
    top, scale = edges["estimate"].max(), BINS / margin
    for number, edge in enumerate(edges):
        group = work.groups[edge["group"]]
        for row in range(group["first"], group["first"] + group["count"]):
            hypothesis = work.hypotheses[row]
            base = hypothesis["score"] + edge["base"]
            if hypothesis["option"] >= 0:
                base += ranked.forward[ranked.forward_class[hypothesis["option"]], edge["forward"]]
            for option in range(edge["first"], edge["last"]):
                below = (top - (base + ranked.guess[edge["backward"], option])) * scale
                if below < BINS:
                    bins[max(int(below), 0)].append((number, row, option))
    return bins


def test_one_search_does_not_depend_on_threads_or_on_what_was_loaded(tmp_path: Path) -> None:
    tiny = tiny_model(tmp_path, 7)
    sentences = _sentences(7, 20, 9)
    outcomes = []
    for given in (None, sentences):
        model, _ = _loaded(tiny, given)
        for threads in (1, 3):
            results = decode(model, sentences, model.weights(model.ini), SearchOptions(threads=threads, nbest=5))
            outcomes.append([(r.text, r.score, r.nbest.texts, r.nbest.scores.tolist()) for r in results])
    assert outcomes[0] == outcomes[1]
    assert outcomes[2] == outcomes[3]
    assert [o[0] for o in outcomes[0]] == [o[0] for o in outcomes[2]]


def test_scaling_all_weights_changes_nothing_but_the_scores(tmp_path: Path) -> None:
    tiny = tiny_model(tmp_path, 8)
    sentences = _sentences(8, 10, 8)
    model, _ = _loaded(tiny, sentences)
    once = decode(model, sentences, model.weights(model.ini), SearchOptions(pop_limit=30))
    scaled = decode(model, sentences, model.weights(model.ini) * 7, SearchOptions(pop_limit=30))
    assert [r.text for r in once] == [r.text for r in scaled]


@pytest.mark.parametrize("factor", [0.0, -1.0, 0.01])
def test_any_weights_give_complete_translations(tmp_path: Path, factor: float) -> None:
    tiny = tiny_model(tmp_path, 9)
    sentences = _sentences(9, 10, 8)
    model, _ = _loaded(tiny, sentences)
    rng = np.random.default_rng(0)
    for number, weights in enumerate(
        [*[model.weights(model.ini) * factor] * 2, *rng.normal(size=(7, len(model.feature_names)))]
    ):
        options = [SearchOptions(), SearchOptions(pop_limit=50, stack_size=3, nbest=3)][number % 2]
        for sentence, result in zip(sentences, decode(model, sentences, weights, options), strict=True):
            covered = sorted(k for first, last, _ in result.phrases for k in range(first, last + 1))
            assert covered == list(range(len(sentence.split())))


def test_table_limit_keeps_the_best_by_weighted_score(tmp_path: Path) -> None:
    tiny = tiny_model(tmp_path, 10)
    ini = MosesIni.read(tiny.directory / "moses.ini")
    ini.table_limit = 1
    ini.write(tiny.directory / "limited.ini")
    limited = load_model(MosesIni.read(tiny.directory / "limited.ini"))
    assert limited.table_limit == 1
    search = SentenceSearch(limited, look_up(limited, ["a b c"]), limited.weights(limited.ini), SearchOptions())
    spans = search.looked_up.spans[0]
    assert (np.diff(search.ranked.first)[spans[spans >= 0]] == 1).all()
    assert np.diff(search.ranked.first).max() == 1


def test_tags_are_words(tmp_path: Path) -> None:
    model, _ = _loaded(tiny_model(tmp_path, 2))
    (result,) = decode(model, ['<x translation="u">a</x> <wall/> b'], model.weights(model.ini), SearchOptions())
    assert result.unknown == 3
    assert "<wall/>" in result.text.split()


@pytest.mark.parametrize("size", [1, 4, 17])
def test_stacks_keep_their_size_and_the_best(tmp_path: Path, size: int) -> None:
    tiny = tiny_model(tmp_path, 12)
    model, _ = _loaded(tiny)
    found = []
    for stack_size in (size, 1000):
        options = SearchOptions(stack_size=stack_size, beam_threshold=0.0)
        search = SentenceSearch(model, look_up(model, ["a b c d a b"]), model.weights(model.ini), options)
        work = search.work_for(6)
        kernels.search_sentence(
            search.looked_up.spans[0],
            search.lms,
            search.several,
            search.ranked,
            work,
            search.constants,
        )
        found.append(work)
    assert (np.diff(found[0].stacks["hypothesis"][:8]) <= size).all()
    totals = []
    for work in found:  # scores plus future cost of the first stack, which has the same cells in both searches
        last: list[float] = []
        for number in range(work.stacks["coverage"][1], work.stacks["coverage"][2]):
            coverage = work.coverages[number]
            future, group = coverage_cost(work, coverage["gap"], coverage["mask"]), coverage["group"]
            while group >= 0:
                entry = work.groups[group]
                rows = work.hypotheses["score"][entry["first"] : entry["first"] + entry["count"]]
                assert (np.diff(rows) <= 0).all()
                last += (rows + future).tolist()
                group = entry["next"]
        totals.append(sorted(last, reverse=True))
    assert totals[0] == pytest.approx(totals[1][:size])


def coverage_cost(work: Work, gap: int, mask: int) -> float:
    """Return the future cost of a coverage, computed in plain Python."""
    total, position, mask = 0.0, int(gap), int(mask)
    while mask:
        run = (mask & -mask).bit_length() - 1
        total += work.span_future[position, run] if run else 0.0
        position, mask = position + run, mask >> run
        while mask & 1:
            position, mask = position + 1, mask >> 1
    return total + work.tail_future[position]


def test_the_table_of_features_has_those_of_the_decoder() -> None:
    page = (Path(__file__).parents[3] / "docs/search.md").read_text()
    rows = page.partition("| feature | estimate for")[2].partition("\n\n")[0].splitlines()[2:]
    named = {kind for row in rows for kind in re.findall("`([^`]+)`", row.split(" | ")[0])}
    assert named == {*SUPPORTED, *map(str.upper, SEARCH_FEATURES)}
