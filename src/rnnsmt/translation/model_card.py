"""The model card of an archive: description of the system, data, licence, figures and limits."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rnnsmt import __version__
from rnnsmt.base.errors import InputError
from rnnsmt.base.reading import read_json
from rnnsmt.base.rendering import rendered
from rnnsmt.config.languages import language_name
from rnnsmt.evaluation.render import spread
from rnnsmt.formats.ini import MosesIni
from rnnsmt.registries import METRICS
from rnnsmt.translation.description import Description, read_ini

BLEU = {"bleu": "BLEU", "sacrebleu": "sacreBLEU"}
"""Columns of Table 1 with BLEU, and their titles."""

ROLES = {
    "bitext": "parallel text",
    "mono": "text of the language model",
    "dev": "tuning of the weights",
    "test": "test",
}
"""Use of a corpus, by its role in the configuration."""


def model_card(directory: Path, results: Path, licence: str) -> str:
    """Return the text of ``MODEL_CARD.md`` (Markdown) for the archive of a system of a finished run.

    Args:
        directory: directory of the tuned system, ``results/systems/NAME/runN``.
        results: the directory ``results`` of the run, with ``table1.json`` and ``provenance.json``.
        licence: licence of the archive, in words.
    """
    description = Description.read(directory)
    rows = [row for row in read_json(results / "table1.json")["rows"] if row["system"] == description.name]
    content = read_json(results / "provenance.json")
    cells = [cell for cell in content["cells"] if cell["system"] == description.name]
    name = f"{description.name}/{directory.resolve().name}"
    scores = {cell["test_set"]: run["bleu"] for cell in cells for run in cell["runs"] if run["run"] == name}
    if not rows or not scores:
        raise InputError(f"{results}: the run has no system {name}; use --system and --results from the same run")
    config = content["config"]
    metrics = [name for name in config.get("evaluation", {}).get("metrics", METRICS) if rows[0].get(name) is not None]
    titles = BLEU | {name: METRICS[name].label for name in metrics}
    is_demo = any(str(corpus.get("target")).startswith("results/demo/") for corpus in config["corpora"])
    return rendered(
        "rnnsmt.translation",
        "model-card.md.j2",
        about=description,
        source=language_name(description.source),
        target=language_name(description.target),
        features=features(description, read_ini(directory)),
        created_by=content["software"]["rnnsmt"],
        packed_by=__version__,
        demo_scale=config["demo"]["scale"] if is_demo else None,
        corpora=[_corpus(corpus, content["files"]) for corpus in config["corpora"]],
        licence=licence,
        runs=rows[0]["runs"],
        rows=rows,
        scores=scores,
        metrics={name: title for name, title in titles.items() if rows[0].get(name) is not None},
        lower=[METRICS[name].label for name in metrics if METRICS[name].lower_is_better],
        spread=spread,
    )


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


def _corpus(corpus: Mapping[str, Any], files: Mapping[str, Any]) -> dict[str, Any]:
    """Return the name of a corpus, its use, and the names and checksums of its files."""
    paths = [path for side in ("source", "target") if (path := corpus.get(side))]
    return {
        "name": corpus["name"],
        "use": ROLES[corpus["role"]],
        "files": [Path(path).name for path in paths],
        "sums": [files[path]["sha256"][:16] if path in files else "–" for path in paths],
    }
