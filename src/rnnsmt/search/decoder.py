"""The decoder: a model is loaded once (``model.load_model``), and ``decode`` is called for each set of weights.

Sentences are searched independently, on several threads if requested; the results do not depend on the number of
threads. ``sentence_search`` and, with neural features, ``lockstep`` call the kernels.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np

from rnnsmt.base.errors import InputError
from rnnsmt.base.reading import words_of
from rnnsmt.formats.nbest import Segment
from rnnsmt.search.kernels.records import Derivations
from rnnsmt.search.lockstep import LockstepSearch
from rnnsmt.search.model import SearchModel
from rnnsmt.search.nbest import Translation
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.sentence_search import SentenceSearch
from rnnsmt.search.translation_options import look_up

CHUNK = 1000
"""Number of sentences that a command looks up and decodes at a time, so that its memory does not grow with the text.
Phrases that occur in several chunks are looked up again, which takes 0.05 CPU s for each chunk."""


def decode(
    model: SearchModel, sentences: list[str], weights: np.ndarray, options: SearchOptions | None = None
) -> list[Translation]:
    """Translate tokenised sentences.

    Args:
        weights: ``float64`` [F] in the order of ``model.feature_names``.
        options: limits of the search; None: the defaults.

    Raises:
        InputError: the number of weights is wrong, a weight is not finite, or a sentence is not tokenised.
    """
    weights = np.ascontiguousarray(weights, np.float64)
    if weights.shape != (len(model.feature_names),):
        raise InputError(f"{weights.size} weights for {len(model.feature_names)} features")
    if not np.isfinite(weights).all():
        raise InputError(f"the weight of {model.feature_names[int(np.argmin(np.isfinite(weights)))]} is not finite")
    return list(translations(SentenceSearch(model, look_up(model, sentences), weights, options or SearchOptions())))


def translations(search: SentenceSearch) -> Iterator[Translation]:
    """Yield the translations of all sentences of a search, in order."""
    count, threads = len(search.looked_up.spans), search.options.threads
    with search.networks():
        pool = ThreadPoolExecutor(threads)
        try:
            each = map if threads <= 1 else pool.map
            if search.neural:
                yield from LockstepSearch(search, pool).translations()
            else:
                yield from chain.from_iterable(each(search.batch, range(0, count, search.batch_size)))
        finally:
            pool.shutdown(cancel_futures=True)


def features_of_derivations(
    model: SearchModel, sentences: list[str], derivations: Sequence[tuple[str, Sequence[Segment]]]
) -> np.ndarray:
    """Compute the features of existing derivations, for example of those of another decoder.

    Args:
        sentences: tokenised source sentences.
        derivations: for each sentence, the text of a translation and its phrases.

    Returns:
        ``float64`` [sentences, F]; NaN for a derivation that the model cannot produce, because a phrase pair is not in
        its table.
    """
    looked_up = look_up(model, sentences)
    numbers = {word: number for number, word in enumerate(looked_up.words)}
    rows: list[int] = []
    segments: list[Segment] = []
    offsets, possible = [0], []
    for number, (spans, (text, phrases)) in enumerate(zip(looked_up.spans, derivations, strict=True)):
        words = np.array([numbers.get(word, -1) for word in words_of(text)], np.int32)
        ends = np.cumsum([length for *_, length in phrases], dtype=np.int64)
        sums = [
            looked_up.find(int(spans[first, last - first]), words[end - length : end])
            for (first, last, length), end in zip(phrases, ends, strict=True)
            if last - first < spans.shape[1]
        ]
        if sums and len(sums) == len(phrases) and -1 not in sums:
            rows += sums
            segments += phrases
            offsets.append(len(rows))
            possible.append(number)
    count = len(model.feature_names)
    starts, last_words, _ = np.array(segments, np.int32).reshape(-1, 3).T
    encoded = Derivations(np.array(offsets), np.array(rows, np.int32), starts.copy(), last_words.copy())
    features = np.full((len(sentences), count), np.nan)
    features[[not phrases for _, phrases in derivations]] = 0.0  # empty sentences
    search = SentenceSearch(model, looked_up, np.zeros(count), SearchOptions())
    with search.networks():
        features[possible] = search.features_of(encoded, encoded.options, np.array(possible, np.int64))
    return features
