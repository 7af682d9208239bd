"""What would run: per configuration, and which mistakes are refused before anything runs."""

import subprocess
import sys

import pytest

from tests.workflow.conftest import ROOT

BASELINE = {"align_words": 2, "symmetrize": 2, "lexical": 1, "extract": 1, "phrase_table": 1, "reordering_table": 1}


def test_the_embedded_corpus(workflow):
    jobs = workflow.plan()
    assert jobs.items() >= (BASELINE | {"demo": 1, "mert": 3, "decode": 6, "bleu": 6, "table1": 1}).items()
    assert jobs.items() >= {"selection_score_bitext": 1, "selection_score_mono": 2}.items()
    assert "fetch" not in jobs


def test_multi30k_tok(workflow, multi30k_tok):
    config = ROOT / "workflow/configs/multi30k-tok.yaml"
    jobs = workflow.plan("--configfile", str(config), "--config", f"data_dir={multi30k_tok}")
    assert jobs.items() >= (BASELINE | {"prepare_bitext": 4, "mert": 3, "decode": 9, "bleu": 9}).items()
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
    assert jobs.items() >= (BASELINE | {"prepare_bitext": 7, "prepare_mono": 1, "mert": 3, "decode": 6}).items()


def test_downloads_without_data_dir(workflow):
    jobs = workflow.plan("--configfile", str(ROOT / "workflow/configs/multi30k.yaml"))
    assert jobs["fetch"] == 8


def test_external_alignment(workflow):
    (workflow.folder / "mine.align").write_text("0-0\n")
    jobs = workflow.plan("--config", "alignment={external: mine.align}")
    assert jobs["check_alignment"] == 1
    assert "align_words" not in jobs


def test_a_corpus_kept_whole_is_not_scored(workflow):
    everything = workflow.plan("--config", "selection={bitext: 1, mono: 1}")
    assert not [rule for rule in everything if rule.startswith("selection")]


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
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


def test_lint_is_clean(workflow):
    done = workflow.call("--lint")
    assert done.returncode == 0, done.stdout + done.stderr


def test_snakefmt_is_clean():
    command = [sys.executable, "-m", "snakefmt", "--check", "Snakefile", "workflow"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
