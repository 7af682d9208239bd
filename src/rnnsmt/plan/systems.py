"""Systems of the tables: names in files, labels, and published results.

Table 1 is that of Cho et al. (2014); Table 2 has the results of Sutskever et al. (2014) on the same test set.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from rnnsmt.plan.features import BY_NAME, FEATURES, LIST_FEATURES, LIST_NETWORKS, networks_of


class PaperFigures(NamedTuple):
    """Published BLEU on WMT'14 English-French: newstest2012+2013 (dev, None if not reported), newstest2014 (test)."""

    dev: float | None
    test: float


PAPER: dict[str, PaperFigures] = {
    "baseline": PaperFigures(30.64, 33.30),
    "rnn": PaperFigures(31.20, 33.87),
    "cslm_rnn": PaperFigures(31.48, 34.64),
    "cslm_rnn_wp": PaperFigures(31.50, 34.54),
}
"""Results of Cho et al. (2014), Table 1."""

SEQ2SEQ_PAPER: dict[str, PaperFigures] = {
    "lstm_forward": PaperFigures(None, 26.17),
    "lstm": PaperFigures(None, 30.59),
    "lstm_ensemble": PaperFigures(None, 34.81),
    "baseline+lstm_forward": PaperFigures(None, 35.61),
    "baseline+lstm": PaperFigures(None, 35.85),
    "baseline+lstm_ensemble": PaperFigures(None, 36.50),
}
"""Results of Sutskever et al. (2014), Tables 1 and 2: beam size 12, ensembles of five; 1000-best lists of the same
baseline."""

BASELINE = "baseline"
"""System to which differences are computed."""

_LABELS = {BASELINE: "Baseline"} | {name: feature.label for name, feature in BY_NAME.items()}


def label(system: str) -> str:
    """Return a readable name: ``cslm_rnn_wp`` becomes CSLM + RNN + WP; other names are kept.

    >>> label("cslm_rnn+lstm_ensemble")
    'CSLM + RNN + LSTM ensemble'
    >>> label("baseline+nnjm")
    'Baseline + NNJM on n-best lists'
    """
    searched, *rescoring = system.split("+")
    added = [f"{_label(name)} on n-best lists" if name in LIST_NETWORKS else _label(name) for name in rescoring]
    return " + ".join([_label(searched), *added])


def _label(name: str) -> str:
    if name in LIST_FEATURES:
        return f"{_LABELS[LIST_FEATURES[name]]} on n-best lists"
    parts = name.split("_")
    if parts[0] == "lstm":
        return " ".join(["LSTM", *parts[1:]])
    return " + ".join(_LABELS[part] for part in parts) if all(part in _LABELS for part in parts) else name


def named_features(system: str) -> tuple[str, ...] | None:
    """Return the features that a system's name says it adds to the baseline, or None.

    ``cslm_rnn`` adds cslm and rnn; None means that the name says nothing about features.
    """
    parts = system.split("_")
    if not all(part in _LABELS for part in parts):
        return None
    return tuple(part for part in parts if part != BASELINE)


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
        system: the system.
        feature: the feature that the other system lacks.
        features: features that each system adds to the baseline; None if they are not known.
    """
    rest = set(features[system] or ()) - {feature}
    return next((name for name, other in features.items() if other is not None and set(other) == rest), None)


def paper_figure(system: str, is_dev: bool) -> float | None:
    """Return the published BLEU of the same system, or None."""
    figures = published(system)
    if figures is None:
        return None
    return figures.dev if is_dev else figures.test


def published(system: str) -> PaperFigures | None:
    """Return the published results of a system, or None."""
    return PAPER.get(system) or SEQ2SEQ_PAPER.get(system)


def paper_gain(system: str, reference: str, is_dev: bool) -> float | None:
    """Return the published difference in BLEU of a system to another, or None if one of them was not published."""
    own, other = paper_figure(system, is_dev), paper_figure(reference, is_dev)
    return None if own is None or other is None else own - other
