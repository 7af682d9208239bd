"""The corpora of a configuration and their languages, and checks of their files before a run.

``Corpus`` contains the data of an entry of ``corpora`` that the rules of the workflow require. The checks do not read
any text.
"""

import difflib
import hashlib
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from rnnsmt.config.corpus_entry import CorpusEntry, Download
from rnnsmt.config.languages import (
    CODES,
    COMPRESSED,
    NAMES,
    code_warning,
    language_of,
    language_pair,
    two_letters,
    without_region,
)
from rnnsmt.config.sections import Languages

SEPARATED = "results/corpus/separated"
"""Directory of the two sides of corpora whose input is one file with both, or lines of another corpus."""

DEFAULT_LANGUAGES = ("en", "fr")
"""Languages of source and target of a configuration without ``languages``: those of the paper and the demo corpus."""

FEW_LINES = 100
"""Number of pairs below which the scores of a dev or test set are reported as unreliable."""

DEMO_DIRECTORY = "results/demo/"
"""Directory to which the demo corpus is written."""


@dataclass(frozen=True)
class Separated:
    """Inputs and options of ``rnnsmt corpus separate``, which writes the two sides of a corpus.

    Attributes:
        paths: a file with both sides (zip archive, TMX or TSV), or the files of source and target.
        columns: columns of source and target in a TSV file; None: the default.
        members: names of source and target in a zip archive; None: the default.
        lines: numbers of the lines of a set that is held out of training text; empty: all lines.
        without_lines: numbers of the lines of training text that are held out.
        format: format of a file with both sides; None: it is recognised.
    """

    paths: tuple[str, ...]
    columns: tuple[int, int] | None = None
    members: tuple[str, str] | None = None
    lines: tuple[int, ...] = ()
    without_lines: tuple[int, ...] = ()
    format: str | None = None

    def options(self) -> str:
        """Return the options of ``rnnsmt corpus separate`` that select sides and lines."""
        names = ("columns", "members", "lines", "without_lines")
        options = ((f"--{name.replace('_', '-')}", getattr(self, name)) for name in names)
        chosen = [f"{name} {shlex.join(map(str, values))}" for name, values in options if values]
        return " ".join([*chosen, *([f"--format {shlex.quote(self.format)}"] if self.format else [])])


@dataclass(frozen=True)
class Corpus:
    """One entry of ``corpora``: name, role, files (None for a missing side) and selection settings.

    If ``separated`` is not None, ``source`` and ``target`` are the files that ``rnnsmt corpus separate`` writes.
    """

    name: str
    role: str
    source: str | None
    target: str
    reference: str | None
    """Raw text of the target side, if sacreBLEU's reference is not created from ``target``."""
    separated: Separated | None
    in_domain: bool
    keep: str | float | None
    check: bool
    """Whether the first lines are checked before the corpus is prepared."""
    downloads: Mapping[str, Download]
    """Download instructions by path of the downloaded file."""
    members: Mapping[str, tuple[str, str]]
    """Files extracted from downloaded archives, by path: the archive and the path inside it."""


def corpora_of(entries: Sequence[CorpusEntry], languages: Languages, data_dir: str | None) -> list[Corpus]:
    """Return the corpora of a configuration, with paths that begin with ``data_dir``.

    Raises:
        KeyError: there is no corpus with the name in ``held_out``.
    """
    return [_corpus(entry, entries, (languages.source, languages.target), data_dir) for entry in entries]


def _corpus(entry: CorpusEntry, entries: Sequence[CorpusEntry], langs: Sequence[str], data_dir: str | None) -> Corpus:
    """Return one corpus, with files in ``data_dir``; a file that is missing there may be declared as a download."""
    held_out = entry.held_out
    given = entry if held_out is None else {one.name: one for one in entries}[held_out.corpus]
    downloads: dict[str, Download] = {}
    members: dict[str, tuple[str, str]] = {}

    def place(side: Literal["source", "target", "file", "reference"]) -> str | None:
        name: str | None = getattr(given, side)
        if name is None:
            return None
        fetched: Download | None = getattr(given.download, side, None)
        if is_address(name) or is_address(data_dir):
            return name if is_address(name) else f"{str(data_dir).rstrip('/')}/{name}"
        local_path = name if data_dir is None else str(Path(data_dir) / name)
        if fetched is None or (data_dir is not None and Path(local_path).exists()):
            return local_path
        path = _own_path("results/downloads", fetched.url)
        downloads[path] = fetched
        if fetched.member is None:
            return path
        unpacked = _own_path("results/unpacked", fetched.url, fetched.member)
        members[unpacked] = (path, fetched.member)
        return unpacked

    source, target, file = place("source"), place("target"), place("file")
    if file is not None and (pair := files_with_prefix(file, langs)) is not None:
        source, target, file = *pair, None
    lines = () if held_out is None else tuple(held_out.lines)
    without_lines = tuple(_lines_held_out(entry.name, entries))
    separated = None
    if file is not None or lines or without_lines:
        separated = Separated(
            (str(source), str(target)) if file is None else (file,),
            given.columns,
            None if given.members is None else (given.members.source, given.members.target),
            lines,
            without_lines,
            given.format if file is not None else None,
        )
        source, target = (f"{SEPARATED}/{entry.name}.{lang}.gz" for lang in langs)
    return Corpus(
        name=entry.name,
        role=entry.role,
        source=source,
        target=str(target),
        reference=place("reference"),
        separated=separated,
        in_domain=is_in_domain(entry),
        keep=entry.keep,
        check=entry.check,
        downloads=downloads,
        members=members,
    )


