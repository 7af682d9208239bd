"""The jobs planned for a configuration, and errors that are reported before a run."""

import base64
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import psutil
import pytest
import yaml

from rnnsmt.cli import command_parser
from rnnsmt.plan.paths import TABLE_BINARY
from rnnsmt.search.options import MOST_NEURAL_MEGABYTES
from tests.workflow import test_slurm
from tests.workflow.conftest import ROOT, Workflow, copy_of_checkout, report_counts_all_jobs

BASELINE = {"align_words": 4, "symmetrize": 2, "lexical": 1, "extract": 1, "phrase_scores": 1, "reordering_scores": 1}
RNN = {"rnn_prepare": 1, "train_network rnn": 1, "score_column": 2, "augment": 1, "augmented_ini": 1}
CSLM = {"cslm_prepare": 1, "train_network cslm": 1, "cslm_perplexity": 1}
NNJM = {"nnjm_prepare": 1, "train_network nnjm": 1}
NETWORKS = RNN | CSLM | NNJM | {"score_column": 3, "augment": 3, "augmented_ini": 8}
"""All systems of the table: tables with the columns rnn, wp, rnn and wp; each without and with the CSLM; the NNJM."""


_FILES = [path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk")]
RULES = {block.split(":")[0]: block for text in _FILES for block in re.split(r"\n *rule ", text)[1:]}
RULES |= {new: RULES[old] for text in _FILES for old, new in re.findall(r"\n *use rule (\w+) as (\w+) with", text)}
"""The text of every rule but ``all``, by its name; of a rule that changes another one, the text of the latter."""


def assert_absent(jobs, *rules: str) -> None:
    """Check that rules exist and are not in a plan."""
    assert {rule.split()[0] for rule in rules} <= set(RULES)
    assert not set(rules) & set(jobs)


def test_the_demo_corpus(plan):
    assert plan.items() >= (BASELINE | NETWORKS | {"mert": 9, "decode": 9, "score": 9, "table1": 1}).items()
    assert plan.items() >= {"demo": 1, "selection_score_bitext": 1, "selection_score_mono": 2, "provenance": 1}.items()
    assert_absent(plan, "fetch", "unpack")


def test_commands_of_the_demo_corpus(plans):
    """Its networks are small, jobs of one machine have ten years, and options that are not set are not passed."""
    for stage, jobs in (("networks train", 3), ("tuning tune", 9)):
        limits = re.findall(rf"rnnsmt {stage} .* --time-limit \$\(\((\d+) \* 60\)\) &>", plans.dry_run().stdout)
        assert limits == [str(10 * 365 * 1440)] * jobs
    assert plans.commands("train_network").count("--preset demo ") == 3
    assert "--vocab-size 1500 " in plans.commands("rnn_prepare")
    assert "--prune" not in plans.commands("language_model")
    assert "--no-detruecase" not in plans.commands("score")
    assert "--random" not in plans.commands("select_bitext")


MULTI30K = ("--configfile", str(ROOT / "workflow/configs/multi30k.yaml"))


def test_multi30k_raw(plans):
    """Every file is downloaded once, and checked; the held-out set is separated from the training text."""
    jobs = plans.plan(*MULTI30K)
    texts = {"fetch": 8, "separate": 2, "prepare_bitext": 5, "train_truecaser": 2, "truecase": 7, "raw_reference": 4}
    networks = dict.fromkeys(("train_network rnn", "train_network cslm", "cslm_perplexity"), 3) | {"score_column": 7}
    systems = {"augment": 6, "augmented_ini": 9, "mert": 4, "decode": 4}
    assert jobs.items() >= (BASELINE | texts | networks | systems).items()
    assert_absent(jobs, "train_network nnjm")
    said = plans.dry_run(*MULTI30K).stdout
    assert len(re.findall(r"corpus fetch --url https://\S+ +--sha256 [0-9a-f]{64} ", said)) == 8
    files = r"corpus separate --bitext \S+/train.en.gz \S+/train.fr.gz"
    held_out, training = (
        re.search(rf"{files} {option} ([\d ]+) --", said)[1] for option in ("--lines", "--without-lines")
    )
    assert held_out == training
    assert len(held_out.split()) == 982
    assert re.search(r"evaluation table .* --joint flickr=\S+ .* --paper ", said)
    assert "--optimizer mert" in said


OWN = """
corpora:
- {name: opus, role: bitext, file: en-fr.txt.zip, members: {source: a b.en, target: c.fr},
   download: {file: {url: 'https://example.org/en-fr.txt.zip', sha256: null, mirrors: ['ftp://x/y.zip']}}}
- {name: own, role: bitext, file: own.tmx, check: false}
- {name: gazette, role: mono, in_domain: true, target: gazette.fr}
- {name: dev, role: dev, file: dev.tsv, columns: [4, 2]}
- {name: test, role: test, file: test.clean}
alignment: {external: mine.align}
compare: [baseline, cslm, nnjm]
"""
"""Corpora of one file, monolingual in-domain text, and an alignment that was made elsewhere."""


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> tuple[Workflow, tuple[str, ...]]:
    """Return a directory with the files of ``OWN``, and the options of its plan."""
    workflow = Workflow(tmp_path_factory.mktemp("own"))
    for name in ("own.tmx", "dev.tsv", "test.clean.en", "test.clean.fr.gz", "gazette.fr", "mine.align"):
        (workflow.directory / name).write_text(f"{name}\tb\n")
    (workflow.directory / "own.yaml").write_text(OWN + f"data_dir: {workflow.directory}\n")
    return workflow, ("--configfile", str(workflow.directory / "own.yaml"))


def test_corpora_of_one_file(own):
    """Corpora of one file are separated: a downloaded archive, a TMX file, a TSV file with columns, a prefix."""
    workflow, options = own
    data = workflow.directory
    jobs = workflow.plan(*options)
    assert jobs.items() >= {"fetch": 1, "separate": 3, "prepare_bitext": 4, "raw_reference": 2}.items()
    said = workflow.dry_run(*options).stdout
    for command in (
        r"corpus fetch --url https://example.org/en-fr.txt.zip --mirror ftp://x/y.zip --sha256 none",
        r"corpus separate --bitext results/downloads/\S+/en-fr.txt.zip --members 'a b.en' c.fr --source-lang en",
        rf"corpus separate --bitext {data}/own.tmx +--source-lang en --target-lang fr",
        rf"corpus separate --bitext {data}/dev.tsv --columns 4 2 --source-lang en",
        rf"corpus prepare --source {data}/test.clean.en --target {data}/test.clean.fr.gz --source-lang en",
        r"corpus prepare --source results/corpus/separated/opus.en.gz --target results/corpus/separated/opus.fr.gz",
        rf"--inputs results/downloads/\S+/en-fr.txt.zip {data}/own.tmx {data}/gazette.fr {data}/dev.tsv",
    ):
        assert re.search(command, said), command


def test_checks_of_a_corpus(own):
    """A corpus is checked when it is prepared, unless `check` is false; raw text of a checked side is not."""
    workflow, options = own
    commands = [
        command
        for rule in ("prepare_bitext", "prepare_mono", "raw_reference")
        for command in workflow.commands(rule, *options).split("rnnsmt corpus prepare ")[1:]
    ]
    unchecked = [command for command in commands if "--no-check" in command]
    assert len(commands) == 7
    assert sum("separated/own.en.gz" in command for command in unchecked) == 1
    assert all("separated/own.en.gz" in command or "results/corpus/raw/" in command for command in unchecked)


def test_external_alignment(own):
    workflow, options = own
    assert_absent(workflow.plan(*options), "align_words", "symmetrize")
    for rule in ("nnjm_prepare", "extract", "lexical"):
        assert "--alignment mine.align " in workflow.commands(rule, *options)


def test_in_domain_text_of_one_language(own):
    """Monolingual in-domain text is used in the models of its own language only."""
    workflow, options = own
    models = workflow.dry_run(*options).stdout.split("rule selection_models:")[1:]
    inputs = {
        job.split("wildcards: kind=")[1].splitlines()[0]: job.split("input: ")[1].splitlines()[0] for job in models
    }
    assert {kind: "gazette" in files for kind, files in inputs.items()} == {
        "bitext, lang=en": False,
        "bitext, lang=fr": True,
        "mono, lang=fr": True,
    }


def test_own_corpora_have_larger_networks_than_the_demo_corpus(own):
    workflow, options = own
    assert workflow.commands("train_network", *options).count("--preset small ") == 2
    assert "--vocab-size 15000 " in workflow.commands("nnjm_prepare", *options)


def test_the_experiment_of_the_paper_without_its_data(plans):
    """The plan of WMT 2014 does not require its data; it includes the downloads."""
    jobs = plans.plan("--configfile", str(ROOT / "workflow/configs/wmt14.yaml"))
    expected = {"fetch": 14, "unpack": 16, "prepare_bitext": 8, "prepare_mono": 7, "raw_reference": 3}
    expected |= {"selection_score_bitext": 5, "selection_score_mono": 12, "mert": 6, "decode": 6}
    expected |= {
        "align_words": 2,
        "symmetrize": 1,
        "augment": 0,
        "select_pairs": 6,
        "augmented_ini": 5,
    }  # one aligner; columns rnn, rnn and wp, which are not exported
    found = {rule: jobs[rule] for rule in BASELINE | NETWORKS | expected}
    assert found == BASELINE | NETWORKS | expected


CLUSTER = (
    *("--cores", "99", "--resources", "gpu=8", "--set-scatter", "column=5"),
    *("--config", "cluster=true", "job_hours=4", "rnn={device: cuda}"),
)


def jobs_of(text: str) -> list[tuple[str, str]]:
    """Return the rule and the text of every job of a plan."""
    return [(job.split(":")[0], job) for job in text.split("\nrule ")[1:]]


def test_threads_on_a_cluster(plans):
    """On a cluster, the threads do not depend on the machine that submits the jobs."""
    few = {
        "prepare_bitext": 8,
        "extract": 8,
        "augment": 8,
        "train_network": 4,
        "score_column": 4,
        "decode": 8,
        "score": 1,
    }
    expected = few | {"align_words": 16, "mert": 16}
    jobs = dict(jobs_of(plans.dry_run(*CLUSTER).stdout))
    threads = {rule: re.search(r"^ *threads: (\d+)$", job, re.M) for rule, job in jobs.items()}
    assert {rule: int(threads[rule][1]) if threads[rule] else 1 for rule in expected} == expected


def test_only_clusters_limit_the_time(plans):
    """Long rules pass their time limit to their stages."""
    plan = plans.dry_run(*CLUSTER).stdout
    assert max(map(int, re.findall(r"runtime=(\d+)", plan))) == 240
    for stage, jobs in (("networks train", 3), ("tuning tune", 27)):
        assert re.findall(rf"rnnsmt {stage} .* --time-limit \$\(\((\d+) \* 60\)\) &>", plan) == ["240"] * jobs


def test_parts_of_the_scoring(plans):
    """The column of a network has as many jobs as shards, that of the word penalty has one."""
    jobs = plans.plan(*CLUSTER)
    assert (jobs["score_column"], jobs["augment"]) == (6, 3)


def test_gpus_of_a_cluster(plans):
    """Searches with a network request a GPU."""
    searches = [job for rule, job in jobs_of(plans.dry_run(*CLUSTER).stdout) if rule in ("mert", "decode")]
    assert len(searches) == 27 + 9
    neural = ("system=cslm", "system=nnjm")
    assert all(("gpu=1" in job) == any(system in job for system in neural) for job in searches)


def test_gpu_and_cores_of_one_machine(plans):
    """Networks have a GPU, which searches share; the parts of the scoring share the cores."""
    jobs = jobs_of(plans.dry_run("--cores", "12", "--config", "rnn={device: cuda}").stdout)
    networks = [job for rule, job in jobs if rule in ("train_network", "score_column")]
    assert len(networks) == 6
    assert [job for job in networks if "gpu=1" not in job] == [job for job in networks if "column=wp" in job]
    searches = [job for rule, job in jobs if rule in ("mert", "decode")]
    assert len(searches) == 18
    assert not any("gpu=1" in job for job in searches)
    scoring = [job for rule, job in jobs if rule == "score_column"]
    of_network, (other,) = ([job for job in scoring if ("column=rnn" in job) == which] for which in (True, False))
    assert len(of_network) == 2
    assert all("threads: 6" in job and "device=cuda" in job for job in of_network)
    assert "threads: " not in other, "one, which is not printed"


def test_every_rule_asks_for_memory_and_time():
    """Every rule requests memory and time; otherwise the default of a cluster would end it."""
    assert len(RULES) > 40
    for rule in (rule for rule in RULES.values() if "shell:" in rule):
        assert "        mem_mb=" in rule, rule
        assert "        runtime=" in rule, rule


def call_with(workflow: Workflow, lines: str, *options: str, **environment: str) -> subprocess.CompletedProcess:
    """Run Snakemake with a Snakefile of these lines and the shared rule files."""
    shared = "".join(f"include: {str(ROOT / 'workflow/rules' / name)!r}\n" for name in ("common.smk", "resources.smk"))
    (workflow.directory / "Snakefile").write_text(shared + lines)
    own = Workflow(workflow.directory, workflow.directory / "Snakefile")
    return own.call("--workflow-profile", str(ROOT / "profiles/default"), *options, **environment)


def test_a_further_attempt_gets_more(workflow):
    """Requests for memory and time grow with the input and the attempt; shards share the time."""
    (workflow.directory / "text").write_bytes(bytes(3 << 20))
    rule = """
rule grows:
    input: "text"
    output: "{scatteritem}.out"
    retries: 2
    resources:
        mem_mb=megabytes(100, 10), most=megabytes(100, 10, most=110),
        runtime=minutes(5, 2), part=minutes(5, 2, parts_of)
    shell:
        "echo {resources.mem_mb} {resources.most} {resources.runtime} {resources.part} >> tries; "
        "[ $(wc -l < tries) -gt 2 ] > {output}"
"""
    done = call_with(workflow, rule, "1-of-3.out")
    assert done.returncode == 0, done.stderr
    assert (workflow.directory / "tries").read_text() == "130 110 11 7\n260 220 22 14\n390 330 33 21\n"


def test_more_hypotheses_for_the_networks_need_more_memory(workflow):
    """The memory of a search for the n-grams of its networks grows with ``cslm_cells`` above 100, up to its limit."""
    model = workflow.directory / "cslm/network1/model.safetensors"
    model.parent.mkdir(parents=True)
    for path in (model, workflow.directory / "text"):
        path.write_bytes(bytes(1 << 14))
    rules = """
from dataclasses import replace
for cells in (50, 100, 1000, 100_000):
    settings = replace(settings, search=replace(settings.search, cslm_cells=cells))
    rule:
        name: f"searches_{cells}"
        input: source="text", lm="text", network=["cslm/network1/model.safetensors"]
        output: f"{cells}.out"
        resources: mem_mb=search_megabytes(100, 0, neural=(200, 8000))
        shell: "touch {output}"
"""
    expected = {50: 425, 100: 425, 1000: 1550, 100_000: int(100 + MOST_NEURAL_MEGABYTES)}
    plan = call_with(
        workflow, rules, "--dry-run", "--config", "cluster=true", "--", *(f"{cells}.out" for cells in expected)
    )
    memory = {rule: int(re.search(r"mem_mb=(\d+)", job)[1]) - 300 for rule, job in jobs_of(plan.stdout)}
    assert memory == {f"searches_{cells}": megabytes for cells, megabytes in expected.items()}, plan.stderr


def test_a_machine_has_no_more_memory_than_it_has(workflow):
    """A job requests at most the memory of all jobs, and any amount on a cluster, with that of Snakemake in the job."""
    rule = 'rule large:\n    output: "large"\n    resources: mem_mb=megabytes(10**9)\n    shell: "touch {output}"\n'
    memory = int(0.85 * psutil.virtual_memory().total / 1e6)
    for options, expected in (
        ([], memory),
        (["--resources", "mem_mb=1000"], 1000),
        (["--config", "cluster=true"], 10**9 + 300),
    ):
        plan = call_with(workflow, rule, "large", "--dry-run", *options).stdout
        assert int(re.search(r"resources: .*mem_mb=(\d+)", plan).group(1)) == expected


NOTHING = 'rule nothing:\n    output: "nothing"\n    shell: "command -v rnnsmt > {output}"\n'


def test_the_command_must_be_on_path(workflow):
    """A message says how to activate the environment."""
    done = call_with(workflow, NOTHING, "nothing", PATH="/usr/bin:/bin")
    assert done.returncode != 0
    assert "PATH" in done.stdout + done.stderr and f"source {Path(sys.executable).parent}" in done.stdout + done.stderr


def test_the_jobs_of_a_machine_share_its_memory_and_gpu(workflow):
    """Jobs share 85 % of the memory and one GPU, unless mem_mb and gpu are given."""
    there = int(0.85 * psutil.virtual_memory().total / 1e6)
    for options, memory, gpus in (([], there, 1), (["--resources", "mem_mb=777", "gpu=3"], 777, 3)):
        assert call_with(workflow, NOTHING, "nothing", "--force", *options).returncode == 0
        (provided,) = re.findall("^Provided resources: .*$", workflow.log(), re.M)
        assert re.search(rf"\b{memory}\b", provided) and f'Resource("gpu", {gpus})' in provided


def test_a_printed_command_can_be_pasted(plans, tmp_path):
    """A printed command can be executed in an active environment."""
    command = plans.commands("demo").strip().splitlines()[0].replace("--scale 1.0", "--scale 0.02")
    assert "--scale 0.02" in command
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    (tmp_path / "results/demo").mkdir(parents=True)
    (tmp_path / "results/logs/corpus").mkdir(parents=True)
    subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "results/demo/test.fr").stat().st_size > 100


