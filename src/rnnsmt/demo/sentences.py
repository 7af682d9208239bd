"""Generation of the demo corpus: English-French sentences from a synchronous grammar, reproducible from the seed.

The patterns of the sentences of both domains are first, the files of the corpus further below. In-domain text is news
of a harbour town. General text consists of technical manuals and laws, in which many words have another meaning; one
sixth of it is harbour news, and it has the errors of crawled text. 30 % of the pairs of both parallel corpora are
translated carelessly, as is common in crawled text: adjectives in English order, with the wrong gender or left out,
verbs in another form. In a phrase table, such a pair that was seen once has the probability of a good one; only the
other words of the phrase reveal the error, which the RNN Encoder-Decoder can learn. The errors are intended to give it
a task; French monolingual text, dev and test have none. No sentence of dev and test occurs in the training text, and
some of their names do not either. Numbers of lines at --scale 1: 4,000 in-domain pairs, 16,000 general pairs, 20,000
monolingual lines, 400 for dev, 500 for test; the sizes of dev and test do not depend on --scale.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

from rnnsmt.base.io import atomic_binary
from rnnsmt.base.parallel import map_chunks
from rnnsmt.demo import english, french
from rnnsmt.demo.clauses import ClauseSpeaker, Manner, object_words, pronoun
from rnnsmt.demo.entries import free, general_domain, harbour_domain, phrases, zipf
from rnnsmt.demo.french import conjugate, participle
from rnnsmt.demo.phrases import NounPhrase, proper_name

Words = tuple[list[str], list[str]]

JOINING, MONTHS = phrases("common", "joining"), phrases("common", "month")
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
        verb = free(entry.french, self.style)
        tense = self.meaning.choice(["past", "present", "future"])
        obj = self.noun_phrase(entry.objects, 1)
        did = {"past": "did", "present": "do" if subject.plural else "does", "future": "will"}[tense]
        words_en = [did, *subject.english, entry.english.base, *obj.english]
        _, group = self.group(entry, verb, subject, Manner(tense))
        rest = object_words(verb, obj, False)
        if self.style.random() < 0.55:
            words_fr = ["est-ce", "que", *subject.french, *group, *rest]
        else:
            words_fr = subject.french + self._inverted(group, subject, verb.reflexive) + rest
        if self.chance(0.3):
            ask_en, ask_fr = self.meaning.choice(WHY)
            words_en, words_fr = [ask_en, *words_en], [ask_fr, *words_fr]
        return self.end((words_en, words_fr), "?")

    def _inverted(self, group: list[str], subject: NounPhrase, reflexive: bool) -> list[str]:
        """Insert the pronoun after the conjugated verb, as in "Le maire a-t-il vu"."""
        name = ("elle" if subject.feminine else "il") + ("s" if subject.plural else "")
        at = 1 if reflexive else 0
        link = "-t-" if group[at][-1] in "aec" else "-"
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
        verb_words = [auxiliary, participle(verb)]
        words_fr = ["«", *words_fr, "»", ",", *verb_words, *who.french]
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
            name = proper_name("place", self.meaning)
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
        obj = self.noun_phrase(kinds, 1)
        negated = self.chance(0.2)
        words_en = [*(["do", "not"] if negated else []), entry.english.base, *obj.english]
        if self.style.random() < 0.25:
            words_fr = [*(["ne", "pas"] if negated else []), *(["se"] if verb.reflexive else []), verb.infinitive]
        else:
            form = conjugate(verb.infinitive, "present", 4)
            if negated:
                words_fr = ["ne", *(["vous"] if verb.reflexive else []), form, "pas"]
            else:
                words_fr = [form + ("-vous" if verb.reflexive else "")]
        words = words_en, words_fr + verb.fixed + object_words(verb, obj, negated)
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
        obj = self.noun_phrase("AOPGVE", 1)
        means = self.style.choice([["désigne"], ["s'entend", "de"], ["signifie"]])
        return self.end(
            (["“", term.singular, "”", "means", *obj.english], ["«", *french_term, "»", *means, *obj.french]), "."
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
        noun = self.noun_phrase("AOPGVE", 0)
        mark_fr = f"{letter})"
        return [f"({letter})", *noun.english, ";"], [mark_fr, *noun.french, ";"]


Pair = tuple[str, str]

IN_DOMAIN, GENERAL, MONO, DEV, TEST = 4000, 16000, 20000, 400, 500

HARBOUR_IN_GENERAL = 1 / 6
"""Share of harbour news in the general text, which data selection should find."""

HARBOUR_IN_MONO = 0.5
"""Share of harbour news in the monolingual text."""

CARELESS = 0.3
"""Share of careless translations in both parallel corpora; monolingual text, dev and test have none."""

BOILERPLATE = phrases("general", "boilerplate")

# probability of each error in a pair of the general text
FAULTS = {
    "boilerplate": 0.04,
    "misaligned": 0.03,
    "untranslated": 0.02,
    "mojibake": 0.015,
    "truncated": 0.012,
    "latin-1": 0.01,
    "spaces": 0.01,
    "merged": 0.008,
    "capitals": 0.008,
    "controls": 0.007,
    "empty": 0.007,
    "markup": 0.006,
    "swapped": 0.005,
    "endless": 0.004,
    "separator": 0.004,
}


def sentence(seed: int, subset: str, harbour_share: float, number: int, style: int = 0, careless: float = 0.0) -> Pair:
    """Return one sentence pair of a part of the corpus.

    Args:
        seed: seed of the corpus.
        subset: name of the part, which selects the random stream.
        harbour_share: share of harbour news; the rest is general text.
        number: number of the sentence in its part; sentences are independent of each other.
        style: a different number gives different translations of the same English sentences.
        careless: share of careless translations.
    """
    meaning, ways = Random(f"{seed} {subset} {number}"), Random(f"{seed} {subset} {number} {style}")
    kind: type[HarbourSpeaker] | type[GeneralSpeaker]
    kind = HarbourSpeaker if meaning.random() < harbour_share else GeneralSpeaker
    speaker: SentenceSpeaker = kind(meaning, ways)
    speaker.careless = careless > 0 and Random(f"{seed} {subset} {number} careless").random() < careless
    return speaker.sentence()


def sentences(seed: int, subset: str, harbour_share: float, style: int = 0, careless: float = 0.0) -> Iterator[Pair]:
    """Yield pairs of one part of the corpus without end; see ``sentence``."""
    return (sentence(seed, subset, harbour_share, number, style, careless) for number in count())


def first_sentences(
    lines: int, seed: int, subset: str, harbour_share: float, careless: float = 0.0, threads: int = 1
) -> list[Pair]:
    """Return the first pairs of one part of the corpus, generated in several processes; see ``sentence``."""
    chunks = map_chunks(partial(partial, _numbered, seed, subset, harbour_share, careless), range(lines), threads)
    return [pair for chunk in chunks for pair in chunk]


def _numbered(seed: int, subset: str, harbour_share: float, careless: float, numbers: Iterable[int]) -> list[Pair]:
    """Return the pairs with these numbers."""
    return [sentence(seed, subset, harbour_share, number, careless=careless) for number in numbers]


def unseen(pairs: Iterable[Pair], known: set[str]) -> Iterator[Pair]:
    """Yield the pairs of which neither side is in ``known``, without duplicates."""
    for pair in pairs:
        if pair[0] not in known and pair[1] not in known:
            known.add(pair[0])
            yield pair


def with_faults(pairs: Iterable[Pair], rng: Random, scale: float = 1.0) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pairs as bytes, some of them with errors.

    Args:
        pairs: clean pairs.
        rng: random generator of the errors.
        scale: factor of the probabilities in ``FAULTS``.
    """
    faults, chances = list(FAULTS), [scale * chance for chance in FAULTS.values()]
    before = ("", "")
    for pair in pairs:
        (fault,) = rng.choices([*faults, ""], [*chances, 1 - sum(chances)])
        source, target = _spoil(fault, pair, before, rng) if fault else pair
        yield source.encode("utf-8"), _encode(target, fault)
        before = pair


