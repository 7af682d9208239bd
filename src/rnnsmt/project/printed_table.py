"""Lines that a run prints at its beginning (what it will do) and at its end (tables, warnings and paths)."""

from collections.abc import Iterator
from pathlib import Path

from rnnsmt.base.reading import read_json
from rnnsmt.config.sections import Config
from rnnsmt.evaluation.render import by_set, padded, size, table_for_readers
from rnnsmt.plan.derived import is_small
from rnnsmt.plan.paths import Texts
from rnnsmt.plan.systems import Systems

MOST_ROWS = 12
"""Maximum number of rows of a table, so that all lines fit on a terminal."""

MOST_WARNINGS = 3
"""Maximum number of warnings of the jobs."""


def planned(config: Config, texts: Texts, systems: Systems) -> Iterator[str]:
    """Yield lines about what a run will do: corpora, systems and networks.

    Args:
        config: checked configuration, to which ``texts`` and ``systems`` belong.
    """
    roles = {"training": texts.bitext, "language models only": texts.mono, "dev": texts.dev, "test": texts.test}
    names = "; ".join(f"{role}: {', '.join(corpora)}" for role, corpora in roles.items() if corpora)
    yield f"{texts.source} to {texts.target}; {names}"
    tuning = f"{len(systems.runs)} tuning run(s) of {config.tuning.optimizer.upper()} each"
    yield f"{len(config.compare)} systems: {', '.join(config.compare)}; {tuning}"
    networks = [f"{name} (preset {systems.preset(name)})" for name in systems.networks]
    if networks:
        yield f"networks: {', '.join(networks)}; {len(systems.trainings)} training run(s) each"
    small = is_small(config)
    yield f"auto settings: for {'a run in minutes' if small else 'your own corpora'} (rnnsmt project settings)"


def printed_table(table: Path, report: Path, logs: Path, since: float = 0.0) -> Iterator[str]:
    """Yield lines with the tables of dev and of the first test set, warnings of the jobs, and the paths of the results.

    Args:
        table: JSON file of ``evaluation table``.
        report: page of ``analysis report``.
        logs: directory of the logs of the jobs.
        since: start of the run, in seconds since 1970; logs of earlier runs are not read.
    """
    sets = by_set(read_json(table)["rows"])
    printed = [name for name in sets if name == "dev"] + [name for name in sets if name != "dev"][:1]
    for name in printed:
        yield f"{name}: {size(sets[name])}"
        for cells in padded(table_for_readers(sets[name][:MOST_ROWS])):
            yield f"  {'  '.join(cells)}"
    if len(sets) > len(printed) or any(len(sets[name]) > MOST_ROWS for name in printed):
        yield f"  further rows: {table.with_suffix('.md')}"
    written = [path for path in sorted(logs.glob("**/*.log")) if path.stat().st_mtime > since]
    warned = [(path, line) for path in written for line in _warnings(path)]
    yield from (f"{path}: {line}"[:200] for path, line in warned[:MOST_WARNINGS])
    if len(warned) > MOST_WARNINGS:
        yield f"{len(warned) - MOST_WARNINGS} further warnings: grep -r warning: {logs}"
    yield f"table: {table.with_suffix('.md')}, report: {report}"


def _warnings(log: Path) -> list[str]:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if line.startswith("warning: ")]
