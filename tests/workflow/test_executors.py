"""What executor plugins submit for a job without a GPU and one with a GPU; the code of the plugins runs."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.workflow.conftest import ROOT, Workflow

CPU_JOB, GPU_JOB = "results/demo/dev.en", "results/rnn/network1/model.safetensors"

TARGETS = ["--allowed-rules", "demo", "train_network", "--", CPU_JOB, GPU_JOB]

CONFIG = ["--config", "cluster=true", "rnn={device: cuda}"]


def requires(*plugins: str) -> None:
    """Skip a test if a plugin is not installed."""
    for plugin in plugins:
        module = f"snakemake_{plugin.replace('-', '_')}"
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install {module.replace('_', '-')}")


def inputs_of_the_training(directory: Path) -> None:
    """Write the files that the training reads, with any content."""
    for name in ("phrases/pairs.safetensors", *(f"rnn/vocabularies/vocab.{side}.txt" for side in ("source", "target"))):
        (directory / "results" / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / "results" / name).write_text("x")


def submitted(tmp_path: Path, executor: str, *options: str) -> list[Any]:
    """Return what the plugin submits for a job without a GPU and one with a GPU; the files are in a storage."""
    requires("executor-plugin-" + executor, "storage-plugin-fs")
    directory, storage = tmp_path / "run", tmp_path / "storage"
    directory.mkdir()
    inputs_of_the_training(storage)
    workflow = Workflow(directory)
    cluster = ["--jobs", "9", "--default-storage-provider", "fs", "--default-storage-prefix", str(storage), *options]
    words = [part for part in workflow.options() if part not in ("--cores", "2")]
    command = [sys.executable, str(Path(__file__).with_name("recorder.py")), executor, str(tmp_path / "submitted")]
    done = subprocess.run(
        [*command, *words, *cluster, *TARGETS],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = json.loads((tmp_path / "submitted").read_text())
    return sorted(jobs, key=lambda job: "train_network:" in json.dumps(job))


def profile(name: str) -> list[str]:
    """Return the options for a profile."""
    return ["--workflow-profile", str(ROOT / "profiles" / name)]


def test_kubernetes(tmp_path):
    """A GPU is a request and a limit, and only where there is one; the image is that of the command line."""
    options = [*profile("kubernetes"), *CONFIG, "--container-image", "mine"]
    pods = [job["spec"]["template"]["spec"] for job in submitted(tmp_path, "kubernetes", *options)]
    cpu, gpu = (pod["containers"][0] for pod in pods)
    assert {cpu["image"], gpu["image"]} == {"mine"}
    assert cpu["resources"]["requests"]["memory"] == "450M"
    assert "nvidia" not in json.dumps(pods[0])
    assert "limits" not in cpu["resources"]
    assert gpu["resources"]["requests"] == gpu["resources"]["limits"] | {"cpu": "3800m"}
    assert gpu["resources"]["limits"].items() >= {"cpu": "4000m", "memory": "2500M", "nvidia.com/gpu": "1"}.items()
    assert [toleration["key"] for toleration in pods[1]["tolerations"]] == ["nvidia.com/gpu"]
    assert "'cluster=true'" in cpu["args"][1]


def test_aws_batch(tmp_path):
    """The plugin has a table of its own of the memory that a number of CPUs may have."""
    account = ["--aws-batch-region", "r", "--aws-batch-job-queue", "queue", "--aws-batch-job-role", "role"]
    jobs = submitted(tmp_path, "aws-batch", *account, *CONFIG, "--container-image", "mine")
    properties = [job["definition"]["containerProperties"] for job in jobs]
    assert {of["image"] for of in properties} == {"mine"}
    assert {tuple(of["command"][:2]) for of in properties} == {("/bin/bash", "-c")}, "an image has no ENTRYPOINT"
    cpu, gpu = ({one["type"]: one["value"] for one in of["resourceRequirements"]} for of in properties)
    assert cpu == {"VCPU": "1", "MEMORY": "2048"}
    assert gpu == {"VCPU": "4", "MEMORY": "8192", "GPU": "1"}


def test_googlebatch(tmp_path):
    """A GPU is an accelerator; memory and CPUs are those of the plugin's own options."""
    account = ["--googlebatch-project", "p", "--googlebatch-region", "r"]
    size = ["--googlebatch-memory", "8000", "--googlebatch-cpu-milli", "4000"]
    jobs = [job["job"] for job in submitted(tmp_path, "googlebatch", *account, *size, *CONFIG)]
    cpu, gpu = (job["allocationPolicy"]["instances"][0]["policy"] for job in jobs)
    assert not cpu.get("accelerators")
    assert [(one["type"], one["count"]) for one in gpu["accelerators"]] == [("nvidia-tesla-t4", "1")]
    for job in jobs:
        computed = job["taskGroups"][0]["taskSpec"]["computeResource"]
        assert (computed["memoryMib"], computed["cpuMilli"]) == ("8000", "4000")


