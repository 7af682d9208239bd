"""`rnnsmt status` for runs that are running, finished, failed or killed, and for directories without a run."""

import fcntl
import json
import time
from pathlib import Path

import pytest

from rnnsmt.cli import main
from rnnsmt.monitoring.runs import FILE, clock


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Create a run that began 100 seconds ago, with 3 of 7 jobs done and one running job with a log of two lines."""
    (tmp_path / ".snakemake/rnnsmt-runs").mkdir(parents=True)
    (tmp_path / "results/logs").mkdir(parents=True)
    (tmp_path / "results/logs/train.log").write_text(
        "begins\nupdate 5 of 10 (50 %), 1,000 pairs/s, at most 90 s left\n"
    )
    change(tmp_path)
    return tmp_path


def change(directory: Path, **changes: object) -> None:
    """Write the status file of the run with some values changed."""
    now = time.time()
    job = {"name": "rnn_train network=1", "logs": ["results/logs/train.log"], "started": now - 60}
    note = {
        "started": now - 100, "seen": now - 30, "ended": False, "total": 7, "done": 3, "left": 120.0, "running": [job],
        "failed": [],
    }  # fmt: skip
    (directory / FILE).write_text(json.dumps(note | changes))


def said(directory: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert main(["status", "--directory", str(directory)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def test_a_run_in_progress(directory, capsys):
    with (directory / ".snakemake/rnnsmt-runs/host.1.json").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        lines = said(directory, capsys)
    assert lines[0].startswith("running: 3 of 7 jobs done, 1 min 40 s since ")
    assert lines[0].endswith(", about 2 min 00 s left")
    assert lines[1] == "  running: rnn_train network=1 for 1 min 00 s"
    assert lines[2] == "    update 5 of 10 (50 %), 1,000 pairs/s, at most 90 s left"
    assert len(lines) == 3


def test_a_run_that_was_killed(directory, capsys):
    (directory / ".snakemake/rnnsmt-runs/host.1.json").write_text("{}")  # the lock of this run is free
    lines = said(directory, capsys)
    assert lines[0].startswith("ended early: 3 of 7 jobs done, 1 min 10 s since ")
    assert "left" not in lines[0]
    assert lines[1] == "  was running: rnn_train network=1"
    assert lines[-1] == "  to resume, run the same command again"


def test_a_run_that_failed(directory, capsys):
    failed = [["extract failed; its log: x.log", "rnnsmt phrases extract: error: a.en, line 3: ..."]]
    change(directory, ended=True, running=[], failed=failed)
    lines = said(directory, capsys)
    assert lines[0].startswith("failed: 3 of 7 jobs done")
    assert lines[1:3] == [f"  {line}" for line in failed[0]]
    assert lines[-1] == "  to resume, run the same command again"


def test_a_run_that_has_finished(directory, capsys):
    change(directory, ended=True, running=[], done=7)
    (directory / "results/table1.md").write_text("# Table 1\n")
    lines = said(directory, capsys)
    assert lines[0].startswith("finished: 7 of 7 jobs done, 1 min 10 s since ")
    assert lines[1].endswith(f"{directory}/results/table1.md")
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("place", "message"), [("none", "no such directory"), (".", "no workflow run found in this directory")]
)
def test_directories_without_a_run(tmp_path, capsys, place, message):
    assert main(["status", "--directory", str(tmp_path / place)]) == 2
    assert message in capsys.readouterr().err


def test_a_log_that_is_not_there_or_strange(directory, capsys):
    (directory / "results/logs/train.log").write_bytes(b"\xff" * 100_000 + b"\rlast\r\n\n")
    assert said(directory, capsys)[2] == "    last"
    (directory / "results/logs/train.log").unlink()
    assert len(said(directory, capsys)) == 3


def test_the_output_of_other_programs_is_not_progress(directory, capsys):
    """Moses output (the second log of a job) is not printed, even if the first log is empty."""
    first, second = (directory / f"results/logs/moses.{name}" for name in ("log", "programs.log"))
    second.write_text("$ /opt/moses/bin/moses -f moses.ini\nLine 7: Collecting options took 0.002 seconds\n")
    job = {"name": "moses_tune system=rnn", "started": time.time()}
    change(directory, running=[job | {"logs": [f"results/logs/{path.name}" for path in (first, second)]}])
    assert said(directory, capsys)[1:-1] == ["  was running: moses_tune system=rnn"]
    first.write_text("seed 1\n")
    assert said(directory, capsys)[2] == "    seed 1"
    change(directory, running=[job | {"logs": []}])
    assert said(directory, capsys)[1:-1] == ["  was running: moses_tune system=rnn"]


def test_durations():
    assert [clock(seconds) for seconds in (0, 59.9, 61, 3600, -1)] == ["0 s", "59 s", "1 min 01 s", "1 h 00 min", "0 s"]
