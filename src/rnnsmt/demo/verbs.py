"""Verb groups in both languages: tense, negation, clitics, agreement of the participle."""

from dataclasses import dataclass
from random import Random

from rnnsmt.demo.choice import free
from rnnsmt.demo.conjugation import WITH_ETRE, Tense, conjugate, participle
from rnnsmt.demo.english import Verb
from rnnsmt.demo.entries import FrenchVerb, VerbEntry
from rnnsmt.demo.phrases import NounPhrase

# English modal → French verb and tense
MODALS: dict[str, tuple[str, Tense]] = {
    "must": ("devoir", "present"),
    "can": ("pouvoir", "present"),
    "may": ("pouvoir", "present"),
    "should": ("devoir", "conditional"),
    "could": ("pouvoir", "conditional"),
    "shall": ("devoir", "present"),
}
STATIVE = frozenset(["know", "want", "need", "hope", "believe", "think", "contain", "belong to", "depend on"])
NEGATIONS = {"not": "pas", "never": "jamais", "no longer": "plus"}
"""French counterparts of English negations."""
REFLEXIVE = ["me", "te", "se", "nous", "vous", "se"]
"""Reflexive pronouns by person."""


@dataclass(frozen=True)
class Manner:
    """Tense, negation and mood of a verb group.

    Attributes:
        tense: present, past, perfect, future, progressive, was-ing, a modal, or infinitive.
        negation: a key of ``NEGATIONS`` or empty.
        contracted: use don't instead of do not.
        subjunctive: French subjunctive, after "bien que".
    """

    tense: str
    negation: str = ""
    contracted: bool = False
    subjunctive: bool = False


def english_group(verb: Verb, subject: NounPhrase, manner: Manner) -> list[str]:
    """Return the verb with its auxiliaries and negation, in agreement with the subject."""
    tense, negation = manner.tense, manner.negation
    many = subject.plural or subject.person in (0, 3, 5)
    be = "am" if subject.person == 0 else "are" if many else "is"
    was = "were" if many and subject.person != 0 else "was"
    auxiliary = {
        "perfect": "have" if many else "has", "progressive": be, "was-ing": was, "future": "will",
    }.get(tense, tense if tense in MODALS else "")  # fmt: skip
    main = {
        "perfect": verb.participle, "progressive": verb.ing(), "was-ing": verb.ing(),
        "present": verb.base if many else verb.third(), "past": verb.past,
    }.get(tense, verb.base)  # fmt: skip
    if negation == "not" and not auxiliary:
        auxiliary, main = ("did" if tense == "past" else "do" if many else "does"), verb.base
    if negation == "not":
        return [_with_not(auxiliary, manner.contracted), main]
    return [word for word in (auxiliary, negation, main) if word]


def _with_not(auxiliary: str, contracted: bool) -> str:
    """Return the negated auxiliary, contracted if possible."""
    if auxiliary == "can":
        return "can't" if contracted else "cannot"
    if not contracted or auxiliary in ("am", "may", "shall"):
        return auxiliary + " not"
    return "won't" if auxiliary == "will" else auxiliary + "n't"


def french_group(
    verb: FrenchVerb,
    subject: NounPhrase,
    manner: Manner,
    style: Random,
    clitic: str = "",
    agree: tuple[bool, bool] = (False, False),
) -> list[str]:
    """Return the verb with clitics, auxiliaries and negation, in agreement with the subject, without its object.

    Args:
        verb: French translation of the verb.
        subject: determines the person, and gender and number of a participle with être.
        manner: English tense, from which the French one follows.
        style: random generator for equivalent alternatives.
        clitic: object pronoun before the verb.
        agree: gender and number of a preceding object, with which a participle with avoir agrees.
    """
    clitics = ([REFLEXIVE[subject.person]] if verb.reflexive else []) + ([clitic] if clitic else [])
    first, second = (["ne"], [NEGATIONS[manner.negation]]) if manner.negation else ([], [])
    if manner.tense == "infinitive":
        return first + second + clitics + [verb.infinitive, *verb.fixed]
    finite = _finite(manner, style)
    if finite is None:  # a compound past
        with_etre = verb.reflexive or verb.infinitive in WITH_ETRE
        feminine, plural = (subject.feminine, subject.person in (3, 5)) if with_etre else agree
        tense: Tense = "subjunctive" if manner.subjunctive else "present"
        auxiliary = conjugate("être" if with_etre else "avoir", tense, subject.person)
        words = first + clitics + [auxiliary] + second + [participle(verb.infinitive, feminine, plural)]
    elif finite[0]:  # a modal or a periphrasis
        head, linking = finite[0].split()[0], finite[0].split()[1:]
        words = [*first, conjugate(head, finite[1], subject.person), *second, *linking, *clitics, verb.infinitive]
    else:
        words = first + clitics + [conjugate(verb.infinitive, finite[1], subject.person)] + second
    return words + verb.fixed


def _finite(manner: Manner, style: Random) -> tuple[str, Tense] | None:
    """Return the conjugated verb before an infinitive (or empty) and its tense; ``None`` for the compound past."""
    tense = manner.tense
    mood: Tense = "subjunctive" if manner.subjunctive else "present"
    if tense in ("past", "perfect"):
        return None
    finite: tuple[str, Tense] = ("", mood)
    if manner.subjunctive:
        finite = ("aller" if tense == "future" else MODALS[tense][0] if tense in MODALS else "", mood)
    elif tense in ("was-ing", "stative-past"):
        finite = ("", "imperfect")
    elif tense == "future":
        finite = ("aller", mood) if style.random() < 0.3 else ("", "future")
    elif tense == "shall" and style.random() < 0.4:
        finite = ("", "future" if style.random() < 0.5 else "present")
    elif tense in MODALS:
        finite = MODALS[tense]
    elif tense == "progressive" and not manner.negation and style.random() < 0.3:
        finite = ("être en train de", mood)
    return finite


def object_words(verb: FrenchVerb, thing: NounPhrase, negated: bool) -> list[str]:
    """Return the object with the preposition of its verb."""
    if verb.preposition:
        return [verb.preposition, *thing.french]
    return thing.negated if negated else thing.french


def clitic_for(verb: FrenchVerb, thing: NounPhrase) -> tuple[str, list[str], tuple[bool, bool]]:
    """Return the pronoun for an object: a clitic, or words after the verb, and the agreement of a participle."""
    person = thing.kind in "PG"
    if verb.preposition == "":
        clitic = "les_" if thing.plural else "la_" if thing.feminine else "le_"
        return clitic, [], (thing.feminine, thing.plural)
    if verb.preposition == "à" and person and not verb.reflexive:
        return ("leur" if thing.plural else "lui"), [], (False, False)
    if person:
        strong = ("elles" if thing.plural else "elle") if thing.feminine else ("eux" if thing.plural else "lui")
        return "", [verb.preposition, strong], (False, False)
    return ("en" if verb.preposition == "de" else "y"), [], (False, False)


def choose(entry: VerbEntry, style: Random) -> FrenchVerb:
    """Draw one of the translations."""
    return free(entry.french, style)
