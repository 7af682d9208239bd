"""The workflow on a real Slurm cluster, started for these tests: ``make test-slurm``."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pandas
import pytest
import yaml

from .conftest import ROOT, SMALL, Workflow
from .slurm_cluster import SlurmCluster, missing, wait_until

pytestmark = pytest.mark.skipif(
    "RNNSMT_TEST_SLURM" not in os.environ, reason="RNNSMT_TEST_SLURM is not set: make test-slurm"
)

TWO_SYSTEMS = {key: value for key, value in SMALL.items() if key not in ("networks", "seq2seq", "systems")} | {
    "tuning": SMALL["tuning"] | {"runs": 1},
    "compare": ["baseline", "cslm_rnn"],
}
"""Everything but LSTMs, once."""

TABLE = "results/table1.tsv"

SHARED = f"""
include: {str(ROOT / "workflow/rules/common.smk")!r}
include: {str(ROOT / "workflow/rules/resources.smk")!r}
"""
"""Shared rule files."""


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmCluster]:
    """Start a cluster of one node with eight processors."""
    with started(cpus=8, memory=48000) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _variables(slurm, monkeypatch):
    use(slurm, monkeypatch)


def use(cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment of the commands of this cluster."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)


@contextmanager
def started(cpus: int, memory: int) -> Iterator[SlurmCluster]:
    """Start a cluster in a temporary directory (sockets require short paths), and stop it at the end."""
    if reason := missing():
        pytest.fail(f"{reason}; Debian: apt install slurm-wlm munge")
    directory = Path(tempfile.mkdtemp(prefix="rnnsmt-slurm-"))
    cluster = SlurmCluster(directory, cpus, memory)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(directory)


POLL = ("--slurm-init-seconds-before-status-checks", "5")
"""Seconds between two polls of the status of jobs, which end after seconds; by default, 40 and more."""


class OnSlurm(Workflow):
    """Workflow whose jobs are submitted to Slurm."""

    def command(self, *options: str) -> list[str]:
        # This Slurm has no accounting, which the executor asks otherwise.
        profile = ("--workflow-profile", str(ROOT / "profiles/slurm"), "--slurm-status-command", "squeue")
        profile += ("--max-threads", "8")  # those of the node
        return super().command(*profile, *POLL, *options)


@pytest.fixture
def on_slurm(tmp_path) -> OnSlurm:
    """Return a workflow in an empty directory."""
    return OnSlurm(tmp_path)


def write_config(directory: Path, **changes: object) -> str:
    """Write a config file for the small corpus with two systems."""
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump(TWO_SYSTEMS | changes))
    return str(path)


def own_rules(directory: Path, lines: str) -> OnSlurm:
    """Return a workflow of these rules and the shared rule files."""
    (directory / "Snakefile").write_text(SHARED + lines)
    return OnSlurm(directory, directory / "Snakefile")


def new_jobs(slurm: SlurmCluster, before: set[str]) -> list[tuple[str, str, str]]:
    """Return number, state and comment of the jobs that are not in ``before``, oldest first."""
    return [
        (number, *about)
        for number, about in sorted(slurm.jobs().items(), key=lambda job: int(job[0]))
        if number not in before
    ]


def test_the_table_is_that_of_one_machine(slurm, on_slurm, tmp_path_factory):
    """The table equals that of a local run with the same threads of trainings; scratch files are on another disk."""
    local = Workflow(tmp_path_factory.mktemp("local"))
    scratch = tmp_path_factory.mktemp("scratch")
    os.utime(scratch, (0, 0))
    before = set(slurm.jobs())
    config = write_config(on_slurm.directory)
    done = local.call(TABLE, "--configfile", config)
    assert done.returncode == 0, done.stdout + done.stderr
    threads = ("--set-threads", "train_network=1")
    variables = {"RNNSMT_SCRATCH": "$DISK_OF_NODE", "DISK_OF_NODE": str(scratch)}
    done = on_slurm.call(TABLE, *threads, "--configfile", config, timeout=1500, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    tables = [pandas.read_csv(run.directory / TABLE, sep="\t") for run in (on_slurm, local)]
    pandas.testing.assert_frame_equal(*tables)
    for path in (
        "rnn/network1/model.safetensors",
        "cslm/network1/model.safetensors",
        "systems/cslm_rnn/run1/moses.ini",
    ):
        assert (on_slurm.directory / "results" / path).read_bytes() == (
            local.directory / "results" / path
        ).read_bytes(), path
    jobs = new_jobs(slurm, before)
    assert {state for _, state, _ in jobs} == {"COMPLETED"}
    assert len(list(on_slurm.directory.glob("results/logs/**/*.log"))) > 50
    assert not list(scratch.iterdir())
    assert scratch.stat().st_mtime > 0, "there has been something"
    assert not [path for path in on_slurm.directory.rglob("*") if ".tmp-" in path.name]


def test_a_training_is_cancelled_and_runs_out_of_time(slurm, on_slurm):
    """A training run that is cancelled or reaches its time limit saves a checkpoint, is submitted again and resumes."""
    settings = SMALL["rnn"]["settings"] | {"updates": 10**7}
    config = write_config(on_slurm.directory, rnn={"settings": settings})
    inputs = "results/phrases/pairs.safetensors", "results/rnn/vocabularies/vocabularies.json"
    pairs = on_slurm.call(*inputs, "--configfile", config, timeout=900)
    assert pairs.returncode == 0, pairs.stdout + pairs.stderr
    log = on_slurm.directory / "results/logs/rnn/train.1.log"
    with training(slurm, on_slurm, config, minutes=30) as jobs:
        wait_until(lambda: "update " in read(log), 600, "some updates")
        slurm.call("scancel", jobs()[0][0])
        wait_until(lambda: updates_before(log) > 0, 600, "the second attempt")
    assert jobs()[0][1] == "CANCELLED"
    assert not out_of_memory(on_slurm.directory), "a job that is killed for its memory is not one that is cancelled"
    log.unlink()
    with training(slurm, on_slurm, config, minutes=3) as jobs:
        wait_until(lambda: updates_before(log) > 0, 600, "the first attempt")
        saved = updates_before(log)
        wait_until(lambda: updates_before(log) > saved, 900, "the attempt after the time limit")
    assert jobs()[0][1] == "FAILED"
    assert not out_of_memory(on_slurm.directory)


@contextmanager
def training(
    slurm: SlurmCluster, workflow: OnSlurm, config: str, minutes: int
) -> Iterator[Callable[[], list[tuple[str, str, str]]]]:
    """Run the training of the network with this time limit, yield its jobs, and interrupt it at the end."""
    before = set(slurm.jobs())
    limit = ("--set-resources", f"train_network:runtime={minutes}", "--configfile", config)
    command = workflow.command(*limit, "--", "results/rnn/network1/model.safetensors")
    hear = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # it is ignored where the tests run in the background
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet, preexec_fn=hear) as process:
        try:
            yield partial(new_jobs, slurm, before)
        finally:
            process.send_signal(signal.SIGINT)  # which ends its jobs
            process.wait(120)
    assert not slurm.alive()


def out_of_memory(directory: Path) -> bool:
    """Return whether Slurm has killed a job of a run for its memory."""
    logs = directory.glob(".snakemake/slurm_logs/**/*.log")
    return any("exceeded memory limit" in path.read_text() for path in logs)


def read(log: Path) -> str:
    """Return a log, or nothing if it is missing; Snakemake removes it before every attempt."""
    with suppress(FileNotFoundError):
        return log.read_text()
    return ""


def updates_before(log: Path) -> int:
    """Return the number of updates after which the attempt that writes a log has resumed."""
    found = re.search(r"resuming after ([\d,]+) of", read(log))
    return int(found[1].replace(",", "")) if found else 0


MORE_MEMORY = """
rule large:
    output: "large"
    resources: mem_mb=megabytes(200), runtime=minutes(10)
    shell:
        "echo {resources.mem_mb} >> tries; "
        "python -c 'import time; block = bytearray(400 << 20); time.sleep(6)' && touch {output}"
