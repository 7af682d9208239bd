"""`rnnsmt run`: the command line of Snakemake, and the table at the end of a run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import rnnsmt
from rnnsmt import base
from rnnsmt.base.errors import InputError
from rnnsmt.cli import main
from rnnsmt.plan.paths import Texts
from rnnsmt.plan.pipeline import pipeline_directory
from rnnsmt.plan.systems import Systems
from rnnsmt.plan.validation import checked_config
from rnnsmt.project.printed_table import MOST_ROWS, planned, printed_table
from rnnsmt.project.running import command_line

SNAKEFILE = ["--snakefile", str(pipeline_directory() / "Snakefile")]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a demo project in the current directory."""
    monkeypatch.chdir(tmp_path)
    assert main(["init", ".", "--demo"]) == 0
    return tmp_path


def test_what_is_added(directory: Path) -> None:
    profile = ["--workflow-profile", "profiles/default"]
    assert command_line(["--cores", "2", "results/table2.md"]) == [
        *SNAKEFILE, "--configfile=config.yaml", *profile, "--cores", "2", "results/table2.md",
    ]  # fmt: skip
    assert command_line(["--configfile", "a.yaml", "b.yaml"]) == [
        *SNAKEFILE,
        *profile,
        "--configfile",
        "a.yaml",
        "b.yaml",
    ]
    given = ["-s", "mine", "--workflow-profile", "none", "target"]
    assert command_line(given) == ["--configfile=config.yaml", *given]
    with pytest.raises(InputError, match=re.escape("--config 'rnn={settings: {epochs: 1}}'")):
        command_line(["--config", "seed=2", "rnn.settings.epochs=1"])
    target = ["--config", "seed=2", "results/table1.md"]  # Snakemake says that this is no name=value pair
    assert command_line(target)[-3:] == target