def test_one_image_and_one_environment(workflow):
    """All rules have one image, and one conda environment is that of Snakemake itself, without copies in the rules."""
    assert not [rule for rule, block in RULES.items() if re.search(r"^ *(conda|container):", block, re.M)]
    common = (ROOT / "workflow/rules/common.smk").read_text()
    (environment,) = re.findall(r'^conda: "../../(.*)"$', common, re.M)
    assert len(re.findall(r"^container: ", common, re.M)) == 1
    packages = yaml.safe_load((ROOT / environment).read_text())["dependencies"][-1]["pip"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    ((name, of_rules),) = re.findall(r"^(\w+)\[(.*)\]==", packages[0])
    assert len(packages) == 1 and name == "rnnsmt"
    assert set(of_rules.split(",")) <= set(extras)


def test_the_commands_of_all_jobs_are_valid(plans, many):
    """The parser of every command accepts the options of its jobs, with any number for what is known later."""
    runs = plans.dry_run(), plans.dry_run(*many), plans.dry_run(*TABLE2)
    found = [command for run in runs for command in re.findall(r"Shell command: (.*)", run.stdout)]
    parts = [part.partition(" &> ")[0] for command in found for part in command.split(" && ")]
    commands = [part for part in parts if part.startswith("rnnsmt ")]
    assert len(commands) > 100
    for command in commands:
        _, package, name, *options = shlex.split(re.sub(r"<TBD>|\$\(\(.*?\)\)", "9", command))
        command_parser(package, name, words=options).parse_args(options)


def test_stages_know_how_much_memory_they_have():
    """Stages with --memory-mb are called with the memory that their rule requests."""
    told = set()
    for rule in (rule for rule in RULES.values() if "shell:" in rule):
        package, stage = re.search(r"rnnsmt (\w+) ([\w-]+) ", rule.split("shell:")[1]).groups()
        takes = "--memory-mb" in command_parser(package, stage).format_help()
        assert takes == ("--memory-mb {resources.mem_mb}" in rule), rule
        told |= {stage} if takes else set()
    assert {"models", "select", "extract", "estimate"} <= told


def test_the_rules_of_the_cluster_tests(tmp_path):
    """Plan the rules of tests that require Slurm, so that a change of the shared rule files is noticed without it."""
    (tmp_path / "Snakefile").write_text(test_slurm.SHARED + test_slurm.MORE_MEMORY + test_slurm.TWO_RULES)
    jobs = Workflow(tmp_path, tmp_path / "Snakefile").plan("large", "second", "--config", "cluster=true")
    assert jobs == {"large": 1, "both": 1, "long": 1}


def test_systems_need_their_own_features_only(plans):
    """Without a network and with the word penalty, nothing is trained; a corpus that is kept whole is not scored."""
    jobs = plans.plan("--config", "compare=[baseline, baseline_wp]", "selection={bitext: 1, mono: 1}")
    expected = {"rnn_prepare": 1, "score_column": 1, "augment": 1, "augmented_ini": 1}
    assert {rule: jobs[rule] for rule in NETWORKS if jobs[rule]} == expected
    assert jobs.items() >= {"mert": 2, "decode": 2, "score": 2}.items()
    assert not [rule for rule in jobs if rule.startswith("selection")]


MANY = {
    "networks": {"seeds": 2},
    "tuning": {"runs": 4, "iterations": 5, "optimizer": "mira"},
    "search": {"cslm_cells": 77},
    "lm": {"prune": [0, 0, 1]},
    "text": {"lowercase": True},
    "selection": {"random": True},
    "rnn": {"settings": {"hidden": 50}},
    "cslm": {"unknown": "word"},
    "nnjm": {"settings": {"window": 3}},
    "seq2seq": {"networks": {"lstm": {}, "lstm_forward": {"source_order": "forward"}}},
    "systems": {
        "mine": {"features": ["rnn", "wp"]},
        "other": {"features": ["wp", "rnn"]},
        "lstm_forward": {"network": "lstm_forward"},
        "baseline+lstm_pair": {"rescores": "baseline", "network": "lstm", "ensemble": 2, "weight": "even"},
    },
    "compare": [
        *("baseline", "mine", "other", "cslm", "nnjm", "cslm_nnjm"),
        *("baseline+cslm", "lstm_forward", "baseline+lstm_pair"),
    ],
}
"""Settings that differ from the defaults, and all kinds of systems, with two training runs of every network."""


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> tuple[str, ...]:
    """Return the options of the plan with the settings of ``MANY``."""
    path = tmp_path_factory.mktemp("many") / "many.yaml"
    path.write_text(json.dumps(MANY))
    return "--configfile", str(path)


def test_trainings(plans, many):
    """Every seed trains each network once, with its settings; systems with the same columns share the table."""
    jobs = plans.plan(*many)
    assert [jobs[f"train_network {network}"] for network in ("rnn", "cslm", "nnjm")] == [2, 2, 2]
    assert (jobs["score_column"], jobs["augment"], jobs["augmented_ini"]) == (5, 2, 8)
    assert (jobs["mert"], jobs["decode"], jobs["select_pairs"]) == (6, 6, 6)
    command = plans.commands("mert", *many)
    inis = " ".join(f"results/augmented/rnn_wp/network{n}/moses.ini" for n in (1, 2, 1, 2))
    directories = " ".join(f"results/augmented/rnn_wp/network{n}/selected/dev" for n in (1, 2, 1, 2))
    assert command.count(f"--ini {inis} --model-dir {directories} ") == 2
    train = plans.commands("train_network", *many)
    assert train.count("--hidden 50 --seed 1 ") == train.count("--hidden 50 --seed 2 ") == 1


def test_the_joint_model(plans, many):
    """The joint model is trained with the links of one aligner, once for every seed, and used by the search."""
    prepare = plans.commands("nnjm_prepare", *many)
    texts = "--source results/corpus/joined/train.en.gz --target results/corpus/joined/train.fr.gz"
    links = "--alignment results/align/model4/aligned.grow-diag-final-and.gz"
    assert f"{texts} {links} --vocab-size 1500 --output-dir results/nnjm/examples " in prepare
    train = plans.commands("train_network", *many)
    assert [train.count(f"--preset demo --window 3 --seed {seed} ") for seed in (1, 2, 3)] == [1, 1, 0]
    networks = [f"results/nnjm/network{n}/model.safetensors" for n in (1, 2)]
    assert all(f"--output-model {path} " in train for path in networks)
    inis = plans.commands("augmented_ini", *many)
    assert all(f"--network nnjm=../nnjm/network{n}/model.safetensors --unknown nnjm=class " in inis for n in (1, 2))
    assert (
        "--network cslm=../cslm/network1/model.safetensors --unknown cslm=word "
        "--network nnjm=../nnjm/network1/model.safetensors " in inis
    )
    own = plans.commands("provenance", *many)
    assert all(
        f"nnjm{n}=results/nnjm/network{n}/model.safetensors=results/nnjm/network{n}/history.json" in own for n in (1, 2)
    )


def test_the_networks_of_a_comparison(plans, many):
    """The comparison of two systems loads the networks of one run."""
    jobs = [job for rule, job in jobs_of(plans.dry_run(*many).stdout) if rule == "compare_systems"]
    inputs = [re.search(r"^ *input: (.*)$", job, re.M)[1] for job in jobs if "system=cslm_nnjm" in job]
    assert len(inputs) == 2, "with the CSLM and with the NNJM alone"
    for files in inputs:
        assert re.findall(r"results/(\w+)/network(\d)/model.safetensors", files) == [("cslm", "1"), ("nnjm", "1")]


def test_searches_wait_for_all_files_of_their_models(plans, many):
    """A search reads more files than its command names: the ini names the language model and the networks."""
    jobs = [(rule, job) for rule, job in jobs_of(plans.dry_run(*many).stdout) if rule in ("mert", "decode")]
    assert len(jobs) == 12
    for rule, job in jobs:
        files = re.search(r"^ *input: (.*)$", job, re.M)[1].split(", ")
        system = re.search(r"wildcards: .*system=(\w+)", job)[1]
        networks = [f"results/{name}/network{n}/model.safetensors" for name in system.split("_") for n in (1, 2)]
        expected = [path for path in networks if path.startswith(("results/cslm/", "results/nnjm/"))]
        assert {"results/model/lm.binary.safetensors", *expected} <= set(files), rule
        assert sum(Path(path).name == TABLE_BINARY for path in files) == (2 if "rnn_wp" in job else 1)


def test_the_report_counts_the_jobs_of_the_plan(plans, many):
    """The command of the report names the logs of all jobs of the plan, also of shards, and no others."""
    for options in ((), many, CLUSTER):
        report_counts_all_jobs(plans.dry_run(*options).stdout)


TABLE2 = ("--configfile", str(ROOT / "workflow/configs/seq2seq.yaml"), "--", "results/table2.md")


def test_lists_are_scored_once_for_all_weights(plans):
    """For Table 2, lists are rescored once for all weights, by five networks of the reversed source and one other."""
    jobs = plans.plan(*TABLE2)
    assert "table1" not in jobs
    expected = {
        "seq2seq_prepare": 1,
        "train_network lstm": 5,
        "train_network lstm_forward": 1,
        "seq2seq_translate": 3,
        "nbest_lists": 2,
        "rerank": 2,
        "rerank_evenly": 4,
    }
    lists = {"rescore": 4, "tune_lists": 6, "score": 11}
    assert jobs.items() >= (expected | lists | {"mert": 2, "train_network rnn": 1, "train_network cslm": 1}).items()


def test_networks_of_lstms(plans, many):
    """Tuning runs alternate between the training runs of LSTMs; an ensemble has several networks of each."""
    train = "\n".join(
        line for line in plans.commands("train_network", *many).splitlines() if "--data results/seq2seq" in line
    )
    assert [train.count(f"--preset demo --source-order forward --seed {seed} ") for seed in (1, 2, 3)] == [1, 1, 0]
    assert [train.count(f"--preset demo  --seed {seed} ") for seed in (1, 2, 3, 4, 5)] == [1, 1, 1, 1, 0]
    pairs = [" ".join(f"results/lstm/network{n}/model.safetensors" for n in pair) for pair in ((1, 2), (3, 4))]
    lists = plans.commands("rescore", *many)
    assert " ".join(f"--model {pairs[turn]} --model {pairs[turn]}" for turn in (0, 1, 0, 1)) in lists


def test_settings_of_the_search_and_of_tuning(plans, many):
    """Settings of search and tuning are passed on; cslm_cells only to systems with a network in the search.

    The CSLM scores words outside the shortlist in lists as in the search.
    """
    commands = plans.commands("mert", *many).split("rnnsmt tuning tune ")[1:]
    assert len(commands) == 6
    assert all("--nbest 50 --iterations 5 --optimizer mira --pop-limit" in command for command in commands)
    neural = re.compile("/cslm/|/nnjm/|/cslm_nnjm/")
    assert all(("--cslm-cells 77" in command) == bool(neural.search(command)) for command in commands)
    assert "--unknown word --device" in plans.commands("rescore", *many)


def test_the_table_knows_what_systems_are_made_of(plans, many):
    """The table gets the features of systems, and the name of the joined dev set."""
    features = "--features baseline= mine=rnn+wp other=rnn+wp cslm=cslm nnjm=nnjm cslm_nnjm=cslm+nnjm"
    command = plans.commands("table1", *many)
    assert f"{features} " in command and "--trainings 2 --dev-set dev " in command


def test_options_of_preparing_and_selecting(plans, many):
    """Dev and test sets are kept completely; the random control of selection uses the scores of the lines."""
    for kind, langs in (("bitext", "en fr"), ("mono", "fr")):
        command = plans.commands(f"select_{kind}", *many)
        assert command.count(f" --random 1 --lang {langs} --output-dir results/selection/{kind} ") == 1
    prepare = plans.commands("prepare_bitext", *many) + plans.commands("prepare_mono", *many)
    of = {command.split(".")[0]: command for command in prepare.split("--report results/corpus/tokenized/")[1:]}
    assert "--keep-all --min-lines 2 " in of["harbour-dev"]
    assert "--keep-all --threads" in of["harbour-test"]
    assert "--keep-all" not in of["harbour"] + of["general"] + of["gazette"]


def test_options_of_texts_and_of_the_language_model(plans, many):
    assert " --prune 0 0 1 --output results/model/lm.arpa.gz " in plans.commands("language_model", *many)
    assert "--no-escape --lowercase --keep-all" in plans.commands("raw_reference", *many)
    assert "--no-detruecase" in plans.commands("score", *many)


def test_mistakes_are_readable(workflow):
    """All mistakes of a configuration are reported at once, and nothing runs."""
    for settings, said in (
        (["tuning={run: 3}", "compare=[basline]"], ["tuning: unknown key run; did you mean runs?"]),
        (
            [
                "rnn={settings: {variant: supplementary, dropout: 0.2}}",
                "nnjm={settings: {weight_decay: 1, optimizer: sgd}}",
            ],
            ["rnn.settings: --dropout 0.2: ", "nnjm.settings: --weight-decay 1"],
        ),
    ):
        done = workflow.call("--dry-run", "--config", *settings)
        assert done.returncode != 0
        assert all(line in done.stdout + done.stderr for line in said)
        assert "Traceback" not in done.stdout + done.stderr


def test_a_missing_corpus_file_is_named(workflow):
    config = ROOT / "workflow/configs/mini-wmt.yaml"
    done = workflow.call("--dry-run", "--configfile", str(config), "--config", f"data_dir={workflow.directory}")
    assert done.returncode != 0
    assert f"warning: corpora[0] (laws): source: {workflow.directory}/laws.en.xz " in done.stdout + done.stderr


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory) -> Workflow:
    """Create a directory with the demo corpus."""
    workflow = Workflow(tmp_path_factory.mktemp("demo"))
    assert workflow.call(*DEMO).returncode == 0
    return workflow


