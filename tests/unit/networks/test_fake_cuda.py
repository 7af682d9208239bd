"""Tests on a simulated CUDA device, in another process; tensors on different devices are errors there."""

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from ..fake_cuda import compiler  # noqa: E402

pytestmark = [
    pytest.mark.skipif(torch.version.cuda is not None, reason="this torch is built for CUDA, the fake device is not"),
    pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler"),
]

ROOT = Path(__file__).resolve().parents[3]

ON_GPUS = ["tests/unit/networks/on_fake_cuda.py"]
ON_GPUS += [f"tests/unit/{name}" for name in ("rnn", "cslm", "search/test_neural.py")]
"""Tests of the simulated device, and packages with tests that require a GPU."""


def run_on_fake_device(which: str) -> None:
    """Run tests on the simulated device; they must pass without skips."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.unit.fake_cuda", "-p", "no:cacheprovider", *ON_GPUS]
    done = subprocess.run([*command, "-k", which], cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert "passed" in last
    assert "skipped" not in last


def test_updates_scores_and_tests_of_gpus():
    run_on_fake_device("(cuda or gpu_equals) and not learns_the_toy_language")


@pytest.mark.slow
def test_long_trainings():
    run_on_fake_device("cuda and learns_the_toy_language")
