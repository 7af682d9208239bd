"""Set-up of the directory of a run: the configuration file and the profile that ``rnnsmt init`` writes."""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import escape
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import yaml

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.writing import atomic_text
from rnnsmt.config.languages import code_mistake, code_warning, language_of, yaml_code
from rnnsmt.config.sections import Languages
from rnnsmt.plan.corpora import DEFAULT_LANGUAGES, files_with_prefix, similar_file, suffix_warning
from rnnsmt.plan.messages import hint
from rnnsmt.plan.pipeline import pipeline_directory

ROLES = ("bitext", "mono", "dev", "test")

HEAD = """\
# Settings of this run. `rnnsmt run` reads this file; `rnnsmt run --config key=value` overrides it.
# All other settings have defaults; `rnnsmt project settings` lists them.
"""

DEMO = """\
# The corpus is the English-French demo corpus.
demo:
  scale: 1.0
"""

QUICK = """\
# A trial in minutes: small networks and search limits, one tuning run. For the final run, with the whole training text,
# create another directory without --quick.
quick: true
alignment: {aligners: [fast_align]}
"""

OPTIMIZER = """\
# mira had 0.24 more BLEU than mert (the paper's optimizer) on held-out English-French sentences of eight data splits,
# and varied less between tuning runs (benchmarks/tuning.md). For mert, remove `optimizer: mira`.
"""

QUICK_SYSTEMS = ("baseline", "rnn", "cslm", "cslm_rnn")

WITHOUT_NETWORKS = """\
# PyTorch was not installed when this file was written; therefore, only the system without networks is run. For all
# systems, install rnnsmt with the extra `networks`, and remove this line.
compare: [baseline]
"""

WITHOUT_FIGURES = """\
# matplotlib and scikit-learn were not installed when this file was written. For figures, install rnnsmt with the extra
# `figures`, and remove this line.
evaluation: {figures: false}
"""

CHECKED_SEGMENTS = 100
"""Number of segments of a file with both sides that are read as a check."""

PLACEHOLDERS = """\
# Replace the file names with those of your files. Relative paths are relative to the directory of the run.
corpora:
  - {name: train, role: bitext, source: train.en.gz, target: train.fr.gz}
  - {name: dev, role: dev, source: dev.en, target: dev.fr}
  - {name: test, role: test, source: test.en, target: test.fr}
"""


@dataclass(frozen=True)
class CorpusFiles:
    """Files of one corpus: a source and a target file, or one file with both sides; for role ``mono``, a target file.

    ``columns`` and ``members`` locate the sides in a file with both sides, see ``RawCorpus``.
    """

    role: str
    files: tuple[str, ...]
    columns: tuple[int, int] | None = None
    members: tuple[str, str] | None = None

    @property
    def sides(self) -> tuple[str, ...]:
        """Return the sides of the files."""
        if self.role != "mono" and len(self.files) == 1:
            return ("file",)
        return ("source", "target")[-len(self.files) :]


def configuration(
    corpora: Sequence[CorpusFiles],
    languages: Sequence[str],
    demo: bool,
    systems: Sequence[str] | None,
    quick: bool = False,
    run: Path = Path(),
    figures: bool = True,
) -> str:
    """Return the text of a configuration file.

    Args:
        corpora: the corpora; without any, placeholders are written.
        languages: codes of source and target.
        systems: systems in the table; None: PyTorch is not installed.
        run: directory of the run.
        figures: whether matplotlib and scikit-learn are installed.
    """
    parts = [HEAD]
    if demo:
        parts.append(DEMO)
    else:
        parts.append(f"languages:\n  source: {yaml_code(languages[0])}\n  target: {yaml_code(languages[1])}\n")
        parts.append("".join(f"{line}\n" for line in _corpora(corpora, languages, run)) if corpora else PLACEHOLDERS)
    if quick:
        parts.append(QUICK)
    tuning = ([] if demo else ["optimizer: mira"]) + (["runs: 1"] if quick else [])
    if tuning:
        parts.append(f"{'' if demo else OPTIMIZER}tuning: {{{', '.join(tuning)}}}\n")
    if systems is None:
        parts.append(WITHOUT_NETWORKS)
    else:
        parts.append(f"# Systems in the table, in the order of its rows.\ncompare: [{', '.join(systems)}]\n")
    if not figures:
        parts.append(WITHOUT_FIGURES)
    return "\n".join(parts)