@pytest.fixture
def killed(workflow, demo_run) -> Workflow:
    """Create a directory in the state of a run that was killed while it made the demo corpus."""
    subprocess.run(["cp", "-a", f"{demo_run.directory}/.", str(workflow.directory)], check=True)
    state = workflow.directory / ".snakemake"
    (state / "locks").mkdir(exist_ok=True)
    (state / "locks/0.output.lock").write_text("results/demo/dev.en\n")
    (state / "incomplete" / base64.urlsafe_b64encode(b"results/demo/dev.en").decode()).write_text(
        '{"external_jobid": null}'
    )
    (workflow.directory / "results/demo/dev.en").write_text("half a")
    return workflow


DEMO = ("--config", "demo={scale: 0.02}", "--until", "demo")
LEFT = "results/demo/dev.en"


@pytest.mark.slow
def test_a_killed_run_resumes(killed):
    """The lock of a killed run is removed by --unlock, and the same command makes its incomplete output again."""
    assert killed.call(*DEMO).returncode != 0
    assert (killed.directory / LEFT).read_text() == "half a"
    assert killed.call("--unlock").returncode == 0
    done = killed.call(*DEMO)
    assert done.returncode == 0, done.stderr
    assert len((killed.directory / LEFT).read_text()) > 100


CORPORA = [
    {"name": "train1", "role": "bitext", "source": "train1.en", "target": "train1.fr", "keep": 0.5},
    {"name": "train2", "role": "bitext", "source": "train2.en", "target": "train2.fr"},
    *({"name": f"mono{n}", "role": "mono", "target": f"mono{n}.fr"} for n in (1, 2)),
    *({"name": f"dev{n}", "role": "dev", "source": f"dev{n}.en", "target": f"dev{n}.fr"} for n in (1, 2)),
    *({"name": f"test{n}", "role": "test", "source": f"test{n}.en", "target": f"test{n}.fr"} for n in (1, 2)),
]
"""Two corpora of every role."""


