"""Words of all languages: their tokens, and the text again after tokenisation and detokenisation."""

import re
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from sacremoses import MosesTokenizer
from sacremoses.corpus import NonbreakingPrefixes

from rnnsmt.config.languages import WITHOUT_SPACES
from rnnsmt.corpus import detokenizer, words
from rnnsmt.corpus.detokenizer import Detokenizer
from rnnsmt.corpus.tokenizer import VERSION, Normalizer, Tokenizer, tokenizer_version


def again(lang: str, text: str) -> str:
    """Return a text after normalisation, tokenisation and detokenisation."""
    return Detokenizer(lang, detruecase=False)(Tokenizer(lang)(Normalizer(lang)(unicodedata.normalize("NFC", text))))


TOKENS = [
    # colons before endings; a colon before another word is a token
    ("fi", "EU:n ja YK:ssa, klo 10:30: hei EU:N.", "EU:n ja YK:ssa , klo 10:30 : hei EU:N ."),
    ("sv", "S:t Erik, 3:e. Svar: ja", "S:t Erik , 3:e . Svar : ja"),
    ("de", "Leser:innen: Fragen", "Leser:innen : Fragen"),
    # apostrophes in words and at their edges, and quotation marks
    ("ca", "L'amic d'en Pere, il·lusió.", "L' amic d' en Pere , il·lusió ."),
    ("ga", "d'fhear b'fhéidir", "d' fhear b' fhéidir"),
    ("it", "un po' di pane dell'8 marzo, 'ciao'", "un po' di pane dell' 8 marzo , ' ciao '"),
    ("uk", "м'яч, обов'язково 'слово'", "м'яч , обов'язково ' слово '"),
    ("nl", "'s Avonds zijn oma's 't liedje 'vergeten'", "'s Avonds zijn oma's 't liedje ' vergeten '"),
    ("nl", "'Dat is waar, zei hij.", "' Dat is waar , zei hij ."),
    ("af", "Dit is 'n man en 'n 'groot' vrou.", "Dit is 'n man en 'n ' groot ' vrou ."),
    ("de", "Hans' Haus, wenn's geht", "Hans' Haus , wenn's geht"),
    ("so", "lo' go'aan", "lo' go'aan"),
    ("tdt", "ne'ebé", "ne'ebé"),
    ("tr", "Ankara'da 1990'da", "Ankara'da 1990'da"),
    ("en", "It's the boys' rock 'n' roll.", "It 's the boys ' rock ' n ' roll ."),
    ("fr", "L'eau d'aujourd'hui, l'11 mai", "L' eau d' aujourd' hui , l ' 11 mai"),
    ("he", 'צה״ל צה"ל צ\'ק רח\' "שלום"', 'צה״ל צה"ל צ\'ק רח\' " שלום "'),
    # letters and marks of all scripts
    ("yo", "Ẹ̀kọ́ fún gbogbo ènìyàn", "Ẹ̀kọ́ fún gbogbo ènìyàn"),
    ("th", "ง่าย มาก.", "ง่าย มาก ."),
    ("km", "ភាសា\u200bខ្មែរ។", "ភាសា \u200b ខ្មែរ ។"),
    ("bo", "བོད་ཡིག་ ཡིན།", "བོད ་ ཡིག་ ཡིན །"),
    ("hi", "क्या हिन्दी है?", "क्या हिन्दी है ?"),
    ("fa", "می\u200cخواهم", "می\u200cخواهم"),
    ("ml", "അവന്\u200d വന്നു", "അവന്\u200d വന്നു"),
    ("ff", "𞤀𞤣𞤤𞤢𞤥 𞥐,𞥑.", "𞤀𞤣𞤤𞤢𞤥 𞥐,𞥑 ."),
    ("en", "我去北京 means", "我去北京 means"),
    ("ja", "これは。「テスト」、ア・イ。", "これは 。 「 テスト 」 、 ア ・ イ 。"),
    ("zh", "我去「北京」！", "我去 「 北京 」 ！"),
    ("ko", "안녕, Côte d'Ivoire。", "안녕 , Côte d'Ivoire 。"),
    ("hy", "Ինչպե՞ս ես։", "Ինչպե՞ս ես ։"),
    ("he", "בית־ספר", "בית־ספר"),
    ("de", "E\u2010Mail Donau\u00addampf", "E\u2010Mail Donau\u00addampf"),
    ("ar", "٣٫٥ كُتُب", "٣٫٥ كُتُب"),
    ("ka", "წიგნი. სახლი", "წიგნი . სახლი"),
    # addresses, numbers, units, names with signs
    ("en", "To jo@example.org (see https://a.org/b_(c)?d=1).", "To jo@example.org ( see https://a.org/b_(c)?d=1 ) ."),
    ("fr", "www.example.org/a/ ou /usr/bin/env.", "www.example.org/a/ ou /usr/bin/env ."),
    ("en", "at 10:30 on 03/05/2024, 1/2 or 16:9.", "at 10:30 on 03/05/2024 , 1/2 or 16:9 ."),
    ("en", "25 m² at 15°C and 90 km/h, CO₂", "25 m² at 15°C and 90 km/h , CO₂"),
    ("en", "C++, C#, AT&T, x_1, #tag, @me, a/b, +33", "C++ , C# , AT&T , x_1 , #tag , @me , a/b , +33"),
    ("ja", "https://a.org/b。明日は", "https://a.org/b 。 明日は"),
    ("ar", "https://a.org/b، ثم", "https://a.org/b ، ثم"),
    ("en", "https://a.org/b、the child", "https://a.org/b 、 the child"),
    ("en", "kg·m⁻², 10⁻⁶, Ca²⁺, e⁻", "kg·m⁻² , 10⁻⁶ , Ca²⁺ , e⁻"),
    ("fi", "10 €:n, 3 °:n", "10 €:n , 3 °:n"),
    ("sv", "5:-, 30:-", "5:- , 30:-"),
    ("tr", "bu yıl %20 arttı, (%50'si) 5", "bu yıl % 20 arttı , ( % 50'si ) 5"),
    ("hu", "10%-os", "10%-os"),
    ("en", "no %s in %1$s (%d%)", "no %s in %1$s ( %d % )"),
    ("en", "he and/or she = 5 + 3, 5 €, $5", "he and / or she = 5 + 3 , 5 € , $ 5"),
    (
        "en",
        "mailto:jo@example.org, smb://a/b.txt, doi:10.1000/1-x.",
        "mailto:jo@example.org , smb://a/b.txt , doi:10.1000/1-x .",
    ),
    ("en", "10.1038/s41586-020 at localhost:8000/x, a.org:80", "10.1038/s41586-020 at localhost:8000/x , a.org:80"),
    ("en", r"\\server\share$\a (*.txt)", r"\\server\share$\a ( *.txt )"),
    ("kn", "jo@example.orgಗೆ jo@example.org-ಗೆ", "jo@example.orgಗೆ jo@example.org-ಗೆ"),
    ("de", "die jo@example.org-Adresse", "die jo@example.org-Adresse"),
    ("en", "GTK+ and 18+, US$5, -$5 and A$ 6.50", "GTK+ and 18+ , US$5 , - $ 5 and A$ 6.50"),
    ("fr", "5 $CA et 1'000, AA+", "5 $CA et 1'000 , AA+"),
    ("pt", "R$ 5,30 e € 5", "R$ 5,30 e € 5"),
    ("en", "the '90s, 'tis for 'em", "the '90s , 'tis for 'em"),
    ("en", "in {n} of {{a.b}}, {0}, ${x} and %(n)s.", "in {n} of {{a.b}} , {0} , ${x} and %(n)s ."),
    ("en", "a :smile: at 10:30: yes", "a :smile: at 10:30 : yes"),
    ("ckb", "بە \u200cهەڵە", "بە \u200cهەڵە"),
    # emoji
    ("en", "So 👍🏽 ❤️😀 👨‍👩‍👧 🇫🇷 1️⃣ ☺!", "So 👍🏽 ❤️😀 👨‍👩‍👧 🇫🇷 1️⃣ ☺ !"),
]