def test_results_of_another_configuration(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpora = [{"name": "mine", "role": "bitext", "source": "a.en", "target": "a.de", "in_domain": False}]
    made = {"config": {"languages": {"source": "en", "target": "de"}, "corpora": corpora}}
    (directory / "results").mkdir()
    (directory / "results/provenance.json").write_text(json.dumps(made))
    same = "languages: {source: en, target: de}\ncorpora: [{name: mine, role: bitext, source: a.en, target: a.de}]\n"
    (directory / "config.yaml").write_text(same)
    command_line(["--cores", "2"])
    assert not capsys.readouterr().err
    for other in (same.replace("a.de", "b.de"), same.replace("target: de", "target: fr")):
        (directory / "config.yaml").write_text(other)
        command_line(["--cores", "2"])
        said = capsys.readouterr().err
        assert "was made with other" in said and "(en-de: mine)" in said and "another --directory" in said


def test_a_further_test_set_is_no_other_run(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = {"name": "mine", "role": "bitext", "source": "a.en", "target": "a.de"}
    test = {"name": "test", "role": "test", "source": "b.en", "target": "b.de"}
    (directory / "results").mkdir()
    made = {"config": {"languages": {"source": "en", "target": "de"}, "corpora": [mine, test]}}
    (directory / "results/provenance.json").write_text(json.dumps(made))
    (directory / "config.yaml").write_text(yaml.safe_dump({"corpora": [mine, test, test | {"name": "new"}]}))
    command_line(["--cores", "2"])
    assert not capsys.readouterr().err


def test_provenance_without_a_configuration(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``evaluation provenance`` without --config writes null."""
    (directory / "results").mkdir()
    (directory / "results/provenance.json").write_text('{"config": null}')
    command_line(["--cores", "2"])
    assert not capsys.readouterr().err


def test_norwegian_without_quotes_is_not_another_language(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = {"config": {"languages": {"source": "en", "target": "no"}, "corpora": []}}
    (directory / "results").mkdir()
    (directory / "results/provenance.json").write_text(json.dumps(made))
    (directory / "config.yaml").write_text("languages: {source: en, target: no}\n")
    command_line(["--cores", "2"])
    assert not capsys.readouterr().err


def test_what_a_run_will_do() -> None:
    raw = yaml.safe_load((pipeline_directory() / "config.yaml").read_text())
    config = checked_config(raw)
    lines = list(planned(config, Texts(config), Systems(config)))
    assert len(lines) <= 5
    assert lines[0].startswith("en to fr; training: harbour, general;") and "9 systems: baseline, rnn" in lines[1]
    assert "rnn (preset demo), cslm (preset demo), nnjm (preset demo); 1 training run(s) each" in lines[2]


def test_another_directory(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    added = command_line(["--directory", str(directory)])
    assert f"--configfile={directory / 'config.yaml'}" in added
    assert str(directory / "profiles/default") in added


def test_a_directory_that_is_not_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--cores", "2"]) == 2
    assert "config.yaml: no such file; create a run directory with `rnnsmt init DIR`" in capsys.readouterr().err


def test_the_workflow_replaces_the_process(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setattr(base, "is_program", True)
    monkeypatch.setattr(os, "execv", lambda program, words: called.extend([program, *words]))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert main(["run", "--cores", "2", "--help-me"]) == 0
    assert called == [sys.executable, sys.executable, "-m", "snakemake", *command_line(["--cores", "2", "--help-me"])]


def test_the_workflow_is_a_child_of_a_python_program(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        rnnsmt.project.run(["--no-such-option"])
    assert "--no-such-option" in capfd.readouterr().err
    with pytest.raises(InputError, match="no such file; create a run directory"):
        rnnsmt.project.run(["--directory", str(directory / "other")])


def test_bars_on_a_terminal_only(directory: Path) -> None:
    assert "--logger=rich" in command_line(["--cores", "2"], is_terminal=True)
    assert "--logger=rich" not in command_line(["--cores", "2"])
    assert "--logger=rich" not in command_line(["--logger", "mine"], is_terminal=True)


def test_its_own_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "--help"])
    assert end.value.code == 0
    assert "Options are passed on to Snakemake" in capsys.readouterr().out


def test_the_table_that_a_run_prints(tmp_path: Path) -> None:
    """The tables of dev and of the first test set."""
    first = {"system": "baseline", "test_set": "news", "segments": 3003, "runs": 3, "bleu": 30.644, "bleu_sd": 0.05}
    better = {"system": "cslm_rnn", "bleu": 31.2, "bleu_sd": 0.1, "diff_baseline": 0.556, "low_baseline": -0.01}
    rows = [first | {"test_set": "dev", "segments": 400}, first]
    rows += [first | better | {"high_baseline": 1.1, "p_strict": 0.052}]
    table = tmp_path / "table1.json"
    table.write_text(json.dumps({"rows": rows}))
    shown = list(printed_table(table, Path("results/report/index.html"), tmp_path))
    assert shown == [
        "dev: 400 segments, 3 runs",
        "  System            BLEU",
        "  Baseline  30.64 ± 0.05",
        "news: 3,003 segments, 3 runs",
        "  System              BLEU  Δ baseline            95 %       p",
        "  Baseline    30.64 ± 0.05           –               –       –",
        "  CSLM + RNN  31.20 ± 0.10       +0.56  −0.01 to +1.10  0.0520",
        f"table: {tmp_path}/table1.md, report: results/report/index.html",
    ]
    table.write_text(json.dumps({"rows": [row | {"paper_bleu": 30.64} for row in rows]}))
    dev, _, baseline, news, *_ = printed_table(table, Path("x"), tmp_path)
    assert (dev, news) == tuple(f"{name} segments, 3 runs; paper: on WMT 2014" for name in ("dev: 400", "news: 3,003"))
    assert baseline.split() == ["Baseline", "30.64", "±", "0.05", "30.64"]
    table.write_text(json.dumps({"rows": rows}))
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/a.log").write_text("begins\n" + "warning: one\n" * 5)
    (tmp_path / "b.log").write_text("the warning: is inside\n")
    *_, one, two, three, more, _ = printed_table(table, Path("x"), tmp_path)
    assert one == two == three == f"{tmp_path}/corpus/a.log: warning: one"[:200]
    assert more == f"2 further warnings: grep -r warning: {tmp_path}"
    table.write_text(json.dumps({"rows": rows[:1]}))
    assert next(printed_table(table, Path("x"), tmp_path)) == "dev: 400 segments, 3 runs"
    table.write_text(json.dumps({"rows": [first] * (MOST_ROWS + 10)}))
    assert len(list(printed_table(table, Path("x"), tmp_path))) <= 20
