"""Neural features: networks that score n-grams for the search, each n-gram once, in batches over many sentences.

A model may have any number of neural features. ``NeuralFeature`` is the base class, ``NeuralLM`` the CSLM and
``JointFeature`` the joint model (Devlin et al. 2014); ``rnnsmt.search.features`` loads them.

Each neural feature has a store, the cache of its n-gram scores (``kernels.neural_store.Store``). The store is kept for
the lifetime of the model, because MERT decodes the same text repeatedly. It is emptied if it has more than
``MAX_ENTRIES`` entries or contexts and no sentence is in progress. Only one search uses a store at a time: searches in
several threads get copies of the features, each with its own store (``SearchModel.lend``).

In a joint model, a target word is affiliated with a source word of its phrase pair (``rnnsmt.nnjm.examples``). The
network reads the preceding target words and the window, which are the source words around the affiliated word. The
state of a hypothesis contains only the target words. Each feature numbers the windows: equal windows have the same
number in all sentences, so the scores of equal n-grams are computed once.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.reading import words_of
from rnnsmt.search.kernels import neural_store
from rnnsmt.search.kernels.hash_tables import FREE, enter_rows
from rnnsmt.search.kernels.neural_store import ASKED, CONTEXTS, ENTRIES, ENTRY, NO_WINDOW, NgramText, Store
from rnnsmt.search.kernels.records import Derivations, RankedOptions, Work
from rnnsmt.search.options import MAX_ENTRIES
from rnnsmt.search.phrase_pairs import Affiliations, TranslationOptions

if TYPE_CHECKING:
    from rnnsmt.networks.ngram_scorer import NGramScorer
    from rnnsmt.nnjm.scorer import JointScorer

_FIRST = 1 << 16
"""Initial capacity of a store, in n-grams; a power of two."""


class NeuralCounts(NamedTuple):
    """Statistics of neural features.

    Attributes:
        requested: number of n-grams that the search requested.
        scored: number of n-grams that were scored by a network, including those of n-best lists.
        batches: number of batches in which they were scored.
    """

    requested: int
    scored: int
    batches: int


class PreparedText(NamedTuple):
    """A text and its phrase pairs in the form that a network reads, independent of a store.

    Attributes:
        ngrams: the text. For a joint model, ``ngrams.windows`` are row indices of ``windows``, which
            ``NeuralFeature.numbered`` replaces by the numbers of the windows.
        windows: ``int32`` [windows, width], the distinct windows of a joint model.
    """

    ngrams: NgramText
    windows: np.ndarray


class NeuralFeature(ABC):
    """A network as a feature of the search, with the store of its scores.

    Two searches must not use a feature at the same time: kernels change the store without the global interpreter lock.

    The state of a hypothesis is a *context*, the number of a row of ``Store.contexts``, on which the scores of all
    following words depend. Row 0 is the beginning of a sentence. Hypotheses are recombined only if their contexts are
    equal, so a context contains only the last target words. With several features, a hypothesis has a joint context
    (``kernels.neural_store``), which contains the context of each feature.

    A request (``NEURAL_REQUEST``) consists of the target phrase of a selected cell and the context of the cell's
    hypothesis; it has one n-gram for each word, and in the last stack one for ``</s>``. ``gather`` looks up the entries
    of these n-grams in the store. ``answer`` then computes the scores of the new entries with the network, for all
    sentences in progress in one batch.

    The scores are natural-log probabilities. Their sum over all words of a translation is the value of the feature,
    which ``derivation_scores`` computes for existing derivations.

    If ``by_source``, requests also differ by phrase pair and source position: ``option`` of a request identifies the
    pair (``RankedOptions.row``), and therefore the source word that a target word is aligned with; ``start`` is the
    first source word of the pair.

    Until a cell is scored by the network, its score is estimated by the n-gram LM score, multiplied by the weight of
    the network (``translation_options.rank``, ``kernels.neural_choice``).

    Attributes:
        name: name of the feature in moses.ini.
        scorer: scorer that computes the network.
        by_source: whether scores depend on the source side of a phrase.
        store: the scores computed so far.
        share: number of copies of this feature, which share the limit ``MAX_ENTRIES``.
    """

    by_source = False
    share = 1

    def __init__(self, name: str, scorer: "NGramScorer") -> None:
        """Create the feature of a network, with an empty store."""
        self.name, self.scorer = name, scorer
        self.batches = 0
        self.scored_before = 0
        self.requested_before = 0
        self.waiting_from = 0
        self.store = self._empty(_FIRST)

    def copy(self) -> "NeuralFeature":
        """Return a feature with the same network and an empty store."""
        return type(self)(self.name, self.scorer)

    @abstractmethod
    def windows(self, sentences: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct windows in source sentences, and the window around each source word.

        Returns:
            The windows ``int32`` [windows, width], and the row of the window around each word and each ``</s>``,
            ``int32`` [words of all sentences with ``</s>``].
        """

    @abstractmethod
    def score(self, contexts: np.ndarray, owner: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Compute natural-log probabilities of words after contexts with the network.

        Args:
            contexts: ``int32`` [contexts, order], rows of ``Store.contexts``.
            owner: ``int32`` [R], index of the context of each word, ascending.
            words: ``int32`` [R], classes.

        Returns:
            ``float32`` [R].
        """

    def prepare(self, looked_up: TranslationOptions, sentences: Sequence[str]) -> PreparedText:
        """Convert a text to the form that the network reads, independent of weights and of the store.

        Args:
            looked_up: phrase pairs of the text; ``prepared`` is not used.
            sentences: the tokenised sentences.
        """
        words_of_sentences = [words_of(sentence) for sentence in sentences]
        words, targets, affiliations = looked_up.targets.words, looked_up.targets.bounds, looked_up.affiliations
        if affiliations is None:
            lengths = np.diff(targets)[looked_up.target_of]
            affiliations = Affiliations(np.concatenate([[0], np.cumsum(lengths)]), np.zeros(lengths.sum(), np.int8))
        windows, window_of = self.windows(words_of_sentences)
        ngrams = NgramText(
            words=self.scorer.ids(looked_up.words)[words] if len(words) else words,
            targets=targets,
            target_of=looked_up.target_of,
            places=affiliations.places,
            pairs=affiliations.bounds,
            windows=window_of,
            sentences=np.cumsum([0, *(len(words) + 1 for words in words_of_sentences)]),
            end=self.scorer.end,
        )
        return PreparedText(ngrams, windows)

    def numbered(self, text: PreparedText) -> NgramText:
        """Return a text for one search, in which windows are given by their numbers."""
        return text.ngrams

    def gather(
        self, feature: int, sentence: int, work: Work, requests: int, ranked: RankedOptions, text: NgramText, ends: bool
    ) -> None:
        """Look up the n-grams of a sentence's requests in the store; add new n-grams, which ``answer`` will score.

        For each request, the entries of its n-grams are written to row ``feature`` of ``NeuralWork.entries``, from
        ``first`` of the request on, and the context after the phrase is written to row ``feature`` of
        ``NeuralWork.end_contexts``. The store must have room for all new n-grams (``reserve``).

        Args:
            feature: number of this feature among those of the search.
            sentence: index of the sentence in the text.
            work: workspace of the sentence.
            requests: number of requests of the sentence.
            ranked: the translation options that requests refer to.
            text: the text.
            ends: whether the phrases complete the sentence, so that ``</s>`` is scored.
        """
        neural = work.neural
        neural_store.gather(
            sentence, neural.requests[: requests + 1], feature, neural.joint_contexts, neural.entries[feature],
            neural.end_contexts[feature], self.store, text, ranked.row, ends,
        )  # fmt: skip

    def _empty(self, size: int) -> Store:
        contexts = np.full((size + 1, self.scorer.order), self.scorer.padding, np.int32)
        contexts[:, 0] = NO_WINDOW
        counts = np.zeros(3, np.int64)
        counts[CONTEXTS] = 1  # context 0 is the beginning of a sentence: padding only
        entries, free = np.zeros(size, ENTRY), np.full(2 * size, FREE, np.int32)
        keys = entries.view(np.int32).reshape(size, 4)[:, :2]
        store = Store(entries, keys, free, contexts, free.copy(), counts)
        enter_rows(contexts, store.context_slots, 1)
        return store

    def reserve(self, more: int) -> None:
        """Enlarge the store, if needed, to have room for ``more`` additional entries."""
        old, used, known = self.store, int(self.store.counts[ENTRIES]), int(self.store.counts[CONTEXTS])
        size = len(old.entries)
        # a new entry adds the context after its word, and if ``by_source`` also its own context
        needed = max(used + more, known - 1 + more * (2 if self.by_source else 1))
        if needed <= size:
            return
        while size < needed:
            size *= 2
        store = self._empty(size)
        store.entries[:used] = old.entries[:used]
        store.contexts[:known] = old.contexts[:known]
        store.counts[:] = old.counts
        store.context_slots[:] = FREE  # ``_empty`` has entered context 0
        enter_rows(store.keys, store.slots, used)
        enter_rows(store.contexts, store.context_slots, known)
        self.store = store

    def forget(self) -> None:
        """Empty the store if it is too large; all context numbers become invalid."""
        if self.full():
            self.empty()

    def empty(self) -> None:
        """Empty the store; all context numbers become invalid."""
        self.requested_before += int(self.store.counts[ASKED])
        self.scored_before += int(self.store.counts[ENTRIES])
        self.waiting_from = 0
        self.store = self._empty(_FIRST)

    def full(self) -> bool:
        """Return whether the store has more than its share of ``MAX_ENTRIES`` entries or contexts.

        If ``by_source``, an n-gram adds up to two contexts, so the n-grams that the sentences in progress will still
        add may need two eighths of the capacity for contexts.
        """
        most = MAX_ENTRIES // self.share
        contexts = most - most // 7 if self.by_source else most
        return int(self.store.counts[ENTRIES]) > most or int(self.store.counts[CONTEXTS]) > contexts + 1

    def counts(self) -> NeuralCounts:
        """Return the statistics of all searches since the model was loaded."""
        queries, entries = int(self.store.counts[ASKED]), int(self.store.counts[ENTRIES])
        return NeuralCounts(self.requested_before + queries, self.scored_before + entries, self.batches)

    def answer(self) -> None:
        """Score all new n-grams with the network, in one batch.

        Raises:
            InputError: a score is not finite.
        """
        first, last = self.waiting_from, int(self.store.counts[ENTRIES])
        if first == last:
            return
        # entries with the same context are scored together
        fresh = self.store.entries[first:last]
        known, owner = np.unique(fresh["context"], return_inverse=True)
        order = np.argsort(owner, kind="stable")
        scores = self.score(self.store.contexts[known], owner[order].astype(np.int32), fresh["word"][order])
        if not np.isfinite(scores).all():  # because of finite but too large weights
            raise InputError(f"{self.name}: the network gives probabilities that are not numbers; train it again")
        fresh["score"][order] = scores
        self.waiting_from = last
        self.batches += 1

    def derivation_scores(
        self, derivations: Derivations, rows: np.ndarray, sentences: np.ndarray, text: NgramText
    ) -> np.ndarray:
        """Compute the value of the feature for n derivations, ``float64`` [n].

        Args:
            rows: row of the phrase pair of each option of the derivations.
            sentences: ``int64`` [n], index of the sentence of each derivation.
        """
        lengths, count = int((text.pairs[rows + 1] - text.pairs[rows]).sum()), len(sentences)
        self.reserve(lengths + count)
        places = np.empty(lengths + 2 * count + 1, np.int32)
        neural_store.derivation_entries(
            derivations.offsets, rows, derivations.starts, sentences, self.store, text, places
        )
        self.answer()
        totals = np.empty(count)
        neural_store.derivation_scores(self.store, places, totals)
        return totals


class NeuralLM(NeuralFeature):
    """A neural language model, such as the CSLM: a context is the last ``order`` - 1 target words, without a window."""

    def windows(self, sentences: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
        """Return no windows, and ``NO_WINDOW`` for every word."""
        return np.zeros((0, 0), np.int32), np.full(sum(map(len, sentences)) + len(sentences), NO_WINDOW, np.int32)

    def score(self, contexts: np.ndarray, owner: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Compute natural-log probabilities of words, see ``NeuralFeature.score``."""
        return self.scorer.score(contexts[:, 1:], owner, words)


def total_counts(features: Iterable[NeuralFeature]) -> NeuralCounts:
    """Return the sums of the statistics of features."""
    counts = [feature.counts() for feature in features]
    return NeuralCounts(
        sum(count.requested for count in counts),
        sum(count.scored for count in counts),
        sum(count.batches for count in counts),
    )


MAX_WINDOWS = 1 << 20
"""Number of windows above which the next search discards the numbers of earlier windows, so that memory does not grow
with the number of texts that a process translates."""


class JointFeature(NeuralFeature):
    """A joint model in the search."""

    by_source = True
    scorer: "JointScorer"

    def __init__(self, name: str, scorer: "JointScorer") -> None:
        """Create the feature of a network."""
        super().__init__(name, scorer)
        # row 0 is not used: NO_WINDOW
        self._windows: NDArray[np.int32] = np.zeros((1 << 10, scorer.width), np.int32)
        self._numbers: dict[bytes, int] = {}

    def windows(self, sentences: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct windows, and the row of the window around each word, see ``NeuralFeature.windows``."""
        windows = [np.zeros((0, self.scorer.width), np.int32), *map(self.scorer.windows, sentences)]
        distinct, row_of = np.unique(np.concatenate(windows), axis=0, return_inverse=True)
        return distinct, row_of.reshape(-1).astype(np.int32)

    def numbered(self, text: PreparedText) -> NgramText:
        """Assign numbers to the windows of a text, see ``NeuralFeature.numbered``.

        If there are more than ``MAX_WINDOWS`` windows of earlier searches, these windows and the store are discarded.
        """
        if len(self._numbers) > MAX_WINDOWS:
            self._numbers.clear()
            self.empty()
        return text.ngrams._replace(windows=self._number(text.windows)[text.ngrams.windows])

    def _number(self, windows: np.ndarray) -> np.ndarray:
        """Return the numbers ``int32`` [n] of distinct windows ``int32`` [n, width]; new windows get new numbers."""
        known = len(self._numbers)
        numbers = [self._numbers.setdefault(window.tobytes(), len(self._numbers) + 1) for window in windows]
        size = len(self._windows)
        while size <= len(self._numbers):
            size *= 2
        if size > len(self._windows):
            self._windows = np.concatenate(
                [self._windows, np.zeros((size - len(self._windows), self.scorer.width), np.int32)]
            )
        numbered = np.array(numbers, np.int32)
        new = numbered > known
        self._windows[numbered[new]] = windows[new]
        return numbered

    def score(self, contexts: np.ndarray, owner: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Compute natural-log probabilities of words, see ``NeuralFeature.score``."""
        numbers, window_of = np.unique(contexts[:, 0], return_inverse=True)
        windows, of = self._windows[numbers], window_of.astype(np.int32)
        return self.scorer.score_windows(windows, of, contexts[:, 1:], owner, words)


class NetworkOptions(NamedTuple):
    """Options for the computation of the networks of a search.

    Attributes:
        threads: number of threads.
        device: ``cpu``, ``cuda`` or ``auto``, see ``rnnsmt.networks.devices.set_up_device``.
    """

    threads: int = 1
    device: str = "auto"
