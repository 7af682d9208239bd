"""Replacement of unknown words: worked examples."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rnnsmt.base.io import InputError  # noqa: E402
from rnnsmt.cli import main  # noqa: E402
from rnnsmt.networks.data import UNK, Vocabulary  # noqa: E402
from rnnsmt.seq2seq.decoding import LexicalTranslations, PointedTranslations, copy, keep  # noqa: E402
from rnnsmt.seq2seq.model import Seq2Seq, TrainedSeq2Seq, load_model, save_model  # noqa: E402
from rnnsmt.seq2seq.settings import Seq2SeqSizes  # noqa: E402
from rnnsmt.seq2seq.translation_scores import Scorer  # noqa: E402
from rnnsmt.seq2seq.units import REACH, PositionedWords, Words  # noqa: E402

torch.set_num_threads(1)

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
        # a word unknown to the network: its best translation, with ties broken by spelling
        ("the weasel .", "le ? .", "le belette ."),
        # a word that is not in the table either is copied
        ("the Xavier .", "le ? .", "le Xavier ."),
        # a known word whose best translation is outside the target vocabulary
        ("the dog chases a badger .", "le chien ? un ? .", "le chien poursuit un blaireau ."),
        # an unknown word has priority, although a known one is not translated either
        ("the badger chases a weasel .", "le ? un .", "le belette un ."),
        # two of them are written in source order
        ("the badger chases a weasel .", "le ? ? un .", "le blaireau belette un ."),
        # an unlikely translation is ignored: court is below a tenth of poursuit
        ("the dog chases .", "le chien court ? .", "le chien court poursuit ."),
        # a word that usually has no translation is skipped, and no more is written than necessary
        ("the dog not .", "le chien ? .", "le chien ."),
        ("a .", "un ? .", "un ."),
        # every target word translates one source word: the second the remains
        ("the dog the .", "le chien ? .", "le chien le ."),
        # pairs by probability: un is paired with a, so that badger remains
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
        network.b_o[1] = 9.0  # UNK, repeatedly
    save_model(model, network, "none", (SOURCE, TARGET), "reversed", {})
    text.write_text("the weasel .\n")
    table.write_text("belette weasel 1\nle the 1\n. . 1\n")
    command = f"seq2seq translate --model {model} --input {text} --output {tmp_path}/out --beam 1".split()
    for wrong in (["--unknown", "lexicon"], ["--lexicon", str(table)], ["--unknown", "copy", "--lexicon", str(table)]):
        assert main([*command, *wrong]) == 2
        said = "--lexicon and --unknown lexicon or position must be used together"
        assert said in capsys.readouterr().err
    assert main([*command, "--unknown", "lexicon", "--lexicon", str(table)]) == 0
    assert (tmp_path / "out").read_text() == "le belette .\n"


POSITIONED = PositionedWords.of(Vocabulary(["le", "chien", "."]))


def test_position_tokens_are_the_distances_of_aligned_unknown_words() -> None:
    words = ["x", "le", "y", *["le"] * 9, "z"]
    eos, zero = POSITIONED.eos, 2 + 3 + REACH
    assert (len(POSITIONED), eos) == (3 + 3 + 2 * REACH + 1, zero + REACH + 1)
    # x at 0 with source word 2: -2; le is known; y at 2 is not aligned; z at 12 is 7 from 5, and 8 from 4
    ids = POSITIONED.aligned_ids(words, {0: 2, 1: 0, 12: 5})
    assert ids.tolist() == [zero - 2, 2, 1, *[2] * 9, zero + 7, eos]
    assert POSITIONED.aligned_ids(words, {12: 4})[12] == 1
    assert POSITIONED.aligned_ids(["x"], {0: REACH + 1}).tolist() == [1, eos]
    assert POSITIONED.words(ids[:-1].tolist()) == [-2, "le", None, *["le"] * 9, 7]
    assert POSITIONED.unknown.tolist() == [1, *range(zero - REACH, zero + REACH + 1)]
    # a word spelt like a token is not a token, and the same words without tokens are another vocabulary
    assert POSITIONED.ids(["<unk>", "+1"]).tolist() == [1, 1]
    assert POSITIONED.hash() != Words(POSITIONED.vocabulary).hash()
    with pytest.raises(ValueError, match="does not end in position tokens"):
        PositionedWords.load(TARGET.vocabulary, b"")


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        # the source word at the position, although another one is unknown to the network
        ("the dog chases a weasel .", ["le", "chien", 0, "un", 0, "."], "le chien poursuit un belette ."),
        # two words in another order than in the source; one of them is not in the table
        ("Xavier weasel .", [-1, 1, "."], "belette Xavier ."),
        # outside the source at either end, and without a position
        ("the dog .", ["le", 2, -2, None, "."], "le ."),
    ],
)
def test_position_tokens_are_looked_up(source: str, translation: list[str | int | None], expected: str) -> None:
    assert " ".join(PointedTranslations(LEXICON)(ONE, translation, source.split())) == expected


def test_other_replacements_do_not_read_the_positions() -> None:
    source = ["the", "weasel", "."]
    assert keep(ONE, ["le", -1, "."], source) == ["le", "<unk>", "."]
    assert copy(ONE, ["le", -1, "."], source) == ["le", "weasel", "."]
    assert LEXICON(ONE, ["le", -1, "."], source) == ["le", "belette", "."]


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a network for a language that reverses three words, half of which are unknown on both sides."""
    directory = tmp_path_factory.mktemp("mirrored")
    rng = random.Random(1)
    rare = [f"x{i}" for i in range(200)]
    source = [[rng.choice(["a", rng.choice(rare)]) for _ in "123"] for _ in range(600)]
    (directory / "s").write_text("".join(" ".join(words) + "\n" for words in source))
    (directory / "t").write_text("".join(" ".join(word.upper() for word in words[::-1]) + "\n" for words in source))
    (directory / "links").write_text("2-0 1-1 0-2\n" * 600)
    command = f"seq2seq prepare --source {directory}/s --target {directory}/t --alignment {directory}/links"
    sizes = "--source-vocab-size 3 --target-vocab-size 3"
    assert main(f"{command} {sizes} --output-dir {directory}/ids".split()) == 0
    outputs = (
        f"--output-model {directory}/m.pt --output-history {directory}/m.json --checkpoint-dir {directory}/checkpoint"
    )
    settings = (
        "--embedding 16 --hidden 32 --layers 1 --batch 8 --epochs 10 --learning-rate 0.01 --dropout 0 --held-out 20"
    )
    assert main(f"seq2seq train --sentences {directory}/ids {settings} {outputs}".split()) == 0
    return directory


