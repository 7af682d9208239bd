"""Neural features: networks whose scores the search requests, for many sentences together and each of them once.

A model has a list of neural features; the search treats any number alike. ``NeuralFeature`` is the interface,
``NeuralLM`` the CSLM; the joint model is in ``joint_model``, and ``neural_loading`` loads them.

The store of scores lives as long as the model, across sentences and decodings (MERT decodes the same text repeatedly).
It is emptied if it has more than ``MAX_ENTRIES`` entries and no sentence is under way.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from rnnsmt.search.kernels import neural_store
from rnnsmt.search.kernels.neural_store import ASKED, CONTEXTS, ENTRIES, ENTRY, Store
from rnnsmt.search.kernels.records import RankedOptions, Work
from rnnsmt.search.nbest import Derivations
from rnnsmt.search.options import MAX_ENTRIES
from rnnsmt.search.phrase_pairs import TranslationOptions

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


class NeuralFeature(ABC):
    """A network as a feature of the search, with the store of its scores.

    The state of a hypothesis is a *context*, the number of a row of ``Store.contexts``, on which the scores of all
    following words depend. Row 0 is the beginning of a sentence. Hypotheses are recombined only if their contexts are
    equal, so that a context should contain no more than the last target words. With several features, a hypothesis has
    a joint context (``kernels.joint_states``); each feature reads its own contexts only.

    The queries of a stack are the target phrases of the selected cells after the contexts of their hypotheses
    (``Work.phrases``, see ``PHRASE_REQUEST``), one n-gram per word and one for ``</s>`` in the last stack. ``gather``
    looks up their entries in the store. ``answer`` then scores the new ones by the network, for all sentences in
    progress in one batch.

    The scores are natural-log probabilities, whose sum over all words of a translation is the value of the feature.
    ``derivation_scores`` computes it for given derivations.

    A feature that depends on the source sentence sets ``by_source``. Its requests then differ by phrase pair and source
    position: ``option`` of a request leads to the pair (``RankedOptions.row``), hence to the source word that a target
    word is aligned with, and ``start`` is the first source word of the pair. What depends on the text alone, such as
    the source windows of each sentence, is computed by ``prepare``.

    Until a cell is scored, the score of the network is estimated by that of the n-gram LM, multiplied by the weight of
    the network (``translation_options.rank``, ``kernels.neural_choice``).

    Attributes:
        name: name of the feature in the ini.
        by_source: whether scores depend on the source side of a phrase.
        contexts_per_entry: maximum number of contexts that a new entry adds to the store.
        store: the scores so far.
    """

    by_source = False
    contexts_per_entry = 1

    def __init__(self, name: str, width: int, padding: int) -> None:
        """Create a feature with an empty store.

        Args:
            name: name of the feature in the ini.
            width: number of inputs of the network without the predicted word, the length of a context.
            padding: all inputs of context 0.
        """
        self.name, self._width, self._padding = name, width, padding
        self.batches = 0
        self.scored_before = 0
        self.requested_before = 0
        self.waiting_from = 0
        self.store = self._empty(_FIRST)

    @abstractmethod
    def prepare(self, looked_up: TranslationOptions, sentences: Sequence[str]) -> Any:
        """Compute what ``gather`` and ``derivation_scores`` need of a text, independent of weights.

        The result stays valid when the store is emptied: it has no numbers of contexts.

        Args:
            looked_up: phrase pairs of the text, ``prepared`` still empty.
            sentences: the tokenised sentences, without XML.
        """

    @abstractmethod
    def gather(self, feature: int, sentence: int, work: Work, requests: int, text: "FeatureText", last: bool) -> None:
        """Look up the n-grams of a sentence's requests; new ones are added and wait for ``answer``.

        For every request the entries of its n-grams are written to row ``feature`` of ``work.entries``, from ``first``
        of the request on, and the context after the phrase to row ``feature`` of ``work.end_contexts``.

        Args:
            feature: number of this feature among those of the search, which ``kernels.joint_states.context_of_feature``
                needs to find its own context in that of a hypothesis.
            sentence: index of the sentence in the text.
            work: workspace of the sentence.
            requests: number of its requests.
            text: the text.
            last: whether the phrases complete the sentence, so that ``</s>`` is scored.
        """

    @abstractmethod
    def enter(
        self, derivations: Derivations, rows: np.ndarray, sentences: np.ndarray, text: "FeatureText"
    ) -> np.ndarray:
        """Look up the n-grams of complete derivations, including ``</s>``; new ones are added and wait for ``answer``.

        Args:
            derivations: the derivations.
            rows: row of the phrase pair of each of their options.
            sentences: ``int64`` [n], index of the sentence of each derivation.
            text: the text; ``ranked`` is not used.

        Returns:
            Entries as of ``neural_store.derivation_entries``.
        """

    @abstractmethod
    def score(self, contexts: np.ndarray, owner: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Compute natural-log probabilities of words after contexts with the network.

        Args:
            contexts: ``int32`` [contexts, width].
            owner: ``int32`` [R], index of the context of each word, ascending.
            words: ``int32`` [R], classes.

        Returns:
            ``float32`` [R].
        """

    def _empty(self, size: int) -> Store:
        contexts = np.full((size + 1, self._width), self._padding, np.int32)
        counts = np.zeros(3, np.int64)
        counts[CONTEXTS] = 1  # context 0 is the beginning of a sentence: padding only
        free = np.full(2 * size, -1, np.int32)
        store = Store(np.zeros(size, ENTRY), free, contexts, free.copy(), counts)
        neural_store.rebuild_slots(store)
        return store

    def reserve(self, more: int) -> None:
        """Enlarge the store, if needed, to take ``more`` further entries."""
        old, used, known = self.store, int(self.store.counts[ENTRIES]), int(self.store.counts[CONTEXTS])
        size = len(old.entries)
        needed = max(used + more, known - 1 + more * self.contexts_per_entry)
        if needed <= size:
            return
        while size < needed:
            size *= 2
        store = self._empty(size)
        store.entries[:used] = old.entries[:used]
        store.contexts[:known] = old.contexts[:known]
        store.counts[:] = old.counts
        store.context_slots[:] = -1  # ``_empty`` has entered context 0; ``rebuild_slots`` enters all contexts
        neural_store.rebuild_slots(store)
        self.store = store

    def forget(self) -> None:
        """Empty the store if it is too large; numbers of contexts become invalid."""
        if self.full():
            self.empty()

    def empty(self) -> None:
        """Empty the store; numbers of contexts become invalid."""
        self.requested_before += int(self.store.counts[ASKED])
        self.scored_before += int(self.store.counts[ENTRIES])
        self.waiting_from = 0
        self.store = self._empty(_FIRST)

    def full(self) -> bool:
        """Return whether the store has more than ``MAX_ENTRIES`` entries."""
        return int(self.store.counts[ENTRIES]) > MAX_ENTRIES

    def counts(self) -> NeuralCounts:
        """Return the statistics since the model was loaded."""
        asked, entries = int(self.store.counts[ASKED]), int(self.store.counts[ENTRIES])
        return NeuralCounts(self.requested_before + asked, self.scored_before + entries, self.batches)

    def answer(self) -> None:
        """Score all waiting n-grams with the network, in one batch."""
        first, last = self.waiting_from, int(self.store.counts[ENTRIES])
        if first == last:
            return
        # entries with the same context are scored together: their keys are context << 32 | word
        fresh = self.store.entries[first:last]
        known, owner = np.unique(fresh["key"] >> 32, return_inverse=True)
        order = np.argsort(owner, kind="stable")
        words = (fresh["key"] & 0xFFFFFFFF).astype(np.int32)
        scores = self.score(self.store.contexts[known], owner[order].astype(np.int32), words[order])
        fresh["score"][order] = scores
        self.waiting_from = last
        self.batches += 1

    def derivation_scores(
        self, derivations: Derivations, rows: np.ndarray, sentences: np.ndarray, text: "FeatureText"
    ) -> np.ndarray:
        """Compute the values ``float64`` [n] of the feature for derivations; arguments as of ``enter``."""
        places = self.enter(derivations, rows, sentences, text)
        self.answer()
        totals = np.empty(len(derivations.offsets) - 1)
        neural_store.derivation_scores(self.store, places, totals)
        return totals