def with_settings(name: str, **settings: str | float) -> list[dict]:
    """Return ``CORPORA`` with other settings of one corpus."""
    return [entry | (settings if entry["name"] == name else {}) for entry in CORPORA]


def exchanged(name: str, other: str) -> list[dict]:
    """Return ``CORPORA`` with two corpora exchanged."""
    entries = {entry["name"]: entry for entry in CORPORA}
    places = {name: other, other: name}
    return [entries[places.get(listed, listed)] for listed in entries]


def touched(workflow: Workflow, config: dict, *targets: str) -> list[str]:
    """Mark any content as the up-to-date results of these settings; return the options of the run."""
    path = workflow.directory / "mine.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    options = ["--configfile", str(path)]
    plan = workflow.call("--dry-run", "--forceall", *targets, *options).stdout
    for name in re.findall(r"results/[^\s,]+", "\n".join(re.findall("^ *output: (.*)$", plan, re.M))):
        (workflow.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (workflow.directory / name).write_text(f"{name}\n")
    done = workflow.call("--touch", "--forceall", *targets, *options)
    assert done.returncode == 0, done.stderr
    assert not workflow.plan(*targets, *options)
    return options


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> tuple[Workflow, dict]:
    """Return a directory whose results are up to date for a configuration, and the configuration."""
    workflow = Workflow(tmp_path_factory.mktemp("recorded"))
    for number, entry in enumerate(CORPORA):
        for side in ("source", "target"):
            if side in entry:
                (workflow.directory / entry[side]).write_text(f"{side} {number}\n" * 3)
    config = {
        "corpora": CORPORA,
        "compare": ["baseline", "rnn", "cslm_rnn", "cslm"],
    }
    touched(workflow, config)
    return workflow, config


@pytest.mark.parametrize(
    ("change", "expected", "untouched"),
    [
        ({"corpora": with_settings("train2", source="train2.fr", target="train2.en")},
         {"prepare_bitext": 1, "train_truecaser": 2}, ["prepare_mono"]),
        ({"corpora": with_settings("train1", keep=0.3)},
         {"select_bitext": 1, "select_mono": 1, "join_training": 2}, ["prepare_bitext", "selection_models"]),
        ({"corpora": exchanged("dev1", "dev2")}, {"join_dev": 4, "selection_models": 3}, ["train_truecaser"]),
        ({"corpora": exchanged("train1", "train2")}, {"join_training": 2, "align_words": 4}, ["train_truecaser"]),
        ({"corpora": exchanged("mono1", "mono2")}, {"language_model": 1, "cslm_prepare": 1}, ["align_words"]),
        ({"corpora": exchanged("test1", "test2"), "compare": ["baseline", "cslm", "cslm_rnn", "rnn"]},
         {"table1": 1, "tuning_curves": 1}, ["select_pairs", "mert", "decode", "score"]),
        ({"corpora": with_settings("train2", check=False)}, {"provenance": 1, "report_page": 1}, ["prepare_bitext"]),
        ({"corpora": [*CORPORA, CORPORA[-1] | {"name": "new"}]},
         {"prepare_bitext": 1, "overlap": 1, "table1": 1, "report_page": 1},
         ["train_truecaser", "align_words", "language_model", "train_network rnn", "train_network cslm", "mert"]),
    ],
)  # fmt: skip
def test_a_change_that_names_the_same_files_and_values(recorded, tmp_path, change, expected, untouched):
    """Rules run again after changes that Snakemake misses: order of files, exchanged values, params made from input."""
    workflow, config = recorded
    path = tmp_path / "changed.yaml"
    path.write_text(yaml.safe_dump(config | change, sort_keys=False))
    jobs = workflow.plan("--configfile", str(path))
    assert jobs.items() >= expected.items()
    assert not [rule for rule in untouched if rule in jobs]


INTERRUPTED = [
    ("symmetrize", "align symmetrize", {"seed": 1}, "results/align/model4/aligned.grow-diag-final-and.gz"),
    ("language_model", "lm estimate", {"lm": {"order": 3}}, "results/model/lm.arpa.gz"),
    ("mert", "tuning tune", {"tuning": {"nbest": 30}}, "results/systems/baseline/run1/moses.ini"),
]
"""Rules, their commands, changed settings, and an output."""


def test_the_default_target_requests_every_output(plans, many):
    """Otherwise, a missing file would not be made again as long as the files made from it exist."""
    for options in ((), many):
        text = plans.dry_run(*options).stdout
        outputs = {path for paths in re.findall(r"^ {4}output: (.*)$", text, re.M) for path in paths.split(", ")}
        (inputs,) = re.findall(r"^rule all:\n {4}input: (.*)$", text, re.M)
        temporary = {path for path in outputs if path.endswith(".nbest.output")}
        assert outputs - temporary == set(inputs.split(", "))


@pytest.mark.parametrize(("rule", "command", "change", "output"), INTERRUPTED)
@pytest.mark.parametrize(
    "how", [*(pytest.param(how, marks=pytest.mark.slow) for how in ("failure", "SIGINT")), "SIGKILL"]
)
def test_no_stale_results_after_an_interrupted_job(recorded, tmp_path, rule, command, change, output, how):
    """A job with changed settings is interrupted, so that its output is gone: the next run creates it again.

    The files made from it exist, and were made with the settings of the next run.
    """
    directory = tmp_path / "run"
    subprocess.run(["cp", "-a", f"{recorded[0].directory}/.", str(directory)], check=True)
    workflow, options = Workflow(directory), ["--configfile", str(directory / "mine.yaml")]
    action = "exit 1" if how == "failure" else "touch started; sleep 600"
    program = tmp_path / "bin/rnnsmt"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$1 $2" != "{command}" ] || {{ {action}; }}\n')
    program.chmod(0o755)
    changed = tmp_path / "changed.yaml"
    changed.write_text(json.dumps(change))
    environment = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    words = workflow.command(output, "--forcerun", rule, *options, str(changed))
    with subprocess.Popen(
        words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:  # fmt: skip
        if how != "failure":
            until = time.monotonic() + 120
            while not (directory / "started").exists():
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.1)
            os.killpg(process.pid, getattr(signal, how))
        assert process.wait(60)
    assert not (directory / output).exists()
    if how == "SIGKILL":
        assert workflow.call("--unlock", *options).returncode == 0
    jobs = Workflow(directory).plan(*options)
    assert jobs[rule] and jobs["table1"] == 1, jobs


BARE = """
import sys
from pathlib import Path

sys.path[:] = [path for path in sys.path if not Path(path, "rnnsmt").is_dir()]
sys.modules |= dict.fromkeys(["numba", "torch", "duckdb", "sacrebleu"])
from snakemake.cli import main

main(["--lint"])
"""
"""Lint without the package and its dependencies, as the workflow catalogue does."""


def test_lint_is_clean_without_the_package_too(tmp_path):
    copy_of_checkout(tmp_path)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
        "PATH": "/usr/bin:/bin"
    }
    command = [sys.executable, "-c", BARE]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in a good condition" in done.stdout + done.stderr


