"""Generation of the demo corpus: English-French sentences from a synchronous grammar, reproducible from the seed.

The first part of this module defines the sentence patterns of each domain, the second part the files of the corpus.

In-domain text is news from a harbour town, with conversations. General text consists of technical manuals and laws, in
which many words have another meaning; one sixth of it is harbour news, and it has the errors of crawled text. No
sentence of dev and test occurs in the training text, nor do some of their names. Numbers of lines at --scale 1: 4,000
in-domain pairs, 16,000 general pairs, 20,000 monolingual lines, 400 for dev, 2,700 for test; the sizes of dev and test
do not depend on --scale.

30 % of the pairs of both parallel corpora are translated carelessly, as is common in crawled text: adjectives are in
English order, have the wrong gender or are missing; verbs have another form. In a phrase table, a wrong pair that was
extracted once has the same probability as a correct one; only the other words of the phrase reveal the error, which the
RNN Encoder-Decoder can learn to detect. French monolingual text, dev and test have no such errors.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

from rnnsmt.base.io import atomic_binary
from rnnsmt.base.parallel import map_chunks
from rnnsmt.demo.clauses import Manner, object_words, pronoun
from rnnsmt.demo.conversation import ConversationSpeaker
from rnnsmt.demo.entries import free, general_domain, harbour_domain, phrases, zipf
from rnnsmt.demo.french import conjugate, participle
from rnnsmt.demo.patterns import SentenceSpeaker, Words
from rnnsmt.demo.phrases import proper_name

MONTHS = phrases("common", "month")


class HarbourSpeaker(ConversationSpeaker):
    """Generator of news of a harbour town."""

    def __init__(self, meaning: Random, style: Random) -> None:
        super().__init__(harbour_domain(), meaning, style)

    def kinds(self) -> list[tuple[Callable[[], Words], float]]:
        """Return the sentence patterns with their weights: mostly statements and reported speech."""
        return [
            (self.declaration, 34),
            (self.conversation, 22),
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

IN_DOMAIN, GENERAL, MONO, DEV, TEST = 4000, 16000, 20000, 400, 2700

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
    """Yield an unlimited number of pairs of one part of the corpus; see ``sentence``."""
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
    """Yield the pairs without a side in ``known``, without duplicates of the source side."""
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
