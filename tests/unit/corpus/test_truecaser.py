"""The truecaser and its model files equal those of Moses, as implemented by sacremoses."""

import gzip
import lzma
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacremoses import MosesTruecaser

from rnnsmt.cli import main
from rnnsmt.corpus import tokenizer
from rnnsmt.corpus.tokenizer import Truecaser

TEXT = [
    "The boat saw the Port . The Port of Brest : the end",
    "&quot; The crew of THE boat &quot;",
    "( Boat boat Boat",
    "12 Boats are here ? Here they are",
    "le bateau de M. Le Bris . Le Bris",
    "",
    "x",
]


def train(directory: Path, lines: list[str]) -> Path:
    text, model = directory / "text", directory / "model"
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert main(["corpus", "train-truecaser", "--input", str(text), "--output-model", str(model)]) == 0
    return model


def test_counts_by_hand(tmp_path: Path) -> None:
    # "The" and "Boat" start sentences, also after an opening bracket or quote; "THE" and "Port" do not
    model = train(tmp_path, ["The Port . The port ( Boat", "&quot; The THE port : Boat"])
    assert model.read_text() == "Boat (1/1)\nport (2/3) Port (1)\nTHE (1/1)\n"


def test_apply_by_hand(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.write_text("the (9/12) The (2) THE (1)\nBrest (3/3)\n")
    apply = Truecaser(model)
    assert apply("The THE tHE brest . THE Brest") == "the THE the Brest . the Brest"
    assert apply("&quot; THE x : The") == "&quot; the x : the"
    assert apply("Unknown Words Stay") == "Unknown Words Stay"
    assert apply("") == ""


def test_equals_sacremoses(tmp_path: Path) -> None:
    model = train(tmp_path, TEXT)
    theirs = MosesTruecaser()
    learned = theirs.train([line.split() for line in TEXT])
    ours = tokenizer.learn_casing(TEXT)
    assert ours == {word: dict(forms) for word, forms in learned["casing"].items()}
    apply, loaded = Truecaser(model), MosesTruecaser(str(model))
    for line in [*TEXT, "THE BOAT . Le <b> BRIS </b> a|b THE|DET x < y", "the boat : THE"]:
        assert apply(line) == loaded.truecase(line, return_str=True, use_known=True)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(
            st.sampled_from(["The", "the", "THE", "boat", "Boat", ".", ":", "(", "&quot;", "12", "É", "é", "<b>"])
        ),
        max_size=6,
    )
)
def test_learning_equals_sacremoses(lines: list[list[str]]) -> None:
    learned = MosesTruecaser().train(lines)["casing"]
    assert tokenizer.learn_casing(" ".join(line) for line in lines) == learned


def test_real_text(shared_dir: Path, tmp_path: Path) -> None:
    with lzma.open(shared_dir / "data" / "mini-wmt" / "newstest2014.fr.xz", "rt", encoding="utf-8") as stream:
        lines = [" ".join(line.split()) for line in islice(stream, 400)]
    model = train(tmp_path, lines)
    apply, theirs = Truecaser(model), MosesTruecaser(str(model))
    for line in lines:
        assert apply(line) == theirs.truecase(line, return_str=True, use_known=True)


def test_stage_writes_the_same_with_more_processes(tmp_path: Path) -> None:
    model = train(tmp_path, TEXT)
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in TEXT * 1000))
    for name, threads in (("a.gz", "1"), ("b.gz", "2")):
        words = ["--input", str(tmp_path / "in"), "--output", str(tmp_path / name), "--threads", threads]
        assert main(["corpus", "truecase", "--model", str(model), *words]) == 0
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()).count(b"\n") == len(TEXT) * 1000


def test_several_inputs(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("x Y\n")
    inputs = [str(tmp_path / name) for name in "ab"]
    assert main(["corpus", "train-truecaser", "--input", *inputs, "--output-model", str(tmp_path / "m")]) == 0
    assert (tmp_path / "m").read_text() == "Y (2/2)\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the truecasing model is empty"),
        ("the (1/1) The\n", 'line 1: expected "word (count/total) ..."'),
        ("the (1/1)\nthe x\n", "line 2"),
        ("the (one)\n", "line 1"),
        ("\n", "line 1"),
        ("just some text here\n", "line 1"),
        (b"\xe9t\xe9 (1/1)\n", "line 1: not UTF-8"),
    ],
)
def test_bad_models(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | bytes, message: str) -> None:
    model, text, out = tmp_path / "m", tmp_path / "t", tmp_path / "o"
    model.write_bytes(content.encode() if isinstance(content, str) else content)
    text.write_text("a\n")
    assert main(["corpus", "truecase", "--model", str(model), "--input", str(text), "--output", str(out)]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_nothing_to_learn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t").write_text("Word\n\n")
    assert (
        main(["corpus", "train-truecaser", "--input", str(tmp_path / "t"), "--output-model", str(tmp_path / "m")]) == 2
    )
    assert "every line has at most one word" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()
