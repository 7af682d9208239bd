"""The corpora of a configuration, and checks of their files before anything runs.

``Corpus`` provides what the rules of the workflow need to know about an entry of ``corpora``. The checks do not read
any text, except to compare two files of equal size.
"""

import difflib
import filecmp
import hashlib
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rnnsmt.base.languages import COMPRESSED, TWO_LETTERS, language_suffix

SEPARATED = "results/corpus/separated"
"""Directory of the sides of corpora that are one file."""

EMBEDDED = "results/demo/"
"""Directory in which the embedded corpus is generated."""

CODES = frozenset(TWO_LETTERS.values())


@dataclass(frozen=True)
class BothSides:
    """A file with both sides of a corpus: a zip archive, TMX or TSV, read by ``rnnsmt corpus separate``."""

    path: str
    columns: tuple[int, int] | None
    members: tuple[str, str] | None

    def options(self) -> str:
        """Return the options of ``rnnsmt corpus separate`` that select the sides."""
        given = (("--columns", self.columns), ("--members", self.members))
        return " ".join(f"{name} {shlex.join(map(str, values))}" for name, values in given if values)


@dataclass(frozen=True)
class Corpus:
    """One entry of ``corpora``: name, role, files (None for a missing side) and selection settings.

    If the corpus is one ``file`` with both sides, ``source`` and ``target`` are the files that they are written to.
    """

    name: str
    role: str
    source: str | None
    target: str
    reference: str | None
    """Raw text of the target side, where sacreBLEU's reference is not made from ``target``."""
    file: BothSides | None
    in_domain: bool
    keep: str | float | None
    downloads: Mapping[str, Mapping[str, Any]]
    """Download instructions by path of the downloaded file."""
    members: Mapping[str, tuple[str, str]]
    """Files extracted from downloaded archives, by path: the archive and the path inside it."""

    @property
    def is_bitext(self) -> bool:
        """Return whether the corpus has a source side."""
        return self.source is not None


def corpora(config: Mapping[str, Any]) -> dict[str, Corpus]:
    """Return the corpora of a checked configuration by name, with paths relative to ``data_dir``."""
    return {corpus.name: corpus for corpus in corpora_listed(config)}


def corpora_listed(config: Mapping[str, Any]) -> list[Corpus]:
    """Return the corpora of a configuration in order; their names may not be unique yet."""
    return [_corpus(entry, config) for entry in config["corpora"]]


def _corpus(entry: Mapping[str, Any], config: Mapping[str, Any]) -> Corpus:
    """Return one corpus, with its files in ``data_dir``; other files are downloaded if the entry says how."""
    folder: str | None = config["data_dir"]
    downloads: dict[str, Any] = {}
    members: dict[str, tuple[str, str]] = {}

    def place(side: str) -> str | None:
        if side not in entry:
            return None
        fetched = entry.get("download", {}).get(side)
        here = str(entry[side] if folder is None else Path(folder) / entry[side])
        if fetched is None or (folder is not None and Path(here).exists()):
            return here
        path = _own_path("results/downloads", fetched["url"])
        downloads[path] = fetched
        if "member" not in fetched:
            return path
        unpacked = _own_path("results/unpacked", fetched["url"], fetched["member"])
        members[unpacked] = (path, fetched["member"])
        return unpacked

    source, target, file = place("source"), place("target"), None
    if (path := place("file")) is not None:
        langs = [config["languages"][side] for side in ("source", "target")]
        pair = files_with_prefix(path, langs)
        if pair is not None:
            source, target = pair
        else:
            columns, inside = entry.get("columns"), entry.get("members")
            file = BothSides(
                path,
                None if columns is None else (columns[0], columns[1]),
                None if inside is None else (inside["source"], inside["target"]),
            )
            source, target = (f"{SEPARATED}/{entry['name']}.{lang}.gz" for lang in langs)
    return Corpus(
        name=entry["name"],
        role=entry["role"],
        source=source,
        target=str(target),
        reference=place("reference"),
        file=file,
        in_domain=is_in_domain(entry),
        keep=entry.get("keep"),
        downloads=downloads,
        members=members,
    )


def files_with_prefix(prefix: str, langs: Sequence[str]) -> tuple[str, str] | None:
    """Return the files ``PREFIX.en`` and ``PREFIX.fr``, the form of Moses' ``--corpus``; they may be compressed.

    Three-letter codes as suffixes are found, too (``PREFIX.eng``, the form of mtdata).

    Returns:
        The files of source and target; None if there is a file of this name itself, or if a side does not exist.
    """
    if Path(prefix).exists():
        return None
    found = [
        next((path for end in _suffixes(lang) if Path(path := f"{prefix}.{end}").is_file()), None) for lang in langs
    ]
    return None if found[0] is None or found[1] is None else (found[0], found[1])


def _suffixes(lang: str) -> list[str]:
    """Return the suffixes of files of a language: its codes, each alone or with that of a compression."""
    codes = [lang, *(code for code, two in TWO_LETTERS.items() if two == lang)]
    return [code + end for code in codes for end in ("", *COMPRESSED)]


