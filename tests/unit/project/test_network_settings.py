"""Incompatible settings of networks are reported before a run."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from rnnsmt.plan.validation import checked_config, plain_config
from rnnsmt.project.network_settings import setting_mistakes
from rnnsmt.project.settings_table import json_schema, table_lines

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def config() -> dict[str, Any]:
    """Return the configuration of the demo corpus with a value for every setting."""
    return plain_config(checked_config(yaml.safe_load((ROOT / "config.yaml").read_text())))


def test_the_reference_is_right(config):
    assert list(setting_mistakes(checked_config(config))) == []


def test_all_mistakes_are_named(config):
    config["seq2seq"]["networks"]["lstm_x"] = {"keep": "best", "held_out": 0, "hidden": "64", "hiden": 64}
    config["nnjm"]["settings"] = {"weight_decay": 0.1, "optimizer": "sgd"}
    config["rnn"]["settings"] = {"variant": "supplementary", "dropout": 0.2}
    config["cslm"]["settings"] = {"order": 1, "clip": "x"}
    config["seq2seq"]["settings"] = {"hidden": 0, "layer": 2}
    assert list(setting_mistakes(checked_config(config))) == [
        "rnn.settings: --dropout 0.2: cannot be combined with --variant supplementary; set it to 0",
        "cslm.settings.order: must be at least 2, not 1",
        "cslm.settings.clip: must be a number, not 'x'",
        "nnjm.settings: --weight-decay 0.1: requires --optimizer adam",
        "seq2seq.settings: unknown key layer; did you mean layers?",
        "seq2seq.settings.hidden: must be greater than 0, not 0",
        "seq2seq.networks.lstm_x: unknown key hiden; did you mean hidden?",
        "seq2seq.networks.lstm_x: --keep best: requires held-out pairs; increase --held-out, or use --keep last",
    ]


def test_the_schema_and_the_table_have_every_setting(config):
    """Every setting has a description; the schema accepts the configuration with all its settings."""
    jsonschema = pytest.importorskip("jsonschema")
    config["rnn"]["settings"] = {"hidden": 32}
    jsonschema.validate(json.loads(json.dumps(config)), schema := json_schema())
    config["rnn"]["settings"] = {"hiden": 32}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(config, schema)
    lines = list(table_lines())
    assert (ROOT / "docs/settings.md").read_text() == "\n".join([*lines, ""]), (
        "rnnsmt project settings > docs/settings.md"
    )
    assert not [line for line in lines if line.endswith("|  |")], "every setting has a meaning"
