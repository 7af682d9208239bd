"""Slow and exact reference implementation of modified Kneser-Ney smoothing, with dictionaries and fractions."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache

FALLBACK = (Fraction(1, 2), Fraction(1), Fraction(3, 2))
Ngram = tuple[str, ...]


class Twin:
    """Model of a text; ``probability`` and ``backoff`` are exact fractions by n-gram.

    ``adjusted`` has all n-grams of the text, ``kept`` those that occur more often than the threshold of their order.
    """

    def __init__(
        self,
        sentences: Iterable[list[str]],
        order: int,
        vocabulary: set[str] | None = None,
        thresholds: Sequence[int] = (),
    ) -> None:
        raw: dict[Ngram, int] = defaultdict(int)
        left: dict[Ngram, set[str]] = defaultdict(set)
        self.words = {"<unk>", "<s>", "</s>", *(vocabulary or ())}
        for sentence in sentences:
            known = [w if vocabulary is None or w in vocabulary else "<unk>" for w in sentence]
            line = ["<s>", *known, "</s>"]
            self.words.update(line)
            for k in range(1, order + 1):
                for i in range(len(line) - k + 1):
                    ngram = tuple(line[i : i + k])
                    raw[ngram] += 1
                    if i:
                        left[ngram].add(line[i - 1])
        for word in self.words:
            raw[(word,)] += 0
        self.adjusted = {
            ngram: count if len(ngram) == order or ngram[0] == "<s>" else len(left[ngram])
            for ngram, count in raw.items()
        }
        self.adjusted[("<s>",)] = 0
        self.kept = {
            ngram
            for ngram, count in raw.items()
            if not thresholds or count > thresholds[len(ngram) - 1] or ngram in {("<unk>",), ("<s>",), ("</s>",)}
        }
        self.uniform = Fraction(1, sum(len(ngram) == 1 for ngram in self.kept) - 1)
        self.order = order
        self.discounts = [self._discounts(k) for k in range(1, order + 1)]
        self.followers: dict[Ngram, list[Ngram]] = defaultdict(list)
        for ngram in self.adjusted:
            self.followers[ngram[:-1]].append(ngram)
        self.backoff = cache(self._backoff)
        self.total = cache(self._total)

    def _discounts(self, order: int) -> tuple[Fraction, ...]:
        n = [sum(len(g) == order and a == c for g, a in self.adjusted.items()) for c in range(5)]
        if not (n[1] and n[2] and n[3]):
            return FALLBACK
        y = Fraction(n[1], n[1] + 2 * n[2])
        values = tuple(c - (c + 1) * y * Fraction(n[c + 1], n[c]) for c in (1, 2, 3))
        return values if all(0 <= v <= c for c, v in enumerate(values, 1)) else FALLBACK

    def _discount(self, ngram: Ngram) -> Fraction:
        """Return the count that the n-gram gives to shorter contexts: all of it if the n-gram is pruned."""
        adjusted = self.adjusted[ngram]
        if ngram not in self.kept:
            return Fraction(adjusted)
        return self.discounts[len(ngram) - 1][min(adjusted, 3) - 1] if adjusted else Fraction(0)

    def _total(self, context: Ngram) -> int:
        return sum(self.adjusted[g] for g in self.followers.get(context, []))

    def _backoff(self, context: Ngram) -> Fraction:
        """Return gamma of a context; 1 if no word follows it."""
        followers = self.followers.get(context, [])
        total = self.total(context)
        return sum((self._discount(g) for g in followers), Fraction(0)) / total if total else Fraction(1)

    def probability(self, ngram: Ngram) -> Fraction:
        """Return p(last word | preceding words) for any n-gram of known words."""
        context = ngram[:-1]
        lower = self.probability(ngram[1:]) if context else self.uniform
        total = self.total(context)
        if not total:
            return lower
        share = Fraction(0)
        if ngram in self.adjusted:
            share = (self.adjusted[ngram] - self._discount(ngram)) / total
        return share + self.backoff(context) * lower
