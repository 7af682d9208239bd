"""Report of a run as one self-contained page: `results/report/index.html`."""

import base64
import re
import time
from collections.abc import Mapping, Sequence
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from rnnsmt import __version__
from rnnsmt.base.io import InputError, read_json, read_lines
from rnnsmt.base.rendering import write_page
from rnnsmt.config.features import REGISTRY
from rnnsmt.corpus.overlap import known_warnings
from rnnsmt.evaluation.render import EFFECTS, KIND_TITLES, dot_plot, effects, highest
from rnnsmt.evaluation.text_metrics import METRICS

TEMPLATE = "report.html.j2"

DONE = re.compile(
    r"rnnsmt (?P<stage>[\w -]+): done: .*?(?P<wall>[\d.]+) s, (?P<cpu>[\d.]+) CPU s, peak (?P<peak>[\d,]+) MB"
)
"""Last line of a stage's log."""

TITLES = {
    **{f"learning-{feature.network}": f"Learning curve, {feature.title}" for feature in REGISTRY if feature.title},
    "mert": "Tuning: BLEU on the development set by iteration",
    "scores-rnn": "Scores of phrase pairs (Figure 3 of the paper)",
    "sentence-vectors": "Sentence vectors in two dimensions (Figure 2 of Sutskever et al.)",
    "words-zooms": "Clusters of source words (Figure 4 of the paper)",
    "phrases-zooms": "Clusters of source phrases (Figure 5 of the paper)",
}
"""Titles of the figures by file name."""

MAPS = {"words": "Source words (Figure 4 of the paper)", "phrases": "Source phrases (Figure 5 of the paper)"}
"""Titles of the embedding maps by file name."""


class Cost(NamedTuple):
    """Resources of one job, by the name of its log, or of all jobs of a stage.

    Attributes:
        name: log or stage.
        wall, cpu: sums of wall-clock and CPU seconds.
        peak: maximum memory in MB.
    """

    name: str
    jobs: int
    wall: float
    cpu: float
    peak: float


def costs(logs: Path) -> tuple[list[Cost], list[Cost]]:
    """Return the resources of every stage and of every job from the last lines of the logs, by descending CPU time.

    Unfinished jobs are omitted.
    """
    stages: dict[str, Cost] = {}
    jobs = []
    for path in sorted(logs.glob("**/*.log")):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        ended = DONE.match(lines[-1]) if lines else None
        if ended is not None:
            wall, cpu, peak = (float(ended[name].replace(",", "")) for name in ("wall", "cpu", "peak"))
            jobs.append(Cost(str(path.relative_to(logs).with_suffix("")), 1, wall, cpu, peak))
            stage = stages.get(ended["stage"], Cost(ended["stage"], 0, 0.0, 0.0, 0.0))
            stages[stage.name] = Cost(
                stage.name, stage.jobs + 1, stage.wall + wall, stage.cpu + cpu, max(stage.peak, peak)
            )
    by_stage, by_job = (sorted(every, key=lambda cost: -cost.cpu) for every in (stages.values(), jobs))
    return by_stage, by_job


ROLES = {"bitext": "Parallel text", "mono": "text for the language models only", "dev": "dev", "test": "test"}
"""Roles of corpora in words."""


def heading(config: Mapping[str, Any], created: float) -> tuple[str, str]:
    """Return the title of the page and a line with the corpora by role, and the date.

    Args:
        config: configuration of the run; missing settings are omitted.
        created: time of the table, in seconds since 1970.
    """
    languages = config.get("languages")
    title = f"Report: {languages['source']} → {languages['target']}" if languages else "Report"
    names: dict[str, list[str]] = {}
    for corpus in config.get("corpora", ()):
        names.setdefault(ROLES[corpus["role"]], []).append(corpus["name"])
    parts = [f"{role}: {', '.join(names[role])}" for role in ROLES.values() if role in names]
    return title, "; ".join([*parts, time.strftime("%Y-%m-%d %H:%M", time.localtime(created))])


