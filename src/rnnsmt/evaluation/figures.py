"""Every figure of Table 1, as TSV and JSON: one record a system and test set."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rnnsmt import __version__
from rnnsmt.evaluation.collect import Contrast, Row, deviation, mean
from rnnsmt.io import atomic_text, write_json
from rnnsmt.systems import PAPER, label

FORMAT = "rnnsmt-table-1"

DECIMALS = {"paper_bleu": 2, "paper_diff_baseline": 2, "paper_diff_without": 2, "decode_seconds": 1}
"""Of numbers in the TSV file; four where nothing is said."""

COLUMNS: dict[str, str] = {
    "system": "name of the system",
    "test_set": "name of the test set",
    "bleu": "tokenised BLEU, mean over the runs",
    "bleu_sd": "its sample standard deviation over the runs",
    "sacrebleu": "sacreBLEU of the detokenised text, mean over the runs",
    "sacrebleu_sd": "its sample standard deviation",
    "runs": "number of tuning runs",
    "diff_baseline": "BLEU less the baseline's",
    "p_value": "of that difference, stratified approximate randomisation (Clark et al. 2011)",
    "p_strict": "of that difference, sentences swapped in all runs at once, noise of the runs added; none of one run",
    "without": "the system without the feature that was added last",
    "diff_without": "BLEU less that system's",
    "p_value_without": "of that difference, as p_value",
    "p_strict_without": "of that difference, as p_strict",
    "bleu_runs": "tokenised BLEU of every run",
    "sacrebleu_runs": "sacreBLEU of every run",
    "length_ratio": "words of the output per word of the reference, mean over the runs",
    "unknown_words": "input words passed through untranslated, mean over the runs",
    "segments": "segments of the test set",
    "decode_seconds": "CPU seconds of the search without loading, mean over the runs",
    "paper_bleu": "the figure of the paper for WMT 2014",
    "paper_diff_baseline": "the paper's difference to its baseline",
    "paper_diff_without": "the paper's difference to its system without the last feature",
    "signature": "of sacreBLEU",
}
"""What the records hold; an empty cell or null means: not known, or not defined (a deviation of one run)."""


def record(row: Row) -> dict[str, Any]:
    """One row of the table by the names of ``COLUMNS``."""
    return {
        "system": row.system,
        "test_set": row.test_set,
        "bleu": mean(row.bleu),
        "bleu_sd": deviation(row.bleu),
        "sacrebleu": mean(row.sacrebleu),
        "sacrebleu_sd": deviation(row.sacrebleu),
        "runs": row.runs,
        "diff_baseline": row.baseline and row.baseline.difference,
        "p_value": clark(row.baseline),
        "p_strict": strict(row.baseline),
        "without": row.feature and row.feature.reference,
        "diff_without": row.feature and row.feature.difference,
        "p_value_without": clark(row.feature),
        "p_strict_without": strict(row.feature),
        "bleu_runs": list(row.bleu),
        "sacrebleu_runs": list(row.sacrebleu),
        "length_ratio": row.length_ratio,
        "unknown_words": row.unknown_words,
        "segments": row.segments,
        "decode_seconds": row.decode_seconds,
        "paper_bleu": row.paper,
        "paper_diff_baseline": row.baseline and row.baseline.paper,
        "paper_diff_without": row.feature and row.feature.paper,
        "signature": row.signature,
    }


def clark(contrast: Contrast | None) -> float | None:
    """The p-value of Clark et al. (2011)."""
    return contrast.comparison.p_clark if contrast and contrast.comparison else None


def strict(contrast: Contrast | None) -> float | None:
    """The p-value of the stricter test."""
    return contrast.comparison.p_strict if contrast and contrast.comparison else None


def write_tsv(path: str | Path, table: Sequence[Row]) -> None:
    """Write every figure, one line a system and test set."""
    with atomic_text(path) as out:
        print(*COLUMNS, sep="\t", file=out)
        for row in table:
            print(*(_cell(name, value) for name, value in record(row).items()), sep="\t", file=out)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(_cell(name, number) for number in value)
    if name == "unknown_words":
        return f"{value:.12g}"
    return f"{value:.{DECIMALS.get(name, 4)}f}" if isinstance(value, float) else str(value)


def write_table_json(path: str | Path, table: Sequence[Row]) -> None:
    """Write every figure with six decimals, what the columns mean, and the paper's table."""
    write_json(
        path,
        {
            "format": FORMAT,
            "rnnsmt": __version__,
            "columns": {"label": "readable name of the system"} | COLUMNS,
            "rows": [{"label": label(row.system), **_rounded(record(row))} for row in table],
            "paper": {system: figures._asdict() for system, figures in PAPER.items()},
        },
    )


def _rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    def rounded(value: Any) -> Any:
        if isinstance(value, list):
            return [rounded(number) for number in value]
        return round(value, 6) if isinstance(value, float) else value

    return {name: rounded(value) for name, value in values.items()}
