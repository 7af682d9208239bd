"""The complete workflow: results, repeated runs, killed and resumed runs."""

import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy
import pandas
import pytest
import yaml

from rnnsmt.base.reading import read_lines
from rnnsmt.cli import main
from rnnsmt.formats.ini import MosesIni
from rnnsmt.phrases.table import open_table
from rnnsmt.search.phrase_pairs import load_phrase_table
from tests.unit.phrase_store import scores_of
from tests.workflow.conftest import ROOT, SMALL, Workflow, copy_of_checkout

pytestmark = pytest.mark.slow

FINAL = [
    "results/table1.tsv",
    "results/rnn/network1/model.safetensors",
    "results/model/phrase-table.gz",
    "results/model/lm.arpa.gz",
]


REPORT = {"table1": 1, "provenance": 1, "tuning_curves": 1, "report_page": 1, "all": 1}
"""What is made from all systems."""


def tuned(directory: Path) -> list[Path]:
    """Return the moses.ini files of the tuned systems."""
    return sorted(directory.glob("results/systems/*/run*/moses.ini"))


def test_the_table(finished):
    table = pandas.read_csv(finished.directory / "results/table1.tsv", sep="\t")
    assert list(table["system"].unique()) == SMALL["compare"]
    assert list(table["test_set"]) == ["dev", "harbour-test"] * 7
    assert table["p_bootstrap"].between(0, 1).tolist() == [False] * 2 + [True] * 12
    assert table["diff_baseline"].notna().tolist() == [False] * 2 + [True] * 12
    assert {"bleu", "bleu_sd", "sacrebleu", "runs"} <= set(table.columns)
    assert (table["runs"] == 2).all()
    assert table["bleu"][table["system"] != "lstm"].between(10, 95).all()
    assert "Baseline" in (finished.directory / "results/table1.md").read_text()
    assert "<table" in (finished.directory / "results/table1.html").read_text()


