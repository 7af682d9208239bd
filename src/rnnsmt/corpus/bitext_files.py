"""The raw text of a corpus: one file for each side, or one file with both sides.

Files with both sides are zip archives as OPUS distributes them, translation memories (TMX) and tables (TSV). The format
is recognised by the first bytes. These formats are read as streams; the memory does not depend on the size of
the file. A zip archive contains one text file for each side, ``Books.en-fr.en`` and ``Books.en-fr.fr``, or one TMX or
TSV file. TMX is parsed by expat: nothing is downloaded, and a document type that contains declarations (entities,
default attributes) is rejected, since these can expand a small file to any size.
"""

import html
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from xml.parsers import expat

from rnnsmt.base.io import (
    DAMAGED,
    MAX_LINE_BYTES,
    InputError,
    bounded_lines,
    damage,
    is_junk,
    open_text,
    open_zip,
    open_zip_member,
)
from rnnsmt.base.progress import say
from rnnsmt.config.corpora import languages_with_prefix
from rnnsmt.config.languages import TWO_LETTERS, language_of, language_pair, language_suffix, two_letters
from rnnsmt.corpus.raw_text import LINE_BYTES, read_pairs, read_segments, refuse_foreign

Row = tuple[bytes | None, ...]
"""Raw segment of each side; None for a segment that is too long."""

CHUNK = 1 << 16
"""Number of bytes that are parsed at once."""

MAX_DEPTH = 100
"""Maximum depth of elements in a TMX file; segments have a depth of 5 to 10."""

MAX_NAMES = 1000
"""Maximum number of different names of elements and attributes in a TMX file; expat keeps them in memory."""

NATIVE_CODE = frozenset(["bpt", "ept", "ph", "it", "ut"])
"""Elements of a segment that contain codes of a word processor, not text (TMX 1.4b, section 3.4)."""

SHOWN = 5
"""Number of names in a message."""

_XML = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*+(?:<!--(?>.*?-->)\s*+)*+<(?:\?xml|!DOCTYPE|tmx)\b", re.IGNORECASE | re.DOTALL
)
"""Beginning of XML, possibly after comments."""

_BREAKS = re.compile("[\t\n\r]+")


@dataclass(frozen=True)
class RawCorpus:
    """The raw text of a corpus: one side, two sides, or one file with both sides.

    Attributes:
        paths: file of each side, or the file with both sides once: a zip archive, TMX or TSV. All but zip archives may
            be compressed with gzip, bzip2 or xz.
        langs: code of each side.
        columns: columns of source and target in a TSV file, 1-based.
        members: names of source and target in a zip archive; None: they are selected by their suffixes.
    """

    paths: tuple[str, ...]
    langs: tuple[str, ...]
    columns: tuple[int, int] = (1, 2)
    members: tuple[str, str] | None = None

    @property
    def is_one_file(self) -> bool:
        """Return whether one file contains both sides."""
        return len(self.paths) < len(self.langs)

    @property
    def names(self) -> Sequence[str]:
        """Return the name of each side in messages."""
        return [f"{self.paths[0]} ({lang})" for lang in self.langs] if self.is_one_file else self.paths

    def __str__(self) -> str:
        return " and ".join(self.paths)

    def rows(self, limit: int | None = LINE_BYTES) -> Iterator[Row]:
        """Yield the raw segments of all sides, in order.

        Args:
            limit: maximum number of bytes of a segment; a longer one is returned as None. None: no limit.
        """
        if len(self.langs) == 1:
            yield from ((segment,) for segment in read_segments(self.paths[0], limit))
        elif not self.is_one_file:
            yield from read_pairs(self.paths[0], self.paths[1], limit)
        else:
            for row in _rows(self):
                yield tuple(None if limit and side is not None and len(side) > limit else side for side in row)


def languages_of_input(path: str, members: Sequence[str] | None = None) -> tuple[str, str] | None:
    """Return the languages of source and target that a file with both sides specifies, or None if there are not two.

    Args:
        path: zip archive, whose languages are the suffixes of its files, in the order in its name or theirs
            (``Books.sv-en``); TMX file, whose languages are those of its first translation units and ``srclang``; or
            prefix of two files, whose languages are their suffixes.
        members: names of source and target in a zip archive.
    """
    if not Path(path).exists():
        return languages_with_prefix(path)
    with open_zip(path) as archive:
        if archive is not None:
            names, single = _names(archive)
            if members is None and single is not None:
                with open_zip_member(archive, path, single) as stream:
                    return _languages_of_stream(f"{path}: {single}", stream)
            codes = [code for name in members or names if (code := language_of(name))]
            if members is None:
                return language_pair(set(codes), " ".join([Path(path).name, *names]))
            return (codes[0], codes[1]) if len(codes) == 2 else None
    with open_text(path) as stream:
        return _languages_of_stream(path, stream)


