"""Reader and writer of Moses' n-best lists: ``number ||| text ||| Name= value ... ||| score [||| segmentation]``."""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_lines, words_of
from rnnsmt.formats.ini import MosesIni

MOST_DIGITS = 20
"""Maximum number of characters of a sentence number."""


class Candidate(NamedTuple):
    """One line of an n-best list."""

    sentence: int
    text: str
    features: tuple[float, ...]
    score: float


Segment = tuple[int, int, int]
"""First source word, last source word, number of target words."""

_SEGMENT = re.compile(r"(\d+)(?:-(\d+))?=(?:(\d+)(?:-(\d+))?)?", re.ASCII)


SEGMENTATION_MARK = re.compile(r"(?<!\S)\|\d+-\d+(?:,wa=[^|]*)?\|(?!\S)", re.ASCII)
"""Source range that ``moses -t`` writes after every phrase of a translation (``|0-1|``), or more with ``-tt``."""


class NbestLists(NamedTuple):
    """N-best lists of all sentences of a text, in file order.

    An empty sentence, which has no line in the file, has an empty translation with all scores 0.

    Attributes:
        names: names of the F scores, e.g. ``LM0:0``, in the order of the ini.
        texts: the translations of each sentence.
        features: the scores of the n translations of each sentence, ``float64`` [n, F].
    """

    names: list[str]
    texts: list[list[str]]
    features: list[NDArray[np.float64]]


def fields_of(line: str, path: StrPath, number: int) -> list[str]:
    """Return the fields of a line, including the surrounding white space."""
    fields = line.split("|||")
    if len(fields) < 4 or not fields[0].strip().isdecimal() or len(fields[0]) > MOST_DIGITS:
        raise InputError(
            f"{path}, line {number}: expected `number ||| text ||| features ||| score`; is this an n-best list?"
        )
    return fields


def text_of(field: str) -> str:
    """Return the translation in the second field of a line, without segmentation marks such as ``|0-1|``."""
    return " ".join(words_of(SEGMENTATION_MARK.sub("", field) if "|" in field else field))


def _unsorted(path: StrPath, number: int, sentence: int, last: int) -> InputError:
    return InputError(
        f"{path}, line {number}: sentence {sentence} follows sentence {last}; sort the list by sentence number"
    )


def _check_sentence(sentence: int, sentences: int, where: StrPath) -> None:
    """Check that a text has enough lines for a sentence; ``where`` is the path or line of the list, for the error."""
    if sentence >= sentences:
        raise InputError(
            f"{where}: sentence {sentence} (0-based), but the source text has {sentences} lines; use the source text "
            "of this list"
        )


def lines_without(feature: str, path: StrPath, sentences: int | None) -> Iterator[tuple[int, list[str]]]:
    """Yield the sentence number and the fields of every line of a sorted list without a feature that will be added.

    Args:
        feature: name of the feature.
        sentences: number of lines of the source text, if known.
    """
    last = 0
    for number, line in enumerate(read_lines(path), 1):
        fields = fields_of(line, path, number)
        if f"{feature}=" in fields[2].split():
            raise InputError(f"{path}, line {number}: already has the feature {feature}; use the list without it")
        sentence = int(fields[0])
        if sentence < last:
            raise _unsorted(path, number, sentence, last)
        last = sentence
        if sentences is not None:
            _check_sentence(sentence, sentences, f"{path}, line {number}")
        yield sentence, fields


def read_nbest(path: StrPath) -> tuple[list[str], Iterator[Candidate]]:
    """Read an n-best list.

    Returns:
        The names of the scores (``Name0:0``, ``Name0:1`` etc.) in file order, and an iterator over the candidates.
    """
    lines = enumerate(read_lines(path), 1)
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path}: the n-best list is empty")
    names, labels, size = _names(fields_of(first[1], path, 1)[2])
    places = list(labels)

    def candidates() -> Iterator[Candidate]:
        last = 0
        for number, line in chain([first], lines):
            fields = fields_of(line, path, number)
            words = fields[2].split()
            if len(words) != size or {place: words[place] for place in places} != labels:
                raise InputError(
                    f"{path}, line {number}: the features differ from those in line 1; create the list with a "
                    "single model"
                )
            for place in reversed(places):
                del words[place]
            try:
                values, score = tuple(map(float, words)), float(fields[3])
            except ValueError as error:
                raise InputError(f"{path}, line {number}: {error}; is it an n-best list?") from None
            if not all(map(math.isfinite, values)):
                raise InputError(
                    f"{path}, line {number}: contains a feature value that is not finite; create the list again"
                )
            sentence = int(fields[0])
            if sentence < last:
                raise _unsorted(path, number, sentence, last)
            last = sentence
            yield Candidate(sentence, text_of(fields[1]), values, score)

    return names, candidates()


