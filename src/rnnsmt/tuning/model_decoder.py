"""The search as MERT sees it."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rnnsmt.moses.ini import MosesIni
from rnnsmt.search import SearchOptions, decode
from rnnsmt.tuning.mert import Decoded
from rnnsmt.tuning.optimisation import Weights, start_weights

if TYPE_CHECKING:
    from rnnsmt.search.model import SearchModel


class ModelDecoder:
    """The search as the loop sees it: tuned features only (the unknown word penalty keeps its weight, as in Moses)."""

    def __init__(self, ini: MosesIni, sources: list[str], model: "SearchModel", options: SearchOptions) -> None:
        """model: loaded for these sentences."""
        self._ini, self.sources = ini, sources
        self.model = model
        self._options = options
        names = list(self.model.feature_names)
        self._tuned = np.array([not name.startswith("UnknownWordPenalty") for name in names])
        self._weights = np.array([ini.weight(name) for name in names])
        self.feature_names = [name for name, tuned in zip(names, self._tuned, strict=True) if tuned]
        self.start = start_weights(ini, self.feature_names)

    def decode(self, weights: Weights) -> Decoded:
        """Translate the development set with these weights of the tuned features."""
        full = self.full(weights)
        translations = decode(self.model, self.sources, full, self._options)
        texts: list[list[str]] = []
        features: list[NDArray[np.float64]] = []
        for translation in translations:
            if not translation.nbest.texts:  # an empty sentence
                texts.append([translation.text])
                features.append(translation.features[None, self._tuned])
                continue
            fixed = translation.nbest.features[:, ~self._tuned] @ full[~self._tuned]
            possible = fixed >= fixed.max() - 1e-6
            texts.append([text for text, keep in zip(translation.nbest.texts, possible, strict=True) if keep])
            features.append(translation.nbest.features[possible][:, self._tuned])
        return Decoded([translation.text for translation in translations], texts, features)

    def full(self, weights: Weights) -> Weights:
        """All weights of the model, in the order of its features."""
        full = self._weights.copy()
        full[self._tuned] = weights
        return full

    def set_weights(self, weights: Weights) -> None:
        """Put the weights of the tuned features into the ini."""
        for name, weight in zip(self.feature_names, weights, strict=True):
            self._ini.set_weight(name, float(weight))
