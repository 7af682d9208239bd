"""What would run: per configuration, and which mistakes are refused before anything runs."""

import argparse
import base64
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from rnnsmt.stages import STAGES
from tests.workflow.conftest import ROOT, Workflow

BASELINE = {"align_words": 2, "symmetrize": 2, "lexical": 1, "extract": 1, "phrase_table": 1, "reordering_table": 1}
RNN = {"rnn_prepare": 1, "rnn_train": 1, "rnn_score": 2, "augment": 1, "augmented_ini": 1}
CSLM = {"cslm_prepare": 1, "cslm_train": 1, "cslm_perplexity": 1}
NETWORKS = RNN | CSLM | {"shortlist": 1, "augment": 3, "augmented_ini": 7}
"""All systems of the table: tables with the columns rnn, wp, rnn and wp; each without and with the CSLM."""


def test_the_embedded_corpus(plan):
    assert plan.items() >= (BASELINE | NETWORKS | {"mert": 24, "decode": 24, "score": 24, "table1": 1}).items()
    assert plan.items() >= {"demo": 1, "selection_score_bitext": 1, "selection_score_mono": 2, "provenance": 1}.items()
    assert "fetch" not in plan


def test_multi30k_tok(workflow, multi30k_tok):
    config = ROOT / "workflow/configs/multi30k-tok.yaml"
    jobs = workflow.plan("--configfile", str(config), "--config", f"data_dir={multi30k_tok}")
    assert jobs.items() >= (BASELINE | NETWORKS | {"prepare_bitext": 4, "mert": 40, "decode": 40, "score": 40}).items()
    for rule in ("demo", "fetch", "truecase", "train_truecaser", "selection_score", "raw_reference"):
        assert rule not in jobs


def test_multi30k_raw(workflow, shared_dir):
    config = ROOT / "workflow/configs/multi30k.yaml"
    jobs = workflow.plan("--configfile", str(config), "--config", f"data_dir={shared_dir}/data/multi30k")
    assert (
        jobs.items()
        >= (BASELINE | {"prepare_bitext": 4, "train_truecaser": 2, "truecase": 6, "raw_reference": 3}).items()
    )


def test_mini_wmt(workflow, shared_dir):
    config = ROOT / "workflow/configs/mini-wmt.yaml"
    jobs = workflow.plan("--configfile", str(config), "--config", f"data_dir={shared_dir}/data/mini-wmt")
    expected = {"prepare_bitext": 7, "prepare_mono": 1, "mert": 24, "decode": 48}
    assert jobs.items() >= (BASELINE | NETWORKS | expected).items()


def test_downloads_without_data_dir(workflow):
    jobs = workflow.plan("--configfile", str(ROOT / "workflow/configs/multi30k.yaml"))
    assert jobs["fetch"] == 8


def test_the_experiment_of_the_paper_without_its_data(workflow):
    """The whole plan of WMT 2014, from the addresses of the archives to the table."""
    jobs = workflow.plan("--configfile", str(ROOT / "workflow/configs/wmt14.yaml"))
    expected = {"fetch": 14, "unpack": 16, "prepare_bitext": 8, "prepare_mono": 7, "raw_reference": 3}
    expected |= {"selection_score_bitext": 5, "selection_score_mono": 12, "mert": 24, "decode": 48}
    assert jobs.items() >= (BASELINE | NETWORKS | expected).items()


def test_every_rule_asks_for_memory_and_time():
    """A rule without is cut off at what a cluster gives by default."""
    rules = [rule for path in (ROOT / "workflow/rules").glob("*.smk") for rule in path.read_text().split("\nrule ")[1:]]
    assert len(rules) > 40
    for rule in rules:
        assert "        mem_mb=" in rule, rule
        assert "        runtime=" in rule, rule


def names_of_resources(cluster: bool) -> dict:
    names = {"Path": Path, "on_a_cluster": lambda: cluster, "workflow": SimpleNamespace(global_resources={})}
    exec((ROOT / "workflow/rules/resources.smk").read_text(), names)
    return names


