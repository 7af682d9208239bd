"""Progress of a Snakemake run, from Snakemake's events and the logs of stages."""

import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LONG_JOB = 5.0
"""Minimum duration in seconds of jobs for which a line is printed when they end."""

REPORTED = ("corpus prepare",)
"""Stages whose figures are always printed, because they describe the processing of the user's text."""

DONE = re.compile(r"rnnsmt (\w+ [\w-]+): done: (.*)")
"""Last line of a stage's log."""

MAX_WARNINGS = 20
"""Maximum number of warnings of one log."""

BAR = 30
"""Length of the bar in characters."""

CTRL_C, SIGTERM = "Ctrl-C", "SIGTERM"
"""Signals that stop a run. After SIGTERM, Snakemake waits for the running jobs, unless they also receive the signal."""

RESULTS = {"table": "results/table1.md", "report": "results/report/index.html"}
"""Main results of a run."""

LAST_RULES = re.compile(r"(\w+_)?(all|table1|report_page)")
"""Rules after which ``RESULTS`` are up to date, possibly with a prefix of a module."""

LAST_FILES = re.compile(r"results/(table1\.[\w.]+|report/index\.html)")
"""Outputs of these rules."""

WEIGHTS = {
    "rnn_train": 80, "cslm_train": 35, "seq2seq_train": 80, "mert": 25, "embeddings": 13, "decode": 8, "rnn_score": 8,
    "align_words": 7, "phrase_table": 7, "cslm_perplexity": 7, "extract": 5, "rnn_prepare": 5, "selection_models": 4,
    "reordering_table": 4, "compare_systems": 4, "augment": 2, "filter_tables": 2, "symmetrize": 2, "lexical": 2,
    "phrase_examples": 2, "score": 2,
}  # fmt: skip
"""CPU seconds of a job of a rule on the demo corpus, as relative weights of an estimate; 1 for rules not listed."""


@dataclass
class Job:
    """Job that has started: rule, name with wildcards, logs, outputs, and start time."""

    rule: str
    name: str
    logs: list[str]
    outputs: list[str]
    started: float


