"""The workflow as a module of another workflow, and in directories with special characters in their names."""

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.workflow.conftest import ROOT, Workflow, copy_of_checkout, report_counts_all_jobs

HOSTED = """
module smt:
    snakefile: {snakefile!r}
    config: config

use rule * from smt as smt_*
"""
"""A workflow that has nothing but the module."""

TWO_RULES = """
module smt:
    snakefile: {snakefile!r}

use rule language_model from smt as mine with:
    input: "mine.fr"
    output: "mine.arpa.gz"
    log: "mine.log"

use rule align_words from smt as links with:
    input:
        source="mine.en",
        target="mine.fr",
    output: "mine/{{aligner}}/{{direction}}.gz"
    log: "mine/{{aligner}}/{{direction}}.log"
"""
"""A workflow that uses two rules, on files of its own; one has wildcards."""

ODD = "it's $(touch evil) here"
"""A directory name with everything that an unquoted or badly quoted path would show."""

REPLACED = """
module smt:
    snakefile: {snakefile!r}

use rule * from smt exclude language_model as smt_*

rule mine:
    input: "mine.arpa.gz"
    output: "results/model/lm.arpa.gz"
    shell: "cp {{input:q}} {{output:q}}"
"""
"""A workflow with a language model of its own."""

OUTER = """
module smt:
    snakefile: {snakefile!r}
    config: config["smt"]
    prefix: "translation"

use rule * from smt as smt_*

rule mine:
    default_target: True
    input: "translation/results/table1.tsv", "translation/results/report/index.html"
    output: "mine.tsv"
    shell: "cp {{input[0]:q}} {{output:q}}"
"""


def outer(directory: Path, snakefile: Path) -> Workflow:
    """Write a workflow that uses the table of this one; settings that it does not set are those of config.yaml."""
    directory.mkdir()
    (directory / "Snakefile").write_text(OUTER.format(snakefile=str(snakefile)))
    lstms = {
        "lstm": {"network": "lstm"},
        "baseline+lstm": {"network": "lstm", "rescores": "baseline", "weight": "tuned"},
    }
    settings = {"demo": {"scale": 0.02}, "systems": lstms, "compare": ["baseline", "rnn", *lstms]}
    (directory / "config.yaml").write_text(yaml.safe_dump({"smt": settings}))
    return Workflow(directory, directory / "Snakefile")


def test_a_module_of_another_workflow(tmp_path):
    """All files of a module are below its prefix, also in commands, and its jobs run."""
    workflow = outer(tmp_path / ODD, ROOT / "Snakefile")
    settings = ["--configfile", str(workflow.directory / "config.yaml")]
    jobs = workflow.plan(*settings)
    assert jobs["mine"] == jobs["smt_table1"] == jobs["smt_train_network rnn"] == 1
    assert jobs["smt_mert"] == 2
    assert "smt_train_network cslm" not in jobs
    assert workflow.plan("smt_all", *settings)["smt_table1"] == 1
    plan = workflow.dry_run(*settings).stdout
    # the configuration in the provenance has the paths as they were given
    paths = [word for word in plan.replace("=", " ").split() if "results/" in word and not word.startswith('"')]
    assert len(paths) > 1000
    assert not [path for path in paths if not path.lstrip("'").startswith("translation/results/")]
    report_counts_all_jobs(workflow.dry_run("smt_all", *settings).stdout)
    done = workflow.call(*settings, "--until", "smt_prepare_mono", "smt_train_truecaser")
    assert done.returncode == 0, done.stderr
    assert (workflow.directory / "translation/results/corpus/truecaser.fr").exists()
    assert not (workflow.directory / "results").exists()
    assert not list(workflow.directory.rglob("evil"))


@pytest.fixture(scope="session")
def repository(tmp_path_factory) -> Path:
    """Create a Git repository of the workflow with tag v1 and branch main, without a work tree."""
    directory = tmp_path_factory.mktemp("hosted")
    copy_of_checkout(directory)
    git = ["git", "-C", str(directory), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "all"], ["tag", "v1"]):
        subprocess.run([*git, *words], check=True)
    for path in directory.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return directory


@pytest.fixture(scope="session")
def hosted(repository) -> str:
    """Return the Snakefile in the repository."""
    return f"git+file:{repository}/workflow/Snakefile@main"


def test_a_hosted_module(hosted, plan, tmp_path):
    """A module from a Git repository plans the jobs of a checkout, and they run."""
    (tmp_path / "Snakefile").write_text(HOSTED.format(snakefile=hosted))
    workflow = Workflow(tmp_path, tmp_path / "Snakefile")
    assert workflow.plan() == {f"smt_{rule}": count for rule, count in plan.items()}
    done = workflow.call("--config", "demo={scale: 0.02}", "--until", "smt_train_truecaser")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results/corpus/truecaser.fr").exists()


def test_a_module_of_a_hosting_service(repository, plan, tmp_path):
    """Snakemake's class for GitHub loads the module; Git reads a local repository instead."""
    module = 'github("owner/rnnsmt", path="workflow/Snakefile", tag="v1")'
    (tmp_path / "Snakefile").write_text(HOSTED.replace("{snakefile!r}", module))
    environment = {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{repository}.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/owner/rnnsmt",
    }
    jobs = Workflow(tmp_path, tmp_path / "Snakefile").plan(**environment)
    assert jobs == {f"smt_{rule}": count for rule, count in plan.items()}
    (clone,) = (tmp_path / "cache").rglob("github.com/owner/rnnsmt/HEAD")
    assert clone.is_file()


def test_chapters_alone(hosted, tmp_path):
    """Single rules of a module train a language model and align words of another text, and no other rule runs."""
    (tmp_path / "Snakefile").write_text(TWO_RULES.format(snakefile=hosted))
    (tmp_path / "mine.en").write_text("the cat sleeps\nthe dog sleeps\n" * 5)
    (tmp_path / "mine.fr").write_text("le chat dort\nle chien dort\n" * 5)
    done = Workflow(tmp_path, tmp_path / "Snakefile").call("mine.arpa.gz", "mine/fast_align/forward.gz")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ngram 5=" in gzip.decompress((tmp_path / "mine.arpa.gz").read_bytes()).decode()
    assert "done" in (tmp_path / "mine.log").read_text()
    links = gzip.decompress((tmp_path / "mine/fast_align/forward.gz").read_bytes()).decode()
    assert links.splitlines()[0] == "0-0 1-1 2-2"
    assert not (tmp_path / "results").exists()


def test_a_rule_in_place_of_another(tmp_path, plan):
    (tmp_path / "Snakefile").write_text(REPLACED.format(snakefile=str(ROOT / "Snakefile")))
    (tmp_path / "mine.arpa.gz").touch()
    jobs = Workflow(tmp_path, tmp_path / "Snakefile").plan()
    assert jobs == {"mine" if rule == "language_model" else f"smt_{rule}": count for rule, count in plan.items()}


def test_a_checkout_in_an_odd_directory(tmp_path):
    """The path of a checkout may contain characters that are special in a shell."""
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
