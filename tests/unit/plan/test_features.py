"""The registry of features: consistency, and further features added by an entry."""

import re
from collections.abc import Iterator

import pytest

from rnnsmt.config import features
from rnnsmt.config.features import (
    BY_NAME,
    FEATURES,
    REGISTRY,
    SystemFeature,
    has_network,
    label,
    named_features,
    networks_of,
    ordered_features,
    share_networks,
)
from rnnsmt.config.sections import Nnjm, SystemEntry
from rnnsmt.formats.default_ini import default_ini
from rnnsmt.formats.ini import NEURAL_MODELS
from rnnsmt.plan.derived import features_of
from rnnsmt.plan.systems import Systems
from rnnsmt.plan.validation import checked_config, plain_config

from .conftest import changed


def test_the_registry():
    """Every entry of the registry is consistent."""
    names = [feature.name for feature in REGISTRY]
    assert len(set(names)) == len(names) == len({feature.label for feature in REGISTRY})
    assert all(re.fullmatch("[a-z]+", name) for name in names), "they are joined by _ in directories"
    assert list(BY_NAME) == names
    for feature in REGISTRY:
        assert feature.in_search != bool(feature.scores), "a column has files"
        assert bool(feature.network) == bool(feature.title), "figures name networks"
        if feature.scores:
            assert ("{network}" in feature.scores) == bool(feature.network)
        assert bool(feature.weight) == bool(feature.network), "counts start at 0"
    assert set(FEATURES) < set(names)


@pytest.mark.parametrize("kind", list(NEURAL_MODELS))
def test_the_line_of_a_network_in_the_search_is_that_of_the_ini(tmp_path, kind):
    """The entry of a network used by the search has the weight of the ini."""
    feature = BY_NAME[kind.lower()]
    assert feature.in_search and feature.label == kind
    ini = default_ini(tmp_path, "phrase-table.gz", None, "lm.arpa.gz", neural={kind: ("model.safetensors", "class")})
    assert ini.weights[f"{kind}0"] == [feature.weight]


def test_features_of_systems(resolved):
    assert features_of(resolved, "cslm_rnn_wp") == ["cslm", "rnn", "wp"]
    assert features_of(resolved, "cslm_rnn_nnjm") == ["cslm", "rnn", "nnjm"]
    assert features_of(resolved, "cslm_rnn+lstm_tuned") == ["cslm", "rnn"], "those of the system that it rescores"
    assert features_of(resolved, "lstm") == features_of(resolved, "unknown") == []


def test_the_joint_model(resolved):
    """The joint model is used by the search, alone or together with the CSLM."""
    model = Systems(resolved)
    assert model.features("cslm_rnn_nnjm") == ["cslm", "nnjm", "rnn"], "the order of directories"
    assert model.untuned_inis("cslm_rnn_nnjm") == ["results/augmented/cslm_nnjm_rnn/network1/moses.ini"]
    assert model.search_models(["cslm", "nnjm", "rnn"], 2) == [
        "results/cslm/network2/model.safetensors",
        "results/nnjm/network2/model.safetensors",
    ]
    assert model.ini_options(["nnjm"], 1).endswith(" --nnjm ../nnjm/network1/model.safetensors --nnjm-unknown class")
    limits = "--pop-limit 150 --stack 100 --cslm-cells 50"
    assert model.search_options("nnjm") == model.search_options("cslm_nnjm") == limits
    assert model.table_features(["cslm_rnn_nnjm"]) == "cslm_rnn_nnjm=cslm+nnjm+rnn"
    assert label("cslm_rnn_nnjm") == "CSLM + RNN + NNJM"
    assert named_features("cslm_nnjm") == ("cslm", "nnjm")
    assert ordered_features(["cslm", "nnjm", "rnn"]) == ("rnn", "cslm", "nnjm")
    assert share_networks(["nnjm"], ["cslm", "nnjm"]) and not share_networks(["nnjm"], ["cslm"])
    names = ["baseline", "cslm", "nnjm", "cslm_rnn", "cslm_nnjm", "cslm_rnn_nnjm"]
    model = Systems(changed(resolved, compare=names))
    assert model.networks == ["rnn", "cslm", "nnjm"]
    assert model.smaller("cslm_rnn_nnjm") == ["cslm_rnn", "cslm_nnjm"]
    assert model.smaller("cslm_nnjm") == ["cslm", "nnjm"]


