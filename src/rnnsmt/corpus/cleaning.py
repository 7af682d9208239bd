"""Cleaning of one raw line: it is repaired, rejected, or processed into tokens.

Control characters would break lines and fields of all later files and are repaired with any options: a tab, a line
separator (U+0085, U+2028, U+2029) and any other white space become one space. Letters and accents that are stored as
two characters are composed (Unicode's normal form C), since the tokeniser would separate them. Repaired and rejected
lines are counted by reason.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

BAD_UTF8 = "not UTF-8"
CONTROL = "control character"
DECOMPOSED = "decomposed character"
SEPARATOR = "|||"
EMPTY = "empty"
TOO_SHORT = "too short"
TOO_LONG = "too long"
ENDLESS = "endless line"
RATIO = "length ratio"

_BREAKS = re.compile("[\t\n\r\v\f\x1c-\x1f\x85\u2028\u2029]")
"""Characters that are replaced by a space."""
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Control characters that are removed."""
_SUSPECT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Any character of ``_BREAKS`` or ``_CONTROLS``, for a fast test."""


def is_utf8(raw: bytes) -> bool:
    """Return whether bytes are valid UTF-8."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class RejectedLineError(Exception):
    """The line cannot be kept; the argument is the reason."""


@dataclass(frozen=True)
class CleaningOptions:
    """Options for processing and selecting lines.

    Attributes:
        normalize: apply Moses' punctuation normalisation.
        tokenize: apply Moses' tokeniser.
        escape: write the tokeniser's entities for ``& | < > ' " [ ]``.
        lowercase: convert to lower case at the end.
        min_length, max_length: number of tokens on each side.
        max_ratio: maximum ratio of the longer side's length to that of the shorter side.
        keep_all: keep every line, repaired if necessary, as for test sets.
    """

    normalize: bool = True
    tokenize: bool = True
    escape: bool = True
    lowercase: bool = False
    min_length: int = 1
    max_length: int = 80
    max_ratio: float = 9.0
    keep_all: bool = False


Step = Callable[[str], str]


class Cleaner:
    """Conversion of raw lines of one language into lines of tokens."""

    def __init__(self, lang: str, options: CleaningOptions) -> None:
        self.options = options
        self._steps: list[Step] = []
        if options.normalize or options.tokenize:
            from rnnsmt.corpus.tokenizer import Normalizer, Tokenizer

            if options.normalize:
                self._steps.append(Normalizer(lang))
            if options.tokenize:
                self._steps.append(Tokenizer(lang, options.escape))

    def __call__(self, raw: bytes | None, repaired: set[str]) -> str:
        """Return the tokens of a raw line, separated by one space.

        Args:
            raw: the line; None for a line that was too long to read.
            repaired: the reasons of repairs are added to it.

        Raises:
            RejectedLineError: the line cannot be kept; never raised with ``keep_all`` unless ``raw`` is None.
        """
        text = self._decode(raw, repaired)
        # tokenisation rarely reduces the number of tokens: skip it for lines that will be rejected as too long
        if not self.options.keep_all and text.count(" ") > 4 * self.options.max_length + 100:
            raise RejectedLineError(TOO_LONG)
        if SEPARATOR in text:
            repaired.add(SEPARATOR)
        for step in self._steps:
            text = step(text)
        text = " ".join(text.split())
        if SEPARATOR in text:
            if not self.options.keep_all:
                raise RejectedLineError(SEPARATOR)
            text = " ".join(text.replace("|", " | ").split())
        return text.lower() if self.options.lowercase else text

    def _decode(self, raw: bytes | None, repaired: set[str]) -> str:
        """Decode a raw line, and repair control characters and decomposed ones."""
        if raw is None:
            raise RejectedLineError(ENDLESS)
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            if not self.options.keep_all:
                raise RejectedLineError(BAD_UTF8) from None
            repaired.add(BAD_UTF8)
            text = raw.decode("utf-8", "replace")
        text = text.removesuffix("\r").removeprefix("\ufeff")
        if _SUSPECT.search(text):
            repaired.add(CONTROL)
            text = _CONTROLS.sub("", _BREAKS.sub(" ", text))
        if not unicodedata.is_normalized("NFC", text):
            repaired.add(DECOMPOSED)
            text = unicodedata.normalize("NFC", text)
        return text

    def check_length(self, length: int) -> None:
        """Check the number of tokens of one side.

        Raises:
            RejectedLineError: the side is empty, too short or too long.
        """
        if self.options.keep_all:
            return
        if length == 0:
            raise RejectedLineError(EMPTY)
        if length < self.options.min_length:
            raise RejectedLineError(TOO_SHORT)
        if length > self.options.max_length:
            raise RejectedLineError(TOO_LONG)
