"""Generation of out-of-domain sentences: technical manuals and law."""

from collections.abc import Callable
from random import Random

from rnnsmt.demo.choice import free, general_domain, zipf
from rnnsmt.demo.clauses import pronoun
from rnnsmt.demo.conjugation import conjugate
from rnnsmt.demo.sentences import SentenceSpeaker, Words
from rnnsmt.demo.verbs import object_words


class GeneralSpeaker(SentenceSpeaker):
    """Generator of technical manuals and law."""

    tenses = (
        ("present", 8),
        ("shall", 4),
        ("may", 4),
        ("must", 3),
        ("can", 2),
        ("future", 1.5),
        ("past", 1),
        ("perfect", 1),
    )

    def __init__(self, meaning: Random, style: Random) -> None:
        super().__init__(general_domain(), meaning, style)

    def kinds(self) -> list[tuple[Callable[[], Words], float]]:
        """Return the sentence patterns with their weights: statements, instructions, conditions, definitions."""
        return [
            (self.declaration, 38),
            (self.order, 18),
            (self.condition, 13),
            (self.relative, 6),
            (self.coordination, 6),
            (self.subordinate, 6),
            (self.definition, 5),
            (self.reference, 5),
            (self.item, 4),
            (self.existence, 1),
            (self.question, 1),
        ]

    def order(self) -> Words:
        """Generate a sentence like "Do not remove the cover"."""
        entry = zipf(self.domain.acting_on_things, self.meaning)
        verb = free(entry.french, self.style)
        kinds = "".join(kind for kind in entry.objects if kind in "VOA")
        thing = self.noun_phrase(kinds, 1)
        negated = self.chance(0.2)
        words_en = [*(["do", "not"] if negated else []), entry.english.base, *thing.english]
        if self.style.random() < 0.25:
            words_fr = [*(["ne", "pas"] if negated else []), *(["se"] if verb.reflexive else []), verb.infinitive]
        else:
            form = conjugate(verb.infinitive, "present", 4)
            if negated:
                words_fr = ["ne", *(["vous"] if verb.reflexive else []), form, "pas"]
            else:
                words_fr = [form + ("-vous" if verb.reflexive else "")]
        words = words_en, words_fr + verb.fixed + object_words(verb, thing, negated)
        if self.chance(0.25):
            words = self.both(words, self.phrase(self.domain.places))
        if self.chance(0.25):
            words = self.both(words, self.phrase(self.domain.times))
        return self.end(words, "." if self.chance(0.9) else "!")

    def condition(self) -> Words:
        """Generate a sentence like "If the user removes the cover, the device stops"."""
        subject = self.noun_phrase("PGVA", 1)
        first = self.clause(subject)
        second = self.clause(pronoun(subject)) if self.chance(0.4) else self.clause()
        words_en, words_fr = second.whole()
        return self.end((["if", *first.whole()[0], ",", *words_en], ["si", *first.whole()[1], ",", *words_fr]), ".")

    def definition(self) -> Words:
        """Generate a sentence like "“licence” means ..."."""
        term = zipf(self.domain.nouns[self.meaning.choice("AOPG")], self.meaning)
        french_term = free([n for n in term.french if not n.context], self.style).singular
        thing = self.noun_phrase("AOPGVE", 1)
        means = self.style.choice([["désigne"], ["s'entend", "de"], ["signifie"]])
        return self.end(
            (["“", term.singular, "”", "means", *thing.english], ["«", *french_term, "»", *means, *thing.french]), "."
        )

    def reference(self) -> Words:
        """Generate a sentence like "Section 12 applies to the employer"."""
        number = str(1 + int(120 * self.meaning.random() ** 2))
        who = self.noun_phrase("PGAV", 1)
        what_en, what_fr = self.meaning.choice(
            [("section", "l'article"), ("paragraph", "l'alinéa"), ("subsection", "le paragraphe")]
        )
        negated = self.chance(0.25)
        verb_fr = free([["s'applique", "à"], ["vise"]], self.style)
        if negated:
            verb_fr = free([["ne", "s'applique", "pas", "à"], ["ne", "vise", "pas"]], self.style)
        applies = ["does", "not", "apply", "to"] if negated else ["applies", "to"]
        return self.end(
            ([what_en, number, *applies, *who.english], [*what_fr.split(), number, *verb_fr, *who.french]), "."
        )

    def item(self) -> Words:
        """Generate a list item like "(a) the name of the owner;"."""
        letter = "abcdefgh"[int(8 * self.meaning.random() ** 1.5)]
        thing = self.noun_phrase("AOPGVE", 0)
        mark_fr = f"{letter})"
        return [f"({letter})", *thing.english, ";"], [mark_fr, *thing.french, ";"]
