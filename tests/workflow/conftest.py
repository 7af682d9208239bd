"""Running the workflow as a user does: calls of snakemake in a separate directory."""

import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.workflow import planner

ROOT = Path(__file__).resolve().parents[2]

SMALL = {
    "demo": {"scale": 0.15},
    "networks": {"seeds": 2},
    "tuning": {"runs": 2, "optimizer": "mert", "iterations": 3, "restarts": 4},
    "search": {"pop_limit": 100},
    "rnn": {"settings": {"hidden": 32, "embedding": 16, "maxout": 16, "updates": 150}},
    "cslm": {"settings": {"projection": 16, "hidden_1": 32, "hidden_2": 16, "epochs": 2}},
    "seq2seq": {"settings": {"hidden": 32, "embedding": 16, "epochs": 2}, "nbest": 20, "beam": 4},
    "systems": {"baseline+lstm_ensemble": {"ensemble": 2}},
    "compare": [
        *("baseline", "rnn", "cslm_rnn", "cslm_rnn_wp"),
        *("lstm", "baseline+lstm_ensemble", "cslm_rnn+lstm_tuned"),
    ],
}
"""The demo corpus at a size for tests."""


class Workflow:
    """A directory of results, and calls of snakemake in it with the Snakefile of this checkout or another."""

    def __init__(self, directory: Path, snakefile: Path = ROOT / "Snakefile") -> None:
        self.directory = directory
        self.snakefile = snakefile
        self._plans: dict[tuple[tuple[str, ...], tuple[tuple[str, str], ...]], subprocess.CompletedProcess] = {}

    def options(self, *options: str) -> list[str]:
        """Return the options of a call."""
        return ["--snakefile", str(self.snakefile), "--directory", str(self.directory), "--cores", "2", *options]

    def command(self, *options: str) -> list[str]:
        """Return the command line of a call."""
        return [sys.executable, "-m", "snakemake", *self.options(*options)]

    def call(self, *options: str, timeout: float = 600, **environment: str) -> subprocess.CompletedProcess:
        """Run snakemake; return the completed process."""
        if "--dry-run" not in options:
            self._plans.clear()
        return planner.run(self.options(*options), os.environ | environment, timeout)

    def log(self) -> str:
        """Return the full log of the last run."""
        return max(self.directory.glob(".snakemake/log/*.log")).read_text()

    def dry_run(self, *options: str, **environment: str) -> subprocess.CompletedProcess:
        """Return a dry run with its commands; cached until a run changes the directory."""
        arguments = options, tuple(sorted(environment.items()))
        if arguments not in self._plans:
            done = self.call("--dry-run", "--printshellcmds", *options, **environment)
            assert done.returncode == 0, done.stdout + done.stderr
            self._plans[arguments] = done
        return self._plans[arguments]

    def plan(self, *options: str, **environment: str) -> Counter:
        """Return the number of jobs that a call would run, by rule; of networks also by rule and network."""
        done = self.dry_run(*options, **environment)
        jobs = re.findall(r"^ *(?:local)?rule (\w+):\n((?: .*\n)*)", done.stdout + done.stderr, re.M)
        names = [re.search(r"^ *wildcards: (?:.*, )?name=(\w+)", text, re.M) for _, text in jobs]
        rules = [rule for rule, _ in jobs]
        networks = [f"{rule} {name[1]}" for rule, name in zip(rules, names, strict=True) if name is not None]
        return Counter([*rules, *(job for job in networks if "learning_curve" not in job)])

    def commands(self, rule: str, *options: str) -> str:
        """Return the shell commands that a rule would run."""
        jobs = self.dry_run(*options).stdout.split(f"\nrule {rule}:\n")[1:]
        return "\n".join(job.split("\nrule ")[0].split("Shell command: ")[1] for job in jobs)


def report_counts_all_jobs(plan: str) -> None:
    """Check that the command of the report in a dry run names the first log of every job of the plan, and no others."""
    logs = re.findall(r"^    log: (?:[^,\n]*/)?results/logs/([^,\n]+)\.log", plan, re.M)
    (command,) = re.findall(r"rnnsmt analysis report .* --jobs (.*) --output", plan)
    assert sorted(logs) == shlex.split(command)
    assert len(logs) > 50


def copy_of_checkout(directory: Path) -> Path:
    """Copy the files of this checkout that a run needs; return the Snakefile of the copy."""
    for name in ("workflow", "profiles", "envs", "src"):
        shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(ROOT / name, directory)
    return directory / "Snakefile"


@pytest.fixture
def workflow(tmp_path) -> Workflow:
    """Return a workflow in an empty directory."""
    return Workflow(tmp_path)


@pytest.fixture(scope="session")
def plans(tmp_path_factory) -> Workflow:
    """Return a workflow in an empty directory for dry runs, which tests with the same options share."""
    return Workflow(tmp_path_factory.mktemp("plans"))


@pytest.fixture(scope="session")
def plan(plans) -> Counter:
    """Return the jobs of the default configuration."""
    return plans.plan()


@pytest.fixture(scope="session")
def small_config(tmp_path_factory) -> Path:
    """Write a config file for the demo corpus at a size for tests."""
    import yaml
    from snakemake.utils import update_config

    path = tmp_path_factory.mktemp("config") / "small.yaml"
    settings = yaml.safe_load((ROOT / "workflow/configs/seq2seq.yaml").read_text())
    update_config(settings, SMALL)
    path.write_text(yaml.safe_dump(settings))
    return path


@pytest.fixture(scope="session")
def finished(tmp_path_factory, small_config) -> Workflow:
    """Run the whole workflow on a small demo corpus, once for all test processes.

    Its output is in ``finished.whole`` beside its directory.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with (shared / "finished.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        workflow = Workflow(shared / "finished")
        if not (shared / "finished.whole").exists():
            workflow.directory.mkdir(exist_ok=True)
            done = workflow.call("--configfile", str(small_config), "--show-failed-logs", timeout=1500)
            assert done.returncode == 0, done.stdout + done.stderr
            (shared / "finished.printed").write_text(done.stdout)
            (shared / "finished.whole").write_text(done.stderr)
    return workflow


@pytest.fixture
def copy_of_finished(finished, tmp_path) -> Workflow:
    """Return a copy of a finished run that a test may change; modification times are preserved."""
    subprocess.run(["cp", "-a", f"{finished.directory}/.", str(tmp_path)], check=True)
    return Workflow(tmp_path)


@pytest.fixture(autouse=True)
def _one_thread_each(monkeypatch):
    monkeypatch.setitem(os.environ, "OMP_NUM_THREADS", "1")
