"""Missing output files of jobs that an earlier run has not finished.

Snakemake deletes the existing output of a job when the job starts, and its output when it fails or is stopped. The next
run creates a missing file only if a file made from it is missing or older than its own inputs. Without further
measures, results of earlier settings would therefore remain: if a run after a change of settings is stopped while it
tunes a system, the moses.ini of the system is missing, but its translations exist, and neither would be made again.

The logger of the workflow (``snakemake_logger_plugin_rnnsmt``) records the outputs of all jobs that have started and
not finished, also those of earlier runs, in ``.snakemake/rnnsmt-unfinished.json``. The rule ``all`` requests those of
them that are missing, as far as its other inputs depend on them.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

FILE = "rnnsmt-unfinished.json"
"""File below ``.snakemake``: a JSON list of paths relative to the directory of the run."""


def missing_outputs(directory: Path) -> list[str]:
    """Return the missing outputs of jobs that were started in a directory and have not finished.

    Args:
        directory: directory of the run. If no run was recorded there, the list is empty.
    """
    with suppress(OSError, ValueError, TypeError):
        paths = json.loads((directory / ".snakemake" / FILE).read_text(encoding="utf-8"))
        return [path for path in paths if not (directory / path).exists()]
    return []


def needed_for(targets: Sequence[str], files: Iterable[str], rules: Sequence[Any]) -> list[str]:
    """Return those of some files that targets are made from, directly or indirectly.

    Temporary files are never returned: they are missing because they have been used, not because a job has failed.

    Args:
        targets: files that are requested.
        files: outputs of rules.
        rules: Snakemake's rules (``snakemake.rules.Rule``).
    """
    ahead, seen = list(targets), set(targets)
    made: set[str] = set()
    while ahead:
        path = ahead.pop()
        for rule in rules:
            if rule.is_producer(path):
                wildcards = rule.get_wildcards(path)
                # another output of the same job may be the one that is missing
                made.update(str(one) for one in rule.expand_output(wildcards)[0] if not one.flags.get("temp"))
                inputs = [str(one) for one in rule.expand_input(wildcards)[0]]
                ahead += [one for one in inputs if one not in seen]
                seen.update(inputs)
    return [path for path in files if path in made]
