"""The model card of an archive: description of the system, data, licence, figures and limits."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rnnsmt import __version__
from rnnsmt.base.io import InputError, read_json
from rnnsmt.evaluation.text_metrics import METRICS as TEXT_METRICS
from rnnsmt.moses.ini import MosesIni
from rnnsmt.plan.corpora import language_name
from rnnsmt.translation.system import Description, read_ini

ROLES = {
    "bitext": "parallel text",
    "mono": "text of the language model",
    "dev": "tuning of the weights",
    "test": "test",
}
"""Use of a corpus, by its role in the configuration."""

METRICS = {"bleu": "BLEU", "sacrebleu": "sacreBLEU"} | {name: metric.label for name, metric in TEXT_METRICS.items()}
"""Column of Table 1 and name of every metric."""

LIMITS = (
    "Segments are translated one by one, without the context of other sentences.",
    "Words that do not occur in the parallel text are copied.",
    "Quality was not measured on text of other domains than the test sets. Translations can be fluent but wrong; check "
    "them before use where errors can cause harm.",
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


def features(about: Description, ini: MosesIni) -> list[str]:
    """Return descriptions of the features of a system."""
    names = []
    for feature in ini.features:
        if feature.kind == "PhraseDictionaryMemory":
            columns = f" and {', '.join(about.columns)}" if about.columns else ""
            names.append(f"phrase table with translation probabilities{columns}")
        elif feature.kind == "LexicalReordering":
            names.append("lexicalised reordering")
        elif feature.is_lm:
            order = feature.options.get("order")
            names.append(f"{order}-gram language model" if order else "n-gram language model")
        elif feature.kind == "CSLM":
            names.append("continuous-space language model, queried in the search")
        elif feature.kind == "NNJM":
            names.append("neural network joint model, queried in the search")
    return names


def _introduction(about: Description, directory: Path, software: Mapping[str, Any]) -> Iterator[str]:
    yield f"# {about.name}: {language_name(about.source)} to {language_name(about.target)}"
    yield ""
    scores = "; ".join(features(about, read_ini(directory)))
    yield (
        "Phrase-based statistical machine translation as in Cho et al. (2014), created by the workflow of rnnsmt "
        f"{software['rnnsmt']} and packed by rnnsmt {__version__}. Its features: {scores}."
    )
    yield ""
    yield "    rnnsmt translate --system ARCHIVE_OR_DIRECTORY --input FILE"
    yield ""


def _data(config: Mapping[str, Any], files: Mapping[str, Any]) -> Iterator[str]:
    yield "## Data"
    yield ""
    if any(str(corpus["target"]).startswith("results/demo/") for corpus in config["corpora"]):
        scale = config["demo"]["scale"]
        yield f"Sentences of `rnnsmt demo make --scale {scale}`, generated by a grammar, without third-party text."
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
    yield "## Scores"
    yield ""
    spread = "mean and standard deviation" if runs > 1 else "of one tuning run, so that the variation is unknown"
    yield f"Tuning runs of the system {name}: {runs} ({spread}); this archive is one of them, selected by its number."
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
    yield "BLEU: multi-bleu.perl (tokenised, case-sensitive); the weights were tuned on dev. TER: lower is better."


def _limits(about: Description) -> Iterator[str]:
    yield from LIMITS
    if about.filtered:
        yield "The tables contain phrases of the dev and test sets only; most words of other text are unknown."
