"""The example packages of docs/own-feature.md and docs/extending.md: what they add, and their files."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from .conftest import ROOT, Workflow

EXAMPLE, NETWORK = ROOT / "examples/features", ROOT / "examples/network"

SYSTEMS = [
    "systems={shared: {features: [shared]}, rnn_shared: {features: [rnn, shared]}}",
    "compare=[baseline, shared, rnn_shared]",
    "evaluation={metrics: [chrf, exact]}",
]


WITH_NETWORK = [
    "systems={bag: {features: [bag]}, bag_rnn: {features: [rnn, bag]}}",
    "compare=[baseline, bag, bag_rnn]",
    "networks={settings: {bag: {size: 8}}}",
]


def install(source: Path, target: Path) -> str:
    """Install a package in a directory, from a wheel; return the search path."""
    copy = shutil.copytree(source, target / "source")  # setuptools writes beside the files
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target / "site")]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(copy)], check=True)
    return f"{target / 'site'}:{ROOT / 'src'}"


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> str:
    return install(EXAMPLE, tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def network(tmp_path_factory) -> str:
    return install(NETWORK, tmp_path_factory.mktemp("network"))


def test_the_page_has_the_files_of_the_package():
    page = (ROOT / "docs/own-feature.md").read_text()
    block = page.split("```python\n")[1].partition("\n```")[0]
    assert (EXAMPLE / "rnnsmt_example/shared.py").read_text().partition('"""\n\n')[2] == f"{block}\n"
    for block in page.split("```toml\n")[1:]:
        assert block.partition("\n```")[0] in (EXAMPLE / "pyproject.toml").read_text()


def test_the_network_of_the_page_is_one_short_file():
    assert len((NETWORK / "rnnsmt_bag.py").read_text().splitlines()) <= 100
    section = (ROOT / "docs/extending.md").read_text().split("\n## A network\n")[1]
    linked = re.findall(r"\]\(\.\./([^)]+)\)", section.partition("\n## ")[0])
    assert {ROOT / path for path in linked} == {NETWORK / "rnnsmt_bag.py", NETWORK / "pyproject.toml"}


def test_a_configuration_names_a_column_with_a_network(workflow: Workflow, network: str):
    """The network is trained once, with its settings; version and settings are params."""
    jobs = workflow.plan("--config", *WITH_NETWORK, PYTHONPATH=network)
    expected = {"train_network bag": 1, "train_network rnn": 1, "score_column": 4, "augment": 2, "learning_curve": 2}
    assert jobs.items() >= expected.items()
    command = "networks train --network bag --data results/phrases/pairs.safetensors results/rnn/vocabularies"
    plan = workflow.dry_run("--config", *WITH_NETWORK, PYTHONPATH=network).stdout
    assert f"{command} --preset demo --size 8 --seed 1 " in plan
    for settings, said in (
        ("{bag: {sise: 8}}", "networks.settings.bag: unknown key sise; did you mean size?"),
        ("{bags: {size: 8}}", "networks.settings: no network bags"),
    ):
        wrong = [*WITH_NETWORK[:2], f"networks={{settings: {settings}}}"]
        refused = workflow.call("--dry-run", "--config", *wrong, PYTHONPATH=network)
        assert refused.returncode and said in refused.stdout + refused.stderr


@pytest.mark.slow
def test_a_killed_training_of_the_network_resumes(workflow: Workflow, network: str, tmp_path_factory):
    """After kill -9, the training resumes in the workflow; network and column have equal bytes."""
    whole = Workflow(tmp_path_factory.mktemp("whole"))
    settings = [*WITH_NETWORK[:2], "networks={settings: {bag: {epochs: 4}}}", "demo={scale: 0.05}"]
    column, model = "results/columns/bag/network1/1-of-2.safetensors", "results/bag/network1/model.safetensors"
    options = ["--config", *settings, "--", column]
    done = whole.call(*options, timeout=1500, PYTHONPATH=network)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.copytree(whole.directory / "results", workflow.directory / "results")
    for directory in ("bag", "columns"):
        shutil.rmtree(workflow.directory / "results" / directory)
    data = ["results/phrases/pairs.safetensors", "results/rnn/vocabularies"]
    words = ["--preset", "demo", "--epochs", "4", "--seed", "1", "--device", "cpu", "--save-every", "0"]
    outputs = ["--output-model", model, "--output-history", "results/bag/network1/history.json"]
    checkpoint = workflow.directory / "results/bag/network1/checkpoint"
    train = ["-m", "rnnsmt", "networks", "train", "--network", "bag", "--data"]
    command = [sys.executable, *train, *data, *words, *outputs, "--checkpoint-dir", str(checkpoint)]
    with subprocess.Popen(command, cwd=workflow.directory, env=os.environ | {"PYTHONPATH": network}) as run:
        while not (checkpoint / "checkpoint.pt").exists() and run.poll() is None:
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
    assert run.returncode == -signal.SIGKILL
    done = workflow.call("--rerun-triggers", "mtime", *options, timeout=1500, PYTHONPATH=network)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "resuming after" in (workflow.directory / "results/logs/bag/train.1.log").read_text()
    for path in (model, column):
        assert (workflow.directory / path).read_bytes() == (whole.directory / path).read_bytes()


def test_a_configuration_names_what_the_package_adds(workflow: Workflow, package: str):
    jobs = workflow.plan("--config", *SYSTEMS, PYTHONPATH=package)
    assert jobs.items() >= {"score_column": 3, "augment": 2, "mert": 3, "decode": 3}.items(), "two shards of the RNN"
    refused = workflow.call("--dry-run", "--config", *SYSTEMS)
    assert refused.returncode and "evaluation.metrics" in refused.stdout + refused.stderr


@pytest.mark.slow
def test_a_run_with_them(workflow: Workflow, package: str):
    small = ["demo={scale: 0.05}", "tuning={runs: 2, iterations: 2, restarts: 2}"]
    done = workflow.call("--config", *SYSTEMS, *small, timeout=1500, PYTHONPATH=package)
    assert done.returncode == 0, done.stdout + done.stderr
    results: Path = workflow.directory / "results"
    table = pd.read_csv(results / "table1.tsv", sep="\t", index_col=["system", "test_set"])
    assert (
        table.loc[("rnn_shared", "harbour-test"), ["exact", "exact_low_baseline", "exact_p_strict_baseline"]]
        .notna()
        .all()
    )
    assert "RNN + shared words" in (results / "table1.md").read_text()
    added = json.loads((results / "provenance.json").read_text())["software"]["added by packages"]
    assert added == {"score column shared": "rnnsmt-example 1.0", "metric exact": "rnnsmt-example 1.0"}
    assert (results / "augmented/rnn_shared/network1/phrase-table.gz").exists()
