"""n-best extraction: the keys of strings, and memory."""

import numpy as np

from rnnsmt.base.kernels.numbers import GOLDEN_RATIO
from rnnsmt.formats.ini import MosesIni
from rnnsmt.search.decoder import decode
from rnnsmt.search.kernels.duplicates import FREE, duplicate_key, phrase_hashes
from rnnsmt.search.kernels.lattice import DERIVATION, new_lattice
from rnnsmt.search.kernels.records import Derivations
from rnnsmt.search.model import load_model
from rnnsmt.search.options import SearchOptions

from .twin import tiny_model


def test_keys_of_short_strings_at_many_nodes_differ():
    # words and nodes are small numbers; with one multiplier for both, "b y" at node a was taken for "a y" at node b,
    # a hypothesis could end up without any string, and the extraction never ended
    words = np.repeat(np.arange(120, dtype=np.int32), 2)
    words[1::2] = 7
    bounds = np.arange(0, 241, 2, dtype=np.int32)
    hashes, powers = np.zeros(120, np.uint64), np.zeros(120, np.uint64)
    phrase_hashes(bounds, words, hashes, powers)
    derivations = np.zeros(120, DERIVATION)
    derivations["hash"] = hashes
    keys = {int(duplicate_key(node, derivation)) for node in range(120) for derivation in derivations}
    assert len(keys) == 120 * 120
    assert FREE not in keys
    with np.errstate(over="ignore"):
        assert np.all(powers == GOLDEN_RATIO * GOLDEN_RATIO)


def test_lists_do_not_depend_on_the_space(tmp_path, monkeypatch):
    tiny_model(tmp_path, 1)
    sentences = ["a b c d a", "c d b a", "b"]
    model = load_model(MosesIni.read(tmp_path / "moses.ini"), sentences)
    options = SearchOptions(pop_limit=2000, stack_size=2000, nbest=50)
    ample = [found.nbest.texts for found in decode(model, sentences, model.weights(model.ini), options)]
    resized = []
    monkeypatch.setattr("rnnsmt.search.nbest.DERIVATIONS_PER_WORD", 0.01)
    monkeypatch.setattr("rnnsmt.search.nbest.new_lattice", lambda *size: resized.append(size) or new_lattice(*size))
    scarce = [found.nbest.texts for found in decode(model, sentences, model.weights(model.ini), options)]
    assert scarce == ample
    assert len(resized) > 1
    monkeypatch.setattr("rnnsmt.search.nbest.MAX_DERIVATIONS", 20)
    limited = [found.nbest.texts for found in decode(model, sentences, model.weights(model.ini), options)]
    assert 0 < len(limited[0]) < len(ample[0])
    assert limited[0] == ample[0][: len(limited[0])]


def test_the_translation_is_the_same_whether_it_is_taken_from_the_list_or_not(tmp_path, monkeypatch):
    tiny_model(tmp_path, 1)
    sentences = ["a b c d a", "c d b a", "", "b"]
    ini = MosesIni.read(tmp_path / "moses.ini")
    model = load_model(ini, sentences)
    taken = decode(model, sentences, model.weights(ini), SearchOptions(nbest=20))
    monkeypatch.setattr(Derivations, "is_first_of", lambda own, others: False)
    for one, other in zip(taken, decode(model, sentences, model.weights(ini), SearchOptions(nbest=20)), strict=True):
        assert (one.text, one.score, one.phrases) == (other.text, other.score, other.phrases)
        np.testing.assert_array_equal(one.features, other.features)
        assert one.nbest.texts[:1] == ([one.text] if one.text else [])


def test_a_derivation_is_the_first_of_others_if_all_its_phrases_are():
    def derivations(*lists):
        phrases = np.array([phrase for phrases in lists for phrase in phrases], np.int32).reshape(-1, 3)
        return Derivations(np.cumsum([0, *map(len, lists)]), *phrases.T)

    first, second = [(5, 0, 1), (7, 2, 2)], [(5, 0, 1), (7, 2, 2), (8, 3, 3)]
    assert derivations(first).is_first_of(derivations(first, second))
    assert not derivations(first).is_first_of(derivations(second, first))
    assert not derivations(second).is_first_of(derivations(first, second))
    assert not derivations([(5, 0, 1), (6, 2, 2)]).is_first_of(derivations(first))
    assert not derivations([(5, 0, 1), (7, 2, 3)]).is_first_of(derivations(first))
    assert not derivations(first).is_first_of(derivations())
