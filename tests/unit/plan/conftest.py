"""The configuration of the demo corpus, as it is given and as the rules see it."""

from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from snakemake.utils import update_config

from rnnsmt.config.sections import Config
from rnnsmt.plan.validation import checked_config

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def config() -> dict[str, Any]:
    """Return config.yaml with the systems of LSTMs, and with the sections that it omits."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "config.yaml").read_text())
    update_config(found, yaml.safe_load((ROOT / "workflow/configs/seq2seq.yaml").read_text()))
    return found | {"search": {}, "evaluation": {"joint": {}}}


@pytest.fixture
def resolved(config: dict[str, Any]) -> Config:
    """Return the configuration with a value for every setting and two tuning runs."""
    config["tuning"]["runs"] = 2
    return checked_config(config)


def changed(config: Config, **values: Any) -> Config:
    """Return a checked configuration with other values; those of a section are a map of the values that differ."""
    for name, value in values.items():
        section = getattr(config, name)
        new = replace(section, **value) if is_dataclass(section) and isinstance(value, dict) else value
        config = replace(config, **{name: new})
    return config
