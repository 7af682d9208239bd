"""Report of a run as one self-contained page: `results/report/index.html`."""

import base64
import re
import time
from collections.abc import Collection, Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from rnnsmt import __version__
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_json, read_lines
from rnnsmt.base.rendering import write_page
from rnnsmt.config.features import network_titles
from rnnsmt.corpus.training_overlap import known_warnings
from rnnsmt.evaluation.render import DIFFERENCE, EFFECTS, KIND_TITLES, sets_for_page
from rnnsmt.registries import FEATURES

DONE = re.compile(
    r"rnnsmt (?P<stage>[\w -]+): done: .*?(?P<wall>[\d.]+) s, (?P<cpu>[\d.]+) CPU s, peak (?P<peak>[\d,]+) MB"
)
"""Last line of the log of a command (stage)."""

TITLES = {
    **{f"learning-{network}": f"Learning curve, {title}" for network, title in network_titles(FEATURES).items()},
    "mert": "Tuning: BLEU on the dev set by iteration",
    "scores-rnn": "Scores of phrase pairs (Figure 3 of the paper)",
    "sentence-vectors": "Sentence vectors in two dimensions (Figure 2 of Sutskever et al.)",
    "words-zooms": "Clusters of source words (Figure 4 of the paper)",
    "phrases-zooms": "Clusters of source phrases (Figure 5 of the paper)",
}
"""Titles of the figures by file name."""

MAPS = {"words": "Source words (Figure 4 of the paper)", "phrases": "Source phrases (Figure 5 of the paper)"}
"""Titles of the embedding maps by file name."""


class Cost(NamedTuple):
    """Resources used by one job, or by all jobs of a command.

    Attributes:
        name: name of the job's log, or of the command.
        jobs: number of jobs.
        wall, cpu: sums of wall-clock and CPU seconds.
        peak: maximum memory in MB.
    """

    name: str
    jobs: int
    wall: float
    cpu: float
    peak: float


def costs(logs: Path, jobs: Collection[str] = ()) -> tuple[list[Cost], list[Cost]]:
    """Return the resources of every command and of every job, from the last lines of the logs, by descending CPU time.

    Unfinished jobs are omitted.

    Args:
        logs: directory of the logs.
        jobs: names of the logs to read, below the directory and without suffix; by default, all.
    """
    stages: dict[str, Cost] = {}
    ended_jobs = []
    for path in sorted(logs.glob("**/*.log")):
        name = str(path.relative_to(logs).with_suffix(""))
        if jobs and name not in jobs:
            continue
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        ended = DONE.match(lines[-1]) if lines else None
        if ended is not None:
            wall, cpu, peak = (float(ended[name].replace(",", "")) for name in ("wall", "cpu", "peak"))
            ended_jobs.append(Cost(name, 1, wall, cpu, peak))
            stage = stages.get(ended["stage"], Cost(ended["stage"], 0, 0.0, 0.0, 0.0))
            stages[stage.name] = Cost(
                stage.name, stage.jobs + 1, stage.wall + wall, stage.cpu + cpu, max(stage.peak, peak)
            )
    by_stage, by_job = (sorted(every, key=lambda cost: -cost.cpu) for every in (stages.values(), ended_jobs))
    return by_stage, by_job


ROLES = {"bitext": "Parallel text", "mono": "text for the language models only", "dev": "dev", "test": "test"}
"""Roles of corpora in words."""


