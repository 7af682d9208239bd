"""Generation of noun phrases in both languages, and of the invented proper names in them."""

from dataclasses import dataclass, field
from random import Random

from rnnsmt.demo.entries import AdjectiveEntry, Domain, FrenchNoun, Noun, free, names, phrases, zipf
from rnnsmt.demo.french import Adjective

NUMBERS = phrases("common", "number")
NAMES = names()

WRONG_GENDER, LEFT_OUT, ENGLISH_ORDER, WRONG_FORM = 0.3, 0.25, 0.5, 0.4
"""Probabilities of the errors of careless translations.

A noun phrase with the wrong gender, a missing adjective, an adjective in its English position, a verb in another form.
"""

FREQUENT_NAME = 0.7
"""Probability that a name is one of the frequent ones."""

FREQUENT_NAMES = 60
"""Number of frequent names of each kind."""

# masculine|feminine if they differ
QUANTIFIERS = [
    ("several", ["plusieurs"]),
    ("many", ["de nombreux|de nombreuses", "beaucoup de", "bien des"]),
    ("all the", ["tous les|toutes les"]),
    ("a few", ["quelques"]),
    ("most of the", ["la plupart des"]),
    ("some", ["certains|certaines", "quelques"]),
]

Determiner = tuple[list[str], list[str], list[str]]


def _compose(kind: str, rng: Random) -> str:
    """Compose a name of random syllables."""
    name = "".join(rng.choice(syllables) for syllables in NAMES[kind])
    return name.removesuffix("-")


def _frequent_names(kind: str) -> list[str]:
    """Return the frequent names of one kind, which do not depend on the seed of the corpus."""
    rng = Random("names")
    return [_compose(kind, rng) for _ in range(FREQUENT_NAMES)]


_FREQUENT = {kind: _frequent_names(kind) for kind in ("surname", "place", "ship")}


def proper_name(kind: str, rng: Random) -> str:
    """Draw a surname, or the name of a place or a ship: a frequent one, or a new one of random syllables."""
    if rng.random() < FREQUENT_NAME:
        return _FREQUENT[kind][int(FREQUENT_NAMES * rng.random() ** 2)]
    return _compose(kind, rng)


def person(rng: Random, feminine: bool) -> tuple[str, str]:
    """Draw a given name and a surname."""
    (first_names,) = NAMES["feminine" if feminine else "masculine"]
    return first_names[int(len(first_names) * rng.random() ** 1.5)], proper_name("surname", rng)


@dataclass
class NounPhrase:
    """Noun phrase in both languages.

    Attributes:
        english, french: words, the French ones with their marks.
        feminine, plural: gender and number of the French head; ``plural`` also of the English one.
        kind: semantic class of the head.
        negated: French words after a negation, where an indefinite article becomes "de".
        person: 0 to 5 for je to ils.
    """

    english: list[str]
    french: list[str]
    feminine: bool
    plural: bool
    kind: str
    negated: list[str] = field(default_factory=list)
    person: int = 2
    pronoun: bool = False

    def __post_init__(self) -> None:
        self.negated = self.negated or self.french
        if self.plural and self.person == 2:
            self.person = 5