def test_networks():
    """A feature that is not in the registry, such as an LSTM on n-best lists, has a network."""
    assert networks_of(["rnn", "wp", "cslm", "nnjm", "lstm"]) == {"rnn", "cslm", "nnjm", "lstm"}
    assert not has_network([]) and not has_network(["wp"])
    assert has_network(["rnn", "wp"]) and has_network(["lstm"]) and has_network(None)
    assert share_networks(["rnn", "wp"], ["cslm", "rnn"])
    assert not share_networks(["rnn", "wp"], ["cslm", "wp"]) and not share_networks(["rnn"], None)


@pytest.fixture
def two_more(monkeypatch) -> Iterator[None]:
    """Add two features to the registry: a column without a network, and a third network in the search."""
    topic = SystemFeature(
        "topic", "Topic", 0.25, network="topic", title="Topic model", in_search=True,
    )  # fmt: skip
    surplus = SystemFeature("surplus", "Surplus", 0.1, scores="results/phrases/surplus.npy")
    registry = (REGISTRY[0], topic, *REGISTRY[1:], surplus)
    assert len({feature.name for feature in registry}) == len(registry), "features of the test only"
    for feature in (topic, surplus):
        monkeypatch.setitem(features._LABELS, feature.name, feature.label)
    before = dict(BY_NAME)
    BY_NAME.clear()
    BY_NAME.update({feature.name: feature for feature in registry})
    yield
    BY_NAME.clear()
    BY_NAME.update(before)


def test_a_further_feature_needs_one_line(resolved, two_more):
    resolved.systems["topic_surplus"] = SystemEntry(features=["surplus", "topic"])
    resolved.systems["cslm_topic_rnn_surplus"] = SystemEntry(features=["cslm", "topic", "rnn", "surplus"])
    with_both = changed(resolved, compare=["baseline", "rnn", "topic_surplus", "cslm_topic_rnn_surplus"])
    assert checked_config(plain_config(with_both)) == with_both
    object.__setattr__(with_both, "topic", Nnjm(unknown="word"))
    model = Systems(with_both)
    assert model.networks == ["rnn", "cslm", "topic"]
    assert model.features("topic_surplus") == ["topic", "surplus"]
    assert model.untuned_inis("topic_surplus") == ["results/augmented/topic_surplus/network1/moses.ini"]
    assert model.filtered_tables("topic_surplus", "dev")[0] == (
        "results/augmented/surplus/network1/filtered/dev/phrase-table.gz"
    )
    assert model.score_pattern("surplus", 3) == "results/phrases/surplus.npy"
    assert model.networks_in_search("cslm_topic_rnn_surplus") == [
        "results/cslm/network1/model.safetensors",
        "results/topic/network1/model.safetensors",
    ]
    assert model.search_options("topic_surplus") == "--pop-limit 150 --stack 100 --cslm-cells 50"
    options = model.ini_options(model.features("cslm_topic_rnn_surplus"), 2)
    assert (
        "--num-features 6 --further-weights 0.2 0.1 --cslm ../cslm/network2/model.safetensors --cslm-unknown class "
        in options
    )
    assert options.endswith("--topic ../topic/network2/model.safetensors --topic-unknown word")
    assert model.smaller("cslm_topic_rnn_surplus") == ["rnn", "topic_surplus"]
    assert model.table_features(["topic_surplus"]) == "topic_surplus=topic+surplus"
    assert label("cslm_topic_rnn_surplus") == "CSLM + Topic + RNN + Surplus"
    assert named_features("topic_surplus") == ("topic", "surplus")
    assert ordered_features(["topic", "surplus", "cslm"]) == ("cslm", "topic", "surplus")
    assert has_network(["topic"]) and not has_network(["surplus", "wp"])
    assert not share_networks(["surplus", "rnn"], ["surplus", "topic"])
