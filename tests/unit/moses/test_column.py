"""`moses add-column`: a neural column for a Moses phrase table; input, moses.ini, and invalid input."""

import gzip
import random
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.base.io import InputError
from rnnsmt.cli import main
from rnnsmt.moses.column import check_language_models, check_text_of_table, number_of_scores
from rnnsmt.moses.ini import MosesIni

SOURCE = [f"s{n}" for n in range(12)]
TARGET = [f"t{n}" for n in range(12)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create training and dev text of a toy language, and a phrase table of its words and word pairs."""
    directory = tmp_path_factory.mktemp("toy")
    drawn = random.Random(1)
    for name, lines in (("train", 200), ("dev", 12)):
        rows = [[drawn.randrange(12) for _ in range(drawn.randint(2, 5))] for _ in range(lines)]
        for side, words in (("s", SOURCE), ("t", TARGET)):
            (directory / f"{name}.{side}").write_text("".join(" ".join(words[n] for n in row) + "\n" for row in rows))
    pairs = [((n,), (m,)) for n in range(12) for m in {n, (n + 1) % 12}]
    pairs += [((n, m), (n, m)) for n in range(12) for m in range(0, 12, 3)]
    lines = [
        f"{' '.join(SOURCE[n] for n in one)} ||| {' '.join(TARGET[n] for n in other)} ||| "
        f"{0.9 if one == other else 0.1} 0.5 0.4 0.3 ||| 0-0 ||| 3 2 1\n"
        for one, other in pairs
    ]
    with gzip.open(directory / "phrase-table.gz", "wt") as out:
        out.writelines(sorted(lines))
    return directory


def command(files: Path, output: Path, *options: str) -> list[str]:
    text = ["--source", str(files / "train.s"), "--target", str(files / "train.t")]
    small = ["--preset", "demo", "--epochs", "1", "--vocab-size", "20", "--device", "cpu"]
    return ["moses", "add-column", *text, *small, "--output-dir", str(output), *options]


def table(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt") as lines:
        return [line.rstrip("\n").split(" ||| ") for line in lines]


def test_a_table_and_a_corpus_in_an_ini_out(files, tmp_path, capsys):
    """The network's probability is the fifth score and other fields do not change; the new ini can be decoded."""
    out = tmp_path / "out"
    assert main(command(files, out, "--phrase-table", str(files / "phrase-table.gz"), "--lm-order", "2")) == 0
    before, after = table(files / "phrase-table.gz"), table(out / "phrase-table.gz")
    scores = np.exp(np.load(out / "column.npy"))
    assert [float(row[2].split()[4]) for row in after] == pytest.approx(scores, rel=1e-3)
    for old, new in zip(before, after, strict=True):
        assert [*new[:2], " ".join(new[2].split()[:4]), *new[3:]] == old
    ini = MosesIni.read(out / "moses.ini")
    assert ini.weights["TranslationModel0"] == [0.2] * 5
    assert f"moses.ini {out / 'moses.ini'}, scores 5, tuned no" in capsys.readouterr().err
    decoded = ["--input", str(files / "dev.s"), "--output", str(tmp_path / "dev.out")]
    assert main(["search", "decode", "--ini", str(out / "moses.ini"), *decoded]) == 0
    assert (tmp_path / "dev.out").read_text().split()[0].startswith("t")


def test_an_ini_and_dev_text(files, tmp_path, capsys):
    """Weights and limits of an ini are kept before tuning; a second call repeats nothing unless options changed."""
    model = tmp_path / "model"
    assert main(command(files, model, "--phrase-table", str(files / "phrase-table.gz"), "--lm-order", "2")) == 0
    ini = MosesIni.read(model / "moses.ini")
    feature = next(feature for feature in ini.features if feature.name == "TranslationModel0")
    feature.options |= {"path": str(files / "phrase-table.gz"), "num-features": "4"}
    ini.weights["TranslationModel0"] = [0.11, 0.12, 0.13, 0.14]
    ini.distortion_limit = 3
    ini.write(model / "own.ini")
    out = tmp_path / "out"
    dev = ["--dev-source", str(files / "dev.s"), "--dev-reference", str(files / "dev.t"), "--iterations", "1"]
    call = command(files, out, "--ini", str(model / "own.ini"), *dev)
    assert main(call) == 0
    untuned, tuned = (MosesIni.read(out / name) for name in ("untuned.ini", "moses.ini"))
    assert untuned.weights["TranslationModel0"] == [0.11, 0.12, 0.13, 0.14, 0.2]
    assert untuned.distortion_limit == 3
    assert tuned.is_same_model(untuned)
    assert tuned.weights != untuned.weights
    capsys.readouterr()
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file() and path.suffix != ".ini"}
    assert main(call) == 0
    assert capsys.readouterr().err.count(": already done") == 5
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert main([*call, "--seed", "2"]) == 0
    assert capsys.readouterr().err.count(": already done") == 1, "only the pairs"


