"""Language codes (ISO 639-1, where a language has such a code), names of languages, and suffixes of file names."""

import re
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any

from rnnsmt.base.fields import Field

_THREE_LETTERS = """
aar:aa abk:ab afr:af aka:ak alb:sq amh:am ara:ar arb:ar arg:an arm:hy asm:as ava:av ave:ae aym:ay aze:az bak:ba bam:bm
baq:eu bel:be ben:bn bis:bi bod:bo bos:bs bre:br bul:bg bur:my cat:ca ces:cs cha:ch che:ce chi:zh chu:cu chv:cv cmn:zh
cor:kw cos:co cre:cr cym:cy cze:cs dan:da deu:de div:dv dut:nl dzo:dz ell:el eng:en epo:eo est:et eus:eu ewe:ee fao:fo
fas:fa fij:fj fin:fi fra:fr fre:fr fry:fy ful:ff geo:ka ger:de gla:gd gle:ga glg:gl glv:gv gre:el grn:gn guj:gu hat:ht
hau:ha heb:he her:hz hin:hi hmo:ho hrv:hr hun:hu hye:hy ibo:ig ice:is ido:io iii:ii iku:iu ile:ie ina:ia ind:id ipk:ik
isl:is ita:it jav:jv jpn:ja kal:kl kan:kn kas:ks kat:ka kau:kr kaz:kk khm:km kik:ki kin:rw kir:ky kom:kv kon:kg kor:ko
kua:kj kur:ku lao:lo lat:la lav:lv lim:li lin:ln lit:lt ltz:lb lub:lu lug:lg mac:mk mah:mh mal:ml mao:mi mar:mr may:ms
mkd:mk mlg:mg mlt:mt mon:mn mri:mi msa:ms mya:my nau:na nav:nv nbl:nr nde:nd ndo:ng nep:ne nld:nl nno:nn nob:nb nor:no
nya:ny oci:oc oji:oj ori:or orm:om oss:os pan:pa per:fa pes:fa pli:pi pol:pl por:pt pus:ps que:qu roh:rm ron:ro rum:ro
run:rn rus:ru sag:sg san:sa sin:si slk:sk slo:sk slv:sl sme:se smo:sm sna:sn snd:sd som:so sot:st spa:es sqi:sq srd:sc
srp:sr ssw:ss sun:su swa:sw swe:sv tah:ty tam:ta tat:tt tel:te tgk:tg tgl:tl tha:th tib:bo tir:ti ton:to tsn:tn tso:ts
tuk:tk tur:tr twi:tw uig:ug ukr:uk urd:ur uzb:uz ven:ve vie:vi vol:vo wel:cy wln:wa wol:wo xho:xh yid:yi yor:yo zha:za
zho:zh zul:zu
"""

TWO_LETTERS: dict[str, str] = dict(pair.split(":") for pair in _THREE_LETTERS.split())
"""Two-letter codes (ISO 639-1) by three-letter code (ISO 639-2 and 639-3)."""

CODES = frozenset(TWO_LETTERS.values())

_WITHOUT_SPACES = """
bo dz ii ja km lo my th zh blt gan hak hsn kdt khb kht kjg kxm lcp lwl lzh mnw nan nod ryu shn sou tdd tts wuu yue zkt
"""

WITHOUT_SPACES = frozenset(_WITHOUT_SPACES.split())
"""Languages without spaces: Tibetan, Dzongkha, and those whose script breaks lines between letters (CLDR)."""

_WITH_REGION = re.compile(r"([a-z]{2,3})(?:(?:[-_](?:[A-Z]{2}|[A-Z][a-z]{3}|\d{3}))+|_[a-z]{2})")
"""A code with a script or a region: ``pt_BR``, ``zh-Hant``, ``es_419``; ``zh_cn`` of OPUS, but not ``fr-en``."""


def without_region(code: str) -> str:
    """Return a language code without its script and region: ``pt`` for ``pt_BR``."""
    match = _WITH_REGION.fullmatch(code)
    return match[1] if match else code


def two_letters(code: str) -> str:
    """Return a language code without its script and region, as two letters if the language has such a code."""
    language = without_region(code).lower()
    return TWO_LETTERS.get(language, language)


