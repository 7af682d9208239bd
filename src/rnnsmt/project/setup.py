"""Set-up of the directory of a run: the configuration file and the profile that ``rnnsmt init`` writes.

The configuration file begins with what a user has to say, the languages and corpora. The other settings follow as in
config.yaml, with its comments, but commented out: they show the defaults without fixing them.
"""

import argparse
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rnnsmt.base.io import InputError, atomic_text
from rnnsmt.plan.corpora import code_mistake, files_with_prefix, language_of, similar_file
from rnnsmt.plan.pipeline import pipeline_directory

ROLES = ("bitext", "mono", "dev", "test")

SET_BY_INIT = ("languages", "data_dir", "corpora")
"""Settings of config.yaml that ``rnnsmt init`` writes itself."""

WITHOUT_NETWORKS = """\
# PyTorch was not installed when this file was written: only the system that needs no network. For the others,
# pip install 'rnnsmt[networks]' and remove this line.
compare: [baseline]
"""

PLACEHOLDERS = """\
# Replace the names by those of your files.
corpora:
  - {name: train, role: bitext, source: train.en.gz, target: train.fr.gz}
  - {name: dev, role: dev, source: dev.en, target: dev.fr}
  - {name: test, role: test, source: test.en, target: test.fr}
"""


@dataclass(frozen=True)
class CorpusFiles:
    """Files of one corpus: those of source and target, or one with both; for the role ``mono``, that of the target."""

    role: str
    files: tuple[str, ...]

    @property
    def sides(self) -> tuple[str, ...]:
        """Return the sides of the files."""
        if self.role != "mono" and len(self.files) == 1:
            return ("file",)
        return ("source", "target")[-len(self.files) :]


def configuration(
    defaults: str,
    corpora: Sequence[CorpusFiles],
    languages: Sequence[str] | None,
    demo: bool,
    has_networks: bool,
) -> str:
    """Return the text of a configuration file.

    Args:
        defaults: text of config.yaml.
        corpora: the corpora; without any, those of the embedded corpus or placeholders are written.
        languages: codes of source and target; None: those that the suffixes of the files say.
        demo: whether the corpus is the embedded one.
        has_networks: whether PyTorch is installed.

    Raises:
        InputError: a role is missing, a file does not exist, or the languages are not known.
    """
    blocks = _blocks(defaults)
    lines = [
        "# Settings of this run. `rnnsmt run` reads this file; `rnnsmt run --config key=value` overrides it.",
        "# Settings that are commented out have the values shown; remove the # to change one.",
        "",
    ]
    if demo:
        lines += ["# The corpus is the embedded English-French one.", *blocks.pop("demo").splitlines(), ""]
    else:
        codes = _languages(languages, corpora) if corpora or languages else ("en", "fr")
        lines += [*_comments(blocks["languages"]), "languages:", f"  source: {codes[0]}", f"  target: {codes[1]}", ""]
        if corpora:
            lines += [*_comments(blocks["data_dir"]), *_corpora(corpora, codes, _comments(blocks["corpora"])), ""]
        else:
            lines += [
                *blocks["data_dir"].splitlines(),
                "",
                *_comments(blocks["corpora"]),
                *PLACEHOLDERS.splitlines(),
                "",
            ]
    if not has_networks:
        lines += [*WITHOUT_NETWORKS.splitlines(), ""]
    for key, block in blocks.items():
        if key not in SET_BY_INIT:
            lines += [*_commented_out(block), ""]
    return "\n".join(lines)


def _blocks(defaults: str) -> dict[str, str]:
    """Return the settings of config.yaml by key, each with the comments above it."""
    found: dict[str, str] = {}
    for paragraph in re.split(r"\n\n+", defaults.strip()):
        if key := re.search(r"^(\w+):", paragraph, re.M):
            found[key[1]] = paragraph
    return found


def _comments(block: str) -> list[str]:
    """Return the comments above a setting."""
    return [line for line in block.splitlines() if line.startswith("#")]


def _commented_out(block: str) -> Iterator[str]:
    """Yield the lines of a setting with ``#`` before those that are no comment yet."""
    for line in block.splitlines():
        yield line if line.startswith("#") else f"#{line}"


def _languages(languages: Sequence[str] | None, corpora: Sequence[CorpusFiles]) -> tuple[str, str]:
    """Return the languages of both sides, by the option or by the suffixes of the first pair of files."""
    if languages:
        for code in languages:
            if mistake := code_mistake(code):
                raise InputError(f"--languages: {mistake}")
        return languages[0], languages[1]
    pair = next((corpus.files for corpus in corpora if len(corpus.files) == 2), ())
    source, target = [*map(language_of, pair), None, None][:2]
    if source is None or target is None or source == target:
        raise InputError("the names of the files do not say their languages; add --languages SOURCE TARGET, e.g. en de")
    return source, target