def test_every_cell_can_be_traced(finished):
    """Means of the table equal those of the runs in the provenance, whose files exist."""
    found = json.loads((finished.directory / "results/provenance.json").read_text())
    table = pandas.read_csv(finished.directory / "results/table1.tsv", sep="\t")
    cells = {(cell["system"], cell["test_set"]): cell["runs"] for cell in found["cells"]}
    for row in table.to_dict("records"):
        runs = cells[row["system"], row["test_set"]]
        assert numpy.mean([run["bleu"] for run in runs]) == pytest.approx(row["bleu"], abs=1e-4)
        if row["system"] == "lstm":  # which has no tuned weights
            assert [found["runs"][run["run"]] for run in runs] == [None, None]
        elif "+" not in row["system"]:
            assert [found["runs"][run["run"]]["seed"] for run in runs] == [2, 3]
    assert {name: network["seed"] for name, network in found["networks"].items()} == {
        "rnn1": 1, "rnn2": 2, "cslm1": 1, "cslm2": 2, "lstm1": 1, "lstm2": 2, "lstm3": 3, "lstm4": 4,
    }  # fmt: skip
    assert found["config"]["tuning"]["runs"] == 2
    for path, about in found["files"].items():
        content = (finished.directory / path).read_bytes()
        assert (about["bytes"], about["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())


def test_runs_take_turns_on_the_networks(finished):
    """With two training runs and two tuning runs, each tuning run has its own networks in its table and ini."""
    results = finished.directory / "results"
    tables = [results / f"augmented/rnn/network{n}/phrase-table.gz" for n in (1, 2)]
    assert tables[0].read_bytes() != tables[1].read_bytes()
    for run in (1, 2):
        for system, columns in (("rnn", "rnn"), ("cslm_rnn_wp", "rnn_wp")):
            ini = (results / f"systems/{system}/run{run}/moses.ini").read_text()
            assert f"augmented/{columns}/network{run}/phrase-table.gz" in ini
        assert f"cslm/network{run}/model.safetensors" in ini
    rows = json.loads((results / "table1.json").read_text())["rows"]
    assert {row["system"]: row["trainings"] for row in rows} == {
        "baseline": 1, "rnn": 2, "cslm_rnn": 2, "cslm_rnn_wp": 2,
        "lstm": 2, "baseline+lstm_ensemble": 2, "cslm_rnn+lstm_tuned": 2,
    }  # fmt: skip


def test_no_run_repeats_the_translations_of_another_system(finished):
    """Every system is tuned on its own, so that a feature has a weight and changes translations in every run.

    LSTMs of this size can get the weight 0 in a system that they rescore.
    """
    systems = finished.directory / "results/systems"
    for run in (1, 2):
        names = ("baseline", "rnn", "cslm_rnn", "cslm_rnn_wp")
        texts = {(systems / name / f"run{run}/harbour-test.output").read_bytes() for name in names}
        assert len(texts) == len(names)


def test_lstms_alone_and_with_the_lists_of_other_systems(finished):
    """Every run has its own LSTMs; translations of a rescored system are from its n-best lists."""
    results = finished.directory / "results"
    alone = [(results / f"systems/lstm/run{run}/harbour-test.output").read_text().splitlines() for run in (1, 2)]
    assert alone[0] != alone[1]
    assert len(alone[0]) == len(alone[1]) == 2700
    for system, other, lists, weight in (
        ("baseline+lstm_ensemble", "baseline", "lstm.2", 1.0),
        ("cslm_rnn+lstm_tuned", "cslm_rnn", "lstm.1", None),
    ):
        for run in (1, 2):
            with gzip.open(results / f"systems/{other}/run{run}/dev.{lists}.nbest.gz", "rt") as lines:
                entries = [line.split(" ||| ") for line in lines]
            assert all(entry[2].split()[-2] == "LSTM0=" and float(entry[2].split()[-1]) < 0 for entry in entries)
            choices = [set() for _ in range(int(entries[-1][0]) + 1)]
            for entry in entries:
                choices[int(entry[0])].add(entry[1].strip())
            outputs = (results / f"systems/{system}/run{run}/dev.output").read_text().splitlines()
            assert all(output in texts for output, texts in zip(outputs, choices, strict=True))
            own, others = (MosesIni.read(results / f"systems/{name}/run{run}/moses.ini") for name in (system, other))
            if weight is not None:
                assert own.weights == others.weights | {"LSTM0": [weight]}
            assert set(own.weights) == {*others.weights, "LSTM0"}
    rows = {
        (row["system"], row["test_set"]): row["bleu"]
        for row in json.loads((results / "table1.json").read_text())["rows"]
    }
    assert rows["cslm_rnn+lstm_tuned", "dev"] > rows["cslm_rnn", "dev"] - 0.5


def test_systems_are_compared_sentence_by_sentence(finished):
    """Every system is compared with the largest systems that it contains; the difference is that of the table."""
    results = finished.directory / "results"
    assert {path.name for path in (results / "analysis").iterdir() if path.is_dir()} == {
        "rnn.vs.baseline", "cslm_rnn.vs.rnn", "cslm_rnn_wp.vs.cslm_rnn",
    }  # fmt: skip
    rows = {(row["system"], row["test_set"]): row for row in json.loads((results / "table1.json").read_text())["rows"]}
    for path in results.glob("analysis/*/*.json"):
        system, other = path.parent.name.split(".vs.")
        found = json.loads(path.read_text())
        bleu = [rows[name, path.stem]["bleu"] for name in (other, system)]
        assert found["bleu"] == pytest.approx(bleu)
        if found["first run"]["changed"]:  # not where a system keeps the weights of one that it contains
            assert set(found["decided"]) > {"LM", "p(target|source)", "rnn"}
        assert path.with_suffix(".md").read_text().startswith(f"# {found['system']} against {found['baseline']}")


def test_real_text(workflow, shared_dir):
    """The configuration for Multi30k, with short trainings: no held-out line is in the training text."""
    done = workflow.call(
        *("--configfile", str(ROOT / "workflow/configs/multi30k.yaml"), "--show-failed-logs"),
        *("--config", f"data_dir={shared_dir}/data/multi30k", "compare=[baseline, rnn]", "networks={seeds: 1}"),
        *("tuning={runs: 1, iterations: 2, restarts: 2}", "search={pop_limit: 50, stack: 50}"),
        *("rnn={settings: {hidden: 32, embedding: 16, maxout: 16, updates: 50}}", "alignment={aligners: [fast_align]}"),
        timeout=1500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    texts = workflow.directory / "results/corpus/separated"
    whole, training, held_out = (
        list(zip(*(read_lines(path.with_name(f"{path.name}.{lang}.gz")) for lang in ("en", "fr")), strict=True))
        for path in (shared_dir / "data/multi30k/train", texts / "train", texts / "held_out")
    )
    assert (len(training), len(held_out)) == (28018, 982)
    assert Counter(training) + Counter(held_out) == Counter(whole)
    assert not {source for source, _ in training} & {source for source, _ in held_out}
    table = pandas.read_csv(workflow.directory / "results/table1.tsv", sep="\t").set_index(["system", "test_set"])
    segments = {"dev": 1014, "held_out": 982, "test_2016_flickr": 1000, "test_2017_flickr": 1000, "flickr": 2000}
    assert table["segments"]["rnn"].to_dict() == segments
    assert table["paper_bleu"]["rnn"].dropna().to_dict() == {"dev": 31.2} | dict.fromkeys(list(segments)[1:4], 33.87)
    printed = [line for line in done.stdout.splitlines() if line.startswith(("dev: ", "held_out: "))]
    assert printed == [
        "dev: 1,014 segments, 1 run; paper: on WMT 2014", "held_out: 982 segments, 1 run; paper: on WMT 2014"
    ]  # fmt: skip


def test_tuned_systems_translate_raw_text_as_the_workflow_did(finished, tmp_path):
    """`rnnsmt translate` gives the translations of the workflow for the same raw text, byte for byte."""
    results = finished.directory / "results"
    for system in ("baseline", "rnn", "cslm_rnn_wp"):
        directory = results / f"systems/{system}/run2"
        files = ["--input", str(results / "demo/test.en"), "--output", str(tmp_path / system)]
        assert main(["translate", "--system", str(directory), *files]) == 0
        assert (tmp_path / system).read_bytes() == (directory / "harbour-test.detokenized").read_bytes()


def test_figures_and_the_report(finished, small_config, tmp_path):
    figures = {path.name for path in (finished.directory / "results/figures").glob("*.png")}
    maps = {f"{name}{part}.png" for name in ("words", "phrases") for part in ("", "-zooms")}
    assert figures == maps | {
        *(f"learning-{name}.png" for name in ("rnn", "cslm", "lstm")),
        *("mert.png", "scores-rnn.png", "bleu-curves-harbour-test.png"),
    }
    examples = json.loads((finished.directory / "results/analysis/phrase-examples.json").read_text())
    assert examples["frequent"]
    assert examples["rare"]
    done = finished.call("--configfile", str(small_config), "--report", str(tmp_path / "report.html"))
    if "ConnectionError" in done.stderr:
        pytest.skip("the report of this Snakemake needs a network")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "report.html").read_text()
    assert "Figure 3 of Cho et al. (2014)" in text
    page = (finished.directory / "results/report/index.html").read_text()
    for said in (
        "CSLM + RNN",
        "Learning curve, LSTM",
        "networks train",
        "word frequency rank, harbour-test",
        "(Figure 5",
    ):
        assert said in page
    assert "Learning curve, CSLM" in text


def test_every_log_ends_with_figures(finished):
    logs = list(finished.directory.glob("results/logs/**/*.log"))
    assert len(logs) > 30
    for log in logs:
        last = log.read_text().splitlines()[-1]
        assert ": done: " in last, f"{log}: {last}"
        assert last.endswith(" MB")


def test_the_status_of_a_finished_run(finished, capsys):
    assert main(["status", "--directory", str(finished.directory)]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert re.match(r"finished: (\d+) of \1 jobs done", first)
    assert others[-1].endswith("results/table1.md")


def test_what_a_run_prints(finished):
    """A run ends with the table of the test set and the paths of the table and the report."""
    lines = (finished.directory.parent / "finished.printed").read_text().splitlines()
    start = lines.index("harbour-test: 2,700 segments, 2 runs")
    assert len(lines) - start <= 20
    assert re.fullmatch(r"  Baseline +[\d.]+ ± [\d.]+( +–){3}", lines[start + 2])
    assert lines[-1] == "table: results/table1.md, report: results/report/index.html"


def test_nothing_half_written_stays(finished):
    assert not list(finished.directory.rglob(".tmp-*"))


JOB = re.compile(
    r"^ *(?:local)?rule (?P<rule>\w+):\n(?:    .*\n)*?"
    r"    log: (?P<log>[^,\n]+).*\n(?:    .*\n)*?    resources: .*mem_mb=(?P<mb>\d+)",
    re.M,
)
"""A job in Snakemake's log."""


def test_memory_that_jobs_ask_for(finished):
    """Requests cover the peak and are at most the larger of 500 MB and twice the peak (thrice for the search)."""
    logs = (finished.directory / ".snakemake/log").glob("*.snakemake.log")
    jobs = [job for path in logs for job in JOB.finditer(path.read_text())]
    assert len({job["rule"] for job in jobs}) > 40
    for rule, log, requested in (job.groups() for job in jobs):
        last = (finished.directory / log).read_text().splitlines()[-1]
        peak = int(re.search(r"peak ([\d,]+) MB$", last)[1].replace(",", ""))
        most = 3 if rule in ("mert", "decode", "nbest_lists", "compare_systems", "train_network") else 2
        assert peak <= int(requested) <= max(most * peak, 500), rule


def test_the_tables_of_a_set_with_further_columns(finished):
    """A selection with a further column has the same pairs with one more score, which is that of the exported table."""
    for part in ("dev", "all"):
        plain, added = (
            open_table(finished.directory / f"results/{table}/selected/{part}/phrase-table.binary.safetensors", "")
            for table in ("model", "augmented/rnn/network1")
        )
        for name in ("sources", "targets"):
            for one, other in zip(getattr(plain, name), getattr(added, name), strict=True):
                assert numpy.array_equal(one, other)
        assert (plain.target_words, added.log_scores.shape) == (added.target_words, (len(plain), 5))
        assert numpy.array_equal(plain.log_scores, added.log_scores[:, :4])
        assert numpy.array_equal(plain.reordering.log_scores, added.reordering.log_scores)
    exported = load_phrase_table(finished.directory / "results/augmented/rnn/network1/phrase-table.gz", 5, None).table()
    scores = {}
    for row, (source, target) in enumerate(pairs_of(exported)):
        scores[source, target] = exported.log_scores[row].tolist()
    assert [scores[pair] for pair in pairs_of(added)] == added.log_scores.tolist()


def pairs_of(table):
    """Return source and target of every pair of a table."""
    words = table.source_words.strings()
    sources = [b" ".join(words[i] for i in table.sources.words[a:b]) for a, b in pairwise(table.sources.offsets)]
    ids = table.targets.words
    targets = [b" ".join(table.target_words[i] for i in ids[a:b]) for a, b in pairwise(table.targets.offsets)]
    runs = numpy.repeat(numpy.arange(len(sources)), numpy.diff(table.first))
    return [(sources[run], target) for run, target in zip(runs, targets, strict=True)]


def test_nothing_to_do_after_a_run(finished, small_config):
    assert not finished.plan("--configfile", str(small_config))


@pytest.mark.parametrize(
    ("setting", "expected", "untouched"),
    [
        (
            "tuning={runs: 4}",
            {"mert": 4, "decode": 4, "score": 7, "tune_lists": 4, "table1": 1},
            ["select_pairs", "train_network rnn"],
        ),
        (
            "lm={order: 3}",
            {"language_model": 1, "mert": 4, "decode": 4},
            ["align_words", "phrase_scores", "train_network rnn", "train_network cslm"],
        ),
        (
            "lm={prune: [0, 0, 1]}",
            {"language_model": 1, "mert": 4, "decode": 4},
            ["align_words", "phrase_scores", "train_network rnn", "train_network cslm"],
        ),
        (
            "phrases={max_length: 5}",
            {"extract": 1, "phrase_scores": 1, "train_network rnn": 2, "mert": 4},
            ["align_words", "language_model", "rnn_prepare"],
        ),
        (
            "rnn={settings: {epochs: 3}}",
            {
                "train_network rnn": 2,
                "score_column": 4,
                "augment": 4,
                "select_pairs": 8,
                "mert": 3,
            },
            ["extract", "phrase_scores", "train_network lstm"],
        ),
        (
            "seq2seq={settings: {epochs: 3}}",
            {"train_network lstm": 4, "seq2seq_translate": 1, "rescore": 2, "tune_lists": 2}
            | {"rerank": 1, "rerank_evenly": 1},
            ["mert", "nbest_lists"],
        ),
        (
            "cslm={settings: {epochs: 3}}",
            {"train_network cslm": 2, "mert": 2, "decode": 2},
            ["cslm_prepare", "train_network rnn", "augment"],
        ),
        ("rnn={device: cuda}", {}, []),
        ("cluster=true", {}, []),
    ],
)
def test_a_change_reruns_what_depends_on_it(finished, small_config, tmp_path, setting, expected, untouched):
    jobs = finished.plan("--configfile", str(small_config), "--config", setting)
    assert jobs.items() >= expected.items()
    assert not [rule for rule in untouched if rule in jobs]
    if not expected:
        assert set(jobs) <= {"provenance", "report_page", "all"}  # they hold the configuration


def test_another_meaning_of_a_preset_trains_again(finished, small_config, tmp_path):
    """A change of a preset in the code trains the network again."""
    other = Workflow(finished.directory, copy_of_checkout(tmp_path))
    presets = tmp_path / "src/rnnsmt/rnn/settings.py"
    before = presets.read_text()
    presets.write_text(re.sub(r"(DEMO = RnnSettings\([^)]*clip=)20\.0", r"\g<1>3.0", before))
    assert presets.read_text() != before
    jobs = other.plan("--configfile", str(small_config), PYTHONPATH=str(tmp_path / "src"))
    assert jobs["train_network rnn"] == 2
    assert "train_network cslm" not in jobs


def test_other_limits_and_other_tables_at_the_same_time(finished, small_config):
    """Ini files get new limits even if their tables, which are ancient inputs, are rebuilt in the same run."""
    settings = ["search={distortion_limit: 4}", "rnn={settings: {updates: 120}}"]
    jobs = finished.plan("--configfile", str(small_config), "--config", *settings)
    assert jobs.items() >= {"train_network rnn": 2, "moses_ini": 1, "augmented_ini": 6, "mert": 4}.items()


def test_a_further_system_runs_only_its_own_jobs(finished, small_config):
    """A further system adds its own jobs and those of the table."""
    settings = ["systems={other: {features: [rnn]}}", "compare=[baseline, rnn, other]"]
    jobs = finished.plan("--configfile", str(small_config), "--config", *settings)
    expected = {"mert": 1, "decode": 1, "score": 1, "compare_systems": 1, "describe_system": 1}
    assert jobs == expected | REPORT


def test_more_text_of_the_language_model_aligns_nothing_again(finished, small_config, tmp_path):
    """More text for the language model neither repeats alignment nor training of the phrase-pair network."""
    (tmp_path / "more.fr").write_text("encore une phrase du port .\n" * 20)
    corpora = yaml.safe_load((ROOT / "config.yaml").read_text())["corpora"]
    corpora.append({"name": "more", "role": "mono", "target": str(tmp_path / "more.fr")})
    (tmp_path / "more.yaml").write_text(yaml.safe_dump({"corpora": corpora}))
    jobs = finished.plan("--configfile", str(small_config), str(tmp_path / "more.yaml"))
    again = {"prepare_mono": 1, "truecase": 1, "language_model": 1, "train_network cslm": 2, "mert": 4}
    untouched = {"train_truecaser", "align_words", "extract", "phrase_scores", "train_network rnn", "score_column"}
    assert jobs.items() >= again.items() and not untouched & set(jobs)


def test_without_the_network_only_the_table_is_made_again(finished, small_config):
    jobs = finished.plan("--configfile", str(small_config), "--config", "compare=[baseline]")
    assert jobs == REPORT


def test_the_column_of_the_network(finished):
    """The fifth column is the network's score of every line; initial weights equal those of Moses."""
    scores = numpy.concatenate(
        [scores_of(finished.directory / f"results/columns/rnn/network1/{k}-of-2.safetensors") for k in (1, 2)]
    )
    with gzip.open(
        finished.directory / "results/augmented/rnn/network1/phrase-table.gz", "rt", encoding="utf-8"
    ) as table:
        columns = [line.split(" ||| ")[2].split() for line in table]
    assert {len(row) for row in columns} == {5}
    found = numpy.log([float(row[4]) for row in columns])
    numpy.testing.assert_allclose(found, scores, atol=1e-5)
    ini = (finished.directory / "results/augmented/rnn/network1/moses.ini").read_text()
    assert "num-features=5" in ini
    assert "TranslationModel0= 0.2 0.2 0.2 0.2 0.2\n" in ini


def test_the_column_of_the_word_penalty(finished):
    """The last column is e^n for n words outside the shortlist; its initial weight is 0."""
    results = finished.directory / "results"
    known = {*(results / "rnn/vocabularies/vocab.target.txt").read_text().split("\n")[2:-2]}
    seen = set()
    with gzip.open(results / "augmented/rnn_wp/network1/phrase-table.gz", "rt", encoding="utf-8") as table:
        for line in table:
            _, target, scores, *_ = line.split(" ||| ")
            outside = sum(word not in known for word in target.split())
            assert len(scores.split()) == 6
            assert float(scores.split()[5]) == pytest.approx(numpy.exp(outside), rel=1e-5)
            seen.add(outside)
    assert {0, 1, 2} <= seen
    assert (
        "TranslationModel0= 0.2 0.2 0.2 0.2 0.2 0\n"
        in (results / "augmented/cslm_rnn_wp/network1/moses.ini").read_text()
    )


def test_a_lost_result_is_made_again(copy_of_finished, small_config):
    before = (copy_of_finished.directory / FINAL[0]).read_bytes()
    (copy_of_finished.directory / "results/systems/baseline/run1/dev.output").unlink()
    (copy_of_finished.directory / "results/table1.tsv").unlink()
    done = copy_of_finished.call("--configfile", str(small_config))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (copy_of_finished.directory / FINAL[0]).read_bytes() == before


def test_a_failed_job_is_run_again(copy_of_finished, small_config):
    """Snakemake deletes the output of a failed job; the next run creates it again although the table exists."""
    options = "--configfile", str(small_config)
    spoilt = copy_of_finished.directory / "results/systems/rnn/run1/dev.output"
    content, about = spoilt.read_bytes(), spoilt.stat()
    spoilt.write_bytes(content.split(b"\n", 1)[1])
    done = copy_of_finished.call(*options, "--keep-going", "--forcerun", "score")
    assert done.returncode != 0, done.stdout + done.stderr
    assert not (copy_of_finished.directory / "results/systems/rnn/run1/dev.bleu.json").exists()
    spoilt.write_bytes(content)
    os.utime(spoilt, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert copy_of_finished.plan(*options)["score"] == 1
    assert "results/systems/rnn/run1/dev.bleu.json" in copy_of_finished.dry_run(*options).stdout
    done = copy_of_finished.call(*options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (copy_of_finished.directory / "results/systems/rnn/run1/dev.bleu.json").exists()
    assert not copy_of_finished.plan(*options)


def kill_and_start_again(workflow: Workflow, sign: str, *options: str, twice: bool = False) -> None:
    """Kill a run (SIGKILL to the process group; twice: Ctrl-C, twice) when a file exists, then run it again."""
    process = subprocess.Popen(
        workflow.command(*options),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # SIGINT is ignored if the tests run in the background
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until = time.monotonic() + 500
    while not list(workflow.directory.glob(sign)):
        assert process.poll() is None, "ended before it came so far"
        assert time.monotonic() < until
        time.sleep(0.05)
    if twice:
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
    else:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert list(workflow.directory.glob(".snakemake/locks/*.lock"))
        assert list(workflow.directory.glob(".snakemake/incomplete/*"))
        assert workflow.call("--unlock", *options).returncode == 0
    done = workflow.call(*options, timeout=1500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(workflow.directory.rglob(".tmp-*"))


@pytest.mark.parametrize("twice", [False, True])
def test_alignment_resumes_after_a_kill(workflow, finished, small_config, twice):
    made = FINAL[2:]
    kill_and_start_again(workflow, "results/align/*/forward.gz", *made, "--configfile", str(small_config), twice=twice)
    for name in made:
        assert (workflow.directory / name).read_bytes() == (finished.directory / name).read_bytes(), name


def test_tuning_resumes_after_a_kill(copy_of_finished, finished, small_config):
    """Tuning that is killed in the second run of a system resumes with the results of an uninterrupted workflow."""
    shutil.rmtree(copy_of_finished.directory / "results/systems")
    (copy_of_finished.directory / FINAL[0]).unlink()
    systems = ["baseline", "rnn", "cslm_rnn"]
    options = [FINAL[0], "--configfile", str(small_config), "--config", f"compare={systems}"]
    kill_and_start_again(copy_of_finished, "results/systems/*/run2/checkpoint/nbest-*.npz", *options)
    assert len(tuned(copy_of_finished.directory)) == 6
    for ours in tuned(copy_of_finished.directory):
        theirs = finished.directory / ours.relative_to(copy_of_finished.directory)
        assert ours.read_bytes() == theirs.read_bytes()
    tables = [pandas.read_csv(w.directory / FINAL[0], sep="\t") for w in (copy_of_finished, finished)]
    columns = ["system", "test_set", "bleu", "bleu_sd", "sacrebleu", "runs", "diff_baseline", "p_bootstrap"]
    ours, theirs = (table[columns][table["system"].isin(systems)].reset_index(drop=True) for table in tables)
    pandas.testing.assert_frame_equal(ours, theirs)
