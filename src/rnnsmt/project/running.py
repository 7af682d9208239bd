"""Snakemake with the workflow of this package: ``rnnsmt run``."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from rnnsmt.base.io import InputError
from rnnsmt.config.pipeline import pipeline_directory
from rnnsmt.project.setup import CONFIG, PROFILE


def run_workflow(arguments: Sequence[str]) -> None:
    """Replace this process by Snakemake.

    Args:
        arguments: options and targets for Snakemake.
    """
    if find_spec("snakemake") is None:
        raise InputError("Snakemake is not installed; run `pip install snakemake`")
    words = [sys.executable, "-m", "snakemake", *command_line(arguments, sys.stderr.isatty())]
    os.execv(sys.executable, words)


def command_line(arguments: Sequence[str], is_terminal: bool = False) -> list[str]:
    """Return the arguments for Snakemake, with the options for the directory of the run added.

    Args:
        arguments: options and targets of the user.
        is_terminal: whether Snakemake writes to a terminal; it then shows progress bars.
    """
    options = _options(arguments)
    added = [] if options.snakefile else ["--snakefile", str(pipeline_directory() / "Snakefile")]
    if not options.configfile:
        config = Path(options.directory, CONFIG)
        if not config.is_file():
            raise InputError(
                f"{config}: no such file; create a run directory with `rnnsmt init DIR` and call `rnnsmt run` in it, "
                "or use --directory DIR or --configfile FILE"
            )
        added.append(f"--configfile={config}")  # as one word, so that a target after it is not a value of the option
    profile = Path(options.directory, PROFILE).parent
    if not options.workflow_profile and profile.is_dir():
        added += ["--workflow-profile", str(profile)]
    if is_terminal and not options.logger and find_spec("snakemake_logger_plugin_rich"):
        added.append("--logger=rich")
    return [*added, *arguments]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return those options of Snakemake that have other defaults here."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--snakefile", "-s")
    parser.add_argument("--configfile", "--configfiles", nargs="+")
    parser.add_argument("--directory", "-d", default=".")
    parser.add_argument("--workflow-profile")
    parser.add_argument("--logger", nargs="*")
    with suppress(argparse.ArgumentError):  # Snakemake reports it
        return parser.parse_known_args(list(arguments))[0]
    return parser.parse_args([])
