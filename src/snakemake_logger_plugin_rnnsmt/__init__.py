"""Terminal output of a Snakemake run: ``snakemake --logger rnnsmt``, the default of ``profiles/default``.

Snakemake finds a logger plugin by the name of its package. On a terminal, a block at the bottom shows progress and
running jobs. Above it, or without it in a pipe, lines are printed about long jobs, the preparation of corpora, warnings
of stages, and failures. The log file that Snakemake writes is complete. Plans (``-n``) are printed as by Snakemake.
"""

import json
import logging
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_rnnsmt.command_line import mistakes, requests_results
from snakemake_logger_plugin_rnnsmt.progress import CTRL_C, SIGTERM, Run, results

STATUS = Path(".snakemake/rnnsmt-status.json")
"""Status file, relative to the directory of the run."""

UNFINISHED = Path(".snakemake/rnnsmt-unfinished.json")
"""File with the outputs of unfinished jobs, see ``rnnsmt.monitoring.unfinished``."""

NOTED = (LogEvent.RUN_INFO, LogEvent.JOB_INFO, LogEvent.JOB_FINISHED, LogEvent.JOB_ERROR)
"""Events after which the files of the run are written."""

NOISE = (
    "Select jobs to execute",
    "Execute ",
    "Building DAG of jobs",
    "Assuming unrestricted shared filesystem",
    "Conda environments: ignored",
    "Shutting down, this might take some time",
    "Complete log",
    "Exiting because a job execution failed",
    "Finished jobid",
    "Removing output files of failed job",
    "At least one job did not complete successfully",
    "WorkflowError:\nAt least one job did not complete successfully",
    "Storing output in storage",
    "RuleException:\nCalledProcessError",
    "Elapsed time:",
    "Using shell:",
)
"""Beginnings of messages of Snakemake that are not printed."""


class Terminal:
    """Stream with lines and, on a terminal, a block of lines at the bottom that is replaced."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.has_block = stream.isatty()
        self._shown: list[str] = []

    def line(self, text: str) -> None:
        """Print a line above the block."""
        shown, self._shown = self._shown, []
        self._write(_erase(len(shown)) + text + "\n")
        self.block(shown)

    def block(self, lines: Sequence[str]) -> None:
        """Replace the block; has no effect if the stream is not a terminal."""
        if not self.has_block:
            return
        width, height = shutil.get_terminal_size()
        fitting = [line[: width - 1] for line in lines[: height - 2]]
        if fitting != self._shown:
            self._write(_erase(len(self._shown)) + "".join(f"{line}\n" for line in fitting))
            self._shown = fitting

    def _write(self, text: str) -> None:
        if text:
            try:
                self.stream.write(text)
                self.stream.flush()
            except BrokenPipeError:  # `snakemake -n | head`: discard the remaining output
                with Path(os.devnull).open("wb") as nothing:
                    os.dup2(nothing.fileno(), self.stream.fileno())


def _erase(lines: int) -> str:
    """Return the control sequence that erases the last lines."""
    return f"\x1b[{lines}A\x1b[J" if lines else ""


INTERRUPTED = "Terminating processes on user request"
"""Beginning of Snakemake's message after Ctrl-C."""

TERMINATED = "Will exit after finishing currently running jobs (scheduler)"
"""Beginning of Snakemake's message after SIGTERM, which it repeats after every job."""

MISSING = re.compile(
    r"MissingInputException in rule (\S+).*?(?:wildcards: ([^\n]*)\n\s*)?affected files:\n(.*)", re.DOTALL
)
"""Snakemake's message for input files that do not exist and that no rule creates."""

TOUCH = re.compile(r"-[fFkpa]*t")
"""``--touch`` as a short option, possibly after other short options without a value."""

LOCKED = "LockException:"
"""Beginning of Snakemake's message about a locked directory."""

ACTIVE = "another run is active in "
"""Beginning of the warning of ``rnnsmt.monitoring.runs.others_active``."""

BEFORE_PLAN = ("warning: ", "Settings for ")
"""Beginnings of messages of the workflow that are not printed if an error precedes the plan."""

NO_FILE = ": no such file: "
"""Words before the name of a missing file in the lines that replace ``MISSING``."""

