"""Source sentences: reading and checking them, words as strings and bytes, detection of raw text, and XML.

XML is parsed as in Moses with ``[xml-input]``. ``das ist <n translation="a cute place||a house" prob="0.8||0.2">ein
haus</n> .`` offers two translations of two words. ``<wall/>`` restricts reordering: a phrase must not begin to the
right of the first untranslated word and extend past a wall before all words up to the wall are translated.
"""

import math
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rnnsmt.base.io import InputError, read_lines_or_stdin, words_of
from rnnsmt.search.options import MAX_WINDOW

MAX_WORDS = 4000
"""Maximum number of words in a line. Longer lines are not sentences; their search would need gigabytes of memory."""


UNKNOWN_SHARE = 0.1
"""Minimum share of unknown words for ``raw_text_warning``."""

_RAW = re.compile(r"\w[.,;:!?\"»”)\]]+$|^[\"«“(\[]+\w")


def read_sentences(path: str | Path) -> list[str]:
    """Read the lines of a tokenised text; ``-`` is standard input.

    Raises:
        InputError: a line is not UTF-8, contains a control character, or contains ``|||``, Moses' field separator; or
            it has more than ``MAX_WORDS`` words.
    """
    sentences = []
    for number, line in enumerate(read_lines_or_stdin(path), 1):
        if "|||" in line:
            raise InputError(f"{path}, line {number}: contains |||, the field separator of Moses; escape it")
        for character in line:
            if character < " " or "\x7f" <= character <= "\x9f":
                raise InputError(
                    f"{path}, line {number}: control character U+{ord(character):04X}; "
                    "clean the text with `rnnsmt corpus prepare --keep-all` first"
                )
        sentences.append(line)
    check_lengths(sentences, path)
    return sentences


def check_lengths(sentences: list[str], path: str | Path = "the input") -> None:
    """Check that no sentence has more than ``MAX_WORDS`` words.

    Args:
        path: name of the text in the error message.

    Raises:
        InputError: a sentence is too long.
    """
    for number, sentence in enumerate(sentences, 1):
        # n words with blanks between them are at least 2 n - 1 characters: most lines need not be split
        if len(sentence) > 2 * MAX_WORDS and len(words_of(sentence)) > MAX_WORDS:
            raise InputError(f"{path}, line {number}: more than {MAX_WORDS} words in one sentence; split it")


def raw_text_warning(sentences: list[str], unknown: Collection[str]) -> str | None:
    """Return a warning if many words of a text are unknown and look like raw text, None otherwise.

    A word looks raw if it begins with a capital letter, or if punctuation precedes or follows its letters.

    Args:
        unknown: words that the model has no translation for.
    """
    unknown = set(unknown)
    words = [word for sentence in sentences for word in words_of(sentence)]
    missing = [word for word in words if word in unknown]
    raw = [word for word in missing if _RAW.search(word) or word[0].isupper()]
    if len(missing) < UNKNOWN_SHARE * len(words) or 2 * len(raw) < len(missing) or not raw:
        return None
    return (
        f"warning: {100 * len(missing) / len(words):.0f} % of the words are unknown, {raw[0]} for example; "
        "is the input tokenised and truecased as the training text was?"
    )


