"""Similarity of sentences, to find test sentences and their near-duplicates in training text.

Two sentences are equal if their normalised words are: compatibility forms are composed (NFKC), letters are lower case,
every digit is a 0, and punctuation is left out. Their similarity is the Jaccard index of their sets of word trigrams,
|A & B| / |A | B|, with markers at both ends, so that a sentence of n words has n trigrams. It is exact: an index of the
trigrams of one set of sentences is queried with every sentence of the other.
"""

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence

NEAR = 0.5
"""Similarity from which a sentence is a near-duplicate: a word of 12 exchanged gives 0.6, two of them 0.33 to 0.5."""

_DIGIT = re.compile(r"\d")

_WORD = re.compile("[\u3040-\u30ff\u3400-\u9fff]|[^\\W_\u3040-\u30ff\u3400-\u9fff]+")
"""A run of letters and digits, or one character of Chinese or Japanese, which has no spaces between words."""

Trigram = tuple[str, str, str]


def normalised_words(text: str) -> list[str]:
    """Return the words of a sentence that is not tokenised, for comparisons; without any, the text itself."""
    text = _DIGIT.sub("0", unicodedata.normalize("NFKC", text).lower())
    return _WORD.findall(text) or [text.strip()]


def sentence_key(words: Sequence[str]) -> int:
    """Return a 64-bit hash of the normalised words of a sentence."""
    return int.from_bytes(hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=8).digest(), "little")


def trigrams(words: Sequence[str]) -> set[Trigram]:
    """Return the word trigrams of a sentence, with a marker at each end."""
    padded = ["", *words, ""]
    return set(zip(padded, padded[1:], padded[2:], strict=False))


class SentenceIndex:
    """Sentences that can be searched for similar ones."""

    def __init__(self, threshold: float = NEAR) -> None:
        """Set the similarity from which sentences are found, above 0 and up to 1."""
        self._threshold = threshold
        self._places: defaultdict[Trigram, list[int]] = defaultdict(list)
        self._sizes: list[int] = []

    def __len__(self) -> int:
        return len(self._sizes)

    def add(self, words: Sequence[str]) -> None:
        """Add a sentence; its number is the number of those before it."""
        found = trigrams(words)
        for trigram in found:
            self._places[trigram].append(len(self._sizes))
        self._sizes.append(len(found))

    def similar(self, words: Sequence[str]) -> list[tuple[int, float]]:
        """Return the number and the similarity of every sentence that reaches the threshold."""
        asked = trigrams(words)
        known = [places for trigram in asked if (places := self._places.get(trigram))]
        if len(known) < self._threshold * len(asked):  # |A & B| >= t |A | B| >= t |A|
            return []
        shared: Counter[int] = Counter()
        for places in known:
            shared.update(places)
        scored = ((number, count / (len(asked) + self._sizes[number] - count)) for number, count in shared.items())
        return [(number, similarity) for number, similarity in scored if similarity >= self._threshold]