ABSENT = " does not exist; "
"""Words after the name of a missing file in the warnings of ``rnnsmt.plan.corpora.missing_files``."""

REFUSED = re.compile(
    r"WorkflowError(?: in file \"[^\"]*\", line \d+)?:\n(.*?)((?:\n  File \"[^\"]*\", line \d+, in .*)*)", re.DOTALL
)
"""Snakemake's message for an error that the rules report, with the locations in the rules."""


def plain_error(text: str) -> str | None:
    """Return Snakemake's message for an error that is not a bug, without locations in the rules; None for a bug."""
    if missing := MISSING.match(text):
        rule, wildcards, files = missing.groups()
        job = f"{rule} {wildcards}" if wildcards else rule
        return "\n".join(f"error: {job}{NO_FILE}{path.strip()}" for path in files.strip().splitlines())
    refused = REFUSED.fullmatch(text.strip())
    return f"error: {refused[1]}" if refused else None


def errors_only(text: str, warnings: Sequence[str]) -> list[str]:
    """Return the lines for an error before the first job.

    If input files do not exist, these are the warnings about missing files of corpora, which name the setting and a
    remedy, and Snakemake's message about all other files. If the directory is locked by an active run, the warning
    about this run replaces Snakemake's message, which recommends ``--unlock``. Other warnings are omitted.

    Args:
        text: Snakemake's message.
        warnings: warnings of the workflow, and its other messages.
    """
    lines = (plain_error(text) or text).splitlines()
    active = [warning.removeprefix("warning: ") for warning in warnings if warning.startswith(f"warning: {ACTIVE}")]
    if text.startswith(LOCKED) and active:
        return [f"error: {warning}" for warning in active]
    if not MISSING.match(text):
        return lines
    absent = [warning.removeprefix("warning: ") for warning in warnings if ABSENT in warning]
    rest = [line for line in lines if not any(f" {line.split(NO_FILE)[-1]}{ABSENT}" in line_ for line_ in absent)]
    return [*(f"error: {warning}" for warning in absent), *rest]


