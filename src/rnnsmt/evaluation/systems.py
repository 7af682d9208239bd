"""The systems of Table 1: their names in files, their labels, the paper's figures (Cho et al. 2014, Table 1)."""

from typing import NamedTuple


class PaperFigures(NamedTuple):
    """BLEU in the paper: newstest2012+2013 (dev) and newstest2014 (test), WMT'14 English-French."""

    dev: float
    test: float


PAPER: dict[str, PaperFigures] = {
    "baseline": PaperFigures(30.64, 33.30),
    "rnn": PaperFigures(31.20, 33.87),
    "cslm_rnn": PaperFigures(31.48, 34.64),
    "cslm_rnn_wp": PaperFigures(31.50, 34.54),
}

BASELINE = "baseline"
"""Differences are taken to this system."""

_FEATURES = {"baseline": "Baseline", "cslm": "CSLM", "rnn": "RNN", "wp": "WP"}

_LAST = ("wp", "cslm", "rnn")
"""Which feature of a system came last: the order in which the paper adds them, from the end."""


def label(system: str) -> str:
    """A readable name: ``cslm_rnn_wp`` is CSLM + RNN + WP; a system with another name keeps it."""
    parts = system.split("_")
    if not all(part in _FEATURES for part in parts):
        return system
    return " + ".join(_FEATURES[part] for part in parts)


def without_last(system: str) -> str | None:
    """The system without the feature that the paper adds last: CSLM + RNN + WP, CSLM + RNN, RNN, Baseline.

    None for the baseline and for systems whose names do not say what they are made of.
    """
    parts = system.split("_")
    if not all(part in _FEATURES for part in parts):
        return None
    for feature in _LAST:
        if feature in parts:
            return "_".join(part for part in parts if part != feature) or BASELINE
    return None


def paper_figure(system: str, is_dev: bool) -> float | None:
    """The paper's BLEU of the same system, where it has one."""
    figures = PAPER.get(system)
    if figures is None:
        return None
    return figures.dev if is_dev else figures.test


def paper_gain(system: str, reference: str, is_dev: bool) -> float | None:
    """By how much a system is better than another in the paper, where it has both."""
    own, other = paper_figure(system, is_dev), paper_figure(reference, is_dev)
    return None if own is None or other is None else own - other
