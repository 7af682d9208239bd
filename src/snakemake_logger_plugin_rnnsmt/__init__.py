"""What Snakemake shows of a run: ``snakemake --logger rnnsmt``, as ``profiles/default`` says.

Snakemake finds a logger plugin by the name of its package. Everything goes to Snakemake's own log file anyway; this is
for people. On a terminal a block at its foot says what runs, how far the run is and when it may end; above it, and in a
pipe alone, pass lines about what was done: jobs that took a while, what the corpora lost in preparation, warnings of
stages. After a failure the last line is what the stage said. Plans (``-n``) look as Snakemake prints them.
"""

import json
import logging
import os
import re
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_rnnsmt.command_line import mistakes
from snakemake_logger_plugin_rnnsmt.progress import Run
from snakemake_logger_plugin_rnnsmt.terminal import Terminal

STATUS = Path(".snakemake/rnnsmt-status.json")

NOTED = (LogEvent.RUN_INFO, LogEvent.JOB_INFO, LogEvent.JOB_FINISHED, LogEvent.JOB_ERROR)

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
"""Messages of Snakemake, by their beginning, that tell a person nothing, or what is told here in another way."""


INTERRUPTED = "Terminating processes on user request"
"""Beginning of Snakemake's message after Ctrl-C."""

MISSING = re.compile(
    r"MissingInputException in rule (\S+).*?(?:wildcards: ([^\n]*)\n\s*)?affected files:\n(.*)", re.DOTALL
)
"""Snakemake's message for input files that do not exist and that no rule makes."""

REFUSED = re.compile(
    r"WorkflowError(?: in file \"[^\"]*\", line \d+)?:\n(.*?)((?:\n  File \"[^\"]*\", line \d+, in .*)*)", re.DOTALL
)
"""Snakemake's message for an error that the rules report, with the places in the rules."""


def plain_error(text: str) -> str | None:
    """Return Snakemake's message for an error that is not a bug without the places in the rules; None for another."""
    if missing := MISSING.match(text):
        rule, wildcards, files = missing.groups()
        job = f"{rule} {wildcards}" if wildcards else rule
        return "\n".join(f"error: {job}: no such file: {path.strip()}" for path in files.strip().splitlines())
    refused = REFUSED.fullmatch(text.strip())
    return f"error: {refused[1]}" if refused else None


class LogHandler(LogHandlerBase):
    """Takes Snakemake's events and prints those that a person wants to see."""

    def __post_init__(self) -> None:
        if wrong := mistakes(sys.argv[1:]):
            for line in wrong:
                print(f"snakemake: error: {line}", file=sys.stderr)
            raise SystemExit(1)
        stream = sys.stdout if self.common_settings.stdout else sys.stderr
        self.plain = self.common_settings.dryrun
        self.terminal = Terminal(stream)
        self.run = Run()
        self.status: Path | None = None
        self._guard = threading.Lock()
        self._ended = threading.Event()
        if self.terminal.stays:
            threading.Thread(target=self._refresh, daemon=True).start()

    def _refresh(self) -> None:
        while not self._ended.wait(1.0):
            with self._guard:
                self.terminal.block(self.run.block(time.monotonic()))

    def emit(self, record: logging.LogRecord) -> None:
        """Print what a record says to a person, if anything."""
        try:
            with self._guard:
                if self._ended.is_set():
                    return
                for line in self._plan_lines(record) if self.plain else self._lines(record):
                    self.terminal.line(line)
                self.terminal.block(self.run.block(time.monotonic()))
                if getattr(record, "event", None) in NOTED:
                    self._note(ended=False)
        except Exception:
            self.handleError(record)

    def _note(self, ended: bool) -> None:
        """Write down how far the run is, for `rnnsmt status`."""
        if self.plain or not self.run.total or "--mode" in sys.argv:  # a job of a run is none
            return
        self.status = self.status or STATUS.absolute()  # in the run's folder, which is left at the end
        with suppress(OSError):  # a folder that cannot be written is told elsewhere
            temporary = self.status.with_suffix(f".{os.getpid()}")
            temporary.write_text(json.dumps(self.run.note(time.monotonic(), ended), indent=1), encoding="utf-8")
            temporary.replace(self.status)

    def _plan_lines(self, record: logging.LogRecord) -> list[str]:
        return [plain_error(record.getMessage()) or self.format(record)]

    def _lines(self, record: logging.LogRecord) -> list[str]:
        now = time.monotonic()
        about = record.__dict__
        event = getattr(record, "event", None)
        lines: list[str] = []
        if event == LogEvent.RUN_INFO:
            lines = self.run.plan(about["stats"], now)
        elif event == LogEvent.JOB_INFO:
            self.run.announced(about, now)
        elif event == LogEvent.JOB_FINISHED:
            lines = self.run.finished(about["job_id"], now)
        elif event == LogEvent.JOB_ERROR:
            lines = self.run.failed(about)
        elif event == LogEvent.SHELLCMD:
            lines = [about.get("cmd") or record.getMessage()]
        elif event in (None, LogEvent.ERROR):
            text = record.getMessage().strip()
            if text.startswith(INTERRUPTED):
                self.run.interrupted = True
                lines = ["stopping; what runs saves its state or is made again"]
            elif text not in ("", "None") and not text.startswith(NOISE):
                lines = [plain_error(text) or text]
        return lines

    def close(self) -> None:
        """The end: the block goes, what failed is the last that is said."""
        with self._guard:
            if not self._ended.is_set():
                self._ended.set()
                self.terminal.block([])
                self._note(ended=True)
                if not self.plain:
                    for line in self.run.end(time.monotonic()):
                        self.terminal.line(line)
        super().close()

    @property
    def writes_to_stream(self) -> bool:
        """Snakemake writes nothing beside it."""
        return True

    @property
    def writes_to_file(self) -> bool:
        """Snakemake's own file has the full log."""
        return False

    @property
    def has_filter(self) -> bool:
        """Snakemake's own filter serves: ``--quiet`` counts."""
        return False

    @property
    def has_formatter(self) -> bool:
        """Plans look as they always do."""
        return False

    @property
    def needs_rulegraph(self) -> bool:
        """Counts of jobs are enough."""
        return False
