"""Curves: perplexity of networks by epoch, BLEU of tuning by iteration, BLEU by length and frequency of words."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_json, words_of
from rnnsmt.base.rendering import BLUE, GREY, ORANGE, canvas
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.config.features import label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HELD_OUT = ("held-out", "validation")
"""Names of the held-out data in histories."""

PERPLEXITY, LOG_P = "perplexity", "log p per word"

COLUMNS = 4
"""Number of plots of tuning curves per row."""

LENGTH, RANK = "source words", "mean frequency rank of the source words"
"""Keys by which sentences are sorted for curves of BLEU."""

MARKERS = "osD^vPX*"
"""Markers of the systems in curves of BLEU."""

Points = list[tuple[float, float]]
"""Epochs and perplexities."""

# Learning curves of networks


def points(rows: list[dict[str, Any]], kinds: tuple[str, ...]) -> list[tuple[float, float]]:
    """Return epoch and perplexity of the rows that have a value for one of the kinds (``train``, ``held-out``)."""
    values = [(row.get("epoch"), perplexity(row, kinds)) for row in rows]
    return [(float(epoch), value) for epoch, value in values if epoch is not None and value is not None]


def is_kept(row: dict[str, Any], history: dict[str, Any]) -> bool:
    """Return whether the trained network has the parameters of this row.

    A history names the update (RNN Encoder-Decoder) or the epoch (other networks) whose parameters were kept.
    """
    names = [name for name in ("update", "epoch") if f"kept {name}" in history]
    return any(row.get(name) == history[f"kept {name}"] for name in names)


def perplexity(row: dict[str, Any], kinds: tuple[str, ...]) -> float | None:
    """Return the perplexity per word of a row, if necessary from its log probability; None if it has neither."""
    for kind in kinds:
        if isinstance(value := row.get(f"{kind} {PERPLEXITY}"), (int, float)):
            return float(value)
        if isinstance(value := row.get(f"{kind} {LOG_P}"), (int, float)):
            return math.exp(min(-value, 700.0))
    return None


@dataclass(frozen=True)
class LearningCurve:
    """History of a training run.

    Attributes:
        rows: rows of the history.
        trained, held_out: epochs and perplexities on training and on held-out data.
        kept: epoch and held-out perplexity of the parameters that were kept.
        unigram: held-out perplexity of a unigram model.
    """

    rows: list[dict[str, Any]]
    trained: Points
    held_out: Points
    kept: tuple[float, float] | None
    unigram: float | None

    @classmethod
    def of(cls, history: dict[str, Any]) -> "LearningCurve":
        """Return the curve of a history written by ``networks train``."""
        rows = history["curve"]
        trained, held_out = points(rows, ("train",)), points(rows, HELD_OUT)
        kept_point = next(iter(points([row for row in rows if is_kept(row, history)], HELD_OUT)), None)
        return cls(rows, trained, held_out, kept_point, perplexity(history, ("unigram",)))


@dataclass(frozen=True)
class LearningCurves:
    """Learning curves of the training runs of every network."""

    networks: dict[str, list[LearningCurve]]

    @property
    def figures(self) -> dict[str, object]:
        """Return the number of points, and the mean held-out perplexity of the kept parameters."""
        curves = [curve for runs in self.networks.values() for curve in runs]
        perplexities = [curve.kept[1] for curve in curves if curve.kept is not None]
        figures: dict[str, object] = {"points": sum(len(curve.rows) for curve in curves)}
        return figures | ({"held-out perplexity": sum(perplexities) / len(perplexities)} if perplexities else {})


def draw_learning_curves(networks: Mapping[str, Sequence[LearningCurve]]) -> "Figure":
    """Draw one plot per network, with the curves of all training runs and a legend for the first."""
    figure, axes = canvas(1, len(networks), 6.4 * len(networks), 4.0)
    for axis, (title, curves) in zip(axes, networks.items(), strict=True):
        _draw_trainings(axis, title, curves)
    return figure


def _draw_trainings(axes: Any, title: str, curves: Sequence[LearningCurve]) -> None:
    for number, curve in enumerate(curves):
        for name, perplexities, colour in (("training", curve.trained, GREY), ("held-out", curve.held_out, BLUE)):
            if perplexities:
                label = None if number else name
                axes.plot(*zip(*perplexities, strict=True), "o-", ms=3.5, lw=1.6, color=colour, label=label)
        if curve.unigram is not None and not number:
            axes.axhline(curve.unigram, ls=":", lw=1.2, color=GREY, label="unigram model, held-out")
    chosen = [curve.kept for curve in curves if curve.kept is not None]
    if chosen:
        values = ", ".join(f"{value:.4g}" for _, value in chosen)
        axes.plot(
            *zip(*chosen, strict=True),
            "o",
            ls="none",
            ms=8,
            mfc="none",
            mec=ORANGE,
            mew=1.6,
            label=f"kept parameters: {values}",
        )
    axes.set_yscale("log")
    axes.set(xlabel="epochs", ylabel="perplexity per word")
    axes.set_title(title, loc="left")
    plain_ticks(axes)
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none")


def plain_ticks(axes: Any) -> None:
    """Label a logarithmic axis with plain numbers, a few of them for any range."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0), numticks=30))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


