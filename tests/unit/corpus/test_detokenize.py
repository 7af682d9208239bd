"""Detokenisation."""

import gzip
import lzma
from itertools import islice
from pathlib import Path

import pytest

from rnnsmt.cli import main
from rnnsmt.corpus.detokenizer import Detokenizer
from rnnsmt.corpus.tokenizer import Normalizer, Tokenizer

FRENCH = [
    ("l&apos; eau d&apos; été , qu&apos; il y a", "L'eau d'été, qu'il y a"),
    ("n&apos; est @-@ ce pas ?", "N'est-ce pas ?"),
    ("il a dit : &quot; oui &quot; .", 'Il a dit : "Oui".'),
    ("( a ) &#91; b &#93; &amp; c &lt; d &gt; e &#124; f", "(A) [b] & c < d > e | f"),
    ("12 % de 3 000 ; fin !", "12 % de 3 000 ; fin !"),
    ("écoute . encore", "Écoute. Encore"),
    ("", ""),
]


@pytest.mark.parametrize(("tokens", "text"), FRENCH)
def test_french(tokens: str, text: str) -> None:
    assert Detokenizer("fr")(tokens) == text


def test_english() -> None:
    assert Detokenizer("en")("it &apos;s the boat &apos;s , isn &apos;t it ?") == "It's the boat's, isn't it?"


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("ar", "نعم، كتب الدرس؛ هل كتب؟"),
        ("ur", "یہ کتاب ہے۔"),
        ("fa", "می\u200cخواهم کتاب\u200cها را بخوانم؟"),
        ("hi", "क्\u200dया यह ठीक है? यह ठीक है।"),
        ("am", "ሰላም፣ ዓለም።"),
    ],
)
def test_punctuation_of_other_scripts(lang: str, text: str) -> None:
    assert Detokenizer(lang)(Tokenizer(lang)(text)) == text


@pytest.mark.parametrize(
    ("lang", "text"),
    [("zh", "这 是 「 测试 」 ， 我 去 北京 ！"), ("ja", "これ は （ テスト ） です 、 行き ます か ？")],
)
def test_punctuation_between_words_without_spaces(lang: str, text: str) -> None:
    assert Detokenizer(lang)(Tokenizer(lang)(text)) == text.replace(" ", "")


def test_switches() -> None:
    assert Detokenizer("fr", detruecase=False)("l&apos; eau .") == "l'eau."
    assert Detokenizer("fr", detokenize=False)("l&apos; eau . a") == "L&apos; eau . A"
    assert Detokenizer("fr", detruecase=False, detokenize=False)(" l&apos;  eau") == "l&apos; eau"


def test_round_trip_on_real_text(shared_dir: Path) -> None:
    """More than 85 % of newstest2014 is restored exactly; all detokenised lines tokenise to the same tokens."""
    with lzma.open(shared_dir / "data" / "mini-wmt" / "newstest2014.fr.xz", "rt", encoding="utf-8") as stream:
        lines = [line.rstrip("\n") for line in islice(stream, 600)]
    normalize, tokenize, detokenize = Normalizer("fr"), Tokenizer("fr"), Detokenizer("fr", detruecase=False)
    normalised = [normalize(line) for line in lines]
    tokens = [tokenize(line) for line in normalised]
    text = [detokenize(line) for line in tokens]
    assert [tokenize(normalize(line)) for line in text] == tokens
    same = sum(" ".join(a.split()) == b for a, b in zip(normalised, text, strict=True))
    assert same / len(lines) > 0.85


def test_stage(tmp_path: Path) -> None:
    (tmp_path / "i.gz").write_bytes(gzip.compress(b"l&apos; eau .\n\nla mer .\n"))
    words = ["--input", str(tmp_path / "i.gz"), "--output", str(tmp_path / "o"), "--lang", "fr"]
    assert main(["corpus", "detokenize", *words]) == 0
    assert (tmp_path / "o").read_text() == "L'eau.\n\nLa mer.\n"
    assert main(["corpus", "detokenize", *words, "--no-detruecase", "--threads", "2"]) == 0
    assert (tmp_path / "o").read_text() == "l'eau.\n\nla mer.\n"


@pytest.mark.parametrize(("content", "message"), [(b"a\n\xff\n", "line 2: not UTF-8"), (None, "no such file")])
def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "i").write_bytes(content)
    out = tmp_path / "o"
    assert main(["corpus", "detokenize", "--input", str(tmp_path / "i"), "--output", str(out), "--lang", "fr"]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()
    assert not list(tmp_path.glob(".tmp*"))
