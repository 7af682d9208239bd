"""Harnesses: damaged files, their use, and the worker process."""

import faulthandler
import json
import os
import random
import resource
import select
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from rnnsmt.base.io import InputError

SECONDS = 10
"""Limit of a case in seconds, of CPU time, as the machine may be busy."""

MOST_SECONDS = 60
"""Limit of a case in seconds of the clock, for what waits without computing."""

MORE_BYTES = 4 << 30
"""Memory that the worker may allocate, in bytes."""

OUTCOMES = ("refused", "unchanged", "other output")
"""Good outcomes: refused by one sentence; accepted with the output of the original; accepted with another output, which
is good if the file has no checksum, or was forged together with it."""

BAD = ("crash", "hang", "traceback", "silent change")
"""Bad outcomes: ended by a signal; over the time limit; another exception than ``InputError``, or no sentence; accepted
with another output although a checksum does not fit."""


class Case(NamedTuple):
    """Damaged file.

    Attributes:
        target: what was damaged, e.g. the command and the file.
        content: the file.
        forged: whether another output is allowed: the file has no checksum, or one of the damaged content.
    """

    target: str
    content: bytes
    forged: bool = False


class Result(NamedTuple):
    """Outcome of a case.

    Attributes:
        number: number of the case.
        target: what was damaged.
        outcome: one of ``OUTCOMES`` and ``BAD``.
        detail: the error message, the traceback, or the number of the signal.
    """

    number: int
    target: str
    outcome: str
    detail: str


