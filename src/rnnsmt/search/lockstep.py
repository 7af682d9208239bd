"""Lockstep search of many sentences, stack by stack, so that networks score their n-grams in common batches.

The n-grams of all sentences under way are scored together after the cells of a stack are selected and before they
become hypotheses. A sentence that is complete is replaced by the next one. Neither the requests of a sentence nor their
scores depend on the other sentences, so translations do not depend on how many sentences are under way or on earlier
scores.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from rnnsmt.search.kernels import stack as kernels
from rnnsmt.search.kernels.neural_choice import next_stack
from rnnsmt.search.kernels.records import Work
from rnnsmt.search.nbest import Translation
from rnnsmt.search.sentence_search import LEAST_ROOM, SentenceSearch

T = TypeVar("T")


class _Sentence:
    """A sentence under way: the stack to be filled next, and the cells, requests and groups selected for it."""

    def __init__(self, number: int, words: int, room: int, work: Work) -> None:
        self.number, self.words, self.room, self.work = number, words, room, work
        self.stack = 0
        self.chosen = (0, 0, 0)


class LockstepSearch:
    """Lockstep search of all sentences of a ``SentenceSearch``.

    Workspaces have a capacity of ``LEAST_ROOM`` words times a power of two and are reused. Their total capacity is
    ``in_flight`` times ``LEAST_ROOM`` words, so fewer long sentences are under way at a time, and memory does not grow
    with the length of the sentences.

    Args:
        search: the search, which has neural features.
        pool: runs the compiled parts of the search.
    """

    def __init__(self, search: SentenceSearch, pool: ThreadPoolExecutor) -> None:
        self.search, self.pool = search, pool
        self.idle: list[tuple[int, Work]] = []
        self.room = max(search.options.in_flight, 1) * LEAST_ROOM
        """Total capacity, in words, of the workspaces that may still be allocated."""

    def translations(self) -> Iterator[Translation]:
        """Yield all translations, in order."""
        spans = self.search.looked_up.spans
        done: dict[int, Translation] = {}
        waiting = iter(range(len(spans)))
        under_way: list[_Sentence] = []
        upcoming = 0
        number = next(waiting, None)
        while number is not None or under_way:
            if not under_way:  # hypotheses hold numbers of contexts: the stores may be emptied only now
                for feature, _ in self.search.neural:
                    feature.forget()
            while number is not None and not (under_way and self._is_full()):
                if len(spans[number]) == 0:
                    done[number] = self.search.nothing()
                else:
                    work = self._workspace(len(spans[number]), bool(under_way))
                    if work is None:
                        break
                    under_way.append(self._begin(number, work))
                number = next(waiting, None)
            if under_way:
                self._advance(under_way)
                done_now = [sentence for sentence in under_way if sentence.stack > sentence.words]
                under_way = [sentence for sentence in under_way if sentence.stack <= sentence.words]
                done |= zip([s.number for s in done_now], self._map(self._finish, done_now), strict=True)
            # sentences are completed out of order
            while upcoming in done:
                yield done.pop(upcoming)
                upcoming += 1

    def _is_full(self) -> bool:
        """Return whether a store is to be emptied before further sentences begin."""
        return any(feature.full() for feature, _ in self.search.neural)

    def _workspace(self, words: int, may_wait: bool) -> tuple[int, Work] | None:
        """Return a workspace for a sentence and its capacity in words; None if a sentence under way must end first.

        Args:
            words: number of words of the sentence.
            may_wait: whether None may be returned.
        """
        room = LEAST_ROOM
        while room < words:
            room *= 2
        place = next((i for i, (size, _) in enumerate(self.idle) if size == room), None)
        if place is not None:
            return self.idle.pop(place)
        # drop idle workspaces of other sizes
        while self.idle and self.room < room:
            self.room += self.idle.pop()[0]
        if self.room < room and may_wait:
            return None
        self.room -= room
        return room, self.search.new_work(room)

    def _begin(self, number: int, workspace: tuple[int, Work]) -> _Sentence:
        search, spans = self.search, self.search.looked_up.spans[number]
        kernels.begin(
            spans, search.looked_up.walls[number], search.lms, search.several, search.ranked, workspace[1],
            search.constants,
        )  # fmt: skip
        return _Sentence(number, len(spans), *workspace)

    def _advance(self, under_way: list[_Sentence]) -> None:
        """Fill one stack of every sentence, select the cells of the next stack, and score their n-grams."""
        self._map(self._next_stack, under_way)
        for place, (feature, text) in enumerate(self.search.neural):
            for sentence in under_way:
                if sentence.stack <= sentence.words:
                    last = sentence.stack == sentence.words
                    feature.gather(place, sentence.number, sentence.work, sentence.chosen[1], text, last)
            feature.answer()

    def _next_stack(self, sentence: _Sentence) -> None:
        search, spans = self.search, self.search.looked_up.spans[sentence.number]
        stores = tuple(feature.store for feature, _ in search.neural)
        sentence.chosen = next_stack(
            sentence.stack, sentence.chosen, spans, search.lms, search.several, search.ranked, sentence.work,
            stores, search.constants,
        )  # fmt: skip
        sentence.stack += 1

    def _finish(self, sentence: _Sentence) -> Translation:
        work = sentence.work
        best = int(kernels.best_complete(work, sentence.words))
        translation = self.search.found(sentence.number, work, best)
        self.idle.append((sentence.room, work))
        return translation

    def _map(self, function: Callable[[_Sentence], T], sentences: list[_Sentence]) -> list[T]:
        """Apply a function to sentences, on several threads if these were requested."""
        if self.search.options.threads <= 1:
            return [function(sentence) for sentence in sentences]
        return list(self.pool.map(function, sentences))