def test_text_in_a_wrong_encoding_is_not_an_amount():
    """The demo corpus has ``Ã€``, which was ``À``: only ASCII capitals are part of a currency, as in ``CA$``."""
    assert Tokenizer("fr")("Ã€ tout moment") == "Ã € tout moment"


@pytest.mark.parametrize(("lang", "text", "expected"), TOKENS)
def test_tokens_and_the_text_again(lang: str, text: str, expected: str) -> None:
    assert Tokenizer(lang, escape=False)(text) == expected
    assert again(lang, text) == text


def test_every_letter_of_unicode_is_part_of_a_word() -> None:
    letter = regex.compile(r"[\p{L}\p{M}\p{Alphabetic}]")
    words_ = [f"a{chr(code)}b" for code in range(0xA0, 0x110000) if letter.match(chr(code))]
    assert len(words_) > 140_000
    tokenize = Tokenizer("en", escape=False)
    for begin in range(0, len(words_), 2000):
        part = words_[begin : begin + 2000]
        assert tokenize("'' " + " ".join(part)).split()[-len(part) :] == part


TYPOGRAPHIC = [
    ("mt", "ta’ fenek b’widnejn", "ta’ fenek b’widnejn"),
    ("uz", "lag‘mon, o‘lchov ‘tirnoq’", "lag‘mon , o‘lchov ‘ tirnoq ’"),
    ("en", "In 1990–95 “yes, ‘no’”, the boys’ club: “so.”", "In 1990–95 “ yes , ‘ no ’ ” , the boys ’ club : “ so . ”"),
    ("en", "It’s the ’90s: let ’em", "It ’s the ’90s : let ’em"),
    ("de", "„Ja!“, ‚nein‘, »gut.« (»so«)", "„ Ja ! “ , ‚ nein ‘ , » gut . « ( » so « )"),
    ("fr", "Il dit « oui. » et “non”.", "Il dit « oui . » et “ non ” ."),
    ("sv", "”Ja”, sa han: ’nej’. »Nå»", "” Ja ” , sa han : ’ nej ’ . » Nå »"),
    ("fi", "”path”-arvo ja ”path”:n", "” path ” -arvo ja ” path ” :n"),
    ("ug", "‹a› b", "‹ a › b"),
    ("zh", "他说：“你好。”然后", "他说 ： “ 你好 。 ” 然后"),
    ("en", "“The first of two lines", "“ The first of two lines"),
    ("en", "the second.”", "the second . ”"),
]


