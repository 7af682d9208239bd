"""Features that systems add to the baseline, and the systems of the tables.

A feature is a column of the phrase table (``rnnsmt.phrases.columns.ScoreColumn``) or a network that the search queries
(``rnnsmt.search.features.SearchFeature``). ``rnnsmt.registries.FEATURES`` lists the features; directories, the ini of a
system, labels, contrasts, comparisons, the report and the plan are derived from this registry.

The functions at the end of this module derive the label and the features of a system from its name. Table 1 is that of
Cho et al. (2014); Table 2 has the systems of Sutskever et al. (2014) on the same test set.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from rnnsmt.registries import FEATURES

UnknownScore = Literal["class", "word"]
"""Score of a word outside the shortlist of a network: ``class`` is p(UNK | context), the probability of all such words
together, as in the paper; ``word`` divides it by the number of distinct words of this kind in the training text."""


class SystemFeature:
    """Base class of features. The name of a feature in the registry consists of lower-case letters and digits.

    Attributes:
        label: name in tables and figures.
        weight: weight before tuning.
        network: name, in ``rnnsmt.registries.NETWORKS``, of the network that computes the feature; empty if there is
            none. Two systems with the feature share the network: run r of both uses the same trained network.
        title: name of the network in the titles of figures.
        in_search: whether the search queries the network; other features are columns of the phrase table.
    """

    label: str
    weight: float = 0.2
    network: str = ""
    title: str = ""
    in_search: bool = False


CSLM = "cslm"
"""Name of the CSLM, both as a feature and as a network."""

RNN = "rnn"
"""Name of the RNN Encoder-Decoder, both as a feature and as a network."""

LSTM = "seq2seq"
"""Name, in ``rnnsmt.registries.NETWORKS``, of the kind of network that all LSTMs are."""

CSLM_ON_LISTS = "cslm_lists"
"""Name, in tables, of the feature that rescoring n-best lists with the CSLM adds to a system. It differs from the
feature ``cslm`` of the search, although the network is the same."""

PAPER_FEATURES = ("rnn", "cslm", "wp")
"""Features that the paper's systems add to the baseline, in the order of the paper. Other features come last."""


def network_titles(features: Iterable[str]) -> dict[str, str]:
    """Return the titles of the networks that compute features, by network name."""
    networks = (FEATURES[name] for name in features)
    return {feature.network: feature.title or feature.label for feature in networks if feature.network}


def networks_of(features: Iterable[str]) -> set[str]:
    """Return the networks that compute features; a feature that is not in the registry counts as a separate network."""
    names = [CSLM if name == CSLM_ON_LISTS else name for name in features]
    return {FEATURES[name].network if name in FEATURES else name for name in names} - {""}


BASELINE = "baseline"
"""Name of the system with which the others are compared."""


def label(system: str) -> str:
    """Return a readable name: ``cslm_rnn_wp`` becomes CSLM + RNN + WP; other names are kept.

    >>> label("cslm_rnn+lstm_ensemble")
    'CSLM + RNN + LSTM ensemble'
    >>> label("baseline+cslm")
    'Baseline + CSLM on n-best lists'
    """
    searched, *rescoring = system.split("+")
    added = [_label(CSLM_ON_LISTS if name == CSLM else name) for name in rescoring]
    return " + ".join([_label(searched), *added])


def _label(name: str) -> str:
    if name == CSLM_ON_LISTS:
        return f"{FEATURES[CSLM].label} on n-best lists"
    parts = name.split("_")
    if parts[0] == "lstm":
        return " ".join(["LSTM", *parts[1:]])
    if not all(map(_is_named, parts)):
        return name
    return " + ".join("Baseline" if word == BASELINE else FEATURES[word].label for word in parts)


def _is_named(word: str) -> bool:
    """Return whether a part of the name of a system is the baseline or a feature."""
    return word == BASELINE or word in FEATURES


def named_features(system: str) -> tuple[str, ...] | None:
    """Return the features that a system adds to the baseline according to its name, or None.

    ``cslm_rnn`` adds cslm and rnn; None means that the name does not specify features.
    """
    parts = system.split("_")
    if not all(map(_is_named, parts)):
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
    return (
        *(name for name in PAPER_FEATURES if name in known),
        *(name for name in known if name not in PAPER_FEATURES),
    )


def last_feature(features: Collection[str] | None) -> str | None:
    """Return the last feature in paper order, e.g. WP of CSLM + RNN + WP, CSLM of CSLM + RNN; None if there is none."""
    return next(reversed(ordered_features(features)), None)


def without(system: str, feature: str, features: Mapping[str, Collection[str] | None]) -> str | None:
    """Return the first system with the same features as another one except ``feature``, or None.

    Args:
        system: the other system, which has ``feature``.
        features: features that each system adds to the baseline; None if they are not known.
    """
    rest = set(features[system] or ()) - {feature}
    return next((name for name, other in features.items() if other is not None and set(other) == rest), None)
