"""The comparison of rules of tuning."""

import pytest

from benchmarks.tuning import iteration_of_1_0_0


@pytest.mark.parametrize(
    ("scores", "fresh", "stopped", "chosen"),
    [
        ([50, 52, 53, 52, 52, 52.9, 60], [9] * 7, 6, 3),  # no rise in three iterations
        ([50, 52, 53, 53.04, 53.02, 53.04, 60], [9] * 7, 6, 4),  # a rise by less than 0.05
        ([50, 52, 53, 54, 55, 56, 57], [9] * 7, 7, 7),
        ([50, 52, 53, 54], [9, 9, 0, 9], 3, 3),  # no new candidates
    ],
)
def test_iteration_of_version_1_0_0(scores, fresh, stopped, chosen):
    iterations = [
        {"iteration": number, "dev_bleu": score, "new_candidates": new}
        for number, (score, new) in enumerate(zip(scores, fresh, strict=True), 1)
    ]
    found = iteration_of_1_0_0(iterations)
    assert (found["stopped"], found["iteration"]) == (stopped, chosen)
