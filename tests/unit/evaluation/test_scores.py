"""Scoring all outputs of a tuned system in one call."""

from pathlib import Path

import pytest
import sacrebleu.metrics.bleu
from sacrebleu.metrics import BLEU

import rnnsmt
from rnnsmt.cli import main
from rnnsmt.evaluation.scores import read_score, sacre_bleu


def test_runs_and_sets_of_a_system_in_one_call(tmp_path, capsys):
    """All files are those of one call for each run and set, and of `corpus detokenize`; Python returns the scores."""
    runs = [tmp_path / "run1", tmp_path / "run2"]
    texts = {"dev": "le chat dort .\nil n&apos; y a rien ici .\n", "news": "la mer est bleue ici .\n"}
    for run in runs:
        run.mkdir()
        for name, text in texts.items():
            (run / f"{name}.output").write_text(text)
            (run / f"{name}.decode.json").write_text('{"unknown_words": 1}')
    for name, text in texts.items():
        (tmp_path / f"{name}.ref").write_text(text.replace("chat", "chien"))
        (tmp_path / f"{name}.plain").write_text(text.replace(" .", "."))

    def files(kind):
        return [str(run / f"{name}.{kind}") for run in runs for name in texts]

    references = [[str(tmp_path / f"{name}.{kind}") for name in texts] for kind in ("ref", "plain")]
    system = ["--system", "baseline"]
    arguments = [
        *["--hypothesis", *files("output"), "--reference", *references[0], "--detok-reference", *references[1]],
        *["--decode-report", *files("decode.json"), "--test-set", *texts, "--detokenize", "--lang", "fr", *system],
        *["--output-tokens", *files("tokens"), "--output-detokenized", *files("detokenized")],
    ]
    assert main(["evaluation", "score", *arguments, "--output", *files("bleu.json")]) == 0
    run = runs[1]
    for name in texts:
        for kind, more in (("tokens", ["--no-detokenize"]), ("detokenized", [])):
            single = ["--input", str(run / f"{name}.output"), "--output", str(tmp_path / f"{name}.{kind}")]
            assert main(["corpus", "detokenize", "--lang", "fr", *single, *more]) == 0
            assert (run / f"{name}.{kind}").read_text() == (tmp_path / f"{name}.{kind}").read_text()
        score = [
            *[
                "evaluation",
                "score",
                "--hypothesis",
                f"{tmp_path}/{name}.tokens",
                "--reference",
                f"{tmp_path}/{name}.ref",
            ],
            *["--detok-hypothesis", f"{tmp_path}/{name}.detokenized", "--detok-reference", f"{tmp_path}/{name}.plain"],
            *["--decode-report", str(run / f"{name}.decode.json"), "--test-set", name, *system, "--run", "2"],
            *["--lang", "fr", "--output", str(tmp_path / "score.json")],
        ]
        assert main(score) == 0
        expected = (tmp_path / "score.json").read_text()
        assert (run / f"{name}.bleu.json").read_text() == expected
        assert (runs[0] / f"{name}.bleu.json").read_text() == expected.replace('"run": 2', '"run": 1')
    found = rnnsmt.evaluation.score(
        [text.splitlines() for text in texts.values()], [Path(path) for path in references[0]], test_set=list(texts),
        detok_reference=[Path(path) for path in references[1]], detokenize=True, lang="fr",
    )  # fmt: skip
    assert [one.bleu for one in found] == [read_score(path).bleu for path in files("bleu.json")[:2]]
    assert found[0].sacrebleu == read_score(files("bleu.json")[0]).sacrebleu
    capsys.readouterr()
    assert main(["evaluation", "score", *arguments, "--output", *files("bleu.json")[:3]]) == 2
    assert "--output: 3 files" in capsys.readouterr().err
    assert main(["evaluation", "score", *arguments, "--output", *files("bleu.json")[:3], f"{run}/./dev.bleu.json"]) == 2
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
    assert main(["evaluation", "score", *files, *names, "--lang", "zh"]) == 0
    assert "zh is written without spaces between words, and chrF++" in capsys.readouterr().err
    assert "tok:zh" in (tmp_path / "score.json").read_text()
    with pytest.raises(SystemExit, match="2"):
        main(["evaluation", "score", *files, *names, "--lang", "chinese"])


@pytest.mark.parametrize("lang", ["th", "lo", "km", "my", "bo", "dz", "yue"])
def test_languages_without_spaces_are_reported(tmp_path, capsys, lang):
    (tmp_path / "text").write_text("ฉันไปโรงเรียน\n")
    files = [f"--{kind}={tmp_path}/text" for kind in ("hypothesis", "reference", "detok-hypothesis", "detok-reference")]
    names = ["--system", "a", "--test-set", "b", "--output", str(tmp_path / "score.json")]
    for spoken, reported in ((lang, True), ("fr", False)):
        assert main(["evaluation", "score", *files, *names, "--lang", spoken]) == 0
        assert (f"warning: {lang} is written without spaces" in capsys.readouterr().err) == reported


def test_segmentation_marks_in_output_are_refused(tmp_path, capsys):
    """Output of `moses -t`: its marks would be counted as words."""
    (tmp_path / "out").write_text("a b\na |0-0| b |1-1|\n")
    (tmp_path / "reference").write_text("a b\na b\n")
    files = ["--hypothesis", str(tmp_path / "out"), "--reference", str(tmp_path / "reference")]
    names = ["--system", "a", "--test-set", "b", "--output", str(tmp_path / "score.json")]
    assert main(["evaluation", "score", *files, *names]) == 2
    assert f"{tmp_path / 'out'}, line 2: contains |0-0|" in capsys.readouterr().err
    assert not (tmp_path / "score.json").exists()
