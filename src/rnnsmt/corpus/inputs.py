"""The raw corpora that the arguments of an operation describe: their files, languages and places in a file."""

from collections.abc import Mapping, Sequence
from operator import eq
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import say
from rnnsmt.base.reading import read_lines
from rnnsmt.config.corpus_entry import CorpusEntry
from rnnsmt.config.languages import code_mistake, codes_of_yaml, language_of
from rnnsmt.config.sections import Languages
from rnnsmt.plan.corpora import DEFAULT_LANGUAGES, Corpus, corpora_of, files_with_prefix

if TYPE_CHECKING:
    from rnnsmt.corpus.bitext_files import RawCorpus

SIDES = ("source", "target")


def raw_corpus(
    files: Sequence[str | None],
    languages: tuple[str | None, str | None],
    columns: Sequence[int],
    members: Sequence[str] | None,
    format: str | None,
    temporary: Path | None = None,
) -> "RawCorpus":
    """Return the corpus that the arguments of an operation describe.

    Args:
        files: a file with both sides or the prefix of two files; or the files of source and target, of which one may be
            None.
        languages: codes of source and target; None: that of the files.
        columns, members, format: see ``RawCorpus``.
        temporary: directory of files with the sentences of lists, which is not part of the names in messages.

    Raises:
        InputError: a language is unknown, source and target have the same language, column or member, or a format is
            named for other files than one with both sides.
    """
    from rnnsmt.corpus.bitext_files import RawCorpus, languages_of_input

    if format is not None and (len(files) > 1 or members is not None):
        raise InputError(
            "--format is that of one file with both sides (--bitext), and cannot be combined with --members"
        )
    paths = tuple(file for file in files if file is not None)
    sides = SIDES if len(files) == 1 else [side for side, file in zip(SIDES, files, strict=True) if file is not None]
    found: Sequence[str | None] = (None, None)
    if len(files) == 2:
        found = [None if file is None else language_of(file) for file in files]
    elif not all(languages):
        found = languages_of_input(paths[0], members, format) or found
        if members is None and any(map(eq, languages, reversed(found))):
            found = found[::-1]  # such a file determines both languages, but not their order
    known = {side: given or lang for side, given, lang in zip(SIDES, languages, found, strict=True)}
    if lacking := [f"--{side}-lang" for side in sides if known[side] is None]:
        raise InputError(f"{' and '.join(paths)}: cannot determine the languages; specify {' and '.join(lacking)}")
    langs = tuple(str(known[side]) for side in sides)
    for side, lang in zip(sides, langs, strict=True):
        if wrong := code_mistake(lang):
            raise InputError(f"--{side}-lang {wrong}")
    for what, option, values in (
        ("language", "--source-lang and --target-lang", langs),
        ("column", "--columns", columns),
        ("member", "--members", members or ()),
    ):
        if len(values) == 2 and values[0] == values[1]:
            raise InputError(f"source and target have the same {what}, {values[0]}; specify two with {option}")
    if len(files) == 1:
        paths = files_with_prefix(paths[0], langs) or paths
        if format is not None and len(paths) > 1:
            raise InputError(
                f"--format {format}: {files[0]} is the prefix of {' and '.join(paths)}, which are text files"
            )
    inside = None if members is None else (members[0], members[1])
    shown = tuple(path.removeprefix(f"{temporary}/") for path in paths)
    return RawCorpus(paths, langs, (columns[0], columns[1]), inside, shown=shown, format=format)


