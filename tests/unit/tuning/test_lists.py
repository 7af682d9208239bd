"""The stages ``tuning optimize`` and ``tuning rerank`` on n-best lists of the search with a tiny model."""

import json
import random
import re
from pathlib import Path

import pytest

from rnnsmt.bleu.batch import corpus_statistics
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.cli import main
from rnnsmt.formats.ini import MosesIni

from .tiny_model import INI, write_model, write_texts


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """Create a model, a dev set with an empty last line, its translations and n-best lists."""
    directory = tmp_path_factory.mktemp("model")
    write_model(directory)
    write_texts(directory)
    for name in ("dev.en", "dev.fr"):
        (directory / name).write_text((directory / name).read_text() + "\n")
    outputs = f"--output {directory}/out --nbest-file {directory}/nbest"
    files = f"--ini {directory}/moses.ini --input {directory}/dev.en {outputs}"
    assert main(f"search decode {files} --nbest 50 --pop-limit 50 --stack 50".split()) == 0
    return directory


def optimize(model: Path, out: Path, nbest: str = "nbest", ini: str = "moses.ini", **more: object) -> int:
    files = f"--ini {model / ini} --nbest {model / nbest} --source {model}/dev.en --reference {model}/dev.fr"
    options = "".join(f" --{name.replace('_', '-')} {value}" for name, value in more.items())
    return main(f"tuning optimize {files} --output-ini {out} --seed 1 --restarts 4{options}".split())


def rerank(model: Path, ini: Path, out: Path, nbest: str = "nbest") -> list[str]:
    files = f"--ini {ini} --nbest {model / nbest} --input {model}/dev.en --output {out}"
    assert main(f"tuning rerank {files}".split()) == 0
    return out.read_text().splitlines()


def bleu(model: Path, lines: list[str]) -> float:
    return bleu_of(corpus_statistics(lines, [(model / "dev.fr").read_text().splitlines()]).sum(axis=0)).bleu


def figure(said: str, name: str) -> float:
    return float(re.findall(rf", {name} ([0-9.]+),", said)[-1])


def test_the_weights_that_decoded_choose_what_was_decoded(model, tmp_path):
    assert rerank(model, model / "moses.ini", tmp_path / "out") == (model / "out").read_text().splitlines()


@pytest.mark.parametrize("optimizer", ["mert", "mira"])
def test_better_weights(model, tmp_path, capsys, optimizer):
    assert optimize(model, tmp_path / "tuned.ini", optimizer=optimizer) == 0
    said = capsys.readouterr().err
    before, after = figure(said, "BLEU before"), figure(said, "BLEU")
    lines = rerank(model, tmp_path / "tuned.ini", tmp_path / "out")
    assert len(lines) == 31
    assert lines[-1] == ""
    assert bleu(model, (model / "out").read_text().splitlines()) == pytest.approx(before, abs=0.01)
    assert bleu(model, lines) == pytest.approx(after, abs=0.01)
    assert after > before + 5
    weights = MosesIni.read(tmp_path / "tuned.ini").weights
    assert weights["UnknownWordPenalty0"] == [1.0]
    assert sum(abs(w) for name, ws in weights.items() if name[0] != "U" for w in ws) == pytest.approx(1)


def test_weights_that_are_worse_are_not_taken(model, tmp_path, monkeypatch):
    monkeypatch.setattr("rnnsmt.tuning.optimizers.optimize_weights", lambda pool, start, *_: -start)
    assert optimize(model, tmp_path / "kept.ini") == 0
    assert MosesIni.read(tmp_path / "kept.ini").weights == MosesIni.read(model / "moses.ini").weights


def test_lists_of_several_runs_are_ranked_together(model, tmp_path, capsys):
    (tmp_path / "other.ini").write_text((model / "moses.ini").read_text().replace("LM0= ", "LM0= -"))
    inis = [model / "moses.ini", tmp_path / "other.ini"]
    alone = [rerank(model, ini, tmp_path / "out") for ini in inis]
    assert alone[0] != alone[1]
    outputs = [str(tmp_path / name) for name in ("a", "b")]
    nbest, reports = [str(model / "nbest")] * 2, [str(tmp_path / name) for name in ("a.json", "b.json")]
    command = ["tuning", "rerank", "--ini", *map(str, inis), "--nbest", *nbest, "--input", str(model / "dev.en")]
    assert main([*command, "--output", *outputs, "--report", *reports]) == 0
    assert [Path(path).read_text().splitlines() for path in outputs] == alone
    assert json.loads(Path(reports[0]).read_text()) == {"sentences": 31, "not the first of their list": 0}
    assert main([*command, "--output", outputs[0]]) == 2
    assert "2 --ini and 1 --input require 2 --nbest" in capsys.readouterr().err


