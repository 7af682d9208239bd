"""`rnnsmt init`: the configuration that it writes is one that the workflow takes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from rnnsmt.cli import main
from rnnsmt.plan.config import check
from rnnsmt.plan.pipeline import pipeline_directory
from rnnsmt.project import setup

DEFAULTS = yaml.safe_load((pipeline_directory() / "config.yaml").read_text())


@pytest.fixture(autouse=True)
def _with_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "find_spec", lambda name: object())


def write(folder: Path, *names: str) -> list[str]:
    """Write files of one line; their paths."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"a line of {name}\n")
    return [str(folder / name) for name in names]


def settings(directory: Path) -> dict[str, Any]:
    """The configuration of a directory over the defaults; it has no mistake."""
    merged = DEFAULTS | yaml.safe_load((directory / "config.yaml").read_text())
    assert check(dict(merged), pipeline_directory() / "workflow/schemas/config.schema.json", []) == []
    return merged


def uncommented(text: str) -> str:
    """A configuration with its settings switched on: `#key: value` and the lines below it."""
    lines, inside = [], False
    for line in text.splitlines():
        inside = (line.startswith("#") and line[1:2].isalpha()) or (inside and line.startswith("#  "))
        lines.append(line[1:] if inside else line)
    return "\n".join(lines)


def test_the_embedded_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing differs from the defaults, and all that is commented out has their values."""
    assert main(["init", str(tmp_path / "demo"), "--demo"]) == 0
    assert settings(tmp_path / "demo") == DEFAULTS
    shown = yaml.safe_load(uncommented((tmp_path / "demo/config.yaml").read_text()))
    assert shown == {key: DEFAULTS[key] for key in shown}
    assert set(DEFAULTS) - set(shown) == {"languages", "data_dir", "corpora"}
    assert "rnnsmt run --cores 2" in capsys.readouterr().out
    profile = (tmp_path / "demo/profiles/default/config.yaml").read_text()
    assert profile == (pipeline_directory() / "profiles/default/config.yaml").read_text()


def test_own_files(tmp_path: Path) -> None:
    """Languages come from the suffixes; names are unique, and those of the roles where they must be."""
    train = write(tmp_path, "data/train.en.gz", "data/train.de.gz")
    more = write(tmp_path, "data/opus/train.en", "data/opus/train.de")
    dev, test = write(tmp_path, "data/dev.en", "data/dev.de"), write(tmp_path, "data/it's é.en", "data/it's é.de")
    (mono,) = write(tmp_path, "data/more.de")
    words = ["init", str(tmp_path / "run"), "--bitext", *train, "--bitext", *more, "--dev", *dev, "--test", *test]
    assert main([*words, "--mono", mono]) == 0
    found = settings(tmp_path / "run")
    assert found["languages"] == {"source": "en", "target": "de"}
    assert found["data_dir"] == str(tmp_path / "data")
    assert [(c["name"], c["role"], c.get("source"), c["target"]) for c in found["corpora"]] == [
        ("train", "bitext", "train.en.gz", "train.de.gz"),
        ("train-2", "bitext", "opus/train.en", "opus/train.de"),
        ("more", "mono", None, "more.de"),
        ("dev", "dev", "dev.en", "dev.de"),
        ("it-s", "test", "it's é.en", "it's é.de"),
    ]


def test_files_with_both_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A zip archive and the prefix of two files; the languages are given."""
    write(tmp_path, "en-de.txt.zip", "dev.en", "dev.de", "test.tsv")
    monkeypatch.chdir(tmp_path)
    words = [
        "init",
        "run",
        "--bitext",
        "en-de.txt.zip",
        "--dev",
        "dev",
        "--test",
        "test.tsv",
        "--languages",
        "en",
        "de",
    ]
    assert main(words) == 0
    assert [(corpus["name"], corpus["role"], corpus["file"]) for corpus in settings(tmp_path / "run")["corpora"]] == [
        ("en-de", "bitext", "en-de.txt.zip"),
        ("dev", "dev", "dev"),
        ("test", "test", "test.tsv"),
    ]


def test_placeholders(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path), "--languages", "de", "fr"]) == 0
    found = settings(tmp_path)
    assert found["languages"] == {"source": "de", "target": "fr"}
    assert [corpus["role"] for corpus in found["corpora"]] == ["bitext", "dev", "test"]


def test_without_pytorch_the_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "find_spec", lambda name: None)
    assert main(["init", str(tmp_path), "--demo"]) == 0
    assert settings(tmp_path)["compare"] == ["baseline"]
    assert "PyTorch is not installed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--demo", "--languages", "en", "de"], "--demo: the embedded corpus needs neither files nor --languages"),
        (["--bitext", "train.en", "train.de"], "there is no corpus for dev and test; add --dev and --test"),
        (["--bitext", "a.txt", "b.txt"], "add --languages SOURCE TARGET"),
        (["--bitext", "train.en", "trian.de", "--dev", "dev.en", "dev.de", "--test", "t.en", "t.de"], "did you mean"),
        (["--bitext", "train.en", "train.de", "dev.en"], "--bitext: 3 files; give one file with both sides, or two"),
        (["--languages", "eng", "de"], "--languages: eng is a three-letter code; did you mean en"),
    ],
)
def test_mistakes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    write(tmp_path, "train.en", "train.de", "dev.en", "dev.de", "t.en", "t.de")
    monkeypatch.chdir(tmp_path)
    assert main(["init", "run", *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("mine: true\n")
    assert main(["init", str(tmp_path), "--demo"]) == 2
    assert "config.yaml exists; choose another directory" in capsys.readouterr().err
    assert (tmp_path / "config.yaml").read_text() == "mine: true\n"
    assert not (tmp_path / "profiles").exists()
