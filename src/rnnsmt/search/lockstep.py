"""Many sentences searched side by side, stack by stack, for the sake of a neural LM.

Between choosing the cells of a stack and making hypotheses of them, the n-grams of all sentences under way are scored
together. A sentence that is done makes room for the next one. What a sentence asks for does not depend on the others,
nor does the answer, so that neither their number nor what was scored before changes a translation.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from rnnsmt.search.kernels import neural as neural_kernels
from rnnsmt.search.kernels import stack as kernels
from rnnsmt.search.neural import NeuralFeature
from rnnsmt.search.records import Work

if TYPE_CHECKING:
    from rnnsmt.search.decoder import Decoder, Translation

T = TypeVar("T")

LEAST_ROOM = 40
"""Words that the smallest workspaces have room for, larger ones for twice, four times as many."""


class _Sentence:
    """A sentence under way: the stack that is to be filled, its cells and requests."""

    def __init__(self, number: int, words: int, room: int, work: Work) -> None:
        self.number, self.words, self.room, self.work = number, words, room, work
        self.stack = 1
        self.cells = self.requests = self.groups = 0


class Flight:
    """The sentences of a decoder, ``in_flight`` of them at a time; ``pool`` runs their compiled parts.

    Workspaces are used again. All together they have room for ``in_flight`` times ``LEAST_ROOM`` words: of longer
    sentences fewer are under way, and a text of the longest ones takes no more memory than another.
    """

    def __init__(self, decoder: "Decoder", neural: NeuralFeature, pool: ThreadPoolExecutor) -> None:
        self.decoder, self.neural, self.pool = decoder, neural, pool
        self.idle: list[tuple[int, Work]] = []
        self.room = max(decoder.options.in_flight, 1) * LEAST_ROOM
        """Words that workspaces may still be made for."""

    def translations(self) -> Iterator["Translation"]:
        """All translations, in order."""
        spans = self.decoder.prepared.spans
        done: dict[int, Translation] = {}
        waiting = iter(range(len(spans)))
        under_way: list[_Sentence] = []
        upcoming = 0
        number = next(waiting, None)
        while number is not None or under_way:
            if not under_way:
                self.neural.forget()
            while number is not None and not (under_way and self.neural.full()):
                if len(spans[number]) == 0:
                    done[number] = self.decoder.nothing()
                else:
                    work = self._workspace(len(spans[number]), bool(under_way))
                    if work is None:
                        break
                    under_way.append(self._begin(number, work))
                number = next(waiting, None)
            if under_way:
                self._advance(under_way)
                landed = [sentence for sentence in under_way if sentence.stack > sentence.words]
                under_way = [sentence for sentence in under_way if sentence.stack <= sentence.words]
                done |= zip([s.number for s in landed], self._map(self._finish, landed), strict=True)
            while upcoming in done:
                yield done.pop(upcoming)
                upcoming += 1

    def _workspace(self, words: int, may_wait: bool) -> tuple[int, Work] | None:
        """A workspace for a sentence and the words it has room for; None where one under way has to end before."""
        room = LEAST_ROOM
        while room < words:
            room *= 2
        place = next((i for i, (size, _) in enumerate(self.idle) if size == room), None)
        if place is not None:
            return self.idle.pop(place)
        while self.idle and self.room < room:
            self.room += self.idle.pop()[0]
        if self.room < room and may_wait:
            return None
        self.room -= room
        return room, self.decoder.new_work(room)

    def _begin(self, number: int, workspace: tuple[int, Work]) -> _Sentence:
        decoder, spans = self.decoder, self.decoder.prepared.spans[number]
        kernels.begin(spans, decoder.inventory, workspace[1], decoder.settings)
        return _Sentence(number, len(spans), *workspace)

    def _advance(self, under_way: list[_Sentence]) -> None:
        """Fill one stack of every sentence."""
        targets = self.decoder.prepared.targets
        self._map(self._propose, under_way)
        for sentence in under_way:
            self.neural.gather(sentence.work, sentence.requests, targets, sentence.stack == sentence.words)
        self.neural.answer()
        self._map(self._add, under_way)

    def _propose(self, sentence: _Sentence) -> None:
        decoder, work = self.decoder, sentence.work
        spans = decoder.prepared.spans[sentence.number]
        cells = kernels.propose(
            sentence.stack, spans, decoder.model.lm.arrays, decoder.inventory, work, decoder.settings
        )
        found = neural_kernels.choose_for_neural(cells, decoder.inventory, work, decoder.settings)
        sentence.cells, sentence.requests, sentence.groups = found

    def _add(self, sentence: _Sentence) -> None:
        decoder = self.decoder
        neural_kernels.settle(sentence.requests, sentence.work, self.neural.store)
        kernels.add_cells(
            sentence.stack, sentence.cells, decoder.inventory, sentence.work, decoder.settings, True, sentence.groups
        )
        sentence.stack += 1

    def _finish(self, sentence: _Sentence) -> "Translation":
        work = sentence.work
        best = int(kernels.best_complete(work, sentence.words))
        translation = self.decoder.found(sentence.number, work, best)
        self.decoder.landed(work)
        self.idle.append((sentence.room, work))
        return translation

    def _map(self, function: Callable[[_Sentence], T], sentences: list[_Sentence]) -> list[T]:
        """``map`` over sentences, on the threads where there are several."""
        if self.decoder.options.threads <= 1:
            return [function(sentence) for sentence in sentences]
        return list(self.pool.map(function, sentences))