def is_address(path: str | None) -> bool:
    """Return whether a path is an address of a file in remote storage, which Snakemake reads (``s3://bucket/file``)."""
    return path is not None and "://" in path


def _lines_held_out(name: str, entries: Sequence[CorpusEntry]) -> list[int]:
    """Return the numbers of the lines of a corpus that are dev or test sets, in increasing order."""
    sets = (entry.held_out for entry in entries)
    return sorted(line for held_out in sets if held_out and held_out.corpus == name for line in held_out.lines)


def files_with_prefix(prefix: str, langs: Sequence[str]) -> tuple[str, str] | None:
    """Return the files ``PREFIX.en`` and ``PREFIX.fr``, as for Moses' ``--corpus``; they may be compressed.

    The suffix may also be a three-letter code (``PREFIX.eng``, as by mtdata), or a code with a region
    (``PREFIX.pt_BR``) if there is exactly one such file of a language. Shorter suffixes are preferred.

    Returns:
        The files of source and target; None if there is a file of this name itself, or if a side does not exist.
    """
    if is_address(prefix) or Path(prefix).exists():
        return None
    ends = _ends(Path(prefix))
    source, target = (_end_of_language(ends, lang) for lang in langs)
    return None if source is None or target is None else (f"{prefix}.{source}", f"{prefix}.{target}")


def _end_of_language(ends: Sequence[str], lang: str) -> str | None:
    """Return the suffix of the file of a language; None if there is none.

    A suffix without a region (``pt``) is preferred; one with a region (``pt_BR``) must be the only one.
    """
    found = sorted((end for end in ends if two_letters(_uncompressed(end)) == lang), key=lambda end: (len(end), end))
    plain = [end for end in found if without_region(_uncompressed(end)) == _uncompressed(end)]
    if plain:
        return plain[0]
    return found[0] if len(found) == 1 else None


def _ends(prefix: Path) -> list[str]:
    """Return the parts after ``PREFIX.`` of the names of all files that begin with it, in its directory."""
    start = f"{prefix.name}."
    try:
        entries = [entry for entry in os.scandir(prefix.parent) if entry.name.startswith(start) and entry.is_file()]
    except OSError:
        return []
    return [entry.name.removeprefix(start) for entry in entries]


def languages_with_prefix(prefix: str) -> tuple[str, str] | None:
    """Return the languages of the files ``PREFIX.en`` and ``PREFIX.fr``; None if there are not two languages."""
    path = Path(prefix)
    return language_pair({two_letters(_uncompressed(end)) for end in _ends(path)} & CODES, path.name)


def _own_path(directory: str, *source: str) -> str:
    """Return a path for a downloaded file or an archive member in a separate directory.

    Different sources may have files of the same name, so the directory name is a hash of the address (and of the
    path inside the archive). The query part of an address is not included in the file name.
    """
    key = hashlib.sha256("\n".join(source).encode()).hexdigest()[:10]
    name = (urlsplit(source[-1]).path if len(source) == 1 else source[-1]).rsplit("/", 1)[-1]
    return f"{directory}/{key}/{name or 'file'}"


def is_in_domain(entry: CorpusEntry) -> bool:
    """Return whether an entry of ``corpora`` is in-domain text; by default, dev corpora are."""
    return entry.role == "dev" if entry.in_domain is None else entry.in_domain


def is_held_out(corpus: Corpus) -> bool:
    """Return whether a corpus is a set of lines of a corpus of training text."""
    return corpus.separated is not None and bool(corpus.separated.lines)


