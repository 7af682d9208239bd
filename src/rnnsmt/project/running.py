"""Snakemake with the workflow of this package: ``rnnsmt run``."""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import yaml

from rnnsmt import base
from rnnsmt.base.errors import InputError
from rnnsmt.base.progress import say
from rnnsmt.base.reading import read_json
from rnnsmt.config.languages import codes_of_yaml
from rnnsmt.plan.pipeline import pipeline_directory
from rnnsmt.project.setup import CONFIG, PROFILE


def run_workflow(arguments: Sequence[str]) -> None:
    """Replace this process by Snakemake, or run it as a child of a Python program.

    Args:
        arguments: options and targets for Snakemake.

    Raises:
        subprocess.CalledProcessError: the child ended with an error.
    """
    if find_spec("snakemake") is None:
        raise InputError("Snakemake is not installed; run `pip install snakemake`")
    words = [sys.executable, "-m", "snakemake", *command_line(arguments, sys.stderr.isatty())]
    if not base.is_program:
        subprocess.run(words, check=True)
        return
    os.execv(sys.executable, words)


def command_line(arguments: Sequence[str], is_terminal: bool = False) -> list[str]:
    """Return the arguments for Snakemake, with the options for the directory of the run added.

    Args:
        arguments: options and targets of the user.
        is_terminal: whether Snakemake writes to a terminal; it then shows progress bars.
    """
    options = _options(arguments)
    for entry in options.config:
        key, equals, value = entry.partition("=")
        section, *names = re.split("[.:]", key)
        if equals and names:  # Snakemake would end with a traceback
            for name in reversed(names):
                value = f"{{{name}: {value}}}"
            raise InputError(f"--config {entry}: a setting of a section is a map: --config '{section}={value}'")
    added = [] if options.snakefile else ["--snakefile", str(pipeline_directory() / "Snakefile")]
    if not options.configfile:
        config = Path(options.directory, CONFIG)
        if not config.is_file():
            raise InputError(
                f"{config}: no such file; create a run directory with `rnnsmt init DIR` and call `rnnsmt run` in it, "
                "or use --directory DIR or --configfile FILE"
            )
        if warning := made_with(Path(options.directory), config):
            say(warning)
        added.append(f"--configfile={config}")  # as one word, so that a target after it is not a value of the option
    profile = Path(options.directory, PROFILE).parent
    if not options.workflow_profile and profile.is_dir():
        added += ["--workflow-profile", str(profile)]
    if is_terminal and not options.logger and find_spec("snakemake_logger_plugin_rich"):
        added.append("--logger=rich")
    return [*added, *arguments]


def made_with(directory: Path, config: Path) -> str | None:
    """Return a warning if the results in a directory were made with other corpora or languages than those of a file.

    There is no warning before the first run in the directory has ended, or if the file has neither setting.
    """
    provenance = directory / "results/provenance.json"
    if not provenance.is_file() or not config.is_file():
        return None
    try:
        given = yaml.safe_load(config.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        return None  # Snakemake reports it
    made = read_json(provenance)["config"]
    if made is None:
        return None  # provenance of a single command, without a configuration
    keys = ("name", "role", "source", "target", "file", "held_out")
    for key in ("corpora", "languages"):
        old, new = made[key], (given if isinstance(given, dict) else {}).get(key)
        if key == "corpora" and isinstance(new, list) and all(isinstance(entry, dict) for entry in new):
            # a different test set does not change the run, unless its lines are left out of the training text
            old, new = (
                [
                    {name: entry.get(name) for name in keys}
                    for entry in side
                    if entry.get("role") != "test" or "held_out" in entry
                ]
                for side in (old, new)
            )
        if key == "languages" and isinstance(new, dict):
            new = codes_of_yaml(new)
        if new is not None and new != old:
            names = ", ".join(corpus["name"] for corpus in made["corpora"])
            languages = f"{made['languages']['source']}-{made['languages']['target']}"
            return (
                f"warning: {directory / 'results'} was made with other {key} ({languages}: {names}) than {config}; for "
                "another run, use another --directory"
            )
    return None


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the options of Snakemake whose defaults differ here."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--snakefile", "-s")
    parser.add_argument("--configfile", "--configfiles", nargs="+")
    parser.add_argument("--config", "-C", nargs="*", default=[])
    parser.add_argument("--directory", "-d", default=".")
    parser.add_argument("--workflow-profile")
    parser.add_argument("--logger", nargs="*")
    with suppress(argparse.ArgumentError):  # Snakemake reports it
        return parser.parse_known_args(list(arguments))[0]
    return parser.parse_args([])