"""
"""A job with too little memory at the first attempt; 300 MB of what it asks for are Snakemake's."""


def test_a_job_out_of_memory_gets_more(slurm, tmp_path):
    """Request more memory in the second attempt of a job that Slurm ended for its memory, and print that it failed."""
    before = set(slurm.jobs())
    done = own_rules(tmp_path, MORE_MEMORY).call("large", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "tries").read_text() == "500\n700\n"
    assert [state for _, state, _ in new_jobs(slurm, before)] == ["FAILED", "COMPLETED"]
    assert out_of_memory(tmp_path)
    assert re.search(r"SLURM-job '\d+' failed, SLURM status is: 'FAILED'", done.stdout + done.stderr)


STATUS = """#!/bin/sh
case $(squeue --noheader --states=all --jobs="$1" --format=%T) in
    COMPLETED) echo success ;;
    PENDING | CONFIGURING | RUNNING | SUSPENDED | COMPLETING) echo running ;;
    *) echo failed ;;
esac
"""
"""What has become of a job, as cluster-generic asks."""


def test_any_command_that_submits(slurm, tmp_path):
    """The executor for LSF, PBS and other systems works, tested with Slurm's commands."""
    pytest.importorskip("snakemake_executor_plugin_cluster_generic")
    before = set(slurm.jobs())
    submit = "sbatch --parsable --mem={resources.mem_mb} --time={resources.runtime} --cpus-per-task={threads}"
    executor = ("--executor", "cluster-generic", "--cluster-generic-submit-cmd", submit, "--jobs", "9")
    (tmp_path / "Snakefile").write_text(SHARED + MORE_MEMORY)
    status = tmp_path / "status"
    status.write_text(STATUS)
    status.chmod(0o755)
    workflow = Workflow(tmp_path, tmp_path / "Snakefile")
    options = ("--workflow-profile", "none", "--retries", "2", "--cluster-generic-status-cmd", str(status))
    done = workflow.call("large", *executor, *options, "--config", "cluster=true", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "tries").read_text() == "500\n700\n"
    assert [state for _, state, _ in new_jobs(slurm, before)][-1] == "COMPLETED"