@pytest.mark.parametrize(("lang", "text", "expected"), TYPOGRAPHIC)
def test_quotation_marks_without_normalisation(lang: str, text: str, expected: str) -> None:
    tokens = Tokenizer(lang, escape=False)(text)
    assert tokens == expected
    assert Detokenizer(lang, detruecase=False)(tokens) == text


def test_tokens_of_text_with_faults() -> None:
    """Character references of HTML are no words, and a quotation mark between spaces is one of a pair."""
    assert Tokenizer("en", escape=False)("Q&amp;A of R&D; a") == "Q & amp ; A of R&D ; a"
    assert Tokenizer("fr", escape=False)("+oui+ ou +Oui non+") == "+ oui + ou + Oui non +"
    assert Tokenizer("en", escape=False)(r"C:\\a\\b c") == r"C : \ \ a \ \ b c"
    assert Tokenizer("ko", escape=False)("값'가'의") == "값 ' 가 ' 의"
    assert Tokenizer("cs", escape=False)("psal ' (a) kniha'") == "psal ' ( a ) kniha '"


SENTENCES = [
    line.split("|", 1) for line in (Path(__file__).parent / "sentences.txt").read_text(encoding="utf-8").splitlines()
]
"""Pairs of a language and a sentence."""

NUMBERS = Counter(lang for lang, _ in SENTENCES)


@pytest.mark.parametrize("lang", sorted({lang for lang, _ in SENTENCES}))
def test_sentences_of_languages_with_spaces(lang: str) -> None:
    sentences = [text for of, text in SENTENCES if of == lang]
    assert [again(lang, text) for text in sentences] == sentences


@pytest.mark.parametrize("lang", sorted({lang for lang, _ in SENTENCES} - {"he", "yi"}))
def test_sentences_with_typographic_signs(lang: str) -> None:
    """Apostrophes and quotation marks that are not normalised; in Hebrew, the plain ones are also letters."""
    plain = [text for of, text in SENTENCES if of == lang]
    sentences = [re.sub(r'(?<!\w)"([^"]*)"(?!\w)', "“\\1”", text).replace("'", "’") for text in plain]
    tokenize, detokenize = Tokenizer(lang), Detokenizer(lang, detruecase=False)
    assert [detokenize(tokenize(text)) for text in sentences] == sentences


