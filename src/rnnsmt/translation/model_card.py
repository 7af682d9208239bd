"""The model card of an archive: description of the system, data, licence, figures and limits."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rnnsmt import __version__
from rnnsmt.base.io import InputError, read_json
from rnnsmt.plan.corpora import language_name
from rnnsmt.translation.api import features
from rnnsmt.translation.system import Description, read_ini

ROLES = {
    "bitext": "parallel text",
    "mono": "text of the language model",
    "dev": "tuning of the weights",
    "test": "test",
}
"""Use of a corpus, by its role in the configuration."""

METRICS = {"bleu": "BLEU", "sacrebleu": "sacreBLEU", "chrf": "chrF", "chrfpp": "chrF++", "ter": "TER"}
"""Column of Table 1 and name of every metric."""

LIMITS = (
    "Segments are translated one by one, without the context of other sentences.",
    "Words that the parallel text lacks are copied.",
    "Quality on text of other kinds than the test sets was not measured. Translations can be wrong and fluent; do not "
    "use them unread where errors do harm.",
    "The system reproduces whatever its training text contains.",
)


def model_card(directory: Path, results: Path, licence: str) -> str:
    """Return the text of ``MODEL_CARD.md`` (Markdown) for the archive of a system of a finished run.

    Args:
        directory: directory of the tuned system, ``results/systems/NAME/runN``.
        results: the directory ``results`` of the run, with ``table1.json`` and ``provenance.json``.
        licence: licence of the archive, in words.

    Raises:
        InputError: a file is missing or was not written by the workflow, or the run does not contain the system.
    """
    description = Description.read(directory)
    table, provenance = results / "table1.json", results / "provenance.json"
    try:
        rows = [row for row in read_json(table)["rows"] if row["system"] == description.name]
        content = read_json(provenance)
        cells = [cell for cell in content["cells"] if cell["system"] == description.name]
        name = f"{description.name}/{directory.resolve().name}"
        scores = {cell["test_set"]: run["bleu"] for cell in cells for run in cell["runs"] if run["run"] == name}
        if not rows or not scores:
            raise InputError(f"{results}: the run has no system {name}; use --system and --results from the same run")
        lines = [
            *_introduction(description, directory, content["software"]),
            *_data(content["config"], content["files"]),
            "",
            "## Licence",
            "",
            licence,
            "",
            *_figures(rows, scores, description.name),
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{results}: table1.json or provenance.json was written by a different version ({error!r}); "
            "run the workflow again"
        ) from None
    return "\n".join([*lines, "", "## Limits", "", *(f"* {limit}" for limit in _limits(description)), ""])


def _introduction(about: Description, directory: Path, software: Mapping[str, Any]) -> Iterator[str]:
    yield f"# {about.name}: {language_name(about.source)} to {language_name(about.target)}"
    yield ""
    scores = "; ".join(features(about, read_ini(directory)))
    yield (
        "Phrase-based statistical machine translation as in Cho et al. (2014), made by the workflow of rnnsmt "
        f"{software['rnnsmt']} and packed by rnnsmt {__version__}. Its scores: {scores}."
    )
    yield ""
    yield "    rnnsmt translate --system ARCHIVE_OR_DIRECTORY --input FILE"
    yield ""


def _data(config: Mapping[str, Any], files: Mapping[str, Any]) -> Iterator[str]:
    yield "## Data"
    yield ""
    if any(str(corpus["target"]).startswith("results/demo/") for corpus in config["corpora"]):
        size, seed = config["demo"]["scale"], config["seed"]
        yield f"Sentences made up by `rnnsmt demo make` (scale {size}, seed {seed}); no text of other people."
        yield ""
    yield "| corpus | use | files | SHA-256 (first 16 digits) |"
    yield "|---|---|---|---|"
    for corpus in config["corpora"]:
        paths = [path for side in ("source", "target") if (path := corpus.get(side))]
        sums = [files[path]["sha256"][:16] if path in files else "–" for path in paths]
        names = ", ".join(Path(path).name for path in paths)
        yield f"| {corpus['name']} | {ROLES.get(corpus['role'], corpus['role'])} | {names} | {', '.join(sums)} |"


def _figures(rows: list[dict[str, Any]], scores: Mapping[str, float], name: str) -> Iterator[str]:
    present = {key: title for key, title in METRICS.items() if rows[0].get(key) is not None}
    runs = rows[0]["runs"]
    yield "## Figures"
    yield ""
    spread = "mean and standard deviation" if runs > 1 else "of one tuning run, so that the variation is unknown"
    yield f"Tuning runs of the system {name}: {runs} ({spread}); this archive is one of them, chosen by its number."
    yield ""
    yield f"| set | segments | this archive, BLEU | {' | '.join(present.values())} |"
    yield "|---|---:|---:|" + "---:|" * len(present)
    for row in rows:
        cells = []
        for key in present:
            deviation = row.get(f"{key}_sd")
            cells.append(f"{row[key]:.2f}" + (f" ± {deviation:.2f}" if deviation is not None else ""))
        bleu = f"{scores[row['test_set']]:.2f}" if row["test_set"] in scores else "–"
        yield f"| {row['test_set']} | {row['segments']:,} | {bleu} | {' | '.join(cells)} |"
    yield ""
    yield "BLEU is that of multi-bleu.perl (tokenised, with case); the weights were tuned on dev. TER: lower is better."


def _limits(about: Description) -> Iterator[str]:
    yield from LIMITS
    if about.filtered:
        yield "The tables contain phrases of the dev and test sets only; most words of other text are unknown."
