"""Both directions of an aligner, each in one thread."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import numpy.typing as npt

from rnnsmt.align import fast_align, hmm, model1, model4
from rnnsmt.align.bitext import Bitext, BitextSide
from rnnsmt.align.lexicon import AfterPass, build_lexicon
from rnnsmt.align.pharaoh import Links
from rnnsmt.align.word_classes import word_classes
from rnnsmt.progress import Meter

Best = npt.NDArray[np.int32]


def _fast_align(given: BitextSide, generated: BitextSide, after_pass: AfterPass) -> Best:
    return fast_align.train_fast_align(given, generated, build_lexicon(given, generated), after_pass).best


def _hmm(given: BitextSide, generated: BitextSide, after_pass: AfterPass) -> Best:
    return hmm.train_hmm(given, generated, build_lexicon(given, generated), word_classes(given), after_pass).best


def _model4(given: BitextSide, generated: BitextSide, after_pass: AfterPass) -> Best:
    classes = word_classes(given), word_classes(generated)
    return model4.train_model4(given, generated, build_lexicon(given, generated), *classes, after_pass).best


TRAINERS: dict[str, Callable[[BitextSide, BitextSide, AfterPass], Best]] = {
    "fast_align": _fast_align,
    "hmm": _hmm,
    "model4": _model4,
}

PASSES = {
    "fast_align": fast_align.ITERATIONS,
    "hmm": model1.ITERATIONS + hmm.ITERATIONS + 1,
    "model4": model1.ITERATIONS + hmm.ITERATIONS + len(model4.PASSES),
}


class _StoppedError(Exception):
    """Ends the other direction when one has failed or the process is to stop."""


def align_both_directions(bitext: Bitext, aligner: str, threads: int = 1) -> tuple[Links, Links]:
    """Links of the forward (one source word a target word) and of the reverse direction, both source-target.

    The result does not depend on ``threads``, of which two are of use.
    """
    train, stop = TRAINERS[aligner], Event()
    meter = Meter(f"aligning with {aligner}", 2 * PASSES[aligner], "passes")

    def after_pass() -> None:
        meter.add(1)
        if stop.is_set():
            raise _StoppedError

    with ThreadPoolExecutor(max(1, min(threads, 2))) as pool:
        try:
            forward = pool.submit(train, bitext.source, bitext.target, after_pass)
            reverse = pool.submit(train, bitext.target, bitext.source, after_pass)
            links = _links(forward.result(), bitext.target)
            swapped = _links(reverse.result(), bitext.source)
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return links, Links(swapped.offsets, swapped.target, swapped.source)


def _links(best: Best, generated: BitextSide) -> Links:
    """``best`` [generated words] (position in the given sentence or -1) as links (given, generated)."""
    sentence = np.repeat(np.arange(len(generated.lengths)), generated.lengths)
    position = np.arange(len(best)) - generated.offsets[sentence]
    linked = best >= 0
    sizes = np.bincount(sentence[linked], minlength=len(generated.lengths))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return Links(offsets, best[linked], position[linked].astype(np.int32))
