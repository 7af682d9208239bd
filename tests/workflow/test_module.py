"""Another workflow uses this one, and checkouts in folders with names that shells read differently."""

import os
import subprocess
import sys
from pathlib import Path

import yaml

from tests.workflow.conftest import ROOT, Workflow, copy_of_checkout

ODD = "it's $(touch evil) here"
"""A folder name with everything that an unquoted or badly quoted path would show."""

OUTER = """
module smt:
    snakefile: {snakefile!r}
    config: config["smt"]
    prefix: "translation"

use rule * from smt as smt_*

rule mine:
    default_target: True
    input: "translation/results/table1.tsv"
    output: "mine.tsv"
    shell: "cp {{input:q}} {{output:q}}"
"""


def outer(folder: Path, snakefile: Path) -> Workflow:
    """A workflow with rules of its own that wants the table; the settings it leaves out are those of config.yaml."""
    folder.mkdir()
    (folder / "Snakefile").write_text(OUTER.format(snakefile=str(snakefile)))
    (folder / "config.yaml").write_text(
        yaml.safe_dump({"smt": {"demo": {"scale": 0.02}, "compare": ["baseline", "rnn"]}})
    )
    return Workflow(folder, folder / "Snakefile")


def test_a_module_of_another_workflow(tmp_path):
    """All its files lie under the prefix, in commands too, and its jobs run."""
    workflow = outer(tmp_path / ODD, ROOT / "Snakefile")
    settings = ["--configfile", str(workflow.folder / "config.yaml")]
    jobs = workflow.plan(*settings)
    assert jobs["mine"] == jobs["smt_table1"] == jobs["smt_rnn_train"] == 1
    assert jobs["smt_mert"] == 2
    assert "smt_cslm_train" not in jobs
    plan = workflow.call("--dry-run", "--printshellcmds", *settings).stdout
    paths = [word for word in plan.replace("=", " ").split() if "results/" in word]
    assert len(paths) > 1000
    assert not [path for path in paths if not path.lstrip("'").startswith("translation/results/")]
    done = workflow.call(*settings, "--until", "smt_prepare_mono", "smt_train_truecaser")
    assert done.returncode == 0, done.stderr
    assert (workflow.folder / "translation/results/corpus/truecaser.fr").exists()
    assert not (workflow.folder / "results").exists()
    assert not list(workflow.folder.rglob("evil"))


def test_a_checkout_in_an_odd_folder(tmp_path):
    """Nothing of its path is read by a shell."""
    checkout = tmp_path / ODD
    checkout.mkdir()
    snakefile = copy_of_checkout(checkout)
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--cores",
        "2",
        "--config",
        "demo={scale: 0.02}",
        "--until",
        "prepare_mono",
    ]
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(command, cwd=snakefile.parent, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (checkout / "results/corpus/tokenized/gazette.report.json").exists()
    assert not list(tmp_path.rglob("evil"))
