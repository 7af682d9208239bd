"""Table 1 as numbers: rows with means, standard deviations and contrasts, and their output as TSV and JSON."""

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rnnsmt import __version__
from rnnsmt.base.io import InputError, atomic_text, write_json
from rnnsmt.base.progress import say
from rnnsmt.config.features import (
    BASELINE,
    PAPER,
    SEQ2SEQ_PAPER,
    has_network,
    label,
    last_feature,
    named_features,
    ordered_features,
    paper_figure,
    paper_gain,
    share_networks,
    without,
)
from rnnsmt.evaluation.scores import Runs, Score, Scores
from rnnsmt.evaluation.significance import Difference, Statistics, compare
from rnnsmt.evaluation.text_metrics import METRICS

FORMAT = "rnnsmt-table-5"

DECIMALS = 4
"""Decimals of numbers in the TSV files; figures of the paper have two."""

P_VALUE = "p-value of this difference: stratified approximate randomisation (Clark et al. 2011)"
P_BOOTSTRAP = "p-value of this difference: paired bootstrap over sentences (Koehn 2004), as in sacreBLEU"
P_STRICT = (
    "p-value of this difference: the outputs for a sentence are exchanged in all runs at once; includes the variance "
    "due to tuning and, with several training runs of the networks, due to training; empty for one tuning run"
)
LOW = "lower end of the 95 % confidence interval of this difference, from the draws of p_strict"
HIGH = "upper end of this interval"
DETECTABLE = "smallest true difference that p_strict would detect (p <= 0.05) with a power of 80 %"


def _metric_columns(suffix: str, reference: str) -> dict[str, str]:
    """Return the columns of the differences by metrics other than BLEU, with their descriptions."""
    return {
        f"{name}_{column}{suffix}": text
        for name, metric in METRICS.items()
        for column, text in (
            ("diff", f"{metric.label} minus that of {reference}{'; lower is better' if name == 'ter' else ''}"),
            ("low", "lower end of the 95 % confidence interval of this difference, computed as for BLEU"),
            ("high", HIGH),
            ("p_strict", "p-value of this difference, computed as p_strict of BLEU"),
        )
    }