# Tuning curves: BLEU of the decoded dev set by iteration


@dataclass(frozen=True)
class TuningCurve:
    """History of a tuning run.

    Attributes:
        points: iterations and BLEU of the decoded dev set in percent.
        result: first and last iteration whose weights are averaged. Without averaging, both are the last iteration if
            its weights are the result, or the number after it if the weights were optimised once more.
        bleu: BLEU of the result on the dev set in percent.
    """

    points: list[tuple[int, float]]
    result: tuple[int, int]
    bleu: float

    @classmethod
    def of(cls, run: dict[str, Any]) -> "TuningCurve":
        """Return the curve of the history (``history.json``) of a tuning run."""
        last = run["iterations"][-1]
        span = run["averaged"] or [last["iteration"] + (last["weights"] != run["weights"])]
        bleu = {record["iteration"]: record["dev_bleu"] for record in run["iterations"]}
        return cls(list(bleu.items()), (span[0], span[-1]), run["dev_bleu"])


@dataclass(frozen=True)
class TuningCurves:
    """Tuning curves of the runs of every system."""

    systems: dict[str, list[TuningCurve]]

    @property
    def figures(self) -> dict[str, object]:
        """Return the numbers of systems and runs."""
        return {"systems": len(self.systems), "runs": sum(map(len, self.systems.values()))}


def draw_tuning_curves(systems: Mapping[str, Sequence[TuningCurve]]) -> "Figure":
    """Draw one plot per system, with common axis limits and a line for each run.

    An orange line at the BLEU of the result spans the iterations whose weights are averaged; without averaging, it is
    an orange dot (see ``TuningCurve.result``).
    """
    columns = min(COLUMNS, len(systems))
    rows = math.ceil(len(systems) / columns)
    figure, axes = canvas(rows, columns, 1.2 + 2.5 * columns, 0.8 + 2.3 * rows, share=True)
    for axis, (system, runs) in zip(axes, systems.items(), strict=False):
        _draw_runs(axis, system, runs)
    for axis in axes[len(systems) :]:
        axis.set_axis_off()
    every = [run for runs in systems.values() for run in runs]
    _set_limits(axes[0], [bleu for run in every for bleu in [*(bleu for _, bleu in run.points), run.bleu]])
    figure.supxlabel("iteration")
    figure.supylabel("BLEU of the dev set")
    return figure


def _draw_runs(axes: Any, system: str, runs: Sequence[TuningCurve]) -> None:
    for run in runs:
        axes.plot(*zip(*run.points, strict=True), "-", lw=1.3, color=BLUE, alpha=0.65)
        axes.plot(run.result, [run.bleu] * 2, "-o", lw=1.4, ms=3, color=ORANGE, alpha=0.8)
    axes.set_title(label(system), loc="left")
    axes.xaxis.get_major_locator().set_params(integer=True)


