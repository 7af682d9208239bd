"""Queue of requests in front of the decoder, which translates in one thread.

The unit of work is a line. Lines are taken in turn from every request, up to ``BATCH_COST``, and the lines of a batch
are translated together. A short request therefore waits for about one batch, regardless of the size of the others.
The queue belongs to the event loop: only ``_translated`` runs in the thread of the decoder.

A job counts until its answer has been sent (``RequestQueue.release``): the work of all jobs is limited, and so is the
memory of their answers, which clients may read slowly or not at all.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from rnnsmt.translation.system import PhraseUse, System

BATCH_COST = 2000
"""Cost of a batch, see ``Job.line_cost``: about 25 sentences; larger batches are hardly faster."""

MOST_WAITING = 400
"""Maximum number of jobs."""

MOST_COST = 16_000_000
"""Maximum cost of all jobs."""

MOST_ANSWERS = 100_000_000
"""Maximum size of the answers of all jobs in bytes; those of at most ``SMALL_ANSWER`` bytes are always accepted."""

SMALL_ANSWER = 50_000
"""Size of an answer in bytes that does not have to wait for others; ``MOST_WAITING`` of them take little memory."""

LINE_COST = 20
"""Cost of an empty line, in characters."""

EXPLAIN_FACTOR, NBEST_FACTOR = 2, 10
"""Cost of a character with an explanation, or with an n-best list, relative to a translation without them."""

ENTRY_BYTES, CHARACTER_BYTES, EXPLAINED_BYTES = 60, 2, 100
"""Size of an answer in bytes: per line or entry of an n-best list, per character, and per explained character."""


class NbestEntry(BaseModel):
    """One entry of an n-best list, with the score of the model."""

    translation: str
    score: float


class LineTranslation(BaseModel):
    """Translation of a line. Only the requested fields are set.

    Attributes:
        translation: the best translation.
        nbest: distinct translations, best first.
        score: score of the model.
        contributions: weight times value, summed by kind of feature.
        phrases: phrase pairs, in the order of the translation.
    """

    translation: str
    nbest: list[NbestEntry] | None = None
    score: float | None = None
    contributions: dict[str, float] | None = None
    phrases: list[PhraseUse] | None = None


class FullError(Exception):
    """The queue is full."""


Packed = TypeVar("Packed")


class Job(Generic[Packed]):
    """The lines of one request; to be created in the event loop.

    Attributes:
        lines: raw segments.
        nbest: number of translations of each; 0: only the best translation.
        explain: whether to explain the translations.
        pack: converts a translation, in the thread of the decoder, into what is kept until all lines are translated.
        answer: receives one packed translation per line, or an exception; cancelled when it is no longer needed.
        cost: expected cost of all lines.
        size: expected size of the answer in bytes; its size when it is known.
        next: index of the next line to translate.
    """

    def __init__(
        self,
        lines: Sequence[str],
        nbest: int = 0,
        explain: bool = False,
        *,
        pack: Callable[[LineTranslation], Packed],
        copied: int = 0,
    ) -> None:
        """Create a job.

        Args:
            copied: number of characters of the answer that are not translated.
        """
        self.lines, self.nbest, self.explain, self.pack = lines, nbest, explain, pack
        self.answer: asyncio.Future[list[Packed]] = asyncio.get_running_loop().create_future()
        self.next = 0
        self.cost = sum(map(self.line_cost, range(len(lines))))
        characters, copies = sum(map(len, lines)), max(nbest, 1)
        self.size = (ENTRY_BYTES * len(lines) + CHARACTER_BYTES * (characters + copied)) * copies
        if explain:
            self.size += EXPLAINED_BYTES * characters
        self._found: list[Packed] = []

    def line_cost(self, index: int) -> int:
        """Return the expected cost of a line, in characters translated without explanation and n-best list."""
        factor = NBEST_FACTOR if self.nbest else EXPLAIN_FACTOR if self.explain else 1
        return (LINE_COST + len(self.lines[index])) * factor

    def store(self, translation: Packed | Exception) -> None:
        """Store the translation of the next line: the last one, or an exception, completes the answer."""
        if self.answer.done():
            return
        if isinstance(translation, Exception):
            self.answer.set_exception(translation)
            return
        self._found.append(translation)
        if len(self._found) == len(self.lines):
            self.answer.set_result(self._found)


class RequestQueue:
    """The waiting jobs of a system, and the thread that translates; no other thread uses the system."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._admitted: set[Job[Any]] = set()
        self._turns: deque[Job[Any]] = deque()
        self._changed = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    async def translate(self, job: Job[Packed]) -> list[Packed]:
        """Return the packed translations of the lines of a job, which counts until ``release``.

        If the caller is cancelled, the other lines are dropped.

        Raises:
            FullError: the queue is full.
        """
        cost = sum(other.cost for other in self._admitted)
        size = sum(other.size for other in self._admitted)
        if (
            len(self._admitted) >= MOST_WAITING
            or (cost and cost + job.cost > MOST_COST)
            or (size and job.size > SMALL_ANSWER and size + job.size > MOST_ANSWERS)
        ):
            raise FullError
        self._admitted.add(job)
        try:
            if not job.lines:
                return []
            if self._worker is None:
                self._worker = asyncio.create_task(self._run())
            self._turns.append(job)
            self._changed.set()
            return await job.answer
        except BaseException:
            self.release(job)
            raise

    def release(self, job: Job[Any]) -> None:
        """Stop to count a job: its answer has been sent, or is no longer needed."""
        self._admitted.discard(job)

    async def _run(self) -> None:
        """Translate waiting jobs until the event loop ends."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as decoder:
            while True:
                batch = self._batch()
                if not batch:
                    self._changed.clear()
                    await self._changed.wait()
                for kind in dict.fromkeys((job.nbest, job.explain) for job, _ in batch):
                    items = [(job, index) for job, index in batch if (job.nbest, job.explain) == kind]
                    found = await loop.run_in_executor(decoder, self._translated, items)
                    for (job, _), translation in zip(items, found, strict=True):
                        job.store(translation)

    def _batch(self) -> list[tuple[Job[Any], int]]:
        """Take the lines of the next batch: jobs with the index of a line, at least one if a job is waiting."""
        chosen: list[tuple[Job[Any], int]] = []
        cost = 0
        while self._turns and cost < BATCH_COST:
            job = self._turns.popleft()
            if job.answer.done():  # failed, or no longer needed
                continue
            chosen.append((job, job.next))
            cost += job.line_cost(job.next)
            job.next += 1
            if job.next < len(job.lines):
                self._turns.append(job)
        return chosen

    def _translated(self, items: list[tuple[Job[Any], int]]) -> list[Any]:
        """Translate and pack lines of the same kind in one search; a line that fails affects only its own job.

        Returns:
            A packed translation or an exception for each line.
        """
        try:
            return [job.pack(found) for (job, _), found in zip(items, self._search(items), strict=True)]
        except Exception as error:
            if len(items) == 1:
                return [error]
            return [self._translated([item])[0] for item in items]

    def _search(self, items: list[tuple[Job[Any], int]]) -> list[LineTranslation]:
        (job, index), lines = items[0], [job.lines[index] for job, index in items]
        if not job.explain and not job.nbest:
            return [LineTranslation(translation=text) for text in self.system.translate_all(lines, index + 1)]
        found = [LineTranslation(translation="") for _ in items]
        if job.nbest:
            for line, translation in zip(lines, found, strict=True):
                hypotheses = self.system.nbest(line, job.nbest, index + 1) if line.strip() else []
                translation.nbest = [NbestEntry(translation=one.text, score=one.score) for one in hypotheses]
                translation.translation = hypotheses[0].text if hypotheses else ""
        if job.explain:
            explained = self.system.explain_all(lines, first=index + 1)
            for translation, (best, phrases) in zip(found, explained, strict=True):
                translation.translation, translation.score = best.text, best.score
                translation.contributions, translation.phrases = best.contributions, phrases
        return found