TWO_RULES = """
rule both:
    default_target: True
    input: "first"
    output: "second"
    resources: mem_mb=megabytes(100), runtime=minutes(10)
    shell: "touch {output}"

rule long:
    output: "first"
    resources: mem_mb=megabytes(100), runtime=minutes(10)
    shell: "echo try >> tries; while [ ! -e go-on ]; do sleep 0.2; done; touch {output}"
"""
"""A job that waits for a file, and one that uses its output."""


def test_jobs_outlive_the_process_that_submitted_them(slurm, tmp_path):
    """After a kill, a new run uses the outputs of the jobs that have ended since; --unlock removes the lock."""
    workflow = own_rules(tmp_path, TWO_RULES)
    before = set(slurm.jobs())
    with subprocess.Popen(workflow.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until((tmp_path / "tries").exists, 600, "the first job runs")
        finally:
            process.kill()
    [(_, state, _)] = new_jobs(slurm, before)
    assert state == "RUNNING"
    (tmp_path / "go-on").touch()
    wait_until(lambda: not slurm.alive(), 600, "the end of the job")
    assert workflow.call("--unlock").returncode == 0
    done = workflow.call(timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "second").exists()
    assert (tmp_path / "tries").read_text() == "try\n"
    assert [state for _, state, _ in new_jobs(slurm, before)] == ["COMPLETED"] * 2


def test_a_thousand_jobs_side_by_side(on_slurm):
    """A plan may have more shards than phrase pairs."""
    plan = on_slurm.plan("--jobs", "1000", "--set-scatter", "column=500")
    assert plan["score_column"] == 501
