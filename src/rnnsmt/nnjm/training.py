"""Training of a joint model on a bitext with links; the loop is in ``rnnsmt.networks.training``.

Whole sentence pairs are held out for validation: examples of one sentence share most of their inputs.
"""

import numpy as np
from numpy.typing import NDArray

from rnnsmt.networks.data import NULL, UNK, Index, Sequences, class_counts
from rnnsmt.networks.devices import DeviceSetup
from rnnsmt.networks.feed_forward_training import FeedForwardTask, NGrams
from rnnsmt.nnjm.examples import Examples
from rnnsmt.nnjm.model import FORMAT
from rnnsmt.nnjm.settings import JointSettings


def nnjm_task(examples: Examples, settings: JointSettings, seed: int, setup: DeviceSetup) -> FeedForwardTask:
    """Split the examples into training and held-out ones, and create the network."""

    def rows(index: Index) -> NDArray[np.int64]:
        words = examples.target.words[index].astype(np.int64)
        return np.concatenate([examples.inputs(index, settings.order, settings.window), words[:, None]], 1)

    pairs = draw_pairs(examples.target, settings.held_out_of(len(examples)), seed)
    held_out = places_of(examples.target, pairs)
    counts, source = (
        class_counts(side.words, len(vocabulary), side.joined(pairs))
        for side, vocabulary in (
            (examples.target, examples.target_vocabulary),
            (examples.source, examples.source_vocabulary),
        )
    )
    every, first_source = np.concatenate([counts, source]), len(counts)
    unknown_of = np.full(len(every), UNK)
    unknown_of[first_source:] += first_source
    special = [NULL, UNK, first_source - 1, first_source + NULL, first_source + UNK, len(every) - 1]
    rare, unseen = every == 2, every == 1  # ``class_counts`` adds one
    rare[special] = unseen[special] = False
    validation = rows(held_out)
    ngrams = NGrams(
        number=len(examples),
        held_out=held_out,
        rows=rows,
        validation=np.where(unseen[validation], unknown_of[validation], validation),
        counts=counts,
        rare=rare,
        unknown_of=unknown_of,
        vocabularies=[examples.target_vocabulary, examples.source_vocabulary],
        unknown_words=examples.unknown_words,
        inputs={"examples": examples.fingerprint},
    )
    return FeedForwardTask("nnjm", FORMAT, "target words", ngrams, settings, seed, setup)


def draw_pairs(target: Sequences, words: int, seed: int) -> Index:
    """Draw sentence pairs with at least ``words`` target words in total; return their numbers, ascending."""
    order = np.random.default_rng([seed, 1]).permutation(len(target.offsets) - 1)
    total = np.cumsum(target.lengths(order))
    number = int(np.searchsorted(total, words)) + 1 if words else 0
    return np.sort(order[:number]).astype(np.int64)


def places_of(side: Sequences, pairs: Index) -> Index:
    """Return the positions of all ids of some sentences, ascending; ``pairs`` are ascending."""
    lengths = side.lengths(pairs)
    first = side.offsets[pairs] - (np.cumsum(lengths) - lengths)
    return np.repeat(first, lengths) + np.arange(int(lengths.sum()))