def test_one_configuration_in_a_checkout(tmp_path):
    """config/config.yaml, the place of deployed copies, is not a second configuration that is silently ignored."""
    assert (ROOT / "config/config.yaml").resolve() == ROOT / "config.yaml"
    workflow = Workflow(tmp_path, copy_of_checkout(tmp_path))
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text("compare: [baseline]\n")
    done = workflow.call("--dry-run")
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert f"{tmp_path}/config/config.yaml" in said and f"{tmp_path}/config.yaml" in said


def test_snakefmt_is_clean():
    command = [sys.executable, "-m", "snakefmt", "--check", "Snakefile", "workflow"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_invalid_corpus_is_reported_and_can_be_corrected(workflow):
    """An invalid corpus is reported on the terminal and in the log; after a fix, the same command resumes."""
    for name in ("train.en", "train.fr", "dev.en", "dev.fr", "test.en", "test.fr"):
        text = "".join(f"line {number} of {name}\n" for number in range(30))
        (workflow.directory / name).write_text(text)
    (workflow.directory / "train.fr").write_text("\n" * 30)
    config = workflow.directory / "mine.yaml"
    config.write_text(
        "corpora:\n"
        "  - {name: mine, role: bitext, source: train.en, target: train.fr}\n"
        "  - {name: tuning, role: dev, source: dev.en, target: dev.fr}\n"
        "  - {name: tested, role: test, source: test.en, target: test.fr}\n"
    )
    options = ["results/corpus/tokenized/mine.report.json", "--configfile", str(config)]
    done = workflow.call(*options)
    assert done.returncode != 0
    sentence = (
        "rnnsmt corpus prepare: error: train.en and train.fr: none of 30 lines remains after cleaning (empty: 30); "
        "check the file"
    )
    assert sentence in done.stderr.splitlines()
    assert done.stderr.count("Error in rule prepare_bitext:") == 1, "tried once"
    assert sentence in next(workflow.directory.glob("results/logs/**/*mine*.log")).read_text()
    assert not list(workflow.directory.rglob(".tmp-*"))
    assert not list(workflow.directory.glob("results/corpus/tokenized/mine*"))
    (workflow.directory / "train.fr").write_text("une ligne du texte\n" * 30)
    assert workflow.call(*options).returncode == 0
