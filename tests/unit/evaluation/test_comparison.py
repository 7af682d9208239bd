"""The comparison of two systems sentence by sentence, by hand and on tiny models; the stage ``evaluation compare``."""

import json
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.bleu.batch import corpus_statistics
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.cli import main
from rnnsmt.evaluation.comparison import Comparison, band, by_group, exchanged_pairs, write_comparison
from rnnsmt.formats.ini import MosesIni
from rnnsmt.formats.nbest import phrase_pairs, read_details
from rnnsmt.search.decoder import decode, features_of_derivations
from rnnsmt.search.model import load_model
from rnnsmt.search.phrase_pairs import load_phrase_table

from ..search.twin import tiny_model

SENTENCES = ["a b c", "", "c d a b", "b b a c", "d"]
REFERENCES = ["u v w x", "", "x d u v w", "v v u x w", "d"]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Create a tiny model with two weight vectors, a text, its reference and both translations."""
    tiny_model(tmp_path / "model", 3)
    ini = MosesIni.read(tmp_path / "model/moses.ini")
    for place in range(4):
        ini.set_weight(f"TranslationModel0:{place}", -1.0)
    ini.write(tmp_path / "model/other.ini")
    (tmp_path / "in.txt").write_text("\n".join(SENTENCES) + "\n")
    (tmp_path / "ref.txt").write_text("\n".join(REFERENCES) + "\n")
    for name in ("moses", "other"):
        files = ["--output", f"{tmp_path}/{name}.out", "--output-details", f"{tmp_path}/{name}.details"]
        assert (
            main(["search", "decode", "--ini", f"{tmp_path}/model/{name}.ini", "--input", f"{tmp_path}/in.txt", *files])
            == 0
        )
    return tmp_path


def command(directory: Path, *more: str) -> list[str]:
    """Return the command that compares the translations of both weight vectors."""
    return [
        "evaluation", "compare", "--reference", f"{directory}/ref.txt", "--baseline", f"{directory}/moses.out",
        "--hypothesis", f"{directory}/other.out", "--output-json", f"{directory}/c.json",
        "--output-md", f"{directory}/c.md", *more,
    ]  # fmt: skip


def details(directory: Path) -> list[str]:
    """Return the options for source text, details and model."""
    return [
        "--source", f"{directory}/in.txt", "--details", f"{directory}/moses.details", f"{directory}/other.details",
        "--ini", f"{directory}/model/other.ini",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "firsts", "name"),
    [(7, (1, 6, 11), "6-10"), (11, (1, 6, 11), "11+"), (0, (0, 1, 2), "0"), (1.5, (1.0, 1.5, 2.0), "1.5-2.0")],
)
def test_bands(value, firsts, name):
    assert band(value, firsts) == name


def test_groups_are_scored_by_themselves():
    system, baseline = ["a b c d", "a b", "x y z a"], ["a b c e", "a b", "x y z z"]
    references = [["a b c d", "a c", "x y z a"]]
    one, other = (np.stack([corpus_statistics(texts, references)] * 2) for texts in (baseline, system))
    found = by_group([4, 2, 4], (1, 3, 5), one, other)
    assert [(row["group"], row["sentences"]) for row in found] == [("1-2", 1), ("3-4", 2)]
    expected = [
        bleu_of(corpus_statistics(texts[::2], [references[0][::2]]).sum(0)).bleu for texts in (baseline, system)
    ]
    assert found[1]["bleu"] == pytest.approx(expected)
    assert found[1]["difference"] == pytest.approx(expected[1] - expected[0])


def test_phrases_of_a_derivation():
    assert phrase_pairs("a b c", "x y", [(1, 2, 2), (0, 0, 0)]) == [("b c", "x y"), ("a", "")]


def test_exchanged_pairs_by_hand():
    a, b, c, d = ("a", "x"), ("b", "y"), ("a b", "x y"), ("d", "d")
    baseline, system = [[a, b], [a, a], [d]], [[c], [a, b], [d]]
    found = exchanged_pairs(baseline, system, {a: 30, b: 1, c: 1}, np.array([5.0, -1.0, 0.0]))
    # a and b replace c in the first sentence, an a replaces b in the second
    assert found["extracted"] == [
        {"group": "1", "pairs": [1, 2], "sentences": 2, "mean gain": 2.0},
        {"group": "20+", "pairs": [2, 0], "sentences": 0, "mean gain": None},
    ]
    assert [(row["group"], row["pairs"]) for row in found["source words"]] == [("1", [3, 1]), ("2", [0, 1])]
    for words, name in (((), "not in the table"), (("d",), "unknown word")):
        other = exchanged_pairs([[d]], [[]], {}, np.zeros(1), words)
        assert other["extracted"] == [{"group": name, "pairs": [1, 0], "sentences": 0, "mean gain": None}]


def test_counts_are_those_of_the_table(tmp_path):
    path = tmp_path / "table"
    path.write_text("a ||| x ||| 1 ||| 0-0 ||| 4 3 2 |||\na ||| x y ||| 1 ||| 0-0 |||  ||| \na ||| z ||| 1\n")
    wanted = [("a", "x"), ("a", "x y"), ("a", "z"), ("b", "x"), ("a", "y x")]
    table = load_phrase_table(path, 1, None).table()
    assert table.counts_of(wanted) == {("a", "x"): 2.0, ("a", "x y"): 0.0, ("a", "z"): 0.0}
    assert table.counts_of([]) == {}
    path.write_text("a ||| x ||| 1 ||| 0-0 ||| 4 3 y |||\n")
    with pytest.raises(InputError, match="line 1: '4 3 y' are not counts"):
        load_phrase_table(path, 1, None)


def test_features_of_given_derivations_are_those_of_the_search(directory):
    """Features of given derivations equal those of the search; derivations outside the model have none (NaN)."""
    ini = MosesIni.read(directory / "model/moses.ini")
    model = load_model(ini, SENTENCES)
    for name in ("moses", "other"):
        weights = model.weights(MosesIni.read(directory / f"model/{name}.ini"))
        made = decode(model, SENTENCES, weights)
        found = features_of_derivations(model, SENTENCES, [(one.text, one.phrases) for one in made])
        assert found == pytest.approx(np.array([one.features for one in made]), abs=1e-12)
    wrong = [("u u u", [(0, 2, 3)]), *((one.text, one.phrases) for one in made[1:])]
    missing = features_of_derivations(model, SENTENCES, wrong)
    assert np.isnan(missing[0]).all()
    assert missing[1:] == pytest.approx(found[1:])


def test_details_are_the_output_and_its_phrases(directory):
    found = read_details(directory / "other.details", SENTENCES)
    assert [text for text, _ in found] == (directory / "other.out").read_text().split("\n")[:-1]
    assert all(sum(size for *_, size in phrases) == len(text.split()) for text, phrases in found)


def test_the_whole_comparison(directory):
    assert main(command(directory, *details(directory), "--names", "first", "second", "--examples", "2")) == 0
    found = json.loads((directory / "c.json").read_text())
    texts = [(directory / f"{name}.out").read_text().split("\n")[:-1] for name in ("moses", "other")]
    expected = [bleu_of(corpus_statistics(one, [REFERENCES]).sum(0)).bleu for one in texts]
    assert found["bleu"] == pytest.approx(expected)
    assert found["first run"]["changed"] == sum(a != b for a, b in zip(*texts, strict=True)) > 0
    for groups in found["groups"].values():
        assert sum(row["sentences"] for row in groups) == len(SENTENCES)
    assert {row["group"]: row["sentences"] for row in found["groups"]["unknown words"]} == {"0": 3, "1": 2}
    examples = [one for part in found["examples"].values() for one in part]
    assert examples
    # with its weights, the search found no better translation than its output
    assert all(sum(one["decided"].values()) > -1e-9 for one in examples)
    text = (directory / "c.md").read_text()
    assert "# second against first" in text
    pair = next(pair for one in examples for pair in one["pairs"][1])
    assert f"{pair[0]} → {pair[1]} (1)" in text


def test_contributions_add_up_to_the_difference_of_scores(directory):
    ini = MosesIni.read(directory / "model/other.ini")
    model = load_model(ini, SENTENCES)
    weights = model.weights(ini)
    texts = [(directory / f"{name}.out").read_text().split("\n")[:-1] for name in ("moses", "other")]
    found = Comparison([REFERENCES], texts[:1], texts[1:])
    found.add_source(SENTENCES)
    found.add_details(f"{directory}/moses.details", f"{directory}/other.details")
    found.add_model(model, weights, [])
    other = decode(model, SENTENCES, model.weights(MosesIni.read(directory / "model/moses.ini")))
    own = decode(model, SENTENCES, weights)
    differences = [one.score - two.features @ weights for one, two in zip(own, other, strict=True)]
    assert found.contributions.sum(1) == pytest.approx(differences)
    assert max(differences) > 0.01
    assert {"p(source|target)", "lex(target|source)", "LM", "Distortion"} < set(found.kinds)


def test_spaces_are_no_difference(directory):
    """Spaces at the end of a line are not a difference; Moses ends each line of its output with one."""
    lines = (directory / "moses.out").read_text().split("\n")[:-1]
    (directory / "other.out").write_text("".join(f"{line} \n" for line in lines))
    assert main(command(directory)) == 0
    assert json.loads((directory / "c.json").read_text())["first run"] == {"changed": 0, "better": 0, "worse": 0}


def test_without_details_texts_of_any_system_do(directory):
    assert main(command(directory)) == 0
    found = json.loads((directory / "c.json").read_text())
    assert found["groups"] == {}
    assert "decided" not in found
    assert main(command(directory, "--source", f"{directory}/in.txt")) == 0
    assert [*json.loads((directory / "c.json").read_text())["groups"]] == ["source words"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda directory, words: [*words, "--trainings", "1", "2"],
            "the number of tuning runs (1) must be a multiple",
        ),
        (lambda path, words: [*words, "--hypothesis", f"{path}/other.out", f"{path}/other.out"], "the same number"),
        (lambda directory, words: words[:-2], None),
        (lambda path, words: [word for word in words if word not in ("--source", f"{path}/in.txt")], "--source"),
        (lambda directory, words: [w.replace("other.details", "ref.txt") for w in words], "is this an n-best list"),
        (lambda directory, words: [w.replace("in.txt", "ref.txt") for w in words], "the phrases do not match"),
        (lambda directory, words: [*words, "--model-dir", f"{directory}/none"], "no such directory"),
    ],
)  # fmt: skip
def test_refusals(directory, capsys, change, said):
    status = main(change(directory, command(directory, *details(directory))))
    assert status == (0 if said is None else 2)
    assert said is None or said in capsys.readouterr().err


def test_details_of_another_model_are_refused(directory, capsys):
    for name in ("other.details", "other.out"):
        (directory / name).write_text((directory / name).read_text().replace("d", "e"))
    assert main(command(directory, *details(directory))) == 2
    assert "the model cannot translate line" in capsys.readouterr().err


def test_interchanged_details_are_refused(directory, capsys):
    words = command(directory, *details(directory))
    place = words.index("--details")
    words[place + 1 : place + 3] = words[place + 2 : place : -1]
    assert main(words) == 2
    assert "the translation differs from that in the output; use the details file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("p_strict", "said"),
    [
        (None, "(p 0.0300 by paired bootstrap, variance due to sentences only)"),
        (0.2, "(p 0.2000, 95 % -0.10 to +1.10)"),
    ],
)
def test_the_noise_in_p_is_stated(tmp_path, p_strict, said):
    content = {
        "baseline": "A", "system": "B", "runs": 1, "sentences": 9, "bleu": [1.0, 1.5], "difference": 0.5,
        "p_bootstrap": 0.03, "p_strict": p_strict, "interval": [-0.1, 1.1], "groups": {}, "examples": {},
        "first run": {"changed": 1, "better": 1, "worse": 0},
    }  # fmt: skip
    write_comparison(tmp_path / "c.md", content)
    assert said in (tmp_path / "c.md").read_text().splitlines()[2]


def test_the_name_of_a_system_without_further_pairs_is_not_used_for_the_other(tmp_path):
    example = {"sentence": 1, "gain": 2.0, "reference": ["x"], "texts": ["y", "x"], "pairs": [[], [["a", "x", 3.0]]]}
    content = {
        "baseline": "A", "system": "B", "runs": 1, "sentences": 9, "bleu": [1.0, 1.5], "difference": 0.5,
        "p_bootstrap": 0.03, "p_strict": None, "interval": None, "groups": {}, "examples": {"Largest gains": [example]},
        "first run": {"changed": 1, "better": 1, "worse": 0},
    }  # fmt: skip
    write_comparison(tmp_path / "c.md", content)
    assert "only B: a → x (3)" in (tmp_path / "c.md").read_text()
