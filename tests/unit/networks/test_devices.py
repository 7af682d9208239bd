"""The device of a process, and the precision of its products."""

import pytest

torch = pytest.importorskip("torch")

from rnnsmt.networks import devices  # noqa: E402


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
