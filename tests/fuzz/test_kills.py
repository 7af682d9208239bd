"""Functions of ``python -m tests.fuzz.kills``; the command itself runs the workflow for tens of minutes."""

import base64
import json
import random
import subprocess
import sys
import time
from pathlib import Path

from .kills import Job, Kills, Session, differences, jobs_of


def made(run: Path, **files: str) -> Path:
    """Create the directory of a run with these results."""
    for name, text in files.items():
        path = run / "results" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return run


def test_every_difference_is_named(tmp_path: Path) -> None:
    reference = made(tmp_path / "a", equal="1", changed="1", lost="1", logs__stage="1 s")
    run = made(tmp_path / "b", equal="1", changed="2", logs__stage="2 s")
    (run / "results/.tmp-1").write_text("half")
    assert differences(run, reference) == [
        "results/lost: missing",
        "results/.tmp-1: left over",
        "results/changed: other bytes",
    ]
    assert differences(reference, reference) == []


def test_all_processes_of_a_session_are_found_and_killed(tmp_path: Path) -> None:
    """All processes of a session are found and killed: its leader, a stage that writes its log, and their children."""
    log = tmp_path / "results/logs/stage.log"
    log.parent.mkdir(parents=True)
    child = f"{sys.executable} -c 'import time; time.sleep(60)'"
    command = f"({child} & {child}) > {log} & sleep 60"
    session = Session(subprocess.Popen(["bash", "-c", command], start_new_session=True), tmp_path)
    until = time.monotonic() + 30
    while len(session.members()) < 4 and time.monotonic() < until:
        time.sleep(0.05)
    assert session.jobs() == {"results/logs/stage.log"}
    assert session.kill() == {"results/logs/stage.log"}
    assert session.members() == []
    assert session.process.returncode is not None


def test_rules_that_were_not_hit_come_first() -> None:
    jobs = {"a.log": Job("a", 10), "b.log": Job("b", 10), "b2.log": Job("b", 10)}
    kills = Kills(jobs, 2, {"a", "b"}, random.Random(1))
    kills.records.append({"running": ["b.log"]})
    assert kills.not_hit() == ["a"]
    assert kills.delay("b2.log", 2, "") is None, "the last kill is for rule a"
    waits = [kills.delay("a.log", 2, "") for _ in range(50)]
    assert all(wait is not None and 0 <= wait < 10 for wait in waits)
    assert len(set(waits)) == 50
    assert kills.aim() == "a.log"
    assert not kills.enough()
    kills.records.append({"running": ["a.log", "b.log"]})
    assert kills.enough()
    assert kills.hits() == {"a": 1, "b": 2}
    assert kills.delay("a.log", 2, "") is None, "enough"


def test_every_job_with_a_checkpoint_counts() -> None:
    jobs = {f"results/logs/tuning/mert.{name}.log": Job("mert", 10) for name in ("baseline", "cslm_nnjm")}
    kills = Kills(jobs, 1, set(), random.Random(1))
    kills.needed = {kills.part(log) for log in jobs}
    kills.records.append({"running": ["results/logs/tuning/mert.baseline.log"]})
    assert kills.not_hit() == ["mert tuning/mert.cslm_nnjm"]
    assert kills.aim() == "results/logs/tuning/mert.cslm_nnjm.log"
    assert kills.delay("results/logs/tuning/mert.baseline.log", 0, kills.aim()) is None


def test_jobs_of_a_run_by_their_logs(tmp_path: Path) -> None:
    """Jobs are read from Snakemake's metadata, which splits long file names into directories."""
    for number, output in enumerate(("results/" + "x" * 300, "results/y")):
        name = base64.urlsafe_b64encode(output.encode()).decode()
        parts = [name[place : place + 250] for place in range(0, len(name), 250)]
        path = tmp_path.joinpath(".snakemake/metadata", *(f"@{part}" for part in parts[:-1]), parts[-1])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"rule": "r", "log": [f"{number}.log"], "starttime": 1.0, "endtime": 3.5}))
    found = jobs_of(tmp_path)
    assert found["0.log"] == Job("r", 2.5, ["results/" + "x" * 300])
    assert found["1.log"].outputs == ["results/y"]
