"""The normaliser and tokeniser have the output of sacremoses, except for words and the ends of lines (test_words.py).

The cache and the shortcuts change nothing.
"""

import lzma
import re
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from rnnsmt.corpus import tokenizer
from rnnsmt.corpus.tokenizer import Normalizer, Tokenizer

LINES = [
    "L'eau d'aujourd'hui, c'est « l'or » ; n'est-ce pas ?",
    "It's the 'best': don't say 'yes' (or \"no\")...",
    "M. Dupont a vu le no. 12 etc. et le no. X. Fin.",
    "No. 5 is here. No. Five is not. Mr. Smith vs. the U.S. gov.",
    "1,250 euros,mais 3,5 % ,et ,ceci, 12, 13,",
    "a.b.c. d.e. f... g.. h. 1. i",
    "state-of-the-art -- dash-es - - -a b-",
    "x y 'a' '' ' ' '. ,, ,a, a,,b",
    "«\u00a0oui\u00a0» 12\u00a0000 5\u00a0% nº\u00a01 20\u00a0ºC 3\u00a0cm quoi\u00a0? ah\u00a0! bon\u00a0;",
    "`grave' ''double'' „bas“ ‘s’ ´´ … – —",
    "( a ) (b) . (c) ! ) ; (12 %) \r",
    'he said ", and" then ".',
    "& < > | [ ] <b>x</b> ||| &amp;",
    "a\u2028b\x85c\u00a0d\u3000e",
    "",
    " ",
    ".",
    "'",
    "U.S.\" 'this .' end.'",
]

ALPHABET = "abXÉé1 2.,'\"-«»;!?()[]<>|`…\u00a0\u0301"
"""Characters without those that are part of words here, and separated by sacremoses (see test_words.py)."""


@pytest.mark.parametrize("lang", ["en", "fr", "de"])
def test_normaliser_equals_sacremoses(lang: str) -> None:
    ours, theirs = Normalizer(lang), MosesPunctNormalizer(lang)
    for line in LINES:
        assert ours(line) == theirs.normalize(line)


def moses(tokenizer: MosesTokenizer, line: str, escape: bool = True) -> str:
    """Return the tokens of sacremoses; as in Moses' script, the full stop at the end of the line is a token."""
    tokens: str = tokenizer.tokenize(line, return_str=True, escape=escape)
    stands_apart = not tokens.endswith(".") or tokens.endswith((" .", "..")) or tokens == "."
    return tokens if stands_apart else f"{tokens[:-1]} ."


@pytest.mark.parametrize("escape", [True, False])
@pytest.mark.parametrize("lang", ["en", "fr"])
def test_tokeniser_equals_sacremoses(lang: str, escape: bool) -> None:
    ours, theirs = Tokenizer(lang, escape), MosesTokenizer(lang)
    for line in LINES + LINES:  # the second time from the cache
        assert ours(line) == moses(theirs, line, escape)


@settings(max_examples=120, deadline=None)
@given(st.text(ALPHABET, max_size=40))
def test_any_text_in_french(line: str) -> None:
    normalised = MosesPunctNormalizer("fr").normalize(line)
    assert FRENCH_NORMALIZER(line) == normalised
    for text in (line, normalised):
        without = re.sub(r"(?<=\d)'(?=\d)", "", text.replace("\u0301", ""))
        assert FRENCH(without) == moses(MOSES_FRENCH, without)


FRENCH_NORMALIZER, FRENCH, MOSES_FRENCH = Normalizer("fr"), Tokenizer("fr"), MosesTokenizer("fr")


CHUNKS = """word Word 12 a. etc. No. U.S. 1. l'eau it's x-y , . ' '' a, ,b 3,5 (c) ... é"""


@settings(max_examples=120, deadline=None)
@given(st.lists(st.sampled_from(CHUNKS.split())))
def test_any_chunks_in_english(chunks: list[str]) -> None:
    line = " ".join(chunks)
    assert ENGLISH(line) == moses(MOSES_ENGLISH, line)


ENGLISH, MOSES_ENGLISH = Tokenizer("en"), MosesTokenizer("en")


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "MEMORY_ENTRIES", 3)
    ours = Tokenizer("fr")
    assert ours("a b c d e 12.") == "a b c d e 12 ."
    assert len(ours._memory) <= 3


@pytest.mark.parametrize(
    ("corpus", "lang", "share"),
    [("newstest2014", "fr", 0.95), ("newstest2014", "en", 0.95), ("python-docs", "fr", 0.8)],
)
def test_real_text(shared_dir, corpus: str, lang: str, share: float) -> None:
    """Most lines have the tokens of sacremoses; the others differ in spaces only."""
    with lzma.open(shared_dir / "data" / "mini-wmt" / f"{corpus}.{lang}.xz", "rt", encoding="utf-8") as stream:
        lines = [line.rstrip("\n") for line in islice(stream, 300)]
    normalize, tokenize = Normalizer(lang), Tokenizer(lang)
    theirs, moses_tokens = MosesPunctNormalizer(lang), MosesTokenizer(lang)
    equal = 0
    for line in lines:
        normalised = theirs.normalize(line)
        assert "://" in line or normalize(line) == normalised
        ours, expected = tokenize(normalised), moses(moses_tokens, normalised)
        assert ours.replace(" ", "") == expected.replace(" ", "")
        equal += ours == expected
    assert equal / len(lines) > share
