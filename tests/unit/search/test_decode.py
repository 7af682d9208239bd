"""``rnnsmt search decode`` on the command line: files, empty and long lines, and many kinds of invalid input."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rnnsmt
from rnnsmt.base.errors import InputError
from rnnsmt.base.reading import read_lines
from rnnsmt.base.writing import write_lines
from rnnsmt.cli import main
from rnnsmt.formats.ini import same_models
from rnnsmt.formats.nbest import segmentation
from rnnsmt.search import decoder
from rnnsmt.search.phrase_pairs import load_phrase_table, load_reordering_table

from .twin import parse_segmentation, tiny_model


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Create a tiny model with an input text."""
    tiny_model(tmp_path / "model", 1)
    (tmp_path / "in.txt").write_text("a b c\n\n  c   d a \n")
    return tmp_path


def _command(directory: Path, *more: str, ini: str = "model/moses.ini") -> list[str]:
    return [
        "search", "decode", "--ini", str(directory / ini), "--input", str(directory / "in.txt"),
        "--output", str(directory / "out.txt"), *more,
    ]  # fmt: skip


def _refused(directory: Path, capsys: pytest.CaptureFixture[str], *more: str, ini: str = "model/moses.ini") -> str:
    """Run the stage, which must exit with code 2, an error of one line at the end, and no output; return the error."""
    before = sorted(directory.rglob("*"))
    capsys.readouterr()
    assert main(_command(directory, *more, ini=ini)) == 2
    lines = capsys.readouterr().err.splitlines()
    error = next(line for line in lines if line.startswith("rnnsmt search decode: error: "))
    assert error == lines[-1]
    assert sorted(directory.rglob("*")) == before
    return error


def test_translations_nbest_and_report(directory: Path) -> None:
    more = ["--nbest", "5", "--nbest-file", str(directory / "nbest.gz"), "--report", str(directory / "r.json")]
    assert main(_command(directory, *more)) == 0
    texts = (directory / "out.txt").read_text().split("\n")
    assert texts[1] == ""
    assert texts[3:] == [""]
    assert "d" in texts[2].split()
    entries = gzip.decompress((directory / "nbest.gz").read_bytes()).decode().splitlines()
    fields = [entry.split(" ||| ") for entry in entries]
    assert {f[0] for f in fields} == {"0", "2"}
    assert fields[0][1].strip() == texts[0]
    assert re.fullmatch(
        r"LexicalReordering0=( \S+){6} Distortion0= \S+ LM0= \S+ WordPenalty0= \S+ PhrasePenalty0= \S+ "
        r"TranslationModel0=( \S+){4}",
        fields[0][2],
    )
    report = json.loads((directory / "r.json").read_text())
    assert (report["sentences"], report["words"], report["unknown_words"]) == (3, 6, 1)
    first = (directory / "out.txt").read_bytes(), (directory / "nbest.gz").read_bytes()
    assert main(_command(directory, *more, "--threads", "2")) == 0
    assert first == ((directory / "out.txt").read_bytes(), (directory / "nbest.gz").read_bytes())


