"""COMET with a replacement of its package: scores, skipped scoring, and no download without a request."""

import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from rnnsmt.cli import main

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


@pytest.fixture
def comet(monkeypatch):
    """Install a package whose model scores the share of common words and that records its calls."""
    package = ModuleType("comet")
    package.__spec__ = SimpleNamespace(name="comet")
    package.calls = []

    def load(path):
        package.calls.append(("load", path, tuple(os.environ.get(name) for name in OFFLINE)))
        if "bad" in path:
            raise KeyError("no such key\nand more")
        return SimpleNamespace(predict=predict)

    def predict(rows, batch_size, gpus):
        package.calls.append(("predict", len(rows), batch_size, gpus))
        words = [(set(row["mt"].split()), set(row["ref"].split())) for row in rows]
        return SimpleNamespace(scores=[len(a & b) / len(a | b) for a, b in words])

    package.load_from_checkpoint = load
    package.download_model = lambda name: package.calls.append(("download", name)) or f"/cache/{name}"
    monkeypatch.setitem(sys.modules, "comet", package)
    return package


def run(directory: Path, *options: str, model: str = "model.ckpt") -> dict:
    texts = {"s": "a b\nc d\n", "r": "x y\nz w\n", "h1": "x y\nz z\n", "h2": "q q\nz w\n"}
    for name, text in texts.items():
        (directory / name).write_text(text)
    files = [
        "--source",
        f"{directory}/s",
        "--reference",
        f"{directory}/r",
        "--hypothesis",
        f"{directory}/h1",
        f"{directory}/h2",
    ]
    code = main(["evaluation", "comet", "--model", model, *files, "--output", f"{directory}/out.json", *options])
    assert code == 0
    return json.loads((directory / "out.json").read_text())


def test_scores(tmp_path, comet, monkeypatch):
    for name in OFFLINE:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "model.ckpt").touch()
    found = run(tmp_path, "--batch-size", "3", model=f"{tmp_path}/model.ckpt")
    assert [one["segments"] for one in found["scores"]] == [[1.0, 0.5], [0.0, 1.0]]
    assert [one["score"] for one in found["scores"]] == [0.75, 0.5]
    assert comet.calls == [("load", f"{tmp_path}/model.ckpt", ("1", "1")), ("predict", 4, 3, 0)]
    assert not any(name in os.environ for name in OFFLINE)


def test_download_only_if_asked(tmp_path, comet, monkeypatch):
    for name in OFFLINE:
        monkeypatch.delenv(name, raising=False)
    assert run(tmp_path)["skipped"].startswith("COMET is skipped: no such model model.ckpt; specify a checkpoint")
    assert comet.calls == []
    run(tmp_path, "--download", model="org/name")
    assert comet.calls[:2] == [("download", "org/name"), ("load", "/cache/org/name", (None, None))]


def test_a_model_that_cannot_be_loaded(tmp_path, comet, capsys):
    (tmp_path / "bad.ckpt").touch()
    with pytest.raises(AssertionError):
        run(tmp_path, model=f"{tmp_path}/bad.ckpt")
    assert "COMET cannot load the model ('no such key" in capsys.readouterr().err


def test_without_the_package(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("rnnsmt.evaluation.text_metrics.find_spec", lambda _name: None)
    assert "unbabel-comet is not installed" in run(tmp_path)["skipped"]
    assert "COMET is skipped: the package unbabel-comet is not installed" in capsys.readouterr().err
