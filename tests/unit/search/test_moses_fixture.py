"""The decoder against output of Moses with the same model: features, best scores, n-best lists."""

import lzma
import shutil
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.formats.ini import MosesIni
from rnnsmt.search.decoder import decode
from rnnsmt.search.kernels.records import Derivations
from rnnsmt.search.model import SearchModel, load_model
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.sentence_search import SentenceSearch
from rnnsmt.search.translation_options import look_up

from .twin import features, parse_segmentation, path_of, read_model


@pytest.fixture(scope="module")
def loaded(moses_fixture: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[SearchModel, list[str], Path]:
    """Return the fixture's model, its 250 sentences and its directory."""
    directory = tmp_path_factory.mktemp("moses")
    for file in (moses_fixture / "search").iterdir():
        shutil.copyfile(file, directory / file.name)
    (directory / "lm.arpa").write_bytes(lzma.decompress((moses_fixture / "lm.arpa.xz").read_bytes()))
    sentences = (directory / "input.en").read_text().splitlines()
    return load_model(MosesIni.read(directory / "moses.ini"), sentences), sentences, directory


def _entries(directory: Path) -> list[tuple[int, str, np.ndarray, float, str]]:
    out = []
    for line in lzma.decompress((directory / "moses.cube.nbest100.xz").read_bytes()).decode().splitlines():
        number, text, values, score, phrases = line.split(" ||| ")
        found = np.array([float(v) for v in values.split() if not v.endswith("=")])
        out.append((int(number), text.strip(), found, float(score), phrases))
    return out


def _scores(path: Path) -> np.ndarray:
    return np.array([float(line.split()[1]) for line in path.read_text().splitlines()])


def _rescored(search: SentenceSearch, sentence: int, text: str, segments: list[tuple[int, int, int]]) -> np.ndarray:
    """Return feature values ``float64`` [F] of a translation of one of the search's sentences.

    They are computed by the search's own kernel, for derivations found by Moses.
    """
    words = text.split(" ") if text else []
    rows, position = [], 0
    for first, last, size in segments:
        rows.append(_row(search, sentence, first, last, " ".join(words[position : position + size])))
        position += size
    if position != len(words):
        raise InputError(f"the segmentation has {position} target words, the text {len(words)}")
    starts = np.array([s[0] for s in segments], np.int32)
    ends = np.array([s[1] for s in segments], np.int32)
    pairs = np.array(rows, np.int32)
    derivation = Derivations(np.array([0, len(rows)]), pairs, starts, ends)
    return search.features_of(derivation, pairs, np.zeros(1, np.int64))[0]


def _row(search: SentenceSearch, sentence: int, first: int, last: int, phrase: str) -> int:
    looked_up = search.looked_up
    spans = looked_up.spans[sentence]
    source = int(spans[first, last - first]) if last < len(spans) and last - first < spans.shape[1] else -1
    for row in np.flatnonzero(looked_up.source_of == source):
        target = looked_up.target_of[row]
        a, b = looked_up.targets.bounds[target], looked_up.targets.bounds[target + 1]
        if " ".join(looked_up.words[w] for w in looked_up.targets.words[a:b]) == phrase:
            return int(row)
    raise InputError(f"sentence {sentence + 1}: source words {first}-{last} have no translation '{phrase}'")


def test_features_of_moses_nbest_entries(loaded: tuple[SearchModel, list[str], Path]) -> None:
    model, sentences, directory = loaded
    search = SentenceSearch(model, look_up(model, sentences), model.weights(model.ini), SearchOptions())
    entries = _entries(directory)
    assert len(entries) > 18000
    for number, text, expected, score, phrases in entries[::7]:
        found = _rescored(search, number, text, parse_segmentation(phrases))
        assert found[:-1] == pytest.approx(expected, abs=1e-3, rel=1e-5)
        assert found @ model.weights(model.ini) == pytest.approx(score, abs=1e-3)


@pytest.mark.parametrize("nbest", [0, 100])
def test_best_scores_are_at_least_those_of_moses(loaded: tuple[SearchModel, list[str], Path], nbest: int) -> None:
    model, sentences, directory = loaded
    results = decode(model, sentences, model.weights(model.ini), SearchOptions(nbest=nbest))
    ours = np.array([result.score for result in results])
    for name in ("cube", "stack"):
        assert (ours < _scores(directory / f"moses.{name}.best-score.tsv") - 1e-3).mean() <= 0.01
    if nbest:
        common = everything = 0
        for number, result in enumerate(results):
            theirs = {text for n, text, *_ in _entries_of(directory) if n == number} if number < 40 else set()
            assert len(set(result.nbest.texts)) == len(result.nbest.texts)
            common += len(theirs & set(result.nbest.texts))
            everything += len(theirs)
        assert common / everything > 0.85


def _entries_of(directory: Path, cache: dict[Path, list] = {}) -> list:  # noqa: B006
    if directory not in cache:
        cache[directory] = _entries(directory)
    return cache[directory]


def test_features_are_those_of_the_definitions(loaded: tuple[SearchModel, list[str], Path]) -> None:
    """Features of n-best lists equal those computed line by line in plain Python, with KenLM for the LM."""
    model, sentences, directory = loaded
    twin = read_model(
        directory, "phrase-table.gz", "reordering-table.wbe-msd-bidirectional-fe.gz", "lm.arpa", model.distortion_limit
    )
    for sentence, result in zip(
        sentences[:40], decode(model, sentences[:40], model.weights(model.ini), SearchOptions(nbest=9)), strict=True
    ):
        lists = zip(result.nbest.texts, result.nbest.features, result.nbest.phrases, strict=True)
        for text, vector, phrases in [*lists, (result.text, result.features, result.phrases)]:
            expected = features(twin, sentence.split(), path_of(text, phrases))
            found = [expected[name][int(place)] for name, _, place in (n.rpartition(":") for n in model.feature_names)]
            assert vector == pytest.approx(found, abs=2e-4)
