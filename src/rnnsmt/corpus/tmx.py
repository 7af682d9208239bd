"""Reading of a translation memory (TMX 1.4b, and 1.1 with ``lang`` instead of ``xml:lang``).

The file is parsed by expat: nothing is downloaded, and a document type that contains declarations (entities, default
attributes) is rejected, since these can expand a small file to any size.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from xml.parsers import expat

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import DAMAGED, damage
from rnnsmt.base.progress import say
from rnnsmt.base.reading import MAX_LINE_BYTES
from rnnsmt.config.languages import TWO_LETTERS, language_pair
from rnnsmt.corpus.corpus_format import CorpusFormat
from rnnsmt.corpus.raw_text import Row

CHUNK = 1 << 16
"""Number of bytes that are parsed at once."""

MAX_DEPTH = 100
"""Maximum depth of elements in a TMX file; segments have a depth of 5 to 10."""

MAX_NAMES = 1000
"""Maximum number of different names of elements and attributes in a TMX file; expat keeps them in memory."""

NATIVE_CODE = frozenset(["bpt", "ept", "ph", "it", "ut"])
"""Elements of a segment that contain codes of a word processor, not text (TMX 1.4b, section 3.4)."""

SHOWN = 5
"""Number of languages in a message."""

_XML = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*+(?:<!--(?>.*?-->)\s*+)*+<(?:\?xml|!DOCTYPE|tmx)\b", re.IGNORECASE | re.DOTALL
)
"""Beginning of XML, possibly after comments."""

_BREAKS = re.compile("[\t\n\r]+")


class Tmx(CorpusFormat):
    """Translation memories."""

    suffixes = (".tmx",)

    def recognises(self, start: bytes, name: str) -> bool:
        """Return whether a file begins with XML."""
        is_utf16 = start.startswith((b"\xff\xfe", b"\xfe\xff"))
        return bool(_XML.match(start.decode("utf-16", "ignore").encode() if is_utf16 else start))

    def rows(self, stream: BufferedReader, name: str, langs: Sequence[str], columns: Sequence[int]) -> Iterator[Row]:
        """Yield the translation units with both languages."""
        return TmxReader(name, langs).rows(stream)

    def languages(self, stream: BufferedReader, name: str) -> tuple[str, str] | None:
        """Return the languages of the first translation units, that of ``srclang`` first."""
        return TmxReader(name, ("", "")).languages(stream)


class TmxReader:
    """Parser of a TMX file.

    Every translation unit with both languages yields a row: the first variant in each language. The language of a
    variant in ``en-GB`` is ``en``.
    """

    def __init__(self, name: str, langs: Sequence[str]) -> None:
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

    def _error(self, what: str, line: int | None = None) -> InputError:
        return InputError(f"{self._name}, line {line or self._parser.CurrentLineNumber}: {what}")

    def rows(self, stream: BufferedReader) -> Iterator[Row]:
        """Yield the rows of a file."""
        for rows in self._chunks(stream):
            yield from rows
        self._check_end()

    def _chunks(self, stream: BufferedReader) -> Iterator[list[Row]]:
        """Yield the rows of every chunk of a file."""
        while True:
            try:
                chunk = stream.read(CHUNK)
            except DAMAGED as error:
                raise damage(self._name, self._parser.CurrentLineNumber, error) from None
            yield self._parse(chunk)
            if not chunk:
                return

    def languages(self, stream: BufferedReader) -> tuple[str, str] | None:
        """Return the languages at the start of a file, the source language first; None if there are not two."""
        for _ in self._chunks(stream):
            if len(self._seen) > 1:
                break
        pair = language_pair(self._seen.keys() - {""}, Path(self._name).name)
        return (pair[1], pair[0]) if pair and self._source_lang == pair[1] else pair

    def _parse(self, chunk: bytes) -> list[Row]:
        """Parse the next chunk, or the end of the file if it is empty; return the rows that are complete."""
        self._rows = []
        try:
            self._parser.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            message = expat.ErrorString(error.code)
            what = f"not well-formed XML ({message}); repair this line, or convert the file to TSV or two text files"
            raise self._error(what, error.lineno) from None
        except InputError:  # of the handlers of elements
            raise
        except (ValueError, LookupError) as error:  # an encoding unknown to Python, or a multi-byte encoding
            raise self._error(f"unsupported encoding ({error}); convert it to UTF-8") from None
        self._fed += len(chunk)
        if self._fed - self._parser.CurrentByteIndex > MAX_LINE_BYTES:
            raise self._error(f"an element of more than {MAX_LINE_BYTES} bytes; is this a TMX file?")
        return self._rows

    def _check_end(self) -> None:
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
