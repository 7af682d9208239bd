"""The rules of tuning that benchmarks/tuning.py compares."""

import importlib.util
from pathlib import Path

import pytest


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
    path = Path(__file__).resolve().parents[3] / "benchmarks/tuning.py"
    spec = importlib.util.spec_from_file_location("tuning_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    iterations = [
        {"iteration": number, "dev_bleu": score, "new_candidates": new}
        for number, (score, new) in enumerate(zip(scores, fresh, strict=True), 1)
    ]
    found = module.iteration_of_1_0_0(iterations)
    assert (found["stopped"], found["iteration"]) == (stopped, chosen)
