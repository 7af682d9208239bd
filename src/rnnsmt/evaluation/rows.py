"""Table 1 as numbers: rows with means, standard deviations and contrasts, and their output as TSV and JSON."""

import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnsmt import __version__
from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import say
from rnnsmt.base.reading import read_json
from rnnsmt.base.writing import atomic_text, write_json
from rnnsmt.config.features import (
    BASELINE,
    has_network,
    label,
    last_feature,
    named_features,
    ordered_features,
    share_networks,
    without,
)
from rnnsmt.evaluation.published import PUBLISHED, paper_figure, paper_gain
from rnnsmt.evaluation.scores import Runs, Score, Scores
from rnnsmt.evaluation.significance import Statistics, compare
from rnnsmt.registries import METRICS

if TYPE_CHECKING:
    from rnnsmt.evaluation.metrics import Metric

FORMAT = "rnnsmt-table-5"

Record = dict[str, Any]
"""Row of the table, or contrast, by the names of its columns; unknown and undefined values may be missing."""

P_BOOTSTRAP = "p-value of this difference: paired bootstrap over sentences (Koehn 2004), as in sacreBLEU"
P_STRICT = (
    "p-value of this difference: the outputs for a sentence are exchanged in all runs at once; includes the variance "
    "due to tuning and, with several training runs of the networks, due to training; empty for one tuning run"
)
LOW = "lower end of the 95 % confidence interval of this difference, from the draws of p_strict"
HIGH = "upper end of this interval"
DETECTABLE = "smallest true difference that p_strict would detect (p <= 0.05) with a power of 80 %"

METRIC_TESTS = ("diff", "low", "high", "p_strict")
"""Columns of a difference in a metric other than BLEU; the name of the metric is their prefix."""


def _of(metrics: Iterable[str]) -> Iterator[tuple[str, "Metric"]]:
    """Yield metrics with their names."""
    return ((name, METRICS[name]) for name in metrics)


def _metric_columns(metrics: Sequence[str], suffix: str, reference: str) -> dict[str, str]:
    """Return the columns of the differences by metrics other than BLEU, with their descriptions."""
    return {
        f"{name}_{column}{suffix}": text
        for name, metric in _of(metrics)
        for column, text in zip(
            METRIC_TESTS,
            (
                f"{metric.label} minus that of {reference}{'; lower is better' if metric.lower_is_better else ''}",
                "lower end of the 95 % confidence interval of this difference, computed as for BLEU",
                HIGH,
                "p-value of this difference, computed as p_strict of BLEU",
            ),
            strict=True,
        )
    }


@cache
def columns(metrics: tuple[str, ...]) -> dict[str, str]:
    """Return the columns of the table, with their descriptions.

    An empty cell, or null in JSON, is an unknown or undefined value, such as the standard deviation of one run.

    Args:
        metrics: names of the metrics other than BLEU.
    """
    return {
        "system": "name of the system",
        "test_set": "name of the test set",
        "bleu": "tokenised BLEU, mean over the tuning runs",
        "bleu_sd": "sample standard deviation of bleu over the tuning runs",
        "sacrebleu": "sacreBLEU of the detokenised text, mean over the tuning runs",
        "sacrebleu_sd": "sample standard deviation of sacrebleu over the tuning runs",
        **{
            column: text
            for name, metric in _of(metrics)
            for column, text in (
                (name, f"{metric.label} of the detokenised text, mean over the tuning runs"),
                (f"{name}_sd", f"sample standard deviation of {name} over the tuning runs"),
            )
        },
        "runs": "number of tuning runs",
        "trainings": "number of training runs of its networks, through which the tuning runs cycle; with 1, no value "
        "includes the variance due to training",
        "diff_baseline": "BLEU minus that of the baseline",
        "low_baseline": LOW,
        "high_baseline": HIGH,
        "detectable_baseline": DETECTABLE,
        "p_bootstrap": P_BOOTSTRAP,
        "p_strict": P_STRICT,
        "without": "system without the feature that is added last in the paper; the other features are in the "
        "contrasts",
        "diff_without": "BLEU minus that of the system in the column without",
        "low_without": LOW,
        "high_without": HIGH,
        "detectable_without": DETECTABLE,
        "p_bootstrap_without": "p-value of this difference, computed as p_bootstrap",
        "p_strict_without": "p-value of this difference, computed as p_strict",
        **_metric_columns(metrics, "_baseline", "the baseline"),
        **_metric_columns(metrics, "_without", "the system in the column without"),
        "bleu_runs": "tokenised BLEU of every run",
        "sacrebleu_runs": "sacreBLEU of every run",
        "length_ratio": "words of the output per word of the reference, mean over the runs",
        "unknown_words": "input words passed through untranslated, mean over the runs",
        "below_start": "numbers of the tuning runs whose dev BLEU is below that of the initial weights",
        "segments": "segments of the test set",
        "paper_bleu": "published BLEU on WMT 2014 English-French: newstest2014, for dev newstest2012+2013",
        "paper_diff_baseline": "the paper's difference to its baseline",
        "paper_diff_without": "the paper's difference to its system without the last feature",
        "signature": "signature of sacreBLEU",
    }


