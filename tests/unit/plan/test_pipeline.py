"""The location of the workflow."""

from pathlib import Path

import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.plan import pipeline

ROOT = Path(__file__).resolve().parents[3]


def test_an_editable_installation_uses_its_checkout() -> None:
    assert pipeline.checkout() == pipeline.pipeline_directory() == ROOT


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate an installation from a wheel; return its workflow directory."""
    directory = tmp_path / "site-packages/rnnsmt/pipeline"
    directory.mkdir(parents=True)
    monkeypatch.setattr(pipeline, "PACKAGE", directory.parent)
    monkeypatch.setattr(pipeline, "IN_WHEEL", directory)
    return directory


def test_a_wheel_has_its_own(wheel: Path) -> None:
    assert pipeline.checkout() is None
    assert pipeline.pipeline_directory() == wheel


def test_a_package_without_workflow(wheel: Path) -> None:
    wheel.rmdir()
    with pytest.raises(InputError, match="has no workflow; install a wheel"):
        pipeline.pipeline_directory()