def _set_limits(axes: Any, bleu: list[float]) -> None:
    """Set the limits of the BLEU axis so that low values of the first iterations do not compress the curves.

    The lower limit is the lower quartile minus three times its distance from the maximum, or the minimum if that is
    higher.
    """
    top, ordered = max(bleu), sorted(bleu)
    quartile = ordered[len(ordered) // 4]
    low = max(ordered[0], quartile - 3 * max(top - quartile, 0.1))
    margin = 0.08 * max(top - low, 0.1)
    axes.set_ylim(low - margin, top + margin)


# Histories of either kind


def read_histories(files: Mapping[str, Sequence[StrPath]]) -> LearningCurves | TuningCurves:
    """Read the histories of the runs of networks, or of systems.

    Raises:
        InputError: a file is not a history, or the histories are of both kinds.
    """
    histories = {name: [read_json(path) for path in paths] for name, paths in files.items()}
    kinds = {}
    for name, paths in files.items():
        for path, history in zip(paths, histories[name], strict=True):
            kind = next((key for key in ("curve", "iterations") if isinstance(history, dict) and key in history), None)
            if kind is None:
                raise InputError(f"{path}: is not a history of `networks train` or `tuning tune`")
            kinds[kind] = path
    if len(kinds) > 1:
        raise InputError(
            f"{kinds['curve']} is of a training, but {kinds['iterations']} of a tuning run; plot them apart"
        )
    if "curve" in kinds:
        return LearningCurves({name: list(map(LearningCurve.of, runs)) for name, runs in histories.items()})
    return TuningCurves({name: list(map(TuningCurve.of, runs)) for name, runs in histories.items()})


def draw_history_curves(curves: LearningCurves | TuningCurves) -> "Figure":
    """Draw learning curves or tuning curves."""
    if isinstance(curves, LearningCurves):
        return draw_learning_curves(curves.networks)
    return draw_tuning_curves(curves.systems)


# BLEU by length and by word frequency of the source sentences (Sutskever et al. 2014, Figure 3)


def mean_ranks(sentences: Iterable[str], text: Iterable[str]) -> NDArray[np.float64]:
    """Return the mean frequency rank of the words of every sentence; nan for an empty one.

    Args:
        sentences: tokenised sentences.
        text: tokenised text whose words are ranked: rank 1 is the most frequent word, ties are in alphabetical order.
            Words that do not occur in it have the rank after the last one.

    >>> mean_ranks(["a b", "b c d", ""], ["b a b", "c"]).tolist()
    [1.5, 2.6666666666666665, nan]
    """
    counts = Counter(word for line in text for word in words_of(line))
    order = sorted(counts, key=lambda word: (-counts[word], word))
    rank = {word: index for index, word in enumerate(order, 1)}
    ranks_of_words = [[rank.get(word, len(rank) + 1) for word in words_of(sentence)] for sentence in sentences]
    return np.array([np.mean(ranks) if ranks else np.nan for ranks in ranks_of_words])


def groups_by(values: NDArray[np.float64], number: int) -> list[NDArray[np.int64]]:
    """Return the indices of the sentences in ascending order of their values, in ``number`` groups of similar size.

    Sentences without a value (nan) are ignored.
    """
    valid = np.flatnonzero(~np.isnan(values))
    order = valid[np.argsort(values[valid], kind="stable")]
    return [group for group in np.array_split(order, number) if len(group)]


def curve(
    values: NDArray[np.float64], groups: Sequence[NDArray[np.int64]], runs: Sequence[NDArray[np.int64]]
) -> list[dict[str, Any]]:
    """Return the points of a system: for each group, the mean value, the number of sentences and BLEU of every run.

    Args:
        values: ``[S]``, value of each sentence.
        groups: indices of the sentences of each group.
        runs: BLEU statistics ``[S, 9]`` of every run.
    """
    return [
        {
            "mean": float(values[group].mean()),
            "sentences": len(group),
            "bleu": [bleu_of(run[group].sum(axis=0).tolist()).bleu for run in runs],
        }
        for group in groups
    ]


@dataclass(frozen=True)
class BleuCurves:
    """BLEU of groups of sentences, by the key that sorts them (``LENGTH``, ``RANK``).

    Attributes:
        curves: points by key and system, see ``curve``.
        sentences: number of sentences.
    """

    curves: dict[str, dict[str, list[dict[str, Any]]]]
    sentences: int

    @property
    def figures(self) -> dict[str, object]:
        """Return the numbers of systems and sentences."""
        return {"systems": len(self.curves[LENGTH]), "sentences": self.sentences}


def draw_bleu_curves(curves: Mapping[str, Mapping[str, list[dict[str, Any]]]]) -> "Figure":
    """Draw one plot for every sorting key, with a line for every system."""
    figure, axes = canvas(1, len(curves), 0.6 + 4.4 * len(curves), 4.2)
    for axis, (value, systems) in zip(axes, curves.items(), strict=True):
        for number, (system, points) in enumerate(systems.items()):
            bleu = [np.mean(point["bleu"]) for point in points]
            means = [point["mean"] for point in points]
            axis.plot(means, bleu, marker=MARKERS[number % len(MARKERS)], ms=4.5, lw=1.3, label=label(system))
        axis.set_xlabel(value)
        axis.set_ylabel("BLEU")
        axis.set_ylim(bottom=0)
    axes[-1].legend(fontsize=8, loc="best")
    return figure