def test_an_error_of_a_stage_is_the_error_of_the_command(files, tmp_path, capsys):
    call = command(files, tmp_path / "out", "--phrase-table", str(files / "phrase-table.gz"))
    call[call.index("--vocab-size") + 1] = "1"
    assert main(call) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("rnnsmt moses add-column: error: prepare: ")
    assert "vocab" in said and "logs/prepare.log)" in said


def test_a_text_that_the_table_was_not_trained_on_is_refused(files, tmp_path, capsys):
    """Swapped sides and different line counts are refused before any output; a few unknown words cause a warning."""
    call = command(files, tmp_path / "out", "--phrase-table", str(files / "phrase-table.gz"))
    source, target = (call.index(side) + 1 for side in ("--source", "--target"))
    swapped = list(call)
    swapped[source], swapped[target] = call[target], call[source]
    assert main(swapped) == 2
    assert "12 of the 12 words in the first lines of" in (said := capsys.readouterr().err)
    assert "check that source and target are not swapped" in said
    short = list(call)
    short[target] = str(files / "dev.t")
    assert main(short) == 2
    assert f"train.s has 200 lines, but {files / 'dev.t'} has 12" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    (tmp_path / "other.s").write_text((files / "train.s").read_text().replace("s3", "s4"))
    check_text_of_table(files / "phrase-table.gz", (tmp_path / "other.s", files / "train.t"))
    assert "warning: 1 of the 12 words" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"mmap lm http://kheafield.com/code format version 5\n", None])
def test_language_models_are_checked_before_the_training(files, tmp_path, capsys, content):
    if content is not None:
        (tmp_path / "lm.en").write_bytes(content)
    ini = tmp_path / "moses.ini"
    ini.write_text(INI.format(table=MEMORY, lm="en"))
    with pytest.raises(InputError, match="no such file" if content is None else "binary language models are not"):
        check_language_models(MosesIni.read(ini))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.minphr", b"x", "is a binary phrase table, to which no score can be added; use the text file"),
        ("t.binphr.idx", b"x", "is a binary phrase table, to which no score can be added"),
        ("table", None, "is a binary phrase table, to which no score can be added"),
        ("t.gz", bytes(100), "t.gz: damaged or not compressed"),
        ("t", b"\x01\0\0\0" * 9, "is a binary file, not a plain-text phrase table"),
        ("t", b"a b c\n", "line 1: expected SOURCE ||| TARGET ||| SCORES"),
        ("t", b"a ||| b ||| x y\n", "line 1: expected SOURCE ||| TARGET ||| SCORES"),
        ("t", b"", "line 1: expected SOURCE ||| TARGET ||| SCORES"),
        ("none", "", "none: no such file"),
    ],
)
def test_tables_that_are_no_text(files, tmp_path, capsys, name, content, message):
    path = tmp_path / name
    if content is None:
        path.mkdir()
    elif content != "":
        path.write_bytes(content)
    assert main(command(files, tmp_path / "out", "--phrase-table", str(path))) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


INI = """\
[feature]
{table}
WordPenalty
KENLM name=LM0 path=lm.{lm} order=2
[weight]
TranslationModel0= 0.2 0.2 0.2 0.2
WordPenalty0= -1
LM0= 0.5
"""
MEMORY = "PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=phrase-table.gz"


@pytest.mark.parametrize(
    ("table_line", "lm", "options", "message"),
    [
        (
            MEMORY.replace("Memory", "Compact"),
            "arpa",
            [],
            "line 2: PhraseDictionaryCompact is a binary phrase table, created "
            "by processPhraseTableMin, to which no score can be added; replace it with PhraseDictionaryMemory",
        ),
        ("ProbingPT name=TranslationModel0 num-features=4 path=x", "arpa", [], "ProbingPT is a binary phrase table"),
        (MEMORY.replace("num-features=4", "num-features=3"), "arpa", [], "has 3 scores but 4 weights"),
        (MEMORY.replace("phrase-table.gz", "x.gz"), "arpa", [], "the file of TranslationModel0 is missing"),
        (MEMORY, "arpa", ["--lm", "x"], "--reordering-table and --lm cannot be combined with --ini"),
        (MEMORY, "arpa", ["--dev-source", "x"], "--dev-source and --dev-reference must be used together"),
        (MEMORY, "arpa", ["--phrase-table", "x"], "either --ini or, for a model without a moses.ini, --phrase-table"),
        (
            MEMORY,
            "binlm",
            ["--dev-source", "train.s", "--dev-reference", "train.t"],
            "lm.binlm: binary language models are",
        ),
    ],
)
def test_inis_that_are_refused(files, tmp_path, capsys, monkeypatch, table_line, lm, options, message):
    for path in files.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "moses.ini").write_text(INI.format(table=table_line, lm=lm))
    monkeypatch.chdir(tmp_path)
    assert main(command(files, tmp_path / "out", "--ini", "moses.ini", *options)) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_number_of_scores(files):
    assert number_of_scores(files / "phrase-table.gz") == 4
