"""The published results of Table 1, WMT 2014 English-French (Cho et al. 2014)."""

from typing import NamedTuple


class PaperFigures(NamedTuple):
    """Published BLEU on WMT'14 English-French: newstest2012+2013 (dev, None if not reported), newstest2014 (test)."""

    dev: float | None
    test: float


PUBLISHED: dict[str, PaperFigures] = {
    # Cho et al. (2014), Table 1
    "baseline": PaperFigures(30.64, 33.30),
    "rnn": PaperFigures(31.20, 33.87),
    "cslm_rnn": PaperFigures(31.48, 34.64),
    "cslm_rnn_wp": PaperFigures(31.50, 34.54),
    # Sutskever et al. (2014), Tables 1 and 2: beam size 12 and ensembles of five, unless the name specifies another
    # size (a pair is two networks); 1000-best lists of the same baseline
    "lstm_forward": PaperFigures(None, 26.17),
    "lstm": PaperFigures(None, 30.59),
    "lstm_pair": PaperFigures(None, 33.27),
    "lstm_ensemble_beam1": PaperFigures(None, 33.00),
    "lstm_ensemble_beam2": PaperFigures(None, 34.50),
    "lstm_ensemble": PaperFigures(None, 34.81),
    "baseline+lstm_forward": PaperFigures(None, 35.61),
    "baseline+lstm": PaperFigures(None, 35.85),
    "baseline+lstm_ensemble": PaperFigures(None, 36.50),
}
"""Published results by system."""


def paper_figure(system: str, is_dev: bool) -> float | None:
    """Return the published BLEU of the same system, or None."""
    figures = PUBLISHED.get(system)
    if figures is None:
        return None
    return figures.dev if is_dev else figures.test


def paper_gain(system: str, reference: str, is_dev: bool) -> float | None:
    """Return the published BLEU of a system minus that of ``reference``, or None if one of them was not published."""
    figure, other = paper_figure(system, is_dev), paper_figure(reference, is_dev)
    return None if figure is None or other is None else figure - other
