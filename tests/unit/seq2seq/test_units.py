"""Units: words and subwords as ids and back, subword models, and the commands with them."""

import json
import random
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sentencepiece = pytest.importorskip("sentencepiece")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from rnnsmt.base.io import InputError  # noqa: E402
from rnnsmt.cli import main  # noqa: E402
from rnnsmt.networks.data import UNK, Vocabulary, split  # noqa: E402
from rnnsmt.seq2seq.model import load_model  # noqa: E402
from rnnsmt.seq2seq.sentences import SentencePairs  # noqa: E402
from rnnsmt.seq2seq.translation_scores import Scorer  # noqa: E402
from rnnsmt.seq2seq.units import Subwords, Units, Words, make_units  # noqa: E402

torch.set_num_threads(1)

STEMS, ENDINGS = ("tapo", "mura", "selik", "donor", "vipa", "l&apos;"), ("", "s", "ti", "ndo", "\u00a0x")


def sentences(number: int = 600) -> list[list[str]]:
    rng = random.Random(1)
    return [[rng.choice(STEMS) + rng.choice(ENDINGS) for _ in range(rng.randint(1, 3))] for _ in range(number)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a text whose words have endings; the translation of a word is the word in capital letters."""
    directory = tmp_path_factory.mktemp("subwords")
    lines = [" ".join(words) for words in sentences()]
    (directory / "s").write_text("".join(line + "\n" for line in lines))
    (directory / "t").write_text("".join(line.upper() + "\n" for line in lines))
    return directory


def learnt(corpus: Path, kind: str, size: int = 60) -> Units:
    counts = Counter(word for words in sentences() for word in words)
    return make_units(kind, [str(corpus / "s")], counts, size)


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def units(request: pytest.FixtureRequest, corpus: Path) -> Units:
    return learnt(corpus, request.param)


def test_subwords_are_as_many_as_asked_for_and_always_the_same(units: Units, corpus: Path) -> None:
    assert len(units) <= 61  # including EOS
    assert len(units.vocabulary.index) == len(units) - 3
    kind = "bpe" if learnt(corpus, "bpe").hash() == units.hash() else "unigram"
    assert learnt(corpus, kind).model() == units.model()
    assert Subwords.load(units.vocabulary, units.model()).hash() == units.hash()


def test_words_come_back_with_their_spaces(units: Units) -> None:
    for words in sentences(50):
        found = units.ids(words, eos=True)
        assert found.dtype == np.int32
        assert found[-1] == units.eos
        assert found.max() < len(units)
        assert units.words(found[:-1]) == words
        assert units.begins[found].sum() == len(words) + 1


def test_a_new_word_of_known_characters_is_known_and_another_one_is_not(units: Units) -> None:
    assert units.knows("muratapo")
    assert units.words(units.ids(["muratapo", "tapo"])) == ["muratapo", "tapo"]
    assert not units.knows("mura中")
    found = units.ids(["tapo", "mura中", "中", "vipa"])
    assert np.count_nonzero(found == UNK) == 2
    assert units.words(found) == ["tapo", None, None, "vipa"]


def test_the_mark_of_a_beginning_is_none_in_the_text(units: Units) -> None:
    found = units.ids(["ta▁po", "vipa"])
    assert units.words(found)[1:] == ["vipa"]
    assert len(units.words(found)) == 2


def test_pieces_that_no_word_is_taken_apart_into_are_words_all_the_same(units: Units) -> None:
    index = units.vocabulary.index
    assert units.words([index["▁"], index["t"], index["▁"], index["▁"], UNK]) == ["t", None]
    assert units.words([index["t"], index["a"]]) == ["ta"]
    assert units.words([UNK, index["a"]]) == [None]
    assert units.words([]) == []


@given(st.text(alphabet="tapomurselikdnv&;中\u2028\u3000\u0085\u200b", max_size=30))
@settings(max_examples=100, deadline=None)
def test_any_words_of_known_characters_come_back(text: str) -> None:
    words = split(text)
    units = _cached()
    found = units.words(units.ids(words))
    assert [word if units.knows(word) else None for word in words] == found


@cache
def _cached() -> Units:
    return make_units("bpe", [], Counter(word for words in sentences() for word in words), 60)


def test_words_are_their_vocabulary() -> None:
    words = Words(Vocabulary(["a", "b"]))
    assert words.ids(["b", "x", "a"], eos=True).tolist() == [3, 1, 2, 4]
    assert words.words([3, 1, 2]) == ["b", None, "a"]
    assert (words.knows("a"), words.knows("x"), words.begins.tolist()) == (True, False, [True] * 5)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_too_few_subwords_for_the_characters_are_refused(corpus: Path, kind: str) -> None:
    with pytest.raises(InputError, match=r"--vocab-size 9: the text has so many characters .* at least (\d+)") as error:
        learnt(corpus, kind, 9)
    least = int(str(error.value).split()[-1])
    assert len(learnt(corpus, kind, least)) == least + 1


def test_the_message_names_the_option_of_the_side(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = f"--source {corpus}/s --target {corpus}/t --output-dir {corpus}/none --subwords bpe"
    assert main(f"seq2seq prepare {files} --source-vocab-size 60 --target-vocab-size 9".split()) == 2
    assert "error: --target-vocab-size 9: the text has so many characters" in capsys.readouterr().err


def test_a_large_text_is_learnt_from_evenly(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnnsmt.seq2seq.units.SENTENCES", 100)
    seen: list[str] = []
    train = sentencepiece.SentencePieceTrainer.train

    def watched(sentence_iterator: object, **options: object) -> None:
        seen.extend(sentence_iterator)  # type: ignore[call-overload]
        train(sentence_iterator=iter(seen), **options)

    monkeypatch.setattr("sentencepiece.SentencePieceTrainer.train", watched)
    learnt(corpus, "unigram")
    assert seen == [" ".join(words) for words in sentences()[::6]]


def prepare(corpus: Path, kind: str, size: int = 60) -> Path:
    directory = corpus / kind
    files = f"--source {corpus}/s --target {corpus}/t --output-dir {directory}"
    sizes = f"--source-vocab-size {size} --target-vocab-size {size}"
    assert main(f"seq2seq prepare {files} {sizes} --subwords {kind}".split()) == 0
    return directory


def test_the_directory_holds_subwords(corpus: Path) -> None:
    directory = prepare(corpus, "bpe")
    stats = json.loads((directory / "sentences.json").read_text())
    pairs = SentencePairs.open(directory)
    assert (pairs.subwords, stats["source unknown units"], stats["source coverage"]) == ("bpe", 0, 1)
    assert stats["source words"] == sum(map(len, sentences())) < stats["source units"]
    for i, words in enumerate(sentences()[:20]):
        assert pairs.units[0].words(pairs.sides[0].phrase(i)[:-1]) == words
    other = SentencePairs.open(prepare(corpus, "unigram"))
    assert other.fingerprint != pairs.fingerprint


def test_a_directory_with_another_or_no_model_is_refused(corpus: Path) -> None:
    directory = prepare(corpus, "bpe")
    path = directory / "sentencepiece.source.model"
    content = path.read_bytes()
    for damaged in (content[:100], b"nothing", b"", learnt(corpus, "unigram").model()):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"sentencepiece\.source\.model.*run `seq2seq prepare` again"):
            SentencePairs.open(directory)
    path.unlink()
    with pytest.raises(InputError, match="run `seq2seq prepare` again"):
        SentencePairs.open(directory)
    files = f"--source {corpus}/s --target {corpus}/t --output-dir {directory}"
    assert main(f"seq2seq prepare {files} --source-vocab-size 9 --target-vocab-size 9".split()) == 0
    assert not list(directory.glob("sentencepiece*"))
    assert SentencePairs.open(directory).subwords == "none"


def test_without_sentencepiece_words_are_all_there_is(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rnnsmt.seq2seq.units.find_spec", lambda name: None)
    files = f"--source {corpus}/s --target {corpus}/t --output-dir {corpus}/none"
    command = f"seq2seq prepare {files} --source-vocab-size 60 --target-vocab-size 60".split()
    assert main([*command, "--subwords", "bpe"]) == 2
    assert "pip install sentencepiece" in capsys.readouterr().err
    assert main(command) == 0


def test_a_network_of_subwords_reads_and_writes_words(corpus: Path) -> None:
    directory = prepare(corpus, "bpe")
    tiny = "--embedding 24 --hidden 48 --layers 1 --batch 8 --epochs 25 --held-out 10 --evaluations 2 --dropout 0"
    files = (
        f"--output-model {directory}/m.pt --output-history {directory}/h.json --checkpoint-dir {directory}/checkpoint"
    )
    assert main(f"seq2seq train --sentences {directory} --learning-rate 0.01 {tiny} {files}".split()) == 0
    history = json.loads((directory / "h.json").read_text())
    row = history["curve"][-1]
    assert history["subwords"] == "bpe"
    assert history["held-out units"] > history["held-out words"]
    per_unit, per_word = row["held-out perplexity"], row["held-out perplexity per word"]
    assert per_word == pytest.approx(per_unit ** (history["held-out units"] / history["held-out words"]))
    assert per_word < 5

    source = [*map(" ".join, sentences()[:50]), "", "l&apos;ti vipa\u00a0x"]
    (directory / "in").write_text("".join(line + "\n" for line in source))
    command = f"seq2seq translate --model {directory}/m.pt --input {directory}/in --output {directory}/out --beam 3"
    assert main([*command.split(), "--report", f"{directory}/report.json"]) == 0
    found = (directory / "out").read_text().split("\n")[:-1]
    assert found[50] == ""
    assert sum(line == one.upper() for line, one in zip(found, source, strict=True)) > 40
    assert json.loads((directory / "report.json").read_text())["unknown_words"] == 0

    (directory / "ref").write_text("".join(line.upper() + "\n" for line in source))
    files = f"--source {directory}/in --target {directory}/ref --output {directory}/scores"
    assert main(f"seq2seq score --model {directory}/m.pt {files}".split()) == 0
    scores = [float(line) for line in (directory / "scores").read_text().splitlines()]
    one = load_model(directory / "m.pt")
    ids = one.source.ids(source[0].split(), eos=True), one.target.ids(source[0].upper().split(), eos=True)
    assert scores[0] == pytest.approx(float(Scorer([one]).score([ids[0]], [[ids[1]]])[0][0]), abs=1e-5)
    (directory / "nbest").write_text(f"0 ||| {source[0].upper()} ||| LM0= -3 ||| -1\n")
    files = f"--source {directory}/in --nbest {directory}/nbest --output {directory}/rescored"
    assert main(f"seq2seq rescore --model {directory}/m.pt {files}".split()) == 0
    assert float((directory / "rescored").read_text().split("LSTM0= ")[1].split()[0]) == pytest.approx(
        scores[0], abs=1e-4
    )