class Speaker:
    """Generator of phrases of one domain.

    The content is drawn from ``meaning``, its expression in French from ``style`` if there are alternatives. Two
    speakers with the same meaning and different styles produce two good translations of the same English text.
    """

    def __init__(self, domain: Domain, meaning: Random, style: Random) -> None:
        self.domain, self.meaning, self.style = domain, meaning, style
        self.careless = False

    def slips(self, probability: float) -> bool:
        """Draw whether a careless translator makes an error here."""
        return self.careless and self.style.random() < probability

    def chance(self, probability: float) -> bool:
        """Draw a binary decision about the content."""
        return self.meaning.random() < probability

    def noun_phrase(self, kinds: str, depth: int = 0, simple: bool = False, plural: bool | None = None) -> NounPhrase:
        """Generate a noun phrase whose head is of one of the classes ``kinds``.

        Args:
            kinds: semantic classes, one of which is drawn.
            depth: depth of nesting of "of ..." phrases.
            simple: without a proper name, and without "of ..." and places after the noun.
            plural: number; drawn if None.
        """
        kind = self.meaning.choice(kinds)
        if kind in "PV" and not simple and self.chance(self.domain.names):
            return self.named(kind)
        noun = zipf(self.domain.nouns[kind], self.meaning)
        if plural is None:
            plural = noun.kind not in "G" and noun.singular not in ("water", "weather") and self.chance(0.3)
        adjective = self._adjective(kind) if self.chance(0.2 if simple else 0.38) else None
        second = self._adjective(kind) if adjective and self.chance(0.12) else None
        modifier = zipf(self.domain.modifiers, self.meaning) if kind in "PVO" and self.chance(0.07) else None
        french_noun = self._french_noun(noun, plural, adjective is not None)
        feminine = french_noun.feminine
        head = list(french_noun.plural if plural else french_noun.singular)
        agreed = feminine != self.slips(WRONG_GENDER)
        before, after = self._place_adjectives(adjective, second, agreed, plural)
        if modifier:
            words = free(modifier.french, self.style)
            after = self._modifier(words, agreed, plural) + after
        english = [a.english for a in (adjective, second) if a and a is not None]
        english += [*(modifier.english if modifier else []), noun.plural if plural else noun.singular]
        english_det, french_det, negated_det = self._determiner(plural, agreed, bool(before))
        body = before + head + after
        tail_en, tail_fr = self._tail(kind, depth) if not simple else ([], [])
        return NounPhrase(
            english_det + english + tail_en,
            french_det + body + tail_fr,
            feminine,
            plural,
            kind,
            negated_det + body + tail_fr,
        )

    def _adjective(self, kind: str) -> AdjectiveEntry:
        """Draw an adjective for a noun of this class."""
        return zipf(self.domain.adjectives[kind], self.meaning)

    def _french_noun(self, noun: Noun, plural: bool, adjective: bool) -> FrenchNoun:
        """Draw a translation of a noun, preferring one that is usual in this context."""
        fits = [n for n in noun.french if (n.context == "pl" and plural) or (n.context == "adj" and adjective)]
        if fits and self.style.random() < 0.85:
            return fits[0]
        return free([n for n in noun.french if not n.context], self.style)

    def _place_adjectives(
        self, adjective: AdjectiveEntry | None, second: AdjectiveEntry | None, feminine: bool, plural: bool
    ) -> tuple[list[str], list[str]]:
        """Return the French words before and after the noun."""
        before: list[str] = []
        after: list[str] = []
        if second is not None and adjective is not None and second.english == adjective.english:
            second = None
        for entry in (adjective, second):
            if entry is None or self.slips(LEFT_OUT):
                continue
            french = free(entry.french, self.style)
            words = french.agree(feminine, plural)
            if (french.before or self.slips(ENGLISH_ORDER)) and len(before) < 1:
                before += words
            else:
                after = words + (["et"] if after and self.style.random() < 0.3 else []) + after
        return before, after

    def _modifier(self, words: list[str], feminine: bool, plural: bool) -> list[str]:
        """Return the French words of a noun modifier; ``!`` in the lexicon marks an adjective, which agrees."""
        if words[-1].endswith("!"):
            return Adjective(words[-1].rstrip("!")).agree(feminine, plural)
        return words

    def _determiner(self, plural: bool, feminine: bool, before: bool) -> Determiner:
        """Draw a determiner: English, French, and French after a negation."""
        roll = self.meaning.random()
        the = ["les"] if plural else ["la" if feminine else "le"]
        if 0.5 <= roll < 0.7:
            return self._indefinite(plural, feminine, before)
        if 0.7 <= roll < 0.8:
            return self._possessive(plural, feminine)
        if 0.8 <= roll < 0.87:
            demonstrative = ["ces"] if plural else ["cette" if feminine else "ce^"]
            return ["these" if plural else "this"], demonstrative, demonstrative
        if roll >= 0.87 and plural:
            return self._quantity(feminine)
        if 0.87 <= roll < 0.93:
            return ["every" if self.chance(0.6) else "each"], ["chaque"], ["chaque"]
        return ["the"], the, the

    def _indefinite(self, plural: bool, feminine: bool, before: bool) -> Determiner:
        """Return an indefinite article."""
        if not plural:
            return ["a^"], ["une" if feminine else "un"], ["de"]
        return ([] if self.chance(0.6) else ["some"]), ["de_"] if before else ["des_"], ["de"]

    def _quantity(self, feminine: bool) -> Determiner:
        """Draw a number or a quantifier."""
        if self.chance(0.6):
            english, french = self.number()
            return [english], french, french
        english, alternatives = self.meaning.choice(QUANTIFIERS)
        forms = free(alternatives, self.style).split("|")
        french = forms[-1 if feminine else 0].split()
        return english.split(), french, french

    def _possessive(self, plural: bool, feminine: bool) -> Determiner:
        """Draw a possessive determiner."""
        english = self.meaning.choices(["his", "her", "its", "their", "our"], [4, 3, 3, 4, 2 * self.domain.dialogue])[0]
        if english == "their":
            french = "leurs" if plural else "leur"
        elif english == "our":
            french = "nos" if plural else "notre"
        else:
            french = "ses" if plural else "sa^" if feminine else "son"
        return [english], [french], [french]

    def _tail(self, kind: str, depth: int) -> tuple[list[str], list[str]]:
        """Draw the words after the noun: "of ...", a place, or nothing."""
        roll = self.meaning.random()
        if depth < 2 and roll < (0.16 if kind in "AEOG" else 0.06):
            other = self.noun_phrase("PGLVAE" if kind in "AE" else "GLV", depth + 1)
            return ["of", *other.english], ["de", *other.french]
        if kind in "PL" and depth == 0 and roll > 0.95 and self.domain.names:
            name = proper_name("place", self.meaning)
            return ["in", name], ["à" if self.style.random() < 0.7 else "de", name]
        return [], []

    def number(self) -> tuple[str, list[str]]:
        """Draw a number above one, in words or in digits."""
        if self.chance(0.7):
            entry = zipf(NUMBERS, self.meaning)
            return " ".join(entry.english), entry.french[0]
        value = int(13 * 10 ** (self.meaning.random() * 3))
        space = "\u00a0" if self.style.random() < 0.8 else " "
        return f"{value:,}", [f"{value:,}".replace(",", space)]

    def named(self, kind: str) -> NounPhrase:
        """Generate a person or a ship with a name."""
        if kind == "V":
            name = proper_name("ship", self.meaning)
            english, french = (["the", name], ["le", name]) if self.chance(0.5) else (["the"], ["le"])
            if len(english) == 1:
                noun = zipf(self.domain.nouns["V"], self.meaning)
                word = self._french_noun(noun, False, False)
                article = "la" if word.feminine else "le"
                return NounPhrase(
                    ["the", noun.singular, name], [article, *word.singular, name], word.feminine, False, kind
                )
            return NounPhrase(english, french, False, False, kind)
        feminine = self.chance(0.45)
        first_name, surname = person(self.meaning, feminine)
        roll = self.meaning.random()
        if roll < 0.45:
            return NounPhrase([first_name, surname], [first_name, surname], feminine, False, kind)
        if roll < 0.75:
            titles = (("Mrs", "Mme") if self.chance(0.7) else ("Ms", "Mme")) if feminine else ("Mr", "M.")
            return NounPhrase([titles[0], surname], [titles[1], surname], feminine, False, kind)
        noun = zipf(self.domain.nouns["P"], self.meaning)
        word = self._french_noun(noun, False, False)
        article = "la" if word.feminine else "le"
        apposition = [",", first_name, surname, ","]
        return NounPhrase(
            ["the", noun.singular, *apposition], [article, *word.singular, *apposition], word.feminine, False, kind
        )
