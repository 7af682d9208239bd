"""How far a run of Snakemake is, and what there is to tell about its jobs, from events and the logs of stages."""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LONG_ENOUGH = 5.0
"""Seconds of a job that is worth a line when it is done; in all others a line would not be read."""

DONE = re.compile(r"rnnsmt (\w+ [\w-]+): done: (.*)")
"""The last line of a stage's log."""

TOLD = ("corpus prepare",)
"""Stages whose figures are always told: what became of the user's text."""

MOST_LINES = 20
"""Of one log, that are warnings."""

BAR = 30
"""Characters of the bar."""


@dataclass
class Job:
    """One job that was announced: its rule, what tells it from others of the rule, its logs, when it started."""

    rule: str
    name: str
    logs: list[str]
    started: float


@dataclass
class Run:
    """The jobs of one run."""

    total: int = 0
    done: int = 0
    started: float = 0.0
    left: Counter[str] = field(default_factory=Counter)
    running: dict[int, Job] = field(default_factory=dict)
    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: dict[int, list[str]] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    """Warnings that were printed: several jobs may have the same one."""
    interrupted: bool = False
    """Whether the user stopped the run (Ctrl-C): jobs that end then have not failed."""

    def plan(self, stats: Mapping[str, int], now: float) -> list[str]:
        """What is to be done: the number of jobs of every rule, and ``total``."""
        self.total, self.started = stats.get("total", 0), now
        self.left = Counter({rule: count for rule, count in stats.items() if rule != "total"})
        return [f"{self.total} jobs to run; the full log is in .snakemake/log, that of every job in results/logs"]

    def announced(self, about: Mapping[str, Any], now: float) -> None:
        """A job starts, or is handed to a cluster."""
        wildcards = about.get("wildcards") or {}
        name = " ".join([about["rule_name"], *(f"{key}={value}" for key, value in wildcards.items())])
        self.running[about["jobid"]] = Job(about["rule_name"], name, list(map(str, about.get("log") or [])), now)

    def finished(self, job_id: int, now: float) -> list[str]:
        """A job is done."""
        job = self.running.pop(job_id, None)
        self.errors.pop(job_id, None)
        self.done += 1
        if job is None:  # with --quiet rules nobody said that it started
            return []
        self.left[job.rule] -= 1
        seconds = now - job.started
        self.seconds[job.rule].append(seconds)
        stage, figures, warnings = read_log(job.logs)
        lines = [f"{job.name}: {warning}" for warning in dict.fromkeys(warnings) if warning not in self.told]
        self.told.update(warnings)
        if stage in TOLD or seconds >= LONG_ENOUGH:
            lines.append(f"[{self._share()}] {job.name}: {figures or f'{seconds:.0f} s'}")
        return lines

    def failed(self, about: Mapping[str, Any]) -> list[str]:
        """A job failed; whether it is tried again shows later."""
        job = self.running.pop(about["jobid"], None)
        if self.interrupted:
            return []
        name = job.name if job else about.get("rule_name", "a job")
        logs = list(map(str, about.get("log") or []))
        self.errors[about["jobid"]] = [f"{name} failed; its log: {' '.join(logs) or 'none'}", *last_words(logs)]
        return [f"[{self._share()}] {name} failed"]

    def block(self, now: float) -> list[str]:
        """A bar with what is done and left, and the jobs that run."""
        if not self.total or self.done == self.total:
            return []
        full = BAR * self.done // self.total
        lines = [
            f"[{'#' * full}{'.' * (BAR - full)}] {self._share()} jobs, {clock(now - self.started)}{self._end(now)}"
        ]
        return lines + [f"  {job.name}, {clock(now - job.started)}" for job in self.running.values()]

    def note(self, now: float, ended: bool) -> dict[str, Any]:
        """What `rnnsmt status` reads, with times of the clock on the wall."""
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

    def end(self, now: float) -> list[str]:
        """The last lines of a run; after a failure what the stages said."""
        lines = [f"{self._share()} jobs done in {clock(now - self.started)}"] if self.total else []
        for error in self.errors.values():
            lines += error
        if self.interrupted:
            lines.append("stopped by you; the same command resumes")
        return lines

    def _share(self) -> str:
        return f"{self.done}/{self.total}"

    def _end(self, now: float) -> str:
        left = self.seconds_left(now)
        return "" if left is None else f", about {clock(left)} left"

    def seconds_left(self, now: float) -> float | None:
        """The expected time to the end, None while too little is known.

        Jobs take as long as those of their rule did, those of rules not seen yet as long as the average job; and as
        many run side by side as did until now.
        """
        durations = [seconds for rule in self.seconds.values() for seconds in rule]
        if len(durations) < 5 or now <= self.started:
            return None
        usual = sum(durations) / len(durations)
        means = {rule: sum(known) / len(known) for rule, known in self.seconds.items()}
        ahead = sum(count * means.get(rule, usual) for rule, count in self.left.items())
        ran = [now - job.started for job in self.running.values()]
        begun = sum(min(own, means.get(job.rule, usual)) for own, job in zip(ran, self.running.values(), strict=True))
        side_by_side = max(1.0, (sum(durations) + sum(ran)) / (now - self.started))
        return max(0.0, ahead - begun) / side_by_side


def clock(seconds: float) -> str:
    """A duration as people say it."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def read_log(logs: list[str]) -> tuple[str, str, list[str]]:
    """The stage that wrote a log, the figures of its last line, and its warnings; nothing where it cannot be read."""
    stage, figures = "", ""
    warnings: list[str] = []
    for line in _lines(logs):
        if line.startswith("warning: ") and len(warnings) < MOST_LINES:
            warnings.append(line)
        elif done := DONE.fullmatch(line):
            stage, figures = done.groups()
    return stage, figures, warnings


def last_words(logs: list[str]) -> list[str]:
    """The sentence with which a stage refused its input, or the last lines of a log that has none."""
    lines = [line for line in _lines(logs) if line.strip()]
    said = [line for line in lines if re.match(r"rnnsmt( \w+ [\w-]+)?: error: ", line)]
    return said[-1:] or lines[-5:]


def _lines(logs: list[str]) -> list[str]:
    lines: list[str] = []
    for path in logs:
        if Path(path).is_file():
            lines += Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    return lines