def _corpora(corpora: Sequence[CorpusFiles], languages: Sequence[str], comments: Sequence[str]) -> list[str]:
    """Return the lines of ``data_dir`` and ``corpora``."""
    if missing := [role for role in ("bitext", "dev", "test") if role not in [corpus.role for corpus in corpora]]:
        raise InputError(f"there is no corpus for {' and '.join(missing)}; add --{' and --'.join(missing)}")
    for corpus in corpora:
        for path in corpus.files:
            if not Path(path).is_file() and (corpus.sides != ("file",) or not files_with_prefix(path, languages)):
                near = similar_file(path)
                raise InputError(f"--{corpus.role}: {path}: no such file{f'; did you mean {near}?' if near else ''}")
    folder = os.path.commonpath([_absolute(path).parent for corpus in corpora for path in corpus.files])
    lines = [f"data_dir: {json.dumps(folder, ensure_ascii=False)}", "", *comments, "corpora:"]
    names: set[str] = set()
    for corpus in corpora:
        entry: dict[str, str] = {"name": _name(corpus, names), "role": corpus.role}
        for side, path in zip(corpus.sides, corpus.files, strict=True):
            entry[side] = str(_absolute(path).relative_to(folder))
        lines.append("  - " + json.dumps(entry, ensure_ascii=False))
    return lines


def _absolute(path: str) -> Path:
    """Return an absolute path without ``..``, in which symbolic links keep their names."""
    return Path(os.path.normpath(Path(path).absolute()))


def _name(corpus: CorpusFiles, taken: set[str]) -> str:
    """Return a name for a corpus by that of its file, unique among those ``taken``, to which it is added."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(corpus.files[-1]).name.split(".")[0]).strip("-_")[:40] or corpus.role
    if corpus.role == "test" and stem == "dev":
        stem = "test"
    name = next(name for n in range(1, len(taken) + 2) if (name := stem if n == 1 else f"{stem}-{n}") not in taken)
    taken.add(name)
    return name


def corpora_of(options: Mapping[str, Sequence[Sequence[str]] | None]) -> list[CorpusFiles]:
    """Return the corpora of the options ``--bitext``, ``--mono``, ``--dev`` and ``--test``, in this order.

    Raises:
        InputError: an option has more than two files.
    """
    given = [CorpusFiles(role, tuple(files)) for role in ROLES for files in options.get(role) or []]
    for corpus in given:
        if len(corpus.files) > 2:
            raise InputError(f"--{corpus.role}: {len(corpus.files)} files; give one file with both sides, or two files")
    return given


CONFIG = "config.yaml"
PROFILE = "profiles/default/config.yaml"
"""Files of the directory of a run. Snakemake finds a profile of this name by itself, if it is called there."""


def set_up(args: argparse.Namespace) -> list[str]:
    """Write configuration and profile; return lines about what to do next.

    Args:
        args: options of ``rnnsmt init``.

    Raises:
        InputError: the options contradict each other, a file is missing, or the directory has been set up already.
    """
    corpora = corpora_of({role: getattr(args, role) for role in ROLES})
    if args.demo and (corpora or args.languages):
        raise InputError("--demo: the embedded corpus needs neither files nor --languages")
    directory, pipeline = Path(args.directory), pipeline_directory()
    for name in (CONFIG, PROFILE):
        if (directory / name).exists():
            raise InputError(f"{directory / name} exists; choose another directory, or remove the file")
    has_networks = find_spec("torch") is not None
    text = configuration(
        (pipeline / CONFIG).read_text(encoding="utf-8"), corpora, args.languages, args.demo, has_networks
    )
    profile = (pipeline / "profiles" / args.profile / "config.yaml").read_text(encoding="utf-8")
    for name, content in ((CONFIG, text), (PROFILE, profile)):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_text(path) as out:
            out.write(content)
    lines = [f"wrote {directory / CONFIG} and {directory / PROFILE}"]
    if not has_networks:
        lines.append("PyTorch is not installed: only the baseline is run (see compare in config.yaml)")
    if not args.demo and not corpora:
        lines.append(f"next: write the names of your files in {directory / CONFIG}")
    cores = "" if args.profile.startswith("slurm") else " --cores 2"
    return [*lines, f"next: cd {directory} && rnnsmt run{cores}"]
