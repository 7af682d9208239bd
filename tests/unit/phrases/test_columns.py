"""Score columns, also of other packages: found through entry points, refused if they are broken."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.cli import main
from rnnsmt.phrases import columns
from rnnsmt.registries import COLUMNS, FEATURES

from ..other_package import install
from ..phrase_store import STORE, compute_column, make_pairs, scores_of

TABLE = [("a", "x"), ("a", "x y"), ("a b c", "x"), ("b", "y y y")]

SURPLUS = """
from rnnsmt.phrases.columns import ScoreColumn, WordColumn

class Surplus(WordColumn):
    label = "Surplus"
    weight = 0.1

    def score(self, source, target):
        return len(target) - len(source)

class Short(ScoreColumn):
    label = "Short"

    def scores(self, inputs):
        import numpy as np
        yield np.zeros(inputs.end - inputs.begin - 1)
"""


@pytest.fixture
def directory(tmp_path) -> Path:
    make_pairs(tmp_path, TABLE, "a b c", "x y z")
    return tmp_path


@pytest.fixture
def surplus(tmp_path, monkeypatch):
    """Install a package with the columns surplus and short."""
    entries = {"surplus": "their_columns:Surplus", "short": "their_columns:Short"}
    install(tmp_path, monkeypatch, "their-columns", {"rnnsmt.columns": entries}, SURPLUS)


def column_alone(name: str, directory: Path, *options: str) -> int:
    """Compute a column that needs the pairs alone; return the exit status."""
    files = ["--pairs", f"{directory}/{STORE}", "--output", f"{directory}/{name}"]
    return main(["phrases", "column", "--name", name, *files, *options])


@pytest.mark.usefixtures("surplus")
def test_a_column_of_another_package(directory, monkeypatch):
    assert column_alone("surplus", directory) == 0
    whole = scores_of(directory / "surplus")
    assert (whole.dtype, whole.tolist()) == (np.float32, [0, 1, -2, 2])
    monkeypatch.setattr(columns, "BLOCK", 2)
    assert column_alone("surplus", directory) == 0
    assert scores_of(directory / "surplus").tolist() == whole.tolist()
    parts = []
    for number in range(1, 4):
        assert column_alone("surplus", directory, "--shard", f"{number}/3") == 0
        parts.append(scores_of(directory / "surplus"))
    assert np.concatenate(parts).tolist() == whole.tolist()
    assert COLUMNS.package("surplus") == FEATURES.package("surplus") == "their-columns 1.2"
    assert COLUMNS.package("wp") == FEATURES.package("rnn") == ""


@pytest.mark.usefixtures("surplus")
def test_a_column_with_another_number_of_scores_is_refused(directory, capsys):
    assert column_alone("short", directory) == 2
    assert "short: computed 3 scores for 4 phrase pairs" in capsys.readouterr().err
    assert not (directory / "short").exists()


@pytest.mark.usefixtures("surplus")
def test_a_name_that_is_not_there(directory, capsys):
    with pytest.raises(SystemExit, match="2"):
        column_alone("surplos", directory)
    error = capsys.readouterr().err
    assert "rnn, wp" in error and "did you mean surplus?" in error


BROKEN = "import a_module_that_is_missing"


def test_a_broken_package_is_refused_with_its_name(directory, monkeypatch, capsys):
    install(directory, monkeypatch, "broken-columns", {"rnnsmt.columns": {"broken": "broken_columns:C"}}, BROKEN)
    assert "broken" in COLUMNS and "broken" in FEATURES
    assert column_alone("broken", directory) == 2
    (error,) = [line for line in capsys.readouterr().err.splitlines() if ": error: " in line]
    assert all(part in error for part in ("score column broken", "broken-columns 1.2", "a_module_that_is_missing"))
    assert not (directory / "broken").exists()
    assert compute_column("wp", directory, directory / "wp") == 0, "the others are not affected"


def test_a_broken_package_does_not_break_the_help(directory, monkeypatch):
    groups = ("rnnsmt.columns", "rnnsmt.metrics", "rnnsmt.search_features")
    install(directory, monkeypatch, "broken-things", {group: {"broken": "broken_things:C"} for group in groups}, BROKEN)
    path = os.pathsep.join([str(directory), os.environ.get("PYTHONPATH", "")])
    for arguments in (["--help"], ["phrases", "column", "--help"], ["evaluation", "score", "--help"]):
        done = subprocess.run(
            [sys.executable, "-m", "rnnsmt", *arguments],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "usage: rnnsmt" in done.stdout


def test_a_name_of_two_packages_is_refused(directory, monkeypatch, capsys):
    for name in ("one", "two"):
        install(directory, monkeypatch, f"package-{name}", {"rnnsmt.columns": {"same": f"package_{name}:C"}})
    assert "same" in FEATURES
    for registry in (COLUMNS, FEATURES):
        with pytest.raises(ValueError, match="package-one and package-two"):
            registry.check("same")
        with pytest.raises(InputError, match="package-one and package-two"):
            registry["same"]
    with pytest.raises(SystemExit, match="2"):
        column_alone("same", directory)
    assert "package-one and package-two" in capsys.readouterr().err


def test_a_package_cannot_replace_a_column_of_this_one(directory, monkeypatch):
    install(directory, monkeypatch, "their-wp", {"rnnsmt.columns": {"wp": "their_wp:C"}}, BROKEN)
    assert compute_column("wp", directory, directory / "wp") == 0
    assert COLUMNS.package("wp") == ""
