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

OF_GPUS = [f"tests/unit/{name}" for name in ("rnn", "cslm", "search/test_neural.py")]


def run_on_fake_device(*arguments: str) -> str:
    """Run tests on the simulated device; they must pass without skips. Return the last line of the output."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.unit.fake_cuda", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert "passed" in last
    assert "skipped" not in last
    return last


def test_updates_scores_and_what_is_left_on_the_processor():
    run_on_fake_device("tests/unit/networks/on_fake_cuda.py")


def test_tests_of_gpus_pass_there():
    """The tests that require a GPU pass on the simulated device."""
    run_on_fake_device(*OF_GPUS, "-k", "cuda or gpu_equals")
