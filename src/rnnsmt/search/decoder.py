"""The decoder: ``load_model`` (``model``) once, then ``decode`` as often as weights change.

Sentences are searched independently, on several threads if asked for; results do not depend on the number of threads.
Without a neural LM one sentence is searched after the other (``sentence_search``), with one many of them stack by stack
(``lockstep``).
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rnnsmt.io import InputError
from rnnsmt.search.lockstep import LockstepSearch
from rnnsmt.search.model import SearchModel
from rnnsmt.search.nbest import Translation
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.sentence_search import SentenceSearch
from rnnsmt.search.translation_options import look_up


def decode(
    model: SearchModel, sentences: list[str], weights: np.ndarray, options: SearchOptions | None = None
) -> list[Translation]:
    """Translate tokenised sentences.

    Args:
        weights: ``float64`` [F] in the order of ``model.feature_names``.

    Raises:
        InputError: a weight is not finite, their number is wrong, or a sentence has more than ``MAX_WORDS`` words.
    """
    weights = np.ascontiguousarray(weights, np.float64)
    if weights.shape != (len(model.feature_names),):
        raise InputError(f"{weights.size} weights for {len(model.feature_names)} features")
    if not np.isfinite(weights).all():
        raise InputError(f"the weight of {model.feature_names[int(np.argmin(np.isfinite(weights)))]} is not finite")
    return list(translations(SentenceSearch(model, look_up(model, sentences), weights, options or SearchOptions())))


def translations(search: SentenceSearch) -> Iterator[Translation]:
    """Translate all sentences that a search was made for, in order."""
    numbers = range(len(search.looked_up.spans))
    threads = search.options.threads
    if search.neural is None and threads <= 1:
        yield from map(search.translation, numbers)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        if search.neural is None:
            yield from pool.map(search.translation, numbers)
        else:
            yield from LockstepSearch(search, search.neural, pool).translations()
    finally:
        pool.shutdown(cancel_futures=True)