@pytest.mark.parametrize("binary", [False, True])
def test_chunks_of_a_text_are_translated_as_the_whole(
    directory: Path, binary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Translations do not depend on the chunk size; pages of a binary model are unmapped between chunks."""
    (directory / "in.txt").write_text("a b c\n\nc d a\nb x a e\n\n")
    if binary:
        assert main(["search", "binarize", "--ini", str(directory / "model/moses.ini")]) == 0
    names = ("out.txt", "nbest", "details")
    more = ["--nbest", "5", "--nbest-file", str(directory / "nbest"), "--output-details", str(directory / "details")]
    found = []
    for size in (decoder.CHUNK, 2, 1):
        monkeypatch.setattr(decoder, "CHUNK", size)
        assert main(_command(directory, *more, "--report", str(directory / "r.json"))) == 0
        report = json.loads((directory / "r.json").read_text())
        found.append(([(directory / name).read_bytes() for name in names], report))
    assert found[0] == found[1] == found[2]
    assert found[0][1]["words"] == 10
    assert found[0][0][1].count(b"\n") > 5


def test_several_texts_are_translated_as_each_alone(directory: Path) -> None:
    (directory / "more.txt").write_text("b a\nd\n")
    alone = []
    for name in ("in", "more"):
        command = [*_command(directory), "--report", str(directory / "r.json")]
        command[command.index("--input") + 1] = str(directory / f"{name}.txt")
        assert main(command) == 0
        alone.append(((directory / "out.txt").read_text(), json.loads((directory / "r.json").read_text())))
    files = [[str(directory / f"{name}.{kind}") for name in ("in", "more")] for kind in ("txt", "out", "json")]
    ini = str(directory / "model" / "moses.ini")
    options = ["--input", *files[0], "--output", *files[1], "--report", *files[2]]
    assert main(["search", "decode", "--ini", ini, *options]) == 0
    for (text, report), out, figures in zip(alone, files[1], files[2], strict=True):
        found = json.loads(Path(figures).read_text())
        assert Path(out).read_text() == text
        assert found == report
        assert not [name for name in report if "seconds" in name], "times would make equal runs differ"


def test_several_inis_translate_as_each_alone(directory: Path) -> None:
    (directory / "more.txt").write_text("b a\nd\n")
    model = directory / "model"
    text = (model / "moses.ini").read_text()
    (model / "other.ini").write_text(re.sub(r"(?m)^(LM0|TranslationModel0)= ", r"\1= -", text))
    inis = [str(model / name) for name in ("moses.ini", "other.ini")]
    inputs = [str(directory / f"{name}.txt") for name in ("in", "more")]
    alone = []
    for ini in inis:
        for text in inputs:
            out = str(directory / "out.txt")
            assert main(["search", "decode", "--ini", ini, "--input", text, "--output", out]) == 0
            alone.append(Path(out).read_text())
    assert alone[:2] != alone[2:]
    outputs = [str(directory / f"{number}.out") for number in range(4)]
    assert main(["search", "decode", "--ini", *inis, "--input", *inputs, "--output", *outputs]) == 0
    assert [Path(out).read_text() for out in outputs] == alone


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("path=lm", "path=./other-lm"),
        (r"(?m)^Distortion.*|^Distortion0=.*", ""),
        (r"\[distortion-limit\]\n\d+", "[distortion-limit]\n3"),
        (r"\Z", "\n[drop-unknown]\n1\n"),
        (r"\Z", "\n[ttable-limit]\n7\n"),
    ],
)
def test_inis_of_different_models(directory: Path, old: str, new: str) -> None:
    model = directory / "model"
    text = (model / "moses.ini").read_text()
    changed = re.sub(old, new, text)
    assert changed != text
    (model / "other.ini").write_text(changed)
    (model / "weights.ini").write_text(text.replace("LM0= ", "LM0= -"))
    inis = [str(model / name) for name in ("moses.ini", "other.ini", "weights.ini")]
    assert [list(alike) for _, alike in same_models(inis, None)] == [[0, 2], [1]]


def test_inis_of_other_models_translate_as_each_alone(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Several inis of several models, with or without --model-dir, translate as in separate calls."""
    model, tables = directory / "model", directory / "tables"
    text = (model / "moses.ini").read_text()
    (model / "other.ini").write_text(text + "\n[drop-unknown]\n1\n")
    tables.mkdir()
    table = next(path for path in model.iterdir() if path.name.startswith("phrase-table"))
    lines = list(read_lines(table))
    write_lines(tables / table.name, [line for line in lines if not line.startswith("a |||")])
    inis = [str(model / name) for name in ("moses.ini", "other.ini", "moses.ini")]
    directories = [str(part) for part in (model, model, tables)]
    alone = []
    for ini, part in zip(inis, directories, strict=True):
        out = str(directory / "out.txt")
        options = ["--input", str(directory / "in.txt"), "--output", out]
        assert main(["search", "decode", "--ini", ini, "--model-dir", part, *options]) == 0
        alone.append(Path(out).read_text())
    assert len(set(alone)) == 3
    outputs = [str(directory / f"{number}.out") for number in range(3)]
    options = ["--input", str(directory / "in.txt"), "--output", *outputs]
    assert main(["search", "decode", "--ini", *inis, "--model-dir", *directories, *options]) == 0
    assert [Path(out).read_text() for out in outputs] == alone
    refused = ["search", "decode", "--ini", *inis, "--model-dir", *directories[:2], *options]
    assert main(refused) == 2
    assert "2 directories for 3 --ini" in capsys.readouterr().err


def test_as_many_outputs_as_inputs(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = _refused(directory, capsys, "--report", str(directory / "a"), str(directory / "b"))
    assert "--report: 1 --ini and 1 --input require 1 files, got 2" in said


def test_a_word_passed_through_is_the_same_as_in_a_phrase(directory: Path) -> None:
    """Derivations with the same text are one entry of the n-best list, also if an unknown word is copied."""
    table = directory / "model" / "phrase-table"
    table.write_text(table.read_text() + "a d ||| u d ||| 1 1 1 1 |||\na ||| u ||| 1 1 1 1 |||\n")
    (directory / "in.txt").write_text("a d\n")
    assert main(_command(directory, "--nbest", "50", "--nbest-file", str(directory / "nbest"))) == 0
    texts = [line.split(" ||| ")[1].strip() for line in (directory / "nbest").read_text().splitlines()]
    assert "u d" in texts
    assert len(texts) == len(set(texts))


def test_a_word_that_only_a_longer_phrase_translates_is_not_unknown(directory: Path) -> None:
    table = directory / "model" / "phrase-table"
    table.write_text(table.read_text() + "d a ||| w ||| 1 1 1 1 |||\n")
    (directory / "in.txt").write_text("d a\nb d\n")
    assert main(_command(directory, "--report", str(directory / "r.json"))) == 0
    assert (directory / "out.txt").read_text().splitlines()[0] == "w"
    assert json.loads((directory / "r.json").read_text())["unknown_words"] == 1


def test_an_empty_phrase_table_is_reported(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty phrase table causes a warning."""
    assert main(_command(directory)) == 0
    assert "no phrase pairs" not in capsys.readouterr().err
    (directory / "model" / "phrase-table").write_text("")
    assert main(_command(directory)) == 0
    assert "phrase-table: contains no phrase pairs; all words remain untranslated" in capsys.readouterr().err


def _change_ini(directory: Path, more: str) -> None:
    path = directory / "model/moses.ini"
    path.write_text(f"{more}\n{path.read_text()}")


def test_unknown_words_are_dropped_where_the_ini_says_so(directory: Path) -> None:
    """With drop-unknown, unknown words without digits are removed and still penalised, as in Moses."""
    (directory / "in.txt").write_text("d a d2 d\nd\nd d d\n")
    more = ["--nbest", "9", "--nbest-file", str(directory / "nbest"), "--report", str(directory / "r.json")]
    assert main(_command(directory, *more)) == 0
    kept = (directory / "out.txt").read_text().splitlines()
    assert [line.split().count("d") for line in kept] == [2, 1, 3]
    score = json.loads((directory / "r.json").read_text())["score_sum"]
    _change_ini(directory, "[drop-unknown]\n1\n")
    assert main(_command(directory, *more)) == 0
    dropped = (directory / "out.txt").read_text().splitlines()
    assert "d2" in dropped[0].split() and "d" not in dropped[0].split()
    assert dropped[1:] == ["", ""]
    entries = [line.split(" ||| ") for line in (directory / "nbest").read_text().splitlines()]
    alone = next(fields for fields in entries if fields[0] == "1")
    assert "WordPenalty0= -0 " in alone[2] or "WordPenalty0= 0 " in alone[2]
    assert alone[4] == "0="
    report = json.loads((directory / "r.json").read_text())
    assert report["unknown_words"] == 7
    assert report["score_sum"] != score


def test_limits_of_the_ini_are_the_defaults(directory: Path) -> None:
    def limits(*more: str) -> tuple[int, int]:
        assert main(_command(directory, "--report", str(directory / "r.json"), *more)) == 0
        report = json.loads((directory / "r.json").read_text())
        return report["pop_limit"], report["stack"]

    assert limits() == (1000, 1000)
    _change_ini(directory, "[cube-pruning-pop-limit]\n70\n\n[stack]\n30\n")
    assert limits() == (70, 30)
    assert limits("--pop-limit", "50") == (50, 30)
    assert limits("--stack", "20") == (70, 20)


@pytest.mark.parametrize("section", ["[xml-input]\nconstraint", "[phrase-drop-allowed]", "[lattice-mbr]\n1"])
def test_sections_that_would_change_the_translation(
    directory: Path, capsys: pytest.CaptureFixture[str], section: str
) -> None:
    _change_ini(directory, section)
    error = _refused(directory, capsys)
    assert "moses.ini, line 1: " in error
    assert section.splitlines()[0] in error


@pytest.mark.parametrize("paths", ["0 T 0\n1 T 1", "0 T 0\n0 G 0", "0 T 1"])
def test_other_decoding_paths_are_refused(directory: Path, capsys: pytest.CaptureFixture[str], paths: str) -> None:
    ini = directory / "model" / "moses.ini"
    text = ini.read_text().replace("[mapping]\n0 T 0\n", f"[mapping]\n{paths}\n")
    ini.write_text(text)
    error = _refused(directory, capsys)
    assert f"moses.ini, line {text.splitlines().index('[mapping]') + 1}: [mapping] " in error
    assert "supports only one decoding path with one phrase table; use 0 T 0" in error
    assert error.count("\n") <= 1


def test_raw_text_is_reported(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "in.txt").write_text("A b c.\nHello, a b\n")
    assert main(_command(directory)) == 0
    error = capsys.readouterr().err
    assert "warning: 50 % of the words are unknown, A for example; is the input tokenised and truecased" in error
    twice = [
        "--ini",
        *[str(directory / "model" / "moses.ini")] * 2,
        "--output",
        str(directory / "1"),
        str(directory / "2"),
    ]
    assert main([*_command(directory), *twice]) == 0
    assert capsys.readouterr().err.count("warning: 50 %") == 1
    (directory / "in.txt").write_text("a b c .\nd d d a\n")
    assert main(_command(directory)) == 0
    assert "warning" not in capsys.readouterr().err


def test_in_a_pipe(directory: Path) -> None:
    assert main(_command(directory)) == 0
    command = [sys.executable, "-m", "rnnsmt", "search", "decode", "--ini", str(directory / "model/moses.ini")]
    command += ["--input", "-", "--output", "-"]
    text = (directory / "in.txt").read_bytes()
    done = subprocess.run(command, input=text, capture_output=True, check=False, cwd=directory, timeout=300)
    assert done.returncode == 0
    assert done.stdout == (directory / "out.txt").read_bytes()
    assert not (directory / "-").exists()
    done = subprocess.run(command, input=text + b"\xff\n", capture_output=True, check=False, cwd=directory, timeout=300)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"standard input, line 4: not UTF-8" in done.stderr


def test_an_lm_in_place_of_a_network(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _change_ini(directory, "")
    path = directory / "model/moses.ini"
    text = path.read_text().replace("[weight]", "CSLM name=CSLM0 path=lm.arpa\n[weight]\nCSLM0= 0.2")
    path.write_text(text)
    error = _refused(directory, capsys)
    assert re.search(r"lm\.arpa: is not a complete safetensors file.*; train it again", error)


def test_model_dir_replaces_files_of_the_same_name(directory: Path) -> None:
    other = directory / "filtered"
    other.mkdir()
    (other / "phrase-table").write_text("a ||| filtered ||| 1 1 1 1 |||\n")
    assert main(_command(directory, "--model-dir", str(other))) == 0
    assert "filtered" in (directory / "out.txt").read_text()


def test_an_empty_input_gives_an_empty_output(directory: Path) -> None:
    (directory / "in.txt").write_text("")
    assert main(_command(directory)) == 0
    assert (directory / "out.txt").read_text() == ""


def test_long_lines_and_unlimited_distortion(directory: Path) -> None:
    ini = (directory / "model/moses.ini").read_text()
    (directory / "in.txt").write_text(" ".join(["a b c d"] * 80) + "\n" + "zz " * 500 + "\n")
    for limit in ("6", "-1", "0", "100"):
        (directory / "model/moses.ini").write_text(ini.replace("[distortion-limit]\n6", f"[distortion-limit]\n{limit}"))
        assert main(_command(directory, "--pop-limit", "50", "--stack", "50")) == 0
        lines = (directory / "out.txt").read_text().splitlines()
        assert lines[0].split().count("d") == 80
        assert lines[1].split() == ["zz"] * 500


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a ||| b\n", "line 1: contains |||"),
        (b"a\nb\x00c\n", "line 2: control character U+0000"),
        (b"a\tb\n", "U+0009"),
        ("a\x85b\n".encode(), "U+0085"),
        (b"a\r\n", "U+000D"),
        (b"caf\xe9\n", "line 1: not UTF-8"),
        (b"a " * 5000 + b"\n", "more than 4000 words"),
    ],
)
def test_input_that_is_no_tokenised_text(
    directory: Path, capsys: pytest.CaptureFixture[str], content: bytes, words: str
) -> None:
    (directory / "in.txt").write_bytes(content)
    assert words in _refused(directory, capsys)


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        (
            "phrase-table",
            r"^a \|\|\| .*",
            "a ||| u ||| 0.1 0.2 0.3 ||| 0-0 ||| |||",
            "line 1: does not have the 4 scores",
        ),
        ("phrase-table", r"^a \|\|\| .*", "a ||| u ||| 0.1 0.2 0.3 1 1 |||", "line 1: does not have the 4 scores"),
        ("phrase-table", r"^a \|\|\| .*", "a ||| u ||| 0.1 0.2 nan 1 |||", "line 1: '0.1 0.2 nan 1' are not scores"),
        ("phrase-table", r"^a \|\|\| .*", "a ||| u ||| 0.1 0.2 -1 1 |||", "line 1: '0.1 0.2 -1 1' are not scores"),
        ("phrase-table", r"^a \|\|\| .*", "a ||| u ||| 0.1 0.2 x 1 |||", "line 1: '0.1 0.2 x 1' are not scores"),
        ("phrase-table", r"^a \|\|\| .*", "a ||| u", "line 1: 2 field(s) between |||"),
        ("phrase-table", r"^a \|\|\| .*", "", "line 1: 1 field(s) between |||"),
        ("phrase-table", r"^a \|\|\| .*", " ||| u ||| 1 1 1 1", "line 1: the source phrase is empty"),
        ("phrase-table", r"^a \|\|\| .*", "a ||| \udcff ||| 1 1 1 1", "not UTF-8"),
        ("reordering", r"^b \|\|\| (.*) \|\|\| .*", r"b ||| \1 ||| 1 1 1", "line 1: does not have the 6 scores"),
        (
            "reordering",
            r"^b \|\|\| (.*) \|\|\| .*",
            r"b ||| \1 ||| 1 1 1 1 1 nan",
            "line 1: '1 1 1 1 1 nan' are not probabilities",
        ),
        ("reordering", r"^b \|\|\| (.*) \|\|\| .*", r"b", "line 1: 1 field(s) between |||"),
        ("lm.arpa", r"\\data\\", "", "expected"),
        (
            "moses.ini",
            "path=phrase-table",
            "path=nowhere",
            "moses.ini, line 14: the file of TranslationModel0 is missing",
        ),
        ("moses.ini", "path=phrase-table", "", "has no path="),
        ("moses.ini", "PhraseDictionaryMemory", "PhraseDictionaryCompact", "unknown feature PhraseDictionaryCompact"),
        (
            "moses.ini",
            "wbe-msd-bidirectional-fe-allff",
            "hier-msd-bidirectional-f-allff",
            "f: not supported",
        ),
        (
            "moses.ini",
            "wbe-msd-bidirectional-fe-allff",
            "wbe-msd-bidirectional-fe-collapseff",
            "collapseff: not supported",
        ),
        ("moses.ini", "wbe-msd-bidirectional-fe-allff", "wbe-mslr-bidirectional-fe-allff", "has 8 scores, but"),
        ("moses.ini", "wbe-msd-bidirectional-fe-allff", "wbe-bidirectional-fe", "its parts: not supported"),
        ("moses.ini", "input-factor=0", "input-factor=0,1", "factored models"),
        ("moses.ini", "KENLM", "NeuralLM", "line 17: unknown feature NeuralLM"),
        ("moses.ini", "Distortion\n", "Distortion\nDistortion name=Distortion1\n", "no line in [weight]"),
        ("moses.ini", "LM0= .*", "LM0= 1 2", "1 scores but 2 weights"),
        ("moses.ini", r"\[feature\]", "[nothing]", "[weight]|no [feature]|such feature"),
    ],
)
def test_damaged_models(
    directory: Path, capsys: pytest.CaptureFixture[str], file: str, old: str, new: str, words: str
) -> None:
    path = directory / "model" / file
    text = path.read_text()
    changed = re.sub(old, new, text, count=1, flags=re.MULTILINE)
    assert changed != text
    path.write_bytes(changed.encode("utf-8", "surrogateescape"))
    error = _refused(directory, capsys)
    assert any(part in error for part in words.split("|"))


def test_a_cut_table(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = gzip.compress((directory / "model/phrase-table").read_bytes() * 50)
    (directory / "model/phrase-table.gz").write_bytes(packed[: len(packed) // 2])
    ini = (directory / "model/moses.ini").read_text().replace("path=phrase-table", "path=phrase-table.gz")
    (directory / "model/moses.ini").write_text(ini)
    assert "damaged" in _refused(directory, capsys)


def test_lists_of_several_texts(directory: Path) -> None:
    """The n-best list of a text does not depend on other texts of the call."""
    (directory / "more.txt").write_text("b a\nd\n")
    texts = [str(directory / name) for name in ("in.txt", "more.txt")]
    together = [str(directory / f"{number}.nbest") for number in range(2)]
    command = ["search", "decode", "--ini", str(directory / "model/moses.ini"), "--nbest", "5"]
    outputs = ["--output", str(directory / "a"), str(directory / "b")]
    assert main([*command, "--input", *texts, *outputs, "--nbest-file", *together]) == 0
    for text, nbest in zip(texts, together, strict=True):
        alone = ["--output", str(directory / "c"), "--nbest-file", str(directory / "alone")]
        assert main([*command, "--input", text, *alone]) == 0
        assert Path(nbest).read_bytes() == (directory / "alone").read_bytes() != b""


def test_a_score_of_whole_translations_is_refused(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ini = (directory / "model/moses.ini").read_text()
    ini = ini.replace("[feature]", "[feature]\nRescored name=LSTM0").replace("[weight]", "[weight]\nLSTM0= 1")
    (directory / "model/moses.ini").write_text(ini)
    assert "LSTM0 scores complete translations" in _refused(directory, capsys)


@pytest.mark.parametrize("more", [["--nbest", "5"], ["--nbest-file", "x"]])
def test_options_that_make_no_sense(directory: Path, capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    assert "--" in _refused(directory, capsys, *more)


def test_python_and_the_command_give_the_same(directory: Path) -> None:
    """Translations and n-best lists are values, of lists and of files; messages name arguments."""
    names = ("nbest", "details")
    files = ["--nbest-file", str(directory / "nbest"), "--output-details", str(directory / "details")]
    assert main(_command(directory, "--nbest", "5", *files)) == 0
    before = [(directory / name).read_bytes() for name in ("out.txt", *names)]
    ini, lines = directory / "model/moses.ini", (directory / "in.txt").read_text().splitlines()
    outputs = {"nbest_file": directory / "nbest", "output_details": directory / "details"}
    written = rnnsmt.search.decode(ini, [directory / "in.txt"], directory / "out.txt", nbest=5, **outputs)
    assert [(directory / name).read_bytes() for name in ("out.txt", *names)] == before
    found = rnnsmt.search.decode(ini, lines, nbest=5)
    assert found == written == (directory / "out.txt").read_text().splitlines()
    assert [list(map(len, one.nbest)) for one in (written, found)] == [[], [5, 0, 5]]
    best = found.nbest[0][0]
    fields = (directory / "nbest").read_text().splitlines()[0].split(" ||| ")
    assert best.text == found[0] == fields[1].strip()
    assert best.score == pytest.approx(float(fields[3]), abs=1e-3)
    assert best.features["WordPenalty0:0"] == -len(best.text.split())
    assert rnnsmt.search.decode(ini, [lines, lines[:1]], nbest=5) == [*found, found[0]]
    with pytest.raises(InputError, match=r"^output: 1 ini and 2 input require 2 files, got 1"):
        rnnsmt.search.decode(ini, [lines, lines], directory / "out.txt")


def test_missing_files(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing.ini: no such file" in _refused(directory, capsys, ini="nothing.ini")
    assert "no such directory" in _refused(directory, capsys, "--model-dir", str(directory / "nowhere"))
    (directory / "in.txt").unlink()
    assert "in.txt: no such file" in _refused(directory, capsys)


def test_tables_are_filtered_by_the_sentences_and_floored(tmp_path: Path) -> None:
    path = tmp_path / "pt"
    path.write_text("a ||| x ||| 1 0 ||| ||| |||\na b ||| x y ||| 0.5 1e-3\nc ||| z ||| 1 1\nb ||| x ||| 2 1e-60\n")
    table = load_phrase_table(path, 2, ["q a b", "b"])
    assert table.sources.strings() == [b"a", b"a b", b"b"]
    assert table.log_scores == pytest.approx(np.array([[0, -100], [np.log(0.5), np.log(1e-3)], [np.log(2), -100]]))
    assert len(load_phrase_table(path, 2, None).source_of) == 4
    assert len(load_phrase_table(path, 2, []).source_of) == 0
    (tmp_path / "rt").write_text("a ||| x ||| .1 .2 .3 .4 .5 0\nnot ||| known ||| 1\n")
    reordering = load_reordering_table(tmp_path / "rt", table, 6)
    scores = reordering.log_scores[reordering.row_of]
    assert scores[0] == pytest.approx([*np.log([0.1, 0.2, 0.3, 0.4, 0.5]), -100])
    assert (scores[1:] == 0).all()


@pytest.mark.parametrize("further", [" |||", " ||| ", " ||| 0-0 ||| 1 1 1"])
def test_further_fields_of_a_reordering_table_are_ignored(directory: Path, further: str) -> None:
    """As in Moses' LexicalReorderingTableMemory, which reads the scores and nothing after them."""
    assert main(_command(directory)) == 0
    plain = (directory / "out.txt").read_bytes()
    table = directory / "model" / "reordering"
    write_lines(table, [line + further for line in read_lines(table)])
    assert main(_command(directory)) == 0
    assert (directory / "out.txt").read_bytes() == plain
    filtered = ["--phrase-table", str(directory / "model" / "phrase-table"), "--reordering-table", str(table)]
    text = ["--input", str(directory / "in.txt"), "--output-dir", str(directory / "filtered")]
    assert main(["phrases", "filter", *filtered, *text]) == 0
    assert all(line.endswith(further) for line in read_lines(directory / "filtered" / "reordering"))


def test_pairs_without_reordering_scores_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pairs without reordering scores get 0 and are counted; a table that has none of many pairs is refused."""
    (tmp_path / "pt").write_text("".join(f"a ||| {i} ||| 1\n" for i in range(12)))
    table = load_phrase_table(tmp_path / "pt", 1, None)
    (tmp_path / "rt").write_text("a ||| 3 ||| .5 .5 .5 .5 .5 .5\nb ||| 3 ||| .5 .5 .5 .5 .5 .5\n")
    assert (load_reordering_table(tmp_path / "rt", table, 6).log_scores != 0).any(axis=1).sum() == 1
    assert capsys.readouterr().err == (
        f"{tmp_path / 'rt'}: 11 of 12 phrase pairs are missing; their reordering scores are 0\n"
    )
    (tmp_path / "rt").write_text("b ||| 3 ||| .5 .5 .5 .5 .5 .5\n")
    with pytest.raises(InputError, match="rt: has none of the 12 phrase pairs that match the input"):
        load_reordering_table(tmp_path / "rt", table, 6)
    few = load_phrase_table(tmp_path / "pt", 1, ["b"])
    assert len(load_reordering_table(tmp_path / "rt", few, 6).row_of) == 0


word = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="|"), min_size=1, max_size=4)
phrase = st.lists(word, min_size=1, max_size=3).map(" ".join)


@given(st.lists(st.tuples(phrase, phrase, st.lists(st.floats(0, 1), min_size=3, max_size=3)), max_size=30))
@settings(deadline=None, max_examples=40)
def test_phrase_tables_round_trip(tmp_path_factory: pytest.TempPathFactory, rows: list) -> None:
    path = tmp_path_factory.mktemp("pt") / "pt.gz"
    lines = [f"{s} ||| {t} ||| {' '.join(f'{x:.6g}' for x in xs)} ||| ||| |||" for s, t, xs in rows]
    path.write_bytes(gzip.compress("".join(line + "\n" for line in lines).encode()))
    for sentences in (None, [s for s, _, _ in rows]):
        table = load_phrase_table(path, 3, sentences)
        sources, targets = table.sources.strings(), table.targets.strings()
        found = sorted(
            (sources[s].decode(), targets[t].decode(), *logs)
            for s, t, logs in zip(table.source_of, table.target_of, table.log_scores.tolist(), strict=True)
        )
        with np.errstate(divide="ignore"):
            expected = sorted(
                (s, t, *np.maximum(np.log([float(f"{x:.6g}") for x in xs]), -100).tolist()) for s, t, xs in rows
            )
        assert [row[:2] for row in found] == [row[:2] for row in expected]
        for row, other in zip(found, expected, strict=True):
            assert row[2:] == pytest.approx(other[2:], abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 5), st.integers(1, 4)), min_size=1))
def test_segmentations_round_trip(parts: list[tuple[int, int, int]]) -> None:
    phrases = [(first, first + more, size) for first, more, size in parts]
    assert parse_segmentation(segmentation(phrases)) == phrases


@pytest.mark.parametrize("text", ["1", "1-2", "a=b", "1=2=3", "1--2=3"])
def test_what_is_no_segmentation(text: str) -> None:
    with pytest.raises(InputError):
        parse_segmentation(text)


def test_an_output_that_is_there_twice(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ini, text, out = (str(directory / name) for name in ("model/moses.ini", "in.txt", "o"))
    assert main(["search", "decode", "--ini", ini, "--input", text, text, "--output", out, out]) == 2
    assert "used twice" in capsys.readouterr().err


def test_a_long_line_of_the_last_text_is_found_first(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "long.txt").write_text("a\n" + "a " * 4001 + "\n")
    files = [str(directory / name) for name in ("in.txt", "long.txt", "o1", "o2")]
    ini = str(directory / "model/moses.ini")
    assert main(["search", "decode", "--ini", ini, "--input", *files[:2], "--output", *files[2:]]) == 2
    assert "long.txt, line 2: more than 4000 words" in capsys.readouterr().err
    assert not (directory / "o1").exists()
