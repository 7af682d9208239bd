"""The normaliser and tokeniser, including their cache and shortcuts, have the output of sacremoses."""

import lzma
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from rnnsmt.corpus import tokenizer
from rnnsmt.corpus.tokenizer import Normalizer, Tokenizer

LINES = [
    "L'eau d'aujourd'hui, c'est « l'or » ; n'est-ce pas ?",
    "It's the '90s: don't say 'yes' (or \"no\")...",
    "M. Dupont a vu le no. 12 etc. et le no. X. Fin.",
    "No. 5 is here. No. Five is not. Mr. Smith vs. the U.S. gov.",
    "1,250 euros,mais 3,5 % ,et ,ceci, 12, 13,",
    "a.b.c. d.e. f... g.. h. 1. i",
    "state-of-the-art -- dash-es - - -a b-",
    "x_y 'a' '' ' ' '. ,, ,a, a,,b",
    "«\u00a0oui\u00a0» 12\u00a0000 5\u00a0% nº\u00a01 20\u00a0ºC 3\u00a0cm quoi\u00a0? ah\u00a0! bon\u00a0;",
    "`grave' ''double'' „bas“ ‘s’ l’été ´´ … – —",
    "( a ) (b) . (c) ! ) ; (12 %) \r",
    'he said ", and" then ".',
    "& < > | [ ] <b>x</b> ||| &amp;",
    "DOTMULTI DOTDOTMULTI. DOTMULTI...",
    "a\u2028b\x85c\u00a0d\u3000e",
    "",
    " ",
    ".",
    "'",
    "U.S.\" 'tis .' end.'",
]

ALPHABET = "abXÉé1 2.,'\"-_&«»%:;!?()[]<>|`’…\u00a0$€DOTMULTI\u0301"


@pytest.mark.parametrize("lang", ["en", "fr", "de"])
def test_normaliser_equals_sacremoses(lang: str) -> None:
    ours, theirs = Normalizer(lang), MosesPunctNormalizer(lang)
    for line in LINES:
        assert ours(line) == theirs.normalize(line)


@pytest.mark.parametrize("escape", [True, False])
@pytest.mark.parametrize("lang", ["en", "fr", "de"])
def test_tokeniser_equals_sacremoses(lang: str, escape: bool) -> None:
    ours, theirs = Tokenizer(lang, escape), MosesTokenizer(lang)
    for line in LINES + LINES:  # the second time from the cache
        assert ours(line) == theirs.tokenize(line, return_str=True, escape=escape)


@settings(max_examples=120, deadline=None)
@given(st.text(ALPHABET, max_size=40))
def test_any_text_in_french(line: str) -> None:
    normalised = MosesPunctNormalizer("fr").normalize(line)
    assert FRENCH_NORMALIZER(line) == normalised
    for text in (line, normalised):
        assert FRENCH(text) == MOSES_FRENCH.tokenize(text, return_str=True)


FRENCH_NORMALIZER, FRENCH, MOSES_FRENCH = Normalizer("fr"), Tokenizer("fr"), MosesTokenizer("fr")


CHUNKS = """word Word 12 a. etc. No. U.S. 1. l'eau it's x-y , . ' '' a, ,b 3,5 (c) ... é"""


@settings(max_examples=120, deadline=None)
@given(st.lists(st.sampled_from(CHUNKS.split())))
def test_any_chunks_in_english(chunks: list[str]) -> None:
    line = " ".join(chunks)
    assert ENGLISH(line) == MOSES_ENGLISH.tokenize(line, return_str=True)


ENGLISH, MOSES_ENGLISH = Tokenizer("en"), MosesTokenizer("en")


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "MEMORY_ENTRIES", 3)
    ours = Tokenizer("fr")
    assert ours("a b c d e 12.") == "a b c d e 12 ."
    assert len(ours._memory) <= 3


@pytest.mark.parametrize(("corpus", "lang"), [("newstest2014", "fr"), ("newstest2014", "en"), ("python-docs", "fr")])
def test_real_text(shared_dir, corpus: str, lang: str) -> None:
    with lzma.open(shared_dir / "data" / "mini-wmt" / f"{corpus}.{lang}.xz", "rt", encoding="utf-8") as stream:
        lines = [line.rstrip("\n") for line in islice(stream, 300)]
    normalize, tokenize = Normalizer(lang), Tokenizer(lang)
    theirs, moses = MosesPunctNormalizer(lang), MosesTokenizer(lang)
    for line in lines:
        normalised = theirs.normalize(line)
        assert normalize(line) == normalised
        assert tokenize(normalised) == moses.tokenize(normalised, return_str=True)
