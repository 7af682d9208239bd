"""Registry of the features that systems add to the baseline, and the systems of the tables.

A feature is a column of the phrase table or a network that the search queries. A new feature requires a line in
``REGISTRY``, and the commands and rules that create its files; directories, the ini of a system, labels,
contrasts, comparisons, the report and the plan are derived from this line.

Further below: systems, their names in files, labels, and published results. Table 1 is that of Cho et al. (2014); Table
2 has the results of Sutskever et al. (2014) on the same test set.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

UnknownScore = Literal["class", "word"]
"""Score of a word outside the shortlist of a network: ``class`` is p(UNK | context), the probability of all such words
together, as in the paper; ``word`` divides it by the number of distinct words of this kind in the training text."""


@dataclass(frozen=True)
class SystemFeature:
    """One feature.

    Attributes:
        name: name in configurations, options and directories: lower-case letters.
        label: name in tables and figures.
        weight: weight before tuning, for columns and for networks in the search.
        scores: files of a column, with ``{network}``, and with ``{scatteritem}`` if they are computed in shards, by a
            rule with its scattergather process ``NAME_score``. Empty for a network in the search.
        network: name of the network that computes the feature, or empty: the package whose command trains it, and the
            section of its ``preset`` in the configuration. Two systems with the feature share the network: run r of
            both uses the same trained network.
        title: name of the network in the titles of figures.
        in_search: whether the search queries the network; other features are columns of the phrase table.
    """

    name: str
    label: str
    weight: float
    scores: str = ""
    network: str = ""
    title: str = ""
    in_search: bool = False


RNN = SystemFeature(
    "rnn",
    "RNN",
    weight=0.2,
    scores="results/rnn/network{network}/scores/{scatteritem}.npy",
    network="rnn",
    title="RNN Encoder–Decoder",
)

CSLM = SystemFeature(
    "cslm",
    "CSLM",
    weight=0.25,
    network="cslm",
    title="CSLM",
    in_search=True,
)

NNJM = SystemFeature(
    "nnjm",
    "NNJM",
    weight=0.25,
    network="nnjm",
    title="NNJM",
    in_search=True,
)

REGISTRY: tuple[SystemFeature, ...] = (
    CSLM,
    NNJM,
    RNN,
    SystemFeature("wp", "WP", weight=0, scores="results/rnn/shortlist.npy"),
)
"""All features, in the order in which directories and columns of the phrase table are named."""

CSLM_ON_LISTS = "cslm_lists"
"""Feature that rescoring by the CSLM adds to a system, by its name in tables. It differs from the feature of the search
with the same network."""

BY_NAME: dict[str, SystemFeature] = {feature.name: feature for feature in REGISTRY}

FEATURES = ("rnn", "cslm", "wp")
"""Features that the paper's systems add to the baseline, in its order. Other features come after them."""


def networks_of(features: Iterable[str]) -> set[str]:
    """Return the networks that compute features. A feature that is not in the registry has a separate network."""
    names = [CSLM.name if name == CSLM_ON_LISTS else name for name in features]
    return {BY_NAME[name].network if name in BY_NAME else name for name in names} - {""}


BASELINE = "baseline"
"""System to which differences are computed."""

_LABELS = {BASELINE: "Baseline"} | {name: feature.label for name, feature in BY_NAME.items()}


def label(system: str) -> str:
    """Return a readable name: ``cslm_rnn_wp`` becomes CSLM + RNN + WP; other names are kept.

    >>> label("cslm_rnn+lstm_ensemble")
    'CSLM + RNN + LSTM ensemble'
    >>> label("baseline+cslm")
    'Baseline + CSLM on n-best lists'
    """
    searched, *rescoring = system.split("+")
    added = [_label(CSLM_ON_LISTS if name == CSLM.name else name) for name in rescoring]
    return " + ".join([_label(searched), *added])


def _label(name: str) -> str:
    if name == CSLM_ON_LISTS:
        return f"{CSLM.label} on n-best lists"
    parts = name.split("_")
    if parts[0] == "lstm":
        return " ".join(["LSTM", *parts[1:]])
    return " + ".join(_LABELS[word] for word in parts) if all(word in _LABELS for word in parts) else name


def named_features(system: str) -> tuple[str, ...] | None:
    """Return the features that a system adds to the baseline according to its name, or None.

    ``cslm_rnn`` adds cslm and rnn; None means that the name does not specify features.
    """
    parts = system.split("_")
    if not all(word in _LABELS for word in parts):
        return None
    return tuple(word for word in parts if word != BASELINE)


def has_network(features: Collection[str] | None) -> bool:
    """Return whether a system with these features has a neural network; True if the features are not known."""
    return features is None or bool(networks_of(features))


def share_networks(features: Collection[str] | None, others: Collection[str] | None) -> bool:
    """Return whether two systems with these features have a network in common."""
    return bool(networks_of(features or ()) & networks_of(others or ()))


def ordered_features(features: Collection[str] | None) -> tuple[str, ...]:
    """Return features in the order of the paper, followed by other features."""
    known = features or ()
    return (*(name for name in FEATURES if name in known), *(name for name in known if name not in FEATURES))


def last_feature(features: Collection[str] | None) -> str | None:
    """Return the last feature in paper order, e.g. WP of CSLM + RNN + WP, CSLM of CSLM + RNN; None if there is none."""
    return next(reversed(ordered_features(features)), None)


def without(system: str, feature: str, features: Mapping[str, Collection[str] | None]) -> str | None:
    """Return the first system with the same features except one, or None.

    Args:
        feature: the feature that the other system lacks.
        features: features that each system adds to the baseline; None if they are not known.
    """
    rest = set(features[system] or ()) - {feature}
    return next((name for name, other in features.items() if other is not None and set(other) == rest), None)
