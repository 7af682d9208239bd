"""Incompatible settings of networks are reported before a run."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from rnnsmt.plan.config import resolve_auto
from rnnsmt.plan.models import Systems
from rnnsmt.project.network_settings import setting_mistakes


@pytest.fixture
def config() -> dict[str, Any]:
    """Return the configuration of the demo corpus."""
    found: dict[str, Any] = yaml.safe_load((Path(__file__).resolve().parents[3] / "config.yaml").read_text())
    resolve_auto(found)
    return found


def test_the_reference_is_right(config):
    assert list(setting_mistakes(Systems(config))) == []


def test_all_mistakes_are_named(config):
    config["seq2seq"]["networks"]["lstm_x"] = {"keep": "best", "held_out": 0}
    config["nnjm"]["settings"] = {"weight_decay": 0.1, "optimiser": "sgd"}
    config["rnn"]["settings"] = {"variant": "supplementary", "dropout": 0.2}
    lstm, rnn, joint = setting_mistakes(Systems(config))
    assert lstm.startswith("seq2seq.networks.lstm_x: --keep best: requires held-out pairs")
    assert joint.startswith("nnjm.settings: --weight-decay 0.1: ")
    assert rnn.startswith("rnn.settings: --dropout 0.2: cannot be combined with --variant supplementary")