def _languages_of_stream(name: str, stream: BufferedReader) -> tuple[str, str] | None:
    """Return the languages of a TMX file; None for TSV."""
    return _TmxReader(name, ("", "")).languages(stream) if _is_xml(name, stream) else None


def is_table(path: str) -> bool:
    """Return whether a file is a TSV file or a zip archive with one: neither text files nor TMX."""
    with open_zip(path) as archive:
        if archive is not None:
            return Path(_names(archive)[1] or "").suffix.lower() == ".tsv"
    with open_text(path) as stream:
        return not _is_xml(path, stream)


def names_in_archive(path: str) -> list[str]:
    """Return the names of the files in a zip archive; none for other files."""
    with open_zip(path) as archive:
        return [] if archive is None else _names(archive)[0]


def _rows(corpus: RawCorpus) -> Iterator[Row]:
    """Yield the raw segments of a file with both sides."""
    (path,) = corpus.paths
    with open_zip(path) as archive:
        if archive is not None:
            yield from _zip_rows(corpus, archive)
            return
    if corpus.members is not None:
        raise InputError(f"{path}: is not a zip archive; remove members (--members), or use the archive")
    with open_text(path) as stream:
        yield from _rows_of_stream(corpus, path, stream)


def _rows_of_stream(corpus: RawCorpus, name: str, stream: BufferedReader) -> Iterator[Row]:
    """Yield the segments of a TMX or TSV file; ``name`` is its name in messages."""
    if _is_xml(name, stream):
        yield from _tmx_rows(name, corpus.langs, stream)
        return
    refuse_foreign(name, _start(name, stream))
    yield from _tsv_rows(name, corpus.columns, stream)


def _is_xml(name: str, stream: BufferedReader) -> bool:
    """Return whether a stream begins with XML, the format of TMX."""
    start = _start(name, stream)
    return bool(_XML.match(start.decode("utf-16", "ignore").encode() if _is_utf16(start) else start))


def _start(name: str, stream: BufferedReader) -> bytes:
    """Return the first bytes of a stream without consuming them."""
    try:
        return stream.peek(CHUNK)[:CHUNK]
    except DAMAGED as error:
        raise damage(name, 0, error) from None


def _is_utf16(start: bytes) -> bool:
    return start.startswith((b"\xff\xfe", b"\xfe\xff"))


def _names(archive: zipfile.ZipFile) -> tuple[list[str], str | None]:
    """Return the names of the files in an archive without ``is_junk``, and that of its only TMX or TSV file."""
    names = [member.filename for member in archive.infolist() if not (member.is_dir() or is_junk(member.filename))]
    single = [name for name in names if Path(name).suffix.lower() in (".tmx", ".tsv")]
    return names, single[0] if len(single) == 1 else None


def _zip_rows(corpus: RawCorpus, archive: zipfile.ZipFile) -> Iterator[Row]:
    (path,) = corpus.paths
    names, single = _names(archive)
    if corpus.members is None and single is not None:
        with open_zip_member(archive, path, single) as stream:
            yield from _rows_of_stream(corpus, f"{path}: {single}", stream)
        return
    source, target = _members(corpus, names)
    with (
        open_zip_member(archive, path, source) as source_stream,
        open_zip_member(archive, path, target) as target_stream,
    ):
        sides = [_member_lines(f"{path}: {name}", s) for name, s in ((source, source_stream), (target, target_stream))]
        number = 0
        while True:
            row = [next(side, None) for side in sides]
            if row[0] is None and row[1] is None:
                return
            if row[0] is None or row[1] is None:
                shorter, longer = (source, target) if row[0] is None else (target, source)
                raise InputError(
                    f"{path}: {shorter} ends after line {number}, but {longer} has more lines; download it again"
                )
            number += 1
            yield row[0], row[1]


def _member_lines(name: str, stream: BufferedReader) -> Iterator[bytes]:
    start = _start(name, stream)
    if start.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0")):
        raise InputError(f"{name}: is compressed inside the archive; extract it with `rnnsmt corpus unpack` first")
    refuse_foreign(name, start)
    for number, line in enumerate(bounded_lines(stream, name, MAX_LINE_BYTES), 1):
        if line is None:
            raise InputError(f"{name}, line {number}: longer than {MAX_LINE_BYTES} bytes; is this a text file?")
        yield line


