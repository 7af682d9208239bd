"""The configuration of the demo corpus as the rules see it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from rnnsmt.plan.config import resolve_auto


@pytest.fixture
def resolved() -> dict[str, Any]:
    """Return config.yaml with values for ``auto`` and two tuning runs."""
    config: dict[str, Any] = yaml.safe_load((Path(__file__).resolve().parents[3] / "config.yaml").read_text())
    config["tuning"]["runs"] = 2
    resolve_auto(config)
    return config
