"""The location of the workflow, and the check of versions."""

from pathlib import Path

import pytest

from rnnsmt import __version__
from rnnsmt.base.io import InputError
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


def test_rules_of_an_equal_version(wheel: Path) -> None:
    """Rules of a wheel, a checkout or a hosted module are accepted if their version is that of the package."""
    for rules in (wheel, ROOT, None):
        pipeline.check_package(rules, __version__)
        with pytest.raises(InputError, match=rf"has rnnsmt {__version__}, but this workflow requires 9.9: pip install"):
            pipeline.check_package(rules, "9.9")


def test_rules_of_another_checkout(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    with pytest.raises(InputError, match=r"this workflow is part of the checkout .*make setup"):
        pipeline.check_package(tmp_path, __version__)
    pipeline.check_package(ROOT, __version__)
    pipeline.check_package(None, __version__)