@cache
def contrast_columns(metrics: tuple[str, ...]) -> dict[str, str]:
    """Return the columns of the contrasts, with their descriptions.

    There is a contrast for every feature of every system for which the table has the system without this feature.
    """
    return {
        "test_set": "name of the test set",
        "feature": "feature that is added",
        "system": "name of the system with the feature",
        "without": "the same system without the feature",
        "difference": "BLEU of the system minus that of the system without the feature, means over the tuning runs",
        "low": LOW,
        "high": HIGH,
        "detectable": DETECTABLE,
        "p_bootstrap": P_BOOTSTRAP,
        "p_strict": P_STRICT,
        **_metric_columns(metrics, "", "the system without the feature"),
        "paper_difference": "published difference on WMT 2014 English-French: newstest2014, for dev newstest2012+2013",
    }


def table_of(
    scores: Scores,
    dev_sets: Iterable[str],
    joint: Iterable[str] = (),
    features: Mapping[str, Collection[str]] | None = None,
    paper: bool = False,
    trainings: int = 1,
    metrics: Sequence[str] = tuple(METRICS),
) -> tuple[list[Record], list[Record]]:
    """Return the rows and the contrasts.

    Rows are sorted by system, in the order of ``scores``; the dev sets of a system come first, joint sets last. Rows
    also have the key ``features``: the features that the system adds to the baseline, if they are known. Contrasts are
    sorted by test set, feature and number of other features.

    Args:
        dev_sets: names of the sets that the weights were tuned on.
        joint: names of the joint test sets, which have no published figures.
        features: features that systems add to the baseline; by default, they are derived from the name of the system.
        paper: include the published figures.
        trainings: number of training runs per network, through which the tuning runs of systems with networks cycle.
        metrics: names of the metrics other than BLEU; the table has those that all scores have.

    Raises:
        InputError: the number of runs of a system is not a multiple of ``trainings``.
    """
    for (system, _), runs in scores.items():
        if len(runs) % trainings:
            raise InputError(
                f"--trainings {trainings}: {system} has {len(runs)} runs; the number of runs must be a multiple of "
                f"{trainings}"
            )
    dev, without_paper = set(dev_sets), set(joint)
    systems, test_sets = (list(dict.fromkeys(names)) for names in zip(*scores, strict=True))
    keys = sorted(scores, key=lambda key: (systems.index(key[0]), key[1] not in dev, test_sets.index(key[1])))
    added = {system: (features or {}).get(system, named_features(system)) for system in systems}
    counted = {system: trainings if has_network(added[system]) else 1 for system in systems}
    rows, contrasts = [], []
    for system, test_set in keys:
        is_dev = test_set in dev if paper and test_set not in without_paper else None
        own = ordered_features(added[system])
        smaller = {feature: name for feature in own if (name := without(system, feature, added)) is not None}
        tested: dict[str, Record] = {}
        for reference in dict.fromkeys([BASELINE, *smaller.values()]):
            if reference != system and (reference, test_set) in scores:
                shared = share_networks(own, added.get(reference))
                both = counted[reference], counted[system]
                tested[reference] = _contrast(scores, system, reference, test_set, both, shared, metrics)
                if is_dev is not None:
                    tested[reference]["paper_difference"] = paper_gain(system, reference, is_dev)
        smaller = {feature: name for feature, name in smaller.items() if name in tested}
        row = {"system": system, "test_set": test_set, "features": own, "trainings": counted[system]}
        last = smaller.get(last_feature(own) or "")
        row |= _means(scores[system, test_set], metrics)
        row |= _differences(tested.get(BASELINE, {}), tested.get(last or "", {}), metrics)
        rows.append(row | {"without": last, "paper_bleu": None if is_dev is None else paper_figure(system, is_dev)})
        contrasts += [
            {"test_set": test_set, "feature": feature, "system": system, "without": name} | tested[name]
            for feature, name in smaller.items()
        ]
    order = list(dict.fromkeys(test_set for _, test_set in keys))
    every = ordered_features(list(dict.fromkeys(contrast["feature"] for contrast in contrasts)))
    contrasts.sort(
        key=lambda one: (order.index(one["test_set"]), every.index(one["feature"]), len(added[one["system"]] or ()))
    )
    return rows, contrasts


