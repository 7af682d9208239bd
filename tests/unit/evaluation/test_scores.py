"""Scoring all outputs of a tuned system in one call."""

from shutil import copytree

import pytest
import sacrebleu.metrics.bleu
from sacrebleu.metrics import BLEU

from rnnsmt.cli import main
from rnnsmt.evaluation.scores import sacre_bleu


def test_score_equals_the_single_commands(tmp_path):
    first, run = tmp_path / "run1", tmp_path / "run2"
    run.mkdir()
    sets = []
    for name, text in (("dev", "le chat dort .\nil n&apos; y a rien ici .\n"), ("news", "la mer est bleue ici .\n")):
        reference, plain = tmp_path / f"{name}.ref", tmp_path / f"{name}.plain"
        reference.write_text(text.replace("chat", "chien"))
        plain.write_text(text.replace(" .", "."))
        (run / f"{name}.output").write_text(text)
        (run / f"{name}.decode.json").write_text('{"unknown_words": 1}')
        sets.append(f"{name}={reference}={plain}")
    copytree(run, first)
    system = ["--system", "baseline"]
    assert (
        main(["evaluation", "score", "--run-dir", str(first), str(run), "--set", *sets, "--lang", "fr", *system]) == 0
    )
    for text in sets:
        name, reference, plain = text.split("=")
        for kind, more in (("tokens", ["--no-detokenize"]), ("detokenized", [])):
            arguments = ["--input", str(run / f"{name}.output"), "--output", str(tmp_path / f"{name}.{kind}")]
            assert main(["corpus", "detokenize", "--lang", "fr", *arguments, *more]) == 0
            assert (run / f"{name}.{kind}").read_text() == (tmp_path / f"{name}.{kind}").read_text()
        files = {"hypothesis": tmp_path / f"{name}.tokens", "plain_hypothesis": tmp_path / f"{name}.detokenized"}
        files |= {"reference": reference, "plain_reference": plain}
        score = [
            *["evaluation", "bleu", "--hypothesis", str(files["hypothesis"]), "--reference", reference],
            *["--detok-hypothesis", str(files["plain_hypothesis"]), "--detok-reference", plain],
            *["--decode-report", str(run / f"{name}.decode.json"), "--test-set", name, *system, "--run", "2"],
            *["--output", str(tmp_path / "score.json")],
        ]
        assert main(score) == 0
        expected = (tmp_path / "score.json").read_text()
        assert (run / f"{name}.bleu.json").read_text() == expected
        assert (first / f"{name}.bleu.json").read_text() == expected.replace('"run": 2', '"run": 1')


@pytest.mark.parametrize("text", ["dev", "dev=a", "dev=a=b=c"])
def test_score_refuses_sets_without_references(tmp_path, capsys, text):
    arguments = ["--run-dir", str(tmp_path), "--set", text, "--lang", "fr", "--system", "baseline"]
    assert main(["evaluation", "score", *arguments]) == 2
    assert "--set" in capsys.readouterr().err


def test_score_refuses_a_run_that_is_given_twice(tmp_path, capsys):
    """Reject it, since the score file of a run would contain the number of another run."""
    directories = [str(tmp_path), f"{tmp_path}/."]
    arguments = ["--run-dir", *directories, "--set", "dev=a=b", "--lang", "fr", "--system", "baseline"]
    assert main(["evaluation", "score", *arguments]) == 2
    assert "used twice" in capsys.readouterr().err


def test_sacrebleu_has_the_tokeniser_of_the_language(monkeypatch, capsys):
    outputs, references = ["这是一个测试 。我去北京。"], [["这是一个考试。我去北京。"]]
    chinese = sacre_bleu(outputs, references, lang="zh")
    assert "tok:zh" in chinese.signature
    assert chinese.score == pytest.approx(BLEU(tokenize="zh").corpus_score(outputs, references).score)
    assert chinese.score > 50
    assert "tok:13a" in sacre_bleu(outputs, references, lang="fr").signature
    assert capsys.readouterr().err == ""

    load = sacrebleu.metrics.bleu._get_tokenizer

    def without_mecab(name):
        if "mecab" in name:
            raise RuntimeError("extra dependencies")
        return load(name)

    monkeypatch.setattr(sacrebleu.metrics.bleu, "_get_tokenizer", without_mecab)
    assert "tok:13a" in sacre_bleu(outputs, references, lang="ja").signature
    assert "warning: sacreBLEU's tokeniser for the language ja is not installed" in capsys.readouterr().err


def test_bleu_has_the_tokeniser_of_the_language(tmp_path, capsys):
    (tmp_path / "text").write_text("我去北京。\n")
    files = [f"--{kind}={tmp_path}/text" for kind in ("hypothesis", "reference", "detok-hypothesis", "detok-reference")]
    names = ["--system", "a", "--test-set", "b", "--output", str(tmp_path / "score.json")]
    assert main(["evaluation", "bleu", *files, *names, "--lang", "zh"]) == 0
    assert "zh is written without spaces between words, and chrF++ and TER" in capsys.readouterr().err
    assert "tok:zh" in (tmp_path / "score.json").read_text()
    assert main(["evaluation", "bleu", *files, *names, "--lang", "chinese"]) == 2


@pytest.mark.parametrize("lang", ["th", "lo", "km", "my", "bo", "dz", "yue"])
def test_languages_without_spaces_are_reported(tmp_path, capsys, lang):
    (tmp_path / "text").write_text("ฉันไปโรงเรียน\n")
    files = [f"--{kind}={tmp_path}/text" for kind in ("hypothesis", "reference", "detok-hypothesis", "detok-reference")]
    names = ["--system", "a", "--test-set", "b", "--output", str(tmp_path / "score.json")]
    for spoken, reported in ((lang, True), ("fr", False)):
        assert main(["evaluation", "bleu", *files, *names, "--lang", spoken]) == 0
        assert (f"warning: {lang} is written without spaces" in capsys.readouterr().err) == reported


def test_segmentation_marks_in_output_are_refused(tmp_path, capsys):
    """Output of `moses -t`: its marks would be counted as words."""
    (tmp_path / "out").write_text("a b\na |0-0| b |1-1|\n")
    (tmp_path / "reference").write_text("a b\na b\n")
    files = ["--hypothesis", str(tmp_path / "out"), "--reference", str(tmp_path / "reference")]
    names = ["--system", "a", "--test-set", "b", "--output", str(tmp_path / "score.json")]
    assert main(["evaluation", "bleu", *files, *names]) == 2
    assert f"{tmp_path / 'out'}, line 2: contains |0-0|" in capsys.readouterr().err
    assert not (tmp_path / "score.json").exists()
