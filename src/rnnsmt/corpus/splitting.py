"""Split of one bitext into training, dev and test text without similar sentences, and the similarity measure.

The index of similar sentences also finds test sentences and their near-duplicates in training text. Two sentences are
equal if their normalised words are: compatibility forms are composed (NFKC), letters are lower case, every digit is a
0, and punctuation is removed. Their similarity is the Jaccard index of their sets of word trigrams, |A & B| / |A | B|,
with markers at both ends, so a sentence of n words has n trigrams. It is computed exactly: an index of the trigrams of
one set of sentences is queried with every sentence of the other.

The three texts have no sentence in common, on either side. Dev and test pairs are drawn at random from those whose
source and target sentences occur in one pair only and that are not similar to each other. A training pair is discarded
if it is similar to a dev or test pair on either side. The bitext is read three times. The memory is 25 bytes per pair,
in addition to the dev and test text.
"""

import hashlib
import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from rnnsmt.base.errors import InputError
from rnnsmt.base.operations import Printed
from rnnsmt.base.progress import track
from rnnsmt.base.reading import read_lines
from rnnsmt.base.writing import atomic_binary
from rnnsmt.config.languages import yaml_code
from rnnsmt.corpus.bitext_files import RawCorpus
from rnnsmt.corpus.raw_text import BAD_UTF8, EMPTY, ENDLESS, Row
from rnnsmt.corpus.training_overlap import NEAR

_DIGIT = re.compile(r"\d")