def _languages(languages: Sequence[str] | None, corpora: Sequence[CorpusFiles]) -> tuple[tuple[str, str], list[str]]:
    """Return the languages of source and target, and messages about them for the user.

    The languages are taken from the option, from the suffixes of the first pair of files, or from the first file with
    both sides that specifies two languages.
    """
    if languages:
        for code in languages:
            if mistake := code_mistake(code):
                raise InputError(f"--languages: {mistake}")
        return (languages[0], languages[1]), [
            f"warning: {warning}" for warning in _language_warnings(languages, corpora)
        ]
    if not corpora:
        return DEFAULT_LANGUAGES, []
    if pair := next((corpus for corpus in corpora if len(corpus.files) == 2), None):
        return _languages_of_suffixes(corpora, pair), []
    from rnnsmt.corpus.bitext_files import languages_of_input

    for corpus in corpora:
        if corpus.sides == ("file",) and (codes := languages_of_input(corpus.files[0], corpus.members)):
            source, target = codes
            direction = f"for the other direction, add --languages {target} {source}"
            return codes, [f"languages: {source} to {target}, from {corpus.files[0]}; {direction}"]
    names = ", ".join(corpus.files[0] for corpus in corpora)
    raise InputError(f"cannot determine the languages from {names}; add --languages SOURCE TARGET")


def _languages_of_suffixes(corpora: Sequence[CorpusFiles], pair: CorpusFiles) -> tuple[str, str]:
    """Return the languages of the suffixes of a pair of files, see ``_languages``."""
    source, target = map(language_of, pair.files)
    if source is None or target is None:
        raise InputError(
            f"--{pair.role}: cannot determine the languages from the suffixes of {' and '.join(pair.files)}; add "
            "--languages SOURCE TARGET, e.g. en de"
        )
    if source == target:
        raise InputError(
            f"--{pair.role}: the suffixes of {' and '.join(pair.files)} are both {source}; specify a file of each "
            "language, or add --languages SOURCE TARGET"
        )
    if warning := next(_language_warnings((source, target), corpora), None):
        raise InputError(f"{warning}; or add --languages SOURCE TARGET")
    return source, target


def _corpora(corpora: Sequence[CorpusFiles], languages: Sequence[str], run: Path) -> list[str]:
    """Return the lines of ``data_dir`` and ``corpora``.

    ``data_dir`` is relative if it is in the run directory or beside it: if both are moved together, no job runs again.
    """
    if missing := [role for role in ("bitext", "dev", "test") if role not in [corpus.role for corpus in corpora]]:
        split = "" if "bitext" in missing else "; `rnnsmt corpus split` draws both from a corpus"
        raise InputError(f"there is no corpus for {' and '.join(missing)}; add --{' and --'.join(missing)}{split}")
    for corpus in corpora:
        _check_files(corpus, languages)
    directory = os.path.commonpath([_absolute(path).parent for corpus in corpora for path in corpus.files])
    relative = os.path.relpath(directory, _absolute(str(run)))
    shown = relative if Path(relative).parts.count("..") < 2 else directory
    lines = [f"data_dir: {_flow(shown)}", "corpora:"]
    names: set[str] = set()
    for corpus in corpora:
        entry: dict[str, object] = {"name": _name(corpus, names), "role": corpus.role}
        for side, path in zip(corpus.sides, corpus.files, strict=True):
            entry[side] = str(_absolute(path).relative_to(directory))
        if corpus.columns:
            entry["columns"] = list(corpus.columns)
        if corpus.members:
            entry["members"] = dict(zip(("source", "target"), corpus.members, strict=True))
        lines.append(f"  - {_flow(entry)}")
    return lines


