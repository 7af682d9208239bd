"""The versions that benchmarks/cslm.py compares."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from rnnsmt.cslm.model import cslm_task  # noqa: E402
from rnnsmt.cslm.settings import PRESETS  # noqa: E402
from rnnsmt.networks.devices import set_up_device  # noqa: E402
from rnnsmt.networks.training import Training  # noqa: E402
from tests.unit.launches import SMALL_CSLM, make_text  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def cslm():
    """Import the script as a module."""
    spec = importlib.util.spec_from_file_location("cslm_benchmark", ROOT / "benchmarks/cslm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_implementations_are_compared_with_the_same_settings(cslm):
    """The rows of autograd and plain PyTorch have a row by hand that computes the same: all classes, no dropout."""
    settings = replace(PRESETS["small"], sampled_classes=7, dropout=0.5, self_normalised=0.1)
    versions = cslm.versions_of(settings)
    rows = [(kind, changed) for name, (kind, changed) in versions.items() if "all classes" in name]
    assert [kind for kind, _ in rows] == [cslm.BY_HAND, cslm.AUTOGRAD, cslm.PLAIN]
    assert {(row.sampled_classes, row.dropout, row.self_normalised) for _, row in rows} == {(0, 0.0, 0.0)}
    assert all(kind == cslm.BY_HAND for name, (kind, _) in versions.items() if "all classes" not in name)


def test_autograd_computes_the_gradient_of_the_row_by_hand(cslm, tmp_path):
    settings = replace(PRESETS["small"], **SMALL_CSLM, sampled_classes=7)
    _, exact = next(version for name, version in cslm.versions_of(settings).items() if "autograd" in name)
    trainer = Training(cslm_task(make_text(tmp_path), exact, 1, set_up_device("cpu", 1, "float32")), 1)
    batch = trainer.minibatch(next(trainer.task.batches))
    for parameter in trainer.task.model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    sums = trainer.loss_and_gradient(trainer.task.model, *batch)
    gradients = [parameter.grad.clone() for parameter in trainer.task.model.parameters()]
    assert cslm.by_autograd(False, trainer.task.model, *batch)[0] == pytest.approx(float(sums[0]), rel=1e-5)
    for parameter, gradient in zip(trainer.task.model.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-3, atol=1e-5)