UNSPACED = "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u3040-\u30ff\u3400-\u9fff"
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese, which have no spaces between words."""


@cache  # compiled at first use: it takes 30 ms, and most imports of this module by the workflow do not use it
def _word() -> re.Pattern[str]:
    """Return the pattern of a word: a run of letters, digits and marks, or one character of a script without spaces.

    Marks are combining marks, e.g. vowel signs of Hindi and accents, and the two zero-width joiners.
    """
    combining = (char for char in map(chr, range(0x300, 0x10000)) if unicodedata.category(char)[0] == "M")
    marks = "\u200c\u200d" + "".join(combining)
    return re.compile(f"[{UNSPACED}][{marks}]*|[^\\W_{UNSPACED}](?:[^\\W_{UNSPACED}]+|[{marks}]+)*")


Trigram = tuple[str, str, str]


def normalised_words(text: str) -> list[str]:
    """Return the normalised words of an untokenised sentence, for comparisons; the text itself if it has no words."""
    text = _DIGIT.sub("0", unicodedata.normalize("NFKC", text).lower())
    return _word().findall(text) or [text.strip()]


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
        """Set the minimum similarity of sentences that are found, greater than 0 and at most 1."""
        self._threshold = threshold
        self._places: defaultdict[Trigram, list[int]] = defaultdict(list)
        self._sizes: list[int] = []

    def add(self, words: Sequence[str]) -> None:
        """Add a sentence; sentences are numbered from 0."""
        grams = trigrams(words)
        for trigram in grams:
            self._places[trigram].append(len(self._sizes))
        self._sizes.append(len(grams))

    def similar(self, words: Sequence[str]) -> list[tuple[int, float]]:
        """Return the number and the similarity of every sentence that reaches the threshold."""
        grams = trigrams(words)
        known = [places for trigram in grams if (places := self._places.get(trigram))]
        if len(known) < self._threshold * len(grams):  # |A & B| >= t |A | B| >= t |A|
            return []
        shared: Counter[int] = Counter()
        for places in known:
            shared.update(places)
        scored = ((number, count / (len(grams) + self._sizes[number] - count)) for number, count in shared.items())
        return [(number, similarity) for number, similarity in scored if similarity >= self._threshold]


MIN_WORDS = 3
"""Minimum number of words of a dev or test sentence."""

MAX_WORDS = 80
"""Maximum number of words of a dev or test sentence, the default for training text in `rnnsmt corpus prepare`."""

MOST_DRAWN = 2000
"""Number of dev pairs, and of test pairs, unless it is given: of a corpus of at least 20,000 pairs."""

SPARE = 4
"""Number of pairs drawn for every required pair; the surplus replaces pairs that are similar to each other."""

PARTS = {"train": "bitext", "dev": "dev", "test": "test"}
"""Parts, and their roles in a configuration."""

FILES = {"train": "train.{}.gz", "dev": "dev.{}", "test": "test.{}"}
"""Names of the files of every part."""


@dataclass(frozen=True)
class SplitOptions:
    """Sizes of the parts and rules for pairs.

    Attributes:
        dev, test: number of pairs; None: ``MOST_DRAWN``, or a tenth of the pairs of a smaller corpus.
        similarity: minimum similarity of near-duplicates.
        unique: discard repeated training pairs.
    """

    dev: int | None
    test: int | None
    similarity: float
    unique: bool
    seed: int

    def sizes(self, pairs: int) -> tuple[int, int]:
        """Return the numbers of dev and test pairs for a corpus with this number of pairs that can be used."""
        default = min(MOST_DRAWN, max(1, pairs // 10))
        return default if self.dev is None else self.dev, default if self.test is None else self.test


@dataclass
class Split:
    """Result of a split.

    Attributes:
        sizes: number of pairs by part.
        unusable: pairs that are in no part, by reason.
        repeated: number of repeated training pairs that are discarded.
        near: training pairs that are discarded because they are similar to a dev or test pair, by similar side.
    """

    sizes: Counter[str] = field(default_factory=Counter)
    unusable: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    near: Counter[str] = field(default_factory=Counter)

    def report(self) -> dict[str, object]:
        """Return the numbers of pairs for JSON."""
        return {
            "pairs": {subset: self.sizes[subset] for subset in PARTS},
            "unusable": dict(sorted(self.unusable.items())),
            "repeated": self.repeated,
            "near_duplicates": {side: self.near[side] for side in ("source", "target", "both")},
        }


class SplitCorpus(Printed):
    """Result of a split: the entries ``languages`` and ``corpora`` of a configuration (lines), counts and texts.

    Attributes:
        langs: languages of source and target.
        counts: numbers of pairs.
        texts: source and target lines by part, if they were not written to files.
    """

    def __init__(self, langs: Sequence[str], counts: Split) -> None:
        entries = []
        for part, role in PARTS.items():
            source, target = (FILES[part].format(lang) for lang in langs)
            entries.append(f"  - {{name: {part}, role: {role}, source: {source}, target: {target}}}")
        codes = [yaml_code(lang) for lang in langs]
        discarded = {
            "near-duplicates of dev and test": counts.near.total(),
            "repeated": counts.repeated,
            **dict(sorted(counts.unusable.items())),
        }
        reasons = ", ".join(f"{reason}: {number:,}" for reason, number in discarded.items() if number)
        sizes = {part: f"{counts.sizes[part]:,} pairs" for part in PARTS}
        lines = [f"languages: {{source: {codes[0]}, target: {codes[1]}}}", "corpora:", *entries]
        super().__init__(lines, {**sizes, "discarded": reasons or "none"})
        self.langs, self.counts = langs, counts
        self.texts: dict[str, list[list[str]]] = {}

    def read_texts(self, directory: Path) -> None:
        """Read ``texts`` from the files of the parts."""
        self.texts = {
            part: [list(read_lines(directory / FILES[part].format(lang))) for lang in self.langs] for part in PARTS
        }


def split_bitext(corpus: RawCorpus, directory: Path, options: SplitOptions) -> Split:
    """Write the parts of a bitext to the files ``FILES`` of a directory."""
    split = Split()
    keys = _read_keys(corpus.rows(), split)
    sizes = options.sizes(int(keys.usable.sum()))
    drawn, excluded = _draw(keys, options, sum(sizes), split, str(corpus))
    numbers = set(drawn)
    rows = {number: row for number, row in enumerate(track(corpus.rows(), "drawing")) if number in numbers}
    indices = [SentenceIndex(options.similarity) for _ in corpus.langs]
    chosen = _choose({number: rows[number] for number in drawn}, indices, *sizes)
    if len(chosen) < sum(sizes):
        raise InputError(
            f"{corpus}: only {len(chosen):,} of the pairs drawn are not similar to each other, but {sizes[0]:,} dev "
            f"and {sizes[1]:,} test pairs are required; reduce --dev and --test, or increase --similarity"
        )
    directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        files = {
            subset: [
                stack.enter_context(atomic_binary(directory / FILES[subset].format(lang))) for lang in corpus.langs
            ]
            for subset in PARTS
        }
        for number, row in enumerate(track(corpus.rows(), "splitting")):
            subset = chosen.get(number, "train")
            if excluded[number] or (subset == "train" and _is_near(row, indices, split)):
                continue
            split.sizes[subset] += 1
            for file, side in zip(files[subset], row, strict=True):
                file.write((side or b"").removesuffix(b"\r") + b"\n")
        if not split.sizes["train"]:
            raise InputError(f"{corpus}: no pairs remain for training; reduce --dev and --test")
    return split


@dataclass(frozen=True)
class _Keys:
    """Result of the first pass over the bitext: arrays with one value per pair."""

    sentences: list[np.ndarray]
    """Keys of the normalised sentences of each side."""
    raw: np.ndarray
    """Keys of the pairs without normalisation."""
    usable: np.ndarray
    fitting: np.ndarray
    """Whether the pair is long enough and short enough for dev and test."""


def _read_keys(rows: Iterator[Row], split: Split) -> _Keys:
    """Read all pairs once."""
    sentences, raw = [array("Q"), array("Q")], array("Q")
    usable, fitting = bytearray(), bytearray()
    for row in track(rows, "reading"):
        texts = _decoded(row, split)
        words = [normalised_words(text) for text in texts] if texts else [[""], [""]]
        for keys, side in zip(sentences, words, strict=True):
            keys.append(sentence_key(side))
        both = b"\n".join(side or b"" for side in row)
        raw.append(int.from_bytes(hashlib.blake2b(both, digest_size=8).digest(), "little"))
        usable.append(texts is not None)
        fitting.append(texts is not None and all(MIN_WORDS <= len(side) <= MAX_WORDS for side in words))
    return _Keys(
        [np.frombuffer(keys, np.uint64) for keys in sentences],
        np.frombuffer(raw, np.uint64),
        np.frombuffer(usable, bool),
        np.frombuffer(fitting, bool),
    )


def _decoded(row: Row, split: Split) -> list[str] | None:
    """Return both sides of a pair as text, or None if it cannot be used; the reason is counted."""
    if row[0] is None or row[1] is None:
        reason = ENDLESS
    elif not row[0].strip() or not row[1].strip():
        reason = EMPTY
    else:
        try:
            return [side.decode("utf-8") for side in row if side is not None]
        except UnicodeDecodeError:
            reason = BAD_UTF8
    split.unusable[reason] += 1
    return None


def _draw(keys: _Keys, options: SplitOptions, needed: int, split: Split, name: str) -> tuple[list[int], np.ndarray]:
    """Return the 0-based numbers of pairs drawn for dev and test, in random order, and whether pairs are discarded."""
    usable = np.flatnonzero(keys.usable)
    single = keys.usable.copy()
    for side in keys.sentences:
        _, inverse, counts = np.unique(side[usable], return_inverse=True, return_counts=True)
        single[usable] &= counts[inverse] == 1
    excluded = ~keys.usable
    if options.unique:
        _, first_raw = np.unique(keys.raw, return_index=True)
        again = np.ones(len(keys.raw), bool)
        again[first_raw] = False
        split.repeated = int((again & ~excluded).sum())
        excluded = excluded | again
    candidates = np.flatnonzero(single & keys.fitting & ~excluded)
    if len(candidates) < needed:
        raise InputError(
            f"{name}: {len(candidates):,} of {len(keys.usable):,} pairs can be dev or test pairs (both sentences occur "
            f"once and have {MIN_WORDS} to {MAX_WORDS} words), but {needed:,} are required; reduce --dev and "
            "--test or, if the file has more than two columns, specify those of the text with --columns"
        )
    drawn = np.random.default_rng(options.seed).permutation(candidates)[: SPARE * needed]
    return drawn.tolist(), excluded


def _choose(drawn: dict[int, Row], indices: list[SentenceIndex], dev: int, test: int) -> dict[int, str]:
    """Return the part of every pair that is chosen for dev or test: those not similar to an earlier one."""
    chosen: dict[int, str] = {}
    for number, row in drawn.items():
        if len(chosen) == test + dev:
            break
        words = _words(row)
        if any(index.similar(side) for index, side in zip(indices, words, strict=True)):
            continue
        for index, side in zip(indices, words, strict=True):
            index.add(side)
        chosen[number] = "test" if len(chosen) < test else "dev"
    return chosen


def _words(row: Row) -> list[list[str]]:
    return [normalised_words((side or b"").decode("utf-8")) for side in row]


def _is_near(row: Row, indices: list[SentenceIndex], split: Split) -> bool:
    """Return whether a training pair is similar to a dev or test pair on either side; if so, count it."""
    near = [bool(index.similar(side)) for index, side in zip(indices, _words(row), strict=True)]
    if any(near):
        split.near["both" if all(near) else "source" if near[0] else "target"] += 1
    return any(near)
