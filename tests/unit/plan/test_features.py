"""The registry of features: consistency, and features of other packages."""

import re

import pytest

from rnnsmt.config.features import (
    PAPER_FEATURES,
    has_network,
    label,
    named_features,
    networks_of,
    ordered_features,
    share_networks,
)
from rnnsmt.config.sections import Engines, SystemEntry
from rnnsmt.formats.default_ini import default_ini
from rnnsmt.formats.ini import MosesIni
from rnnsmt.phrases.columns import ScoreColumn
from rnnsmt.plan.derived import features_of
from rnnsmt.plan.systems import Systems
from rnnsmt.plan.validation import ConfigurationError, checked_config, plain_config
from rnnsmt.registries import COLUMNS, FEATURES, SEARCH_FEATURES
from rnnsmt.search.features import SearchFeature
from rnnsmt.search.model import feature_vector

from ..other_package import install
from .conftest import changed


def test_the_registry():
    """Every feature of this package is consistent."""
    names = list(FEATURES)
    features = [FEATURES[name] for name in names]
    assert len(set(names)) == len(names) == len({feature.label for feature in features})
    assert all(re.fullmatch("[a-z][a-z0-9]*", name) for name in names), "they are joined by _ in directories"
    assert names == [*SEARCH_FEATURES, *COLUMNS], "the order of directories"
    for feature in features:
        assert feature.in_search == isinstance(feature, SearchFeature) != isinstance(feature, ScoreColumn)
        assert bool(feature.network) == bool(feature.title), "figures name networks"
    assert set(PAPER_FEATURES) < set(names)


@pytest.mark.parametrize("name", list(SEARCH_FEATURES))
def test_the_line_of_a_network_in_the_search_is_that_of_the_ini(tmp_path, name):
    """A network in the search has the weight of its feature, and the name in capital letters as kind."""
    feature, kind = SEARCH_FEATURES[name], name.upper()
    assert feature.in_search and feature.label == kind
    ini = default_ini(tmp_path, "phrase-table.gz", None, "lm.arpa.gz", neural={name: ("model.safetensors", "class")})
    assert ini.weights[f"{kind}0"] == [feature.weight]
    assert [line.network for line in ini.features if line.kind == kind] == [name]


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
    assert model.ini_options(["nnjm"], 1).endswith(
        " --network nnjm=../nnjm/network1/model.safetensors --unknown nnjm=class"
    )
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


THEIRS = """
from rnnsmt.phrases.columns import WordColumn
from rnnsmt.search.features import SearchFeature

class Topic(SearchFeature):
    label = "Topic"
    network = "nnjm"
    title = "Topic model"

    def load(self, name, path, unknown, network):
        raise NotImplementedError

class Surplus(WordColumn):
    label = "Surplus"
    weight = 0.1

    def score(self, source, target):
        return len(target) - len(source)
"""


@pytest.fixture
def two_more(tmp_path, monkeypatch) -> None:
    """Install a package with a column without a network, and another feature of the search."""
    groups = {
        "rnnsmt.columns": {"surplus": "their_features:Surplus", "Odd_name": "their_features:Surplus"},
        "rnnsmt.search_features": {"topic": "their_features:Topic"},
    }
    install(tmp_path, monkeypatch, "their-features", groups, THEIRS)


