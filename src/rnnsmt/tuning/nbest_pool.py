"""Accumulated n-best lists of all iterations, and their scores under weight vectors.

The pool contains the distinct candidates of every sentence in flat arrays. The kernels release the GIL.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.numbers import GOLDEN_RATIO, scramble
from rnnsmt.base.progress import warn
from rnnsmt.bleu.batch import bleu_of_statistics
from rnnsmt.formats.ini import MosesIni

Weights = NDArray[np.float64]


def normalised(weights: Weights) -> Weights:
    """Return weights scaled so that their absolute values sum to 1, as in Moses' ini files."""
    return weights / np.abs(weights).sum()


def start_weights(ini: MosesIni, scores: Iterable[str]) -> Weights:
    """Return the weights ``[F]`` of these scores in the ini.

    Raises:
        InputError: there are no scores, or all weights are 0.
    """
    weights = np.array([ini.weight(score) for score in scores])
    if not weights.size:
        raise InputError(f"{ini.path}: no weight can be tuned; remove tuneable=false from features")
    if not np.abs(weights).sum() > 0:
        raise InputError(f"{ini.path}: all weights are 0; set initial weights, e.g. the defaults of Moses")
    return weights


@dataclass(frozen=True)
class CandidateBatch:
    """Candidates of one iteration, sentence by sentence.

    Attributes:
        features: float32 ``[n, F]``.
        statistics: int32 ``[n, 9]``, BLEU statistics.
        sentences: int32 ``[n]``, sentence numbers, ascending.
    """

    features: NDArray[np.float32]
    statistics: NDArray[np.int32]
    sentences: NDArray[np.int32]


@dataclass(frozen=True)
class FlatPool:
    """All candidates, grouped by sentence, in the order in which they were added to the pool.

    Attributes:
        features: float32 ``[F, N]``, one row per feature, as ``project`` requires.
        statistics: int32 ``[N, 9]``, BLEU statistics.
        offsets: int64 ``[S + 1]``, first candidate of each sentence.
    """

    features: NDArray[np.float32]
    statistics: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @property
    def sentences(self) -> int:
        """Return the number of sentences."""
        return self.offsets.size - 1


class NbestPool:
    """Pool of candidates without duplicates (candidates with equal sentence, features and BLEU statistics).

    The text is not stored: two texts with equal features and statistics are equivalent in tuning. Duplicates are found
    by a 64-bit hash.
    """

    def __init__(self, sentences: int, features: int) -> None:
        """Create an empty pool for this number of sentences and features."""
        self._sentences = sentences
        self._batches: list[CandidateBatch] = []
        self._hashes = np.empty(0, np.uint64)
        self._features = features

    def __len__(self) -> int:
        return self._hashes.size

    def add(self, batch: CandidateBatch) -> CandidateBatch:
        """Add the candidates that are not in the pool yet; return them."""
        features = batch.features + np.float32(0)  # turns -0.0 into 0.0; their hashes would differ
        hashes = np.empty(len(features), np.uint64)
        row_hashes(features.view(np.uint32), batch.statistics, batch.sentences, hashes)
        first = np.zeros(hashes.size, np.bool_)
        first[np.unique(hashes, return_index=True)[1]] = True
        new = first & ~np.isin(hashes, self._hashes)
        fresh = CandidateBatch(features[new], batch.statistics[new], batch.sentences[new])
        self._batches.append(fresh)
        self._hashes = np.sort(np.concatenate([self._hashes, hashes[new]]))
        return fresh

    def flat(self) -> FlatPool:
        """Return all candidates so far in the layout of the kernels."""
        sentences = np.concatenate([batch.sentences for batch in self._batches])
        order = np.argsort(sentences, kind="stable")
        features = np.empty((self._features, order.size), np.float32)
        np.take(np.concatenate([batch.features for batch in self._batches]).T, order, axis=1, out=features)
        statistics = np.concatenate([batch.statistics for batch in self._batches])[order]
        offsets = np.zeros(self._sentences + 1, np.int64)
        np.cumsum(np.bincount(sentences, minlength=self._sentences), out=offsets[1:])
        return FlatPool(features, statistics, offsets)


def candidate_batch(candidates: Sequence[NDArray[np.float64]], statistics: NDArray[np.int32]) -> CandidateBatch:
    """Return a batch of the feature vectors ``[n_s, F]`` of each sentence and the statistics of all candidates."""
    sizes = [len(rows) for rows in candidates]
    return CandidateBatch(
        np.concatenate(candidates).astype(np.float32),
        statistics,
        np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
    )


