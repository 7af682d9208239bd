"""The figures of Sutskever et al. (2014): BLEU by length and by rare words, sentence vectors in the plane."""

import json
from pathlib import Path

import numpy as np
import pytest

import rnnsmt
from rnnsmt.analysis.curves import groups_by, mean_ranks
from rnnsmt.analysis.representations import principal_components, read_groups, vectors_of
from rnnsmt.base.errors import InputError
from rnnsmt.cli import main

SOURCE = ["a", "a b", "a b c", "a b c d"]
REFERENCE = ["p q r s t", "p q r s t u", "p q r s t u v", "p q r s t u v w"]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "source").write_text("\n".join(SOURCE) + "\n")
    (tmp_path / "reference").write_text("\n".join(REFERENCE) + "\n")
    (tmp_path / "right").write_text("\n".join(REFERENCE) + "\n")
    (tmp_path / "half").write_text("\n".join([*REFERENCE[:2], "x y z x y z x", "x y z x y z x y"]) + "\n")
    (tmp_path / "text").write_text("a a a a\nb b c\n")
    return tmp_path


def curves(directory: Path, *hypotheses: str, reference: str = "reference") -> int:
    files = f"--reference {directory}/{reference} --source {directory}/source --rank-text {directory}/text --groups 2"
    outputs = f"--output {directory}/p.png {directory}/p.svg --output-json {directory}/p.json"
    return main(["analysis", "bleu-curves", *files.split(), *outputs.split(), "--hypothesis", *hypotheses])


def test_bleu_of_groups_of_sentences(directory: Path) -> None:
    systems = [f"good={directory}/right", f"other={directory}/half", "--hypothesis", f"other={directory}/right"]
    assert curves(directory, *systems) == 0
    by_length, by_rank = json.loads((directory / "p.json").read_text()).values()
    assert by_length["good"] == [
        {"mean": 1.5, "sentences": 2, "bleu": [100.0]},
        {"mean": 3.5, "sentences": 2, "bleu": [100.0]},
    ]
    assert [point["bleu"] for point in by_length["other"]] == [[100.0, 100.0], [0.0, 100.0]]
    # a has rank 1, b 2, c 3, and d, which the text does not have, 4
    assert [point["mean"] for point in by_rank["good"]] == [(1 + 1.5) / 2, (2 + 2.5) / 2]
    outputs = [directory / f"p.{kind}" for kind in ("png", "svg", "json")]
    first = [path.read_bytes() for path in outputs]
    half = (directory / "half").read_text().splitlines()
    hypotheses = {"good": [directory / "right"], "other": [half, REFERENCE]}
    found = rnnsmt.analysis.bleu_curves(
        hypotheses, [REFERENCE], SOURCE, ["a a a a", "b b c"], outputs[:2], outputs[2], groups=2
    )
    assert first == [path.read_bytes() for path in outputs]
    assert found.curves == {"source words": by_length, "mean frequency rank of the source words": by_rank}
    assert found.figures == {"systems": 2, "sentences": 4}


def test_ranks_and_groups() -> None:
    assert mean_ranks(["x", "", "y z"], ["z y z", "y"]).tolist()[0::2] == [3.0, 1.5]
    assert np.isnan(mean_ranks([""], ["a"])).all()
    values = np.array([3.0, np.nan, 1.0, 2.0, 1.0])
    assert [group.tolist() for group in groups_by(values, 2)] == [[2, 4], [3, 0]]
    assert [group.tolist() for group in groups_by(values, 9)] == [[2], [4], [3], [0]]


def test_curves_refuse(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert curves(directory, f"a={directory}/source", reference="text") == 2
    assert f"{directory}/text" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        curves(directory, f"{directory}/right")
    assert f"--hypothesis: {directory}/right: must be SYSTEM=FILE" in capsys.readouterr().err
    with pytest.raises(InputError, match="hypothesis rnn 2"):
        rnnsmt.analysis.bleu_curves({"rnn": [REFERENCE, SOURCE[:3]]}, REFERENCE, SOURCE, SOURCE)
    with pytest.raises(InputError, match=r"^hypothesis .*at least 1 item"):
        rnnsmt.analysis.bleu_curves({"rnn": []}, REFERENCE, SOURCE, SOURCE)
    assert not (directory / "p.json").exists()


def test_principal_components_are_those_of_the_covariance() -> None:
    vectors = np.random.default_rng(1).normal(size=(9, 5)) * [5, 3, 1, 0.5, 0.1]
    points, shares = principal_components(vectors)
    values, directions = np.linalg.eigh(np.cov(vectors.T))
    expected = (vectors - vectors.mean(axis=0)) @ directions[:, ::-1][:, :2]
    assert np.allclose(np.abs(points), np.abs(expected))
    assert np.allclose(shares, values[::-1][:2] / values.sum())
    assert (points[np.abs(points).argmax(axis=0), [0, 1]] > 0).all()


def test_groups_of_sentences() -> None:
    assert read_groups(["a b", " c ", "d", "", "", "e", "f", "g", ""], "x") == [["a b", "c", "d"], ["e", "f", "g"]]
    for lines, said in (
        (["", " "], "no sentences"),
        (["a", "a", "b"], "duplicate sentence"),
        (["a", "b"], "fewer than 3"),
    ):
        with pytest.raises(InputError, match=said):
            read_groups(lines, "x")


def test_the_picture_of_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The vector of a sentence does not depend on the other sentences of its group."""
    torch = pytest.importorskip("torch")
    from rnnsmt.networks.data import Vocabulary
    from rnnsmt.seq2seq.model import Seq2Seq, load_model, save_model
    from rnnsmt.seq2seq.settings import Seq2SeqSizes

    vocabularies = Vocabulary(["a", "b", "c"]), Vocabulary(["u", "v"])
    model = Seq2Seq(Seq2SeqSizes(*map(len, vocabularies), 4, 6, 2), 1, 1.0)
    save_model(tmp_path / "model.safetensors", model, vocabularies, "reversed", {})
    trained = load_model(tmp_path / "model.safetensors")
    sentences = [["a", "b", "c"], ["c", "b", "a"], ["a"], ["rare", "b"]]
    together = vectors_of(trained, sentences)
    for words, vector in zip(sentences, together, strict=True):
        assert np.allclose(vectors_of(trained, [words])[0], vector, atol=1e-6)
    assert together.shape == (4, 6)
    assert not torch.allclose(torch.from_numpy(together[0]), torch.from_numpy(together[1]))
    (tmp_path / "groups").write_text("a b c\nc b a\na\nrare b\n\na\nb\nc\n")
    files = f"--model {tmp_path}/model.safetensors --sentences {tmp_path}/groups"
    outputs = f"--output {tmp_path}/v.png --output-json {tmp_path}/v.json"
    assert main(f"analysis sentence-vectors {files} {outputs}".split()) == 0
    assert "warning: not in the vocabulary of the network: rare" in capsys.readouterr().err
    first, second = json.loads((tmp_path / "v.json").read_text())["groups"]
    assert np.allclose(first["points"], principal_components(together)[0])
    assert (first["unknown"], second["unknown"], len(second["points"])) == (["rare"], [], 3)
    groups = (tmp_path / "groups").read_text().splitlines()
    assert rnnsmt.analysis.sentence_vectors(tmp_path / "model.safetensors", groups).groups == [first, second]
