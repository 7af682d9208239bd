"""Generation of in-domain sentences: news of a harbour town."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from rnnsmt.demo.choice import free, harbour_domain, zipf
from rnnsmt.demo.conjugation import conjugate, participle
from rnnsmt.demo.entries import phrases
from rnnsmt.demo.lexicon import names
from rnnsmt.demo.names import place
from rnnsmt.demo.sentences import SentenceSpeaker, Words
from rnnsmt.demo.verbs import Manner

MONTHS = phrases(names.MONTHS)


class HarbourSpeaker(SentenceSpeaker):
    """Generator of news of a harbour town."""

    def __init__(self, meaning: Random, style: Random) -> None:
        super().__init__(harbour_domain(), meaning, style)

    def kinds(self) -> list[tuple[Callable[[], Words], float]]:
        """Return the sentence patterns with their weights: mostly statements and reported speech."""
        return [
            (self.declaration, 34),
            (self.reported, 13),
            (self.coordination, 11),
            (self.subordinate, 11),
            (self.quotation, 9),
            (self.relative, 8),
            (self.dated, 7),
            (self.question, 5),
            (self.existence, 4),
            (self.counted, 4),
        ]

    def reported(self) -> Words:
        """Generate a sentence like "The mayor said that ..."."""
        who = self.noun_phrase("PPG", 2, simple=True)
        entry = zipf(self.domain.saying, self.meaning)
        said_en, said_fr = self.group(
            entry, free(entry.french, self.style), who, Manner("past" if self.chance(0.7) else "present")
        )
        words_en, words_fr = self.clause().whole()
        that = ["that"] if self.chance(0.7) else []
        return self.end((who.english + said_en + that + words_en, [*who.french, *said_fr, "que", *words_fr]), ".")

    def quotation(self) -> Words:
        """Generate a sentence like '"...", said the mayor'; in French the verb always precedes the subject."""
        who = self.noun_phrase("P", 2, simple=True)
        words_en, words_fr = self.plain()
        verb = free(["dire", "déclarer", "expliquer", "affirmer"], self.style)
        auxiliary = conjugate("avoir", "present", who.person)
        said = [auxiliary, participle(verb)]
        words_fr = ["«", *words_fr, "»", ",", *said, *who.french]
        after = ["said", *who.english] if self.chance(0.6) else [*who.english, "said"]
        return self.end((["“", *words_en, ",", "”", *after], words_fr), ".")

    def dated(self) -> Words:
        """Generate a sentence like "On 12 March 2013, ... in Valmont"."""
        day, month = 1 + int(28 * self.meaning.random()), self.meaning.choice(MONTHS)
        (month_en,), (month_fr,) = month.english, month.french[0]
        year = str(1950 + int(70 * self.meaning.random()))
        date_en = ["on", str(day), month_en] if self.chance(0.5) else ["on", month_en, str(day)]
        date_fr = ["le", "1er" if day == 1 else str(day), month_fr]
        if self.chance(0.5):
            date_en, date_fr = [*date_en, year], [*date_fr, year]
        words = self.clause().whole()
        if self.chance(0.5):
            name = place(self.meaning)
            words = words[0] + ["in", name], words[1] + ["à", name]
        return self.end(([*date_en, ",", *words[0]], [*date_fr, ",", *words[1]]), ".")

    def counted(self) -> Words:
        """Generate a sentence like "About 12% of the residents ..."."""
        value = self.meaning.choice(["5", "10", "12.5", "20", "30", "47", "60", "75", "3.2"])
        people = self.noun_phrase("PPV", 2, simple=True, plural=True)
        about = self.phrase_of(
            ("about", ["environ", "à peu près"]), ("more than", ["plus de"]), ("less than", ["moins de"])
        )
        clause = self.clause(replace(people, english=[], french=[]))
        sign = self.chance(0.5)
        words_en = [*about[0], value + ("%" if sign else ""), *([] if sign else ["percent"]), "of", *people.english]
        percent = ["%"] if sign or self.style.random() < 0.2 else ["pour", "cent"]
        return self.end(
            (
                words_en + clause.english,
                [*about[1], value.replace(".", ","), *percent, "de", *people.french, *clause.french],
            ),
            ".",
        )

    def phrase_of(self, *choices: tuple[str, list[str]]) -> Words:
        """Draw one of a few expressions."""
        text, alternatives = self.meaning.choice(choices)
        return text.split(), free(alternatives, self.style).split()
