"""Checks of Snakemake's command line before Snakemake reads the configuration files that it names, and its targets.

Snakemake itself ends with a traceback if a file of ``--configfile`` is missing or not UTF-8, or if ``--directory``
is not writable, and does not report the position of an error in YAML.
"""

import argparse
import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from importlib import import_module
from pathlib import Path

import yaml

from snakemake_logger_plugin_rnnsmt.progress import LAST_FILES, LAST_RULES

MAX_VALUES = 1_000_000
"""Maximum number of values of a configuration file after the expansion of aliases."""


def mistakes(arguments: Sequence[str]) -> list[str]:
    """Return one sentence for every option with a path that cannot be used.

    Args:
        arguments: Snakemake's command line.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", default=[])
    parser.add_argument("--directory", "-d", default=".")
    try:
        options, _ = parser.parse_known_args(list(arguments))
    except argparse.ArgumentError:  # Snakemake reports it
        return []
    lines = [line for path in options.configfile for line in _configfile(path)]
    return lines or list(_directory(Path(options.directory)))


def requests_results(arguments: Sequence[str]) -> bool:
    """Return whether a command line requests the main results: without targets, or with one that is among them.

    Args:
        arguments: Snakemake's command line, which Snakemake has already accepted.
    """
    if not arguments:
        return True
    cli = import_module("snakemake.cli")
    try:
        with redirect_stderr(io.StringIO()):
            options = cli.get_argument_parser().parse_known_args(list(arguments))[0]
    except (SystemExit, cli.CliException):  # the arguments of another program that calls Snakemake
        return True
    requested = [names for names in (options.targets, options.until) if names]
    return not options.omit_from and all(any(map(_is_result, names)) for names in requested)


def _is_result(target: str) -> bool:
    """Return whether a target of Snakemake is one of the main results, or a rule after which they are up to date."""
    path = os.path.relpath(target)
    return LAST_RULES.fullmatch(target) is not None or LAST_FILES.fullmatch(path) is not None


def _configfile(path: str) -> Iterator[str]:
    """Yield a message if a configuration file is invalid."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except FileNotFoundError:
        yield f"--configfile {path}: no such file (the base of relative paths is {Path.cwd()})"
    except OSError as error:
        yield f"--configfile {path}: cannot be read ({error.strerror})"
    except UnicodeDecodeError as error:
        yield f"{path}: not UTF-8 at byte {error.start}; convert it, e.g. with iconv -f {_encoding(path)} -t UTF-8"
    except yaml.MarkedYAMLError as error:
        if _is_json(text):  # indented with tabs, which YAML does not allow
            return
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        yield f"{path}{where}: not valid YAML ({error.problem or error.context}){_tab(text, mark)}"
    except yaml.YAMLError as error:
        yield f"{path}: not valid YAML ({str(error).splitlines()[0]})"
    except RecursionError:
        yield f"{path}: not valid YAML (nested too deeply)"
    else:
        if root is None or not isinstance(root, yaml.MappingNode):
            yield f"{path}: must contain a map at top level (key: value)"
        elif _size(root, {}) > MAX_VALUES:
            yield f"{path}: its aliases (*name) expand to more than {MAX_VALUES:,} values; use fewer aliases"
        else:
            yield from _values(path, text)


def _values(path: str, text: str) -> Iterator[str]:
    """Yield a message if a value of valid YAML cannot be read: a date that does not exist, thousands of digits."""
    try:
        yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        yield f"{path}{where}: {error.problem or error.context}; only maps, lists, strings and numbers are allowed"
    except (ValueError, RecursionError) as error:
        yield f"{path}: a value cannot be read ({error}); quote it if it is a string"


def _encoding(path: str) -> str:
    """Return the encoding that a file which is not UTF-8 probably has."""
    return "UTF-16" if Path(path).read_bytes()[:2] in (b"\xff\xfe", b"\xfe\xff") else "ISO-8859-1"


def _is_json(text: str) -> bool:
    """Return whether a text is JSON with a map at top level."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _tab(text: str, mark: yaml.Mark | None) -> str:
    """Return a hint if the line of an error is indented by tabs."""
    lines = text.splitlines()
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    return "; indent with spaces, not with tabs" if "\t" in line[: len(line) - len(line.lstrip())] else ""


def _size(node: yaml.Node, known: dict[int, float]) -> float:
    """Return the number of values of a node after the expansion of aliases; infinite for a cycle."""
    if id(node) not in known:
        known[id(node)] = float("inf")  # for a node that contains itself; replaced below
        parts = node.value if isinstance(node, (yaml.SequenceNode, yaml.MappingNode)) else []
        children = [child for item in parts for child in (item if isinstance(item, tuple) else (item,))]
        known[id(node)] = 1 + sum(_size(child, known) for child in children)
    return known[id(node)]


def _directory(path: Path) -> Iterator[str]:
    """Create the directory of the run, as Snakemake does; yield a message if it cannot be used."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        yield f"--directory {path}: a file of this name exists, a directory is needed"
    except OSError as error:
        yield f"--directory {path}: cannot be created ({error.strerror}); choose another --directory"
    else:
        if not os.access(path, os.W_OK | os.X_OK):
            yield f"--directory {path}: the directory is not writable; choose another --directory"