def _flow(value: object) -> str:
    """Return a value as one line of YAML, with quotation marks only where YAML requires them."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=sys.maxsize)
    return text.removesuffix("...\n").rstrip("\n")


def _check_files(corpus: CorpusFiles, languages: Sequence[str]) -> None:
    """Check that the files of a corpus exist, and that a single file has both sides or is a prefix of two files."""
    has_both = corpus.sides == ("file",)
    for path in corpus.files:
        if has_both and files_with_prefix(path, languages):
            continue
        if not Path(path).is_file():
            pair = f", and no files {' and '.join(f'{path}.{lang}' for lang in languages)}" if has_both else ""
            near = similar_file(path)
            raise InputError(f"--{corpus.role}: {path}: no such file{pair}{f'; did you mean {near}?' if near else ''}")
        if has_both:
            _check_both_sides(corpus, languages)


def _check_both_sides(corpus: CorpusFiles, languages: Sequence[str]) -> None:
    """Check that the first segments of a file with both sides can be read."""
    from rnnsmt.corpus.bitext_files import RawCorpus

    raw = RawCorpus(corpus.files[:1], tuple(languages), corpus.columns or (1, 2), corpus.members)
    try:
        rows = list(islice(raw.rows(), CHECKED_SEGMENTS))
    except InputError as error:
        raise InputError(f"--{corpus.role}: {error}") from None
    if not rows:
        raise InputError(f"--{corpus.role}: {raw}: contains no segments")


def _absolute(path: str) -> Path:
    """Return an absolute path without ``..``, in which symbolic links are not resolved."""
    return Path(os.path.normpath(Path(path).absolute()))


def _name(corpus: CorpusFiles, taken: set[str]) -> str:
    """Return a name for a corpus, derived from its file name and not in ``taken``; add it to ``taken``."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(corpus.files[-1]).name.split(".")[0]).strip("-_")[:40] or corpus.role
    if corpus.role == "test" and stem == "dev":
        stem = "test"
    name = next(name for n in range(1, len(taken) + 2) if (name := stem if n == 1 else f"{stem}-{n}") not in taken)
    taken.add(name)
    return name


def corpora_of(files: Mapping[str, Sequence[Sequence[StrPath]]]) -> list[CorpusFiles]:
    """Return the corpora with the files of each role, in the order of ``ROLES``."""
    corpora = [CorpusFiles(role, tuple(map(str, paths))) for role in ROLES for paths in files[role]]
    for corpus in corpora:
        if len(corpus.files) > 2:
            raise InputError(
                f"--{corpus.role}: {len(corpus.files)} files; specify one file with both languages, or two files"
            )
    return corpora


def _with_columns_and_members(
    corpora: Sequence[CorpusFiles], columns: Sequence[int] | None, members: Sequence[Sequence[str]]
) -> list[CorpusFiles]:
    """Return corpora, with ``columns`` for TSV files, and each pair of ``members`` for the first archive with both."""
    from rnnsmt.corpus.bitext_files import first_names, has_columns, names_in_archive

    for option, values in (("--columns", columns), *(("--members", pair) for pair in members)):
        if values and values[0] == values[1]:
            raise InputError(f"{option} {values[0]} {values[1]}: source and target are the same")
    done = list(corpora)
    names: dict[int, list[str]] = {}
    has_table = is_missing = False
    for number, corpus in enumerate(corpora):
        if corpus.sides == ("file",):
            path = Path(corpus.files[0])
            if not path.is_file():  # the check of the file reports it, unless it is a prefix
                is_missing |= not any(path.parent.glob(f"{escape(path.name)}.*"))
            elif columns and has_columns(corpus.files[0]):
                done[number], has_table = replace(corpus, columns=(columns[0], columns[1])), True
            elif inside := names_in_archive(corpus.files[0]):
                names[number] = inside
    if columns and not has_table and not is_missing:
        raise InputError("--columns: none of the files is a TSV file")
    for source, target in members:
        archives = [number for number, inside in names.items() if source in inside and target in inside]
        unused = [number for number in archives if done[number].members is None]
        if not unused and is_missing:
            continue
        if not unused:
            available = first_names([name for inside in names.values() for name in inside])
            raise InputError(
                f"--members: no {'further ' if archives else ''}zip archive contains {source} and {target}; available: "
                f"{available}"
            )
        done[unused[0]] = replace(done[unused[0]], members=(source, target))
    return done


