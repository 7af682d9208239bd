"""Limits per client, log of client errors, and the queue of translations with its thread.

The queue is fair between clients. The unit of work is a line. Lines are taken in turn from every client, and from every
job of a client, until a batch takes about ``BATCH_SECONDS``; the lines of a batch are translated together. A client
therefore waits for at most one batch of other clients, regardless of the size of their requests. A job whose client has
disconnected is removed before the next batch.
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
"""Maximum number of addresses whose requests are counted; the least recently seen address is removed first."""

LINES_PER_MINUTE = 20
"""Maximum number of lines per minute that are logged about client errors."""

BATCH_SECONDS = 0.5
"""Target duration of a batch in seconds; a line that takes longer is a separate batch."""

MOST_WAITING = 400
"""Maximum number of jobs that wait or are being translated."""

MOST_WAITING_OF_CLIENT = 200
"""Maximum number of jobs of one client that wait or are being translated."""

MOST_COST = 16_000_000
"""Maximum cost of all jobs that wait or are being translated, see ``Job``; limits the memory of their results."""

MOST_COST_OF_CLIENT = 4_000_000
"""Maximum cost of the jobs of one client that wait or are being translated."""

LINE_COST = 20
"""Cost of an empty line, in characters."""

EXPLAIN_FACTOR, NBEST_FACTOR = 2, 10
"""Cost of a character with an explanation, or with an n-best list, relative to a translation without them."""

DECAY = 0.9
"""Factor by which the weight of earlier batches decreases with every batch in the estimate of the speed."""


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
    """Log of client errors, without texts and addresses of clients; limited, so that clients cannot fill the disk."""

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
    """Return an address without its zone; return an IPv4-mapped IPv6 address as an IPv4 address."""
    address = address.partition("%")[0]
    parsed = ipaddress.ip_address(address)
    return str(parsed.ipv4_mapped or parsed) if parsed.version == 6 else address


def network_of(address: str) -> str:
    """Return the key by which requests are counted: an IPv4 address, or the /64 network of an IPv6 address.

    A user usually controls the whole /64 network.
    """
    parsed = ipaddress.ip_address(address)
    return address if parsed.version == 4 else str(ipaddress.ip_network((parsed, 64), strict=False))


class FullError(Exception):
    """The queue is full, in total or for this client."""


class Job:
    """The lines of one request.

    Attributes:
        client: identifier of the client, for example an address; clients are served in turn.
        lines: raw segments.
        nbest: number of translations of each; 0: only the best translation.
        explain: whether to explain the translations.
        answer: receives one dictionary per line, or an exception; cancelled when it is no longer needed.
        cost: expected cost of all lines.
        next: index of the next line to translate.
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
        """Return the expected cost of a line, in characters translated without explanation and n-best list."""
        factor = max(1, EXPLAIN_FACTOR * self.explain, NBEST_FACTOR * (self.nbest > 0))
        return (LINE_COST + len(self.lines[index])) * factor

    def is_taken(self) -> bool:
        """Return whether all lines have been taken, or the answer is no longer needed."""
        return self.next >= len(self.lines) or self.answer.done()

    def store(self, index: int, translation: dict[str, Any]) -> None:
        """Store the translation of a line; the last one completes the answer."""
        self._found[index] = translation
        self._missing -= 1
        if not self._missing and self.answer.set_running_or_notify_cancel():
            self.answer.set_result(self._found)

    def fail(self, error: Exception) -> None:
        """Set an exception as the answer; the remaining lines are not translated."""
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
        self._cost, self._seconds = 5_000.0, 1.0  # conservative initial estimate of the speed

    def submit(self, job: Job) -> None:
        """Add a job to the queue. The caller must call ``release`` when it no longer needs the answer.

        Raises:
            FullError: the queue is full.
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
        """Cancel a job if it is not finished, and free its share of the limits."""
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
            self._cost = DECAY * self._cost + cost
            self._seconds = DECAY * self._seconds + time.monotonic() - started

    def _batch(self) -> list[tuple[Job, int]]:
        """Wait for work; return jobs with the index of a line, at least one, as many as fit into ``BATCH_SECONDS``."""
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
        """Translate the lines of a batch, lines of the same kind together."""
        for explain in (False, True):
            same = [(job, index) for job, index in batch if job.explain == explain and not job.nbest]
            self._together(same, self._explained if explain else self._plain)
        for job, index in batch:
            if job.nbest:
                self._alone(job, index, self._nbest)

    def _together(
        self, batch: list[tuple[Job, int]], translate: Callable[[list[tuple[Job, int]]], list[dict[str, Any]]]
    ) -> None:
        """Translate lines in one search; a line that is invalid or makes the search fail affects only its own job."""
        if not batch:
            return
        try:
            answers = translate(batch)
        except InputError:  # raised before the search begins, so other jobs are hardly delayed
            self._together([item for item in batch if self._is_valid(*item)], translate)
        except Exception:  # caused by one line; must not affect the other lines or end this thread
            for job, index in batch:
                self._alone(job, index, lambda job, index: translate([(job, index)])[0])
        else:
            for (job, index), answer in zip(batch, answers, strict=True):
                job.store(index, answer)

    def _is_valid(self, job: Job, index: int) -> bool:
        """Return whether a line can be prepared; otherwise, fail its job."""
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
        except Exception as error:  # reported to the client; must not end this thread
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