@pytest.mark.usefixtures("two_more")
def test_features_of_another_package(resolved):
    """A configuration that names them has their columns, networks, inis and labels."""
    resolved.systems["topic_surplus"] = SystemEntry(features=["surplus", "topic"])
    resolved.systems["cslm_topic_rnn_surplus"] = SystemEntry(features=["cslm", "topic", "rnn", "surplus"])
    with_both = changed(
        resolved, compare=["baseline", "rnn", "topic_surplus", "cslm_topic_rnn_surplus"], nnjm={"unknown": "word"}
    )
    assert checked_config(plain_config(with_both)) == with_both
    model = Systems(with_both)
    assert model.networks == ["rnn", "cslm", "nnjm"]
    assert model.columns_used == ["rnn", "surplus"]
    assert model.features("topic_surplus") == ["surplus", "topic"], "after those of this package"
    assert model.untuned_inis("cslm_topic_rnn_surplus") == [
        "results/augmented/cslm_rnn_surplus_topic/network1/moses.ini"
    ]
    assert model.table_files("topic_surplus", "dev")[0] == (
        "results/augmented/surplus/network1/selected/dev/phrase-table.binary.safetensors"
    )
    assert model.score_pattern("surplus", 3) == "results/columns/surplus/network1/1-of-1.safetensors"
    assert model.networks_in_search("cslm_topic_rnn_surplus") == [
        "results/cslm/network1/model.safetensors",
        "results/nnjm/network1/model.safetensors",
    ]
    assert model.search_options("topic_surplus") == "--pop-limit 150 --stack 100 --cslm-cells 50"
    options = model.ini_options(model.features("cslm_topic_rnn_surplus"), 2)
    assert (
        "--num-features 6 --further-weights 0.2 0.1 --network cslm=../cslm/network2/model.safetensors "
        "--unknown cslm=class " in options
    )
    assert options.endswith("--network topic=../nnjm/network2/model.safetensors --unknown topic=word")
    assert model.smaller("cslm_topic_rnn_surplus") == ["rnn", "topic_surplus"]
    assert model.table_features(["topic_surplus"]) == "topic_surplus=surplus+topic"
    assert label("cslm_topic_rnn_surplus") == "CSLM + Topic + RNN + Surplus"
    assert named_features("topic_surplus") == ("topic", "surplus")
    assert ordered_features(["topic", "surplus", "cslm"]) == ("cslm", "topic", "surplus")
    assert has_network(["topic"]) and not has_network(["surplus", "wp"])
    assert not share_networks(["surplus", "rnn"], ["surplus", "topic"]) and share_networks(["topic"], ["nnjm"])


@pytest.mark.usefixtures("two_more")
def test_a_network_of_another_package_in_an_ini(tmp_path):
    """Its line is written and read, and passed to its class."""
    neural = {"topic": ("model.safetensors", "word")}
    default_ini(tmp_path, "phrase-table", None, "lm.arpa", neural=neural).write(tmp_path / "moses.ini")
    ini = MosesIni.read(tmp_path / "moses.ini")
    (feature,) = [feature for feature in ini.features if feature.network]
    assert (feature.kind, feature.network, ini.weights[feature.name]) == ("TOPIC", "topic", [0.25])
    assert ini.unknown_score(feature) == "word"
    assert feature_vector(ini)[1]["TOPIC"].tolist() == [2]


def refusals(config, *features):
    """Return the mistakes in a configuration with a system that has these features."""
    config.systems["mine"] = SystemEntry(features=list(features))
    with pytest.raises(ConfigurationError) as error:
        checked_config(plain_config(config))
    return error.value.lines


@pytest.mark.usefixtures("two_more")
def test_features_that_are_refused(resolved, tmp_path, monkeypatch):
    (said,) = refusals(resolved, "surplos")
    assert "systems.mine: no feature surplos" in said
    (said,) = refusals(resolved, "Odd_name")
    assert "systems.mine" in said and "Odd_name" in said and "lower-case letters" in said
    install(tmp_path, monkeypatch, "broken-feature", {"rnnsmt.columns": {"broken": "broken_feature:Missing"}})
    (said,) = refusals(resolved, "broken")
    assert all(part in said for part in ("systems.mine", "broken_feature:Missing", "broken-feature 1.2", "uninstall"))
    for name in ("one", "two"):
        install(tmp_path, monkeypatch, f"feature-{name}", {"rnnsmt.columns": {"same": f"feature_{name}:C"}})
    (said,) = refusals(resolved, "same")
    assert "systems.mine" in said and "feature-one and feature-two" in said


@pytest.mark.usefixtures("two_more")
def test_moses_has_no_network_of_another_package(resolved):
    resolved.systems["topic"] = SystemEntry(features=["topic"])
    config = changed(resolved, engine=Engines(tuning="moses", decoding="moses"), compare=["baseline", "topic"])
    with pytest.raises(ConfigurationError) as error:
        checked_config(plain_config(config))
    assert any("Moses does not support the Topic of topic" in line for line in error.value.lines)
