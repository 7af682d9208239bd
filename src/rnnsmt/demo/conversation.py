"""Sentences of conversations: short ones with personal pronouns, contractions, negations and questions."""

from dataclasses import replace

from rnnsmt.demo.clauses import ETRE, PRONOUNS, Clause, Manner, be, be_group, do, french_group, object_words
from rnnsmt.demo.entries import VerbEntry, entries, free, phrases, verb, zipf
from rnnsmt.demo.patterns import SentenceSpeaker, Words
from rnnsmt.demo.phrases import NounPhrase

SPOKEN_PRONOUNS = [*PRONOUNS, ("you", "vous", 4, False)]
"""Subject pronouns of conversations, as ``PRONOUNS``."""

SPOKEN = entries("verbs", "conversation", verb)
"""Verbs and uses of verbs that are frequent in conversations."""

PLACES = phrases("conversation", "place")
"""Places that are frequent in conversations."""


class ConversationSpeaker(SentenceSpeaker):
    """Generator of conversations, with the nouns, verbs and places of a domain."""

    def conversation(self) -> Words:
        """Generate a statement or a question of a conversation."""
        patterns = [
            (self.statement, 6),
            (self.verb_question, 1.5),
            (self.where_question, 1),
            (self.be_question, 1),
            (self.what_question, 1),
            (self.who_question, 0.5),
        ]
        (make,) = self.meaning.choices([pattern for pattern, _ in patterns], [weight for _, weight in patterns])
        return make()

    def spoken_subject(self, kinds: str = "PPG") -> NounPhrase:
        """Generate the subject: a pronoun, or a noun phrase whose head is of one of the classes ``kinds``."""
        if not self.chance(0.6):
            return self.noun_phrase(kinds, 2, simple=True)
        english, french, person, feminine = self.meaning.choice(SPOKEN_PRONOUNS)
        return NounPhrase([english], [french], feminine, False, "P", person=person, pronoun=True)

    def spoken_object(self, entry: VerbEntry) -> NounPhrase | None:
        """Generate the object of a transitive verb."""
        return self.noun_phrase(entry.objects, 2, simple=True) if entry.objects else None

    def spoken_manner(self) -> Manner:
        """Draw tense, negation and contraction; negations are more frequent than in written text."""
        tense = self.meaning.choices(["present", "past", "future", "can", "must", "could"], [10, 5, 2, 3, 2, 1])[0]
        roll = self.meaning.random()
        return Manner(tense, "not" if roll < 0.35 else "never" if roll < 0.38 else "", self.chance(0.75))

    def spoken_verb(self) -> VerbEntry:
        """Draw a verb with a person as its subject."""
        roll = self.meaning.random()
        if roll < 0.35:
            return zipf(SPOKEN, self.meaning)
        return zipf((self.domain.transitive if roll < 0.85 else self.domain.intransitive)["P"], self.meaning)

    def spoken_place(self) -> Words:
        """Draw a place."""
        return self.phrase(PLACES if self.chance(0.4) else self.domain.places)

    def statement(self) -> Words:
        """Generate a statement like "She doesn't know the mayor" or "We aren't in the harbour"."""
        roll, manner = self.meaning.random(), self.spoken_manner()
        if roll < 0.15:
            return self.end(self.quality(self.spoken_subject("PPGVVO"), manner).whole(), ".")
        if roll < 0.3:
            return self.end(self.located(self.spoken_subject("PPVVO"), manner).whole(), ".")
        if roll < 0.4:
            return self.end(self.with_pronoun(self.spoken_subject(), manner).whole(), ".")
        return self.end(self.action(self.spoken_subject(), manner).whole(), ".")

    def action(self, subject: NounPhrase, manner: Manner) -> Clause:
        """Generate a clause like "They don't have a boat"."""
        entry = self.spoken_verb()
        french = free(entry.french, self.style)
        words_en, words_fr = self.group(entry, french, subject, manner)
        if thing := self.spoken_object(entry):
            words_en, words_fr = words_en + thing.english, words_fr + object_words(french, thing, bool(manner.negation))
        return Clause(subject, words_en, words_fr)

    def located(self, subject: NounPhrase, manner: Manner) -> Clause:
        """Generate a clause like "The ship isn't in the harbour"."""
        place_en, place_fr = self.spoken_place()
        tense = "stative-past" if manner.tense == "past" else manner.tense
        group = french_group(ETRE, subject, replace(manner, tense=tense), self.style)
        return Clause(subject, be_group(subject, manner) + place_en, group + place_fr)

    def verb_question(self) -> Words:
        """Generate a question like "Do you see the harbour?" or "When did they leave?"."""
        subject, entry = self.spoken_subject(), self.spoken_verb()
        return self.ask(subject, entry, self._question_tense(), self.spoken_object(entry), 0.4)

    def be_question(self) -> Words:
        """Generate a question like "Is the mayor here?" or "Are you ready?"."""
        subject, tense = self.spoken_subject("PPVVO"), "past" if self.chance(0.3) else "present"
        clause = self.located(subject, Manner(tense)) if self.chance(0.5) else self.quality(subject, Manner(tense))
        words_fr = self.interrogative(subject, clause.french[:1], False, clause.french[1:])
        return self.end(([be(subject, tense), *subject.english, *clause.english[1:]], words_fr), "?")

    def where_question(self) -> Words:
        """Generate a question like "Where is the harbour?"."""
        subject = self.spoken_subject("PVVOLL")
        past = self.chance(0.2)
        group = french_group(ETRE, subject, Manner("stative-past" if past else "present"), self.style)
        if subject.pronoun:
            words_fr = ["où", *self.interrogative(subject, group, False, [])]
        else:
            words_fr = ["où", *group, *subject.french]
        return self.end((["where", be(subject, "past" if past else "present"), *subject.english], words_fr), "?")

    def what_question(self) -> Words:
        """Generate a question like "What does the captain want?"."""
        fitting = [
            v
            for v in [*SPOKEN, *self.domain.transitive["P"]]
            if set(v.objects) & set("VOAE") and not v.french[0].preposition
        ]
        subject, entry, tense = self.spoken_subject(), zipf(fitting, self.meaning), self._question_tense()
        french = entry.french[0]
        _, group = self.group(entry, french, subject, Manner(tense))
        words_en = ["what", do(subject, tense), *subject.english, entry.english.base]
        return self.end((words_en, ["qu'est-ce", "que", *subject.french, *group]), "?")

    def who_question(self) -> Words:
        """Generate a question like "Who saw the boat?"."""
        subject = NounPhrase(["who"], ["qui"], False, False, "P")
        return self.end(self.action(subject, Manner(self._question_tense())).whole(), "?")

    def _question_tense(self) -> str:
        """Draw the tense of a question."""
        return self.meaning.choices(["present", "past", "future"], [5, 4, 1])[0]