def _members(corpus: RawCorpus, names: Sequence[str]) -> tuple[str, str]:
    """Return the names of source and target in an archive."""
    if corpus.members is not None:
        for name in corpus.members:
            if name not in names:
                raise InputError(f"{corpus}: the archive contains no file {name}; available: {first_names(names)}")
        return corpus.members
    stems: list[dict[str, str]] = [
        {_without_language(name, lang): name for name in names if language_suffix(name) == lang}
        for lang in corpus.langs
    ]
    pairs = [(source, stems[1][stem]) for stem, source in stems[0].items() if stem in stems[1]]
    if not pairs and any(Path(name).suffix.lower() in (".tmx", ".tsv") for name in names):
        raise InputError(
            f"{corpus}: the archive contains several TMX or TSV files: {first_names(names)}; extract them with `rnnsmt "
            "corpus unpack`, and use each as a corpus"
        )
    if len(pairs) != 1:
        source, target = corpus.langs
        count = f"{len(pairs)} pairs" if pairs else "no pair"
        raise InputError(
            f"{corpus}: the archive contains {count} of text files NAME.{source} and NAME.{target}; available: "
            f"{first_names(names)}; check the languages, or select two files with `members` in the configuration or "
            "with --members"
        )
    return pairs[0]


def first_names(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others, for a message."""
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "") or "none"


def _without_language(name: str, lang: str) -> str:
    """Return the name of a file without the last occurrence of the suffix of its language."""
    parts = name.split(".")
    for index in range(len(parts) - 1, 0, -1):
        if two_letters(parts[index]) == lang:
            return ".".join([*parts[:index], "*", *parts[index + 1 :]])
    return name


def _tsv_rows(name: str, columns: tuple[int, int], stream: BufferedReader) -> Iterator[Row]:
    """Yield two columns of a table; missing columns are empty."""
    needed, lacking, first = max(columns), 0, 0
    number = 0
    for number, line in enumerate(bounded_lines(stream, name, MAX_LINE_BYTES), 1):
        if line is None:
            raise InputError(f"{name}, line {number}: longer than {MAX_LINE_BYTES} bytes; is this a TSV file?")
        cells = line.removesuffix(b"\r").split(b"\t")
        if len(cells) < needed:
            lacking, first = lacking + 1, first or number
            if number <= 100 and lacking >= 10 and 2 * lacking > number:
                raise _no_table(name, lacking, number, needed)
            cells += [b""] * (needed - len(cells))
        if number == 1:
            cells = [cell.removeprefix(b"\xef\xbb\xbf") for cell in cells]
        yield cells[columns[0] - 1], cells[columns[1] - 1]
    if 2 * lacking > number:
        raise _no_table(name, lacking, number, needed)
    if lacking:
        say(f"warning: {name}: {lacking:,} lines have fewer than {needed} columns; the first such line is {first}")


def _no_table(name: str, lacking: int, lines: int, needed: int) -> InputError:
    return InputError(
        f"{name}: {lacking} of the first {lines} lines have fewer than {needed} columns separated by tabs; specify a "
        "TSV file with a source and a target column, a TMX file, a zip archive (OPUS), or two text files"
    )


def _tmx_rows(name: str, langs: tuple[str, ...], stream: BufferedReader) -> Iterator[Row]:
    reader = _TmxReader(name, langs)
    for rows in reader.rows_of(stream):
        yield from rows
    reader.check_end()


class _TmxReader:
    """Parser of a TMX file (TMX 1.4b, and 1.1 with ``lang`` instead of ``xml:lang``).

    Every translation unit with both languages yields a row: the first variant in each language. The language of a
    variant in ``en-GB`` is ``en``.
    """

    def __init__(self, name: str, langs: tuple[str, ...]) -> None:
        self._name, self._langs = name, langs
        self._rows: list[Row] = []
        self._open: list[str] = []
        self._names: set[str] = set()
        self._unit: dict[str, str] = {}
        self._lang = self._source_lang = ""
        self._text: list[str] | None = None
        self._length = self._native = self._fed = 0
        self._units = self._pairs = 0
        self._seen: Counter[str] = Counter()
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._document_type
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.SkippedEntityHandler = self._entity

    @property
    def line(self) -> int:
        """Return the number of the current line."""
        return self._parser.CurrentLineNumber

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert exceptions of expat to ``InputError``."""
        try:
            yield
        except expat.ExpatError as error:
            message = expat.ErrorString(error.code)
            what = f"not well-formed XML ({message}); repair this line, or convert the file to TSV or two text files"
            raise self._error(what, error.lineno) from None
        except (ValueError, LookupError) as error:  # an encoding unknown to Python, or a multi-byte encoding
            raise self._error(f"unsupported encoding ({error}); convert it to UTF-8") from None

    def _error(self, what: str, line: int | None = None) -> InputError:
        return InputError(f"{self._name}, line {line or self.line}: {what}")

    def rows_of(self, stream: BufferedReader) -> Iterator[list[Row]]:
        """Yield the rows of every chunk of a file."""
        while True:
            try:
                chunk = stream.read(CHUNK)
            except DAMAGED as error:
                raise damage(self._name, self.line, error) from None
            yield self.parse(chunk)
            if not chunk:
                return

    def languages(self, stream: BufferedReader) -> tuple[str, str] | None:
        """Return the languages at the start of a file, the source language first; None if there are not two."""
        for _ in self.rows_of(stream):
            if len(self._seen) > 1:
                break
        pair = language_pair(self._seen.keys() - {""}, Path(self._name).name)
        return (pair[1], pair[0]) if pair and self._source_lang == pair[1] else pair

    def parse(self, chunk: bytes) -> list[Row]:
        """Parse the next chunk, or the end of the file if it is empty; return the rows that are complete."""
        self._rows = []
        with self._errors():
            self._parser.Parse(chunk, not chunk)
        self._fed += len(chunk)
        if self._fed - self._parser.CurrentByteIndex > MAX_LINE_BYTES:
            raise self._error(f"an element of more than {MAX_LINE_BYTES} bytes; is this a TMX file?")
        return self._rows

    def check_end(self) -> None:
        """Print the number of translation units without both languages."""
        if not self._pairs and all(self._seen[lang] for lang in self._langs):
            raise InputError(
                f"{self._name}: none of {self._units:,} translation units has a <seg> in {self._langs[0]} and one in "
                f"{self._langs[1]}; repair the file"
            )
        if not self._pairs:
            seen = ", ".join(lang for lang, _ in self._seen.most_common(SHOWN)) or "none"
            raise InputError(
                f"{self._name}: none of {self._units:,} translation units has {' and '.join(self._langs)}; "
                f"available: {seen}; check the languages"
            )
        if self._pairs < self._units:
            say(
                f"{self._name}: {self._units - self._pairs:,} of {self._units:,} translation units lack "
                f"{' or '.join(self._langs)} and are skipped"
            )

    def _document_type(self, _name: str, _system: str | None, _public: str | None, has_declarations: int) -> None:
        if has_declarations:
            raise self._error(
                "the document type declares entities or attributes, which is not supported; remove the declarations"
            )

    def _start(self, element: str, attributes: Mapping[str, str]) -> None:
        element = element.lower()
        if not self._names and element != "tmx":
            raise self._error("is XML, but not TMX; convert it to TMX, TSV or two text files")
        self._open.append(element)
        self._names.update((element, *attributes))
        if len(self._open) > MAX_DEPTH or len(self._names) > MAX_NAMES:
            raise self._error(
                "the elements are nested too deeply, or there are too many different elements; is this a TMX file?"
            )
        if self._text is not None:
            self._native += element in NATIVE_CODE
        elif element == "header":
            self._source_lang = _primary_language(attributes.get("srclang") or "")
        elif element == "tu":
            self._unit = {}
        elif element == "tuv":
            self._lang = _primary_language(attributes.get("xml:lang") or attributes.get("lang") or "")
            if len(self._seen) < MAX_NAMES:
                self._seen[self._lang] += 1
        elif element == "seg" and "tuv" in self._open:
            self._text, self._length, self._native = [], 0, 0

    def _end(self, element: str) -> None:
        element = self._open.pop()
        if self._text is not None and element in NATIVE_CODE:
            self._native -= 1
        elif element == "seg" and self._text is not None:
            if self._lang in self._langs:
                self._unit.setdefault(self._lang, "".join(self._text))
            self._text = None
        elif element == "tu":
            self._units += 1
            if self._langs[0] in self._unit and self._langs[1] in self._unit:
                self._pairs += 1
                source, target = (_one_line(self._unit[lang]) for lang in self._langs)
                self._rows.append((source, target))
            self._unit = {}

    def _characters(self, text: str) -> None:
        if self._text is None or self._native:
            return
        self._length += len(text)
        if self._length > MAX_LINE_BYTES:
            raise self._error(f"segment is longer than {MAX_LINE_BYTES} bytes; split it")
        self._text.append(text)

    def _entity(self, name: str, is_parameter: bool) -> None:
        """Replace an entity of an external document type, which is not read, if HTML defines it: ``&eacute;``."""
        text = html.unescape(f"&{name};")
        if is_parameter or text.startswith("&"):
            raise self._error(f"undefined entity {name[:20]}; replace it with the character itself")
        self._characters(text)


def _primary_language(code: str) -> str:
    """Return the language of a code of TMX such as ``en-GB``, as two letters if it has such a code."""
    primary = code.lower().replace("_", "-").split("-")[0]
    return TWO_LETTERS.get(primary, primary)[:20]


def _one_line(text: str) -> bytes:
    return _BREAKS.sub(" ", text).strip().encode("utf-8", "surrogatepass")