def _own_path(folder: str, *source: str) -> str:
    """Return a path for a downloaded file or an archive member in a directory of its own.

    Different sources may have files of the same name, so that the directory name is a hash of the address (and of the
    path inside the archive). The query part of an address is not included in the file name.
    """
    key = hashlib.sha256("\n".join(source).encode()).hexdigest()[:10]
    name = (urlsplit(source[-1]).path if len(source) == 1 else source[-1]).rsplit("/", 1)[-1]
    return f"{folder}/{key}/{name or 'file'}"


def is_in_domain(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of ``corpora`` is in-domain text; by default, dev corpora are."""
    return bool(entry.get("in_domain", entry["role"] == "dev"))


def files_of(corpus: Corpus) -> list[tuple[str, str]]:
    """Return the sides of a corpus with their files; the side of a file that contains both is ``file``."""
    if corpus.file is not None:
        return [("file", corpus.file.path)]
    sides = [("source", corpus.source), ("target", corpus.target)]
    return [(side, path) for side, path in sides if path is not None]


def input_files(corpus: Corpus) -> list[tuple[str, str]]:
    """Return the files of a corpus: those of its sides, and ``reference`` if it has one."""
    return files_of(corpus) + ([] if corpus.reference is None else [("reference", corpus.reference)])


def file_mistakes(corpora: Sequence[Corpus]) -> Iterator[str]:
    """Yield one line for every existing file that cannot be used; only files of equal size are compared.

    A text for tuning or tests must not be that of another role.
    """
    for number, corpus in enumerate(corpora):
        where = f"corpora[{number}] ({corpus.name})"
        for _, path in input_files(corpus):
            if Path(path).is_dir():
                yield f"{where}: {path} is a directory, a file is needed"
            elif Path(path).is_file() and not Path(path).stat().st_size:
                yield f"{where}: {path} is empty"
        if corpus.source is not None and corpus.file is None and _same_file(corpus.source, corpus.target):
            yield f"{where}: source and target are the same text, {corpus.target}"
            continue
        for earlier in corpora[:number]:
            if earlier.role == corpus.role or not {earlier.role, corpus.role} & {"dev", "test"}:
                continue
            others = dict(files_of(earlier))
            for side, path in files_of(corpus):
                if side in others and _same_file(path, others[side]):
                    yield (
                        f"{where}: its {side} text is also that of {earlier.name} ({earlier.role}), {path}; text for "
                        "tuning and tests must not be used elsewhere"
                    )


def _same_file(path: str, other: str) -> bool:
    """Return whether two paths refer to the same file or to files with equal contents."""
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    if not (Path(path).is_file() and Path(other).is_file()):
        return False
    return 0 < Path(path).stat().st_size == Path(other).stat().st_size and filecmp.cmp(path, other, shallow=False)


def is_prepared(corpus: Corpus) -> bool:
    """Return whether the run in this directory has prepared a corpus already."""
    return Path(f"results/corpus/tokenized/{corpus.name}.report.json").exists()


def missing_files(corpora: Sequence[Corpus], data_dir: str | None) -> Iterator[str]:
    """Yield one line for every file that does not exist and that no rule makes, with a file of a similar name.

    A corpus that is prepared already does not need its files.
    """
    for number, corpus in enumerate(corpora):
        if is_prepared(corpus):
            continue
        for side, path in input_files(corpus):
            if path.startswith("results/") or os.path.lexists(path):
                continue
            near = similar_file(path)
            folder = Path(path).parent
            if near is not None:
                hint = f"did you mean {near}?"
            elif data_dir is None and not Path(path).is_absolute():
                hint = f"set data_dir to the directory of the corpora (now {Path.cwd()})"
            elif not folder.is_dir():
                hint = f"there is no directory {folder}"
            else:
                hint = "check the name and data_dir"
            yield f"corpora[{number}] ({corpus.name}): {side}: {path} does not exist; {hint}"


def similar_file(path: str) -> str | None:
    """Return the name of a file in the same directory that may be meant; None if there is none.

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
    plain = name.lower()
    return plain[: plain.rindex(".")] if plain.endswith(COMPRESSED) else plain


def language_warnings(corpora: Sequence[Corpus], languages: Mapping[str, str]) -> Iterator[str]:
    """Yield one line for every corpus with a file whose suffix is the code of another language, e.g. ``train.de``.

    Args:
        corpora: the corpora.
        languages: code of ``source`` and of ``target``.
    """
    for number, corpus in enumerate(corpora):
        if corpus.file is not None:
            continue
        codes = {side: language_of(path) or languages[side] for side, path in files_of(corpus)}
        wrong = [f"{side} {Path(path).name}" for side, path in files_of(corpus) if codes[side] != languages[side]]
        if not wrong:
            continue
        where = f"corpora[{number}] ({corpus.name}): {' and '.join(wrong)}"
        meant = {**languages, **codes}
        if (meant["source"], meant["target"]) == (languages["target"], languages["source"]):
            remedy = "if source and target are swapped, exchange them"
        elif meant["source"] == meant["target"]:
            remedy = "if this is the wrong file, correct its name"
        else:
            remedy = f"if so, write languages: {{source: {meant['source']}, target: {meant['target']}}}"
        yield (
            f"{where}: the suffix says another language than languages: {{source: {languages['source']}, "
            f"target: {languages['target']}}}; {remedy}"
        )


def language_of(path: str) -> str | None:
    """Return the two-letter code of the language that the suffix of a file says; None if it says none."""
    code = language_suffix(path)
    return code if code in CODES else None