def sentence_bytes(words: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return words as bytes with single spaces between, and for each word its first byte and its end (``int64``)."""
    encoded = [word.encode("utf-8") for word in words]
    lengths = np.array([len(word) for word in encoded], np.int64)
    ends = np.cumsum(lengths + 1) - 1
    return np.frombuffer(b" ".join(encoded) or b" ", np.uint8), ends - lengths, ends


LOG_FLOOR = -100.0
"""Lower bound of logarithmic scores, as in Moses."""

_TAG = re.compile(r"<([^<>]*)>")
_ATTRIBUTE = re.compile(r'(?<![\w-])([\w-]++)="((?:[^"\\]|\\.)*)"')  # lookbehind and possessive: linear time
_PUNCTUATION = frozenset(',.!?:;"')
_ELSEWHERE = ("zone", "ne", "update", "weight-overwrite", "coord")
"""Tags that Moses interprets and this decoder does not support."""


class GivenTranslation(NamedTuple):
    """Translation of the source words ``first`` to ``last``; ``score`` is its natural-log probability."""

    first: int
    last: int
    target: str
    score: float


class MarkedSentence(NamedTuple):
    """Tokenised sentence, translations given in its XML, and indices of the words that are followed by a wall."""

    text: str
    translations: list[GivenTranslation]
    walls: set[int]


def read_marks(sentence: str, number: int) -> MarkedSentence:
    """Separate the text of a sentence from its XML.

    Args:
        number: line number of the sentence, for error messages.

    Raises:
        InputError: unbalanced tags, attributes that cannot be parsed, a translation with an invalid span or with more
            than ``MAX_WINDOW`` source words, or a tag of Moses that is not supported.
    """
    where = f"the input, line {number}"
    words: list[str] = []
    opened: list[tuple[str, int, dict[str, str]]] = []
    translations: list[GivenTranslation] = []
    walls: set[int] = set()
    for text, tag in _parts(sentence):
        words += words_of(text)
        if tag is None:
            continue
        name, attributes = _name_and_attributes(tag, where)
        if not tag.startswith("/"):
            opened.append((name, len(words), attributes))
        if tag.startswith("/") or tag.endswith("/"):
            if not opened or opened[-1][0] != name:
                raise InputError(f"{where}: </{name}> has no opening tag; correct the XML")
            _, first, attributes = opened.pop()
            first, end = _span(attributes.get("span"), first, len(words), where)
            if name == "wall":
                walls.update(range(max(first - 1, 0), min(end, MAX_WORDS)))
            else:
                translations += _given(attributes, first, end, where)
    if opened:
        raise InputError(f"{where}: <{opened[-1][0]}> is not closed; correct the XML, or escape < as &lt;")
    for entry in translations:
        if not entry.first <= entry.last < min(len(words), entry.first + MAX_WINDOW):
            raise InputError(
                f"{where}: the span {entry.first}-{entry.last} of a translation is invalid: it must lie within the "
                f"{len(words)} words of the sentence (positions are 0-based), from left to right, and cover at most "
                f"{MAX_WINDOW} words"
            )
    return MarkedSentence(" ".join(words), translations, walls)


def _parts(sentence: str) -> Iterator[tuple[str, str | None]]:
    """Yield pieces of text with the content of the tag that follows each; None after the last piece."""
    pieces = _TAG.split(sentence)
    yield from zip(pieces[::2], [*(piece.strip() for piece in pieces[1::2]), None], strict=True)


def _name_and_attributes(tag: str, where: str) -> tuple[str, dict[str, str]]:
    inside = tag.strip("/").strip()
    name, _, rest = inside.partition(" ")
    if not name:
        raise InputError(f"{where}: tag without a name; correct the XML, or escape < as &lt;")
    if name in _ELSEWHERE:
        raise InputError(f"{where}: <{name}> is not supported; the supported tags are translations and <wall/>")
    if _ATTRIBUTE.sub("", rest).strip():
        raise InputError(f'{where}: attributes of <{name}> that are not of the form name="value": {rest[:60]}')
    return name, dict(_ATTRIBUTE.findall(rest))


def _span(text: str | None, first: int, end: int, where: str) -> tuple[int, int]:
    """Return first word and end of a range of words: those of the attribute ``span`` if given, else the defaults."""
    if text is None:
        return first, end
    match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", text)
    if match is None:
        raise InputError(f'{where}: span="{text[:30]}" is not of the form 2-4')
    return int(match[1]), int(match[2] or match[1]) + 1


def _given(attributes: dict[str, str], first: int, end: int, where: str) -> list[GivenTranslation]:
    text = attributes.get("translation", attributes.get("english"))  # english: former name of the attribute in Moses
    if text is None:
        return []
    if first == end:
        raise InputError(f'{where}: translation="{text[:30]}" covers no word; put the tag around words, or add span=')
    targets, probabilities = text.split("||"), attributes.get("prob", "").split("||")
    if probabilities == [""]:
        probabilities = ["1"] * len(targets)
    if len(probabilities) != len(targets):
        raise InputError(f"{where}: {len(targets)} translations but {len(probabilities)} probabilities")
    translations = []
    for target, text in zip(targets, probabilities, strict=True):
        try:
            probability = float(text)
        except ValueError:
            probability = math.nan
        if not 0.0 <= probability < math.inf:
            raise InputError(f'{where}: prob="{text[:30]}" is not a probability')
        score = max(math.log(probability), LOG_FLOOR) if probability > 0 else LOG_FLOOR
        translations.append(GivenTranslation(first, end - 1, " ".join(words_of(target)), score))
    return translations


def walls_at_punctuation(sentence: str) -> set[int]:
    """Return the walls of Moses' ``monotone-at-punctuation``: before and after punctuation inside the sentence."""
    words = words_of(sentence)
    places = [index for index, word in enumerate(words) if word in _PUNCTUATION]
    return {index for index in places if 0 < index < len(words) - 1} | {index - 1 for index in places if index > 1}


def walls_before(walls: set[int], words: int) -> np.ndarray:
    """Return the number of walls to the left of each word, ``int32`` [words + 1]; an empty array if there are none."""
    if not walls:
        return np.zeros(0, np.int32)
    follows_wall = np.zeros(words + 1, np.int32)
    follows_wall[[index + 1 for index in walls if index < words]] = 1
    return np.cumsum(follows_wall, dtype=np.int32)