class Harness:
    """Family of readers.

    Attributes:
        name: name of the harness.
        directory: empty directory for its files.
        originals: undamaged content by target; the cases use the targets in turn.
    """

    name = ""
    seconds = 0
    """Limit of a case in seconds of CPU time, if it is above ``SECONDS``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.originals: dict[str, bytes] = {}
        self._expected: dict[str, str] = {}

    def prepare(self) -> None:
        """Create the undamaged files and set ``originals``."""
        raise NotImplementedError

    def start(self) -> None:
        """Prepare the worker process."""

    def case(self, number: int, rng: random.Random) -> Case:
        """Return a case."""
        raise NotImplementedError

    def use(self, case: Case) -> str:
        """Use the file of a case; return the output.

        Raises:
            InputError: the file is refused.
        """
        raise NotImplementedError

    def target(self, number: int) -> str:
        """Return the target of a case."""
        return list(self.originals)[number % len(self.originals)]

    def expected(self, target: str) -> str:
        """Return the output of the undamaged file."""
        if target not in self._expected:
            self._expected[target] = self.use(Case(target, self.originals[target]))
        return self._expected[target]


@dataclass
class Report:
    """Result of a harness: the number of every outcome, and the cases with a bad one."""

    name: str
    outcomes: Counter[str] = field(default_factory=Counter)
    bad: list[tuple[Result, Case]] = field(default_factory=list)
    seconds: float = 0.0

    def row(self) -> str:
        """Return a line of the table."""
        total = sum(self.outcomes.values())
        figures = " ".join(f"{self.outcomes[name]:>13,}" for name in (*OUTCOMES, *BAD))
        return f"{self.name:16} {total:>7,} {figures} {self.seconds:>8,.0f}"


HEADER = f"{'':16} {'cases':>7} {' '.join(f'{name:>13}' for name in (*OUTCOMES, *BAD))} {'seconds':>8}"


def run(harness: Harness, seed: int, cases: int | None = None, seconds: float | None = None, least: int = 1) -> Report:
    """Run cases of a harness that has been prepared, up to a number or a time.

    Args:
        harness: the harness.
        seed: random seed, which determines the cases.
        cases: number of cases; None for no limit.
        seconds: time limit; None for no limit.
        least: minimum number of cases, which are run even beyond the time limit.
    """

    def made(number: int) -> Case:
        return harness.case(number, random.Random(f"{harness.name} {seed} {number}"))

    with quiet_stderr():
        for target in harness.originals:
            harness.expected(target)  # before the fork, so that the worker has all kernels
    report, started = Report(harness.name), time.monotonic()
    for result in outcomes(harness, made, cases or 1 << 62):
        report.outcomes[result.outcome] += 1
        if result.outcome in BAD:
            report.bad.append((result, made(result.number)))
        if seconds is not None and time.monotonic() - started > seconds and report.outcomes.total() >= least:
            break
    report.seconds = time.monotonic() - started
    return report


def outcomes(harness: Harness, made: Callable[[int], Case], number: int) -> Iterator[Result]:
    """Yield the results of cases, which run in a worker process; a new one is forked if it dies or hangs."""
    first = 0
    while first < number:
        read, write = os.pipe()
        fault = harness.directory / "fault"
        worker = os.fork()
        if not worker:
            os.close(read)
            _work(harness, made, range(first, number), write, fault)
        os.close(write)
        try:
            for line in _lines(read, worker, max(SECONDS, harness.seconds)):
                result = Result(*json.loads(line))
                first = result.number + 1
                yield result
        finally:
            os.close(read)
            status, hung = _end(worker)
        if first < number and (hung or status):
            how = fault.read_text(errors="replace") if fault.exists() else ""
            detail = "over the time limit" if hung else f"exit status {status}, perhaps due to a case before it\n{how}"
            yield Result(first, made(first).target, "hang" if hung else "crash", detail)
            first += 1


def _lines(read: int, worker: int, seconds: float) -> Iterator[bytes]:
    """Yield the lines of a worker until its end, or until a case exceeds its limit."""
    rest = b""
    began, used = time.monotonic(), _cpu_seconds(worker)
    while True:
        if select.select([read], [], [], 0.5)[0]:
            data = os.read(read, 1 << 16)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
            began, used = time.monotonic(), _cpu_seconds(worker)
        waited = time.monotonic() - began
        if waited > seconds and (waited > max(MOST_SECONDS, 5 * seconds) or _cpu_seconds(worker) - used > seconds):
            return


def _cpu_seconds(process: int) -> float:
    """Return the CPU time of a process and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _end(worker: int) -> tuple[int, bool]:
    """End a worker; return its exit status and whether it had to be killed."""
    time.sleep(0.01)
    for _ in range(100):
        done, status = os.waitpid(worker, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), False
        if Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            break
        time.sleep(0.05)
    os.killpg(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    return 0, True


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Discard standard error, including the output of libraries."""
    sys.stderr.flush()
    before, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)
        os.close(nothing)


def _work(harness: Harness, made: Callable[[int], Case], numbers: Iterable[int], write: int, fault: Path) -> None:
    """Run the cases one after the other in the worker process."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + MORE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with fault.open("w") as stream:
        faulthandler.enable(stream)
        try:
            harness.start()
            for number in numbers:
                case = made(number)
                outcome, detail = judged(harness, case)
                os.write(write, json.dumps([number, case.target, outcome, detail[-6000:]]).encode() + b"\n")
        except BaseException:
            traceback.print_exc(file=stream)
            stream.flush()
            os._exit(1)
    os._exit(0)


def judged(harness: Harness, case: Case) -> tuple[str, str]:
    """Run a case in this process; return its outcome and a detail."""
    try:
        with redirect_stderr(StringIO()), redirect_stdout(StringIO()):
            found = harness.use(case)
    except InputError as error:
        sentence = str(error)
        sound = "\n" not in sentence and len(sentence) > 20
        return ("refused" if sound else "traceback"), sentence
    except Exception:
        return "traceback", traceback.format_exc()
    if found == harness.expected(case.target):
        return "unchanged", ""
    return ("other output" if case.forged else "silent change"), found[:500]


def command(words: list[str]) -> str:
    """Run a command of ``rnnsmt``; return what it wrote to standard error.

    Raises:
        InputError: the command exited with status 2 and an error of one line.
        AssertionError: the command ended in another way.
    """
    from rnnsmt.cli import main

    error = StringIO()
    with redirect_stderr(error):
        try:
            status = main(words)
        except SystemExit as stopped:  # argparse
            status = int(stopped.code or 0)
    text = error.getvalue()
    assert "Traceback" not in text, text
    if status:
        sentences = [line for line in text.splitlines() if ": error: " in line]
        assert status == 2, (status, text)
        assert len(sentences) == 1, text
        assert text.splitlines()[-1] == sentences[0], text
        raise InputError(sentences[0].split(": error: ", 1)[1])
    return text


def saved(result: Result, case: Case, directory: Path, name: str) -> Path:
    """Write a case as a finding; return the file, see ``read_finding``."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    header = {
        "target": case.target,
        "forged": case.forged,
        "message": "",
        "found": f"{result.outcome}: {result.detail}",
    }
    path.write_bytes(json.dumps(header, ensure_ascii=False).encode() + b"\n" + case.content)
    return path


class Finding(NamedTuple):
    """Case that once had a bad outcome.

    Attributes:
        case: the case.
        message: part of the error message; empty: the file is accepted.
    """

    case: Case
    message: str


def read_finding(path: Path) -> Finding:
    """Read a finding: a line of JSON with ``target``, ``forged`` and ``message``, followed by the file."""
    first, _, content = path.read_bytes().partition(b"\n")
    header = json.loads(first)
    return Finding(Case(header["target"], content, header["forged"]), header["message"])


def one_thread() -> None:
    """Limit torch to one thread, since threads of OpenMP do not survive the fork of a worker."""
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)
