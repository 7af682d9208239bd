"""The estimate of time, memory and disk of a planned run."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rnnsmt.monitoring.estimate import estimates, lines, sizes_of
from rnnsmt.plan.config import resolve_auto
from rnnsmt.plan.resources import Growth, JobNeeds, Line, Power, needs_of_rules

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def config() -> dict[str, Any]:
    """Return the configuration of the paper's experiment."""
    found = yaml.safe_load((ROOT / "config.yaml").read_text())
    for key, value in yaml.safe_load((ROOT / "workflow/configs/wmt14.yaml").read_text()).items():
        found[key] = found[key] | value if isinstance(value, dict) else value
    resolve_auto(found)
    return found


def test_words_of_the_paper(config):
    words = sizes_of(config)
    assert words is not None
    assert (round(words.pool), round(words.bitext)) == (1358, 348)
    assert (round(words.mono_pool), round(words.mono)) == (2069, 418)
    assert (round(words.dev, 2), round(words.sets, 2)) == (0.15, 0.23)


def test_what_is_kept(config):
    """A corpus with `keep: all` counts completely, one with a fraction in part; selection with `auto` may keep all."""
    config["corpora"] = [
        {"name": "a", "role": "bitext", "source": "a", "target": "a", "words": 10, "keep": "all"},
        {"name": "b", "role": "bitext", "source": "b", "target": "b", "words": 20, "keep": 0.1},
        {"name": "c", "role": "mono", "target": "c", "words": 40},
    ]
    config["selection"] = {"bitext": 0.5, "mono": "auto"}
    words = sizes_of(config)
    assert words is not None
    assert words == (50, 30, 12, 70, 10 + 2 + 40, 0, 0)


def test_no_estimate_without_words(config):
    del config["corpora"][0]["words"]
    assert sizes_of(config) is None
    assert estimates(config) == []
    assert list(lines(config)) == []


def test_growth(config, monkeypatch):
    """CPU seconds are converted to hours and megabytes to gigabytes; memory depends on the output of other rules."""
    growth = Growth("pool", Line(36.0, 36.0), Power(2.0, 0.5))
    reads = Growth("bitext", Line(36.0), Power(1.0, 1.0), {"align_words": 0.5})
    table = needs_of_rules(config) | {
        "align_words": JobNeeds(Line(500.0, 1000.0), None, growth=growth),
        "extract": JobNeeds(Line(500.0, 1000.0), Line(1), most=16000, growth=reads),
        "lexical": JobNeeds(Line(500.0, 100.0), Line(1), growth=reads),
    }
    monkeypatch.setattr("rnnsmt.monitoring.estimate.needs_of_rules", lambda config: table)
    rows = {row.rule: row for row in estimates(config)}
    pool = 1357.5
    hours = 0.01 + pool / 100
    assert rows["align_words"][1:] == pytest.approx(
        (0.9 * hours, 0, 0.5, 2 * pool**0.5 / 1000)
    )  # of two aligners model4 alone; no rule says what it reads
    assert rows["extract"].memory == 16
    assert rows["lexical"][1:] == pytest.approx((0.01, 0, 0.5 + 0.1 * 348**0.5, 0.348), rel=1e-3)


def test_memory_is_what_the_rules_request(config):
    """Estimated memory equals the rules' requests: of networks by preset, of the search by tables and text."""
    memory = {row.rule: row.memory for row in estimates(config)}
    assert (memory["rnn_train"], memory["rnn_score"], memory["cslm_train"], memory["augment"]) == (8, 4, 8, 0.35)
    assert memory["nnjm_train"] == 8
    assert (memory["extract"], memory["symmetrize"], memory["prepare_bitext"]) == (16, 0.45, 0.3)
    megabytes = 25.5 * 418**0.824 + 19.6 * 348**0.759
    without = 0.43 + 0.01 * megabytes
    network = 1.5 + 1.5 * 2**25 * 60 / 1e9
    layer = 14 * 15001 * 512 * 4 / 1e9
    assert memory["mert"] - without == pytest.approx(network + layer, abs=0.02), "as much as a joint model takes"
    config["compare"] = ["baseline", "cslm"]
    assert {row.rule: row.memory for row in estimates(config)}["mert"] - without == pytest.approx(network, abs=0.02)
    config["compare"] = ["baseline", "cslm_nnjm"]
    both = {row.rule: row.memory for row in estimates(config)}["mert"] - without
    assert both == pytest.approx(2 * network + layer, abs=0.04)
    config["compare"] = ["baseline"]
    assert {row.rule: row.memory for row in estimates(config)}["mert"] == pytest.approx(without, rel=1e-3)


def test_devices_and_networks(config):
    """Networks take GPU hours on a GPU and core hours on a CPU; each further training run takes the same time again."""
    on_gpu = {row.rule: row for row in estimates(config)}
    other = copy.deepcopy(config)
    other["rnn"]["device"] = "cpu"
    on_cpu = {row.rule: row for row in estimates(other)}
    for rule in ("rnn_train", "rnn_score", "cslm_train", "nnjm_train"):
        assert (on_gpu[rule].core_hours, on_cpu[rule].gpu_hours) == (0, 0), rule
        assert 0 < on_gpu[rule].gpu_hours < on_cpu[rule].core_hours, rule
    assert on_cpu["mert"].core_hours > on_gpu["mert"].core_hours > 0
    other["networks"]["seeds"] = 3
    again = {row.rule: row for row in estimates(other)}
    assert again["rnn_train"].core_hours == pytest.approx(3 * on_cpu["rnn_train"].core_hours)
    core = {}
    for name in ("cslm", "nnjm", "cslm_nnjm"):
        other["compare"] = [name]
        core[name] = {row.rule: row for row in estimates(other)}["decode"].core_hours
    other["compare"] = ["baseline"]
    plain = {row.rule: row for row in estimates(other)}["decode"].core_hours
    assert core["cslm_nnjm"] - plain == pytest.approx(core["cslm"] - plain + core["nnjm"] - plain)
    assert not {"rnn_train", "rnn_score", "cslm_train", "nnjm_train"} & {row.rule for row in estimates(other)}


def test_lines(config):
    """The estimate has a line for every rule with large needs, and the sum."""
    first, head, *rows = lines(config)
    assert "348 of 1,358 million target words of bitext and 418 of 2,069 million" in first
    assert head.split() == ["rule", "core", "hours", "GPU", "hours", "GB", "memory", "GB", "disk"]
    assert rows[-1].startswith("all ")
    hours = [float(re.split(r"\s{2,}", row)[1].replace(",", "")) for row in rows]
    assert sum(hours[:-1]) == pytest.approx(hours[-1], abs=0.1 * len(hours))