CONFIG = "config.yaml"
PROFILE = "profiles/default/config.yaml"
"""Files of the directory of a run. Snakemake uses a profile of this name if it is called in the directory."""


def set_up(
    directory: Path,
    corpora: Sequence[CorpusFiles],
    languages: Sequence[str] | None,
    *,
    columns: Sequence[int] | None,
    members: Sequence[Sequence[str]],
    profile: str,
    demo: bool,
    quick: bool,
    compare: Sequence[str] = (),
) -> list[str]:
    """Write configuration and profile; return messages with the next steps.

    Args:
        languages: codes of source and target; None: determined from the files.
        columns: columns of source and target in TSV files.
        members: names of source and target in zip archives.
        profile: name of the profile.
        demo: use the demo corpus, without files.
        quick: configure a trial in minutes.
        compare: systems in the table; without any, all, or four with ``quick``.
    """
    if demo and (columns or members):
        raise InputError(f"--{'columns' if columns else 'members'} cannot be combined with --demo")
    if demo and (corpora or languages):
        raise InputError("--demo cannot be combined with files or --languages")
    if columns or members:
        corpora = _with_columns_and_members(corpora, columns, members)
    pipeline = pipeline_directory()
    _check_absent(directory / CONFIG, directory / PROFILE)
    has_networks = find_spec("torch") is not None
    codes, notes = _languages(languages, corpora)
    defaults = yaml.safe_load((pipeline / CONFIG).read_text(encoding="utf-8"))
    systems = compare or (QUICK_SYSTEMS if quick else defaults["compare"])
    for name in systems:
        if name not in defaults["systems"]:
            raise InputError(f"--compare: no system {name}; {hint(name, defaults['systems'])}")
    has_figures = all(map(find_spec, ("matplotlib", "sklearn")))
    text = configuration(corpora, codes, demo, systems if has_networks else None, quick, directory, has_figures)
    options = (pipeline / "profiles" / profile / "config.yaml").read_text(encoding="utf-8")
    for name, content in ((CONFIG, text), (PROFILE, options)):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_text(path) as out:
            out.write(content)
    lines = [f"wrote {directory / CONFIG} and {directory / PROFILE}", *notes]
    if not has_networks:
        lines.append("PyTorch is not installed: only the baseline is run (see compare in config.yaml)")
    if not has_figures:
        lines.append("matplotlib or scikit-learn is not installed: figures are omitted (see evaluation in config.yaml)")
    if not demo and not corpora:
        lines.append(f"next: write the names of your files in {directory / CONFIG}")
    cores = "" if profile.startswith("slurm") else " --cores 2"
    enter = f"next: cd {shlex.quote(str(directory))} &&"
    check = [] if demo or not corpora else [f"{enter} rnnsmt corpus check --config {CONFIG}"]
    run = f"rnnsmt run{cores}"
    return [*lines, *check, f"then: {run}" if check else f"{enter} {run}"]


def _language_warnings(languages: Sequence[str], corpora: Sequence[CorpusFiles]) -> Iterator[str]:
    """Yield warnings about unknown codes, and about files whose suffix is the code of another language."""
    for code in languages:
        if warning := code_warning(code):
            yield f"--languages: {warning}"
    source, target = languages
    for corpus in corpora:
        files = [] if corpus.sides == ("file",) else list(zip(corpus.sides, corpus.files, strict=True))
        if warning := suffix_warning(files, Languages(source=source, target=target)):
            yield f"--{corpus.role}: {warning}"


def _check_absent(*paths: Path) -> None:
    for path in paths:
        if path.exists():
            raise InputError(f"{path} exists; choose another directory, or remove the file")
