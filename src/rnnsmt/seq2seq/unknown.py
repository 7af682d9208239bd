"""What is written for the unknown words of a translation: ``<unk>``, words of the source, or a lexicon's translations.

A network that reads and writes words knows the frequent ones; for every other word it reads, and writes, UNK. Which
source word an UNK stands for it does not say: ``copy`` goes by the order, ``LexicalTranslations`` by a word alignment's
table too, in the spirit of Luong, Sutskever, Le, Vinyals and Zaremba (2015), whose network was trained to point at the
word.

A translation comes as its words, None where one is unknown (``Units.words``).
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rnnsmt.networks.vocabulary import SECOND
from rnnsmt.phrases.lexical_table import NULL, lexical_lines
from rnnsmt.progress import say
from rnnsmt.seq2seq.model import TrainedSeq2Seq

Fill = Callable[[TrainedSeq2Seq, Sequence[str | None], Sequence[str]], list[str]]
"""A network, the words of its translation, those of the source -> the translation."""

EXPLAINS = 0.1
"""A word translates another one if its probability is at least this share of the best translation's."""


def keep(one: TrainedSeq2Seq, words: Sequence[str | None], source: Sequence[str]) -> list[str]:
    """``<unk>`` for every unknown word."""
    return [SECOND if word is None else word for word in words]


def copy(one: TrainedSeq2Seq, words: Sequence[str | None], source: Sequence[str]) -> list[str]:
    """The n-th word of the source that the network does not know for the n-th unknown word of the translation.

    Unknown words for which the source has none are left out.
    """
    return _in_order(words, (word for word in source if not one.source.knows(word)))


def _in_order(words: Sequence[str | None], unknown: Iterable[str]) -> list[str]:
    following = iter(unknown)
    filled = (next(following, None) if word is None else word for word in words)
    return [word for word in filled if word is not None]


class LexicalTranslations:
    """The best translations of source words, by the lexical table of a word alignment.

    The unknown words of a translation stand for words of the source that its known words do not translate:

    1. A word y of the translation translates a word x of the source if p(y | x) is at least ``EXPLAINS`` times the
       probability of the best translation of x. Pairs of them are joined, the most probable first, of equal ones that
       whose relative places in their sentences are nearest; every word once.
    2. The words of the source that are left are taken in this order: those that the network does not know; those whose
       best translation it does not know; the others. Within each kind from left to right. A word that it knows and that
       the table has more often without a translation (linked to NULL) than with its best one is not taken.
    3. As many as the translation has unknown words, in the order of the source, one for each: its best translation, or
       itself where the table does not have it. Unknown words for which there are none are left out.

    The best translation of equally probable ones is the first in the order of their spelling.
    """

    def __init__(self, table: dict[str, dict[str, float]]) -> None:
        """table: source word -> target word, or NULL -> p(target word | source word)."""
        null = NULL.decode()
        self._words = {x: {y: p for y, p in row.items() if y != null} for x, row in table.items()}
        self._untranslated = {x: row[null] for x, row in table.items() if null in row}
        self._best = {x: min(row, key=lambda y: (-row[y], y)) for x, row in self._words.items() if row}

    @classmethod
    def read(cls, path: str | Path, sources: Iterable[str]) -> "LexicalTranslations":
        """Read the lines ``target source p`` of these source words, of what ``phrases lexical`` writes as f2e.

        Raises:
            InputError: the file is missing or damaged, or a line is none of such a table.
        """
        wanted = {word.encode(): word for word in sources}
        table: dict[str, dict[str, float]] = {}
        for target, source, p in lexical_lines(str(path)):
            if (word := wanted.get(source)) is not None:
                table.setdefault(word, {})[target.decode("utf-8", "replace")] = p
        if wanted and not table:
            say(f"warning: {path}: has no word of the texts; is it p(target | source), lex.f2e?")
        return cls(table)

    def translation(self, word: str) -> str:
        """The best translation of a word, or itself."""
        return self._best.get(word, word)

    def __call__(self, one: TrainedSeq2Seq, words: Sequence[str | None], source: Sequence[str]) -> list[str]:
        number = list(words).count(None)
        chosen = self._candidates(one, words, source)[:number] if number else []
        return _in_order(words, (self.translation(source[i]) for i in sorted(chosen)))

    def _candidates(self, one: TrainedSeq2Seq, words: Sequence[str | None], source: Sequence[str]) -> list[int]:
        """The places of the source words that an unknown word may stand for, the best first."""
        explained = self._explained(words, source)
        ranked = []
        for i, word in enumerate(source):
            if i in explained:
                continue
            if not one.source.knows(word):
                ranked.append((0, i))
            elif self._untranslated.get(word, 0.0) <= self._words.get(word, {}).get(self.translation(word), 0.0):
                ranked.append((2 if one.target.knows(self.translation(word)) else 1, i))
        return [i for _, i in sorted(ranked)]

    def _explained(self, words: Sequence[str | None], source: Sequence[str]) -> set[int]:
        """The places of the source words that known words of the translation translate."""
        pairs = []
        for i, x in enumerate(source):
            row = self._words.get(x, {})
            least = EXPLAINS * row[self._best[x]] if row else 0.0
            for j, y in enumerate(words):
                if y is not None and row.get(y, 0.0) >= least and y in row:
                    pairs.append((-row[y], abs(i * len(words) - j * len(source)), i, j))
        sources: set[int] = set()
        targets: set[int] = set()
        for _, _, i, j in sorted(pairs):
            if i not in sources and j not in targets:
                sources.add(i)
                targets.add(j)
        return sources
