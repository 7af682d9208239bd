"""Registry of the features that systems add to the baseline.

A feature is a column of the phrase table or a network that the search queries. A new feature needs a line of
``REGISTRY`` and the commands and rules that make its files; directories, the ini of a system, nested weights, labels,
contrasts, comparisons, the report and the plan take everything else from this line.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class SystemFeature:
    """One feature.

    Attributes:
        name: name in configurations, options and directories: lower-case letters.
        label: name in tables and figures.
        weight: weight before tuning, for columns and for networks in the search.
        scores: files of a column, with ``{network}``, and with ``{scatteritem}`` if they are computed in shards. Empty
            for a network in the search, and for ``per_text``.
        scatter: name of the scattergather process of these shards.
        network: name of the network that computes the feature, or empty. Two systems with features of the same network
            share it: run r of both has the same training.
        chapter: chapter whose command trains this network: the section of its ``preset`` in the configuration. Empty
            if another feature has the network.
        title: name of the network in the titles of figures.
        in_search: whether the search queries the network.
        ini_settings: settings of the network's section of the configuration that its ini contains.
        search_settings: settings of ``search`` that concern networks in the search only. They are named after the
            CSLM, and limit all networks.
        per_text: whether the feature adds entries to the tables for a given text, so that its tables exist only
            filtered, and its column follows from the entries.
        paper_place: place among the features of the paper's systems, from 1 on; 0 if it has none of them.
    """

    name: str
    label: str
    weight: float
    scores: str = ""
    scatter: str = ""
    network: str = ""
    chapter: str = ""
    title: str = ""
    in_search: bool = False
    ini_settings: tuple[str, ...] = ()
    search_settings: tuple[str, ...] = ()
    per_text: bool = False
    paper_place: int = 0

    @property
    def is_column(self) -> bool:
        """Return whether the feature is a column of the phrase table."""
        return not self.in_search

    @property
    def is_scorer(self) -> bool:
        """Return whether its network scores phrase pairs and is trained by ``rnn train``, with ``rnn.leave_out``."""
        return self.chapter == "rnn"


SCORES = "results/{name}/network{{network}}/scores/{{scatteritem}}.npy"
"""Scores of all phrase pairs by the network of a column, in shards."""

RNN = SystemFeature(
    "rnn",
    "RNN",
    weight=0.2,
    scores=SCORES.format(name="rnn"),
    scatter="rnn_score",
    network="rnn",
    chapter="rnn",
    title="RNN Encoder–Decoder",
    paper_place=1,
)

CSLM = SystemFeature(
    "cslm",
    "CSLM",
    weight=0.25,
    network="cslm",
    chapter="cslm",
    title="CSLM",
    in_search=True,
    ini_settings=("unknown",),
    search_settings=("cslm_cells", "cslm_precision"),
    paper_place=2,
)

NNJM = SystemFeature(
    "nnjm",
    "NNJM",
    weight=0.25,
    network="nnjm",
    chapter="nnjm",
    title="NNJM",
    in_search=True,
    ini_settings=("unknown",),
    search_settings=("cslm_cells", "cslm_precision"),
)

REGISTRY: tuple[SystemFeature, ...] = (
    CSLM,
    NNJM,
    RNN,
    SystemFeature("wp", "WP", weight=0, scores="results/rnn/shortlist.npy", paper_place=3),
    SystemFeature("proposals", "Proposals", weight=0, network="rnn", per_text=True),
)
"""All features, in the order in which directories and columns of the phrase table are named; those of ``scorers`` come
after the RNN Encoder-Decoder."""

NNJM_DIRECTIONS = {
    "nnjm": "direct",
    "nnjm_rl": "direct-rl",
    "nnjm_inverse": "inverse",
    "nnjm_inverse_rl": "inverse-rl",
}
"""Joint models by name of the network, with their direction (``rnnsmt.nnjm.settings.DIRECTIONS``)."""

LIST_NETWORKS: dict[str, tuple[str, ...]] = {"cslm": ("cslm",), "nnjm": tuple(NNJM_DIRECTIONS)}
"""Kinds of networks, besides LSTMs, that rescore n-best lists; each of their networks is one feature of the lists."""

LIST_FEATURES = {f"{name}_lists": name for name in LIST_NETWORKS}
"""Features that rescoring by these networks adds to a system, by their names in tables. They differ from the features
of the search with the same networks."""

BY_NAME: dict[str, SystemFeature] = {feature.name: feature for feature in REGISTRY}

FEATURES = tuple(sorted((f.name for f in REGISTRY if f.paper_place), key=lambda name: BY_NAME[name].paper_place))
"""Features that the paper's systems add to the baseline, in its order. Other features come after them."""


def scorer(name: str) -> SystemFeature:
    """Return the feature of an entry of ``scorers``: a column like that of the RNN Encoder-Decoder."""
    return replace(
        RNN, name=name, label=name, scores=SCORES.format(name=name), network=name, title=f"Scorer {name}", paper_place=0
    )


def known_features(config: Mapping[str, Any]) -> dict[str, SystemFeature]:
    """Return all features of a configuration by name, in the order of ``REGISTRY``."""
    found: dict[str, SystemFeature] = {}
    for feature in REGISTRY:
        found[feature.name] = feature
        if feature is RNN:
            found |= {name: scorer(name) for name in config["scorers"]}
    return found


def features_of(config: Mapping[str, Any], system: str) -> list[str]:
    """Return the features that a system, or the system it rescores, adds to the baseline; none for LSTMs alone."""
    about = config["systems"].get(system, {})
    if "rescores" in about:
        about = config["systems"].get(about["rescores"], {})
    return list(about.get("features", []))


def networks_of(features: Iterable[str]) -> set[str]:
    """Return the networks that compute features. A feature that is not in the registry has one of its own."""
    names = [LIST_FEATURES.get(name, name) for name in features]
    return {BY_NAME[name].network if name in BY_NAME else name for name in names} - {""}