@dataclass
class Run:
    """Jobs of one run. Times ``now`` are those of ``time.monotonic``."""

    total: int = 0
    done: int = 0
    started: float = 0.0
    left: Counter[str] = field(default_factory=Counter)
    running: dict[int, Job] = field(default_factory=dict)
    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: dict[int, list[str]] = field(default_factory=dict)
    has_results: bool = False
    """Whether jobs of ``LAST_RULES`` are planned; a run that is limited to other targets leaves an older table."""
    unfinished: dict[str, None] = field(default_factory=dict)
    """Outputs, in order, of jobs of this run and of earlier ones that have started and not finished."""
    told: set[str] = field(default_factory=set)
    """Warnings that were printed: several jobs may have the same one."""
    stopped_by: str = ""
    """Signal that stopped the run, Ctrl-C or SIGTERM; empty: none. Jobs that it ends are not reported as failed."""

    def plan(self, stats: Mapping[str, int], now: float, earlier: Mapping[str, Any] | None = None) -> list[str]:
        """Begin with the number of jobs of every rule and their ``total``; return the line to print.

        ``earlier`` is the status of the previous run. If exactly its unfinished jobs are planned, this run resumes it,
        and its finished jobs are included in the counts.
        """
        jobs, self.started = stats.get("total", 0), now
        self.left = Counter({rule: count for rule, count in stats.items() if rule != "total"})
        self.has_results = any(map(LAST_RULES.fullmatch, self.left))
        self.total = jobs
        if earlier and 0 < earlier["done"] == earlier["total"] - jobs:
            self.total, self.done = earlier["total"], earlier["done"]
        of = f" of {self.total}" if self.done else ""
        return [f"{jobs}{of} jobs to run; the full log is in .snakemake/log, the log of every job in results/logs"]

    def announced(self, event: Mapping[str, Any], now: float) -> None:
        """Add a job that starts or is submitted to a cluster."""
        wildcards = event.get("wildcards") or {}
        name = " ".join([event["rule_name"], *(f"{key}={value}" for key, value in wildcards.items())])
        logs, outputs = (list(map(str, event.get(key) or [])) for key in ("log", "output"))
        self.running[event["jobid"]] = Job(event["rule_name"], name, logs, outputs, now)
        self.unfinished |= dict.fromkeys(outputs)

    def finished(self, job_id: int, now: float) -> list[str]:
        """Count a job that has finished; return the lines to print."""
        job = self.running.pop(job_id, None)
        self.errors.pop(job_id, None)
        self.done += 1
        if job is None:  # with --quiet rules, Snakemake does not announce jobs
            return []
        for path in job.outputs:
            self.unfinished.pop(path, None)
        self.left[job.rule] -= 1
        seconds = now - job.started
        self.seconds[job.rule].append(seconds)
        stage, figures, warnings = read_log(job.logs)
        lines = [f"{job.name}: {warning}" for warning in dict.fromkeys(warnings) if warning not in self.told]
        self.told.update(warnings)
        if stage in REPORTED or seconds >= LONG_JOB:
            lines.append(f"[{self._share()}] {job.name}: {figures or f'{seconds:.0f} s'}")
        return lines

    def failed(self, event: Mapping[str, Any]) -> list[str]:
        """Record a failed job, which may be retried; return the line to print.

        If the cluster refused the job, its log, if any, is of an earlier run. If it ended the job, its reason is
        printed unless the stage has reported an error.
        """
        job = self.running.pop(event["jobid"], None)
        logs = list(map(str, event.get("log") or []))
        error = error_of(logs)
        if self.stopped_by and not (self.stopped_by == SIGTERM and error):
            return []
        name = job.name if job else event.get("rule_name", "a job")
        reason = executor_error(event.get("rule_msg"))
        if reason and "external_jobid" not in (event.get("aux") or {}):
            lines = [f"{name} was not submitted", *reason]
        else:
            reason = [] if error else reason
            lines = [f"{name} failed; its log: {' '.join(logs) or 'none'}", *reason, *last_words(logs)]
        self.errors[event["jobid"]] = lines
        return [f"[{self._share()}] {name} failed" + "".join(f": {line}" for line in reason[:1])]

    def block(self, now: float) -> list[str]:
        """Return a progress bar and the running jobs."""
        if not self.total or self.done == self.total:
            return []
        full = BAR * self.done // self.total
        left = self.seconds_left(now)
        end = "" if left is None else f", about {clock(left)} left"
        bar = f"[{'#' * full}{'.' * (BAR - full)}] {self._share()} jobs, {clock(now - self.started)}{end}"
        return [bar, *(f"  {job.name}, {clock(now - job.started)}" for job in self.running.values())]

    def note(self, now: float, ended: bool) -> dict[str, Any]:
        """Return the content of the file that `rnnsmt status` reads, with times in seconds since 1970."""
        wall = time.time()
        return {
            "started": wall - (now - self.started),
            "seen": wall,
            "ended": ended,
            "total": self.total,
            "done": self.done,
            "left": self.seconds_left(now),
            "running": [
                {"name": job.name, "logs": job.logs, "started": wall - (now - job.started)}
                for job in self.running.values()
            ],
            "failed": list(self.errors.values()),
        }

    def end(self, now: float, files: list[str]) -> list[str]:
        """Return the last lines of a run: a line with its ``files``, or the messages of the stages that failed."""
        lines = [f"{self._share()} jobs done in {clock(now - self.started)}"] if self.total else []
        if self.total and self.done == self.total and not self.errors and self.has_results:
            lines += files
        lines += [line for error in self.errors.values() for line in error]
        if self.stopped_by and self.done < self.total:
            lines.append(f"stopped by {self.stopped_by}; run the same command again to resume")
        return lines

    def _share(self) -> str:
        return f"{self.done}/{self.total}"

    def seconds_left(self, now: float) -> float | None:
        """Return the estimated time to the end, or None if there are too few finished jobs.

        The expected duration of a job is the mean of the finished jobs of its rule. For rules without finished jobs, it
        is computed from ``WEIGHTS`` relative to the other rules, and is at least the time that a running job has taken
        so far. The number of concurrent jobs is assumed to be constant.
        """
        durations = [seconds for rule in self.seconds.values() for seconds in rule]
        if len(durations) < 5 or now <= self.started:
            return None
        unit = sum(durations) / sum(_weight(rule) * len(known) for rule, known in self.seconds.items())
        means = {rule: sum(known) / len(known) for rule, known in self.seconds.items()}
        expected = {rule: means.get(rule, unit * _weight(rule)) for rule in self.left}
        ran = [(job.rule, now - job.started) for job in self.running.values()]
        for rule, seconds in ran:
            if rule not in means:
                expected[rule] = max(expected.get(rule, 0.0), seconds)
        ahead = sum(count * expected[rule] for rule, count in self.left.items())
        ahead -= sum(min(seconds, expected.get(rule, 0.0)) for rule, seconds in ran)
        concurrent = max(1.0, (sum(durations) + sum(seconds for _, seconds in ran)) / (now - self.started))
        return max(0.0, ahead) / concurrent


def _weight(rule: str) -> int:
    return WEIGHTS.get(rule, 1)


def results(directory: Path, start: Path) -> list[str]:
    """Return a line with the table and the report of a run, relative to ``start``; nothing if there are none."""
    files = {name: directory / path for name, path in RESULTS.items() if (directory / path).is_file()}
    parts = [f"{name}: {os.path.relpath(path, start)}" for name, path in files.items()]
    return [", ".join(parts)] if parts else []


def clock(seconds: float) -> str:
    """Format a duration, e.g. 1 h 05 min."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def read_log(logs: Iterable[str]) -> tuple[str, str, list[str]]:
    """Return the stage that wrote a log, the figures of its last line, and its warnings; empty if not known."""
    lines = _lines(logs)
    stage, figures = next((done.groups() for line in reversed(lines) if (done := DONE.fullmatch(line))), ("", ""))
    return stage, figures, [line for line in lines if line.startswith("warning: ")][:MAX_WARNINGS]


def last_words(logs: Iterable[str]) -> list[str]:
    """Return the error message of a stage, or the last lines of a log that has none."""
    return error_of(logs) or [line for line in _lines(logs) if line.strip()][-5:]


def error_of(logs: Iterable[str]) -> list[str]:
    """Return the error message of a stage as a list of one line; empty if there is none."""
    return [line for line in _lines(logs) if re.match(r"rnnsmt( \w+ [\w-]+)?: error: ", line)][-1:]


def executor_error(message: str | None) -> list[str]:
    """Return the lines of an executor's message about a failed job, e.g. that Slurm ended or refused it.

    The command that submitted the job, which the executor for Slurm adds, and Snakemake's reference to logs are not
    included.
    """
    told = (message or "").split("sbatch call:")[0].split("For further error details see")[0]
    return [line.strip() for line in told.splitlines() if line.strip()]


def _lines(logs: Iterable[str]) -> list[str]:
    paths = [path for path in map(Path, logs) if path.is_file()]
    return [line for path in paths for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
