"""Formats of files that contain the source and the target text of a corpus."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from io import BufferedReader

from rnnsmt.corpus.raw_text import Row

Pair = tuple[str, str]
"""Source and target segment."""


class CorpusFormat(ABC):
    """A format of files with both sides of a corpus; ``rnnsmt.registries.CORPUS_FORMATS`` lists the formats.

    A file is a stream of bytes, decompressed if it was compressed; only a file that was not, and that is no member of a
    zip archive, can be read in another order. Files that expand too much, and segments that are too long, are refused
    by the callers.

    Attributes:
        suffixes: suffixes of the names of files, in lower case: ``(".tmx",)``. The only file with one of them in a zip
            archive is the corpus.
        has_columns: whether the columns of source and target can be selected.
        is_text: whether files are UTF-8 text with lines, so that other ones are refused with a remedy.
    """

    suffixes: Sequence[str] = ()
    has_columns: bool = False
    is_text: bool = False

    def recognises(self, start: bytes, name: str) -> bool:
        """Return whether a file has this format, for formats of this package, which are asked in their order.

        Args:
            start: its first bytes.
            name: its name in messages.
        """
        return False

    @abstractmethod
    def rows(
        self, stream: BufferedReader, name: str, langs: Sequence[str], columns: Sequence[int]
    ) -> Iterator[Row | Pair]:
        """Yield pairs of source and target segment.

        Args:
            stream: the file.
            name: its name in messages.
            langs: codes of the source and target language, of two letters if there is one.
            columns: columns of source and target, 1-based.

        Raises:
            InputError: the file is malformed; the message has its name, the line and a remedy.
        """

    def languages(self, stream: BufferedReader, name: str) -> tuple[str, str] | None:
        """Return the languages of source and target that a file specifies; None if it does not."""
        return None
