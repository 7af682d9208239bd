"""The raw text of a corpus: one file for each side, or one file with both sides.

Files with both sides are zip archives as OPUS distributes them, and files of the formats of
``rnnsmt.registries.CORPUS_FORMATS``, of which those of this package are recognised by their first bytes. They are read
as streams; the memory does not depend on the size of the file. A zip archive contains one text file for each side,
``Books.en-fr.en`` and ``Books.en-fr.fr``, or one file of a format.
"""

import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import cast

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import (
    DAMAGED,
    damage,
    is_junk,
    office_document,
    open_binary,
    open_text,
    open_zip,
    open_zip_member,
    refuse_pipe,
)
from rnnsmt.base.reading import byte_lines
from rnnsmt.config.languages import language_of, language_pair, language_suffix, two_letters
from rnnsmt.corpus.corpus_format import CorpusFormat, Pair
from rnnsmt.corpus.raw_text import LINE_BYTES, Row, paired, read_segments, refuse_foreign
from rnnsmt.plan.corpora import languages_with_prefix
from rnnsmt.registries import CORPUS_FORMATS

SHOWN = 5
"""Number of names in a message."""


@dataclass(frozen=True)
class RawCorpus:
    """The raw text of a corpus: one side, two sides, or one file with both sides.

    Attributes:
        paths: file of each side, or the file with both sides once: a zip archive, or of a format. All but zip archives
            may be compressed with gzip, bzip2 or xz.
        langs: code of each side.
        columns: columns of source and target in a table, 1-based.
        members: names of source and target in a zip archive; None: they are selected by their suffixes.
        lines: numbers of the lines that are kept, counted from 1; empty: all lines.
        without_lines: numbers of the lines that are left out.
        shown: names of the files in messages and reports; empty: the paths.
        format: format of the file with both sides; None: it is recognised.
    """

    paths: tuple[str, ...]
    langs: tuple[str, ...]
    columns: tuple[int, int] = (1, 2)
    members: tuple[str, str] | None = None
    lines: Collection[int] = ()
    without_lines: Collection[int] = ()
    shown: tuple[str, ...] = ()
    format: str | None = None

    @property
    def is_one_file(self) -> bool:
        """Return whether one file contains both sides."""
        return len(self.paths) < len(self.langs)

    @property
    def names(self) -> Sequence[str]:
        """Return the name of each side in messages."""
        shown = self.shown or self.paths
        return [f"{shown[0]} ({lang})" for lang in self.langs] if self.is_one_file else shown

    def __str__(self) -> str:
        return " and ".join(self.shown or self.paths)

    def rows(self, limit: int | None = LINE_BYTES) -> Iterator[Row]:
        """Yield the raw segments of all sides, in order.

        Args:
            limit: maximum number of bytes of a segment; a longer one is returned as None. None: no limit.

        Raises:
            InputError: a file cannot be read, or the corpus has fewer lines than ``lines`` or ``without_lines`` name.
        """
        kept, left_out = frozenset(self.lines), frozenset(self.without_lines)
        number = 0
        for number, row in enumerate(self._all_rows(limit), 1):
            if number not in left_out and (not kept or number in kept):
                yield row
        if number < (last := max(kept | left_out, default=0)):
            raise InputError(f"{self}: has {number:,} lines, but line {last:,} is selected; is this the right file?")

    def _all_rows(self, limit: int | None) -> Iterator[Row]:
        if len(self.langs) == 1:
            yield from ((segment,) for segment in read_segments(self.paths[0], limit))
        elif not self.is_one_file:
            yield from paired(self.paths, [read_segments(path, limit) for path in self.paths])
        else:
            for row in _rows(self):
                yield tuple(None if limit and side is not None and len(side) > limit else side for side in row)


