"""The registry of features, and that a line of it is all that a further feature needs."""

import re
from pathlib import Path

import pytest

from rnnsmt.moses.default_ini import default_ini
from rnnsmt.plan import features, systems
from rnnsmt.plan.config import check
from rnnsmt.plan.features import BY_NAME, FEATURES, REGISTRY, Feature, features_of, known_features, networks_of
from rnnsmt.plan.models import Systems
from rnnsmt.plan.systems import has_network, label, named_features, ordered_features, share_networks

SCHEMA = Path(__file__).resolve().parents[3] / "workflow/schemas/config.schema.json"


def test_the_registry():
    assert [feature.name for feature in REGISTRY] == ["cslm", "rnn", "wp", "proposals"]
    assert FEATURES == ("rnn", "cslm", "wp")
    assert {name: feature.weight for name, feature in BY_NAME.items()} == {
        "cslm": 0.25, "rnn": 0.2, "wp": 0, "proposals": 0
    }  # fmt: skip
    assert [name for name, feature in BY_NAME.items() if feature.is_column] == ["rnn", "wp", "proposals"]
    assert [name for name, feature in BY_NAME.items() if feature.is_scorer] == ["rnn"]
    assert all(re.fullmatch("[a-z]+", feature.name) for feature in REGISTRY), "they are joined by _ in directories"


def test_the_weight_of_a_network_in_the_search_is_that_of_the_ini(tmp_path):
    ini = default_ini(tmp_path, "phrase-table.gz", None, "lm.arpa.gz", neural={"CSLM": {"path": "model.pt"}})
    assert ini.weights["CSLM0"] == [BY_NAME["cslm"].weight]


def test_scorers_are_columns_like_that_of_the_rnn(settled):
    known = known_features(settled)
    assert list(known) == ["cslm", "rnn", "inverse", "bag", "feedforward", "counted", "wp", "proposals"]
    bag = known["bag"]
    assert (bag.label, bag.title, bag.weight, bag.network) == ("bag", "Scorer bag", 0.2, "bag")
    assert bag.scores.format(network=2, scatteritem="1-of-2") == "results/bag/network2/scores/1-of-2.npy"
    assert bag.is_scorer and bag.is_column and not bag.paper_place


def test_features_of_systems(settled):
    assert features_of(settled, "cslm_rnn_wp") == ["cslm", "rnn", "wp"]
    assert features_of(settled, "cslm_rnn+lstm_tuned") == ["cslm", "rnn"], "those of the system that it rescores"
    assert features_of(settled, "lstm") == features_of(settled, "unknown") == []


def test_networks():
    """Of a feature that the registry does not know, such as a scorer, nothing but that it has a network."""
    assert networks_of(["rnn", "proposals", "wp", "cslm", "bag"]) == {"rnn", "cslm", "bag"}
    assert not has_network([]) and not has_network(["wp"])
    assert has_network(["rnn", "wp"]) and has_network(["bag"]) and has_network(None)
    assert share_networks(["rnn", "wp"], ["cslm", "rnn"])
    assert not share_networks(["rnn", "wp"], ["cslm", "wp"]) and not share_networks(["rnn"], None)


@pytest.fixture
def two_more(monkeypatch) -> None:
    """A registry with a further column without a network, and a second network in the search."""
    nnjm = Feature(
        "nnjm", "NNJM", 0.25, network="nnjm", chapter="nnjm", title="Joint model", in_search=True,
        ini_settings=("unknown",), search_settings=("nnjm_cells",),
    )  # fmt: skip
    length = Feature("length", "Length", 0.1, scores="results/phrases/length.npy")
    registry = (REGISTRY[0], nnjm, *REGISTRY[1:], length)
    monkeypatch.setattr(features, "REGISTRY", registry)
    for feature in (nnjm, length):
        monkeypatch.setitem(BY_NAME, feature.name, feature)
        monkeypatch.setitem(systems._LABELS, feature.name, feature.label)


def test_a_further_feature_needs_one_line(settled, two_more):
    settled["systems"] |= {
        "nnjm_length": {"features": ["length", "nnjm"]},
        "cslm_nnjm_rnn_length": {"features": ["cslm", "nnjm", "rnn", "length"]},
    }
    settled["compare"] = ["baseline", "rnn", "nnjm_length", "cslm_nnjm_rnn_length"]
    assert check(settled, SCHEMA) == []
    settled["nnjm"], settled["search"]["nnjm_cells"] = {"unknown": "word"}, 40
    model = Systems(settled)
    assert model.networks == ["rnn", "cslm", "nnjm"]
    assert model.features("nnjm_length") == ["nnjm", "length"]
    assert model.untuned_inis("nnjm_length") == ["results/augmented/nnjm_length/network1/moses.ini"]
    assert model.filtered_tables("nnjm_length", "dev")[0] == (
        "results/augmented/length/network1/filtered/dev/phrase-table.gz"
    )
    assert model.score_pattern("length", 3) == "results/phrases/length.npy"
    assert model.networks_in_search("cslm_nnjm_rnn_length") == [
        "results/cslm/network1/model.pt",
        "results/nnjm/network1/model.pt",
    ]
    assert model.search_options("nnjm_length") == "--pop-limit 150 --stack 100 --nnjm-cells 40"
    options = model.ini_options(model.features("cslm_nnjm_rnn_length"), 2)
    assert (
        "--num-features 6 --further-weights 0.2 0.1 --cslm ../cslm/network2/model.pt --cslm-unknown class " in options
    )
    assert options.endswith("--nnjm ../nnjm/network2/model.pt --nnjm-unknown word")
    inis = [f"{number}.ini" for number in range(1, 5)]
    assert model.start_systems("cslm_nnjm_rnn_length") == ["rnn", "nnjm_length"]
    assert model.nested_options("cslm_nnjm_rnn_length", inis) == (
        "--nested-ini 1.ini 2.ini --nested-columns 0 1 2 3 4 --nested-ini 3.ini 4.ini --nested-columns 0 1 2 3 5"
    )
    assert model.table_features(["nnjm_length"]) == "nnjm_length=nnjm+length"
    assert label("cslm_nnjm_rnn_length") == "CSLM + NNJM + RNN + Length"
    assert named_features("nnjm_length") == ("nnjm", "length")
    assert ordered_features(["nnjm", "length", "cslm"]) == ("cslm", "nnjm", "length")
    assert has_network(["nnjm"]) and not has_network(["length", "wp"])
    assert not share_networks(["length", "rnn"], ["length", "nnjm"])
