"""Overlap of dev and test sets with the training text: known sentences, and the share of known n-grams."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

OVERLAP_ORDER = 4
"""Maximum length of the n-grams whose share in the training text is reported."""

NEAR = 0.5
"""Minimum similarity of near-duplicates: replacing one of 12 words gives 0.6, replacing two gives 0.33 to 0.5."""

MAX_KNOWN = 0.02
"""Maximum share of sentences of a dev or test set that are also, or nearly, in the training text, without a warning."""


class KnownSentences(dict[str, dict[str, int]]):
    """Number of sentences of every set (``sentences``), and of those that occur in a training text (``known``)."""

    @property
    def figures(self) -> dict[str, str]:
        """Return the figures for the last line of the log."""
        return {name: f"{counts['known']:,} of {counts['sentences']:,} known" for name, counts in self.items()}


def known_sentences(training: Iterable[str], sets: Mapping[str, Iterable[str]]) -> KnownSentences:
    """Return the number of sentences of every set, and of those that also occur in a training text, by set.

    Sentences are lines that are not empty, compared without white space at both ends. The training text is a stream.
    """
    of_set = {name: Counter(filter(None, map(str.strip, lines))) for name, lines in sets.items()}
    found = set().union(*of_set.values()).intersection(map(str.strip, training))
    return KnownSentences(
        (name, {"sentences": lines.total(), "known": sum(count for line, count in lines.items() if line in found)})
        for name, lines in of_set.items()
    )


def known_warnings(overlap: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield a warning for every set with many sentences that also occur in the training text (``known_sentences``)."""
    for name, counts in overlap.items():
        if counts["known"] > MAX_KNOWN * counts["sentences"]:
            yield (
                f"{name}: {counts['known']:,} of {counts['sentences']:,} source sentences also occur in the training "
                "text, which makes scores too high; remove them from one of the texts"
            )


class NgramOverlap:
    """Share of the n-grams of sentences, n = 1 to 4, that occur in a training text.

    The sentences are added first, so the training text can be a stream.
    """

    def __init__(self) -> None:
        self._occurs: dict[tuple[str, ...], bool] = {}

    def add(self, words: Sequence[str]) -> None:
        """Add a sentence whose overlap will be computed."""
        for n in range(1, OVERLAP_ORDER + 1):
            for ngram in _ngrams(words, n):
                self._occurs[ngram] = False

    def read_training(self, words: Sequence[str]) -> None:
        """Record the n-grams of a sentence of the training text."""
        for n in range(1, OVERLAP_ORDER + 1):
            known = False
            for ngram in _ngrams(words, n):
                if ngram in self._occurs:
                    self._occurs[ngram] = known = True
            # if no n-gram of the sentence occurs in the added sentences, no longer one does
            if not known:
                return

    def of(self, words: Sequence[str]) -> float:
        """Return the overlap of a sentence that was added: the mean over n of the shares; 0 if it has no words."""
        shares = [
            sum(self._occurs[ngram] for ngram in _ngrams(words, n)) / (len(words) - n + 1)
            for n in range(1, min(OVERLAP_ORDER, len(words)) + 1)
        ]
        return sum(shares) / max(len(shares), 1)


def _ngrams(words: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """Yield the n-grams of a sentence, with repetitions."""
    return zip(*(words[first:] for first in range(n)), strict=False)
