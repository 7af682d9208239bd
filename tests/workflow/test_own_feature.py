"""The example package of docs/own-feature.md: its column and its metric in the workflow, and its files on the page."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from .conftest import ROOT, Workflow

EXAMPLE = ROOT / "examples/features"

SYSTEMS = [
    "systems={shared: {features: [shared]}, rnn_shared: {features: [rnn, shared]}}",
    "compare=[baseline, shared, rnn_shared]",
    "evaluation={metrics: [chrf, exact]}",
]


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> str:
    """Install a copy of the package from a wheel; return the path of modules. Setuptools writes beside the sources."""
    target, source = tmp_path_factory.mktemp("package"), tmp_path_factory.mktemp("source") / EXAMPLE.name
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target), str(source)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options], check=True)
    return os.pathsep.join([str(target), *filter(None, [os.environ.get("PYTHONPATH")])])


def test_the_page_has_the_files_of_the_package():
    page = (ROOT / "docs/own-feature.md").read_text()
    block = page.split("```python\n")[1].partition("\n```")[0]
    assert (EXAMPLE / "rnnsmt_example/shared.py").read_text().partition('"""\n\n')[2] == f"{block}\n"
    for block in page.split("```toml\n")[1:]:
        assert block.partition("\n```")[0] in (EXAMPLE / "pyproject.toml").read_text()


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