class FeatureText(NamedTuple):
    """A text in the form that one neural feature reads.

    Attributes:
        looked_up: its phrase pairs.
        prepared: what ``NeuralFeature.prepare`` returned for the text.
        ranked: the options that requests refer to.
    """

    looked_up: TranslationOptions
    prepared: Any
    ranked: RankedOptions


class NGramNetwork(Protocol):
    """Network that predicts a target word from the words before it, as ``rnnsmt.cslm.ngram_scorer.NGramScorer`` does.

    Attributes:
        order: order of the n-grams.
        padding: class of the words before the beginning of a sentence.
        unknown: class of unknown words.
        end: class of ``</s>``.
    """

    order: int
    padding: int
    unknown: int
    end: int

    def ids(self, words: list[str]) -> np.ndarray:
        """Return the classes of words, ``int32``."""
        ...

    def score(self, contexts: np.ndarray, owner: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Compute natural-log probabilities of words after contexts, as ``NeuralFeature.score``."""
        ...


class NeuralLM(NeuralFeature):
    """A neural language model, such as the CSLM: a context is the last ``order`` - 1 target words."""

    def __init__(self, name: str, scorer: NGramNetwork) -> None:
        """Create the feature of a network."""
        super().__init__(name, scorer.order - 1, scorer.padding)
        self.scorer = scorer

    def prepare(self, looked_up: TranslationOptions, sentences: Sequence[str]) -> np.ndarray:
        """Return the classes ``int32`` [words] of the words of all target phrases."""
        words = looked_up.targets.words
        return self.scorer.ids(looked_up.words)[words] if len(words) else words

    def gather(self, feature: int, sentence: int, work: Work, requests: int, text: FeatureText, last: bool) -> None:
        """Look up the n-grams of a sentence's requests, see ``NeuralFeature.gather``."""
        self.reserve(work.entries.shape[1])
        end = self.scorer.end if last else -1
        neural_store.gather(feature, requests, work, self.store, text.looked_up.targets.bounds, text.prepared, end)

    def enter(self, derivations: Derivations, rows: np.ndarray, sentences: np.ndarray, text: FeatureText) -> np.ndarray:
        """Look up the n-grams of complete derivations, see ``NeuralFeature.enter``."""
        bounds, phrases = text.looked_up.targets.bounds, text.looked_up.target_of[rows]
        lengths = int((bounds[phrases + 1] - bounds[phrases]).sum())
        count = len(derivations.offsets) - 1
        self.reserve(lengths + count)
        places = np.empty(lengths + 2 * count + 2, np.int32)
        neural_store.derivation_entries(
            derivations.offsets, phrases, self.store, bounds, text.prepared, self.scorer.end, places
        )
        return places

    def score(self, contexts: np.ndarray, owner: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Compute natural-log probabilities of words, see ``NeuralFeature.score``."""
        return self.scorer.score(contexts, owner, words)


def total_counts(features: Iterable[NeuralFeature]) -> NeuralCounts:
    """Return the sums of the statistics of features."""
    counts = [feature.counts() for feature in features]
    return NeuralCounts(
        sum(one.requested for one in counts), sum(one.scored for one in counts), sum(one.batches for one in counts)
    )