def _encode(text: str, fault: str) -> bytes:
    """Encode a target side."""
    return text.encode("latin-1", "ignore") if fault == "latin-1" else text.encode("utf-8")


def _spoil(fault: str, pair: Pair, before: Pair, rng: Random) -> Pair:  # noqa: PLR0911, PLR0912 - a list of faults
    """Insert an error into a pair; ``before`` is the previous pair."""
    source, target = pair
    match fault:
        case "boilerplate":
            entry = rng.choice(BOILERPLATE)
            return " ".join(entry.english), " ".join(entry.french[0])
        case "misaligned":
            return source, before[1]
        case "untranslated":
            return (source, source) if rng.random() < 0.7 else (target, target)
        case "swapped":
            return target, source
        case "mojibake":
            return source, target.encode("utf-8").decode("cp1252", "replace")
        case "truncated":
            return source, target[: len(target) // 5]
        case "merged":
            return source, f"{before[1]} {target}"
        case "controls":
            at = rng.randrange(1, len(target) + 1)
            return source, target[:at] + rng.choice("\x00\x07\x0b\x1b\x85\u2028\x9d") + target[at:]
        case "empty":
            return rng.choice([("", target), (source, ""), ("", ""), ("   ", target)])
        case "endless":
            return " ".join([source] * 12), " ".join([target] * 12)
        case "capitals":
            return source.upper(), target.upper()
        case "markup":
            return f"<b>{source}</b>", f"<b>{target}</b> &nbsp;"
        case "separator":
            return source.replace(" ", " ||| ", 1), target.replace(" ", " ||| ", 1)
        case "spaces":
            return "  " + source.replace(" ", "\t", 1) + " ", target.replace(" ", "  ") + "\r"
    return pair


def write_pairs(directory: Path, name: str, pairs: Iterable[tuple[bytes, bytes]]) -> None:
    """Write both sides of a parallel corpus to compressed files; line breaks inside a segment become spaces."""
    with atomic_binary(directory / f"{name}.en.gz") as source, atomic_binary(directory / f"{name}.fr.gz") as target:
        for left, right in pairs:
            source.write(left.replace(b"\n", b" ") + b"\n")
            target.write(right.replace(b"\n", b" ") + b"\n")
