"""Snakemake with the workflow of this package.

Snakemake runs in this process, so signals and the terminal are handled as by ``snakemake``. The exit status is that of
``snakemake``, except that it is 2 instead of 1 if the configuration, an option or a target is invalid.
"""

import argparse
import logging
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import yaml

from rnnsmt.base.io import InputError
from rnnsmt.plan.pipeline import pipeline_directory
from rnnsmt.project.setup import CONFIG, PROFILE

TABLE = "results/table1.md"

LOGGER = "snakemake.logging"
"""Name of Snakemake's logger."""

INVALID_INPUT = ("WorkflowError", "MissingInputException", "MissingRuleException", "ApiError", "CliException")
"""Snakemake's exceptions for invalid configuration, files that do not exist, unknown targets, and invalid options."""


def run_workflow(arguments: Sequence[str]) -> None:
    """Run Snakemake; print the table if the run has written it.

    Args:
        arguments: options and targets for Snakemake.

    Raises:
        InputError: Snakemake or a package for one of the options is not installed, or there is no configuration.
        SystemExit: with the exit status of Snakemake, or 2 for invalid input.
    """
    if find_spec("snakemake") is None:
        raise InputError("Snakemake is not installed; run `pip install snakemake`")
    words = command_line(arguments)
    options = _options(words)
    _check_extras(options)
    table = Path.cwd() / options.directory / TABLE
    before = _changed(table)
    sys.argv = ["snakemake", *words]  # the rules and the logger read it
    errors = ErrorsBeforePlan()
    logging.getLogger(LOGGER).addFilter(errors)
    try:
        import_module("snakemake.cli").main()
    except SystemExit as end:
        if end.code == 128 + signal.SIGTERM:  # only before the first job; later, Snakemake handles the signal
            print("rnnsmt run: stopped by SIGTERM; run the same command again to resume", file=sys.stderr)
        if end.code == 1 and errors.is_invalid_input:
            raise SystemExit(2) from None
        if end.code in (0, None) and _changed(table) != before and not options.touch:
            with table.open(encoding="utf-8") as lines:
                sys.stdout.write("\n")
                shutil.copyfileobj(lines, sys.stdout)
            sys.stdout.flush()
        raise
    finally:
        logging.getLogger(LOGGER).removeFilter(errors)


class ErrorsBeforePlan(logging.Filter):
    """Filter that suppresses nothing, and records whether Snakemake runs no job because of invalid input."""

    def __init__(self) -> None:
        super().__init__()
        self.is_invalid_input = self._is_planned = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Record the plan, or an error before it."""
        from snakemake_interface_logger_plugins.common import LogEvent

        self._is_planned |= getattr(record, "event", None) == LogEvent.RUN_INFO
        self.is_invalid_input |= not self._is_planned and getattr(record, "exception", None) in INVALID_INPUT
        return True


def command_line(arguments: Sequence[str]) -> list[str]:
    """Return the arguments for Snakemake, with the options for the directory of the run added.

    Raises:
        InputError: there is no configuration in the directory, and none is given.
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
    return [*added, *arguments]


def _check_extras(options: argparse.Namespace) -> None:
    """Check that the packages that optional features of Snakemake require are installed.

    Raises:
        InputError: a package is not installed.
    """
    executor, source = options.executor, "--executor"
    if executor is None and options.workflow_profile:
        path = Path(options.workflow_profile, Path(PROFILE).name)
        with suppress(OSError, UnicodeDecodeError, yaml.YAMLError):  # Snakemake reports it
            values = yaml.safe_load(path.read_text(encoding="utf-8"))
            executor, source = values.get("executor") if isinstance(values, dict) else None, f"{path}: executor"
    if executor == "slurm" and find_spec("snakemake_executor_plugin_slurm") is None:
        raise InputError(
            f"{source} slurm: Snakemake's plugin for Slurm is not installed; run `pip install 'rnnsmt[slurm]'`"
        )
    if options.report is not None and find_spec("pygments") is None:
        raise InputError("--report: the Python module pygments is not installed; run `pip install 'rnnsmt[report]'`")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return those options of Snakemake that name files of the run, or require optional packages."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--snakefile", "-s")
    parser.add_argument("--configfile", "--configfiles", nargs="+")
    parser.add_argument("--directory", "-d", default=".")
    parser.add_argument("--workflow-profile")
    parser.add_argument("--executor", "-e")
    parser.add_argument("--touch", "-t", action="store_true")
    parser.add_argument("--report", nargs="?", const="report.html")
    with suppress(argparse.ArgumentError):  # Snakemake reports it
        return parser.parse_known_args(list(arguments))[0]
    return parser.parse_args([])


def _changed(path: Path) -> int | None:
    """Return the modification time of a file in nanoseconds; None if it does not exist."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
