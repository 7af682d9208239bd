"""The description of a tuned system.

The directory of a tuned system contains its ``moses.ini`` and ``system.json``, which describes the preparation of text,
the limits of the search, and the paths of the other files, relative to the directory.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any
from unicodedata import category

from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field, Mistake, checked, fields_of
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import warn
from rnnsmt.base.reading import read_json
from rnnsmt.base.writing import write_json
from rnnsmt.config.languages import Language
from rnnsmt.corpus.tokenizer import tokenizer_version
from rnnsmt.formats.ini import MAX_PATH, MosesIni
from rnnsmt.search.options import SearchOptions

FILE, INI = "system.json", "moses.ini"

CARD = "MODEL_CARD.md"
"""Name of the model card of a system."""

FORMAT = "rnnsmt-system-1"

MAX_EXAMPLE = 300
"""Maximum length of an example or a name in characters."""


Limit = Annotated[int, Field(ge=1)]


def _check_text(text: str) -> None:
    """Raise ``ValueError`` if a text is not valid Unicode, because it is sent to browsers as UTF-8."""
    if any(category(character) == "Cs" for character in text):
        raise ValueError("must not contain surrogates")


Example = Annotated[str, Field(max_length=MAX_EXAMPLE, check=_check_text)]


def _check_name(name: str) -> None:
    """Raise ``ValueError`` if a name has control characters, which would reach the user's terminal."""
    if any(not character.isprintable() and category(character) != "Zs" for character in name):
        raise ValueError("must not contain control characters")


Name = Annotated[str, Field(max_length=MAX_EXAMPLE, check=_check_name)]

File = Annotated[str, Field(max_length=MAX_PATH)]


def _check_network(files: list[str]) -> None:
    """Raise ``ValueError`` if one of the files of the RNN Encoder-Decoder is missing."""
    if len(files) not in (0, 3):
        raise ValueError("must be the network and two vocabularies, or empty")


@dataclass(frozen=True)
class Description:
    """Content of ``system.json``; paths are relative to its directory.

    Attributes:
        name: name of the system, for example ``cslm_rnn``.
        source, target: two-letter codes of the languages.
        normalize, tokenize, escape, lowercase: as in ``rnnsmt.config.sections.Preprocessing``.
        tokenizer: version of the tokeniser of the training text (``rnnsmt.corpus.tokenizer.tokenizer_version``); None
            if the text was tokenised by other means, or by a version that recorded none.
        truecaser: truecasing model of the source language; None if case is not changed.
        rnn: the network that scored the phrase table, and the vocabularies of its source side and target side; or
            empty.
        columns: names of the phrase scores after the fourth.
        filtered: whether its tables are for the dev and test sets only.
        pop_limit, stack, cslm_cells: as in ``SearchOptions``.
        examples: raw segments of the source language that the page of the server offers.
    """

    name: Name
    source: Language
    target: Language
    normalize: bool = True
    tokenize: bool = True
    escape: bool = True
    lowercase: bool = False
    tokenizer: Name | None = None
    truecaser: File | None = None
    rnn: Annotated[list[File], Field(check=_check_network)] = field(default_factory=list)
    columns: list[Name] = field(default_factory=list)
    filtered: bool = False
    pop_limit: Limit = SearchOptions.pop_limit
    stack: Limit = SearchOptions.stack_size
    cslm_cells: Limit = SearchOptions.cslm_cells
    examples: list[Example] = field(default_factory=list)

    @classmethod
    def read(cls, directory: StrPath) -> "Description":
        """Read the description in a directory."""
        path = Path(directory) / FILE
        if not path.parent.exists():
            raise InputError(f"{directory}: no such directory or archive")
        if not path.is_file():
            raise InputError(
                f"{directory}: contains no {FILE}; use the directory of a tuned system, results/systems/NAME/run1"
            )
        content = read_json(path)
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise InputError(
                f"{path}: was written by a different version; run the workflow again, or pack the system again"
            )
        return cls.valid(path, content)

    @classmethod
    def valid(cls, path: Path, content: dict[str, Any]) -> "Description":
        """Create a description.

        Args:
            path: the file, for the error message.
            content: values of the attributes by name.
        """
        values, mistakes = checked(cls, content)
        mistakes += [
            Mistake(name, "is missing") for name, of in fields_of(cls).items() if of.required and name not in content
        ]
        if mistakes:
            name, text, _ = mistakes[0]
            raise InputError(f"{path}: {name[:60]}: {text}; correct it, or run the workflow or pack the system again")
        return cls(**values)

    def check_tokenizer(self, directory: StrPath) -> None:
        """Check that the tokeniser is the one of the training text.

        Args:
            directory: directory of the system, for the error message.
        """
        if not self.tokenize or self.tokenizer == (current := tokenizer_version(self.source)):
            return
        trained = f"version {self.tokenizer[:40]}" if self.tokenizer else "a version before 2"
        raise InputError(
            f"{directory}: {self.name} was trained with {trained} of the tokeniser, and this is version {current}; run "
            "the workflow again, or use the rnnsmt, sacremoses and regex of the training"
        )

    @property
    def warnings(self) -> list[str]:
        """Return warnings for users of the system: whether its tables are filtered for the dev and test sets."""
        if not self.filtered:
            return []
        return [
            f"{self.name} contains phrase pairs for its dev and test sets only, and many words of other text remain "
            "untranslated; for other text, use a system whose tables are not filtered"
        ]

    def print_warnings(self) -> None:
        """Print ``warnings``, one line each."""
        for warning in self.warnings:
            warn(f"{warning}")

    def content(self) -> dict[str, object]:
        """Return the content of the file."""
        return {"format": FORMAT, **asdict(self)}

    def write(self, directory: StrPath) -> None:
        """Write the description into a directory."""
        write_json(Path(directory) / FILE, self.content())


def read_ini(directory: Path) -> MosesIni:
    """Read the ``moses.ini`` of a system."""
    if not (directory / INI).is_file():
        raise InputError(f"{directory / INI}: no such file; run the workflow again, or unpack the archive again")
    return MosesIni.read(directory / INI)