def programs(directory: Path, *names: str) -> dict[str, str]:
    """Write programs that record their arguments; return an environment in which they are found."""
    directory.mkdir()
    for name in names:
        record = f'echo {name} "$@" >> {directory}/called; echo 7' if name == "sbatch" else "exit 0"
        (directory / name).write_text(f"#!/bin/sh\n{record}\n")
        (directory / name).chmod(0o755)
    return {"PATH": f"{directory}:{os.environ['PATH']}"}


def submitted_by_sbatch(tmp_path: Path, *options: str) -> list[str]:
    """Return the two commands of sbatch, that of the GPU job last; the run is killed afterwards."""
    tools = ("sbatch", "squeue", "sacct", "sinfo", "scontrol", "scancel", "sacctmgr")
    environment = os.environ | programs(tmp_path / "bin", *tools)
    workflow = Workflow(tmp_path)
    inputs_of_the_training(tmp_path)
    command = [part for part in workflow.command() if part not in ("--cores", "2")]
    with subprocess.Popen(
        [*command, *options, *TARGETS], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        said = []
        for line in process.stdout:
            said.append(line)
            if len(called := read(tmp_path / "bin/called").splitlines()) == 2:
                break
        process.kill()
    assert len(called) == 2, "".join(said)
    return sorted(called, key=lambda line: "train_network" in line)


def read(path: Path) -> str:
    """Return the content of a file, or nothing if it does not exist."""
    return path.read_text() if path.exists() else ""


def test_slurm(tmp_path):
    """A GPU is requested only where there is one; a profile is found by its name."""
    requires("executor-plugin-slurm")
    cpu, gpu = submitted_by_sbatch(tmp_path, "--workflow-profile", "slurm", *CONFIG)
    assert "-t 10 --mem 450 " in cpu and "--cpus-per-task=1 " in cpu
    assert "gpu" not in cpu.split("--wrap")[0]
    assert "-t 1440 --mem 2500 " in gpu and "--cpus-per-task=4 " in gpu and "--gpus=1 " in gpu
    assert all("--target-jobs '" in job and re.search(r"--config \S*cluster=\S*[Tt]rue", job) for job in (cpu, gpu))


def test_generic(tmp_path):
    """The command of the profile has a number of GPUs for every job."""
    requires("executor-plugin-cluster-generic")
    cpu, gpu = submitted_by_sbatch(tmp_path, *profile("generic"), *CONFIG)
    assert cpu.startswith("sbatch --parsable --mem=450 --time=10 --cpus-per-task=1 --gpus=0 ")
    assert gpu.startswith("sbatch --parsable --mem=2500 --time=1440 --cpus-per-task=4 --gpus=1 ")


def test_a_cluster_must_be_said_to_be_one(tmp_path):
    """With an executor of a cluster and the limits and devices of one machine, no job is submitted."""
    requires("executor-plugin-slurm")
    environment = programs(tmp_path / "bin", "sbatch", "squeue", "sacct", "sinfo", "scontrol", "scancel", "sacctmgr")
    done = Workflow(tmp_path).call(*profile("slurm"), "--config", "demo={scale: 0.02}", **environment)
    assert done.returncode != 0
    assert "add cluster=true to --config" in done.stdout + done.stderr
    assert not (tmp_path / "bin/called").exists()


def test_profiles_are_those_of_clusters():
    """Every profile but the default one says that jobs run elsewhere, and how many GPUs there are."""
    for path in (ROOT / "profiles").glob("*/config.yaml"):
        if path.parent.name != "default":
            options = yaml.safe_load(path.read_text())
            assert "cluster=true" in str(options["config"]) or {"cluster": True} in options["config"]
            assert options["resources"] == ["gpu=8"]