def test_languages_of_moses_rules_have_twenty_sentences() -> None:
    """Somali and Korean have rules, but no abbreviations."""
    assert ({*LANGUAGES["abbreviations"], "ko", "so"} - WITHOUT_SPACES) <= LANGUAGES["twenty sentences"]


SIGNS = """
L' l' 's ' " '' .' . .. ... , : :n / // /a a/b km/h a@b.org a@ @ @b www.a.org/b. http:// https://a.b/c(d) \\ C:\\a
& &amp; < > <b> </b> # #a ## + ++ C++ +1 ° 1° °C ′ % 1% 1%-a _ __a 1:2 1/2 1,5 1. 1.. 1..2 ² m² ½ € $1 - -- \u2010 ־ ·
l·l ״ צה״ל א"ב א' é Ẹ̀ \u0300 ง่าย क् \u200d \u200c a\u200d \u00ad a\u00adb \u200b \u200f \u200fa ་ ཀ་ཀ 😀 👍🏽 👨‍👩‍👧 🇫 🇫🇷
🇫🇷🇩 1️⃣ *️⃣ ™ ƻ ƛ ᱐ ƻ' 𞤀 𞥐 漢字 、 ა ª DOTMULTI THISISPROTECTED000 U.S. etc. x
"""
PIECES = SIGNS.split()


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["en", "fr", "it", "fi", "he", "km", "uk"]), st.lists(st.sampled_from([*PIECES, " ", " ", " "])))
def test_no_character_is_lost_or_changed(lang: str, pieces: list[str]) -> None:
    text = "".join(pieces)
    tokens = TOKENIZERS[lang](text)
    assert tokens.replace(" ", "") == "".join(text.split())
    assert "".join(TOKENIZERS[lang](token) for token in text.split()).replace(" ", "") == tokens.replace(" ", "")


TOKENIZERS = {lang: Tokenizer(lang, escape=False) for lang in ["en", "fr", "it", "fi", "he", "km", "uk"]}


@pytest.mark.parametrize(
    ("lang", "tokens", "text"),
    [
        ("fr", "il coûte 5 € par mois", "il coûte 5 € par mois"),
        ("en", "it costs $ 5 per month", "it costs $5 per month"),
        ("cs", "1. 1. 1970 , 0 , 1 a 2 .", "1. 1. 1970, 0, 1 a 2."),
        ("en", "1 , 2 , ... or 9 ...", "1, 2, ... or 9..."),
        ("de", "der &quot; path &quot; -Wert", 'der "path"-Wert'),
        ("fi", "muuttujan &quot; path &quot; :n arvo", 'muuttujan "path":n arvo'),
        ("de", "ja ! &quot;", 'ja!"'),
        ("it", "un po&apos; di l&apos; acqua dell&apos; 8", "un po' di l'acqua dell'8"),
        ("en", "&lt; b &gt; a &lt; / b &gt; c &lt; d &gt; e", "<b>a</b> c < d > e"),
        ("el", "ναι · όχι", "ναι· όχι"),
        ("mni", "ꯃꯁꯤ ꯂꯥꯏꯔꯤꯛꯅꯤ ꯫", "ꯃꯁꯤ ꯂꯥꯏꯔꯤꯛꯅꯤ꯫"),
        ("ar", "\u200f Win \u200f ، أ", "\u200fWin\u200f، أ"),
        ("en", "Unix ™ and R&amp;D", "Unix™ and R&D"),
        ("en", "§ § 5 , ¶ 3 , a - &gt; b , c &gt; = d", "§§ 5, ¶3, a -> b, c >= d"),
        ("de", "Ein- / Auspacken , Kaufmann / -frau , 5 ‰", "Ein-/Auspacken, Kaufmann/-frau, 5‰"),
        ("en", "find / -name a", "find / -name a"),
        ("nl", "- € 5 en € 5,30", "-€ 5 en € 5,30"),
        ("bn", "৫ ৳ ।", "৫৳।"),
        ("fr", "vrai ? ! ( oui ) ; 5 ‰", "vrai ?! (oui) ; 5 ‰"),
        ("fr", "des cités &quot; : oui ( ? )", 'des cités " : oui (?)'),
        ("br", "( ya ) ! &quot; Piv &quot; ? 50 % .", '(ya) ! "Piv" ? 50 %.'),
        ("ko", "&quot; 값 ? &quot; 라고 ( 12 ) 를 &quot; 가 &quot; 나무", '"값?"라고 (12)를 "가" 나무'),
        ("en", "a \x00 “ b \x00", "a “b"),
    ],
)
def test_spaces_between_tokens(lang: str, tokens: str, text: str) -> None:
    assert Detokenizer(lang, detruecase=False)(tokens) == text