def test_a_network_points_at_the_source_words(mirrored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    about = json.loads((mirrored / "ids/sentences.json").read_text())
    rare = [word for word in (mirrored / "t").read_text().split() if word.startswith("X")]
    assert about["target units with a position token"] == len(rare) > 400
    assert (about["target unknown units"], about["target classes"]) == (0, 3 + 1 + 15)
    (mirrored / "in").write_text("x5 y a\na y x7\ny a x9\n")
    (mirrored / "lex").write_text("X5 x5 1\nX7 x7 1\nX9 x9 1\nA a 1\n")
    command = f"seq2seq translate --model {mirrored}/m.pt --input {mirrored}/in --output {mirrored}/out --beam 2"
    assert main([*command.split(), "--unknown", "position", "--lexicon", str(mirrored / "lex")]) == 0
    assert (mirrored / "out").read_text() == "A y X5\nX7 y A\nX9 A y\n"
    # in source order, the same words have the wrong positions
    assert main([*command.split(), "--unknown", "lexicon", "--lexicon", str(mirrored / "lex")]) == 0
    assert (mirrored / "out").read_text() == "A X5 y\ny X7 A\ny A X9\n"
    capsys.readouterr()


def test_an_unknown_word_of_a_given_translation_has_the_probability_of_all_tokens(mirrored: Path) -> None:
    one = load_model(mirrored / "m.pt")
    source = one.source.ids(["x5", "a", "y"], eos=True)
    texts = [["Y", "A", "Z"], ["Y", "A", "B"], ["A", "B", "Z"], ["A"], ["Y", "X"]]

    @torch.no_grad()
    def by_hand(words: list[str]) -> float:
        state = one.model.encode(torch.from_numpy(source[::-1].copy()[[1, 2, 3, 0]].astype(np.int64))[:, None])
        read, total = one.target.eos, 0.0
        for word in one.target.ids(words, eos=True).tolist():
            g, state = one.model.decode(torch.tensor([[read]]), state)
            log_p = torch.log_softmax(one.model.logits(g[0])[0], -1)
            ids = torch.from_numpy(one.target.unknown) if word == UNK else torch.tensor([word])
            total += float(torch.logsumexp(log_p[ids], 0))
            read = int(ids[log_p[ids].argmax()])
        return total

    expected = [by_hand(words) for words in texts]
    found = Scorer([one]).score([source], [[one.target.ids(words, eos=True) for words in texts]])[0]
    assert found == pytest.approx(expected, abs=1e-4)
    pair = Scorer([one, one]).score([source], [[one.target.ids(words, eos=True) for words in texts]])[0]
    assert pair == pytest.approx(expected, abs=1e-4)
    assert found[0] > np.log(0.2)  # UNK, the null token alone, never occurs in the training text


def test_bad_input_of_positions(mirrored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(command: str) -> str:
        assert main(command.split()) == 2
        return capsys.readouterr().err

    sizes = f"--source-vocab-size 5 --target-vocab-size 5 --output-dir {tmp_path}/out"
    prepare = f"seq2seq prepare --source {mirrored}/s --target {mirrored}/t {sizes}"
    assert "--alignment cannot be combined with --subwords bpe" in said(
        f"{prepare} --alignment {mirrored}/links --subwords bpe"
    )
    assert "2 --alignment files but 1 --source files" in said(
        f"{prepare} --alignment {mirrored}/links {mirrored}/links"
    )
    (tmp_path / "links").write_text("0-0\n" * 599 + "3-0\n")
    assert "links, line 600: " in said(f"{prepare} --alignment {tmp_path}/links")
    (tmp_path / "short").write_text("0-0\n" * 599)
    assert "599" in said(f"{prepare} --alignment {tmp_path}/short")
    assert not (tmp_path / "out/sentences.json").exists()
    save_model(tmp_path / "words.pt", Seq2Seq(ONE.model.sizes, 1), "none", (SOURCE, TARGET), "reversed", {})
    (tmp_path / "lex").write_text("A a 1\n")
    translate = f"--input {mirrored}/s --output {tmp_path}/o --unknown position --lexicon {tmp_path}/lex"
    assert "words.pt: has no position tokens for --unknown position" in said(
        f"seq2seq translate --model {tmp_path}/words.pt {translate}"
    )
