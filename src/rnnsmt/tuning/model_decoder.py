"""Adapter of the phrase-based decoder to the tuning loop."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rnnsmt.bleu.batch import NumberedTexts
from rnnsmt.moses.ini import MosesIni
from rnnsmt.search import SearchOptions, decode
from rnnsmt.search.translation_options import look_up
from rnnsmt.tuning.loop import Decoded
from rnnsmt.tuning.weights import UNTUNED, Weights, normalised, start_weights

if TYPE_CHECKING:
    from rnnsmt.search.model import SearchModel


class ModelDecoder:
    """Decoder of the development set, with tuned features only; the unknown word penalty keeps its weight, as in Moses.

    The translations with the weights of the ini, from which every run starts, are cached for the following runs.
    """

    def __init__(self, ini: MosesIni, sources: list[str], model: "SearchModel", options: SearchOptions) -> None:
        """Prepare decoding of ``sources`` with ``model``, which must have been loaded for these sentences."""
        self.ini, self.sources = ini, sources
        self.model = model
        self._options = options
        names = list(self.model.feature_names)
        self._tuned = np.array([not name.startswith(UNTUNED) for name in names])
        self._weights = model.weights(ini)
        self.feature_names = [name for name, tuned in zip(names, self._tuned, strict=True) if tuned]
        self.start = start_weights(ini, self.feature_names)
        self._from_start: Decoded | None = None

    def decode(self, weights: Weights) -> Decoded:
        """Translate the development set with these weights of the tuned features."""
        if not np.array_equal(weights, normalised(self.start)):
            return self._search(weights)
        if self._from_start is None:
            self._from_start = self._search(weights)
        return self._from_start

    def _search(self, weights: Weights) -> Decoded:
        """Decode, and collect n-best lists with word numbers and tuned features."""
        full = self.full(weights)
        translations = decode(self.model, self.sources, full, self._options)
        words: list[NDArray[np.int32]] = []
        lengths: list[NDArray[np.int64]] = []
        features: list[NDArray[np.float64]] = []
        for translation in translations:
            nbest = translation.nbest
            if len(nbest) == 0:  # empty sentence: one empty candidate
                lengths.append(np.zeros(1, np.int64))
                features.append(translation.features[None, self._tuned])
                continue
            # Candidates are stored without their untuned scores, whose weights are fixed. A candidate with a lower
            # untuned score (more unknown words) could win by its tuned features in the pool, but not in the search:
            # it is dropped.
            fixed = nbest.features[:, ~self._tuned] @ full[~self._tuned]
            possible = fixed >= fixed.max() - 1e-6
            size = np.diff(nbest.bounds)
            words.append(nbest.words if possible.all() else nbest.words[np.repeat(possible, size)])
            lengths.append(size[possible])
            features.append(nbest.features[possible][:, self._tuned])
        texts = NumberedTexts(
            look_up(self.model, self.sources).words,
            np.concatenate([np.zeros(0, np.int32), *words]),
            np.concatenate([[0], np.cumsum(np.concatenate(lengths))]),
            np.concatenate([[0], np.cumsum([len(size) for size in lengths])]),
        )
        return Decoded([translation.text for translation in translations], texts, features)

    def full(self, weights: Weights) -> Weights:
        """Return the weights of all features of the model in model order, given the weights of the tuned features."""
        full = self._weights.copy()
        full[self._tuned] = weights
        return full

    def set_weights(self, weights: Weights) -> None:
        """Set the weights of the tuned features in the ini."""
        for name, weight in zip(self.feature_names, weights, strict=True):
            self.ini.set_weight(name, float(weight))
