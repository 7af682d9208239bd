"""Training of a joint model on a word-aligned bitext; the training loop is in ``rnnsmt.networks.training``.

Whole sentence pairs are held out for validation, because the examples of a sentence share most of their inputs.
"""

import numpy as np
from numpy.typing import NDArray

from rnnsmt.networks.batches import Index
from rnnsmt.networks.data import APART, Sequences, class_counts
from rnnsmt.networks.devices import DeviceSetup
from rnnsmt.networks.feed_forward_training import FeedForwardTask, NGrams
from rnnsmt.nnjm.examples import Examples
from rnnsmt.nnjm.model import FORMAT
from rnnsmt.nnjm.settings import JointSettings


def nnjm_task(examples: Examples, settings: JointSettings, seed: int, setup: DeviceSetup) -> FeedForwardTask:
    """Split the examples into training and held-out examples, create the network, and return the task."""

    def rows(index: Index) -> NDArray[np.int64]:
        words = examples.target.words[index].astype(np.int64)
        return np.concatenate([examples.inputs(index, settings.order, settings.window), words[:, None]], 1)

    pairs = draw_pairs(examples.target, settings.held_out_of(len(examples)), seed)
    sides, vocabularies = (examples.target, examples.source), (examples.target_vocabulary, examples.source_vocabulary)
    ngrams = NGrams(
        number=len(examples),
        held_out=examples.target.places(pairs),
        rows=rows,
        release=examples.release,
        vocabularies=vocabularies,
        counts=[
            class_counts(side.blocks(), len(vocabulary), side.at(pairs).words)
            for side, vocabulary in zip(sides, vocabularies, strict=True)
        ],
        unknown_words=examples.unknown_words,
        inputs={"examples": examples.fingerprint},
    )
    examples.expect_random_access()
    return FeedForwardTask("nnjm", FORMAT, "target words", ngrams, settings, seed, setup)


def draw_pairs(target: Sequences, words: int, seed: int) -> Index:
    """Draw sentence pairs with at least ``words`` target words in total; return their indices, ascending.

    At least one pair remains for training.
    """
    # 4 bytes per pair: the only array of training that grows with the text
    order = np.arange(len(target.offsets) - 1, dtype=np.uint32)
    np.random.default_rng([seed, 1]).shuffle(order)
    drawn, number = 0, 0
    while drawn < words and number < len(order):
        some = order[number : number + APART].astype(np.int64)
        total = drawn + np.cumsum(target.lengths(some))
        target.release()
        number += min(int(np.searchsorted(total, words)) + 1, len(some))
        drawn = int(total[-1])
    return np.sort(order[: min(number, len(order) - 1)]).astype(np.int64)