def summary_of(content: Mapping[str, Any], config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the summary of every test set: the system with the highest BLEU, the contrasts, and a plot of all runs.

    Dev sets, on which the weights were tuned, are omitted unless there are no other sets.

    Args:
        content: JSON file of ``evaluation table``.
    """
    dev = {"dev", *(corpus["name"] for corpus in config.get("corpora", ()) if corpus["role"] == "dev")}
    sets: dict[str, list[Mapping[str, Any]]] = {}
    for row in content["rows"]:
        sets.setdefault(row["test_set"], []).append(row)
    return [
        {
            "name": name,
            "highest": highest(rows),
            "effects": effects([contrast for contrast in content.get("contrasts", []) if contrast["test_set"] == name]),
            "plot": dot_plot(name, [(row["label"], row["bleu_runs"]) for row in rows])
            if find_spec("matplotlib")
            else "",
        }
        for name, rows in sets.items()
        if name not in dev or not sets.keys() - dev
    ]


WIDE = 576.0
"""Minimum width in points of a figure that is shown on a separate line of the page."""


def picture_of(path: str) -> dict[str, Any]:
    """Return name, title and data URL of an SVG figure, for embedding in a page, and whether it is wide."""
    text = "\n".join(read_lines(path))
    if "<svg" not in text:
        raise InputError(f"{path}: not an SVG file; create it again")
    name = Path(path).stem
    content = base64.b64encode(text.encode("utf-8")).decode("ascii")
    title = TITLES.get(name) or name.replace("bleu-curves-", "BLEU by sentence length and word frequency rank, ")
    title = title.replace("learning-lstm", "Learning curve, LSTM").replace("learning-", "Learning curve, ")
    size = re.search(r'<svg[^>]* viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ', text)
    is_wide = size is not None and float(size[1]) > WIDE
    return {"name": name, "title": title, "address": f"data:image/svg+xml;base64,{content}", "is_wide": is_wide}


def provenance_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenance of each cell of the table: by ``system/test set``, its runs with seeds and hashes."""
    files, runs = content["files"], content["runs"]

    def hashed(path: str) -> list[str]:
        return [path, str(files.get(path, {}).get("sha256") or "")]

    cells: dict[str, Any] = {}
    for cell in content["cells"]:
        members = []
        for run in cell["runs"]:
            tuned = runs.get(run["run"]) or {"seed": None, "averaged": None, "weights": {}, "model": {}}
            members.append(
                {
                    "run": run["run"],
                    "bleu": run["bleu"],
                    "sacrebleu": run["sacrebleu"],
                    "seed": tuned.get("seed"),
                    "averaged": tuned.get("averaged"),
                    "weights": {name: [round(w, 5) for w in ws] for name, ws in tuned["weights"].items()},
                    "files": [hashed(run[kind]) for kind in ("output", "score") if run.get(kind)]
                    + [hashed(path) for path in tuned["model"].values()],
                }
            )
        cells[f"{cell['system']}/{cell['test_set']}"] = members
    return cells


def table_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return Table 1 for the template: a row per system, and columns for every test set.

    Columns without values are omitted: the flags ``differences``, ``intervals`` and ``paper`` are true if there are
    values.
    """
    rows = content["rows"]
    sets = list(dict.fromkeys(row["test_set"] for row in rows))
    systems = list(dict.fromkeys(row["system"] for row in rows))
    cells = {(row["system"], row["test_set"]): row for row in rows}
    contrasts = content.get("contrasts", [])
    runs = max(row["runs"] for row in rows)
    columns = [
        {
            "name": name,
            "segments": cells[systems[0], name]["segments"],
            "differences": any(cells[system, name]["diff_baseline"] is not None for system in systems),
            "paper": any(cells[system, name].get("paper_bleu") for system in systems),
        }
        for name in sets
    ]
    return {
        "sets": columns,
        "systems": [
            {"name": system, "label": cells[system, sets[0]]["label"], "cells": [cells[system, name] for name in sets]}
            for system in systems
        ],
        "contrasts": [
            contrast | {"label": cells[contrast["system"], contrast["test_set"]]["label"]} for contrast in contrasts
        ],
        "contrast_columns": {
            "intervals": runs > 1 and any(contrast["low"] is not None for contrast in contrasts),
            "detectable": runs > 1 and any(contrast["detectable"] is not None for contrast in contrasts),
            "paper": any(contrast.get("paper_difference") is not None for contrast in contrasts),
        },
        "metrics": _other_metrics(rows),
        "runs": runs,
        "trainings": max(row["trainings"] for row in rows),
        "differences": any(column["differences"] for column in columns),
        "paper": any(column["paper"] for column in columns),
    }


def _other_metrics(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the table of chrF, chrF++ and TER with differences to the baseline; None if no system has them."""
    names = [name for name in METRICS if any(row.get(name) is not None for row in rows)]
    if not names:
        return None
    keys = {"score": "", "sd": "_sd", "difference": "_diff_baseline", "low": "_low_baseline",
            "high": "_high_baseline", "p_strict": "_p_strict_baseline"}  # fmt: skip
    return {
        "columns": [
            {
                "name": METRICS[name].label,
                "differences": any(row.get(f"{name}_diff_baseline") is not None for row in rows),
                "intervals": any(row.get(f"{name}_low_baseline") is not None for row in rows),
            }
            for name in names
        ],
        "rows": [
            {
                "test_set": row["test_set"],
                "label": row["label"],
                "cells": [{key: row.get(name + end) for key, end in keys.items()} for name in names],
            }
            for row in rows
        ],
    }


def _embedding_map(path: str) -> dict[str, Any]:
    """Return a map with its name and title; Moses' entities in its labels are replaced by characters."""
    content, name = read_json(path), Path(path).stem
    try:
        labels = [unescape(label) for label, _ in zip(content["labels"], content["points"], strict=True)]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"{path}: not the output of `analysis embeddings --output-json`") from None
    return {"name": name, "title": MAPS.get(name, name), **content, "labels": labels}


