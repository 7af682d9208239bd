"""Detection of stale Snakemake locks."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rnnsmt.base.io import InputError
from rnnsmt.monitoring import runs

HERE = socket.gethostname()


@pytest.fixture
def directory(tmp_path) -> Path:
    """Create a ``.snakemake`` directory with a lock."""
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks/0.input.lock").write_text("text\n")
    (tmp_path / runs.RUNS).mkdir()
    return tmp_path


def end_own_runs() -> None:
    """Release the lock files of this process, as at its end."""
    while runs._kept:
        runs._kept.popitem()[1].close()


@pytest.fixture(autouse=True)
def _forget():
    yield
    end_own_runs()


def dead(directory: Path, host: str = HERE, cluster: bool = False) -> Path:
    """Write the file of a killed run."""
    path = directory / runs.RUNS / f"{host}.1.json"
    path.write_text(json.dumps({"host": host, "cluster": cluster}))
    return path


def test_the_lock_of_a_dead_run_goes(directory):
    left = dead(directory)
    assert runs.enter(directory, cluster=False)
    assert not (directory / "locks").exists()
    assert not left.exists()


def test_a_lock_without_a_dead_run_stays(directory):
    assert not runs.enter(directory, cluster=False)
    assert (directory / "locks").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"host": 3}'])
def test_an_invalid_record_of_a_run_is_kept(directory, content):
    dead(directory).write_text(content)
    assert not runs.enter(directory, cluster=False)
    assert (directory / "locks").exists()


@pytest.mark.parametrize(("host", "cluster"), [("other", False), (HERE, True)])
def test_jobs_that_may_still_run_elsewhere(directory, host, cluster):
    """The lock stays if jobs may still be running on another host or a cluster."""
    dead(directory)
    left = directory / runs.RUNS / "other.2.json"
    left.write_text(json.dumps({"host": host, "cluster": cluster}))
    assert not runs.enter(directory, cluster=False)
    assert (directory / "locks").exists()
    assert left.exists()


def squeue(bin_directory: Path, monkeypatch, answer: str) -> None:
    """Write a shell script as ``squeue`` that executes ``answer``, and set PATH to it."""
    bin_directory.mkdir()
    (bin_directory / "squeue").write_text(f"#!/bin/sh\n{answer}\n")
    (bin_directory / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_directory}:/usr/bin:/bin")


def test_jobs_that_slurm_still_has(directory, tmp_path_factory, monkeypatch):
    """A run on a cluster is over when Slurm has none of its jobs; jobs of other directories do not count."""
    left = dead(directory, cluster=True)
    (directory / "slurm_logs").mkdir()
    other, own = (
        "echo '8   /else/.snakemake/slurm_logs/x/%j.log  '",
        f"echo '12_3  {directory}/slurm_logs/rule_x/%j.log  '",
    )
    squeue(tmp_path_factory.mktemp("q") / "bin", monkeypatch, f"{other}\n{own}")
    with pytest.raises(InputError, match=r"its jobs 12_3 are still in Slurm's queue: wait .* \(scancel 12_3\)"):
        runs.enter(directory, cluster=True)
    assert left.exists()
    assert (directory / "locks").exists()
    squeue(tmp_path_factory.mktemp("q") / "bin", monkeypatch, other)
    assert runs.enter(directory, cluster=True)
    assert not left.exists()


@pytest.mark.parametrize("answer", ["exit 1", None])
def test_slurm_that_does_not_answer(directory, tmp_path_factory, monkeypatch, answer):
    """The lock stays if squeue fails, or if another executor submitted the jobs."""
    left = dead(directory, cluster=True)
    squeue(tmp_path_factory.mktemp("q") / "bin", monkeypatch, answer or "exit 0")
    if answer:
        (directory / "slurm_logs").mkdir()
    assert not runs.enter(directory, cluster=True)
    assert left.exists()
    assert (directory / "locks").exists()


def test_unlock_removes_the_record_of_a_run(directory):
    left = dead(directory, cluster=True)
    assert not runs.enter(directory, cluster=False, arguments=["snakemake", "--unlock"])
    assert not left.exists()


@pytest.mark.parametrize("option", ["-n", "-np", "-Fpn", "-nRscore", "-t", "--dry-run", "--touch", "--lint", "--mode"])
def test_plans_and_jobs_do_nothing(directory, option):
    left = dead(directory)
    assert not runs.enter(directory, cluster=False, arguments=["snakemake", option])
    assert left.exists()
    assert (directory / "locks").exists()


@pytest.mark.parametrize("option", ["-Rlanguage_model", "-Ujoin_dev", "-p", "--until=mert"])
def test_names_of_rules_make_no_plan(directory, option):
    dead(directory)
    assert runs.enter(directory, cluster=False, arguments=["snakemake", option])
    assert not (directory / "locks").exists()


def test_a_run_that_is_alive(directory):
    """The lock stays while a run is alive; a killed run leaves a stale file, a normal end leaves none."""
    code = (
        "import sys, time; from pathlib import Path; from rnnsmt.monitoring.runs import enter; "
        "enter(Path(sys.argv[1]), False); print('in', flush=True); sys.stdin.read()"
    )
    alive = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for run in alive:
        assert run.stdout is not None
        assert run.stdout.readline() == "in\n"
    alive[0].kill()
    alive[0].wait()
    for option in ("--unlock", "--delete-all-output"):
        with pytest.raises(InputError, match=rf"active in .* \(process {alive[1].pid} on .* before using {option}"):
            runs.enter(directory, cluster=False, arguments=["snakemake", option])
    assert not runs.enter(directory, cluster=False)
    assert (directory / "locks").exists()
    (other,) = runs.others_active(directory)
    assert f"(process {alive[1].pid} on {HERE})" in other
    alive[1].communicate("")
    assert not runs.others_active(directory)
    assert len(list((directory / runs.RUNS).glob("*.json"))) == 2, "the killed one's and our own"
    end_own_runs()
    assert runs.enter(directory, cluster=False)


def test_a_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    assert not runs.enter(tmp_path / "file", cluster=False)
