"""Both directions of an aligner, each in one thread."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from rnnsmt.align import fast_align, hmm, model4
from rnnsmt.align.bitext import Bitext, Side
from rnnsmt.align.lexicon import build_lexicon
from rnnsmt.align.pharaoh import Links
from rnnsmt.align.word_classes import word_classes

Best = npt.NDArray[np.int32]


def _fast_align(given: Side, generated: Side) -> Best:
    return fast_align.train(given, generated, build_lexicon(given, generated)).best


def _hmm(given: Side, generated: Side) -> Best:
    return hmm.train(given, generated, build_lexicon(given, generated), word_classes(given)).best


def _model4(given: Side, generated: Side) -> Best:
    classes = word_classes(given), word_classes(generated)
    return model4.train(given, generated, build_lexicon(given, generated), *classes).best


ALIGNERS: dict[str, Callable[[Side, Side], Best]] = {"fast_align": _fast_align, "hmm": _hmm, "model4": _model4}


def align(bitext: Bitext, aligner: str, threads: int = 1) -> tuple[Links, Links]:
    """Links of the forward (one source word a target word) and of the reverse direction, both source-target.

    The result does not depend on ``threads``, of which two are of use.
    """
    train = ALIGNERS[aligner]
    with ThreadPoolExecutor(max(1, min(threads, 2))) as pool:
        forward = pool.submit(train, bitext.source, bitext.target)
        reverse = pool.submit(train, bitext.target, bitext.source)
        links = _links(forward.result(), bitext.target)
        swapped = _links(reverse.result(), bitext.source)
    return links, Links(swapped.offsets, swapped.target, swapped.source)


def _links(best: Best, generated: Side) -> Links:
    """``best`` [generated words] (position in the given sentence or -1) as links (given, generated)."""
    sentence = np.repeat(np.arange(len(generated.lengths)), generated.lengths)
    position = np.arange(len(best)) - generated.offsets[sentence]
    linked = best >= 0
    sizes = np.bincount(sentence[linked], minlength=len(generated.lengths))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return Links(offsets, best[linked], position[linked].astype(np.int32))
