"""Moses instead of rnnsmt's stages: fake programs that call rnnsmt, and real ones if MOSES_HOME is set."""

import json
import os
from pathlib import Path

import pytest
import yaml

from tests.fake_moses import install
from tests.workflow.conftest import SMALL

SYSTEMS = "compare=[baseline, rnn]"

PARTS = {
    "moses_align": "alignment", "align_words": "alignment", "symmetrize": "alignment", "moses_train": "training",
    "phrase_scores": "training", "lexical": "training", "moses_tune": "tuning", "mert": "tuning",
    "moses_decode": "decoding", "decode": "decoding",
}  # fmt: skip


@pytest.fixture
def home(tmp_path_factory) -> Path:
    return install(tmp_path_factory.mktemp("moses"))


@pytest.mark.parametrize("parts", [("alignment", "decoding"), ("training", "tuning")])
def test_engines_mix(workflow, home, parts):
    engine = ", ".join(f"{part}: moses" for part in parts)
    jobs = workflow.plan("--config", f"engine={{{engine}}}", f"moses_home={home}", SYSTEMS)
    for rule, part in PARTS.items():
        assert (rule in jobs) == (rule.startswith("moses_") == (part in parts)), rule
    assert "provenance" in jobs and "train_network rnn" in jobs
    assert jobs["filter_tables"] == 2 * len({"tuning", "decoding"} & {*parts}), "for Moses' decoder only"
    assert jobs["import_table"] == ("training" in parts)


def test_moses_for_everything_but_an_alignment_made_elsewhere(workflow, tmp_path_factory):
    """Aligners are not required, and the language model of Moses is pruned."""
    home = install(tmp_path_factory.mktemp("moses"), without=("mgiza", "fast_align", "symal"))
    (workflow.directory / "mine.align").write_text("0-0\n")
    settings = ["engine=moses", f"moses_home={home}", SYSTEMS, "lm={prune: [0, 1]}"]
    options = ["--config", *settings, "alignment={external: mine.align}"]
    assert workflow.plan(*options).items() >= {"moses_train": 1, "moses_tune": 2}.items()
    assert not {rule for rule, part in PARTS.items() if not rule.startswith("moses_")} & set(workflow.plan(*options))
    command = workflow.commands("language_model", *options)
    assert f"--lmplz {home}/" in command
    assert " --prune 0 1 --output " in command


def test_what_cannot_be_is_refused_before_anything_runs(workflow, tmp_path_factory):
    home = install(tmp_path_factory.mktemp("moses"), without=("pro",))
    done = workflow.call("--dry-run", "--config", "engine=moses", f"moses_home={home}", SYSTEMS)
    assert done.returncode != 0
    assert "lacks pro (for tuning)" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("installed", ["fake", "real"])
def test_a_table_by_moses(workflow, home, tmp_path_factory, installed):
    if installed == "real":
        if "MOSES_HOME" not in os.environ:
            pytest.skip("the variable MOSES_HOME names no installation of Moses")
        home = Path(os.environ["MOSES_HOME"])
    config = {name: value for name, value in SMALL.items() if name not in ("seq2seq", "systems")}
    config |= {"compare": ["baseline", "rnn"], "engine": "moses", "moses_home": str(home)}
    config |= {
        "networks": {"seeds": 1},
        "alignment": {"aligners": ["model4"]},
        "tuning": {"runs": 1, "iterations": 2},
    }
    (workflow.directory / "config.yaml").write_text(yaml.safe_dump(config))
    done = workflow.call("--configfile", str(workflow.directory / "config.yaml"), "--show-failed-logs")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((workflow.directory / "results/table1.json").read_text())["rows"]
    assert {row["system"] for row in rows} == {"baseline", "rnn"}
    assert all(10 < row["bleu"] < 95 for row in rows)
    about = json.loads((workflow.directory / "results/provenance.json").read_text())
    assert about["software"]["moses"]["moses"]["path"] == str(home.resolve() / "bin/moses")
    assert len(about["software"]["moses"]["moses"]["sha256"]) == 64
    assert (workflow.directory / "results/report/index.html").is_file()
    assert not workflow.plan("--configfile", str(workflow.directory / "config.yaml"))