@pytest.fixture
def resources() -> dict:
    """The names of resources.smk, on one machine."""
    return names_of_resources(cluster=False)


def test_a_further_attempt_gets_more(resources, tmp_path):
    """Of memory and time. Parts share the time."""
    (tmp_path / "text").write_bytes(bytes(3_000_000))
    files = [tmp_path / "text"]
    memory, minutes = resources["memory"], resources["minutes"]
    assert [memory(100, 10)(None, files, attempt) for attempt in (1, 2, 3)] == [130, 260, 390]
    assert [minutes(5, 2)(None, files, attempt) for attempt in (1, 2)] == [11, 22]
    assert minutes(5, 2, parts=lambda w: 3)(None, files, 1) == 7
    assert minutes(5)(None, ["not/there/yet"], 2) == 10


def test_a_machine_has_no_more_memory_than_it_has(resources):
    """Two stages that take what they are told for what they may use must fit; a cluster has larger machines."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6
    assert 0.6 * there < 2 * resources["memory"](10**9)(None, [], 1) < there
    resources["on_a_cluster"] = lambda: True
    assert resources["memory"](10**9)(None, [], 1) == 10**9


def call_with(workflow: Workflow, lines: str, *options: str) -> str:
    """What Snakemake prints with the settings of this checkout and a Snakefile of these lines instead of the rules."""
    for name in ("workflow", "src", "config.yaml"):
        if not (workflow.folder / name).exists():
            (workflow.folder / name).symlink_to(ROOT / name)
    head = 'configfile: "config.yaml"\ninclude: "workflow/rules/common.smk"\n'
    (workflow.folder / "Snakefile").write_text(head + lines)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *options]
    done = subprocess.run(command, cwd=workflow.folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


NOTHING = 'rule nothing:\n    output: "nothing"\n    shell: "touch {output}"\n'


@pytest.mark.parametrize(("mode", "expected"), [("default", "limit:\n"), ("remote", "limit: --time-limit 600\n")])
def test_only_clusters_limit_the_time(workflow, mode, expected):
    """What the rules of long jobs call with their minutes."""
    rule = 'rule limit:\n    output: "limit.txt"\n    shell: "echo limit: $(time_limit 10) > {output}"\n'
    call_with(workflow, rule, "--mode", mode, "limit.txt")
    assert (workflow.folder / "limit.txt").read_text() == expected


@pytest.mark.parametrize("options", [[], ["--sdm", "conda"]])
def test_the_python_of_the_stages(workflow, options):
    """Snakemake's own is in front; with conda environments what they put in front stays there."""
    printed = call_with(workflow, f"print(shell._process_prefix)\n{NOTHING}", "nothing", "-n", *options)
    assert (f"PATH={Path(sys.executable).parent}:" in printed) == (not options)


def test_the_jobs_of_a_machine_share_its_memory(workflow):
    """And whoever knows better says so; a cluster has its own queue."""
    assert names_of_resources(cluster=True)["workflow"].global_resources == {}
    lines = 'include: "workflow/rules/resources.smk"\nprint("limit", workflow.global_resources.get("mem_mb"))\n'
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6
    for options, limit in (([], int(0.85 * there)), (["--resources", "mem_mb=777"], 777)):
        printed = call_with(workflow, lines + NOTHING, "nothing", "-n", *options)
        assert re.search(rf"^limit .*\b{limit}\b", printed, re.MULTILINE)


def test_stages_know_how_much_memory_they_have():
    """What takes --memory-mb is told what its rule asks for."""
    rules = [rule for path in (ROOT / "workflow/rules").glob("*.smk") for rule in path.read_text().split("\nrule ")[1:]]
    told = set()
    for rule in rules:
        chapter, stage = re.search(r"rnnsmt (\w+) ([\w-]+) ", rule.split("shell:")[1]).groups()
        parser = argparse.ArgumentParser()
        import_module(STAGES[chapter][stage].module).add_arguments(parser)
        takes = "--memory-mb" in parser.format_help()
        assert takes == ("--memory-mb {resources.mem_mb}" in rule), rule
        told |= {stage} if takes else set()
    assert {"models", "select", "extract", "estimate"} <= told


