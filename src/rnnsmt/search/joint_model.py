"""The neural network joint model (Devlin et al. 2014) as a feature of the search: ``JointFeature``.

A target word is affiliated with a source word of its phrase pair (``rnnsmt.nnjm.affiliation``), and the network reads
the window of source words around it and the preceding target words. The state of a hypothesis contains the target words
only.

Windows are numbered: equal windows, of any sentence, have the same number, so that they share the scores of equal
n-grams.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from rnnsmt.base.io import words_of
from rnnsmt.search.kernels import joint_store
from rnnsmt.search.kernels.joint_store import NO_WINDOW, JointText
from rnnsmt.search.kernels.records import Work
from rnnsmt.search.nbest import Derivations
from rnnsmt.search.neural import FeatureText, NeuralFeature
from rnnsmt.search.phrase_pairs import TranslationOptions

MAX_WINDOWS = 1 << 20
"""Number of windows from which on the next text begins a new numbering, so that memory does not grow with the text that
a process has translated."""


class JointNetwork(Protocol):
    """Network that predicts a target word from source words and the words before it, as ``rnnsmt.nnjm.JointScorer``.

    Attributes:
        order: number of target words of an n-gram, including the predicted one.
        width: number of source words of a window.
        padding: class of the target words before the beginning of a sentence, 0.
        end: class of the target's ``</s>``.
    """

    order: int
    width: int
    padding: int
    end: int

    def ids(self, words: list[str]) -> np.ndarray:
        """Return the classes of target words, ``int32``."""
        ...

    def windows(self, words: list[str]) -> np.ndarray:
        """Return the windows of a source sentence, ``int32`` [words + 1, width]; the last one is that of ``</s>``."""
        ...

    def score_windows(
        self, windows: np.ndarray, window_of: np.ndarray, histories: np.ndarray, owner: np.ndarray, words: np.ndarray
    ) -> np.ndarray:
        """Compute natural-log probabilities, as ``rnnsmt.nnjm.scorer.JointScorer.score_windows``."""
        ...

    def evidence(self, source: list[str], affiliated: np.ndarray, target: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Compute what a prediction owes to the source, as ``rnnsmt.nnjm.scorer.JointScorer.evidence``."""
        ...


class JointFeature(NeuralFeature):
    """A joint model in the search; the rows of its store are described in ``kernels.joint_store``."""

    by_source = True
    contexts_per_entry = 2

    def __init__(self, name: str, scorer: JointNetwork, scores_end: bool = True) -> None:
        """Create the feature of a network.

        Args:
            name: name of the feature in the ini.
            scorer: the network.
            scores_end: whether ``</s>`` is scored; in Moses it is not.
        """
        assert scorer.padding == NO_WINDOW  # context 0: no window, no words
        super().__init__(name, scorer.order, scorer.padding)
        self.scorer, self._scores_end = scorer, scores_end
        self._windows = np.zeros((1 << 10, scorer.width), np.int32)  # row 0 is not used: NO_WINDOW
        self._numbers: dict[bytes, int] = {}

    def prepare(self, looked_up: TranslationOptions, sentences: Sequence[str]) -> JointText:
        """Number the windows of the sentences, and look up the classes of target words.

        With more than ``MAX_WINDOWS`` windows, those of earlier texts, which must not be searched any more, and the
        store are given up.
        """
        if len(self._numbers) > MAX_WINDOWS:
            self._numbers.clear()
            self.empty()
        found = [self.scorer.windows(words_of(sentence)) for sentence in sentences]
        bounds = np.concatenate([[0], np.cumsum([len(windows) for windows in found])]).astype(np.int64)
        distinct, number_of = np.unique(
            np.concatenate([np.zeros((0, self.scorer.width), np.int32), *found]), axis=0, return_inverse=True
        )
        assert looked_up.affiliations is not None
        windows = self._numbered(distinct)[number_of.reshape(-1)]
        if not self._scores_end:
            windows[bounds[1:] - 1] = NO_WINDOW
        words, targets = looked_up.targets.words, looked_up.targets.bounds
        return JointText(
            self.scorer.ids(looked_up.words)[words] if len(words) else words,
            targets,
            looked_up.target_of,
            looked_up.affiliations.places,
            looked_up.affiliations.bounds,
            windows,
            bounds,
        )

    def _numbered(self, windows: np.ndarray) -> np.ndarray:
        """Return the numbers ``int32`` [n] of distinct windows ``int32`` [n, width]; new ones are added."""
        known = len(self._numbers)
        numbers = [self._numbers.setdefault(window.tobytes(), len(self._numbers) + 1) for window in windows]
        size = len(self._windows)
        while size <= len(self._numbers):
            size *= 2
        if size > len(self._windows):
            self._windows = np.concatenate(
                [self._windows, np.zeros((size - len(self._windows), self.scorer.width), np.int32)]
            )
        found = np.array(numbers, np.int32)
        new = found > known
        self._windows[found[new]] = windows[new]
        return found

    def gather(self, feature: int, sentence: int, work: Work, requests: int, text: FeatureText, last: bool) -> None:
        """Look up the n-grams of a sentence's requests, see ``NeuralFeature.gather``."""
        self.reserve(work.entries.shape[1])
        end = self.scorer.end if last else -1
        joint_store.gather(feature, sentence, requests, work, self.store, text.prepared, text.ranked.row, end)

    def enter(self, derivations: Derivations, rows: np.ndarray, sentences: np.ndarray, text: FeatureText) -> np.ndarray:
        """Look up the n-grams of complete derivations, see ``NeuralFeature.enter``."""
        bounds, count = text.prepared.pairs, len(sentences)
        lengths = int((bounds[rows + 1] - bounds[rows]).sum())
        self.reserve(lengths + count)
        places = np.empty(lengths + 2 * count + 1, np.int32)
        joint_store.derivation_entries(
            derivations.offsets, rows, derivations.starts, sentences, self.store, text.prepared, self.scorer.end, places
        )
        return places

    def score(self, contexts: np.ndarray, owner: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Compute natural-log probabilities of words, see ``NeuralFeature.score``.

        A ``</s>`` that is not scored has no window, and the score 0.
        """
        with_window = contexts[:, 0] != NO_WINDOW
        if not with_window.all():
            found = np.zeros(len(words), np.float32)
            asked = with_window[owner]
            places = np.cumsum(with_window) - 1
            found[asked] = self.score(contexts[with_window], places[owner[asked]], words[asked])
            return found
        numbers, window_of = np.unique(contexts[:, 0], return_inverse=True)
        return self.scorer.score_windows(self._windows[numbers], window_of, contexts[:, 1:], owner, words)