def pool_bleu(pool: FlatPool, weights: Weights) -> float:
    """Return corpus BLEU (0 to 1) of the best candidates in the pool under these weights."""
    scores = np.empty(len(pool.statistics), np.float64)
    project(pool.features, weights, scores)
    best = np.empty(pool.sentences, np.int64)
    best_candidates(scores, pool.offsets, best)
    return float(bleu_of_statistics(pool.statistics[best[best >= 0]].astype(np.int64).sum(axis=0)))


def tunable_features(pool: FlatPool, names: Sequence[str]) -> NDArray[np.bool_]:
    """Return ``active_features``, after a warning that names the constant features.

    Raises:
        InputError: for an order from 1 to 4, no candidate shares an n-gram with its reference, or every feature is
            constant.
    """
    for order in range(4):
        if not pool.statistics[:, order].any():
            raise InputError(
                f"no translation in the n-best lists shares a {order + 1}-gram with its reference, so BLEU is 0 for "
                f"all weights; check that --source and --reference are parallel and tokenised in the same way, and "
                f"that source and target of the training text were not swapped"
            )
    active = active_features(pool)
    if not active.any():
        raise InputError(
            "every feature is constant on every n-best list: no feature differs between translations of a sentence, "
            "so no weight can be tuned; check that the lists have more than one translation per sentence and that "
            "the phrase table covers the dev set"
        )
    if not active.all():
        constant = ", ".join(name for name, moves in zip(names, active, strict=True) if not moves)
        warn(f"features that are constant on every n-best list, whose weights are not tuned: {constant}")
    return active


def active_features(pool: FlatPool) -> NDArray[np.bool_]:
    """Return the mask ``[F]`` of features that vary among the candidates of at least one sentence.

    Only the weights of these features can be tuned.
    """
    # sentences without candidates are omitted: for an empty slice, reduceat would return the element at its offset
    filled = pool.offsets[:-1][np.diff(pool.offsets) > 0]
    low = np.minimum.reduceat(pool.features, filled, axis=1)
    high = np.maximum.reduceat(pool.features, filled, axis=1)
    return np.asarray((high > low).any(axis=1))


@kernel()
def row_hashes(features, statistics, sentences, out):
    """Write a 64-bit hash of every candidate to ``out``: SplitMix64 of its sentence number, features and statistics.

    Args:
        features: uint32 ``[n, F]``, bit patterns of the float32 features, without negative zeros.
        statistics: int32 ``[n, 9]``.
        sentences: int32 ``[n]``, sentence number of each candidate.
        out: uint64 ``[n]``, written.
    """
    for n in range(out.size):
        value = np.uint64(sentences[n])
        for k in range(features.shape[1] + statistics.shape[1]):
            word = features[n, k] if k < features.shape[1] else np.uint32(statistics[n, k - features.shape[1]])
            value = scramble((value ^ np.uint64(word)) + GOLDEN_RATIO)
        out[n] = value


BLOCK = 1024
"""Number of candidates whose scores are computed at a time, so that they stay in the first-level cache."""


@kernel()
def project(features, weights, out):
    """Compute ``out[n] = sum over k of weights[k] features[k, n]``; features float32 ``[F, N]``, out float64 [N]."""
    # Zero weights are skipped. Four contiguous rows of ``features`` are added at a time, so that a score is loaded and
    # stored once for all four; the order of the additions is the same as row by row.
    rows = np.flatnonzero(weights)
    for first in range(0, out.size, BLOCK):
        block = out[first : first + BLOCK]
        block[:] = 0.0
        index = 0
        while index + 4 <= rows.size:
            a, b, c, d = rows[index], rows[index + 1], rows[index + 2], rows[index + 3]
            row_a, row_b = features[a, first : first + BLOCK], features[b, first : first + BLOCK]
            row_c, row_d = features[c, first : first + BLOCK], features[d, first : first + BLOCK]
            of_a, of_b, of_c, of_d = weights[a], weights[b], weights[c], weights[d]
            for n in range(block.size):
                block[n] = (((block[n] + of_a * row_a[n]) + of_b * row_b[n]) + of_c * row_c[n]) + of_d * row_d[n]
            index += 4
        for k in rows[index:]:
            row = features[k, first : first + BLOCK]
            for n in range(block.size):
                block[n] += weights[k] * row[n]


@kernel()
def best_candidates(scores, offsets, out):
    """Write the index of the highest-scoring candidate of every sentence to ``out`` ``[S]``.

    In case of a tie, it is the first candidate; for a sentence without candidates, it is -1.
    """
    for s in range(offsets.size - 1):
        best = offsets[s] if offsets[s] < offsets[s + 1] else -1
        for n in range(offsets[s] + 1, offsets[s + 1]):
            if scores[n] > scores[best]:
                best = n
        out[s] = best
