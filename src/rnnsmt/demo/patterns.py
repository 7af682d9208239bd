"""Sentence patterns that both domains of the demo corpus share."""

from collections.abc import Callable
from dataclasses import replace

from rnnsmt.demo import english, french
from rnnsmt.demo.clauses import ClauseSpeaker, Manner, do, object_words, pronoun
from rnnsmt.demo.entries import VerbEntry, free, phrases, zipf
from rnnsmt.demo.phrases import NounPhrase

Words = tuple[list[str], list[str]]

JOINING = phrases("common", "joining")
WHY = [("Why", "pourquoi"), ("When", "quand"), ("Where", "où"), ("How", "comment")]


class SentenceSpeaker(ClauseSpeaker):
    """Generator of sentences; subclasses define patterns and weights."""

    def kinds(self) -> list[tuple[Callable[[], Words], float]]:
        """Return the sentence patterns with their weights."""
        raise NotImplementedError

    def sentence(self) -> tuple[str, str]:
        """Generate one sentence in English and in French, as printed."""
        kinds = self.kinds()
        make = self.meaning.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        words_en, words_fr = make()
        style = self.style
        text_fr = french.spell(
            words_fr,
            space=french.NBSP if style.random() < 0.7 else " ",
            apostrophe="'" if style.random() < 0.85 else "’",
            guillemets=style.random() < 0.8,
        )
        return english.spell(words_en), text_fr

    def plain(self) -> Words:
        """Generate a clause with adverbials before or after it."""
        words_en, words_fr = self.clause().whole()
        if self.chance(0.3):
            words_en, words_fr = self.both((words_en, words_fr), self.phrase(self.domain.places))
        if self.chance(0.3):
            time = self.phrase(self.domain.times)
            in_front = self.chance(0.4)
            french_front = in_front if self.style.random() < 0.85 else not in_front
            words_en = [*time[0], ",", *words_en] if in_front else words_en + time[0]
            words_fr = [*time[1], ",", *words_fr] if french_front else words_fr + time[1]
        return words_en, words_fr

    def declaration(self) -> Words:
        """Generate a plain sentence, sometimes with an initial adverbial."""
        words = self.plain()
        if self.chance(0.15):
            opening = self.phrase(self.domain.openings)
            words = [*opening[0], ",", *words[0]], [*opening[1], ",", *words[1]]
        return self.end(words, ".")

    def coordination(self) -> Words:
        """Generate two clauses with the same subject, which is a pronoun in the second.

        The French pronoun has the gender of the first subject.
        """
        first = self.clause()
        second = self.clause(pronoun(first.subject))
        joins = [("and", "et"), ("but", "mais"), ("so", "donc"), ("then", "puis")]
        join_en, join_fr = self.meaning.choices(joins, [5, 4, 1, 1])[0]
        words = self.both(first.whole(), ([",", join_en], [",", join_fr] if self.style.random() < 0.6 else [join_fr]))
        return self.end(self.both(words, second.whole()), ".")

    def subordinate(self) -> Words:
        """Generate a sentence like "When the storm arrived, the crew left the harbour"."""
        entry = zipf(JOINING, self.meaning)
        in_front = self.chance(0.4)
        choices = [words for words in entry.french if words != (["car"] if in_front else ["comme"])]
        join = free(choices, self.style)
        subjunctive = join[-1].endswith("+")
        join = [word.rstrip("+") for word in join]
        main_en, main_fr = self.clause().whole()
        side_en, side_fr = self.clause(subjunctive=subjunctive).whole()
        side_en, side_fr = entry.english + side_en, join + side_fr
        if in_front:
            return self.end(([*side_en, ",", *main_en], [*side_fr, ",", *main_fr]), ".")
        return self.end((main_en + side_en, main_fr + side_fr), ".")

    def relative(self) -> Words:
        """Generate "The sailor who lost the net visited the mayor" or "The net that the sailor lost is old"."""
        head = self.noun_phrase("PPGVO", 2)
        if head.kind in "PG" or self.chance(0.3):
            inner = self.clause(replace(head, english=[], french=[]))
            side_en, side_fr = ["who" if head.kind == "P" else "that", *inner.english], ["qui", *inner.french]
        else:
            side_en, side_fr = self._object_relative(head)
        main = self.clause(head)
        return self.end((head.english + side_en + main.english, head.french + side_fr + main.french), ".")

    def _object_relative(self, head: NounPhrase) -> Words:
        """Generate "that the sailor lost"; the French participle agrees with the head."""
        subject = self.noun_phrase("PG", 2, simple=True)
        verbs = [v for v in self.domain.transitive["P"] if head.kind in v.objects and not v.french[0].preposition]
        entry = zipf(verbs, self.meaning)
        usable = [f for f in entry.french if not f.preposition and not f.reflexive]
        verb = free(usable, self.style)
        agree = (head.feminine, head.plural)
        words_en, words_fr = self.group(entry, verb, subject, replace(self.manner(), negation=""), agree=agree)
        return ["that", *subject.english, *words_en], ["que", *subject.french, *words_fr]

    def question(self) -> Words:
        """Generate a question like "Did the mayor visit the harbour?" or "Why ...?"."""
        subject = self.noun_phrase("PGPGV", 2, simple=True)
        entry = zipf(self.domain.transitive[subject.kind], self.meaning)
        tense = self.meaning.choice(["past", "present", "future"])
        return self.ask(subject, entry, tense, self.noun_phrase(entry.objects, 1), 0.3)

    def ask(self, subject: NounPhrase, entry: VerbEntry, tense: str, thing: NounPhrase | None, adverb: float) -> Words:
        """Generate a question with a verb.

        Args:
            subject: noun phrase or pronoun.
            entry: the verb.
            tense: past, present or future.
            thing: the object of a transitive verb.
            adverb: probability of an interrogative adverb.
        """
        verb = free(entry.french, self.style)
        words_en = [do(subject, tense), *subject.english, entry.english.base, *(thing.english if thing else [])]
        _, group = self.group(entry, verb, subject, Manner(tense))
        words_fr = self.interrogative(subject, group, verb.reflexive, object_words(verb, thing, False) if thing else [])
        if self.chance(adverb):
            ask_en, ask_fr = self.meaning.choice(WHY)
            words_en, words_fr = [ask_en, *words_en], [ask_fr, *words_fr]
        return self.end((words_en, words_fr), "?")

    def interrogative(self, subject: NounPhrase, group: list[str], reflexive: bool, rest: list[str]) -> list[str]:
        """Return a French question, with "est-ce que" (always for "je") or with the pronoun after the verb."""
        if self.style.random() < 0.55 or (subject.pronoun and subject.person == 0):
            return ["est-ce", "que", *subject.french, *group, *rest]
        return ([] if subject.pronoun else subject.french) + self.inverted(group, subject, reflexive) + rest

    def inverted(self, group: list[str], subject: NounPhrase, reflexive: bool) -> list[str]:
        """Insert the subject pronoun after the conjugated verb, as in "Le maire a-t-il vu" and "Voyez-vous"."""
        third = ("elle" if subject.feminine else "il") + ("s" if subject.plural else "")
        name = subject.french[-1] if subject.pronoun else third
        at = 1 if reflexive else 0
        link = "-t-" if group[at][-1] in "aec" and subject.person == 2 else "-"
        return [*group[:at], f"{group[at]}{link}{name}", *group[at + 1 :]]

    def existence(self) -> Words:
        """Generate a sentence like "There are three boats in the harbour"."""
        noun = self.noun_phrase("PVOE", 2)
        past = self.chance(0.4)
        be = ("were" if noun.plural else "was") if past else ("are" if noun.plural else "is")
        il_y_a = ["il", "y", "avait" if past else "a"]
        return self.end(
            self.both((["there", be, *noun.english], [*il_y_a, *noun.french]), self.phrase(self.domain.places)), "."
        )

    def both(self, first: Words, second: Words) -> Words:
        """Concatenate in both languages."""
        return first[0] + second[0], first[1] + second[1]

    def end(self, words: Words, mark: str) -> Words:
        """Append the final punctuation mark."""
        return [*words[0], mark], [*words[1], mark]