def languages_of_input(
    path: str, members: Sequence[str] | None = None, format: str | None = None
) -> tuple[str, str] | None:
    """Return the languages of source and target that a file with both sides specifies, or None if there are not two.

    Args:
        path: zip archive, whose languages are the suffixes of its files, in the order in its name or theirs
            (``Books.sv-en``); file of a format; or prefix of two files, whose languages are their suffixes.
        members: names of source and target in a zip archive.
        format: format of the file; None: it is recognised.
    """
    if not Path(path).exists():
        return languages_with_prefix(path)
    with _open_archive(path, format) as archive:
        if archive is not None:
            names, single = _names(path, archive, format)
            if members is None and single is not None:
                with open_zip_member(archive, path, single) as stream:
                    return _languages_of_stream(f"{path}: {single}", stream, format)
            codes = [code for name in members or names if (code := language_of(name))]
            if members is None:
                return language_pair(set(codes), " ".join([Path(path).name, *names]))
            return (codes[0], codes[1]) if len(codes) == 2 else None
    with _open_file(path, format) as stream:
        return _languages_of_stream(path, stream, format)


def _languages_of_stream(name: str, stream: BufferedReader, format: str | None) -> tuple[str, str] | None:
    """Return the languages that the content of a file specifies; None if there are not two."""
    try:
        return _format_of(name, stream, format).languages(stream, name)
    except (*DAMAGED, LookupError) as error:
        raise _of_other_code(name, 0, error) from None


def has_columns(path: str) -> bool:
    """Return whether a file is a table with columns, or a zip archive with one."""
    with open_zip(path) as archive:
        if archive is not None:
            suffix = Path(_names(path, archive, None)[1] or "").suffix.lower()
            return any(one.has_columns and suffix in one.suffixes for one in _own_formats())
    with open_text(path) as stream:
        return _recognised(path, stream).has_columns


def names_in_archive(path: str) -> list[str]:
    """Return the names of the files in a zip archive; none for other files."""
    with open_zip(path) as archive:
        return [] if archive is None else _names(path, archive, None)[0]


def _rows(corpus: RawCorpus) -> Iterator[Row]:
    """Yield the raw segments of a file with both sides."""
    (path,) = corpus.paths
    with _open_archive(path, corpus.format) as archive:
        if archive is not None:
            yield from _zip_rows(corpus, archive)
            return
    if corpus.members is not None:
        raise InputError(f"{path}: is not a zip archive; remove members (--members), or use the archive")
    with _open_file(path, corpus.format) as stream:
        yield from _rows_of_stream(corpus, path, stream)


def _open_archive(path: str, format: str | None) -> AbstractContextManager[zipfile.ZipFile | None]:
    """Open a zip archive, or provide None for another file, such as one of a format whose files are zip archives."""
    if format is None or Path(path).suffix.lower() not in CORPUS_FORMATS[format].suffixes:
        return open_zip(path)
    refuse_pipe(path)
    return nullcontext(None)


def _open_file(path: str, format: str | None) -> BufferedReader:
    """Open a file of a format, which need not be text if the format is named."""
    return open_text(path) if format is None else open_binary(path)


def _rows_of_stream(corpus: RawCorpus, name: str, stream: BufferedReader) -> Iterator[Row]:
    """Yield the segments of a file of a format; ``name`` is its name in messages."""
    read = _format_of(name, stream, corpus.format)
    if read.is_text:
        refuse_foreign(name, _start(name, stream))
    rows = read.rows(stream, name, corpus.langs, corpus.columns)
    # the formats that are recognised are those of this package, which yield bytes
    yield from cast("Iterator[Row]", rows) if corpus.format is None else _checked(rows, name, corpus.format)


def _checked(rows: Iterable[Row | Pair], name: str, format: str) -> Iterator[Row]:
    """Yield rows with bytes, each without the ends of lines; report what a format of another package raises."""
    number = 0
    try:
        for number, row in enumerate(rows, 1):
            if len(row) != 2 or not all(isinstance(side, (str, bytes)) for side in row):
                raise InputError(
                    f"{name}: corpus format {CORPUS_FORMATS.versioned(format)} yields {row!r:.60} as row {number}; it "
                    "must be a pair of strings (source, target)"
                )
            yield tuple(map(_one_line, row))
    except (*DAMAGED, LookupError) as error:
        raise _of_other_code(name, number, error) from None


