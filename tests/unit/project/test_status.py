"""`rnnsmt status`: progress and running jobs, from the logs of Snakemake and of the jobs."""

from pathlib import Path

import pytest

import rnnsmt
from rnnsmt.cli import main

LOG = """\
Job stats:
job          count
---------  -------
total            3

localrule demo:
    output: results/demo/dev.en
    log: results/logs/corpus/demo.log
    jobid: 2
    resources: tmpdir=/tmp
Finished jobid: 2 (Rule: demo)
1 of 3 steps (33%) done
rule mert:
    log: results/logs/tuning/mert.rnn.log, results/logs/tuning/programs.log
    jobid: 1
    wildcards: system=rnn
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Create a run with one of three jobs done and one running, whose log has a progress bar."""
    for name, text in (("log/1.snakemake.log", LOG), ("locks/0.lock", "")):
        (tmp_path / ".snakemake" / name).parent.mkdir(parents=True)
        (tmp_path / ".snakemake" / name).write_text(text)
    (tmp_path / "results/logs/tuning").mkdir(parents=True)
    (tmp_path / "results/logs/tuning/mert.rnn.log").write_text("run 1\niteration 1\riteration 2\r\n\n")
    return tmp_path


def said(directory: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert main(["status", "--directory", str(directory)]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_run_in_progress(directory, capsys):
    first, *jobs = said(directory, capsys)
    assert first.startswith("running (or killed") and first.endswith(": 1 of 3 jobs done")
    assert jobs == ["  mert system=rnn", "    iteration 2"]
    assert rnnsmt.project.status(directory) == [first, *jobs]
    (directory / "results/logs/tuning/mert.rnn.log").unlink()
    assert said(directory, capsys)[1:] == ["  mert system=rnn"]


def test_a_run_that_has_ended(directory, capsys):
    (directory / ".snakemake/locks/0.lock").unlink()
    assert said(directory, capsys)[0] == "ended early: 1 of 3 jobs done"
    log, table = directory / ".snakemake/log/1.snakemake.log", directory / "results/table1.md"
    log.write_text(LOG + "Error in rule mert:\n    jobid: 1\n")
    assert said(directory, capsys) == ["failed: 1 of 3 jobs done", "  failed: mert"]
    again = "Trying to restart job 1.\nrule mert:\n    log: x\n    jobid: 1\n"
    log.write_text(LOG + "Error in rule mert:\n    message: a\nb\n    jobid: 1\n" + again)
    assert said(directory, capsys) == ["ended early: 1 of 3 jobs done", "  mert"]
    (log.parent / "2.snakemake.log").write_text("Unlocked working directory.\n")
    table.write_text("")
    log.write_text(LOG + "Finished jobid: 1 (Rule: mert)\n3 of 3 steps (100%) done\n")
    assert said(directory, capsys) == ["finished: 3 of 3 jobs done", f"  table: {table}"]


def test_a_directory_without_a_run(tmp_path, capsys):
    assert main(["status", "--directory", str(tmp_path)]) == 2
    assert "no run of the workflow" in capsys.readouterr().err
