"""What clients of the server get: limits of requests and log lines, and the queue of translations with its thread.

The queue is fair between clients. The unit of work is a line. Lines are taken in turn from every client, and from every
job of a client, until a batch takes about ``BATCH_SECONDS``; the lines of a batch are translated together. A client
therefore waits for one batch of others at most, however much they have asked for. A job that nobody waits for any more
is dropped before the next batch.
"""

import ipaddress
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from rnnsmt.base.io import InputError
from rnnsmt.base.progress import say
from rnnsmt.translation.system import ExplainedTranslation, PhraseUse, System

MOST_ADDRESSES = 10_000
"""Maximum number of addresses whose requests are counted; the least recently seen address is dropped first."""

LINES_PER_MINUTE = 20
"""Maximum number of lines that the log gets in a minute for what clients do."""

BATCH_SECONDS = 0.5
"""Aim for the duration of a batch in seconds; a longer line is a batch of its own."""

MOST_WAITING = 400
"""Maximum number of jobs that wait or are being translated."""

MOST_WAITING_OF_CLIENT = 200
"""Maximum number of those of one client."""

MOST_COST = 16_000_000
"""Maximum cost of all jobs that wait or are being translated, see ``Job``; bounds the memory of their answers."""

MOST_COST_OF_CLIENT = 4_000_000
"""Maximum cost of those of one client."""

LINE_COST = 20
"""Cost of an empty line, in characters."""

EXPLAIN_FACTOR, NBEST_FACTOR = 2, 10
"""Cost of a character that is explained, or translated with an n-best list, relative to one that is translated only."""

MEMORY = 0.9
"""Weight of the previous batches in the estimate of the speed, per batch."""