def _names(features: str) -> tuple[list[str], dict[int, str], int]:
    """Parse the field with the features of a line.

    Returns:
        The names of the scores (``Name0:0``), the words of the form ``Name0=`` by their position, and the number of
        words.
    """
    names: list[str] = []
    labels: dict[int, str] = {}
    name, place = "", 0
    words = features.split()
    for index, word in enumerate(words):
        if word.endswith("="):
            labels[index] = word
            name, place = word[:-1], 0
        else:
            names.append(f"{name}:{place}")
            place += 1
    return names, labels, len(words)


def nbest_lines(
    number: int,
    names: Sequence[str],
    texts: Sequence[str],
    features: NDArray[np.float64],
    scores: NDArray[np.float64],
    segmentations: Sequence[Sequence[Segment]],
) -> Iterator[str]:
    """Yield the n-best list of one sentence as lines.

    Args:
        number: 0-based index of the sentence.
        names: names of the F scores, e.g. ``LM0:0``; the scores of a feature function are contiguous.
        texts: the n translations.
        features: [n, F], scores of each translation.
        scores: [n], total score of each translation.
        segmentations: phrases of each translation.
    """
    groups: list[tuple[str, int, int]] = []  # name, first column and end of each feature function
    for at, name in enumerate(each.rsplit(":", 1)[0] for each in names):
        first = groups.pop()[1] if groups and groups[-1][0] == name else at
        groups.append((name, first, at + 1))
    for text, row, score, phrases in zip(texts, features, scores, segmentations, strict=True):
        values = row.tolist()
        parts = [f"{name}= " + " ".join(f"{v:g}" for v in values[a:b]) for name, a, b in groups]
        yield f"{number} ||| {text}  ||| {' '.join(parts)} ||| {score:g} ||| {segmentation(phrases)}"


def segmentation(phrases: Sequence[Segment]) -> str:
    """Format a segmentation like Moses, as ``source range=target range``: ``0-1=0 2=1-2``."""
    parts, position = [], 0
    for first, last, size in phrases:
        target = ""
        if size > 0:
            target = f"{position}" if size == 1 else f"{position}-{position + size - 1}"
        parts.append((f"{first}" if first == last else f"{first}-{last}") + "=" + target)
        position += size
    return " ".join(parts)


def read_segmentation(text: str) -> list[Segment]:
    """Parse a segmentation in Moses' format; return its phrases in the order of the translation.

    Raises:
        ValueError: the text is not a segmentation, or a target range does not follow the previous one.
    """
    segments: list[Segment] = []
    position = 0
    for segment in text.split():
        ranges = _SEGMENT.fullmatch(segment)
        if ranges is None:
            raise ValueError(f"'{segment}' is not of the form 2-5=2-8 (source words=target words)")
        first, last, begin, end = (int(number or -1) for number in ranges.groups())
        if 0 <= last < first:
            raise ValueError(f"'{segment}': the source range ends before it begins")
        last = max(first, last)
        size = 0 if begin < 0 else max(begin, end) - begin + 1
        if 0 <= end < begin or (size and begin != position):
            raise ValueError(f"'{segment}': the target range does not follow the previous one")
        segments.append((first, last, size))
        position += size
    return segments


def with_feature(fields: Sequence[str], name: str, value: float) -> str:
    """Return the line with these fields and a further feature after all others, with six decimals."""
    features = f" {' '.join(fields[2].split())} {name}= {value:.6f} "
    return "|||".join([*fields[:2], features, *fields[3:]])