def test_a_job_of_a_cluster(workflow, tmp_path, monkeypatch):
    """What sbatch is asked for. Nobody says there how many cores a machine has."""
    pytest.importorskip("snakemake_executor_plugin_slurm")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("squeue", "sacct", "sinfo", "scontrol", "scancel", "sacctmgr", "sbatch"):
        action = f'echo "$@" >> {tmp_path}/asked; exit 1' if name == "sbatch" else "exit 0"
        (programs / name).write_text(f"#!/bin/sh\n{action}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    command = [part for part in workflow.command() if part not in ("--cores", "2")]
    profile = ["--profile", str(ROOT / "workflow/profiles/slurm"), "--retries", "0", "--latency-wait", "1"]
    profile += ["--slurm-init-seconds-before-status-checks", "1"]
    done = subprocess.run([*command, *profile], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 1, done.stderr
    assert "-t 10 --mem 500 " in asked[0]
    assert (workflow.folder / ".snakemake/jobs-elsewhere").exists()
    assert "--target-jobs 'demo:'" in asked[0]


def test_external_alignment(workflow):
    (workflow.folder / "mine.align").write_text("0-0\n")
    jobs = workflow.plan("--config", "alignment={external: mine.align}")
    assert jobs["check_alignment"] == 1
    assert "align_words" not in jobs


def test_a_corpus_kept_whole_is_not_scored(workflow):
    everything = workflow.plan("--config", "selection={bitext: 1, mono: 1}")
    assert not [rule for rule in everything if rule.startswith("selection")]


def test_in_domain_text_of_one_language(workflow):
    """Monolingual in-domain text goes into the models of its own language."""
    config = workflow.folder / "mine.yaml"
    config.write_text(
        "corpora:\n"
        "  - {name: general, role: bitext, source: results/demo/general.en.gz, target: results/demo/general.fr.gz}\n"
        "  - {name: gazette, role: mono, in_domain: true, target: results/demo/mono.fr.gz}\n"
        "  - {name: tuning, role: dev, source: results/demo/dev.en, target: results/demo/dev.fr}\n"
        "  - {name: tested, role: test, source: results/demo/test.en, target: results/demo/test.fr}\n"
    )
    plan = workflow.call("--dry-run", "--configfile", str(config))
    assert plan.returncode == 0, plan.stdout + plan.stderr
    inputs = {
        job.split("wildcards: kind=")[1].splitlines()[0]: job.split("input: ")[1].splitlines()[0]
        for job in (plan.stdout + plan.stderr).split("rule selection_models:")[1:]
    }
    assert {kind: "gazette" in files for kind, files in inputs.items()} == {
        "bitext, lang=en": False,
        "bitext, lang=fr": True,
        "mono, lang=fr": True,
    }


def test_the_baseline_alone_needs_no_network(workflow):
    jobs = workflow.plan("--config", "compare=[baseline]")
    assert jobs["mert"] == 3
    assert not set(NETWORKS) & set(jobs)


SYSTEMS = {
    "cslm": CSLM | {"rnn_prepare": 1, "augmented_ini": 1},
    "baseline_wp": {"rnn_prepare": 1, "shortlist": 1, "augment": 1, "augmented_ini": 1},
    "cslm_rnn_wp": RNN | CSLM | {"shortlist": 1},
}
"""What is computed for a system besides the baseline's model."""


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_needs_its_own_features_only(workflow, system):
    jobs = workflow.plan("--config", f"compare=[{system}]")
    assert {rule: jobs[rule] for rule in NETWORKS if jobs[rule]} == SYSTEMS[system]
    assert jobs.items() >= {"filter_tables": 2, "mert": 3, "decode": 3, "score": 3}.items()


def test_systems_with_the_same_columns_share_the_table(workflow):
    jobs = workflow.plan("--config", "systems={other: {features: [rnn]}}", "compare=[baseline, rnn, other]")
    assert jobs.items() >= (RNN | {"filter_tables": 4, "mert": 9, "decode": 18}).items()


def test_parts_of_the_scoring(workflow):
    jobs = workflow.plan("--set-scatter", "rnn_score=5")
    assert (jobs["rnn_score"], jobs["augment"]) == (5, 3)


def test_the_parts_of_the_scoring_share_the_cores(workflow):
    plan = workflow.call("--dry-run", "--cores", "12", "--config", "rnn={device: cpu}").stdout
    jobs = plan.split("\nrule rnn_score:\n")[1:]
    assert len(jobs) == 2
    assert all("threads: 6" in job.split("\nrule ")[0] for job in jobs)
    assert all("device=cpu" in job.split("\nrule ")[0] for job in jobs)


def test_one_gpu_job_at_a_time(workflow):
    """Without a cap Snakemake would start all jobs that take a GPU at once, on the same device."""
    common = ["--config", "rnn={device: cuda}", "demo={scale: 0.02}", "--until", "demo", "--forcerun", "demo"]
    for options, expected in (([], 1), (["--resources", "gpu=3"], 3)):
        done = workflow.call(*options, *common)
        assert done.returncode == 0, done.stderr
        assert f'Provided resources: gpu=Resource("gpu", {expected})' in done.stderr
    plan = workflow.call("--dry-run", "--config", "rnn={device: cuda}").stdout
    jobs = plan.split("\nrule ")
    networks = [job for job in jobs if job.startswith(("rnn_train:", "rnn_score:", "cslm_train:"))]
    assert len(networks) == 4
    assert all("gpu=1" in job for job in networks)
    searches = [job for job in jobs if job.startswith(("mert:", "decode:"))]
    assert len(searches) == 72
    assert all(("gpu=1" in job) == ("system=cslm" in job) for job in searches)


def test_the_table_knows_what_systems_are_made_of(workflow):
    """By their features, not by their names; and only the joined dev text is one that MERT saw."""
    settings = ["systems={rnn_big: {features: [rnn]}}", "compare=[baseline, rnn_big]"]
    command = workflow.commands("table1", *settings)
    assert "--features baseline= rnn_big=rnn --dev-set dev " in command


def test_settings_of_the_search_and_of_mert(workflow):
    """The CSLM's limit is of the systems that have one only: the others do not depend on it."""
    settings = ["search={cslm_cells: 77}", "tuning={combine: best, patience: 5}", "compare=[baseline, cslm]"]
    commands = workflow.commands("mert", *settings).split("rnnsmt tuning mert ")[1:]
    assert len(commands) == 6
    assert all("--combine best --max-iterations 6 --patience 5" in command for command in commands)
    assert all(("--cslm-cells 77" in command) == ("/cslm/" in command) for command in commands)


def test_lower_case_everywhere(workflow):
    commands = workflow.commands("raw_reference", "text={lowercase: true}")
    assert "--no-escape --lowercase --keep-all" in commands
    assert "--no-detruecase" in workflow.commands("score", "text={lowercase: true}")
    assert "--no-detruecase" not in workflow.commands("score", "text={lowercase: false}")


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("rnn={settings: {hiden: 3}}", "rnn.settings: unknown key hiden; did you mean hidden?"),
        ("rnn={preset: papr}", "did you mean paper?"),
        ("systems={rnn: {features: [rn]}}", "did you mean rnn?"),
        ("tuning={run: 3}", "tuning: unknown key run; did you mean runs?"),
        ("data_dir=/not/there", "data_dir: /not/there is no folder"),
        ("compare=[basline]", "did you mean baseline?"),
    ],
)
def test_mistakes_are_readable(workflow, setting, sentence):
    done = workflow.call("--dry-run", "--config", setting)
    assert done.returncode != 0
    assert sentence in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_corpus_file_is_named(workflow):
    config = ROOT / "workflow/configs/mini-wmt.yaml"
    done = workflow.call("--dry-run", "--configfile", str(config), "--config", f"data_dir={workflow.folder}")
    assert done.returncode != 0
    assert "laws.en.xz" in done.stdout + done.stderr