COLUMNS: dict[str, str] = {
    "system": "name of the system",
    "test_set": "name of the test set",
    "bleu": "tokenised BLEU, mean over the tuning runs",
    "bleu_sd": "sample standard deviation of bleu over the tuning runs",
    "sacrebleu": "sacreBLEU of the detokenised text, mean over the tuning runs",
    "sacrebleu_sd": "sample standard deviation of sacrebleu over the tuning runs",
    **{
        column: text
        for name, metric in METRICS.items()
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
    "p_value": P_VALUE,
    "p_bootstrap": P_BOOTSTRAP,
    "p_strict": P_STRICT,
    "without": "system without the feature that is added last in the paper; the other features are in the contrasts",
    "diff_without": "BLEU minus that of the system in the column without",
    "low_without": LOW,
    "high_without": HIGH,
    "detectable_without": DETECTABLE,
    "p_value_without": "p-value of this difference, computed as p_value",
    "p_bootstrap_without": "p-value of this difference, computed as p_bootstrap",
    "p_strict_without": "p-value of this difference, computed as p_strict",
    **_metric_columns("_baseline", "the baseline"),
    **_metric_columns("_without", "the system in the column without"),
    "bleu_runs": "tokenised BLEU of every run",
    "sacrebleu_runs": "sacreBLEU of every run",
    "length_ratio": "words of the output per word of the reference, mean over the runs",
    "unknown_words": "input words passed through untranslated, mean over the runs",
    "segments": "segments of the test set",
    "paper_bleu": "published BLEU on WMT 2014 English-French: newstest2014, for dev newstest2012+2013",
    "paper_diff_baseline": "the paper's difference to its baseline",
    "paper_diff_without": "the paper's difference to its system without the last feature",
    "signature": "signature of sacreBLEU",
}
"""Columns of the table; an empty cell or null: unknown or undefined (the standard deviation of one run)."""

CONTRAST_COLUMNS: dict[str, str] = {
    "test_set": "name of the test set",
    "feature": "feature that is added",
    "system": "name of the system with the feature",
    "without": "the same system without the feature",
    "difference": "BLEU of the system minus that of the system without the feature, means over the tuning runs",
    "low": LOW,
    "high": HIGH,
    "detectable": DETECTABLE,
    "p_value": P_VALUE,
    "p_bootstrap": P_BOOTSTRAP,
    "p_strict": P_STRICT,
    **_metric_columns("", "the system without the feature"),
    "paper_difference": "published difference on WMT 2014 English-French: newstest2014, for dev newstest2012+2013",
}
"""Columns of the contrasts: every feature of every system, if the system without it is in the table."""


@dataclass(frozen=True)
class Contrast:
    """Difference of a system to another one, the reference, on the same test set."""

    reference: str
    difference: float
    """Mean tokenised BLEU of the system minus that of the reference."""
    paper: float | None
    """The same difference in the paper."""
    comparison: Difference | None
    """Significance of the difference; None without statistics of every segment, or if the runs of the systems differ.
    """
    metrics: Mapping[str, Difference] = field(default_factory=dict)
    """Differences by metrics other than BLEU, by the names of ``METRICS``."""

    @property
    def p_strict(self) -> float | None:
        """Return the p-value to use, see ``significance``."""
        return self.comparison.p_strict if self.comparison else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % confidence interval of the difference."""
        return self.comparison.interval if self.comparison else None


@dataclass(frozen=True)
class Row:
    """One system on one test set: BLEU of every run, means over the runs, and contrasts."""

    system: str
    test_set: str
    added: tuple[str, ...]
    """Features that the system adds to the baseline, if they are known."""
    segments: int
    bleu: tuple[float, ...]
    """Tokenised BLEU of every run."""
    sacrebleu: tuple[float, ...]
    """sacreBLEU of every run, or empty."""
    metrics: Mapping[str, tuple[float, ...]]
    """Metrics other than BLEU, by the names of ``METRICS``: the score of every run."""
    signature: str | None
    length_ratio: float
    unknown_words: float | None
    paper: float | None
    trainings: int = 1
    """Number of training runs per network, through which the tuning runs cycle."""
    baseline: Contrast | None = None
    """Difference to the baseline."""
    features: Mapping[str, Contrast] = field(default_factory=dict)
    """Difference to the same system without a feature, by feature, if that system is in the table."""

    @property
    def last(self) -> Contrast | None:
        """Return the difference to the system (or baseline) without the feature that the paper adds last."""
        return self.features.get(last_feature(self.added) or "")

    @property
    def runs(self) -> int:
        """Return the number of runs."""
        return len(self.bleu)


def mean(values: Sequence[float]) -> float | None:
    """Return the arithmetic mean; None for no values."""
    return statistics.fmean(values) if values else None


def deviation(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation; None for fewer than two values."""
    return statistics.stdev(values) if len(values) > 1 else None


def rows(
    scores: Scores,
    dev_sets: Iterable[str],
    joint: Iterable[str] = (),
    features: Mapping[str, Collection[str]] | None = None,
    paper: bool = False,
    trainings: int = 1,
) -> list[Row]:
    """Return the rows of the table: systems in the order of their scores, dev sets first, joint sets last.

    Args:
        dev_sets: names of the sets that the weights were tuned on.
        features: features that a system adds to the baseline, if its name does not specify them.
        paper: include the published figures; joint sets have none.
        trainings: number of training runs per network, through which the tuning runs of systems with networks cycle.
    """
    for (system, _), runs in scores.items():
        if len(runs) % trainings:
            raise InputError(
                f"--trainings {trainings}: {system} has {len(runs)} runs; the number of runs must be a multiple of "
                f"{trainings}"
            )
    dev = set(dev_sets)
    without_paper = set(joint)
    systems, test_sets = (list(dict.fromkeys(names)) for names in zip(*scores, strict=True))
    keys = sorted(scores, key=lambda key: (systems.index(key[0]), key[1] not in dev, test_sets.index(key[1])))
    added = {system: (features or {}).get(system, named_features(system)) for system in systems}
    of = {system: trainings if has_network(added[system]) else 1 for system in systems}
    return [
        _row(scores, system, test_set, added, test_set in dev if paper and test_set not in without_paper else None, of)
        for system, test_set in keys
    ]


def _row(
    scores: Scores,
    system: str,
    test_set: str,
    added: Mapping[str, Collection[str] | None],
    is_dev: bool | None,
    trainings: Mapping[str, int],
) -> Row:
    """Return a row; is_dev: True: with the published dev figure, False: with the test figure, None: neither."""
    runs = [score for _, score in sorted(scores[system, test_set].items())]
    sacre = [score.sacrebleu for score in runs if score.sacrebleu is not None]
    unknown = [float(score.unknown_words) for score in runs if score.unknown_words is not None]
    features = ordered_features(added[system])
    smaller = {feature: name for feature in features if (name := without(system, feature, added)) is not None}
    contrasts = {
        reference: _contrast(
            scores, system, reference, test_set, is_dev, trainings, share_networks(features, added.get(reference))
        )
        for reference in dict.fromkeys([BASELINE, *smaller.values()])
    }
    return Row(
        system=system,
        test_set=test_set,
        added=features,
        segments=runs[0].segments,
        bleu=tuple(score.bleu.bleu for score in runs),
        sacrebleu=tuple(result.score for result in sacre),
        metrics={name: tuple(score.metrics[name].score for score in runs) for name in _common_metrics(runs)},
        signature=sacre[0].signature if sacre else None,
        length_ratio=statistics.fmean(score.bleu.length_ratio for score in runs),
        unknown_words=mean(unknown),
        paper=None if is_dev is None else paper_figure(system, is_dev),
        trainings=trainings[system],
        baseline=contrasts[BASELINE],
        features={f: contrast for f, name in smaller.items() if (contrast := contrasts[name]) is not None},
    )


def _contrast(
    scores: Scores,
    system: str,
    reference: str,
    test_set: str,
    is_dev: bool | None,
    trainings: Mapping[str, int],
    shared: bool,
) -> Contrast | None:
    """Compare a system with another one of the table, run by run; return None if the other one is missing.

    shared: whether both systems use the same network in every run.
    """
    if reference == system or (reference, test_set) not in scores:
        return None
    runs, others = scores[system, test_set], scores[reference, test_set]
    averages = [statistics.fmean(score.bleu.bleu for score in by_run.values()) for by_run in (runs, others)]
    comparison, metrics = None, {}
    both = trainings[reference], trainings[system]
    if sorted(runs) != sorted(others):
        say(f"{system} on {test_set}: no significance test, because its runs differ from those of {reference}")
    else:
        if all(score.sentences for score in (*others.values(), *runs.values())):
            comparison = compare(_statistics(others), _statistics(runs), both, shared)
        metrics = {
            name: compare(
                _metric_statistics(others, name), _metric_statistics(runs, name), both, shared, METRICS[name].of_many
            )
            for name in _common_metrics([*others.values(), *runs.values()])
        }
    paper = None if is_dev is None else paper_gain(system, reference, is_dev)
    return Contrast(reference, averages[0] - averages[1], paper, comparison, metrics)


def _statistics(runs: Runs) -> Statistics:
    return np.array([score.sentences for _, score in sorted(runs.items())], np.int64)


def _common_metrics(scores: Sequence[Score]) -> list[str]:
    return [name for name in METRICS if all(name in score.metrics for score in scores)]


def _metric_statistics(runs: Runs, name: str) -> Statistics:
    return np.array([score.metrics[name].sentences for _, score in sorted(runs.items())])


TESTS = ("difference", "low", "high", "detectable", "p_value", "p_bootstrap", "p_strict")
"""Columns of a difference, named as in ``CONTRAST_COLUMNS``."""


def _tests(contrast: Contrast | None) -> dict[str, float | None]:
    """Return the values of ``TESTS``, None for unknown ones."""
    values: dict[str, float | None] = dict.fromkeys(TESTS)
    if contrast is not None:
        values["difference"] = contrast.difference
        if (tested := contrast.comparison) is not None:
            values["low"], values["high"] = tested.interval or (None, None)
            values["detectable"] = tested.detectable
            values |= {"p_value": tested.p_clark, "p_bootstrap": tested.p_bootstrap, "p_strict": tested.p_strict}
    return values


def _metric_tests(contrast: Contrast | None, suffix: str) -> dict[str, float | None]:
    """Return the values of ``_metric_columns``, None for unknown ones."""
    values: dict[str, float | None] = {}
    for name in METRICS:
        metric = contrast.metrics.get(name) if contrast else None
        low, high = (metric.interval if metric else None) or (None, None)
        for column, value in (
            ("diff", metric and metric.difference),
            ("low", low),
            ("high", high),
            ("p_strict", metric and metric.p_strict),
        ):
            values[f"{name}_{column}{suffix}"] = value
    return values


def record(row: Row) -> dict[str, Any]:
    """Return a row of the table by the names of ``COLUMNS``."""
    baseline, last = _tests(row.baseline), _tests(row.last)
    return {
        "system": row.system,
        "test_set": row.test_set,
        "bleu": mean(row.bleu),
        "bleu_sd": deviation(row.bleu),
        "sacrebleu": mean(row.sacrebleu),
        "sacrebleu_sd": deviation(row.sacrebleu),
        **{name: mean(row.metrics.get(name, ())) for name in METRICS},
        **{f"{name}_sd": deviation(row.metrics.get(name, ())) for name in METRICS},
        "runs": row.runs,
        "trainings": row.trainings,
        "diff_baseline": baseline["difference"],
        **{f"{name}_baseline": baseline[name] for name in ("low", "high", "detectable")},
        **{name: baseline[name] for name in ("p_value", "p_bootstrap", "p_strict")},
        "without": row.last and row.last.reference,
        "diff_without": last["difference"],
        **{f"{name}_without": last[name] for name in TESTS[1:]},
        **_metric_tests(row.baseline, "_baseline"),
        **_metric_tests(row.last, "_without"),
        "bleu_runs": list(row.bleu),
        "sacrebleu_runs": list(row.sacrebleu),
        "length_ratio": row.length_ratio,
        "unknown_words": row.unknown_words,
        "segments": row.segments,
        "paper_bleu": row.paper,
        "paper_diff_baseline": row.baseline and row.baseline.paper,
        "paper_diff_without": row.last and row.last.paper,
        "signature": row.signature,
    }


def contrast_records(table: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the gains from each feature, by the names of ``CONTRAST_COLUMNS``.

    They are sorted by test set, feature and number of other features.
    """
    test_sets = list(dict.fromkeys(row.test_set for row in table))
    contrasts = [(row, feature, contrast) for row in table for feature, contrast in row.features.items()]
    features = ordered_features(list(dict.fromkeys(feature for _, feature, _ in contrasts)))
    contrasts.sort(key=lambda item: (test_sets.index(item[0].test_set), features.index(item[1]), len(item[0].added)))
    return [
        {
            "test_set": row.test_set,
            "feature": feature,
            "system": row.system,
            "without": contrast.reference,
            **_tests(contrast),
            **_metric_tests(contrast, ""),
            "paper_difference": contrast.paper,
        }
        for row, feature, contrast in contrasts
    ]


def write_tsv(path: str | Path, table: Sequence[Row], paper: bool) -> None:
    """Write one line for each system and test set; paper: include the published figures."""
    _write_tsv(path, _columns(COLUMNS, paper), map(record, table))


def write_contrasts_tsv(path: str | Path, table: Sequence[Row], paper: bool) -> None:
    """Write one line for each feature, system and test set; paper: include the published differences."""
    _write_tsv(path, _columns(CONTRAST_COLUMNS, paper), contrast_records(table))


def _write_tsv(path: str | Path, columns: Iterable[str], records: Iterable[Mapping[str, Any]]) -> None:
    columns = list(columns)
    with atomic_text(path) as out:
        print(*columns, sep="\t", file=out)
        for values in records:
            print(*(_tsv_field(name, values[name]) for name in columns), sep="\t", file=out)


def _columns(columns: Mapping[str, str], paper: bool) -> dict[str, str]:
    return {name: text for name, text in columns.items() if paper or not name.startswith("paper_")}


def _tsv_field(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(_tsv_field(name, number) for number in value)
    if name == "unknown_words":
        return f"{value:.12g}"
    decimals = 2 if name.startswith("paper_") else DECIMALS
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


def write_table_json(path: str | Path, table: Sequence[Row], paper: bool) -> None:
    """Write rows and contrasts with six decimals, and the meaning of the columns; paper: include published figures."""
    columns, contrast_columns = _columns(COLUMNS, paper), _columns(CONTRAST_COLUMNS, paper)
    content = {
        "format": FORMAT,
        "rnnsmt": __version__,
        "columns": {"label": "readable name of the system"} | columns,
        "rows": [{"label": label(row.system), **_rounded(record(row), columns)} for row in table],
        "contrast_columns": contrast_columns,
        "contrasts": [_rounded(values, contrast_columns) for values in contrast_records(table)],
    }
    if paper:
        content["paper"] = {system: figures._asdict() for system, figures in (PAPER | SEQ2SEQ_PAPER).items()}
    write_json(path, content)


def _rounded(values: Mapping[str, Any], columns: Iterable[str]) -> dict[str, Any]:
    def rounded(value: Any) -> Any:
        if isinstance(value, list):
            return [rounded(number) for number in value]
        return round(value, 6) if isinstance(value, float) else value

    return {name: rounded(values[name]) for name in columns}