def phrase_pairs(source: str, target: str, segmentation: Sequence[Segment]) -> list[tuple[str, str]]:
    """Return the phrase pairs of a translation as text, in the order of the translation.

    >>> phrase_pairs("a b c", "x y", [(1, 2, 2), (0, 0, 0)])
    [('b c', 'x y'), ('a', '')]
    """
    words, produced = words_of(source), words_of(target)
    pairs, at = [], 0
    for first, last, length in segmentation:
        pairs.append((" ".join(words[first : last + 1]), " ".join(produced[at : at + length])))
        at += length
    return pairs


def read_details(path: StrPath, source: Sequence[str]) -> list[tuple[str, list[Segment]]]:
    """Read the first translation of every sentence and its phrases from n-best lists with segmentations.

    Args:
        source: the source text.
    """
    details: dict[int, tuple[str, list[Segment]]] = {}
    for number, line in enumerate(read_lines(path), 1):
        fields = fields_of(line, path, number)
        sentence, text = int(fields[0]), text_of(fields[1])
        _check_sentence(sentence, len(source), path)
        if sentence in details:
            continue
        try:
            phrases = read_segmentation(fields[4] if len(fields) > 4 else "")
        except ValueError as error:
            raise InputError(
                f"{path}, line {number}: {error}; create it with `search decode --output-details`"
            ) from None
        words = len(words_of(source[sentence]))
        inside = all(last < words for _, last, _ in phrases)
        covered = sorted(index for first, last, _ in phrases for index in range(first, last + 1)) if inside else []
        if covered != list(range(words)) or sum(n for *_, n in phrases) != len(words_of(text)):
            raise InputError(
                f"{path}, line {number}: the phrases do not match the sentence; use the file that was written for "
                "this text"
            )
        details[sentence] = text, phrases
    _check_complete([number for number, text in enumerate(source) if words_of(text) and number not in details], path)
    return [details.get(number, ("", [])) for number in range(len(source))]


def read_lists(path: StrPath, ini: MosesIni, source: Sequence[str]) -> NbestLists:
    """Read the n-best lists of the sentences of a text, with the scores that have tuned weights in the ini.

    Fixed scores do not occur in n-best lists, whether written by Moses or by rnnsmt; the tuned scores of a feature are
    numbered from 0 in a list.
    """
    ini.check_weight_sections()
    in_file, candidates = read_nbest(path)
    fixed = ini.fixed_scores()
    names: list[str] = []
    listed: list[str] = []
    for name, values in ini.weights.items():
        tuned = [score for index in range(len(values)) if (score := f"{name}:{index}") not in fixed]
        names += tuned
        listed += [f"{name}:{index}" for index in range(len(tuned))]
    if sorted(listed) != sorted(in_file):
        lacks, more = (", ".join(sorted(a - b)) for a, b in ((set(listed), set(in_file)), (set(in_file), set(listed))))
        parts = [f"lacks {lacks} of {ini.path}"] if lacks else []
        parts += [f"has {more}, which {ini.path} lacks"] if more else []
        raise InputError(
            f"{path}: {' and '.join(parts) or 'contains a duplicate feature'}; use the ini with these features"
        )
    order = [in_file.index(name) for name in listed]
    texts: list[list[str]] = [[] for _ in source]
    rows: list[list[tuple[float, ...]]] = [[] for _ in source]
    for candidate in candidates:
        _check_sentence(candidate.sentence, len(source), path)
        texts[candidate.sentence].append(candidate.text)
        rows[candidate.sentence].append(candidate.features)
    _check_complete([number for number, text in enumerate(source) if words_of(text) and not texts[number]], path)
    features = [np.array(values or [(0.0,) * len(names)])[:, order] for values in rows]
    return NbestLists(names, [translations or [""] for translations in texts], features)


def _check_complete(lacking: Sequence[int], path: StrPath) -> None:
    """Check that there are no sentences without a translation; ``lacking`` contains their 0-based numbers."""
    if lacking:
        more = f" and of {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise InputError(
            f"{path}: has no translation of sentence {lacking[0]} (0-based){more}; create the list for the whole text"
        )
