"""Options of the commands that read raw corpora, and the corpora that they describe."""

import argparse
from collections.abc import Mapping, Sequence
from operator import eq
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnsmt.base.io import InputError, read_lines
from rnnsmt.base.options import positive
from rnnsmt.base.progress import say
from rnnsmt.config.corpora import DEFAULT_LANGUAGES, Corpus, corpora_of, files_with_prefix
from rnnsmt.config.corpus_entry import CorpusEntry
from rnnsmt.config.languages import code_mistake, codes_of_yaml, language_of
from rnnsmt.config.sections import Languages

if TYPE_CHECKING:
    from rnnsmt.corpus.bitext_files import RawCorpus

SIDES = ("source", "target")


def add_languages(parser: argparse.ArgumentParser, source: str = "the input files") -> None:
    """Add the options for the languages; ``source`` says where the default is from."""
    for side in SIDES:
        parser.add_argument(
            f"--{side}-lang", metavar="L", help=f"{side} language, two-letter code (ISO 639-1) (default: from {source})"
        )


def add_bitext(parser: argparse.ArgumentParser, required: bool, pair: bool = False) -> None:
    """Add the options for a file with both sides; with ``pair``, also for two files."""
    add = parser.add_argument
    text = "file with source and target text: zip archive, TMX or TSV, or the prefix of two text files"
    if pair:
        text += "; or a source file and a target file"
    add("--bitext", required=required, nargs="+" if pair else None, metavar="FILE", help=text)
    add(
        "--columns",
        nargs=2,
        type=positive,
        default=[1, 2],
        metavar=("S", "T"),
        help="1-based column numbers of source and target in a TSV file",
    )
    add(
        "--members",
        nargs=2,
        metavar=("S", "T"),
        help="names of the source and target files in a zip archive (default: the files whose suffixes are the "
        "language codes)",
    )


def add_output_sides(parser: argparse.ArgumentParser, required: bool) -> None:
    """Add the options for the output files of both sides."""
    for side in SIDES:
        note = "" if required else f"; required with --{side}"
        parser.add_argument(
            f"--output-{side}", required=required, metavar="FILE", help=f"output file: {side} side{note}"
        )


def raw_corpus(args: argparse.Namespace, files: Sequence[str | None]) -> "RawCorpus":
    """Return the corpus that the options describe.

    Args:
        args: the options of ``add_languages`` and ``add_bitext``.
        files: a file with both sides or the prefix of two files; or the files of source and target, of which one may be
            None.
    """
    from rnnsmt.corpus.bitext_files import RawCorpus, languages_of_input

    paths = tuple(file for file in files if file is not None)
    sides = SIDES if len(files) == 1 else [side for side, file in zip(SIDES, files, strict=True) if file is not None]
    options = (args.source_lang, args.target_lang)
    found: Sequence[str | None] = (None, None)
    if len(files) == 2:
        found = [None if file is None else language_of(file) for file in files]
    elif not all(options):
        found = languages_of_input(paths[0], args.members) or found
        if args.members is None and any(map(eq, options, reversed(found))):
            found = found[::-1]  # such a file determines both languages, but not their order
    known = {side: option or lang for side, option, lang in zip(SIDES, options, found, strict=True)}
    if lacking := [f"--{side}-lang" for side in sides if known[side] is None]:
        raise InputError(f"{' and '.join(paths)}: cannot determine the languages; specify {' and '.join(lacking)}")
    langs = tuple(str(known[side]) for side in sides)
    for side, lang in zip(sides, langs, strict=True):
        if wrong := code_mistake(lang):
            raise InputError(f"--{side}-lang {wrong}")
    for what, option, values in (
        ("language", "--source-lang and --target-lang", langs),
        ("column", "--columns", args.columns),
        ("member", "--members", args.members or ()),
    ):
        if len(values) == 2 and values[0] == values[1]:
            raise InputError(f"source and target have the same {what}, {values[0]}; specify two with {option}")
    if len(files) == 1:
        paths = files_with_prefix(paths[0], langs) or paths
    members = None if args.members is None else (args.members[0], args.members[1])
    return RawCorpus(paths, langs, (args.columns[0], args.columns[1]), members)


def sides_to_prepare(args: argparse.Namespace) -> tuple[list[str | None], list[str]]:
    """Return the raw files, see ``raw_corpus``, and the output of each side."""
    files, outputs = [args.source, args.target], [args.output_source, args.output_target]
    if args.bitext is not None:
        if files != [None, None]:
            raise InputError("--bitext cannot be combined with --source or --target")
        if None in outputs:
            raise InputError("--bitext requires --output-source and --output-target")
        return [args.bitext], outputs
    for side, file, output in zip(SIDES, files, outputs, strict=True):
        if (file is None) != (output is None):
            raise InputError(f"--{side} and --output-{side} must be used together")
    if files == [None, None]:
        raise InputError(
            "no input; specify --source, --target or both, or --bitext, with the corresponding --output options"
        )
    return files, [output for output in outputs if output is not None]


def corpora_to_check(args: argparse.Namespace) -> tuple[tuple[str, str], list[Corpus]]:
    """Return the languages and the corpora that the options of `corpus check` or the configuration name."""
    languages: dict[str, Any] = dict(zip(SIDES, DEFAULT_LANGUAGES, strict=True))
    directory = args.data_dir
    if args.config:
        settings = _read_config(args.config)
        entries, directory = _entries_of(settings, args.config), directory or settings.get("data_dir")
        languages |= codes_of_yaml(settings.get("languages") or {})
    else:
        entries = [_entry(text) for text in args.corpus]
        languages |= _languages_of_entries(entries)
    for side in SIDES:
        languages[side] = str(getattr(args, f"{side}_lang") or languages[side])
    listed = corpora_of(entries, Languages(source=languages["source"], target=languages["target"]), directory)
    later = [corpus for corpus in listed if corpus.downloads and not all(map(Path.exists, map(Path, corpus.downloads)))]
    for corpus in later:
        say(f"{corpus.name}: not checked, because the file has not been downloaded yet (see `rnnsmt corpus fetch`)")
    return (languages["source"], languages["target"]), [corpus for corpus in listed if corpus not in later]


def _entries_of(settings: Mapping[str, Any], path: str) -> list[CorpusEntry]:
    """Return the corpora of a configuration, in which other settings may be wrong or missing."""
    from pydantic import TypeAdapter, ValidationError

    from rnnsmt.config.messages import lines_of

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


def _read_config(path: str) -> dict[str, Any]:
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


def _entry(text: str) -> CorpusEntry:
    """Return the entry of ``corpora`` for NAME=ROLE=FILE[=FILE]."""
    name, role, *files = [*text.split("="), ""] if "=" not in text else text.split("=")
    if role not in ("bitext", "mono", "dev", "test") or len(files) not in (1, 2) or (role == "mono" and len(files) > 1):
        raise InputError(
            f"--corpus {text}: must be NAME=ROLE=SOURCE=TARGET or NAME=ROLE=FILE with role bitext, dev or test, or "
            "NAME=mono=TARGET"
        )
    keys = ["source", "target"] if len(files) == 2 else ["target" if role == "mono" else "file"]
    values: dict[str, Any] = {"name": name, "role": role, **dict(zip(keys, files, strict=True))}
    return CorpusEntry(**values)
