"""Words of all languages: their tokens, and the text again after tokenisation and detokenisation."""

import re
import unicodedata
from pathlib import Path

import pytest
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
    # emoji
    ("en", "So 👍🏽 ❤️😀 👨‍👩‍👧 🇫🇷 1️⃣ ☺!", "So 👍🏽 ❤️😀 👨‍👩‍👧 🇫🇷 1️⃣ ☺ !"),
]


@pytest.mark.parametrize(("lang", "text", "expected"), TOKENS)
def test_tokens_and_the_text_again(lang: str, text: str, expected: str) -> None:
    assert Tokenizer(lang, escape=False)(text) == expected
    assert again(lang, text) == text


def test_tokens_of_text_with_faults() -> None:
    """Character references of HTML are no words, and a quotation mark between spaces is one of a pair."""
    assert Tokenizer("en", escape=False)("Q&amp;A of R&D; a") == "Q & amp ; A of R&D ; a"
    assert Tokenizer("ko", escape=False)("값'가'의") == "값 ' 가 ' 의"
    assert Tokenizer("cs", escape=False)("psal ' (a) kniha'") == "psal ' ( a ) kniha '"


SENTENCES = """
af|Dit is 'n mooi dag, nè? Ek's moeg. Dis 'n boek van Jan se ma.
am|ሰላም፣ እንደምን አለህ? ይህ መጽሐፍ ነው።
ar|السلام عليكم، كيف حالك؟ هذا كتابٌ جديدٌ.
as|এয়া মোৰ কিতাপ। তাৰ মন ভাল নহ'ল।
ast|L'agua ta frío, d'Asturies. ¿Quies pa'l café?
az|Bu, Bakı'nın kitabıdır; necəsən?
be|Гэта м'яч, аб'ява, з'ява і п'еса.
bg|Това е книга, нали? Тя струва 5 лв. и 30 ст.
bn|এটি আমার বই। তুমি কেমন আছ?
br|C'hoarvezet eo; n'eo ket brav an amzer? Gwelet em eus ur c'harr.
ca|L'home d'aquí s'ha assegut; dóna-me'n! La col·lecció és d'or.
co|L'omu hà cumpratu un po' di pane è l'acqua.
cs|Čeština je krásná, že? Stojí to 3,50 Kč.
cy|Mae'r gath yn y tŷ; dw i'n hapus. Beth yw'r amser?
da|Det er Lars' hus, ikke? Vi ses kl. 10.
de|Das ist Hans' Haus; geht's dir gut? Die Leser:innen kommen.
el|Αυτό είναι το βιβλίο, σωστά; Απ' το σπίτι.
en|It's the boys' house, isn't it? They'd say "yes" twice.
eo|Ĉu vi parolas Esperanton? Dank' al vi, mi lernas.
es|¿Cómo estás? ¡Muy bien! O'Higgins vive en el nº 5.
et|See on Google'i raamat, kas pole? Jah.
eu|Hau liburu bat da, ezta? Kaixo!
fa|این کتابِ من است؛ می\u200cخواهم بخوانم، چطور؟
fi|EU:n jäsen on vaa'an päällä; kello on 10:30. USA:ssa ja 20:een.
fo|Hetta er mín bók, ha? Góðan dag!
fr|L'eau d'aujourd'hui n'est-elle pas fraîche, jusqu'à l'été ?
fur|L'aghe e je frede, d'unviâr.
fy|It is 'n moaie dei, 't kin net better.
ga|D'ól sé uisce, b'fhéidir; an bhfuil tú go maith?
gd|Tha a' bhean 's an duine anns an taigh; dh'fhalbh i.
gl|Este é o libro, non? Vou a Vigo.
gn|Che mba'e porã; mba'éichapa?
gu|આ મારું પુસ્તક છે. તમે કેમ છો?
ha|'Ya'yan sun zo; ina 'yar'uwarka?
haw|'O ka 'ōlelo Hawai'i kēia; aloha!
he|זה ספר של צה״ל, נכון? ד"ר כהן גר ברח' הרצל; הצ'ק אבד.
hi|यह मेरी किताब है। क्या आप ठीक हैं? डॉ॰ शर्मा आए।
hr|Ovo je knjiga, zar ne? Stoji 5,30 eura.
ht|M'ap vini; kote w'ap ale?
hu|Ez egy könyv, ugye? 10%-os kedvezmény, a "path"-érték.
hy|Սա գիրք է։ Ինչպե՞ս ես, ի՛նչ կա՝ նոր։
id|Ini buku saya, bukan? Harganya Rp 5.000.
ig|Kedu ka ị mere? Ọ dị n'ụlọ.
is|Þetta er bók, er það ekki? Já!
it|C'è un po' d'acqua? Sì, l'ho vista dall'alto; perche' no, 'ciao'?
ka|ეს წიგნია, არა? კი. საქართველო, 5 ლარი.
kk|Бұл кітап, солай ма? Иә.
kn|ಇದು ನನ್ನ ಪುಸ್ತಕ. ನೀವು ಹೇಗಿದ್ದೀರಿ?
ky|Бул китеп, ооба? Жакшы.
lb|D'Kand ass d'Kleng, gell? Et ass schéin.
lg|Kino kitabo kyange; ng'olaba?
lt|Tai yra knyga, ar ne? Taip!
lv|Šī ir grāmata, vai ne? Jā.
mg|Ity ny bokin'i Jean; tsara n'inona?
mk|Ова е книга, нели? Да.
ml|ഇത് എന്റെ പുസ്തകമാണ്. സുഖമാണോ? അവന്\u200d വന്നു.
mn|Энэ бол ном, тийм үү? Тийм.
mni|ꯃꯁꯤ ꯂꯥꯏꯔꯤꯛꯅꯤ꯫ ꯀꯔꯝꯕ?
mr|हे माझे पुस्तक आहे. तू कसा आहेस?
ms|Ini buku saya, bukan? Ya.
mt|Ta' Malta hu l-ktieb tiegħu; x'inhu? Fejn sejjer, ma' min?
my|ဒါ ကျွန်တော့် စာအုပ်ပါ၊ နေကောင်းလား။
nb|Dette er Lars' bok, ikke sant? Ja!
ne|यो मेरो किताब हो। तिमीलाई कस्तो छ?
nl|'s Avonds eet 'ie foto's op; 't is zo'n ding van m'n oma's.
nn|Dette er ei bok, ikkje sant? Ja.
oc|L'òme d'aicí s'es assetat; qu'es aquò? Es in·hèrn.
om|Kun kitaaba koo ti; du'e, ba'e?
or|ଏହା ମୋର ବହି। ଆପଣ କେମିତି ଅଛନ୍ତି?
pa|ਇਹ ਮੇਰੀ ਕਿਤਾਬ ਹੈ। ਤੁਸੀਂ ਕਿਵੇਂ ਹੋ?
pl|To książka Kennedy'ego, prawda? Kosztuje 5,30 zł.
ps|دا زما کتاب دی؛ څنګه یې؟
pt|Este é o livro, não é? Um copo d'água, s.f.f.
qu|P'unchaw allinmi; imaynallan? Mana k'achuchu.
rm|L'um ed l'aua; co vai, d'ina vart?
ro|Aceasta este cartea, nu-i așa? Costă 5,30 lei.
ru|Это книга, правда? Д'Артаньян живёт в Москве.
sc|S'abba est frida; comente istas, s'amigu?
scn|L'acqua è fridda, m'u capisci? Un po' di pani.
sd|هي منهنجو ڪتاب آهي، ڇا؟
se|EU:s lea girji, nu go? Bures!
si|මේ මගේ පොත. ඔබට කොහොමද? ශ්\u200dරී ලංකාව.
sk|Toto je kniha, však? Stojí 5,30 eura.
sl|To je knjiga, kajne? Stane 5,30 evra.
so|Tani waa buuggayga; go'aan ma lo' baa?
sq|Ky është libri, apo jo? S'ka gjë, ç'kemi?
sr|Ово је књига, зар не? Да.
sv|S:t Erik bor på EU:s gata; är klockan 10? SJ:s tåg.
sw|Ng'ombe wangu ni mkubwa; habari gani?
ta|இது என் புத்தகம். நீங்கள் எப்படி இருக்கிறீர்கள்?
tdt|Ne'e ha'u-nia livru; di'ak ka lae?
te|ఇది నా పుస్తకం. మీరు ఎలా ఉన్నారు?
tg|Ин китоб аст, не? Ҳа.
ti|ሰላም፣ ከመይ ኣለኻ? እዚ መጽሓፍ እዩ።
tk|Bu kitap, şeýlemi? Hawa.
tl|Ito ang aklat ko, 'di ba? Ako'y masaya.
to|Ko e tohi 'eni; fēfē hake, 'oku sai?
tr|Bu kitap Ankara'da, değil mi? 1990'da İstanbul'a gitti.
tt|Бу китап, шулаймы? Әйе.
ug|بۇ كىتاب، شۇنداقمۇ؟ ھەئە.
uk|М'яч, комп'ютер, п'ять і в'язень; чи так?
ur|یہ میری کتاب ہے۔ آپ کیسے ہیں، ٹھیک؟
uz|Bu O'zbekiston kitobi, to'g'rimi? Oʻzbek tili.
vec|L'aqua ze freda; un po' de pan?
vi|Đây là sách của tôi, phải không? Vâng.
wa|L' aiwe est froede; k' avoz dit?
wo|Téere bi la; naka nga def, ba'a?
xh|Le yincwadi yam; unjani, n'ezinye?
yi|ס'איז א בוך, ניין? ד"ר כהן.
yo|Ẹ̀kọ́ dára; ṣé o wà dáadáa? Ọmọ n'ílé.
zu|Le yincwadi yami; unjani, n'ezinye?
"""


@pytest.mark.parametrize("line", [line for line in SENTENCES.splitlines() if line])
def test_sentences_of_languages_with_spaces(line: str) -> None:
    lang, text = line.split("|")
    assert again(lang, text) == text


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
    "of these": words.TRUNCATION,
    "an apostrophe begins a token": {"en"},
    "an apostrophe at the edge": words.QUOTED,
    "a colon before an ending": words.COLON,
    "gershayim": words.GERSHAYIM,
    "the capital letter of `i`": detokenizer.DOTTED_I,
    "sentences are restored": {line.split("|")[0] for line in SENTENCES.splitlines() if line},
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
