"""The workflow run to its end, run again, killed and resumed."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pandas
import pytest

FINAL = ["results/table1.tsv", "results/model/phrase-table.gz", "results/model/lm.arpa.gz"]


def tuned(folder: Path) -> list[Path]:
    """The tuned systems of a run."""
    return sorted(folder.glob("results/systems/baseline/run*/moses.ini"))


def test_the_table(finished):
    table = pandas.read_csv(finished.folder / "results/table1.tsv", sep="\t")
    assert list(table["system"].unique()) == ["baseline"]
    assert list(table["test_set"]) == ["dev", "harbour-test"]
    assert {"bleu", "bleu_sd", "sacrebleu", "runs"} <= set(table.columns)
    assert (table["runs"] == 2).all()
    assert table["bleu"].between(10, 95).all()
    assert "Baseline" in (finished.folder / "results/table1.md").read_text()
    assert "<table" in (finished.folder / "results/table1.html").read_text()


def test_every_log_ends_with_figures(finished):
    logs = list(finished.folder.glob("results/logs/**/*.log"))
    assert len(logs) > 30
    for log in logs:
        last = log.read_text().splitlines()[-1]
        assert ": done: " in last, f"{log}: {last}"
        assert last.endswith(" MB")


def test_nothing_half_written_stays(finished):
    assert not list(finished.folder.rglob(".tmp-*"))


def test_nothing_to_do_after_a_run(finished, small_config):
    assert not finished.plan("--configfile", str(small_config))


@pytest.mark.parametrize(
    ("setting", "expected", "untouched"),
    [
        ("tuning={runs: 3}", {"mert": 1, "decode": 2, "bleu": 2, "table1": 1}, ["filter_tables", "language_model"]),
        ("lm={order: 3}", {"language_model": 1, "mert": 2, "decode": 4}, ["align_words", "phrase_table"]),
        ("phrases={max_length: 5}", {"extract": 1, "phrase_table": 1, "mert": 2}, ["align_words", "language_model"]),
        ("evaluation={joint: {}}", {}, ["mert"]),
    ],
)
def test_a_change_reruns_what_depends_on_it(finished, small_config, tmp_path, setting, expected, untouched):
    jobs = finished.plan("--configfile", str(small_config), "--config", setting)
    assert jobs.items() >= expected.items()
    assert not [rule for rule in untouched if rule in jobs]
    if not expected:
        assert not jobs


def test_a_lost_result_is_made_again(copy_of_finished, small_config):
    before = (copy_of_finished.folder / FINAL[0]).read_bytes()
    (copy_of_finished.folder / "results/systems/baseline/run1/dev.output").unlink()
    (copy_of_finished.folder / "results/table1.tsv").unlink()
    done = copy_of_finished.call("--configfile", str(small_config))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (copy_of_finished.folder / FINAL[0]).read_bytes() == before


@pytest.mark.parametrize("seconds", [6, 15])
def test_killed_and_started_again(workflow, finished, small_config, seconds):
    """kill -9 of the whole process group in the middle, then the same command: the results of an undisturbed run."""
    options = ["--configfile", str(small_config)]
    process = subprocess.Popen(
        workflow.command(*options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = workflow.call(*options)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in FINAL[1:]:
        assert (workflow.folder / name).read_bytes() == (finished.folder / name).read_bytes(), name
    for ours, theirs in zip(tuned(workflow.folder), tuned(finished.folder), strict=True):
        assert ours.read_bytes() == theirs.read_bytes()
    columns = ["system", "test_set", "bleu", "bleu_sd", "sacrebleu", "runs"]
    tables = [pandas.read_csv(w.folder / FINAL[0], sep="\t")[columns] for w in (workflow, finished)]
    pandas.testing.assert_frame_equal(*tables)
    assert not list(workflow.folder.rglob(".tmp-*"))
