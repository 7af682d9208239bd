"""The search as the decoder of the tuning loop."""

import numpy as np
import pytest

from rnnsmt.bleu.batch import BatchBleu
from rnnsmt.formats.ini import MosesIni
from rnnsmt.search.decoder import decode
from rnnsmt.search.model import load_model
from rnnsmt.search.options import SearchOptions
from rnnsmt.tuning.nbest_pool import normalised
from rnnsmt.tuning.runs import ModelDecoder

from ..search.twin import tiny_model

SOURCES = ["a d", "", "a b new c", "c a d c b"]
REFERENCES = ["u v", "", "x new w", "w u v x"]
WIDE = SearchOptions(nbest=200, beam_threshold=0.0, margin=1e9)


@pytest.fixture
def decoder(tmp_path) -> ModelDecoder:
    """Return the decoder of a model whose word d occurs only in a longer phrase, so that d can also be copied."""
    tiny_model(tmp_path / "model", 1)
    with (tmp_path / "model" / "phrase-table").open("a") as table:
        table.write("a d ||| u v ||| .5 .5 .5 .5 |||\n")
    ini = MosesIni.read(tmp_path / "model" / "moses.ini")
    return ModelDecoder(ini, SOURCES, load_model(ini, SOURCES), WIDE)


def test_lists_have_as_few_unknown_words_as_possible_and_the_statistics_of_their_texts(decoder):
    weights = normalised(decoder.start)
    decoded = decoder.decode(weights)
    translations = decode(decoder.model, SOURCES, decoder.full(weights), WIDE)
    unknown = decoder.model.columns["UnknownWordPenalty"][0]
    expected = []
    for translation in translations:
        scores = translation.nbest.features[:, unknown]
        texts = zip(translation.nbest.texts, scores, strict=True)
        expected.append([text for text, score in texts if score == scores.max()] or [""])
    assert [len(texts) for texts in expected] == np.diff(decoded.texts.offsets).tolist()
    assert len(expected[0]) < len(translations[0].nbest.texts)
    assert any("new" in text for text in expected[2])
    bleu = BatchBleu([REFERENCES])
    assert np.array_equal(bleu.statistics(decoded.texts), bleu.statistics(expected))
    assert [len(rows) for rows in decoded.features] == [len(texts) for texts in expected]
    assert decoded.best == [translation.text for translation in translations]


def test_fixed_features_keep_their_weights_and_are_absent(decoder):
    """The list of a sentence is that of the search, except for translations with more unknown words."""
    plain = decoder.decode(normalised(decoder.start))
    for feature in decoder.ini.features:
        if feature.kind == "Distortion":
            feature.options["tuneable"] = "false"
        if feature.kind == "PhraseDictionaryMemory":
            feature.options["tuneable-components"] = "1,0,1,1"
    fixed = ["Distortion0:0", "TranslationModel0:1"]
    other = ModelDecoder(decoder.ini, SOURCES, decoder.model, WIDE)
    assert other.feature_names == [name for name in decoder.feature_names if name not in fixed]
    names = decoder.model.feature_names
    assert [names[column] for column in decoder.model.listed] == other.feature_names
    # with the same weights, the same lists without the two columns
    weights = decoder.full(normalised(decoder.start))
    other._weights = weights
    tuned = [names.index(name) for name in other.feature_names]
    found = other._search(weights[tuned])
    assert found.best == plain.best
    kept = [decoder.feature_names.index(name) for name in other.feature_names]
    for rows, expected in zip(found.features, plain.features, strict=True):
        assert np.array_equal(rows, expected[:, kept])
    before = [decoder.ini.weight(name) for name in fixed]
    other.set_weights(2 * weights[tuned])
    assert [decoder.ini.weight(name) for name in fixed] == before


def test_what_every_run_starts_from_is_searched_once(decoder):
    start = normalised(decoder.start)
    first = decoder.decode(start)
    assert decoder.decode(start.copy()) is first
    other = start[::-1].copy()
    assert decoder.decode(other) is not first
    assert decoder.decode(start) is first