def _one_line(segment: str | bytes | None) -> bytes:
    assert segment is not None
    text = segment.encode("utf-8", "surrogatepass") if isinstance(segment, str) else segment
    return b" ".join(text.splitlines())


def _of_other_code(name: str, lines: int, error: Exception) -> Exception:
    """Return the error for a file that cannot be read further, also if a value is missing in it."""
    return damage(name, lines, ValueError(f"no {error}") if isinstance(error, LookupError) else error)


def _own_formats() -> list[CorpusFormat]:
    return [CORPUS_FORMATS[name] for name in CORPUS_FORMATS]


def _format_of(name: str, stream: BufferedReader, format: str | None) -> CorpusFormat:
    """Return the format of a stream: that which is named, or else the one of this package that recognises it."""
    return _recognised(name, stream) if format is None else CORPUS_FORMATS[format]


def _recognised(name: str, stream: BufferedReader) -> CorpusFormat:
    """Return the first format of this package that recognises a stream."""
    start = _start(name, stream)
    return next(one for one in _own_formats() if one.recognises(start, name))


def _start(name: str, stream: BufferedReader) -> bytes:
    """Return the first bytes of a stream without consuming them."""
    try:
        return stream.peek(LINE_BYTES)[:LINE_BYTES]
    except DAMAGED as error:
        raise damage(name, 0, error) from None


def _names(path: str, archive: zipfile.ZipFile, format: str | None) -> tuple[list[str], str | None]:
    """Return the names of the files in an archive without ``is_junk``, and that of its only file of a format.

    Raises:
        InputError: the archive is a document, or does not contain exactly one file of the format that is named.
    """
    names = [member.filename for member in archive.infolist() if not (member.is_dir() or is_junk(member.filename))]
    if what := office_document(names):
        raise InputError(f"{path}: {what}")
    formats = _own_formats() if format is None else [CORPUS_FORMATS[format]]
    suffixes = [suffix for one in formats for suffix in one.suffixes]
    single = [name for name in names if Path(name).suffix.lower() in suffixes or (format and not suffixes)]
    if format is not None and len(single) != 1:
        raise InputError(
            f"{path}: the archive contains {len(single)} files of the format {format}; available: "
            f"{first_names(names)}; extract one with `rnnsmt corpus unpack`"
        )
    return names, single[0] if len(single) == 1 else None


def _zip_rows(corpus: RawCorpus, archive: zipfile.ZipFile) -> Iterator[Row]:
    (path,) = corpus.paths
    names, single = _names(path, archive, corpus.format)
    if corpus.members is None and single is not None:
        with open_zip_member(archive, path, single) as stream:
            yield from _rows_of_stream(corpus, f"{path}: {single}", stream)
        return
    source, target = _members(corpus, names)
    with (
        open_zip_member(archive, path, source) as source_stream,
        open_zip_member(archive, path, target) as target_stream,
    ):
        names = [f"{path}: {source}", f"{path}: {target}"]
        yield from paired(names, list(map(_member_lines, names, (source_stream, target_stream))))


def _member_lines(name: str, stream: BufferedReader) -> Iterator[bytes]:
    start = _start(name, stream)
    if start.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0")):
        raise InputError(f"{name}: is compressed inside the archive; extract it with `rnnsmt corpus unpack` first")
    refuse_foreign(name, start)
    yield from byte_lines(stream, name)


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
    suffixes = [suffix for one in _own_formats() for suffix in one.suffixes]
    if not pairs and any(Path(name).suffix.lower() in suffixes for name in names):
        raise InputError(
            f"{corpus}: the archive contains several {' or '.join(map(str.upper, CORPUS_FORMATS))} files: "
            f"{first_names(names)}; extract them with `rnnsmt corpus unpack`, and use each as a corpus"
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