@pytest.fixture
def killed(workflow) -> Workflow:
    """A folder as a run leaves it that was killed while it made the embedded corpus."""
    assert workflow.call(*DEMO).returncode == 0
    state = workflow.folder / ".snakemake"
    (state / "locks").mkdir(exist_ok=True)
    (state / "locks/0.output.lock").write_text("results/demo/dev.en\n")
    (state / "incomplete" / base64.urlsafe_b64encode(b"results/demo/dev.en").decode()).write_text(
        '{"external_jobid": null}'
    )
    (workflow.folder / "results/demo/dev.en").write_text("half a")
    return workflow


DEMO = ("--config", "demo={scale: 0.02}", "--until", "demo")
LEFT = "results/demo/dev.en"


def test_a_killed_run_goes_on(killed):
    """Plans and the like remove nothing, nor does the Snakemake of a job; the same command does."""
    inside = ("--mode", "remote", "--nolock", "--ignore-incomplete", *DEMO)
    for options in (["--dry-run", *DEMO], ["--lint"], ["--summary"], ["--touch", *DEMO], inside):
        killed.call(*options)
        assert (killed.folder / LEFT).read_text() == "half a", options
        assert (killed.folder / ".snakemake/locks/0.output.lock").exists(), options
        assert list(killed.folder.glob(".snakemake/incomplete/*=")), options
    assert killed.plan(*DEMO) == {"demo": 1}
    done = killed.call(*DEMO)
    assert done.returncode == 0, done.stderr
    assert len((killed.folder / LEFT).read_text()) > 100


