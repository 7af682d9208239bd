"""Reader of the lexicon, the tables in ``lexicon/*.tsv``.

A table has comment lines (``#``), a header, and one entry per line with fields separated by tabs. The comments of a
table describe its notation.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rnnsmt.base.io import InputError, read_byte_lines

LEXICON = Path(__file__).parent / "lexicon"

COLUMNS = {
    "nouns": ("domain", "class", "english", "plural", "french"),
    "adjectives": ("domain", "classes", "english", "french"),
    "verbs": ("domain", "english", "past", "participle", "subjects", "objects", "recipients", "french"),
    "phrases": ("domain", "use", "english", "french"),
    "names": ("kind", "part", "words"),
    "irregular_verbs": ("ending", "present", "subjunctive", "future", "participle"),
}
"""Columns by table."""

EMPTY = frozenset(["plural", "objects", "recipients", "subjunctive"])
"""Columns that may be empty."""


@dataclass(frozen=True)
class LexiconRow:
    """Line of a table: its file and number, for error messages, and its fields by column."""

    place: str
    fields: dict[str, str]

    def __getitem__(self, column: str) -> str:
        return self.fields[column]

    def error(self, problem: str) -> InputError:
        """Return the exception for a problem of this line."""
        return InputError(f"{self.place}: {problem}")

    def one_of(self, column: str, values: tuple[str, ...]) -> str:
        """Return a field after checking that it is one of the values.

        Raises:
            InputError: the field has another value.
        """
        if self[column] not in values:
            raise self.error(f"{column} {self[column]!r} is unknown; must be one of {', '.join(values)}")
        return self[column]

    def letters(self, column: str, alphabet: str) -> str:
        """Return a field after checking that it consists of letters of the alphabet.

        Raises:
            InputError: the field contains another character.
        """
        unknown = sorted(set(self[column]) - set(alphabet))
        if unknown:
            raise self.error(
                f"{column} {self[column]!r} contains {unknown[0]!r}; only the letters {alphabet} are allowed"
            )
        return self[column]

    def alternatives(self) -> list[str]:
        """Return the French translations.

        Raises:
            InputError: one of them is empty.
        """
        parts = [translation.strip() for translation in self["french"].split(";")]
        if not all(parts):
            raise self.error(f"empty translation in {self['french']!r}; separate translations by '; '")
        return parts


def read_table(name: str, directory: Path = LEXICON) -> Iterator[LexiconRow]:
    """Yield the entries of a table of the lexicon.

    Raises:
        InputError: the columns of the table are wrong, or a line has a wrong number of fields or an empty field.
    """
    path, columns = directory / f"{name}.tsv", COLUMNS[name]
    header = False
    for number, raw in enumerate(read_byte_lines(path), 1):
        location = f"{path}, line {number}"
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{location}: not UTF-8 at byte {error.start}; convert it first") from None
        if line.startswith("#"):
            continue
        fields = line.split("\t")
        if not header:
            if tuple(fields) != columns:
                raise InputError(
                    f"{location}: invalid header {line!r}; must be {', '.join(columns)}, separated by tabs"
                )
            header = True
            continue
        if len(fields) != len(columns):
            raise InputError(
                f"{location}: {len(fields)} fields instead of {len(columns)}, separated by tabs: {', '.join(columns)}"
            )
        for column, field in zip(columns, fields, strict=True):
            if field != " ".join(field.split()):
                raise InputError(f"{location}: {column} {field!r} has superfluous spaces; remove them")
            if not field and column not in EMPTY:
                raise InputError(f"{location}: {column} must not be empty")
        yield LexiconRow(location, dict(zip(columns, fields, strict=True)))
    if not header:
        raise InputError(f"{path}: no header; must be {', '.join(columns)}, separated by tabs")