class RateLimit:
    """Limit on the number of requests per address within any 60 seconds."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def allows(self, address: str, now: float) -> bool:
        """Return whether a request may be answered, and count it if so.

        Args:
            address: address of the client.
            now: current time in seconds.
        """
        times = self._times.setdefault(address, deque())
        self._times.move_to_end(address)
        while len(self._times) > MOST_ADDRESSES:
            self._times.popitem(last=False)
        while times and times[0] <= now - 60:
            times.popleft()
        if len(times) >= self.number:
            return False
        times.append(now)
        return True


class ClientLog:
    """Log of what clients do wrong, without their texts and addresses; clients cannot fill the disk with it."""

    def __init__(self) -> None:
        self._minute, self._lines = -1, 0

    def say(self, text: str) -> None:
        """Print a line, unless there were too many in this minute."""
        if (minute := int(time.monotonic() // 60)) != self._minute:
            if self._lines > LINES_PER_MINUTE:
                say(f"{self._lines - LINES_PER_MINUTE} further messages in the previous minute")
            self._minute, self._lines = minute, 0
        self._lines += 1
        if self._lines <= LINES_PER_MINUTE:
            say("".join(c if c.isprintable() or c == "\n" else "?" for c in text[:5000]))


def plain_address(address: str) -> str:
    """Return an address without its zone, and an IPv4 address that is written as an IPv6 address as the former."""
    address = address.partition("%")[0]
    parsed = ipaddress.ip_address(address)
    return str(parsed.ipv4_mapped or parsed) if parsed.version == 6 else address


def network_of(address: str) -> str:
    """Return the unit that requests are counted by: an IPv4 address, or the /64 network of an IPv6 address.

    A user usually has the whole IPv6 network.
    """
    parsed = ipaddress.ip_address(address)
    return address if parsed.version == 4 else str(ipaddress.ip_network((parsed, 64), strict=False))


class FullError(Exception):
    """The queue accepts no more work, of anybody or of this client."""


class Job:
    """The lines of one request.

    Attributes:
        client: who is served in turn, for example an address.
        lines: raw segments.
        nbest: number of translations of each; 0 for the best one alone.
        explain: whether to explain the translations.
        answer: receives one dictionary per line, or an exception; cancelled if nobody waits for it any more.
        cost: expected cost of all lines.
        next: index of the next line that has to be translated.
    """

    def __init__(self, client: str, lines: Sequence[str], nbest: int = 0, explain: bool = False) -> None:
        self.client, self.lines, self.nbest, self.explain = client, lines, nbest, explain
        self.answer: Future[list[dict[str, Any]]] = Future()
        self.next = 0
        self._found: list[dict[str, Any]] = [{} for _ in lines]
        self._missing = len(lines)
        self.cost = sum(map(self.line_cost, range(len(lines))))
        if not lines:
            self.answer.set_result([])

    def line_cost(self, index: int) -> int:
        """Return the expected cost of a line, in characters that are translated only."""
        factor = max(1, EXPLAIN_FACTOR * self.explain, NBEST_FACTOR * (self.nbest > 0))
        return (LINE_COST + len(self.lines[index])) * factor

    def is_taken(self) -> bool:
        """Return whether no line is left to take, or nobody waits for the answer any more."""
        return self.next >= len(self.lines) or self.answer.done()

    def store(self, index: int, translation: dict[str, Any]) -> None:
        """Store the translation of a line; the last one completes the answer."""
        self._found[index] = translation
        self._missing -= 1
        if not self._missing and self.answer.set_running_or_notify_cancel():
            self.answer.set_result(self._found)

    def fail(self, error: Exception) -> None:
        """Answer with an exception; the lines that are left are not translated."""
        if not self.answer.done() and self.answer.set_running_or_notify_cancel():
            self.answer.set_exception(error)


class Translator(threading.Thread):
    """Thread that translates waiting jobs; no other thread uses the system."""

    def __init__(self, system: System) -> None:
        super().__init__(daemon=True)
        self.system = system
        self._admitted: dict[str, list[int]] = {}  # per client: number and cost of its jobs, up to their release
        self._clients: OrderedDict[str, deque[Job]] = OrderedDict()  # in the order of their turns
        self._changed = threading.Condition()
        self._cost, self._seconds = 5_000.0, 1.0  # a careful first estimate of the speed

    def submit(self, job: Job) -> None:
        """Let a job wait for its turns. The caller calls ``release`` when it needs the answer no longer.

        Raises:
            FullError: too much work waits.
        """
        with self._changed:
            number, cost = self._admitted.get(job.client, (0, 0))
            if number >= MOST_WAITING_OF_CLIENT or (cost and cost + job.cost > MOST_COST_OF_CLIENT):
                raise FullError
            every = self._admitted.values()
            if sum(item[0] for item in every) >= MOST_WAITING or sum(item[1] for item in every) > MOST_COST:
                raise FullError
            self._admitted[job.client] = [number + 1, cost + job.cost]
            self._clients.setdefault(job.client, deque()).append(job)
            self._changed.notify()

    def release(self, job: Job) -> None:
        """Drop a job that is not finished, and give back its share of the limits."""
        job.answer.cancel()
        with self._changed:
            admitted = self._admitted[job.client]
            admitted[0] -= 1
            admitted[1] -= job.cost
            if not admitted[0]:
                del self._admitted[job.client]

    def waiting(self) -> int:
        """Return the number of jobs that wait or are being translated."""
        with self._changed:
            return sum(number for number, _ in self._admitted.values())

    def run(self) -> None:
        """Translate waiting jobs until the process ends."""
        while True:
            batch = self._batch()
            cost, started = sum(job.line_cost(index) for job, index in batch), time.monotonic()
            self._translate(batch)
            self._cost = MEMORY * self._cost + cost
            self._seconds = MEMORY * self._seconds + time.monotonic() - started

    def _batch(self) -> list[tuple[Job, int]]:
        """Wait for work; return jobs with the index of a line, at least one, at most as many as the time allows."""
        budget = BATCH_SECONDS * self._cost / max(self._seconds, 1e-3)
        batch: list[tuple[Job, int]] = []
        with self._changed:
            while True:
                while self._clients:
                    client, jobs = self._clients.popitem(last=False)
                    if jobs[0].is_taken():
                        jobs.popleft()
                    else:
                        job = jobs.popleft()
                        cost = job.line_cost(job.next)
                        if batch and cost > budget:
                            jobs.appendleft(job)
                            self._clients[client] = jobs
                            self._clients.move_to_end(client, last=False)
                            return batch
                        budget -= cost
                        batch.append((job, job.next))
                        job.next += 1
                        jobs.append(job)
                    if jobs:
                        self._clients[client] = jobs
                if batch:
                    return batch
                self._changed.wait()

    def _translate(self, batch: list[tuple[Job, int]]) -> None:
        """Translate the lines of a batch, those of one kind together."""
        for explain in (False, True):
            same = [(job, index) for job, index in batch if job.explain == explain and not job.nbest]
            self._together(same, self._explained if explain else self._plain)
        for job, index in batch:
            if job.nbest:
                self._alone(job, index, self._nbest)

    def _together(
        self, batch: list[tuple[Job, int]], translate: Callable[[list[tuple[Job, int]]], list[dict[str, Any]]]
    ) -> None:
        """Translate lines in one search; what is invalid or makes it fail affects the job that it belongs to only."""
        if not batch:
            return
        try:
            answers = translate(batch)
        except InputError:  # it is raised before the search begins, so others lose little time
            self._together([item for item in batch if self._is_valid(*item)], translate)
        except Exception:  # caused by one line; the others and this thread must survive it
            for job, index in batch:
                self._alone(job, index, lambda job, index: translate([(job, index)])[0])
        else:
            for (job, index), answer in zip(batch, answers, strict=True):
                job.store(index, answer)

    def _is_valid(self, job: Job, index: int) -> bool:
        """Return whether a line can be prepared; let its job fail otherwise."""
        try:
            self.system.prepare([job.lines[index]], index + 1)
        except Exception as error:
            job.fail(error)
            return False
        return True

    def _alone(self, job: Job, index: int, translate: Callable[[Job, int], dict[str, Any]]) -> None:
        try:
            if not job.answer.done():
                job.store(index, translate(job, index))
        except Exception as error:  # reported to the client; this thread must survive it
            job.fail(error)

    def _plain(self, batch: list[tuple[Job, int]]) -> list[dict[str, Any]]:
        texts = self.system.translate_all([job.lines[index] for job, index in batch])
        return [{"translation": text} for text in texts]

    def _explained(self, batch: list[tuple[Job, int]]) -> list[dict[str, Any]]:
        explained = self.system.explain_all([job.lines[index] for job, index in batch])
        return [_explanation(best, uses) for best, uses in explained]

    def _nbest(self, job: Job, index: int) -> dict[str, Any]:
        line = job.lines[index]
        explained = self._explained([(job, index)])[0] if job.explain else {}
        hypotheses = self.system.nbest(line, job.nbest, index + 1) if line.strip() else []
        explained.setdefault("translation", hypotheses[0].text if hypotheses else "")
        explained["nbest"] = [{"translation": hypothesis.text, "score": hypothesis.score} for hypothesis in hypotheses]
        return explained


def _explanation(best: ExplainedTranslation, phrases: list[PhraseUse]) -> dict[str, Any]:
    return {
        "translation": best.text,
        "score": best.score,
        "contributions": best.contributions,
        "phrases": [use._asdict() for use in phrases],
    }
