"""What is written for unknown words: worked examples."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from rnnsmt.base.io import InputError  # noqa: E402
from rnnsmt.cli import main  # noqa: E402
from rnnsmt.networks.data import Vocabulary  # noqa: E402
from rnnsmt.seq2seq.decoding import LexicalTranslations, copy, keep  # noqa: E402
from rnnsmt.seq2seq.model import Seq2Seq, TrainedSeq2Seq, save_model  # noqa: E402
from rnnsmt.seq2seq.settings import Seq2SeqSizes  # noqa: E402
from rnnsmt.seq2seq.units import Words  # noqa: E402

SOURCE = Words(Vocabulary(["the", "dog", "chases", "a", "badger", ".", "not"]))
TARGET = Words(Vocabulary(["le", "chien", "un", ".", "court", "pas", "ne"]))

ONE = TrainedSeq2Seq(Seq2Seq(Seq2SeqSizes(len(SOURCE), len(TARGET), 2, 2, 1), 1), SOURCE, TARGET, "reversed", {})

TABLE = {
    "the": {"le": 0.6, "la": 0.3, "NULL": 0.1},
    "dog": {"chien": 0.9, "NULL": 0.1},
    "chases": {"poursuit": 0.5, "court": 0.04, "NULL": 0.2},
    "a": {"un": 0.5, "une": 0.5},
    "badger": {"blaireau": 0.7, "un": 0.1, "NULL": 0.2},
    ".": {".": 1.0},
    "not": {"NULL": 0.6, "pas": 0.2, "ne": 0.2},
    "weasel": {"belette": 0.4, "hermine": 0.4, "NULL": 0.2},
}

LEXICON = LexicalTranslations(TABLE)


def filled(source: str, translation: str) -> str:
    words = [None if word == "?" else word for word in translation.split()]
    return " ".join(LEXICON(ONE, words, source.split()))


def test_unknown_words_are_kept_or_copied_in_order() -> None:
    source = ["Xa", "a", "Yb"]
    assert keep(ONE, ["u", None, "v"], source) == ["u", "<unk>", "v"]
    assert copy(ONE, ["u", None, "v", None], source) == ["u", "Xa", "v", "Yb"]
    assert copy(ONE, [None, None, None, "w"], source) == ["Xa", "Yb", "w"]


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        # a word that the network does not know: its best translation, of equal ones the first by spelling
        ("the weasel .", "le ? .", "le belette ."),
        # one that the table does not have either is copied
        ("the Xavier .", "le ? .", "le Xavier ."),
        # a known word whose best translation is outside the target vocabulary
        ("the dog chases a badger .", "le chien ? un ? .", "le chien poursuit un blaireau ."),
        # the unknown one comes first, although a known one is not translated either
        ("the badger chases a weasel .", "le ? un .", "le belette un ."),
        # two of them are written in the order of the source
        ("the badger chases a weasel .", "le ? ? un .", "le blaireau belette un ."),
        # an unlikely translation does not count as one: court is below a tenth of poursuit
        ("the dog chases .", "le chien court ? .", "le chien court poursuit ."),
        # a word that mostly stays without a translation is not taken, nor is more written than there is
        ("the dog not .", "le chien ? .", "le chien ."),
        ("a .", "un ? .", "un ."),
        # every word of the translation translates one word: the second the is left
        ("the dog the .", "le chien ? .", "le chien le ."),
        # pairs by probability: un is that of a, so that badger is free
        ("a badger .", "un ? .", "un blaireau ."),
        ("the dog .", "le chien .", "le chien ."),
        ("", "?", ""),
    ],
)  # fmt: skip
def test_the_lexicon_translates_what_is_not_translated(source: str, translation: str, expected: str) -> None:
    assert filled(source, translation) == expected


def test_of_equal_words_the_nearest_is_translated() -> None:
    lexicon = LexicalTranslations({"x": {"u": 0.5, "v": 0.5}, "y": {"u": 0.5, "w": 0.5}})
    assert lexicon._explained(["u", None], ["x", "y"]) == {0}
    assert lexicon._explained([None, "u"], ["x", "y"]) == {1}


def test_the_table_is_read_for_the_words_of_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "lex.f2e"
    path.write_text("chien dog 0.9\nNULL dog 0.1\nchat cat 1\n")
    lexicon = LexicalTranslations.read(path, ["dog", "Xa"])
    assert (lexicon.translation("dog"), lexicon.translation("cat"), lexicon.translation("Xa")) == ("chien", "cat", "Xa")
    assert "warning" not in capsys.readouterr().err
    LexicalTranslations.read(path, ["chien"])
    assert "contains no word of the input; is this the table p(target | source), lex.f2e?" in capsys.readouterr().err
    path.write_text("chien dog 0.9\nchien dog\n")
    with pytest.raises(InputError, match="line 2: expected 'word word probability'"):
        LexicalTranslations.read(path, ["dog"])


def test_lexicon_and_its_file_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, text, table = tmp_path / "m.pt", tmp_path / "in", tmp_path / "lex.f2e"
    network = Seq2Seq(ONE.model.sizes, 1)
    with torch.no_grad():
        network.b_o[1] = 9.0  # UNK, again and again
    save_model(model, network, "none", (SOURCE, TARGET), "reversed", {})
    text.write_text("the weasel .\n")
    table.write_text("belette weasel 1\nle the 1\n. . 1\n")
    command = f"seq2seq translate --model {model} --input {text} --output {tmp_path}/out --beam 1".split()
    for wrong in (["--unknown", "lexicon"], ["--lexicon", str(table)], ["--unknown", "copy", "--lexicon", str(table)]):
        assert main([*command, *wrong]) == 2
        assert "--lexicon and --unknown lexicon must be used together" in capsys.readouterr().err
    assert main([*command, "--unknown", "lexicon", "--lexicon", str(table)]) == 0
    assert (tmp_path / "out").read_text() == "le belette .\n"
