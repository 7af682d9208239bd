"""French morphology and orthography: conjugation, agreement, liaison forms, elision, contraction, punctuation.

Words with special behaviour have a mark, which ``spell`` resolves and removes:

========== =============================================================================
``*hangar`` aspirated h: no elision and no liaison form before it
``beau^``   form depends on the next word (bel homme, beau bateau; son église)
``le_``     pronoun le, la, les: elided, but never contracted (de le voir)
``des_``    indefinite plural: de + des = de
========== =============================================================================
"""

import re
from functools import cache
from typing import Literal, NamedTuple

from rnnsmt.demo.tables import read_table

NBSP = "\u00a0"

ELIDED = frozenset(
    "le la le_ la_ de de_ ne que je me te se jusque lorsque puisque quoique".split()  # noqa: SIM905 - as a sentence
)
LIAISON = {
    "beau^": ("beau", "bel"),
    "nouveau^": ("nouveau", "nouvel"),
    "vieux^": ("vieux", "vieil"),
    "ce^": ("ce", "cet"),
    "sa^": ("sa", "son"),
    "ma^": ("ma", "mon"),
}
CONTRACTED = {
    ("de", "le"): "du",
    ("de", "les"): "des",
    ("à", "le"): "au",
    ("à", "les"): "aux",
    ("de", "des_"): "de",
    ("de", "de_"): "de",
}
NO_ELISION = frozenset(["onze", "huit", "yacht", "yachts", "oui"])
VOWELS = frozenset("aeiouâàéèêëîïôöùûüœæh")
IRREGULAR_ADJECTIVES = {
    "beau^": ("beau^", "belle", "beaux", "belles"),
    "nouveau^": ("nouveau^", "nouvelle", "nouveaux", "nouvelles"),
    "vieux^": ("vieux^", "vieille", "vieux", "vieilles"),
}


class Adjective(NamedTuple):
    """French translation of an adjective, with its position relative to the noun."""

    text: str
    feminine: str = ""
    before: bool = False
    invariable: bool = False

    def agree(self, feminine: bool, plural: bool) -> list[str]:
        """Return the words of the adjective for a noun of this gender and number."""
        if self.invariable:
            return self.text.split()
        return [_agree(self.text, self.feminine, feminine, plural)]


@cache
def _agree(text: str, feminine_form: str, feminine: bool, plural: bool) -> str:
    """Inflect an adjective for gender and number."""
    if text in IRREGULAR_ADJECTIVES:
        return IRREGULAR_ADJECTIVES[text][feminine + 2 * plural]
    if not feminine:
        return _plural(text) if plural else text
    form = feminine_form or _feminine(text)
    return form + "s" if plural else form


def _feminine(text: str) -> str:
    """Return the regular feminine of an adjective."""
    if text.endswith("e"):
        return text
    for ending, other in (("er", "ère"), ("eux", "euse"), ("if", "ive"), ("el", "elle"), ("en", "enne")):
        if text.endswith(ending):
            return text.removesuffix(ending) + other
    return text + "e"


def _plural(text: str) -> str:
    """Return the regular plural of an adjective."""
    if text.endswith(("s", "x", "z")):
        return text
    if text.endswith("al"):
        return text[:-2] + "aux"
    return text + "s"


@cache
def noun_plural(text: str) -> str:
    """Return the regular plural of a noun; of several words, the first is inflected ("gardiens de phare")."""
    if " " in text:
        head, rest = text.split(" ", 1)
        return f"{noun_plural(head)} {rest}"
    if text.endswith(("al",)):
        return text[:-2] + "aux"
    if text.endswith(("au", "eu")):
        return text + "x"
    return text if text.endswith(("s", "x", "z")) else text + "s"


def _vowel(word: str) -> bool:
    """Return whether a word causes elision and liaison."""
    return word == "y" or (word[0].lower() in VOWELS and word not in NO_ELISION)


def join(words: list[str]) -> list[str]:
    """Resolve the marks: contraction, elision and liaison forms; return the words in standard spelling."""
    done: list[str] = []
    contracted = _contract(words)
    for word, following in zip(contracted, [*contracted[1:], "."], strict=True):
        elides = _vowel(following)
        if word in LIAISON:
            done.append(LIAISON[word][elides])
        elif word in ELIDED and elides:
            done.append(word.rstrip("_")[:-1] + "'")
        elif word == "si" and following in ("il", "ils"):
            done.append("s'")
        else:
            done.append(word.strip("*_^"))
    return done


def _contract(words: list[str]) -> list[str]:
    """Apply the contractions du, des, au, aux, but not before a vowel (de l'eau)."""
    done: list[str] = []
    for i, word in enumerate(words):
        short = CONTRACTED.get((done[-1], word)) if done else None
        if short and not (word == "le" and i + 1 < len(words) and _vowel(words[i + 1])):
            done[-1] = short
        else:
            done.append(word)
    return done


