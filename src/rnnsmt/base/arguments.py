"""Types of arguments that many operations share, with descriptions, bounds and defaults; reading of texts.

A text is the path of a file, or an iterable of sentences in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike, fspath
from os.path import isfile
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Final, Self, cast

from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field, is_series
from rnnsmt.base.options import MAX_SEED, MAX_THREADS
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_lines
from rnnsmt.base.writing import write_lines

InputFile = Annotated[StrPath, Field(metavar="FILE", path="input", expected="a path")]
InputDirectory = Annotated[StrPath, Field(metavar="DIR", path="input", expected="a path")]
OutputFile = Annotated[StrPath, Field(metavar="FILE", path="output", expected="a path")]
OutputDirectory = Annotated[StrPath, Field(metavar="DIR", path="directory", expected="a path")]

Positive = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]

OptionalOutput = Annotated[OutputFile | None, Field(required=True)]
"""An output that a Python caller may omit, because the function returns its content; the command requires it."""

Text = Annotated[
    StrPath | Iterable[str],
    Field(metavar="FILE", path="input", expected="a path or a list of sentences"),
]
"""A file with one sentence per line; in Python, also the sentences: a list, a generator or a column of a data frame."""

Texts = Annotated[
    StrPath | Sequence[PathLike[str]] | Iterable[str],
    Field(metavar="FILE", path="input", expected="a path, a list of Path objects or a list of sentences", several=True),
]
"""One or more files that are read as one text; in Python, several files are ``Path`` objects, strings sentences."""

SeveralTexts = Annotated[
    StrPath | Sequence[PathLike[str]] | Iterable[str | Iterable[str]],
    Field(
        metavar="FILE",
        path="input",
        expected="a path, a list of Path objects, or one or several lists of sentences",
        several=True,
    ),
]
"""One or more texts, each with one sentence per line, such as the references of a text; in Python, several texts are
``Path`` objects or lists of sentences, and the strings of a list are the sentences of one text."""

InputFiles = Annotated[
    StrPath | Sequence[StrPath],
    Field(metavar="FILE", path="input", expected="a path or a list of paths", several=True),
]
"""One or more files; see ``each``."""

Alignment = Annotated[
    StrPath | Iterable[Sequence[tuple[int, int]]],
    Field(metavar="FILE", path="input", expected="a path or a list of links for each sentence pair"),
]
"""A word alignment in Pharaoh format; in Python, also the links (source word, target word) of every sentence pair."""

Alignments = Annotated[
    StrPath | Iterable[Sequence[tuple[int, int]]] | Sequence[PathLike[str]],
    Field(
        metavar="FILE",
        path="input",
        expected="a path, a list of Path objects or a list of links for each sentence pair",
        several=True,
    ),
]
"""One or more files, each with the word alignment of one text; in Python, also the links of a single text."""

OutputFiles = Annotated[
    StrPath | Sequence[StrPath],
    Field(metavar="FILE", path="output", expected="a path or a list of paths", several=True),
]

OptionalOutputs = Annotated[OutputFiles | None, Field(required=True)]
"""Outputs that a Python caller may omit, because the function returns their content; the command requires them."""

ModelDirs = Annotated[
    InputFiles | None,
    Field(
        "directory, e.g. of filtered tables, in which model files are looked up by base name before the paths in "
        "moses.ini are used; one directory for all inis, or one for each",
        metavar="DIR",
    ),
]

Threads = Annotated[int, Field("number of threads; does not affect the result", ge=1, le=MAX_THREADS)]
THREADS: Final = 1

Seed = Annotated[int, Field("random seed", ge=0, le=MAX_SEED)]

MemoryMb = Annotated[int, Field("memory limit in MB", ge=1)]
MEMORY_MB: Final = 2000

CheckpointDir = Annotated[
    StrPath,
    Field(
        "checkpoint directory, used to resume an interrupted run", metavar="DIR", path="directory", expected="a path"
    ),
]

CheckpointDirs = Annotated[
    StrPath | Sequence[StrPath],
    Field(
        metavar="DIR",
        path="directory",
        expected="a path or a list of paths",
        several=True,
        required=True,
    ),
]

Seeds = Annotated[
    Seed | Sequence[Seed],
    Field("random seed of each run", expected="an integer from 0 or a list of them", several=True, required=True),
]

SaveEvery = Annotated[float, Field("minimum time between checkpoints in seconds", ge=0, metavar="SECONDS")]
SAVE_EVERY: Final = 300.0

TimeLimit = Annotated[
    float,
    Field("save a checkpoint and exit with status 75 before this time limit in seconds", gt=0, metavar="SECONDS"),
]


def each(value: Any) -> list[Any]:
    """Return the values of an argument that is one value, a list of values, or None."""
    if isinstance(value, (list, tuple)):
        return list(value)
    return [] if value is None else [value]


class TextFiles:
    """Files with the texts that are passed to a call.

    A path is used as it is; the sentences of a list are written to a temporary file. In the messages of an
    ``InputError``, the name of the argument replaces the path of a temporary file.
    """

    def __init__(self) -> None:
        from tempfile import TemporaryDirectory

        self._temporary = TemporaryDirectory()
        self.directory = Path(self._temporary.name)

    def of(self, name: str, text: Text) -> str:
        """Return the path of the file with a text; ``name`` is the name of the argument."""
        if isinstance(text, (str, PathLike)):
            return fspath(text)
        write_lines(self.directory / name, sentences(name, text))
        return str(self.directory / name)

    def all_of(self, name: str, texts: Texts) -> list[str]:
        """Return the paths of the files with a text that may consist of several files."""
        if isinstance(texts, Sequence) and texts and not isinstance(texts, str):
            if paths := [text for text in texts if isinstance(text, PathLike)]:
                if len(paths) < len(texts):
                    raise InputError(f"{name}: must be a list of Path objects or a list of sentences, not of both")
                return [fspath(path) for path in paths]
            if all(isinstance(text, str) and isfile(text) for text in texts):  # noqa: PTH113 - Path raises OSError for long texts
                raise InputError(f"{name}: strings of a list are sentences; for files, use Path objects")
        return [self.of(name, cast("Text", texts))]

    def each_of(self, name: str, texts: SeveralTexts) -> list[str]:
        """Return the paths of the files with one or more texts.

        If ``name`` is ``input``, the files for several lists of sentences are called ``input 1``, ``input 2`` etc.
        """
        if isinstance(texts, (str, PathLike)) or not isinstance(texts, Iterable):
            return [self.of(name, texts)]
        items = list(texts)
        if not items or any(isinstance(text, (str, PathLike)) for text in items):
            return self.all_of(name, cast("Texts", items))
        return [self.of(f"{name} {number}", cast("Text", text)) for number, text in enumerate(items, 1)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the temporary files, and replace their paths in an error message by the names of the arguments."""
        self._temporary.cleanup()
        if isinstance(error, InputError):
            error.args = (str(error).replace(f"{self.directory}/", ""),)


def sentences(name: str, text: Text) -> Iterator[str]:
    """Yield the sentences of a text; ``name`` is the name of the argument, for error messages."""
    if isinstance(text, (str, PathLike)):
        yield from read_lines(text)
        return
    if not is_series(text):
        raise InputError(f"{name}: must be a path or a list of sentences, not {type(text).__name__}")
    for number, sentence in enumerate(text, 1):
        if not isinstance(sentence, str):
            raise InputError(f"{name}: sentence {number} must be a string, not {type(sentence).__name__}")
        if "\n" in sentence or "\r" in sentence:
            raise InputError(f"{name}: sentence {number} contains a line break; each item must be a single sentence")
        if not sentence.isascii() and any("\ud800" <= character <= "\udfff" for character in sentence):
            raise InputError(f"{name}: sentence {number} is not valid Unicode; decode the text as UTF-8")
        yield sentence
