"""Search with neural features: many sentences in lockstep, stack by stack, so that the networks score large batches.

    for every stack of the sentences in progress:
        next_stack   add the scores of the networks to the cells of the last stack, which become hypotheses;
                     choose the cells of the next stack: first the best by n-gram LM, then ``cslm_cells`` of these
        gather       look up the n-grams of these cells in the store of each network; add new n-grams to it
        answer       compute the scores of the new n-grams of all sentences with the network, in one batch

The store of a network is the cache of its n-gram scores (``kernels.neural_store.Store``).

A sentence that is complete is replaced by the next one. Neither the requests of a sentence nor their scores depend on
other sentences, so translations do not depend on the number of sentences in progress or on the cached scores.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from rnnsmt.search.kernels import stack as kernels
from rnnsmt.search.kernels.neural_choice import next_stack
from rnnsmt.search.kernels.neural_store import Store
from rnnsmt.search.kernels.records import Derivations, Work
from rnnsmt.search.nbest import Translation
from rnnsmt.search.sentence_search import LEAST_ROOM, SentenceSearch

T = TypeVar("T")


class _Workspace(NamedTuple):
    """Workspace of a sentence, with its capacity in source words, and the thread whose scratch space it uses."""

    room: int
    thread: int
    work: Work


class _Sentence:
    """Sentence in progress.

    Attributes:
        number: index of the sentence in the text.
        words: number of source words.
        workspace: its workspace.
        stack: number of the stack to be filled next.
        chosen: numbers of cells, requests and groups that ``choose_for_neural`` has selected for this stack.
    """

    def __init__(self, number: int, words: int, workspace: _Workspace) -> None:
        self.number, self.words, self.workspace, self.work = number, words, workspace, workspace.work
        self.stack = 0
        self.chosen = (0, 0, 0)


class LockstepSearch:
    """Lockstep search of all sentences of a ``SentenceSearch``.

    Each workspace has a capacity of ``LEAST_ROOM`` words times a power of two, and is reused. The total capacity of all
    workspaces is ``SearchOptions.together`` times ``LEAST_ROOM`` words. If sentences are long, fewer of them are in
    progress at a time, so memory does not grow with the length of the sentences. Each workspace belongs to a thread,
    because the workspaces of a thread share the scratch space of the kernels (3 MB by default).

    Args:
        search: the search, which must have neural features.
        pool: threads that run the compiled parts of the search.
    """

    def __init__(self, search: SentenceSearch, pool: ThreadPoolExecutor) -> None:
        self.search, self.pool = search, pool
        self.idle: list[_Workspace] = []
        self.scratch = [search.new_scratch() for _ in range(max(search.options.threads, 1))]
        self.workspaces = [0] * len(self.scratch)
        """Number of workspaces of each thread."""
        self.room = search.options.together * LEAST_ROOM
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
            if not under_way:  # stores must not be emptied before: hypotheses contain context numbers
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
                done |= self._map(self._finish, done_now)
            # sentences are completed out of order
            while upcoming in done:
                yield done.pop(upcoming)
                upcoming += 1

    def _is_full(self) -> bool:
        """Return whether the cache of a neural feature is full and must be cleared before another sentence begins."""
        return any(feature.full() for feature, _ in self.search.neural)

    def _workspace(self, words: int, may_wait: bool) -> _Workspace | None:
        """Return a workspace for a sentence of ``words`` words.

        If ``may_wait``, return None if a sentence in progress must be completed first.
        """
        room = LEAST_ROOM
        while room < words:
            room *= 2
        index = next((i for i, workspace in enumerate(self.idle) if workspace.room == room), None)
        if index is not None:
            return self.idle.pop(index)
        # free idle workspaces of other sizes
        while self.idle and self.room < room:
            dropped = self.idle.pop()
            self.room += dropped.room
            self.workspaces[dropped.thread] -= 1
        if self.room < room and may_wait:
            return None
        self.room -= room
        thread = self.workspaces.index(min(self.workspaces))
        self.workspaces[thread] += 1
        return _Workspace(room, thread, self.search.new_work(room, self.scratch[thread]))

    def _begin(self, number: int, workspace: _Workspace) -> _Sentence:
        search, spans = self.search, self.search.looked_up.spans[number]
        kernels.begin(spans, search.lms, search.several, search.ranked, workspace.work, search.constants)
        return _Sentence(number, len(spans), workspace)

    def _advance(self, under_way: list[_Sentence]) -> None:
        """Fill one stack of every sentence, choose the cells of its next stack, and score their n-grams."""
        stores = tuple(feature.store for feature, _ in self.search.neural)
        self._map(lambda sentence: self._next_stack(sentence, stores), under_way)
        asking = [sentence for sentence in under_way if sentence.stack <= sentence.words]
        for index, (feature, text) in enumerate(self.search.neural):
            feature.reserve(sum(sentence.work.neural.entries.shape[1] for sentence in asking))
            for sentence in asking:
                last = sentence.stack == sentence.words
                requests, ranked = sentence.chosen[1], self.search.ranked
                feature.gather(index, sentence.number, sentence.work, requests, ranked, text, last)
            feature.answer()

    def _next_stack(self, sentence: _Sentence, stores: tuple[Store, ...]) -> None:
        search, spans = self.search, self.search.looked_up.spans[sentence.number]
        sentence.chosen = next_stack(
            sentence.stack, sentence.chosen, spans, search.lms, search.several, search.ranked, sentence.work,
            stores, search.constants,
        )  # fmt: skip
        sentence.stack += 1

    def _finish(self, sentence: _Sentence) -> tuple[int, Translation]:
        work, derivations = sentence.work, Derivations.empty(1, sentence.words)
        kernels.trace(work, kernels.best_complete(work, sentence.words), derivations, 0)
        (translation,) = self.search.found(sentence.number, derivations, work)
        self.idle.append(sentence.workspace)
        return sentence.number, translation

    def _map(self, function: Callable[[_Sentence], T], sentences: list[_Sentence]) -> list[T]:
        """Return the results of a function for sentences, thread by thread."""

        def of_thread(thread: int) -> list[T]:
            return [function(sentence) for sentence in sentences if sentence.workspace.thread == thread]

        if len(self.scratch) == 1:
            return of_thread(0)
        return [result for results in self.pool.map(of_thread, range(len(self.scratch))) for result in results]