def test_rerank_refuses_lists_that_lack_sentences(model, tmp_path, capsys):
    lines = [line for line in (model / "nbest").read_text().splitlines(keepends=True) if line.split()[0] != "29"]
    (model / "lacking").write_text("".join(lines))
    files = f"--ini {model}/moses.ini --nbest {model}/lacking --input {model}/dev.en --output {tmp_path}/out"
    assert main(f"tuning rerank {files}".split()) == 2
    assert "has no translation of sentence 29 (0-based)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_constant_features_are_named(model, tmp_path, capsys):
    lines = (model / "nbest").read_text().splitlines(keepends=True)
    constant = [re.sub(r"WordPenalty0= \S+", "WordPenalty0= -1", line) for line in lines]
    assert constant != lines
    (model / "constant").write_text("".join(constant))
    assert optimize(model, tmp_path / "tuned.ini", "constant") == 0
    assert (
        "features that are constant on every n-best list, whose weights are not tuned: WordPenalty0:0"
        in capsys.readouterr().err
    )


def test_the_same_whatever_the_threads(model, tmp_path):
    for threads in (1, 2):
        assert optimize(model, tmp_path / f"{threads}.ini", threads=threads) == 0
    assert (tmp_path / "1.ini").read_bytes() == (tmp_path / "2.ini").read_bytes()


@pytest.mark.parametrize(
    ("name", "line"), [("CSLM0", "CSLM name=CSLM0 path=none"), ("MyScore0", "MyScore name=MyScore0")]
)
def test_a_feature_that_knows_better(model, tmp_path, name, line):
    """A feature that is the negative number of errors gets a positive weight, if all other features are 0."""
    references = (model / "dev.fr").read_text().splitlines()
    lines = []
    for hypothesis in (model / "nbest").read_text().splitlines():
        fields = hypothesis.split("|||")
        words, right = fields[1].split(), references[int(fields[0])].split()
        errors = sum(a != b for a, b in zip(words, right, strict=False)) + abs(len(words) - len(right))
        zeros = " ".join(word if word.endswith("=") else "0" for word in fields[2].split())
        fields[2] = f" {zeros} {name}= {-errors} "
        lines.append("|||".join(fields) + "\n")
    (model / "nbest.errors").write_text("".join(lines))
    with_it = INI.replace("[weight]", f"{line}\n[weight]") + f"{name}= 0\n"
    (model / "errors.ini").write_text(with_it)
    assert optimize(model, tmp_path / "tuned.ini", "nbest.errors", "errors.ini") == 0
    assert MosesIni.read(tmp_path / "tuned.ini").weight(f"{name}:0") > 0
    best = rerank(model, tmp_path / "tuned.ini", tmp_path / "out", "nbest.errors")
    assert sum(a == b for a, b in zip(best, references, strict=True)) > 25
    first = rerank(model, model / "errors.ini", tmp_path / "out", "nbest.errors")
    assert first == (model / "out").read_text().splitlines()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("other features", "which"),
        ("one translation each", "no feature differs"),
        ("weights 0", "all weights are 0"),
        ("too many", "but the source text has 31 lines"),
        ("lacks sentences", "has no translation of sentence 3 (0-based) and of 1 more"),
        ("nothing matches", "shares a 1-gram with its reference"),
    ],
)
def test_refuses(model, tmp_path, capsys, change, said):
    lines = (model / "nbest").read_text().splitlines(keepends=True)
    ini = INI
    if change == "other features":
        lines = [line.replace("Distortion0=", "Distance0=") for line in lines]
    elif change == "one translation each":
        lines = list({line.split()[0]: line for line in lines}.values())
    elif change == "lacks sentences":
        lines = [line for line in lines if line.split()[0] not in ("3", "7")]
    elif change == "nothing matches":
        lines = [" ||| ".join([line.split(" ||| ")[0], "q q q q", *line.split(" ||| ")[2:]]) for line in lines]
    elif change == "weights 0":
        head, _, weights = INI.partition("[weight]\n")
        zero = (f"{line.split()[0]} " + " ".join("0" for _ in line.split()[1:]) for line in weights.splitlines())
        ini = f"{head}[weight]\n" + "\n".join(zero) + "\n"
    else:
        lines.append(lines[-1].replace(lines[-1].split()[0], "99", 1))
    (model / "bad").write_text("".join(lines))
    (model / "bad.ini").write_text(ini)
    assert optimize(model, tmp_path / "tuned.ini", "bad", "bad.ini") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "tuned.ini").exists()


def test_lists_in_any_order_of_arrival_are_not_sorted_silently(model, tmp_path, capsys):
    lines = (model / "nbest").read_text().splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    (model / "shuffled").write_text("".join(lines))
    assert optimize(model, tmp_path / "tuned.ini", "shuffled") == 2
    assert "sort the list" in capsys.readouterr().err
