"""Every number of Table 1 for programs, as TSV and JSON: records of systems on test sets, and of contrasts."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rnnsmt import __version__
from rnnsmt.base.io import atomic_text, write_json
from rnnsmt.evaluation.table import Contrast, Row, deviation, mean
from rnnsmt.plan.systems import PAPER, SEQ2SEQ_PAPER, label, ordered_features

FORMAT = "rnnsmt-table-3"

DECIMALS = dict.fromkeys(("paper_bleu", "paper_diff_baseline", "paper_diff_without", "paper_difference"), 2)
DECIMALS["decode_seconds"] = 1
"""Of numbers in the TSV files; four where nothing is said."""

P_VALUE = "of that difference, stratified approximate randomisation (Clark et al. 2011)"
P_BOOTSTRAP = "of that difference, paired bootstrap over sentences (Koehn 2004), as in sacreBLEU"
P_STRICT = (
    "of that difference, sentences swapped in all runs at once, noise of the tuning runs added, and that of training "
    "the networks where the runs take turns on several trainings; none of one run"
)
LOW = "lower end of its 95 % confidence interval, by the draws of p_strict"
HIGH = "upper end"
DETECTABLE = "smallest true difference that p_strict would find (p <= 0.05) with a power of 80 %"

COLUMNS: dict[str, str] = {
    "system": "name of the system",
    "test_set": "name of the test set",
    "bleu": "tokenised BLEU, mean over the tuning runs",
    "bleu_sd": "its sample standard deviation over the tuning runs",
    "sacrebleu": "sacreBLEU of the detokenised text, mean over the tuning runs",
    "sacrebleu_sd": "its sample standard deviation over the tuning runs",
    "chrf": "chrF of the detokenised text, mean over the tuning runs; none of joint sets",
    "chrf_sd": "its sample standard deviation over the tuning runs",
    "runs": "number of tuning runs",
    "trainings": "of the system's networks, on which its runs take turns; 1: the noise of training is in no figure",
    "diff_baseline": "BLEU less the baseline's",
    "low_baseline": LOW,
    "high_baseline": HIGH,
    "detectable_baseline": DETECTABLE,
    "p_value": P_VALUE,
    "p_bootstrap": P_BOOTSTRAP,
    "p_strict": P_STRICT,
    "without": "the system without the feature that the paper adds last; all others are in the contrasts",
    "diff_without": "BLEU less that system's",
    "low_without": LOW,
    "high_without": HIGH,
    "detectable_without": DETECTABLE,
    "p_value_without": "of that difference, as p_value",
    "p_bootstrap_without": "of that difference, as p_bootstrap",
    "p_strict_without": "of that difference, as p_strict",
    "bleu_runs": "tokenised BLEU of every run",
    "sacrebleu_runs": "sacreBLEU of every run",
    "length_ratio": "words of the output per word of the reference, mean over the runs",
    "unknown_words": "input words passed through untranslated, mean over the runs",
    "segments": "segments of the test set",
    "decode_seconds": "CPU seconds of the search without loading, mean over the runs, which share a CSLM's answers",
    "paper_bleu": "the figure of the paper for WMT 2014 English-French",
    "paper_diff_baseline": "the paper's difference to its baseline",
    "paper_diff_without": "the paper's difference to its system without the last feature",
    "signature": "of sacreBLEU",
}
"""What the records hold; an empty cell or null means: not known, or not defined (a deviation of one run)."""

CONTRAST_COLUMNS: dict[str, str] = {
    "test_set": "name of the test set",
    "feature": "what is added",
    "system": "name of the system with the feature",
    "without": "the same system without the feature",
    "difference": "BLEU of the system less that of the one without the feature, means over the tuning runs",
    "low": LOW,
    "high": HIGH,
    "detectable": DETECTABLE,
    "p_value": P_VALUE,
    "p_bootstrap": P_BOOTSTRAP,
    "p_strict": P_STRICT,
    "paper_difference": "the paper's difference for WMT 2014 English-French",
}
"""What the records of contrasts hold: every feature of every system, where the system without it is in the table."""


TESTS = ("difference", "low", "high", "detectable", "p_value", "p_bootstrap", "p_strict")
"""What is known of a difference, by the names of ``CONTRAST_COLUMNS``."""


def _tests(contrast: Contrast | None) -> dict[str, float | None]:
    """Return the values of ``TESTS``; none everywhere without a contrast."""
    if contrast is None:
        return dict.fromkeys(TESTS)
    low, high = contrast.interval or (None, None)
    p_values = contrast.p_clark, contrast.p_bootstrap, contrast.p_strict
    return dict(zip(TESTS, (contrast.difference, low, high, contrast.detectable, *p_values), strict=True))


def record(row: Row) -> dict[str, Any]:
    """Return one row of the table by the names of ``COLUMNS``."""
    baseline, last = _tests(row.baseline), _tests(row.last)
    return {
        "system": row.system,
        "test_set": row.test_set,
        "bleu": mean(row.bleu),
        "bleu_sd": deviation(row.bleu),
        "sacrebleu": mean(row.sacrebleu),
        "sacrebleu_sd": deviation(row.sacrebleu),
        "chrf": mean(row.chrf),
        "chrf_sd": deviation(row.chrf),
        "runs": row.runs,
        "trainings": row.trainings,
        "diff_baseline": baseline["difference"],
        **{f"{name}_baseline": baseline[name] for name in ("low", "high", "detectable")},
        **{name: baseline[name] for name in ("p_value", "p_bootstrap", "p_strict")},
        "without": row.last and row.last.reference,
        "diff_without": last["difference"],
        **{f"{name}_without": last[name] for name in TESTS[1:]},
        "bleu_runs": list(row.bleu),
        "sacrebleu_runs": list(row.sacrebleu),
        "length_ratio": row.length_ratio,
        "unknown_words": row.unknown_words,
        "segments": row.segments,
        "decode_seconds": row.decode_seconds,
        "paper_bleu": row.paper,
        "paper_diff_baseline": row.baseline and row.baseline.paper,
        "paper_diff_without": row.last and row.last.paper,
        "signature": row.signature,
    }


def contrast_records(table: Sequence[Row]) -> list[dict[str, Any]]:
    """List what each feature adds, by the names of ``CONTRAST_COLUMNS``.

    Sorted by test set, feature and number of other features.
    """
    test_sets = list(dict.fromkeys(row.test_set for row in table))
    found = [(row, feature, contrast) for row in table for feature, contrast in row.features.items()]
    features = ordered_features(list(dict.fromkeys(feature for _, feature, _ in found)))
    found.sort(key=lambda one: (test_sets.index(one[0].test_set), features.index(one[1]), len(one[0].added)))
    return [
        {
            "test_set": row.test_set,
            "feature": feature,
            "system": row.system,
            "without": contrast.reference,
            **_tests(contrast),
            "paper_difference": contrast.paper,
        }
        for row, feature, contrast in found
    ]


def write_tsv(path: str | Path, table: Sequence[Row], paper: bool) -> None:
    """Write the rows, one line a system and test set; paper: with the paper's columns."""
    _write_tsv(path, _shown(COLUMNS, paper), map(record, table))


