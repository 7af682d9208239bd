"""Training in several processes: same results, stop, resume, and common end on errors."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from rnnsmt.cli import main  # noqa: E402
from rnnsmt.networks.model_file import load_file  # noqa: E402

from ..launches import make_pairs, make_text  # noqa: E402

torch.set_num_threads(1)

WIDTHS = {
    "rnn": ["--embedding", "8", "--hidden", "16", "--maxout", "8", "--updates"],
    "cslm": ["--projection", "8", "--hidden-1", "16", "--hidden-2", "12", "--batch", "64", "--epochs"],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    make_pairs(directory, 5)
    make_text(directory)
    return directory


def command_line(data, out, network, length, *options):
    """Return the command of a training run with preset paper and small layers."""
    out.mkdir(exist_ok=True)
    files = ["--output-model", out / "m.pt", "--output-history", out / "h.json", "--checkpoint-dir", out / "checkpoint"]
    of = {"rnn": ["--pairs", data / "pairs"], "cslm": ["--text", data / "ids"]}[network]
    words = [network, "train", "--preset", "paper", *of, *WIDTHS[network], length, *files, "--device", "cpu", *options]
    return [str(word) for word in words]


def start(words):
    """Start a command of rnnsmt in another process."""
    return subprocess.Popen(
        [sys.executable, "-m", "rnnsmt", *words],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def children(process):
    return [int(word) for word in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def wait_for(process, text):
    """Read standard error of a process until a line contains a text."""
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"{text}: it did not say so")


@pytest.mark.parametrize(("network", "length"), [("rnn", 12), ("cslm", 1)])
def test_two_processes_train_as_one_with_twice_their_part_of_the_batch(data, tmp_path, network, length):
    assert main(command_line(data, tmp_path / "one", network, length)) == 0
    two = start(command_line(data, tmp_path / "two", network, length, "--processes", "2"))
    _, said = two.communicate(timeout=300)
    assert two.returncode == 0, said
    assert "2 processes" in said
    assert said.count(": done: ") == 1
    one, two = (load_file(tmp_path / name / "m.pt", "cpu", "")["parameters"] for name in ("one", "two"))
    for name, values in one.items():
        assert torch.allclose(values, two[name], rtol=1e-4, atol=1e-6), name
    curves = [json.loads((tmp_path / name / "h.json").read_text())["curve"] for name in ("one", "two")]
    for row, other in zip(*curves, strict=True):
        assert row == pytest.approx(other, rel=1e-4)


@pytest.mark.slow
def test_they_stop_with_75_and_resume(data, tmp_path):
    """Training in two processes that is stopped (exit code 75) and resumed has the result of an uninterrupted one."""
    words = [command_line(data, tmp_path / name, "rnn", 1500, "--processes", "2") for name in ("at-once", "stopped")]
    at_once = start(words[0])
    stopped = start(words[1])
    wait_for(stopped, "starting:")
    time.sleep(1.0)
    stopped.send_signal(signal.SIGTERM)
    _, said = stopped.communicate(timeout=300)
    assert stopped.returncode == 75, said
    assert "checkpoint saved" in said
    again = start(words[1])
    _, said = again.communicate(timeout=300)
    assert again.returncode == 0, said
    assert "resuming after" in said
    _, said = at_once.communicate(timeout=300)
    assert at_once.returncode == 0, said
    assert (tmp_path / "at-once" / "m.pt").read_bytes() == (tmp_path / "stopped" / "m.pt").read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("killed", ["first", "other"])
def test_none_is_left_alone(data, tmp_path, killed):
    first = start(command_line(data, tmp_path / "out", "rnn", 1_000_000, "--processes", "2"))
    wait_for(first, "starting:")
    (other,) = children(first)
    os.kill(other if killed == "other" else first.pid, signal.SIGKILL)
    _, said = first.communicate(timeout=60)
    if killed == "other":
        assert first.returncode == 1
        # the first message is of the failed sum (gloo) or of the ended process (a GPU would wait)
        assert "Traceback" in said or "exited with status -9; stopping" in said
    deadline = time.monotonic() + 30
    while Path(f"/proc/{other}").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{other}/stat").read_text().split(") ")[1][0] == "Z":
            break
        time.sleep(0.1)
    else:
        assert not Path(f"/proc/{other}").exists()


def test_invalid_input_is_reported_once_with_code_2(data, tmp_path):
    words = command_line(tmp_path, tmp_path / "out", "rnn", 10, "--processes", "2")
    done = start(words)
    _, said = done.communicate(timeout=120)
    assert done.returncode == 2, said
    assert "error: " in said
