"""Reading of a table with columns separated by tabs (TSV).

A first line with the languages or with ``source`` and ``target`` is the header of the table.
"""

import re
from collections.abc import Iterator, Sequence
from io import BufferedReader
from itertools import permutations

from rnnsmt.base.errors import InputError
from rnnsmt.base.progress import say, warn
from rnnsmt.base.reading import byte_lines
from rnnsmt.config.languages import language_name, two_letters
from rnnsmt.corpus.corpus_format import CorpusFormat
from rnnsmt.corpus.raw_text import Row

_HEADINGS = (
    {"source", "src", "original", "input", "sentence1", "sentence_1", "sentence_a", "text1", "text_1", "text_a"},
    {
        "target",
        "tgt",
        "trg",
        "translation",
        "output",
        "sentence2",
        "sentence_2",
        "sentence_b",
        "text2",
        "text_2",
        "text_b",
    },
)
"""Names of the columns of source and target in a header, in addition to the languages."""

_OF_TEXT = {"", "text", "sentence", "segment", "lang", "language"}
"""Parts of these names."""


def _are_headings(cells: Sequence[bytes], langs: Sequence[str]) -> bool:
    """Return whether cells are the names of the columns of these languages."""
    names = [cell.decode("utf-8", "replace").strip('" #') for cell in cells]
    parts = [[part for part in re.split(r"[\W_]+", name.lower()) if part not in _OF_TEXT] for name in names]
    names = [left[0] if len(left) == 1 and len(left[0]) > 1 else n for n, left in zip(names, parts, strict=True)]
    if all(name.lower() in headings for name, headings in zip(names, _HEADINGS, strict=True)):
        return True
    return all(
        two_letters(name) == lang or name.lower() in (lang, language_name(lang).lower())
        for name, lang in zip(names, langs, strict=True)
    )


def _other_columns(cells: Sequence[bytes], langs: Sequence[str]) -> str:
    """Return the numbers of the columns that a header names for these languages; empty if it names none."""
    pairs = permutations(range(len(cells[:20])), 2)
    return next((f"{i + 1} {j + 1}" for i, j in pairs if _are_headings((cells[i], cells[j]), langs)), "")


class Tsv(CorpusFormat):
    """Tables in UTF-8 with one pair per line: every text that is no other format."""

    suffixes = (".tsv",)
    has_columns = True
    is_text = True

    def recognises(self, start: bytes, name: str) -> bool:
        """Return True."""
        return True

    def rows(self, stream: BufferedReader, name: str, langs: Sequence[str], columns: Sequence[int]) -> Iterator[Row]:
        """Yield two columns of a table without its header; missing columns are empty."""
        needed, lacking, first = max(columns), 0, 0
        number = 0
        for number, line in enumerate(byte_lines(stream, name), 1):
            cells = line.removesuffix(b"\r").split(b"\t")
            if len(cells) < needed:
                lacking, first = lacking + 1, first or number
                if number <= 100 and lacking >= 10 and 2 * lacking > number:
                    raise _no_table(name, lacking, number, needed)
                cells += [b""] * (needed - len(cells))
            if number == 1:
                cells = [cell.removeprefix(b"\xef\xbb\xbf") for cell in cells]
            row = cells[columns[0] - 1], cells[columns[1] - 1]
            if number == 1 and _are_headings(row, langs):
                say(f"{name}: line 1 is a header and is not used")
                continue
            if number == 1 and _are_headings(row[::-1], langs):
                raise InputError(
                    f"{name}: the header names the columns in the other order; exchange the languages, or select the "
                    f"columns with --columns {columns[1]} {columns[0]}"
                )
            if number == 1 and (others := _other_columns(cells, langs)):
                raise InputError(f"{name}: the header names columns {others}; select them with --columns {others}")
            yield row
        if 2 * lacking > number:
            raise _no_table(name, lacking, number, needed)
        if lacking:
            warn(f"{name}: {lacking:,} lines have fewer than {needed} columns; the first such line is {first}")


def _no_table(name: str, lacking: int, lines: int, needed: int) -> InputError:
    return InputError(
        f"{name}: {lacking} of the first {lines} lines have fewer than {needed} columns separated by tabs; specify a "
        "TSV file with a source and a target column, a TMX file, a zip archive (OPUS), or two text files"
    )
