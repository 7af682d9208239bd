"""Which device a process takes."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from rnnsmt import devices  # noqa: E402

HOLD = """
import fcntl, sys
lock = open(sys.argv[1], "a")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_every_process_takes_a_gpu_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(devices.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(devices, "_locks", [])
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: SimpleNamespace(uuid=f"u{number}"))
    command = [sys.executable, "-c", HOLD, str(tmp_path / "rnnsmt-gpu-u0.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        assert [devices.free_gpu() for _ in range(3)] == [1, 2, 0], "the last one shares: all are taken"
    assert devices.free_gpu() == 0
    assert len(devices._locks) == 3