def test_what_a_cluster_may_still_work_on_is_left_alone(killed):
    (killed.folder / ".snakemake/jobs-elsewhere").touch()
    done = killed.call(*DEMO)
    assert done.returncode != 0
    assert "--rerun-incomplete" in done.stderr
    assert (killed.folder / LEFT).read_text() == "half a"
    assert killed.call("--unlock").returncode == 0
    assert killed.call("--rerun-incomplete", *DEMO).returncode == 0
    assert len((killed.folder / LEFT).read_text()) > 100
    assert not (killed.folder / ".snakemake/jobs-elsewhere").exists()


def test_lint_is_clean(workflow):
    done = workflow.call("--lint")
    assert done.returncode == 0, done.stdout + done.stderr


def test_snakefmt_is_clean():
    command = [sys.executable, "-m", "snakefmt", "--check", "Snakefile", "workflow"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_bad_corpus_is_told_and_can_be_mended(workflow):
    """The sentence is on the terminal and in the log; with the corpus mended the same command goes on."""
    text = "".join(f"line {number} of this text\n" for number in range(30))
    for name in ("train.en", "train.fr", "dev.en", "dev.fr"):
        (workflow.folder / name).write_text(text)
    (workflow.folder / "train.fr").write_bytes(b"\xff\n" * 30)
    config = workflow.folder / "mine.yaml"
    config.write_text(
        "corpora:\n"
        "  - {name: mine, role: bitext, source: train.en, target: train.fr}\n"
        "  - {name: tuning, role: dev, source: dev.en, target: dev.fr}\n"
        "  - {name: tested, role: test, source: dev.en, target: dev.fr}\n"
    )
    options = ["--configfile", str(config), "--until", "prepare_bitext"]
    done = workflow.call(*options)
    assert done.returncode != 0
    sentence = "rnnsmt corpus prepare: error: train.en and train.fr: none of 30 lines is left after cleaning"
    assert sentence in done.stderr
    assert sentence in next(workflow.folder.glob("results/logs/**/*mine*.log")).read_text()
    assert not list(workflow.folder.rglob(".tmp-*"))
    assert not list(workflow.folder.glob("results/corpus/tokenized/mine*"))
    (workflow.folder / "train.fr").write_text(text)
    assert workflow.call(*options).returncode == 0