def corpora_to_check(
    entries: Sequence[Mapping[str, Any]],
    config: StrPath | None,
    data_dir: StrPath | None,
    given: tuple[str | None, str | None],
) -> tuple[tuple[str, str], list[Corpus]]:
    """Return the languages and the corpora of a configuration, or of some of its entries, that can be read.

    Args:
        entries: entries of ``corpora``, without a configuration.
        config: file of the configuration.
        data_dir: directory of the corpus files; None: that of the configuration.
        given: languages of source and target; None: those of the configuration or of the files.

    Raises:
        InputError: the configuration or an entry is malformed, or a language is not a code.
    """
    languages: dict[str, Any] = dict(zip(SIDES, DEFAULT_LANGUAGES, strict=True))
    directory = data_dir
    if config is not None:
        settings = _read_config(config)
        listed = _entries_of(settings, config)
        directory = directory or _data_dir(settings.get("data_dir"), Path(config))
        languages |= codes_of_yaml(settings.get("languages") or {})
    else:
        listed = _entries_of({"corpora": [dict(entry) for entry in entries]}, "--corpus")
        languages |= _languages_of_entries(listed)
    for side, lang in zip(SIDES, given, strict=True):
        languages[side] = str(lang or languages[side])
    for side in SIDES:
        if wrong := code_mistake(languages[side]):
            raise InputError(f"{side} language: {wrong}")
    of_run = Languages(source=languages["source"], target=languages["target"])
    corpora = corpora_of(listed, of_run, None if directory is None else str(directory))
    later = [
        corpus for corpus in corpora if corpus.downloads and not all(map(Path.exists, map(Path, corpus.downloads)))
    ]
    for corpus in later:
        say(f"{corpus.name}: not checked, because the file has not been downloaded yet (see `rnnsmt corpus fetch`)")
    return (languages["source"], languages["target"]), [corpus for corpus in corpora if corpus not in later]


def _data_dir(given: str | None, config: Path) -> StrPath | None:
    """Return the directory of the corpora, whose path is relative to the run directory: where ``config.yaml`` is."""
    return config.parent / given if given is not None and config.name == "config.yaml" else given


def _entries_of(settings: Mapping[str, Any], path: StrPath) -> list[CorpusEntry]:
    """Return the corpora of a configuration, in which other settings may be wrong or missing."""
    from pydantic import TypeAdapter, ValidationError

    from rnnsmt.plan.messages import lines_of

    try:
        entries = TypeAdapter(list[CorpusEntry]).validate_python(settings["corpora"])
    except ValidationError as error:
        lines = lines_of([{**one, "loc": ("corpora", *one["loc"])} for one in error.errors()], settings)
        raise InputError(
            f"{path}: corpora must be a list of entries with name, role and files ({'; '.join(lines)}); see "
            "docs/own-data.md"
        ) from None
    for number, entry in enumerate(entries):
        if entry.held_out is not None and entry.held_out.corpus not in (other.name for other in entries):
            raise InputError(f"{path}: corpora[{number}].held_out.corpus: no corpus {entry.held_out.corpus}")
    return entries


def _languages_of_entries(entries: Sequence[CorpusEntry]) -> dict[str, str]:
    """Return the languages given by the suffixes of the files, if they are the same for all pairs of files."""
    files = [(entry.source, entry.target) for entry in entries]
    pairs = {(language_of(source), language_of(target)) for source, target in files if source and target}
    source, target = pairs.pop() if len(pairs) == 1 else (None, None)
    return {"source": source, "target": target} if source and target else {}


def _read_config(path: StrPath) -> dict[str, Any]:
    import yaml

    try:
        settings = yaml.safe_load("\n".join(read_lines(path)))
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
    if not isinstance(settings, dict) or not isinstance(settings.get("corpora"), list):
        raise InputError(f"{path}: contains no list of corpora; see docs/own-data.md")
    if not isinstance(settings.get("languages") or {}, dict):
        raise InputError(f"{path}: languages must be a map, for example {{source: en, target: fr}}")
    return settings


def corpus_entry(text: str) -> dict[str, str]:
    """Return the entry of ``corpora`` for NAME=ROLE=FILE[=FILE].

    Raises:
        ValueError: the text has another form.
    """
    name, role, *files = [*text.split("="), ""] if "=" not in text else text.split("=")
    if role not in ("bitext", "mono", "dev", "test") or len(files) not in (1, 2) or (role == "mono" and len(files) > 1):
        raise ValueError(
            "must be NAME=ROLE=SOURCE=TARGET or NAME=ROLE=FILE with role bitext, dev or test, or NAME=mono=TARGET"
        )
    keys = ["source", "target"] if len(files) == 2 else ["target" if role == "mono" else "file"]
    return {"name": name, "role": role, **dict(zip(keys, files, strict=True))}
