"""The configuration of the demo corpus as the rules see it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from snakemake.utils import update_config

from rnnsmt.config.validation import checked_config

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def resolved() -> dict[str, Any]:
    """Return config.yaml and the systems of LSTMs with a value for every setting and two tuning runs."""
    config: dict[str, Any] = yaml.safe_load((ROOT / "config.yaml").read_text())
    update_config(config, yaml.safe_load((ROOT / "workflow/configs/seq2seq.yaml").read_text()))
    config["tuning"]["runs"] = 2
    return checked_config(config)
