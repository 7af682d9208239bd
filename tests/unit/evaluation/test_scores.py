"""The outputs of a tuned system, scored in one go."""

from shutil import copytree

import pytest

from rnnsmt.cli import main


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


@pytest.mark.parametrize("text", ["dev", "dev=a", "dev=a=b=c", "../dev=a=b"])
def test_score_refuses_sets_without_references(tmp_path, capsys, text):
    arguments = ["--run-dir", str(tmp_path), "--set", text, "--lang", "fr", "--system", "baseline"]
    assert main(["evaluation", "score", *arguments]) == 2
    assert "--set" in capsys.readouterr().err