def runs_below_start(scores: Scores, histories: Iterable[str]) -> dict[str, list[int]]:
    """Return by system the tuning runs whose dev BLEU is below that of the initial weights.

    Args:
        histories: output of `tuning tune` for every run, in the directories of the score files.
    """
    worse = {
        Path(path).parent
        for path, history in ((path, read_json(path)) for path in histories)
        if history["dev_bleu"] < history["iterations"][0]["dev_bleu"]
    }
    return {
        system: [number for number, score in sorted(runs.items()) if Path(score.path).parent in worse]
        for (system, _), runs in scores.items()
    }


def _means(by_run: Runs, metrics: Sequence[str]) -> Record:
    """Return the scores of the runs of a system on a test set, with means and standard deviations."""
    runs = [score for _, score in sorted(by_run.items())]
    sacre = [score.sacrebleu for score in runs if score.sacrebleu is not None]
    unknown = [float(score.unknown_words) for score in runs if score.unknown_words is not None]
    values = {"bleu": [score.bleu.bleu for score in runs], "sacrebleu": [result.score for result in sacre]}
    values |= {name: [score.metrics[name].score for score in runs] for name in _common_metrics(runs, metrics)}
    return {
        **{name: _mean(of_runs) for name, of_runs in values.items()},
        **{f"{name}_sd": statistics.stdev(of_runs) for name, of_runs in values.items() if len(of_runs) > 1},
        "bleu_runs": values["bleu"],
        "sacrebleu_runs": values["sacrebleu"],
        "runs": len(runs),
        "length_ratio": _mean([score.bleu.length_ratio for score in runs]),
        "unknown_words": _mean(unknown),
        "segments": runs[0].segments,
        "signature": sacre[0].signature if sacre else None,
    }


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


TESTS = ("low", "high", "detectable", "p_bootstrap", "p_strict")
"""Columns of a difference in BLEU, named as in ``contrast_columns``."""


def _differences(baseline: Record, last: Record, metrics: Sequence[str]) -> Record:
    """Return the columns of a row for its differences to the baseline and to the system without the last feature."""
    values: Record = {"diff_baseline": baseline.get("difference"), "diff_without": last.get("difference")}
    values |= {name: baseline.get(name) for name in TESTS if name.startswith("p_")}
    for suffix, contrast in (("_baseline", baseline), ("_without", last)):
        values |= {f"{name}{suffix}": contrast.get(name) for name in (*TESTS, *_metric_columns(metrics, "", ""))}
        values[f"paper_diff{suffix}"] = contrast.get("paper_difference")
    return values


