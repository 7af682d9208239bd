"""Replacement of the unknown words of a translation: ``<unk>``, words of the source, or lexical translations.

A network on words knows the frequent ones only; it reads and writes UNK for every other word, without telling which
source word an UNK stands for. ``copy`` matches unknown words by their order; ``LexicalTranslations`` also uses the
lexical table of a word alignment, in the spirit of Luong, Sutskever, Le, Vinyals and Zaremba (2015), whose network was
trained to point at the source word.

A translation is given as its words, with None for an unknown word (``Units.words``).
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rnnsmt.base.progress import say
from rnnsmt.networks.vocabulary import SECOND
from rnnsmt.phrases.lexical_table import NULL, lexical_lines
from rnnsmt.seq2seq.model import TrainedSeq2Seq

Fill = Callable[[TrainedSeq2Seq, Sequence[str | None], Sequence[str]], list[str]]
"""Function (network, words of its translation, words of the source) -> words of the final translation."""

EXPLAINS = 0.1
"""Smallest probability of a translation of a word, relative to that of its best translation."""


def keep(one: TrainedSeq2Seq, words: Sequence[str | None], source: Sequence[str]) -> list[str]:
    """Write ``<unk>`` for every unknown word."""
    return [SECOND if word is None else word for word in words]


def copy(one: TrainedSeq2Seq, words: Sequence[str | None], source: Sequence[str]) -> list[str]:
    """Replace the n-th unknown word of the translation by the n-th source word that is unknown to the network.

    Unknown words without a counterpart are dropped.
    """
    return _in_order(words, (word for word in source if not one.source.knows(word)))


def _in_order(words: Sequence[str | None], unknown: Iterable[str]) -> list[str]:
    """Replace the unknown words by those of ``unknown``, in order; drop unknown words without a replacement."""
    following = iter(unknown)
    filled = (next(following, None) if word is None else word for word in words)
    return [word for word in filled if word is not None]


class LexicalTranslations:
    """Replacement of unknown words by the best translations of source words in the lexical table of a word alignment.

    The unknown words of a translation are assumed to stand for source words that its known words do not translate:

    1. A word y of the translation translates a source word x if p(y | x) is at least ``EXPLAINS`` times the probability
       of the best translation of x. Such pairs are matched greedily, the most probable first, ties broken by the
       smallest distance of the relative positions in the sentences; every word is matched at most once.
    2. The remaining source words are ranked: those unknown to the network; those whose best translation is unknown to
       it; the others; from left to right within each group. A known word whose p(NULL | x) exceeds the probability of
       its best translation is skipped.
    3. As many of these as there are unknown words are used, in source order, one for each unknown word, which becomes
       the best translation of the source word, or the source word itself if the table lacks it. Unknown words without
       a counterpart are dropped.

    Ties between best translations are broken by spelling.
    """

    def __init__(self, table: dict[str, dict[str, float]]) -> None:
        """Build from a table: source word -> target word, or NULL -> p(target word | source word)."""
        null = NULL.decode()
        self._words = {x: {y: p for y, p in row.items() if y != null} for x, row in table.items()}
        self._untranslated = {x: row[null] for x, row in table.items() if null in row}
        self._best = {x: min(row, key=lambda y: (-row[y], y)) for x, row in self._words.items() if row}

    @classmethod
    def read(cls, path: str | Path, sources: Iterable[str]) -> "LexicalTranslations":
        """Read the lines ``target source p`` of some source words from the f2e table of ``phrases lexical``.

        Raises:
            InputError: the file is missing or damaged, or a line is malformed.
        """
        wanted = {word.encode(): word for word in sources}
        table: dict[str, dict[str, float]] = {}
        for target, source, p in lexical_lines(str(path)):
            if (word := wanted.get(source)) is not None:
                table.setdefault(word, {})[target.decode("utf-8", "replace")] = p
        if wanted and not table:
            say(f"warning: {path}: contains no word of the texts; is this the table p(target | source), lex.f2e?")
        return cls(table)

    def translation(self, word: str) -> str:
        """Return the best translation of a word, or the word itself if the table has none."""
        return self._best.get(word, word)

    def __call__(self, one: TrainedSeq2Seq, words: Sequence[str | None], source: Sequence[str]) -> list[str]:
        """Replace the unknown words of a translation, see the class."""
        number = list(words).count(None)
        chosen = self._candidates(one, words, source)[:number] if number else []
        return _in_order(words, (self.translation(source[i]) for i in sorted(chosen)))

    def _candidates(self, one: TrainedSeq2Seq, words: Sequence[str | None], source: Sequence[str]) -> list[int]:
        """Return the positions of the source words that unknown words may stand for, the best first."""
        explained = self._explained(words, source)
        ranked = []  # (group, position)
        for i, word in enumerate(source):
            if i in explained:
                continue
            if not one.source.knows(word):
                ranked.append((0, i))
            elif self._untranslated.get(word, 0.0) <= self._words.get(word, {}).get(self.translation(word), 0.0):
                ranked.append((2 if one.target.knows(self.translation(word)) else 1, i))
        return [i for _, i in sorted(ranked)]

    def _explained(self, words: Sequence[str | None], source: Sequence[str]) -> set[int]:
        """Return the positions of the source words that are translated by known words of the translation."""
        pairs = []
        for i, x in enumerate(source):
            row = self._words.get(x, {})
            least = EXPLAINS * row[self._best[x]] if row else 0.0
            for j, y in enumerate(words):
                # the distance of i / len(source) and j / len(words), in integers
                if y is not None and row.get(y, 0.0) >= least and y in row:
                    pairs.append((-row[y], abs(i * len(words) - j * len(source)), i, j))
        sources: set[int] = set()
        targets: set[int] = set()
        for _, _, i, j in sorted(pairs):
            if i not in sources and j not in targets:
                sources.add(i)
                targets.add(j)
        return sources
