"""Provenance: the files, random seeds and weights of every cell of the table."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from rnnsmt.cli import main
from rnnsmt.evaluation.scores import write_score
from rnnsmt.formats.default_ini import default_ini
from tests.unit.evaluation.test_table import command, score, table


@pytest.fixture
def results(tmp_path, monkeypatch) -> Path:
    """Create the results of two systems with two runs each, as the workflow does."""
    monkeypatch.chdir(tmp_path)
    model = Path("results/model")
    model.mkdir(parents=True)
    for name in ("table.gz", "reordering.gz", "lm.gz", "net.safetensors", "corpus.fr"):
        (model / name).write_text(name)
    (model / "net.json").write_text(json.dumps({"seed": 7, "settings": {"hidden": 3}, "curve": []}))
    for system in ("baseline", "rnn"):
        for run in (1, 2):
            directory = Path(f"results/systems/{system}/run{run}")
            default_ini(model, "table.gz", "reordering.gz", "lm.gz").write(directory / "moses.ini")
            (directory / "history.json").write_text(json.dumps({"seed": 4 + run, "averaged": [3, 4], "dev_bleu": 1.5}))
            for test_set in ("test", "more"):
                write_score(directory / f"{test_set}.bleu.json", score(system, test_set, run))
                (directory / f"{test_set}.output").write_text("a\n")
    return tmp_path


def paths() -> list[str]:
    return sorted(map(str, Path("results/systems").glob("*/run*/*.bleu.json")))


def provenance(*options: str) -> int:
    try:
        return main(["evaluation", "provenance", "--scores", *paths(), "--output", "results/provenance.json", *options])
    except SystemExit as stopped:  # of the parser
        return int(str(stopped.code))


def content() -> dict:
    return json.loads(Path("results/provenance.json").read_text())


def test_every_cell_of_the_table_is_there(results):
    assert provenance("--joint", "both=test+more") == 0
    assert main(command(results, paths(), "--joint", "both=test+more")) == 0
    cells = {(cell["system"], cell["test_set"]): cell for cell in content()["cells"]}
    frame = table(results)
    assert set(cells) == set(zip(frame["system"], frame["test_set"], strict=True))
    for row in frame.to_dict("records"):
        cell = cells[row["system"], row["test_set"]]
        assert sum(run["bleu"] for run in cell["runs"]) / 2 == pytest.approx(row["bleu"], abs=1e-4)
        assert cell["joins"] == (["test", "more"] if row["test_set"] == "both" else None)
        for run in cell["runs"]:
            assert run["run"] in content()["runs"]


def test_a_cell_leads_to_its_files_seed_and_weights(results):
    assert provenance() == 0
    found = content()
    cell = next(cell for cell in found["cells"] if (cell["system"], cell["test_set"]) == ("rnn", "test"))
    member = cell["runs"][1]
    assert member["score"] == "results/systems/rnn/run2/test.bleu.json"
    assert member["output"] == "results/systems/rnn/run2/test.output"
    tuned = found["runs"][member["run"]]
    assert (tuned["seed"], tuned["averaged"]) == (6, [3, 4])
    assert tuned["weights"]["LM0"] == [0.5]
    assert tuned["model"]["TranslationModel0"] == "results/model/table.gz"
    listed = found["files"][tuned["model"]["LM0"]]
    assert listed == {"bytes": 5, "sha256": hashlib.sha256(b"lm.gz").hexdigest()}
    assert {member["score"], member["output"], tuned["ini"], tuned["history"]} <= set(found["files"])


def test_networks_inputs_and_configuration(results):
    options = ["--network", "rnn=results/model/net.safetensors=results/model/net.json", "--config", '{"seed": 1}']
    options += ["--network", "cslm=results/model/net.safetensors=results/model/net.json"]
    assert provenance(*options, "--inputs", "results/model/corpus.fr") == 0
    found = content()
    assert found["config"] == {"seed": 1}
    assert found["inputs"] == ["results/model/corpus.fr"]
    assert set(found["networks"]) == {"rnn", "cslm"}
    network = found["networks"]["rnn"]
    assert (network["seed"], network["settings"]) == (7, {"hidden": 3})
    assert found["files"][network["model"]]["bytes"] == 15
    assert found["stage_versions"]["evaluation score"] >= 2


def test_the_same_files_give_the_same_bytes(results):
    assert provenance() == 0
    before = Path("results/provenance.json").read_bytes()
    for path in Path("results").rglob("*.*"):
        os.utime(path, (1, 1))
    assert provenance() == 0
    assert Path("results/provenance.json").read_bytes() == before


def test_score_files_made_by_hand_have_no_run(results):
    Path("results/systems/rnn/run1/moses.ini").unlink()
    assert provenance() == 0
    assert content()["runs"]["rnn/run1"] is None


def test_an_old_ini_is_not_listed(results):
    """A system that now consists of LSTMs may have a moses.ini of an earlier system with its name."""
    inis = [f"./results/systems/baseline/run{run}/moses.ini" for run in (1, 2)]
    assert provenance("--ini", *inis) == 0
    found = content()
    assert (found["runs"]["rnn/run1"], found["runs"]["rnn/run2"]) == (None, None)
    assert found["runs"]["baseline/run2"]["ini"] == "results/systems/baseline/run2/moses.ini"
    assert "results/systems/rnn/run1/moses.ini" not in found["files"]
    assert provenance("--ini") == 0
    assert set(content()["runs"].values()) == {None}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--network", "rnn"], "must be NAME=MODEL=HISTORY"),
        (["--inputs", "not/there.fr"], "not/there.fr: no such file"),
        (["--joint", "both"], "must be NAME=A+B"),
        (["--moses-home", "results"], "--moses-home requires --config"),
        (["--moses-home", "results", "--config", "{}"], "languages missing"),
    ],
)
def test_refusals(results, capsys, options, sentence):
    assert provenance(*options) == 2
    assert sentence in capsys.readouterr().err
    assert not Path("results/provenance.json").exists()


def test_a_corpus_that_was_replaced_is_refused(results, capsys):
    corpus = Path("results/model/corpus.fr")
    digest = hashlib.sha256(corpus.read_bytes()).hexdigest()
    report = results / "corpus.report.json"
    report.write_text(json.dumps({"inputs": [{"path": str(corpus), "bytes": corpus.stat().st_size, "sha256": digest}]}))
    assert provenance("--prepared", str(report)) == 0
    assert content()["files"][str(corpus)]["sha256"] == digest
    corpus.write_text("another text")
    assert provenance("--prepared", str(report)) == 2
    assert f"{corpus}: was replaced after {report} was written" in capsys.readouterr().err
