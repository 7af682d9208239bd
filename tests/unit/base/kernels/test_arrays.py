"""Integer counts: sums do not depend on the order of the terms."""

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import numpy as np

from rnnsmt.base.kernels.numbers import ONE, add_count, add_counts


def test_sums_do_not_depend_on_the_order():
    amounts = [0.1, 1e-9, 3.7, -0.2, 1 / 3, 1e5]
    sums = set()
    for order in permutations(amounts):
        counts = np.zeros(2, np.int64)
        for amount in order:
            add_count(counts, 1, amount)
        assert counts[0] == 0
        sums.add(int(counts[1]))
    assert len(sums) == 1
    assert abs(sums.pop() / ONE - sum(amounts)) < len(amounts) / ONE


def test_threads_lose_nothing():
    counts, amounts = np.zeros(3, np.int64), np.tile([0.25, 0.0, 0.5], 1)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(lambda: [add_counts(counts, amounts) for _ in range(5000)]) for _ in range(4)]:
            done.result()
    assert counts.tolist() == [20000 * 0.25 * ONE, 0, 20000 * 0.5 * ONE]
