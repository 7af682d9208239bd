"""Raw text: reading of the segments of a corpus file, and cleaning of one segment.

A file has one segment per line, or the ``<seg>`` elements of a WMT SGM file. The format is recognised by the first
bytes, not by the file name. Files that are not text of one language are rejected.

A raw line is repaired, rejected, or processed into tokens. Control characters would break lines and fields of all later
files and are always repaired: a tab, a line separator (U+0085, U+2028, U+2029) and any other white space are replaced
by one space. Letters and accents that are stored as two characters are composed (Unicode's normal form C), since the
tokeniser would separate them. Characters of the layout of a page, which make one word several ones, are removed or
replaced: soft hyphens, byte order marks and other invisible characters, and the ligatures of PDF files. Repaired and
rejected lines are counted by reason.
"""

import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import DAMAGED, foreign_format, open_text, refuse_pipe
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import decoded, read_bounded_lines, read_byte_lines, read_lines, read_whole
from rnnsmt.config.languages import WITHOUT_SPACES
from rnnsmt.config.sections import Preprocessing

Row = tuple[bytes | None, ...]
"""Raw segment of each side; None for a segment that is too long."""

LINE_BYTES = 1 << 16
"""Maximum length of a training line in bytes; longer lines are rejected and not kept in memory."""

SGM_BYTES = 1 << 28
"""Maximum size of an ``.sgm`` file, which is read as a whole."""

_SGM_SUFFIXES = (".sgm", ".sgml")

_PROLOGUE = rb"\A(?:\xef\xbb\xbf)?\s*(?:<(?:\?|!DOCTYPE\b|!--)[^>]*>\s*)*"
"""Byte order mark, XML declaration, doctype and comments."""

_SGM_ROOT = re.compile(_PROLOGUE + rb"<(?:srcset|refset|tstset|mteval|dataset)\b", re.IGNORECASE)

_DOCUMENT = re.compile(_PROLOGUE + rb"<doc\b[^>]*>", re.IGNORECASE)
"""Beginning of excerpts of SGM files; text files may begin like this too, but have no ``<seg>``."""

_SIDE = re.compile(rb"<(src|ref|hyp)\b[^<>]*\blang=", re.IGNORECASE)
"""Side of a document in WMT's XML format since 2021, with source and references in one file."""

_SEG_TAG = re.compile(r"<seg\b(?:(?:[^<>/]|/(?!>))*+/>)?|</seg\s*>", re.IGNORECASE)
"""Beginning of the opening tag of a segment, an empty segment, or a closing tag."""

_DOCUMENT_TAG = re.compile(r"<doc\b([^<>]*)>", re.IGNORECASE)

_ENCODING = re.compile(
    rb"""\A\s*<\?xml\b[^<>]*\bencoding\s*=\s*["']((?:iso|latin|windows|cp|koi8|gb|big5|euc|shift)[A-Z0-9_-]*)["']""",
    re.IGNORECASE,
)
"""XML declaration of an encoding of text other than Unicode."""


def read_segments(path: StrPath, limit: int | None = LINE_BYTES) -> Iterator[bytes | None]:
    """Yield the raw segments of a file in order, or ``None`` for a segment of more than ``limit`` bytes.

    Args:
        path: text or SGM file, plain or compressed.
        limit: maximum number of bytes; ``None``, for test sets: only a line that cannot be text raises an error.
    """
    start = _first_bytes(path)
    refuse_foreign(path, start)
    if is_sgm(path, start):
        for segment in _sgm_segments(path):
            yield segment if limit is None or len(segment) <= limit else None
    elif limit is None:
        yield from read_byte_lines(path)
    else:
        yield from read_bounded_lines(path, limit)


def read_texts(path: StrPath) -> list[str]:
    """Return all raw segments of a file as text; from a pipe, which can be read only once, return the lines."""
    if not Path(path).is_file():
        return list(read_lines(path))
    return [decoded(segment or b"", path, number) for number, segment in enumerate(read_segments(path, None), 1)]


def _first_bytes(path: StrPath) -> bytes:
    """Return the first ``LINE_BYTES`` bytes of the decompressed file, or nothing if it is damaged.

    The error is raised later, when the whole file is read.
    """
    refuse_pipe(path)
    with open_text(path) as stream:
        try:
            return stream.read(LINE_BYTES)
        except DAMAGED:
            return b""