_NAMES = """
aa Afar|ab Abkhazian|ae Avestan|af Afrikaans|ak Akan|am Amharic|an Aragonese|ar Arabic|as Assamese|av Avaric|
ay Aymara|az Azerbaijani|ba Bashkir|be Belarusian|bg Bulgarian|bi Bislama|bm Bambara|bn Bengali|bo Tibetan|
br Breton|bs Bosnian|ca Catalan|ce Chechen|ch Chamorro|co Corsican|cr Cree|cs Czech|cu Church Slavonic|
cv Chuvash|cy Welsh|da Danish|de German|dv Divehi|dz Dzongkha|ee Ewe|el Greek|en English|eo Esperanto|
es Spanish|et Estonian|eu Basque|fa Persian|ff Fulah|fi Finnish|fj Fijian|fo Faroese|fr French|
fy Western Frisian|ga Irish|gd Scottish Gaelic|gl Galician|gn Guarani|gu Gujarati|gv Manx|ha Hausa|he Hebrew|
hi Hindi|ho Hiri Motu|hr Croatian|ht Haitian Creole|hu Hungarian|hy Armenian|hz Herero|ia Interlingua|
id Indonesian|ie Interlingue|ig Igbo|ii Sichuan Yi|ik Inupiaq|io Ido|is Icelandic|it Italian|iu Inuktitut|
ja Japanese|jv Javanese|ka Georgian|kg Kongo|ki Kikuyu|kj Kuanyama|kk Kazakh|kl Kalaallisut|km Khmer|
kn Kannada|ko Korean|kr Kanuri|ks Kashmiri|ku Kurdish|kv Komi|kw Cornish|ky Kyrgyz|la Latin|lb Luxembourgish|
lg Ganda|li Limburgish|ln Lingala|lo Lao|lt Lithuanian|lu Luba-Katanga|lv Latvian|mg Malagasy|mh Marshallese|
mi Maori|mk Macedonian|ml Malayalam|mn Mongolian|mr Marathi|ms Malay|mt Maltese|my Burmese|na Nauru|
nb Norwegian Bokmål|nd North Ndebele|ne Nepali|ng Ndonga|nl Dutch|nn Norwegian Nynorsk|no Norwegian|
nr South Ndebele|nv Navajo|ny Chichewa|oc Occitan|oj Ojibwa|om Oromo|or Oriya|os Ossetian|pa Punjabi|pi Pali|
pl Polish|ps Pashto|pt Portuguese|qu Quechua|rm Romansh|rn Rundi|ro Romanian|ru Russian|rw Kinyarwanda|
sa Sanskrit|sc Sardinian|sd Sindhi|se Northern Sami|sg Sango|si Sinhala|sk Slovak|sl Slovenian|sm Samoan|
sn Shona|so Somali|sq Albanian|sr Serbian|ss Swati|st Southern Sotho|su Sundanese|sv Swedish|sw Swahili|
ta Tamil|te Telugu|tg Tajik|th Thai|ti Tigrinya|tk Turkmen|tl Tagalog|tn Tswana|to Tongan|tr Turkish|
ts Tsonga|tt Tatar|tw Twi|ty Tahitian|ug Uyghur|uk Ukrainian|ur Urdu|uz Uzbek|ve Venda|vi Vietnamese|
vo Volapük|wa Walloon|wo Wolof|xh Xhosa|yi Yiddish|yo Yoruba|za Zhuang|zh Chinese|zu Zulu
"""

NAMES: dict[str, str] = dict(entry.split(" ", 1) for entry in _NAMES.replace("\n", "").split("|"))
"""English names of languages by two-letter code."""


def language_name(lang: str) -> str:
    """Return the English name of a language, or its code if the name is unknown."""
    return NAMES.get(lang, lang)


def codes_of_yaml(languages: Mapping[str, Any]) -> dict[str, Any]:
    """Return the languages of a configuration, with false, as YAML reads an unquoted ``no``, replaced by ``no``."""
    return {side: "no" if code is False else code for side, code in languages.items()}


def yaml_code(lang: str) -> str:
    """Return a language code as YAML."""
    return '"no"' if lang == "no" else lang


def code_mistake(lang: str) -> str | None:
    """Return a message if a language code is invalid, otherwise None."""
    if not lang.isascii() or not lang.isalpha() or not lang.islower() or len(lang) not in (2, 3):
        if (language := two_letters(lang)) in CODES:
            return f"{lang} is not a two-letter code; write {language} (ISO 639-1, without script and region)"
        shown = lang if lang.isprintable() else repr(lang)
        return f"{shown[:50]} is not a language code; use two letters, for example fr (ISO 639-1)"
    if lang in TWO_LETTERS:
        return f"{lang} is a three-letter code; did you mean {TWO_LETTERS[lang]} (ISO 639-1)?"
    return None


def _check_code(lang: str) -> None:
    if wrong := code_mistake(lang):
        raise ValueError(wrong.removeprefix(f"{lang} "))


Language = Annotated[str, Field(metavar="L", check=_check_code)]
"""Language code, as an argument."""


def code_warning(lang: str) -> str | None:
    """Return a warning if a valid code is not in the table of languages, otherwise None.

    The table contains all two-letter codes of ISO 639-1. Others are not rejected: corpora have files with withdrawn
    codes (``iw``, ``sh``), and a code that is not assigned can be used for an artificial language. Three-letter codes
    are not checked, because the table contains only those of languages that also have a two-letter code.
    """
    if len(lang) != 2 or lang in CODES:
        return None
    return f"{lang} is not a two-letter code of ISO 639-1; correct it unless it is intended"


COMPRESSED = (".gz", ".bz2", ".xz", ".lzma")

NOT_LANGUAGES = (".txt", ".tok", ".clean", ".sgm", ".sgml", *COMPRESSED)
"""Suffixes that may follow the suffix of the language, as in ``train.en.tok.gz``."""


def language_suffix(path: str) -> str:
    """Return the suffix of a file name that may be a language code, in lower case and without its dot.

    A three-letter code is returned as two letters, and a code with a region (``pt_BR``) without it. The suffix of
    compressed or tokenised text is not a language.
    """
    suffixes = list(PurePosixPath(path).suffixes)
    while suffixes and suffixes[-1].lower() in NOT_LANGUAGES:
        suffixes.pop()
    return two_letters(suffixes[-1][1:]) if suffixes else ""


def language_of(path: str) -> str | None:
    """Return the two-letter code of the language in the suffix of a file name; None if there is none."""
    code = language_suffix(path)
    return code if code in CODES else None


def language_pair(codes: Collection[str], name: str) -> tuple[str, str] | None:
    """Return two languages in the order in which a name contains them (``Books.sv-en``), else in alphabetical order.

    Returns:
        The codes; None if there are not two.
    """
    if len(codes) != 2:
        return None
    first, second = sorted(codes)
    code = "([a-z]{2,3}_[a-z]{2,4}|[a-z]+)"
    named = re.findall(f"(?<![a-z]){code}-{code}(?![a-z])", name.lower())
    reverse = (second, first) in [(two_letters(one), two_letters(other)) for one, other in named]
    return (second, first) if reverse else (first, second)