def write_contrasts_tsv(path: str | Path, table: Sequence[Row], paper: bool) -> None:
    """Write what each feature adds, one line a feature, system and test set; paper: with the paper's column."""
    _write_tsv(path, _shown(CONTRAST_COLUMNS, paper), contrast_records(table))


def _write_tsv(path: str | Path, columns: Iterable[str], records: Iterable[Mapping[str, Any]]) -> None:
    columns = list(columns)
    with atomic_text(path) as out:
        print(*columns, sep="\t", file=out)
        for one in records:
            print(*(_cell(name, one[name]) for name in columns), sep="\t", file=out)


def _shown(columns: Mapping[str, str], paper: bool) -> dict[str, str]:
    return {name: text for name, text in columns.items() if paper or not name.startswith("paper_")}


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(_cell(name, number) for number in value)
    if name == "unknown_words":
        return f"{value:.12g}"
    return f"{value:.{DECIMALS.get(name, 4)}f}" if isinstance(value, float) else str(value)


def write_table_json(path: str | Path, table: Sequence[Row], paper: bool) -> None:
    """Write the rows and the contrasts with six decimals, what the columns mean, and the paper's table if wanted."""
    columns, contrast_columns = _shown(COLUMNS, paper), _shown(CONTRAST_COLUMNS, paper)
    content = {
        "format": FORMAT,
        "rnnsmt": __version__,
        "columns": {"label": "readable name of the system"} | columns,
        "rows": [{"label": label(row.system), **_rounded(record(row), columns)} for row in table],
        "contrast_columns": contrast_columns,
        "contrasts": [_rounded(one, contrast_columns) for one in contrast_records(table)],
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
