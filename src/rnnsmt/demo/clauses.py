"""Generation of clauses in both languages: subject, verb group, objects, adverbials."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from rnnsmt.demo.english import Verb
from rnnsmt.demo.entries import FixedPhrase, FrenchVerb, VerbEntry, free, zipf
from rnnsmt.demo.french import WITH_ETRE, Tense, conjugate, participle
from rnnsmt.demo.phrases import WRONG_FORM, NounPhrase, Speaker

# English modal → French verb and tense
MODALS: dict[str, tuple[str, Tense]] = {
    "must": ("devoir", "present"),
    "can": ("pouvoir", "present"),
    "may": ("pouvoir", "present"),
    "should": ("devoir", "conditional"),
    "could": ("pouvoir", "conditional"),
    "shall": ("devoir", "present"),
}
STATIVE = frozenset(["have", "know", "want", "need", "hope", "believe", "think", "contain", "belong to", "depend on"])
NEGATIONS = {"not": "pas", "never": "jamais", "no longer": "plus"}
"""French counterparts of English negations."""
REFLEXIVE = ["me", "te", "se", "nous", "vous", "se"]
"""Reflexive pronouns by person."""
ETRE = FrenchVerb("être", False, [], "")
PRONOUNS = [
    ("he", "il", 2, False),
    ("she", "elle", 2, True),
    ("we", "nous", 3, False),
    ("I", "je", 0, False),
    ("they", "ils", 5, False),
]
"""Subject pronouns: English, French, person, feminine."""


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
    many = not is_third_singular(subject)
    auxiliary = {
        "perfect": "have" if many else "has", "progressive": be(subject, "present"), "was-ing": be(subject, "past"),
        "future": "will",
    }.get(tense, tense if tense in MODALS else "")  # fmt: skip
    main = {
        "perfect": verb.participle, "progressive": verb.ing(), "was-ing": verb.ing(),
        "present": verb.base if many else verb.third(), "past": verb.past,
    }.get(tense, verb.base)  # fmt: skip
    if negation == "not" and not auxiliary:
        auxiliary, main = do(subject, tense), verb.base
    if negation == "not":
        return [_with_not(auxiliary, manner.contracted), main]
    return [word for word in (auxiliary, negation, main) if word]


def is_third_singular(subject: NounPhrase) -> bool:
    """Return whether an English verb in the present has the ending -s after this subject."""
    return subject.person == 2 and not subject.plural


def be(subject: NounPhrase, tense: str) -> str:
    """Return am, are or is in the present, and was or were in the past."""
    if tense == "past":
        return "was" if subject.person == 0 or is_third_singular(subject) else "were"
    return "am" if subject.person == 0 else "is" if is_third_singular(subject) else "are"


def do(subject: NounPhrase, tense: str) -> str:
    """Return the auxiliary of a question or negation in the present, past or future."""
    return {"past": "did", "future": "will"}.get(tense, "does" if is_third_singular(subject) else "do")


def be_group(subject: NounPhrase, manner: Manner) -> list[str]:
    """Return the verb "be" with its auxiliary and negation, in agreement with the subject."""
    words = [be(subject, manner.tense)]
    if manner.tense not in ("present", "past"):
        words = ["will" if manner.tense == "future" else manner.tense, "be"]
    if manner.negation == "not":
        return [_with_not(words[0], manner.contracted), *words[1:]]
    return [words[0], manner.negation, *words[1:]] if manner.negation else words


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
        manner: English tense, which determines the French one.
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


@dataclass
class Clause:
    """Predicate in both languages with its subject, with which it agrees."""

    subject: NounPhrase
    english: list[str]
    french: list[str]

    def whole(self) -> tuple[list[str], list[str]]:
        """Return subject and predicate."""
        return self.subject.english + self.english, self.subject.french + self.french


def pronoun(phrase: NounPhrase) -> NounPhrase:
    """Return the subject pronoun for a noun phrase."""
    if phrase.pronoun:
        return phrase
    if phrase.plural:
        return replace(phrase, english=["they"], french=["elles" if phrase.feminine else "ils"], pronoun=True)
    human = phrase.kind == "P"
    english = ("she" if phrase.feminine else "he") if human else "it"
    return replace(phrase, english=[english], french=["elle" if phrase.feminine else "il"], pronoun=True)


class ClauseSpeaker(Speaker):
    """Generator of clauses of one domain."""

    tenses: tuple[tuple[str, float], ...] = (
        ("past", 9),
        ("present", 5),
        ("future", 3),
        ("perfect", 2),
        ("progressive", 1.5),
        ("was-ing", 1.5),
        ("must", 1),
        ("can", 1),
        ("should", 0.5),
        ("could", 0.5),
    )

    def manner(self) -> Manner:
        """Draw tense and negation."""
        tense = self.meaning.choices([t for t, _ in self.tenses], [w for _, w in self.tenses])[0]
        roll = self.meaning.random()
        negation = "not" if roll < 0.1 else "never" if roll < 0.13 else "no longer" if roll < 0.16 else ""
        if negation == "no longer" and tense in ("perfect", "past", "was-ing"):
            negation = "never"
        return Manner(tense, negation, self.chance(0.25 if self.domain.names > 0.1 else 0.03))

    def group(
        self,
        entry: VerbEntry,
        french: FrenchVerb,
        subject: NounPhrase,
        manner: Manner,
        clitic: str = "",
        agree: tuple[bool, bool] = (False, False),
    ) -> tuple[list[str], list[str]]:
        """Return the verb group in both languages."""
        if entry.english.base in STATIVE:  # stative verbs have no progressive form
            manner = replace(
                manner, tense={"progressive": "present", "was-ing": "past"}.get(manner.tense, manner.tense)
            )
        english = english_group(entry.english, subject, manner)
        if manner.tense == "past" and entry.english.base in STATIVE:
            manner = replace(manner, tense="stative-past")
        if self.slips(WRONG_FORM):
            manner = replace(manner, tense=self.style.choice(["present", "infinitive", "past"]))
        return english, french_group(french, subject, manner, self.style, clitic, agree)

    def subject(self) -> NounPhrase:
        """Generate the subject of a clause, occasionally a pronoun."""
        if self.chance(0.09 * self.domain.dialogue):
            english, french, person, feminine = self.meaning.choice(PRONOUNS)
            return NounPhrase([english], [french], feminine, False, "P", person=person, pronoun=True)
        return self.noun_phrase("PPPPPGGGVVLAEO")

    def clause(self, subject: NounPhrase | None = None, subjunctive: bool = False) -> Clause:
        """Generate a clause of a random pattern."""
        subject = subject or self.subject()
        manner = replace(self.manner(), subjunctive=subjunctive)
        human = subject.kind in "PG"
        patterns: list[tuple[Callable[[NounPhrase, Manner], Clause], float]] = [
            (self.quality, 11),
            (self.passive, 0 if subject.pronoun else 11),
            (self.giving, 7 * human),
            (self.planning, 8 * human),
            (self.intransitive, 15 * bool(self.domain.intransitive[subject.kind])),
            (self.with_pronoun, 8 * bool(self.domain.transitive[subject.kind])),
            (self.transitive, 40 * bool(self.domain.transitive[subject.kind])),
        ]
        (make,) = self.meaning.choices([p for p, _ in patterns], [weight for _, weight in patterns])
        return make(subject, manner)

    def transitive(self, subject: NounPhrase, manner: Manner) -> Clause:
        """Generate a clause like "The crew repaired the net"."""
        entry = zipf(self.domain.transitive[subject.kind], self.meaning)
        french = free(entry.french, self.style)
        english_verb, french_verb = self.group(entry, french, subject, manner)
        adverb_en, adverb_fr = self.adverb()
        obj = self.noun_phrase(entry.objects, 1)
        words = object_words(french, obj, bool(manner.negation))
        return Clause(subject, english_verb + obj.english + adverb_en, self.place_adverb(french_verb, adverb_fr, words))

    def with_pronoun(self, subject: NounPhrase, manner: Manner) -> Clause:
        """Generate a clause like "The crew repaired them"."""
        entry = zipf(self.domain.transitive[subject.kind], self.meaning)
        french = free(entry.french, self.style)
        obj = self.noun_phrase(entry.objects, 2, simple=True)
        clitic, after, agree = clitic_for(french, obj)
        english_verb, french_verb = self.group(entry, french, subject, manner, clitic, agree)
        human = obj.kind == "P"
        english = "them" if obj.plural else ("her" if obj.feminine else "him") if human else "it"
        return Clause(subject, [*english_verb, english], french_verb + after)

    def intransitive(self, subject: NounPhrase, manner: Manner) -> Clause:
        """Generate a clause like "The trawler sank"."""
        entry = zipf(self.domain.intransitive[subject.kind], self.meaning)
        english_verb, french_verb = self.group(entry, free(entry.french, self.style), subject, manner)
        adverb_en, adverb_fr = self.adverb(0.3)
        return Clause(subject, english_verb + adverb_en, french_verb + adverb_fr)

    def giving(self, subject: NounPhrase, manner: Manner) -> Clause:
        """Generate a clause like "The mayor gave the sailors a letter" or "... gave a letter to the sailors"."""
        entry = zipf(self.domain.giving, self.meaning)
        french = free(entry.french, self.style)
        english_verb, french_verb = self.group(entry, french, subject, manner)
        obj, person = self.noun_phrase(entry.objects, 2), self.noun_phrase("P", 2, simple=True)
        if entry.english.base == "explain" or self.chance(0.5):
            english = english_verb + obj.english + ["to", *person.english]
        else:
            english = english_verb + person.english + obj.english
        things, to = object_words(french, obj, bool(manner.negation)), ["à", *person.french]
        return Clause(subject, english, french_verb + (to + things if self.style.random() < 0.2 else things + to))

    def planning(self, subject: NounPhrase, manner: Manner) -> Clause:
        """Generate a clause like "The crew decided to repair the net"."""
        entry, inner = zipf(self.domain.planning, self.meaning), zipf(self.domain.transitive["P"], self.meaning)
        french, inner_french = free(entry.french, self.style), free(inner.french, self.style)
        english_verb, french_verb = self.group(entry, french, subject, manner)
        obj = self.noun_phrase(inner.objects, 1)
        linking = [french.preposition] if french.preposition else []
        infinitive = french_group(inner_french, subject, Manner("infinitive"), self.style)
        return Clause(
            subject,
            [*english_verb, "to", inner.english.base, *obj.english],
            french_verb + linking + infinitive + object_words(inner_french, obj, False),
        )

    def quality(self, subject: NounPhrase, manner: Manner) -> Clause:
        """Generate a clause like "The harbour was empty"."""
        entry = zipf(self.domain.adjectives[subject.kind][1::2], self.meaning)
        tense = manner.tense if manner.tense in ("present", "past", "future", "must", "can", "should") else "past"
        french = free(entry.french, self.style)
        state = replace(manner, tense={"past": "stative-past"}.get(tense, tense))
        group = french_group(ETRE, subject, state, self.style)
        agreed = french.agree(subject.feminine, subject.person in (3, 5))
        agreed = [word.rstrip("^") for word in agreed]
        very = self.chance(0.2) and not manner.negation
        return Clause(
            subject,
            [*be_group(subject, replace(manner, tense=tense)), *(["very"] if very else []), entry.english],
            group + (["très"] if very and not french.invariable else []) + agreed,
        )

    def passive(self, subject: NounPhrase, manner: Manner) -> Clause:
        """Generate a clause like "The net was repaired by the crew"."""
        fitting = [v for v in self.domain.transitive["P"] if subject.kind in v.objects]
        direct = [
            v
            for v in fitting
            if " " not in v.english.base and not v.french[0].preposition and not v.french[0].reflexive
        ]
        if not direct:
            return self.quality(subject, manner)
        entry = zipf(direct, self.meaning)
        french = free(
            [f for f in entry.french if not f.preposition and not f.reflexive and f.infinitive not in WITH_ETRE],
            self.style,
        )
        tense = manner.tense if manner.tense in ("past", "present", "future", "must", "can", "shall", "may") else "past"
        group = french_group(ETRE, subject, replace(manner, tense=tense), self.style)
        done = [participle(french.infinitive, subject.feminine, subject.plural), *french.fixed]
        by = self.noun_phrase("PG", 2, simple=True) if self.chance(0.5) else None
        return Clause(
            subject,
            [
                *be_group(subject, replace(manner, tense=tense)),
                entry.english.participle,
                *(["by", *by.english] if by else []),
            ],
            group + done + (["par", *by.french] if by else []),
        )

    def adverb(self, probability: float = 0.12) -> tuple[list[str], list[str]]:
        """Return a manner adverb with this probability, otherwise nothing."""
        return self.phrase(self.domain.adverbs) if self.chance(probability) else ([], [])

    def phrase(self, entries: list[FixedPhrase]) -> tuple[list[str], list[str]]:
        """Draw a fixed expression from a list."""
        entry = zipf(entries, self.meaning)
        return entry.english, free(entry.french, self.style)

    def place_adverb(self, verb: list[str], adverb: list[str], rest: list[str]) -> list[str]:
        """Insert an adverb, usually before the object."""
        return verb + adverb + rest if self.style.random() < 0.7 else verb + rest + adverb
