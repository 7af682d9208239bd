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

_ORDER = ["baseline", "baseline_wp", "rnn", "rnn_wp", "cslm", "cslm_wp", "cslm_rnn", "cslm_rnn_wp"]


def label(system: str) -> str:
    """A readable name: ``cslm_rnn_wp`` is CSLM + RNN + WP; a system with another name keeps it."""
    parts = system.split("_")
    if not all(part in _FEATURES for part in parts):
        return system
    return " + ".join(_FEATURES[part] for part in parts)


def system_order(system: str) -> tuple[int, str]:
    """Sort key: the paper's order, then other systems by name."""
    return (_ORDER.index(system) if system in _ORDER else len(_ORDER), system)


def paper_figure(system: str, is_dev: bool) -> float | None:
    """The paper's BLEU of the same system, where it has one."""
    figures = PAPER.get(system)
    if figures is None:
        return None
    return figures.dev if is_dev else figures.test
