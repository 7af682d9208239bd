"""XML in the input: parsing, invalid markup, and the search; test_real_moses.py compares with Moses."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from rnnsmt.base.io import InputError
from rnnsmt.moses.ini import MosesIni
from rnnsmt.search.decoder import decode
from rnnsmt.search.model import SearchModel, load_model
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.source_text import (
    MAX_WORDS,
    GivenTranslation,
    read_marks,
    walls_at_punctuation,
    walls_before,
)

from .twin import TinyModel, derivations, exhaustive, features, tiny_model

UNLIMITED = SearchOptions(pop_limit=20000, stack_size=20000, beam_threshold=0.0, margin=1e9, nbest=200)


def test_translations_and_walls_are_read() -> None:
    line = '<s><np translation="a cute place||it" prob="0.5||2">ein  haus</np> ,<wall/> ja<b></s>'
    with pytest.raises(InputError, match="line 3: </s> has no opening tag"):
        read_marks(line, 3)
    text, translations, walls = read_marks(line.replace("<b>", ""), 3)
    assert text == "ein haus , ja"
    assert translations == [
        GivenTranslation(0, 1, "a cute place", math.log(0.5)),
        GivenTranslation(0, 1, "it", math.log(2)),
    ]
    assert walls == {2}


def test_a_span_names_the_words_by_their_numbers() -> None:
    text, translations, walls = read_marks('a b c <x translation="u" span="1-2"/> <y english="v" span="0"/>', 1)
    assert (text, walls) == ("a b c", set())
    assert translations == [GivenTranslation(1, 2, "u", 0.0), GivenTranslation(0, 0, "v", 0.0)]


def test_the_span_of_a_wall_ends_with_the_longest_sentence() -> None:
    assert read_marks('a b <wall span="1-9999999"/>', 1).walls == set(range(MAX_WORDS))
    assert read_marks('a b <wall span="999999999"/>', 1).walls == set()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a < b > c", "closed"),
        ("a <> c", "tag without a name"),
        ("<x>a", "<x> is not closed"),
        ("a</x>", "</x> has no opening tag"),
        ("<x>a<y></x></y>", "</x> has no opening tag"),
        ('<x translation="u" prob="0.1||0.2">a</x>', "1 translations but 2 probabilities"),
        ('<x translation="u" prob="much">a</x>', 'prob="much" is not a probability'),
        ('<x translation="u" prob="-1">a</x>', "is not a probability"),
        ('<x translation="u" prob="nan">a</x>', "is not a probability"),
        ('<x translation="u" span="1-">a</x>', 'span="1-" is not of the form 2-4'),
        ('<x translation="u" span="0-7">a</x>', "the span 0-7 of a translation is invalid"),
        ('<x translation="u" span="3-2">a</x>', "covers no word"),
        ('<x translation="u"></x> a', "covers no word"),
        ('a <x translation="u"/>', "covers no word"),
        ("<x translation=u>a</x>", "not of the form name="),
        ("<zone>a b</zone>", "<zone> is not supported"),
        ('<ne entity="5">@num@</ne>', "<ne> is not supported"),
        (f'<x translation="u">{"a " * 63}</x>', "and cover at most 62 words"),
    ],
)
def test_bad_xml_is_refused_with_its_line(line: str, said: str) -> None:
    with pytest.raises(InputError, match="the input, line 7: ") as refused:
        read_marks(line, 7)
    assert said in str(refused.value)


def test_walls_are_counted_up_to_every_word() -> None:
    assert walls_at_punctuation("a , b .") == {1, 2}
    assert walls_at_punctuation(". a ! b") == {1, 2}
    assert walls_before({1, 2}, 4).tolist() == [0, 0, 1, 2, 2]
    assert walls_before(set(), 4).tolist() == []


def _model(tiny: TinyModel, **sections: str) -> tuple[SearchModel, dict[str, list[float]]]:
    ini = MosesIni.read(tiny.directory / "moses.ini")
    ini.sections |= {name.replace("_", "-"): [value] for name, value in sections.items()}
    return load_model(ini), ini.weights


@pytest.fixture
def tiny(tmp_path: Path) -> TinyModel:
    return tiny_model(tmp_path, 2)


def test_given_translations_beside_those_of_the_table(tiny: TinyModel) -> None:
    model, weights = _model(tiny, xml_input="inclusive")
    sentences = ['c <x translation="u new||w" prob="0.4||1">a b</x> a', "c a b a", '<x translation="v">d</x>']
    results = decode(model, sentences, model.weights(model.ini), UNLIMITED)
    more = [*tiny.phrases.get(("a", "b"), []), (("u", "new"), [0.4**0.25] * 4), (("w",), [1.0] * 4)]
    beside = replace(tiny, phrases={**tiny.phrases, ("a", "b"): more})
    instead = replace(tiny, phrases={**tiny.phrases, ("d",): [(("v",), [1.0] * 4)]})
    texts = ["c a b a", "c a b a", "d"]
    for result, one, text in zip(results, [beside, tiny, instead], texts, strict=True):
        # the given pair has no reordering scores, like a pair missing in the reordering table
        everything = exhaustive(one, text.split(), weights)
        assert result.score == pytest.approx(max(everything.values()), abs=1e-4)
        for found, score in zip(result.nbest.texts, result.nbest.scores, strict=True):
            assert everything[found] == pytest.approx(score, abs=1e-4)
    assert [result.unknown for result in results] == [0, 0, 0]


def test_given_translations_instead_of_those_of_the_table(tiny: TinyModel) -> None:
    model, _ = _model(tiny, xml_input="exclusive")
    marked = 'c <x translation="new" prob="0.01">a b</x> a'
    given, ignored = decode(model, [marked, marked], model.weights(model.ini), UNLIMITED)
    assert all("new" in text.split() or {"a", "b"} <= set(text.split()) for text in given.nbest.texts)
    assert "new" in given.text.split()
    assert given.text == ignored.text
    model, _ = _model(tiny, xml_input="ignore")
    ignored, plain = decode(model, [marked, "c a b a"], model.weights(model.ini), UNLIMITED)
    assert (ignored.text, ignored.score) == (plain.text, plain.score)


def test_words_are_counted_without_the_tags(tiny: TinyModel) -> None:
    model, _ = _model(tiny, xml_input="exclusive")
    weights = model.weights(model.ini)
    with pytest.raises(InputError, match="line 2: more than 4000 words in one sentence"):
        decode(model, ["a", "<x>a</x>" * (MAX_WORDS + 1)], weights, UNLIMITED)
    assert decode(model, ["a" + " <wall/>" * (MAX_WORDS + 1)], weights, SearchOptions())[0].text


def test_without_the_section_tags_are_words(tiny: TinyModel) -> None:
    model, _ = _model(tiny)
    assert decode(model, ["a <wall/> b"], model.weights(model.ini), UNLIMITED)[0].unknown == 1


@pytest.mark.parametrize(
    ("sections", "sentence", "walls"),
    [
        ({"xml_input": "exclusive"}, "b <wall/> a c <wall/> b", {0, 2}),
        ({"monotone_at_punctuation": "1"}, "b a , c a", {1, 2}),
    ],
)
def test_no_phrase_jumps_over_a_wall(tiny: TinyModel, sections: dict[str, str], sentence: str, walls: set[int]) -> None:
    model, weights = _model(tiny, **sections)
    words = sentence.replace("<wall/>", "").split()

    def allowed(path: list[tuple[int, int, tuple[str, ...]]]) -> bool:
        done: set[int] = set()
        for start, end, _ in path:
            gap = min(set(range(len(words))) - done)
            if start != gap and walls & set(range(gap, end)):
                return False
            done |= set(range(start, end + 1))
        return True

    best: dict[str, float] = {}
    for path in filter(allowed, derivations(tiny, words)):
        values = features(tiny, words, path)
        text = " ".join(word for _, _, target in path for word in target)
        score = sum(w * f for name, ws in weights.items() for w, f in zip(ws, values[name], strict=True))
        best[text] = max(score, best.get(text, -math.inf))
    result = decode(model, [sentence], model.weights(model.ini), UNLIMITED)[0]
    assert best == pytest.approx(dict(zip(result.nbest.texts, result.nbest.scores, strict=True)), abs=1e-4)
    assert len(best) < len(exhaustive(tiny, words, weights))