def heading(config: Mapping[str, Any], created: float) -> tuple[str, str]:
    """Return the title of the page, and a line with the date and the corpora by role.

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


WIDE = 576.0
"""Minimum width in points of a figure that is shown on a separate line of the page."""


def picture_of(path: StrPath) -> dict[str, Any]:
    """Return name, title and data URL of an SVG figure, for embedding in a page, and whether it is wide."""
    text = "\n".join(read_lines(path))
    name = Path(path).stem
    content = base64.b64encode(text.encode("utf-8")).decode("ascii")
    title = TITLES.get(name) or name.replace("bleu-curves-", "BLEU by sentence length and word frequency rank, ")
    title = title.replace("learning-lstm", "Learning curve, LSTM").replace("learning-", "Learning curve, ")
    size = re.search(r'<svg[^>]* viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ', text)
    is_wide = size is not None and float(size[1]) > WIDE
    return {"name": name, "title": title, "address": f"data:image/svg+xml;base64,{content}", "is_wide": is_wide}


def provenance_of(content: Mapping[str, Any], test_sets: Collection[str]) -> dict[str, Any]:
    """Return, by ``SYSTEM/TEST SET``, the provenance of the scores on these sets: all runs with seeds and hashes."""
    files, runs = content["files"], content["runs"]

    def hashed(path: str) -> list[str]:
        return [path, str(files.get(path, {}).get("sha256") or "")]

    cells: dict[str, Any] = {}
    for cell in (cell for cell in content["cells"] if cell["test_set"] in test_sets):
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


def embedding_map(path: StrPath) -> dict[str, Any]:
    """Return a map with its name and title; Moses' entities in its labels are replaced by characters."""
    content, name = read_json(path), Path(path).stem
    return {"name": name, "title": MAPS.get(name, name), **content, "labels": [*map(unescape, content["labels"])]}


def write_report(
    output: StrPath,
    *,
    table: StrPath,
    provenance: StrPath,
    figures: Sequence[StrPath],
    maps: Sequence[StrPath],
    comparisons: Sequence[StrPath],
    examples: StrPath | None,
    overlap: StrPath | None,
    logs: StrPath,
    jobs: Collection[str],
) -> dict[str, object]:
    """Write the page; return the figures for the last line of the log.

    Args:
        table, provenance: JSON files of `evaluation table` and `evaluation provenance`.
        figures: SVG files.
        maps: JSON files of `analysis embeddings`.
        comparisons: JSON files of `evaluation compare`.
        examples: JSON file of `analysis phrase-examples`.
        overlap: JSON file of `corpus overlap`.
        logs, jobs: directory of the logs of the jobs, and the names of those to read (``costs``).
    """
    scores, origins = read_json(table), read_json(provenance)
    config = origins["config"] or {}  # `evaluation provenance` without --config writes null
    title, corpora = heading(config, Path(table).stat().st_mtime)
    dev = {"dev", *(corpus["name"] for corpus in config.get("corpora", ()) if corpus["role"] == "dev")}
    shown = sets_for_page(scores["rows"], scores["contrasts"], dev)
    compared = [{"set": Path(path).stem, **read_json(path)} for path in comparisons]
    pictures = [picture_of(path) for path in figures]
    drawn = [embedding_map(path) for path in maps]
    stages, ended_jobs = costs(Path(logs), set(jobs))
    size = write_page(
        output,
        "rnnsmt.analysis",
        "report.html.j2",
        title=title,
        languages=config.get("languages"),
        corpora=corpora,
        known=[] if overlap is None else list(known_warnings(read_json(overlap))),
        test_sets=shown,
        runs=max(row["runs"] for row in scores["rows"]),
        trainings=max(row["trainings"] for row in scores["rows"]),
        difference=DIFFERENCE,
        effects_heading=EFFECTS,
        kind_titles=KIND_TITLES,
        pictures=pictures,
        maps=drawn,
        comparisons=[one for one in compared if one["first run"]["changed"]],
        unchanged=[one for one in compared if not one["first run"]["changed"]],
        examples=None if examples is None else read_json(examples),
        provenance=provenance_of(origins, {one["name"] for one in shown}),
        stages=stages,
        jobs=ended_jobs,
        cpu_hours=sum(job.cpu for job in ended_jobs) / 3600,
        software=origins["software"],
        config=yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=110),
        version=__version__,
    )
    return {"figures": len(pictures) + len(drawn), "comparisons": len(compared), "bytes": size}