class LogHandler(LogHandlerBase):
    """Handler of Snakemake's events, which prints progress, warnings and errors."""

    writes_to_stream = True  # Snakemake prints nothing itself
    writes_to_file = False
    has_filter = False  # --quiet is respected
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        if wrong := mistakes(sys.argv[1:]):
            for line in wrong:
                print(f"snakemake: error: {line}", file=sys.stderr)
            raise SystemExit(2)
        self.plain = self.common_settings.dryrun
        self.touches = any(argument == "--touch" or TOUCH.fullmatch(argument) for argument in sys.argv)
        self.terminal = Terminal(sys.stdout if self.common_settings.stdout else sys.stderr)
        self.run = Run()
        self.started_in = Path.cwd()  # later, Snakemake changes to the directory of the run
        self.directory: Path | None = None
        self._held: list[str] | None = []
        """Messages of the workflow before the plan is known: if an error follows, they are not printed."""
        self._guard = threading.Lock()
        self._ended = threading.Event()
        if self.terminal.has_block:
            threading.Thread(target=self._refresh, daemon=True).start()

    def _refresh(self) -> None:
        while not self._ended.wait(1.0):
            with self._guard:
                self.terminal.block(self.run.block(time.monotonic()))

    def emit(self, record: logging.LogRecord) -> None:
        """Print the lines of a record, if any, and update block and status file."""
        try:
            with self._guard:
                if self._ended.is_set():
                    return
                for line in self._start_lines(record):
                    self.terminal.line(line)
                self.terminal.block(self.run.block(time.monotonic()))
                if getattr(record, "event", None) in NOTED:
                    self._note(ended=False)
        except Exception:
            self.handleError(record)

    def _note(self, ended: bool) -> None:
        """Write the status file for `rnnsmt status`, and the outputs of unfinished jobs.

        Plans and ``--touch``, which run no job, do not change the files.
        """
        if self.plain or not self.run.total or "--mode" in sys.argv:  # --mode: a job of another run
            return
        self.directory = self.directory or Path.cwd()
        for file, content in (STATUS, self.run.note(time.monotonic(), ended)), (UNFINISHED, list(self.run.unfinished)):
            with suppress(OSError):  # stages that write to the directory report the error
                path = self.directory / file
                temporary = path.with_suffix(f".{os.getpid()}")
                temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
                temporary.replace(path)

    def _start_lines(self, record: logging.LogRecord) -> list[str]:
        """Return the lines of a record; those of ``BEFORE_PLAN`` are delayed, and discarded if an error follows."""
        text, held = record.getMessage().strip(), self._held
        if held is not None and text.startswith(BEFORE_PLAN):
            held.append(text)
            return []
        if held is not None and record.levelno >= logging.ERROR:
            self._held = None
            return errors_only(text, held)
        of_mode = self._plan_lines if self.plain else self._touch_lines if self.touches else self._lines
        lines = of_mode(record)
        if getattr(record, "event", None) == LogEvent.RUN_INFO or text.startswith("Nothing to be done"):
            self._held = None
            return [*(held or []), *lines]
        return lines

    def _plan_lines(self, record: logging.LogRecord) -> list[str]:
        return [plain_error(record.getMessage()) or self.format(record)]

    def _touch_lines(self, record: logging.LogRecord) -> list[str]:
        """Return the lines of a record of ``--touch``, which runs no job."""
        event = record.__dict__.get("event")
        if event == LogEvent.RUN_INFO:
            jobs = record.__dict__["stats"].get("total", 0)
            return [f"marking the existing output files of {jobs} jobs as up to date"]
        return [] if event in (LogEvent.JOB_INFO, LogEvent.JOB_FINISHED) else self._lines(record)

    def _lines(self, record: logging.LogRecord) -> list[str]:
        now = time.monotonic()
        fields = record.__dict__
        event = fields.get("event")
        lines: list[str] = []
        if event == LogEvent.RUN_INFO:
            lines = self.run.plan(fields["stats"], now, _earlier())
            self.run.unfinished = _unfinished()
        elif event == LogEvent.JOB_INFO:
            self.run.announced(fields, now)
        elif event == LogEvent.JOB_FINISHED:
            lines = self.run.finished(fields["job_id"], now)
        elif event == LogEvent.JOB_ERROR:
            lines = self.run.failed(fields)
        elif event == LogEvent.SHELLCMD:
            lines = [fields.get("cmd") or record.getMessage()]
        elif event in (None, LogEvent.ERROR):
            text = record.getMessage().strip()
            if text.startswith(INTERRUPTED):
                self.run.stopped_by = CTRL_C
                lines = ["stopping; running jobs save a checkpoint or are restarted by the next run"]
            elif text.startswith(TERMINATED):
                if not self.run.stopped_by:
                    lines = ["SIGTERM received; no more jobs are started, and the run ends after the running jobs"]
                self.run.stopped_by = self.run.stopped_by or SIGTERM
            elif text not in ("", "None") and not text.startswith(NOISE):
                lines = [plain_error(text) or text]
            if text.startswith("Nothing to be done") and requests_results(sys.argv[1:]):
                lines += self._results()
        return lines

    def _results(self) -> list[str]:
        """Return a line with the results, as paths from the directory in which Snakemake was started."""
        return results(self.directory or Path.cwd(), self.started_in)

    def close(self) -> None:
        """Remove the block and print the last lines: results, or the errors of failed jobs."""
        with self._guard:
            if not self._ended.is_set():
                self._ended.set()
                self.terminal.block([])
                for line in self._held or []:
                    self.terminal.line(line)
                self._note(ended=True)
                if not self.plain:
                    for line in self.run.end(time.monotonic(), self._results()):
                        self.terminal.line(line)
        super().close()


def _earlier() -> dict[str, Any] | None:
    """Return the status of the previous run in the current directory, if there is one."""
    with suppress(OSError, ValueError):
        note: dict[str, Any] = json.loads(STATUS.read_text(encoding="utf-8"))
        return note if {"done", "total"} <= set(note) else None
    return None


def _unfinished() -> dict[str, None]:
    """Return the missing outputs of jobs that earlier runs in the current directory have not finished."""
    with suppress(OSError, ValueError, TypeError):
        return {path: None for path in json.loads(UNFINISHED.read_text(encoding="utf-8")) if not Path(path).exists()}
    return {}
