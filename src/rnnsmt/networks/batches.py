"""The order of a training: random minibatches that follow from the seed alone and are never held as a whole."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
"""Numbers of examples: of phrase pairs, or of places in a text."""

WINDOW = 1 << 15
"""Examples of the order that are looked at together."""


class Batches(Protocol):
    """An endless sequence of minibatches: the numbers of their examples, which can be taken up at any minibatch."""

    def __next__(self) -> Index: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...


def draw_held_out(n: int, number: int, seed: int) -> Index:
    """``number`` of ``n`` examples that are not trained on, drawn from all of them, in ascending order."""
    return np.sort(np.random.default_rng([seed, 1]).choice(n, number, replace=False, shuffle=False)).astype(np.int64)


def permuted(positions: Index, n: int, key: list[int]) -> Index:
    """A permutation of 0 .. n-1, seen at some positions: a Feistel cipher of four rounds, walked until below n."""
    half = max((max(n - 1, 1).bit_length() + 1) // 2, 1)
    mask = np.uint64((1 << half) - 1)
    keys = np.random.SeedSequence(key).generate_state(4, np.uint64)
    result = positions.astype(np.uint64)
    outside = np.ones(len(result), bool)
    while outside.any():
        left, right = result[outside] >> np.uint64(half), result[outside] & mask
        for round_key in keys:
            left, right = right, left ^ (_mixed(right, round_key) & mask)
        result[outside] = (left << np.uint64(half)) | right
        outside[outside] = result[outside] >= n
    return result.astype(np.int64)


def _mixed(value: NDArray[np.uint64], key: np.uint64) -> NDArray[np.uint64]:
    """Every bit of the result depends on every bit of the value (multiply and shift, twice)."""
    value = (value ^ key) * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(32))
