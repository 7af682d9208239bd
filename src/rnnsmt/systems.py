"""The systems of the tables: their names in files, their labels, the published figures.

Table 1 is that of Cho et al. (2014); what Sutskever et al. (2014) published of the same test set stands in Table 2.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple


class PaperFigures(NamedTuple):
    """BLEU in the paper: newstest2012+2013 (dev, where it is told) and newstest2014 (test), WMT'14 English-French."""

    dev: float | None
    test: float


PAPER: dict[str, PaperFigures] = {
    "baseline": PaperFigures(30.64, 33.30),
    "rnn": PaperFigures(31.20, 33.87),
    "cslm_rnn": PaperFigures(31.48, 34.64),
    "cslm_rnn_wp": PaperFigures(31.50, 34.54),
}

SEQ2SEQ_PAPER: dict[str, PaperFigures] = {
    "lstm_forward": PaperFigures(None, 26.17),
    "lstm": PaperFigures(None, 30.59),
    "lstm_ensemble": PaperFigures(None, 34.81),
    "baseline+lstm_forward": PaperFigures(None, 35.61),
    "baseline+lstm": PaperFigures(None, 35.85),
    "baseline+lstm_ensemble": PaperFigures(None, 36.50),
}
"""Sutskever et al. (2014), Tables 1 and 2: beam 12, ensembles of five; 1000-best lists of the same baseline."""

BASELINE = "baseline"
"""Differences are taken to this system."""

_FEATURES = {"baseline": "Baseline", "cslm": "CSLM", "proposals": "Proposals", "rnn": "RNN", "wp": "WP"}

FEATURES = ("rnn", "cslm", "wp")
"""What the paper's systems add to the baseline, in its order; others, proposals and the scorers of a configuration,
come after them."""


def label(system: str) -> str:
    """A readable name: ``cslm_rnn_wp`` is CSLM + RNN + WP; what has another name keeps it.

    >>> label("cslm_rnn+lstm_ensemble")
    'CSLM + RNN + LSTM ensemble'
    """
    return " + ".join(map(_label, system.split("+")))


def _label(name: str) -> str:
    parts = name.split("_")
    if parts[0] == "lstm":
        return " ".join(["LSTM", *parts[1:]])
    return " + ".join(_FEATURES[part] for part in parts) if all(part in _FEATURES for part in parts) else name


def named_features(system: str) -> tuple[str, ...] | None:
    """What a system adds to the baseline by its name: cslm and rnn for ``cslm_rnn``; none where that says nothing."""
    parts = system.split("_")
    if not all(part in _FEATURES for part in parts):
        return None
    return tuple(part for part in parts if part != BASELINE)


def has_network(features: Collection[str] | None) -> bool:
    """Whether a system with these features has a network; yes where they are not known."""
    return features is None or not set(features) <= {"wp"}


def share_networks(features: Collection[str] | None, others: Collection[str] | None) -> bool:
    """Tell whether two systems with these features have a network in common."""
    return bool(set(features or ()) & set(others or ()) - {"wp"})


def ordered_features(features: Collection[str] | None) -> tuple[str, ...]:
    """Features in the order of the paper, then those that it does not know."""
    known = features or ()
    return (*(name for name in FEATURES if name in known), *(name for name in known if name not in FEATURES))


def last_feature(features: Collection[str] | None) -> str | None:
    """The last feature in their order: WP of CSLM + RNN + WP, CSLM of CSLM + RNN; none where there is none."""
    return next(reversed(ordered_features(features)), None)


def without(system: str, feature: str, features: Mapping[str, Collection[str] | None]) -> str | None:
    """The system that has the same features but this one: the first that fits, none where there is none.

    features: what each system adds to the baseline; none where that is not known.
    """
    rest = set(features[system] or ()) - {feature}
    return next((name for name, other in features.items() if other is not None and set(other) == rest), None)


def paper_figure(system: str, is_dev: bool) -> float | None:
    """The BLEU of the same system in the papers, where they have it."""
    figures = published(system)
    if figures is None:
        return None
    return figures.dev if is_dev else figures.test


def published(system: str) -> PaperFigures | None:
    """The figures of a system in the papers, where it is in one."""
    return PAPER.get(system) or SEQ2SEQ_PAPER.get(system)


def paper_gain(system: str, reference: str, is_dev: bool) -> float | None:
    """By how much a system is better than another in the papers, where they have both."""
    own, other = paper_figure(system, is_dev), paper_figure(reference, is_dev)
    return None if own is None or other is None else own - other
