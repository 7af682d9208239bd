"""The choice of the device of a process."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from rnnsmt.base.io import InputError  # noqa: E402
from rnnsmt.networks import devices  # noqa: E402

HOLD = """
import fcntl, sys
lock = open(sys.argv[1], "a")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def taken(tmp_path, monkeypatch):
    """Simulate three GPUs, the first locked by another process; yield the list of this process's locks."""
    monkeypatch.setattr(devices.tempfile, "gettempdir", lambda: str(tmp_path))
    taken = []
    monkeypatch.setattr(devices, "_taken", taken)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: SimpleNamespace(uuid=f"u{number}"))
    command = [sys.executable, "-c", HOLD, str(tmp_path / "rnnsmt-gpu-u0.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        yield taken


def test_every_process_takes_a_gpu_of_its_own(taken):
    assert [devices.free_gpu() for _ in range(3)] == [1, 1, 1], "a process keeps its own"
    held, found = list(taken), []
    for _ in range(6):
        taken.clear()
        found.append(devices.free_gpu())
        held += taken
    assert found == [2, 0, 1, 2, 0, 1], "where all are taken they are shared evenly"
    assert len(held) == 7


def test_processes_that_train_together_tell_the_others_which_gpu_they_take(taken, capsys):
    assert devices.take_gpu(1) == 1
    held = list(taken)
    taken.clear()
    assert devices.free_gpu() == 2
    assert not capsys.readouterr().err
    held += taken
    taken.clear()
    assert devices.take_gpu(0) == 0
    assert "GPU 0: is shared with another rnnsmt process" in capsys.readouterr().err
    with pytest.raises(InputError, match="no free GPU for process 3 on this machine"):
        devices.take_gpu(3)
    assert len(held) == 2


def test_only_trainings_join_processes(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    setup = devices.set_up_device("cpu", 1)
    assert (setup.processes, setup.first) == (1, True)


def test_full_precision_holds_for_every_kind_of_product():
    """Full precision disables TF32 also for cuDNN, which uses it for LSTMs by default."""

    def allowed():
        return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32

    torch.backends.cudnn.allow_tf32 = True
    devices.set_up_device("cpu", 1)
    assert allowed() == ("highest", False)
    devices._allow_tf32(True)
    with devices.full_precision():
        assert allowed() == ("highest", False)
    assert allowed() == ("high", True)
    devices.set_up_device("cpu", 1)


@pytest.mark.parametrize("fast", [True, False])
def test_bfloat16_is_for_any_processor_and_reduced_for_those_that_multiply_it(monkeypatch, fast):
    """Precision bfloat16 applies on any CPU, reduced only with fast bfloat16; without it, oneDNN is disabled."""
    monkeypatch.setattr(devices, "multiplies_bfloat16", lambda: fast)
    try:
        for precision, rounded in (("float32", False), ("reduced", fast), ("bfloat16", True)):
            setup = devices.set_up_device("cpu", 1, precision)
            assert setup.matmul_dtype == (torch.bfloat16 if rounded else None)
            assert torch.backends.mkldnn.enabled == (fast or not rounded)
    finally:
        devices.set_up_device("cpu", 1)
    assert torch.backends.mkldnn.enabled


@pytest.mark.parametrize(
    ("environment", "driver", "said"),
    [
        ({}, False, ""),
        ({"CUDA_VISIBLE_DEVICES": "0"}, False, "CUDA_VISIBLE_DEVICES is 0"),
        ({"SLURM_JOB_GPUS": "3"}, False, "SLURM_JOB_GPUS is 3"),
        ({}, True, "nvidia0 exists"),
        ({"CUDA_VISIBLE_DEVICES": ""}, True, ""),
    ],
)
def test_auto_reports_a_missing_gpu(tmp_path, monkeypatch, capsys, environment, driver, said):
    for name in devices.RESERVED:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(devices, "DRIVER", tmp_path / "nvidia0")
    if driver:
        devices.DRIVER.touch()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert str(devices.set_up_device("auto", 1)) == "the CPU, matrix products with float32 factors"
    error = capsys.readouterr().err
    assert error.startswith("--device auto: using the CPU, because torch finds no GPU although") == bool(said)
    assert said in error
    devices.set_up_device("cpu", 1)
    assert not capsys.readouterr().err
