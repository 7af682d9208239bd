"""Random orders that are never held as a whole."""

import numpy as np
import pytest

from rnnsmt.networks.batches import permuted


@pytest.mark.parametrize("n", [1, 2, 3, 64, 65, 1000, 40_000])
def test_permutations(n):
    positions = np.arange(n)
    found = permuted(positions, n, [1, 2])
    assert sorted(found) == list(range(n))
    assert np.array_equal(found[n // 3 :], permuted(positions[n // 3 :], n, [1, 2]))
    if n >= 64:
        assert not np.array_equal(found, permuted(positions, n, [1, 3]))
        assert abs(np.corrcoef(positions, found)[0, 1]) < 4 / np.sqrt(n)
        assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 4 / np.sqrt(n)
