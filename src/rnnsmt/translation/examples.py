"""Examples of raw text, for the page of a server."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from os import PathLike

from rnnsmt.base.arguments import Text, sentences
from rnnsmt.corpus.raw_text import read_segments

EXAMPLES, MAX_EXAMPLE = 4, 150
"""Number of examples of a system, and their maximum length in characters."""


def segments(text: Text) -> Iterator[str]:
    """Yield the segments of a raw text that are valid UTF-8; corpus preparation reports the others."""
    if not isinstance(text, (str, PathLike)):
        yield from sentences("examples", text)
        return
    for segment in read_segments(text, None):
        with suppress(UnicodeDecodeError):
            yield (segment or b"").decode("utf-8").strip()


def choose_examples(texts: Iterable[str]) -> list[str]:
    """Return ``EXAMPLES`` segments of usual length, or fewer, evenly spread over a text."""
    usual = [text for text in dict.fromkeys(texts) if 5 <= text.count(" ") + 1 <= 15 and len(text) <= MAX_EXAMPLE]
    return [usual[index * len(usual) // EXAMPLES] for index in range(min(EXAMPLES, len(usual)))]