def files_of(corpus: Corpus) -> list[tuple[str, str]]:
    """Return side and file for each input file of a corpus; the side of a file with both sides is ``file``."""
    if corpus.separated is not None:
        paths = corpus.separated.paths
        return list(zip(("source", "target") if len(paths) == 2 else ("file",), paths, strict=True))
    sides = [("source", corpus.source), ("target", corpus.target)]
    return [(side, path) for side, path in sides if path is not None]


def input_files(corpus: Corpus) -> list[tuple[str, str]]:
    """Return side and file for each input file of a corpus, including its ``reference`` if it has one."""
    return files_of(corpus) + ([] if corpus.reference is None else [("reference", corpus.reference)])


def file_mistakes(corpora: Sequence[Corpus]) -> Iterator[str]:
    """Yield one line for every file that is used for both sides, or for a dev or test set and another role.

    Sets that are held-out lines of training text are not checked.
    """
    given = [(number, corpus) for number, corpus in enumerate(corpora) if not is_held_out(corpus)]
    for place, (number, corpus) in enumerate(given):
        where = f"corpora[{number}] ({corpus.name})"
        sides = dict(files_of(corpus))
        if "source" in sides and _same_file(sides["source"], sides["target"]):
            yield f"{where}: source and target are the same text, {sides['target']}"
            continue
        for _, earlier in given[:place]:
            if earlier.role == corpus.role or not {earlier.role, corpus.role} & {"dev", "test"}:
                continue
            others = dict(files_of(earlier))
            for side, path in sides.items():
                if side in others and _same_file(path, others[side]):
                    text = "text" if side == "file" else f"{side} text"
                    yield (
                        f"{where}: its {text} is also that of {earlier.name} ({earlier.role}), {path}; text for tuning "
                        "and tests must not be used for other roles"
                    )


def _same_file(path: str, other: str) -> bool:
    if is_address(path) or is_address(other):
        return path == other
    return os.path.realpath(path) == os.path.realpath(other)


def missing_files(corpora: Sequence[Corpus], data_dir: str | None) -> Iterator[str]:
    """Yield one line for every file that does not exist and that no rule creates; suggest a file with a similar name.

    The files of a corpus that has already been prepared are not required.
    """
    for number, corpus in enumerate(corpora):
        if Path(f"results/corpus/tokenized/{corpus.name}.report.json").exists():
            continue
        for side, path in input_files(corpus):
            # a rule writes the demo corpus and downloads; Snakemake looks for the files of a storage
            if path.startswith("results/") or is_address(path) or os.path.lexists(path):
                continue
            near = similar_file(path)
            hint = f"did you mean {near}?" if near else f"check the name and data_dir (now {data_dir or Path.cwd()})"
            yield f"corpora[{number}] ({corpus.name}): {side}: {path} does not exist; {hint}"


def similar_file(path: str) -> str | None:
    """Return the name of a file in the same directory that may have been intended; None if there is none.

    The same name with other upper and lower case or another compression is preferred over a similar name.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(Path(path).parent) if entry.is_file())
    except OSError:
        return None
    name = Path(path).name
    same = [other for other in names if _plain_name(other) == _plain_name(name)]
    return next(iter(same or difflib.get_close_matches(name, names, 1, 0.8)), None)


def _plain_name(name: str) -> str:
    """Return a file name in lower case without the suffix of a compression."""
    return _uncompressed(name).lower()


def _uncompressed(name: str) -> str:
    return name[: name.rindex(".")] if name.lower().endswith(COMPRESSED) else name


def language_warnings(corpora: Sequence[Corpus], languages: Languages) -> Iterator[str]:
    """Yield one line for every unknown language code, and for every corpus with a file suffix of another language."""
    for side, code in vars(languages).items():
        if warning := code_warning(code):
            yield f"languages.{side}: {warning}"
    for number, corpus in enumerate(corpora):
        if corpus.separated is not None and len(corpus.separated.paths) == 1:
            continue
        if warning := suffix_warning(files_of(corpus), languages):
            yield f"corpora[{number}] ({corpus.name}): {warning}"


def suffix_warning(files: Sequence[tuple[str, str]], languages: Languages) -> str | None:
    """Return a warning if the suffix of a corpus file is the code of another language, otherwise None.

    Args:
        files: sides and their files.
        languages: the languages of the sides.
    """
    wrong = [
        f"the suffix of the {side} file {Path(path).name} is {code} ({NAMES[code]}), but languages.{side} is {lang}"
        for side, path in files
        if (code := language_of(path)) is not None and code != (lang := vars(languages)[side])
    ]
    remedy = "correct languages, exchange source and target, or specify another file"
    return f"{', and '.join(wrong)}; {remedy}" if wrong else None