def is_sgm(path: StrPath, start: bytes) -> bool:
    """Return whether a file is a WMT SGM file, by its suffix or by the markup at its beginning."""
    return (
        any(suffix.lower() in _SGM_SUFFIXES for suffix in Path(path).suffixes[-2:])
        or _SGM_ROOT.match(start) is not None
        or (_DOCUMENT.match(start) is not None and re.search(rb"<seg\b", start, re.IGNORECASE) is not None)
    )


def refuse_foreign(path: StrPath, start: bytes) -> None:
    """Reject files whose first bytes are not those of UTF-8 text with lines."""
    if what := foreign_format(start):
        raise InputError(f"{path}: {what}")
    if start[257:262] == b"ustar":  # magic number in the first header of a tar archive
        raise InputError(
            f"{path}: is a tar archive; extract the text file (`rnnsmt corpus unpack`), or set download.member in the "
            "configuration"
        )
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        raise InputError(f"{path}: is UTF-16 or UTF-32, not UTF-8; convert it first, e.g. with `iconv -t UTF-8`")
    if start.count(0) > max(len(start) // 4, 100):
        raise InputError(
            f"{path}: contains many NUL bytes: UTF-16 without a byte order mark, or not a text file; convert it "
            "first, e.g. with `iconv -f UTF-16LE -t UTF-8`"
        )
    if b"\n" not in start and start.rstrip(b"\r").count(b"\r") > 1:
        raise InputError(f"{path}: its lines end with CR instead of LF; convert it first, e.g. with tr '\\r' '\\n'")
    if _SGM_ROOT.match(start) and _has_several_sides(start):
        raise InputError(
            f"{path}: contains source and references in one file (WMT's XML format since 2021); write each of them "
            "to a separate text file"
        )


def _has_several_sides(start: bytes) -> bool:
    """Return whether a source with a language is followed by a reference or a hypothesis with a language."""
    sides = [match[1].lower() for match in _SIDE.finditer(start)]
    return b"src" in sides and any(side != b"src" for side in sides[sides.index(b"src") :])


def paired(names: Sequence[str], sides: Sequence[Iterator[bytes | None]]) -> Iterator[Row]:
    """Yield pairs of corresponding segments of two files; ``names`` are those of the files in messages."""
    end = object()
    rows = zip_longest(*sides, fillvalue=end)
    for number, row in enumerate(rows):
        if row[0] is end or row[1] is end:
            shorter, longer = names if row[0] is end else reversed(names)
            more = sum(1 for _ in rows) + 1
            raise InputError(
                f"{shorter} has {number} lines, but {longer} has {number + more}; "
                "parallel files must have the same number of lines; create or download them again"
            )
        yield row  # type: ignore[misc]


def _sgm_segments(path: StrPath) -> list[bytes]:
    """Return the segments of an SGM file, with entities resolved and line breaks replaced by spaces."""
    raw = read_whole(path, SGM_BYTES)
    if raw is None:
        raise InputError(f"{path}: larger than {SGM_BYTES} bytes; is this a WMT .sgm file?")
    text = _without_comments(_decoded_sgm(path, raw))
    _check_systems(path, text)
    return [
        html.unescape(text[begin:end]).replace("\n", " ").strip().encode("utf-8", "surrogateescape")
        for begin, end in _segment_places(path, text)
    ]


def _decoded_sgm(path: StrPath, raw: bytes) -> str:
    """Decode an SGM file: UTF-8, or the encoding of its XML declaration if it is not valid UTF-8."""
    declared = _ENCODING.match(raw)
    if declared is None or is_utf8(raw):
        return raw.decode("utf-8", "surrogateescape")
    name = declared[1].decode()
    try:
        return raw.decode(name)
    except (LookupError, ValueError):
        raise InputError(f"{path}, line 1: not in the encoding {name} that it declares; convert it to UTF-8") from None


def _without_comments(text: str) -> str:
    """Return XML without its comments; their line breaks remain."""
    parts = []
    begin = 0
    while (comment := text.find("<!--", begin)) >= 0 and (end := text.find("-->", comment + 4)) >= 0:
        parts += [text[begin:comment], "\n" * text.count("\n", comment, end)]
        begin = end + len("-->")
    return "".join([*parts, text[begin:]])


def _check_systems(path: StrPath, text: str) -> None:
    """Check that no document occurs several times, by different systems (references or translations)."""
    systems: dict[str, str] = {}
    for tag in _DOCUMENT_TAG.finditer(text):
        document, system = (_attribute(tag[1], name) for name in ("docid", "sysid"))
        if systems.setdefault(document, system) != system:
            line = text.count("\n", 0, tag.start()) + 1
            raise InputError(
                f"{path}, line {line}: contains the document {document} of {systems[document]} and of {system}; write "
                "every system (sysid) to a separate file"
            )


def _attribute(tag: str, name: str) -> str:
    """Return the value of an attribute of a tag, or an empty string."""
    found = re.search(rf"""\b{name}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))""", tag, re.IGNORECASE)
    return next(filter(None, found.groups()), "") if found else ""


def _segment_places(path: StrPath, text: str) -> list[tuple[int, int]]:
    """Return the range of characters (begin, end) of the content of every ``<seg>``.

    The time is linear in the length of the text for any content.
    """
    places: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for tag in _SEG_TAG.finditer(text):
        closes, is_empty = tag[0].startswith("</"), tag[0].endswith("/>")
        if is_empty and not opened:
            places.append((tag.end(), tag.end()))
            continue
        if closes and opened is None:
            continue
        begin = text.find(">", opened.end(), tag.start()) + 1 if opened else 0
        if opened and not (closes and begin):
            break
        if opened:
            places.append((begin, tag.start()))
        opened = None if closes else tag
    if opened:
        line = text.count("\n", 0, opened.start()) + 1
        raise InputError(f"{path}, line {line}: <seg> without </seg>; repair the file or download it again")
    if not places:
        raise InputError(f"{path}: contains no <seg> element; is this a WMT .sgm file?")
    return places


def all_lines(paths: list[str]) -> Iterator[str]:
    """Yield the lines of several UTF-8 files, one file after the other."""
    empty = True
    for path in paths:
        for line in read_lines(path):
            empty = False
            yield line
    if empty:
        raise InputError(f"{', '.join(paths)}: contains no lines")


BAD_UTF8 = "not UTF-8"
CONTROL = "control character"
DECOMPOSED = "decomposed character"
LAYOUT = "invisible character or ligature"
SEPARATOR = "|||"
EMPTY = "empty"
TOO_LONG = "too long"
ENDLESS = "endless line"
RATIO = "length ratio"

_BREAKS = re.compile("[\t\n\r\v\f\x1c-\x1f\x85\u2028\u2029]")
"""Characters that are replaced by a space."""
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Control characters that are removed."""
_SUSPECT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Any character of ``_BREAKS`` or ``_CONTROLS``, for a fast test."""

_INVISIBLE = "\u00ad\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
"""Soft hyphen, marks of the direction of writing, word joiner and byte order mark: they are not part of the spelling.
Joiners (U+200C, U+200D) are."""
_LIGATURES = {ord(sign): unicodedata.normalize("NFKC", sign) for sign in map(chr, range(0xFB00, 0xFB07))}
"""The letters of the Latin ligatures: ``ﬁ``."""
_LAYOUT = re.compile(f"[{_INVISIBLE}\u200b\ufb00-\ufb06]")
"""Any character that may be removed or replaced as layout, for a fast test."""


def is_utf8(raw: bytes) -> bool:
    """Return whether bytes are valid UTF-8."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class RejectedLineError(Exception):
    """The line cannot be kept; the argument is the reason."""


Step = Callable[[str], str]


class Cleaner:
    """Conversion of raw lines of one language into lines of tokens, without truecasing.

    Args:
        keep_all: keep every line, repaired if necessary, as for test sets.
    """

    def __init__(self, lang: str, options: Preprocessing, keep_all: bool) -> None:
        self.options, self.keep_all = options, keep_all
        # between the words of a language without spaces, the zero-width space is the only mark
        self._invisible = re.compile(f"[{_INVISIBLE}{'' if lang in WITHOUT_SPACES else chr(0x200B)}]")
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
        if not self.keep_all and text.count(" ") > 4 * self.options.max_length + 100:
            raise RejectedLineError(TOO_LONG)
        if SEPARATOR in text:
            repaired.add(SEPARATOR)
        for step in self._steps:
            text = step(text)
        text = " ".join(text.split())
        if SEPARATOR in text:
            if not self.keep_all:
                raise RejectedLineError(SEPARATOR)
            text = " ".join(text.replace("|", " | ").split())
        return text.lower() if self.options.lowercase else text

    def _decode(self, raw: bytes | None, repaired: set[str]) -> str:
        """Decode a raw line, and repair control characters, decomposed ones and those of the layout."""
        if raw is None:
            raise RejectedLineError(ENDLESS)
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            if not self.keep_all:
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
        if _LAYOUT.search(text) and (plain := self._invisible.sub("", text).translate(_LIGATURES)) != text:
            repaired.add(LAYOUT)
            text = plain
        return text