def _contrast(
    scores: Scores,
    system: str,
    reference: str,
    test_set: str,
    trainings: tuple[int, int],
    shared: bool,
    metrics: Sequence[str],
) -> Record:
    """Compare a system with another one, the reference, run by run.

    Args:
        trainings: numbers of training runs of the reference and of the system.
        shared: whether both systems use the same network in every run.
    """
    runs, others = scores[system, test_set], scores[reference, test_set]
    means = [statistics.fmean(score.bleu.bleu for score in by_run.values()) for by_run in (runs, others)]
    contrast: Record = {"difference": means[0] - means[1]}
    if sorted(runs) != sorted(others):
        say(f"{system} on {test_set}: no significance test, because its runs differ from those of {reference}")
        return contrast
    tested = compare(_statistics(others), _statistics(runs), trainings, shared)
    low, high = tested.interval or (None, None)
    values = (low, high, tested.detectable, tested.p_bootstrap, tested.p_strict)
    contrast |= dict(zip(TESTS, values, strict=True))
    for name in _common_metrics([*others.values(), *runs.values()], metrics):
        both = _statistics(others, name), _statistics(runs, name)
        tested = compare(*both, trainings, shared, METRICS[name].score)
        low, high = tested.interval or (None, None)
        columns = [f"{name}_{part}" for part in METRIC_TESTS]
        contrast |= dict(zip(columns, (tested.difference, low, high, tested.p_strict), strict=True))
    return contrast


def _common_metrics(scores: Sequence[Score], metrics: Sequence[str]) -> list[str]:
    return [name for name in metrics if all(name in score.metrics for score in scores)]


def _statistics(runs: Runs, metric: str | None = None) -> Statistics:
    """Return the statistics of every run and sentence, of BLEU or of another metric."""
    ordered = [score for _, score in sorted(runs.items())]
    return np.stack([score.sentences if metric is None else score.metrics[metric].sentences for score in ordered])


def _runs_text(values: Sequence[float]) -> str:
    return " ".join(f"{value:.4f}" for value in values)


FORMATS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("bleu_runs", "sacrebleu_runs"), _runs_text),
    "below_start": lambda runs: " ".join(map(str, runs)),
    "unknown_words": "{:.12g}".format,
    **dict.fromkeys(
        (name for name in {**columns(()), **contrast_columns(())} if name.startswith("paper_")), "{:.2f}".format
    ),
}
"""Formats of columns in the TSV files; other numbers have four decimals."""


def write_tsv(path: StrPath, records: Sequence[Record], named: Mapping[str, str], paper: bool) -> None:
    """Write a line for each record, with the columns of ``named``; ``paper`` includes the published figures."""
    from pandas import DataFrame

    frame = DataFrame(records, columns=_shown(named, paper))
    for name in frame.columns.intersection(list(FORMATS)):
        frame[name] = frame[name].map(FORMATS[name], na_action="ignore")
    with atomic_text(path) as out:
        frame.to_csv(out, sep="\t", index=False, float_format="%.4f")


def _shown(named: Mapping[str, str], paper: bool) -> list[str]:
    return [name for name in named if paper or not name.startswith("paper_")]


def write_table_json(
    path: StrPath, rows: Sequence[Record], contrasts: Sequence[Record], paper: bool, metrics: tuple[str, ...]
) -> None:
    """Write rows and contrasts with six decimals, and descriptions of their columns; ``paper`` as for ``write_tsv``."""
    of_rows, of_contrasts = columns(metrics), contrast_columns(metrics)
    shown, of_contrast = _shown(of_rows, paper), _shown(of_contrasts, paper)
    content = {
        "format": FORMAT,
        "rnnsmt": __version__,
        "columns": {"label": "readable name of the system"} | {name: of_rows[name] for name in shown},
        "rows": [{"label": label(row["system"])} | _rounded(row, shown) for row in rows],
        "contrast_columns": {name: of_contrasts[name] for name in of_contrast},
        "contrasts": [_rounded(contrast, of_contrast) for contrast in contrasts],
    }
    if paper:
        content["paper"] = {system: figures._asdict() for system, figures in PUBLISHED.items()}
    write_json(path, content)


def _rounded(values: Record, names: Iterable[str]) -> Record:
    def rounded(value: Any) -> Any:
        if isinstance(value, list):
            return [rounded(number) for number in value]
        return round(value, 6) if isinstance(value, float) else value

    return {name: rounded(values.get(name)) for name in names}