def spell(words: list[str], space: str = NBSP, apostrophe: str = "'", guillemets: bool = True) -> str:
    """Return the printed sentence.

    Args:
        words: words with marks; punctuation marks are separate words (quotes are « and »).
        space: character before ``: ; ! ?`` and inside guillemets.
        apostrophe: straight or typographic.
        guillemets: use guillemets, otherwise straight quotes.
    """
    text = " ".join(join(words))
    text = text.replace("' ", "'").replace(" ,", ",").replace(" .", ".").replace("( ", "(").replace(" )", ")")
    text = re.sub(r" ([:;!?%])", space + r"\1", text)
    if guillemets:
        text = text.replace("« ", "«" + space).replace(" »", space + "»")
    else:
        text = text.replace("« ", '"').replace(" »", '"')
    text = re.sub(r"^[« \"\u00a0]*\w(?!\))", lambda match: match.group().upper(), text)
    return text.replace("'", apostrophe) if apostrophe != "'" else text


Tense = Literal["present", "imperfect", "future", "conditional", "subjunctive"]

ENDINGS: dict[str, list[str]] = {
    "imperfect": ["ais", "ais", "ait", "ions", "iez", "aient"],
    "future": ["ai", "as", "a", "ons", "ez", "ont"],
    "subjunctive": ["e", "es", "e", "ions", "iez", "ent"],
}

WITH_ETRE = frozenset(
    ["aller", "apparaître", "arriver", "décéder", "entrer", "mourir", "partir", "rentrer", "rester", "revenir", "venir"]
)
"""Verbs with the auxiliary être."""


class Paradigm(NamedTuple):
    """Forms from which all others are derived.

    Attributes:
        present, subjunctive: forms of je to ils; no subjunctive if it is derived from the present.
        future: stem of future and conditional.
        participle: past participle, masculine singular.
    """

    present: list[str]
    future: str
    participle: str
    subjunctive: list[str]


def read_irregular_verbs() -> dict[str, Paradigm]:
    """Read the irregular verbs by ending; longer endings come first."""
    paradigms = {}
    for row in read_table("irregular_verbs"):
        present, subjunctive = row["present"].split(), row["subjunctive"].split()
        if len(present) != 6 or len(subjunctive) not in (0, 6):
            raise row.error("present and subjunctive require six forms, separated by spaces")
        paradigms[row["ending"]] = Paradigm(present, row["future"], row["participle"], subjunctive)
    return dict(sorted(paradigms.items(), key=lambda item: -len(item[0])))


IRREGULAR = read_irregular_verbs()


@cache
def paradigm(infinitive: str) -> Paradigm:
    """Return the paradigm of a verb, irregular or regular."""
    for ending, row in IRREGULAR.items():
        if infinitive.endswith(ending):
            stem = infinitive.removesuffix(ending)
            present = [stem + form for form in row.present]
            return Paradigm(present, stem + row.future, stem + row.participle, [] if stem else row.subjunctive)
    stem = infinitive[:-2]
    if infinitive.endswith("er"):
        return _first_group(stem)
    if infinitive.endswith("ir"):
        return Paradigm([stem + e for e in ["is", "is", "it", "issons", "issez", "issent"]], infinitive, stem + "i", [])
    return Paradigm([stem + e for e in ["s", "s", "", "ons", "ez", "ent"]], infinitive[:-1], stem + "u", [])


def _first_group(stem: str) -> Paradigm:
    """Return the paradigm of a verb in -er, with its spelling changes: lance/lançons, lève, cède, emploie, appelle."""
    strong = stem
    if stem.endswith("ppel"):
        strong = stem + "l"
    elif stem.endswith("y"):
        strong = stem[:-1] + "i"
    elif re.search(r"e[bcdfglmnprstv]$", stem):
        strong = f"{stem[:-2]}è{stem[-1]}"
    cede = re.sub(r"é([bcdfglmnprstv]+)$", r"è\1", strong)
    soft = stem + "e" if stem.endswith("g") else stem[:-1] + "ç" if stem.endswith("c") else stem
    present = [cede + "e", cede + "es", cede + "e", soft + "ons", stem + "ez", cede + "ent"]
    return Paradigm(present, strong + "er", stem + "é", [])


@cache
def conjugate(infinitive: str, tense: Tense, person: int) -> str:
    """Return one simple form; persons 0 to 5 are je, tu, il, nous, vous, ils."""
    row = paradigm(infinitive)
    if tense == "present":
        return row.present[person]
    if tense == "future":
        return row.future + ENDINGS["future"][person]
    if tense == "conditional":
        return row.future + ENDINGS["imperfect"][person]
    ending = ENDINGS[tense][person]
    if tense == "subjunctive":
        if row.subjunctive:
            return row.subjunctive[person]
        if person not in (3, 4):
            return row.present[5].removesuffix("ent") + ending
    stem = "ét" if infinitive == "être" else row.present[3].removesuffix("ons")
    if ending.startswith("i"):
        stem = stem.removesuffix("e") if stem.endswith("ge") else stem.replace("ç", "c") if stem.endswith("ç") else stem
    return stem + ending


@cache
def participle(infinitive: str, feminine: bool = False, plural: bool = False) -> str:
    """Return the past participle with agreement."""
    form = paradigm(infinitive).participle
    if form == "dû" and (feminine or plural):
        form = "du"
    if feminine:
        form += "e"
    if plural and not form.endswith("s"):
        form += "s"
    return form
