"""`rnnsmt status`: a run that goes on, has finished, has failed, was killed; and folders without one."""

import fcntl
import json
import time
from pathlib import Path

import pytest

from rnnsmt.cli import main
from rnnsmt.monitoring.runs import FILE, clock


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a run that began 100 seconds ago: 3 of 7 jobs are done, one runs, whose log has two lines."""
    (tmp_path / ".snakemake/rnnsmt-runs").mkdir(parents=True)
    (tmp_path / "results/logs").mkdir(parents=True)
    (tmp_path / "results/logs/train.log").write_text(
        "begins\nupdate 5 of 10 (50 %), 1,000 pairs/s, at most 90 s left\n"
    )
    change(tmp_path)
    return tmp_path


def change(folder: Path, **changes: object) -> None:
    """Write the note of the run, some of it otherwise."""
    now = time.time()
    job = {"name": "rnn_train network=1", "logs": ["results/logs/train.log"], "started": now - 60}
    note = {
        "started": now - 100, "seen": now - 30, "ended": False, "total": 7, "done": 3, "left": 120.0, "running": [job],
        "failed": [],
    }  # fmt: skip
    (folder / FILE).write_text(json.dumps(note | changes))


def said(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert main(["status", "--directory", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def test_a_run_that_goes_on(folder, capsys):
    with (folder / ".snakemake/rnnsmt-runs/host.1.json").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        lines = said(folder, capsys)
    assert lines[0].startswith("running: 3 of 7 jobs done, 1 min 40 s since ")
    assert lines[0].endswith(", about 2 min 00 s left")
    assert lines[1] == "  running: rnn_train network=1 for 1 min 00 s"
    assert lines[2] == "    update 5 of 10 (50 %), 1,000 pairs/s, at most 90 s left"
    assert len(lines) == 3


def test_a_run_that_was_killed(folder, capsys):
    (folder / ".snakemake/rnnsmt-runs/host.1.json").write_text("{}")  # nobody holds its lock
    lines = said(folder, capsys)
    assert lines[0].startswith("ended early: 3 of 7 jobs done, 1 min 10 s since ")
    assert "left" not in lines[0]
    assert lines[1] == "  was running: rnn_train network=1"
    assert lines[-1] == "  to resume, run the same command again"


def test_a_run_that_failed(folder, capsys):
    failed = [["extract failed; its log: x.log", "rnnsmt phrases extract: error: a.en, line 3: ..."]]
    change(folder, ended=True, running=[], failed=failed)
    lines = said(folder, capsys)
    assert lines[0].startswith("failed: 3 of 7 jobs done")
    assert lines[1:3] == [f"  {line}" for line in failed[0]]
    assert lines[-1] == "  to resume, run the same command again"


def test_a_run_that_has_finished(folder, capsys):
    change(folder, ended=True, running=[], done=7)
    (folder / "results/table1.md").write_text("# Table 1\n")
    lines = said(folder, capsys)
    assert lines[0].startswith("finished: 7 of 7 jobs done, 1 min 10 s since ")
    assert lines[1].endswith(f"{folder}/results/table1.md")
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("place", "message"), [("none", "no such directory"), (".", "no workflow run found in this directory")]
)
def test_folders_without_a_run(tmp_path, capsys, place, message):
    assert main(["status", "--directory", str(tmp_path / place)]) == 2
    assert message in capsys.readouterr().err


def test_a_log_that_is_not_there_or_strange(folder, capsys):
    (folder / "results/logs/train.log").write_bytes(b"\xff" * 100_000 + b"\rlast\r\n\n")
    assert said(folder, capsys)[2] == "    last"
    (folder / "results/logs/train.log").unlink()
    assert len(said(folder, capsys)) == 3


def test_durations():
    assert [clock(seconds) for seconds in (0, 59.9, 61, 3600, -1)] == ["0 s", "59 s", "1 min 01 s", "1 h 00 min", "0 s"]
