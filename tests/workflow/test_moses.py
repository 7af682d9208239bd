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
    "phrase_table": "training", "lexical": "training", "moses_tune": "tuning", "mert": "tuning",
    "moses_decode": "decoding", "decode": "decoding",
}  # fmt: skip


@pytest.fixture
def home(tmp_path_factory) -> Path:
    return install(tmp_path_factory.mktemp("moses"))


@pytest.mark.parametrize("parts", ["alignment", "training", "tuning", "decoding", "all"])
def test_engines_mix(workflow, home, parts):
    engine = "moses" if parts == "all" else f"{{{parts}: moses}}"
    jobs = workflow.plan("--config", f"engine={engine}", f"moses_home={home}", SYSTEMS)
    for rule, part in PARTS.items():
        assert (rule in jobs) == (rule.startswith("moses_") == (parts in (part, "all"))), rule
    assert "provenance" in jobs and "train_network rnn" in jobs


def test_the_language_model_of_moses_is_pruned(workflow, home):
    settings = ["engine=moses", f"moses_home={home}", SYSTEMS, "lm={prune: [0, 1]}"]
    assert workflow.plan("--config", *settings).items() >= {"moses_train": 1, "moses_tune": 2}.items()
    command = workflow.commands("language_model", *settings)
    assert f"--lmplz {home}/" in command
    assert " --prune 0 1 --output " in command


def test_an_alignment_made_elsewhere_needs_no_aligner(workflow, tmp_path_factory):
    home = install(tmp_path_factory.mktemp("moses"), without=("mgiza", "fast_align", "symal"))
    (workflow.directory / "mine.align").write_text("0-0\n")
    settings = ["engine=moses", f"moses_home={home}", SYSTEMS, "alignment={external: mine.align}"]
    assert workflow.plan("--config", *settings)["check_alignment"] == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["engine=moses"], "moses_home: not set; engine: moses requires the directory of a Moses installation"),
        (["engine=moses", "moses_home=HOME", "compare=[baseline, cslm]"], "does not support the CSLM of cslm;"),
        (
            ["engine=moses", "moses_home=HOME", "compare=[baseline, cslm, cslm_nnjm]"],
            "does not support the CSLM of cslm, cslm_nnjm;",
        ),
        (
            ["engine={decoding: moses}", "moses_home=HOME", "compare=[nnjm]"],
            "does not support the NNJM of nnjm; use rnnsmt for tuning and decoding, or remove",
        ),
        (["engine=moses", "moses_home=HOME", SYSTEMS, "alignment={aligners: [hmm]}"], "Moses has no aligner hmm"),
        (["engine=moses", "moses_home=/none", SYSTEMS], "/none is not a directory"),
        (["engine=moses", "moses_home=/tmp", SYSTEMS], "lacks train-model.perl (for alignment)"),
        (["engine=moses", "moses_home=HOME", SYSTEMS], "lacks pro (for tuning)"),
        (["engine=moses", "moses_home=HOME", SYSTEMS, "text={escape: false}"], "text.escape: Moses interprets |"),
        (["engine=moses", "moses_home=HOME", SYSTEMS, "text={max_length: 120}"], "text.max_length: MGIZA"),
        (["engine=real", "moses_home=HOME"], "must be rnnsmt or moses or a map (key: value)"),
        (
            ["engine={tuning: moses, search: moses}", "moses_home=HOME"],
            "available: alignment, training, tuning, decoding",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(workflow, tmp_path_factory, monkeypatch, settings, said):
    home = install(tmp_path_factory.mktemp("moses"), without=("pro",))
    done = workflow.call("--dry-run", "--config", *(word.replace("HOME", str(home)) for word in settings))
    assert done.returncode != 0
    assert said in done.stdout + done.stderr
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
