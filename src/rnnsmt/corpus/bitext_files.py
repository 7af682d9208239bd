"""The raw text of a corpus: one file for each side, or one file with both sides.

Files with both sides are zip archives as OPUS distributes them, translation memories (TMX) and tables (TSV). The format
is recognised by the first bytes. These formats are read as streams; the memory does not depend on the size of
the file. A zip archive contains one text file for each side, ``Books.en-fr.en`` and ``Books.en-fr.fr``, or one TMX or
TSV file. A first line with the languages or with ``source`` and ``target`` is the header of a table.
"""

import re
import zipfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import permutations
from pathlib import Path

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import DAMAGED, damage, is_junk, office_document, open_text, open_zip, open_zip_member
from rnnsmt.base.progress import say, warn
from rnnsmt.base.reading import byte_lines
from rnnsmt.config.languages import language_name, language_of, language_pair, language_suffix, two_letters
from rnnsmt.corpus.raw_text import LINE_BYTES, Row, paired, read_segments, refuse_foreign
from rnnsmt.corpus.tmx import TmxReader
from rnnsmt.plan.corpora import languages_with_prefix

SHOWN = 5
"""Number of names in a message."""

_XML = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*+(?:<!--(?>.*?-->)\s*+)*+<(?:\?xml|!DOCTYPE|tmx)\b", re.IGNORECASE | re.DOTALL
)
"""Beginning of XML, possibly after comments."""


@dataclass(frozen=True)
class RawCorpus:
    """The raw text of a corpus: one side, two sides, or one file with both sides.

    Attributes:
        paths: file of each side, or the file with both sides once: a zip archive, TMX or TSV. All but zip archives may
            be compressed with gzip, bzip2 or xz.
        langs: code of each side.
        columns: columns of source and target in a TSV file, 1-based.
        members: names of source and target in a zip archive; None: they are selected by their suffixes.
        lines: numbers of the lines that are kept, from 1 on; empty: all lines.
        without_lines: numbers of the lines that are left out.
        shown: names of the files in messages and reports; empty: the paths.
    """

    paths: tuple[str, ...]
    langs: tuple[str, ...]
    columns: tuple[int, int] = (1, 2)
    members: tuple[str, str] | None = None
    lines: Collection[int] = ()
    without_lines: Collection[int] = ()
    shown: tuple[str, ...] = ()

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
            names, single = _names(path, archive)
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
    return TmxReader(name, ("", "")).languages(stream) if _is_xml(name, stream) else None


def is_table(path: str) -> bool:
    """Return whether a file is a TSV file or a zip archive with one: neither text files nor TMX."""
    with open_zip(path) as archive:
        if archive is not None:
            return Path(_names(path, archive)[1] or "").suffix.lower() == ".tsv"
    with open_text(path) as stream:
        return not _is_xml(path, stream)


def names_in_archive(path: str) -> list[str]:
    """Return the names of the files in a zip archive; none for other files."""
    with open_zip(path) as archive:
        return [] if archive is None else _names(path, archive)[0]


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
        yield from TmxReader(name, corpus.langs).rows(stream)
        return
    refuse_foreign(name, _start(name, stream))
    yield from _tsv_rows(name, corpus, stream)


def _is_xml(name: str, stream: BufferedReader) -> bool:
    """Return whether a stream begins with XML, the format of TMX."""
    start = _start(name, stream)
    is_utf16 = start.startswith((b"\xff\xfe", b"\xfe\xff"))
    return bool(_XML.match(start.decode("utf-16", "ignore").encode() if is_utf16 else start))


def _start(name: str, stream: BufferedReader) -> bytes:
    """Return the first bytes of a stream without consuming them."""
    try:
        return stream.peek(LINE_BYTES)[:LINE_BYTES]
    except DAMAGED as error:
        raise damage(name, 0, error) from None


def _names(path: str, archive: zipfile.ZipFile) -> tuple[list[str], str | None]:
    """Return the names of the files in an archive without ``is_junk``, and that of its only TMX or TSV file."""
    names = [member.filename for member in archive.infolist() if not (member.is_dir() or is_junk(member.filename))]
    if what := office_document(names):
        raise InputError(f"{path}: {what}")
    single = [name for name in names if Path(name).suffix.lower() in (".tmx", ".tsv")]
    return names, single[0] if len(single) == 1 else None


def _zip_rows(corpus: RawCorpus, archive: zipfile.ZipFile) -> Iterator[Row]:
    (path,) = corpus.paths
    names, single = _names(path, archive)
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


_HEADINGS = ({"source", "src"}, {"target", "tgt", "trg"})
"""Names of the columns of source and target in a header, in addition to the languages."""

_OF_TEXT = {"", "text", "sentence", "segment", "lang", "language"}
"""Parts of these names."""


def _are_headings(cells: Sequence[bytes], langs: Sequence[str]) -> bool:
    """Return whether cells are the names of the columns of these languages."""
    names = [cell.decode("utf-8", "replace").strip('" #') for cell in cells]
    parts = [[part for part in re.split(r"[\W_]+", name.lower()) if part not in _OF_TEXT] for name in names]
    names = [left[0] if len(left) == 1 else name for name, left in zip(names, parts, strict=True)]
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


def _tsv_rows(name: str, corpus: RawCorpus, stream: BufferedReader) -> Iterator[Row]:
    """Yield two columns of a table without its header; missing columns are empty."""
    columns = corpus.columns
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
        if number == 1 and _are_headings(row, corpus.langs):
            say(f"{name}: line 1 is a header and is not used")
            continue
        if number == 1 and _are_headings(row[::-1], corpus.langs):
            raise InputError(
                f"{name}: the header names the columns in the other order; exchange the languages, or select the "
                f"columns with --columns {columns[1]} {columns[0]}"
            )
        if number == 1 and (others := _other_columns(cells, corpus.langs)):
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