def _known_sentences(path: str) -> list[str]:
    """Return a sentence for every dev and test set with many sentences that also occur in the training text."""
    try:
        return list(known_warnings(read_json(path)))
    except (AttributeError, KeyError, TypeError):
        raise InputError(f"{path}: not the output of `corpus overlap`") from None


def write_report(
    output: str | Path,
    *,
    table: str,
    provenance: str,
    figures: Sequence[str],
    maps: Sequence[str],
    comparisons: Sequence[str],
    examples: str | None,
    overlap: str | None,
    logs: str,
) -> dict[str, object]:
    """Write the page; return the figures of the stage.

    Args:
        table, provenance: JSON files of `evaluation table` and `evaluation provenance`.
        figures: SVG files.
        maps: JSON files of `analysis embeddings`.
        comparisons: JSON files of `evaluation compare`.
        examples: JSON file of `analysis phrase-examples`.
        overlap: JSON file of `corpus overlap`.
        logs: directory of the logs of the stages.
    """
    scores, origins = read_json(table), read_json(provenance)
    try:
        config = origins["config"] or {}  # `evaluation provenance` without --config writes null
        title, corpora = heading(config, Path(table).stat().st_mtime)
        results: dict[str, Any] = {
            "title": title,
            "languages": config.get("languages"),
            "corpora": corpora,
            "summary": summary_of(scores, config),
            "table": table_of(scores),
            "provenance": provenance_of(origins),
            "software": origins["software"],
            "config": yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=110),
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{table} or {provenance} was written by another command or a different version ({error!r}); "
            "create them again"
        ) from None
    compared = [{"set": Path(path).stem, **read_json(path)} for path in comparisons]
    pictures = [picture_of(path) for path in figures]
    drawn = [_embedding_map(path) for path in maps]
    known = [] if overlap is None else _known_sentences(overlap)
    stages, jobs = costs(Path(logs))
    size = write_page(
        output,
        "rnnsmt.analysis",
        TEMPLATE,
        **results,
        effects_heading=EFFECTS,
        kind_titles=KIND_TITLES,
        pictures=pictures,
        maps=drawn,
        comparisons=compared,
        examples=None if examples is None else read_json(examples),
        known=known,
        stages=stages,
        jobs=jobs,
        cpu_hours=sum(job.cpu for job in jobs) / 3600,
        version=__version__,
    )
    return {"figures": len(pictures) + len(drawn), "comparisons": len(compared), "bytes": size}