@pytest.mark.parametrize(
    ("lang", "tokens", "text"),
    [
        ("ka", "წიგნი . სახლი", "წიგნი. სახლი"),  # the Georgian script has no capital letters in running text
        ("en", "ﬁn . ǆep ?", "Fin. ǅep?"),
        ("af", "ŉ man", "ŉ man"),
        ("nl", "ijs . ja", "IJs. Ja"),
        ("tr", "iyi . ıslak", "İyi. Islak"),
        ("ff", "𞤢𞤣", "𞤀𞤣"),
        ("en", "jo@example.org writes . https://a.org/b", "jo@example.org writes. https://a.org/b"),
        ("en", "and/or km/h . /usr/bin", "And/or km/h. /usr/bin"),
    ],
)
def test_capital_letters(lang: str, tokens: str, text: str) -> None:
    assert Detokenizer(lang)(tokens) == text


def test_addresses_are_not_normalised() -> None:
    text = "voir https://a.org/b_(c)–d?e='f''g' et « 5 % »"
    assert Normalizer("fr")(text) == "voir https://a.org/b_(c)–d?e='f''g' et \" 5% \""


PAGE = Path(__file__).parents[3] / "docs/languages.md"

LANGUAGES = {
    "abbreviations": {lang for lang in NonbreakingPrefixes().available_langs if len(lang) < 4},
    "an apostrophe ends a token": words.ELISION,
    "an apostrophe after a vowel": words.TRUNCATION,
    "an apostrophe begins a token": {"en"},
    "an apostrophe at the edge": words.QUOTED,
    "a colon before an ending": words.COLON,
    "gershayim": words.GERSHAYIM,
    "a space before `? !": detokenizer.WIDE_PUNCTUATION,
    "a space between a currency sign": detokenizer.WIDE_CURRENCY,
    "no space between a number": detokenizer.NARROW_CURRENCY,
    "particles": {"ko"},
    "the capital letter of `i`": detokenizer.DOTTED_I,
    "twenty sentences": {lang for lang, number in NUMBERS.items() if number >= 20},
    "one to three sentences": {lang for lang, number in NUMBERS.items() if number < 20},
}
"""Languages by a part of the rule in docs/languages.md."""


def test_the_page_of_languages_names_those_of_the_rules() -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    rules = {row[0]: set(row[1].split()) for row in rows if len(row) == 2}
    for part, languages in LANGUAGES.items():
        assert [found for rule, found in rules.items() if part in rule] == [set(languages)], part
    without_spaces = PAGE.read_text(encoding="utf-8").split("## Languages without spaces")[1]
    without_spaces = without_spaces.split(": ")[1].split(".")[0]
    assert set(without_spaces.split()) == WITHOUT_SPACES


def test_the_version_depends_on_the_rules_of_a_language(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {lang: tokenizer_version(lang) for lang in ("en", "fr", "fi")}
    assert len(set(versions.values())) == 3
    assert all(version.startswith(f"{VERSION}-") for version in versions.values())
    tokenizer_version.cache_clear()
    monkeypatch.setattr(MosesTokenizer, "SYMBOLS", None)  # not used by the tokeniser
    assert tokenizer_version("en") == versions["en"]
    tokenizer_version.cache_clear()
    monkeypatch.setattr(MosesTokenizer, "COMMA_SEPARATE_1", (re.compile("$^"), ""))
    monkeypatch.setattr(MosesTokenizer, "COMMA_SEPARATE_2", (re.compile("$^"), ""))
    assert tokenizer_version("en") != versions["en"]
    tokenizer_version.cache_clear()
