"""The stages by their commands: prepare, train, translate, score, rescore."""

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rnnsmt.cli import main  # noqa: E402
from rnnsmt.io import InputError  # noqa: E402
from rnnsmt.networks.checkpoint import Checkpoint  # noqa: E402
from rnnsmt.networks.devices import Place  # noqa: E402
from rnnsmt.networks.training import learning_rate  # noqa: E402
from rnnsmt.seq2seq.batches import SentenceBatches  # noqa: E402
from rnnsmt.seq2seq.scoring import Scorer  # noqa: E402
from rnnsmt.seq2seq.sentences import SentencePairs  # noqa: E402
from rnnsmt.seq2seq.settings import DEMO, PAPER  # noqa: E402
from rnnsmt.seq2seq.training import Seq2SeqTrainer  # noqa: E402

torch.set_num_threads(1)

CPU = Place(torch.device("cpu"))

WORDS = {"a": "u", "b": "v", "c": "w x", "d": "y"}

TINY = "--embedding 16 --hidden 24 --layers 2 --batch 8 --epochs 2 --held-out 10 --evaluations 4 --dropout 0.2"


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language that is translated word by word, in the order of the source."""
    folder = tmp_path_factory.mktemp("text")
    rng = random.Random(1)
    source = [rng.choices([*WORDS, f"rare{i % 99}"], [9, 7, 5, 3, 0.2], k=rng.randint(1, 5)) for i in range(900)]
    target = [" ".join(WORDS.get(word, "R" + word) for word in words) for words in source]
    (folder / "train.s").write_text("".join(" ".join(words) + "\n" for words in source))
    with gzip.open(folder / "train.t.gz", "wt") as out:
        out.write("".join(line + "\n" for line in target))
    return folder


@pytest.fixture(scope="module")
def prepared(text: Path) -> Path:
    files = f"--source {text}/train.s --target {text}/train.t.gz --output-dir {text}/ids"
    assert main(f"seq2seq prepare {files} --source-vocab-size 8 --target-vocab-size 9".split()) == 0
    return text / "ids"


def run_train(prepared: Path, name: str, *more: str) -> int:
    outputs = (
        f"--output-model {prepared}/{name}.pt --output-history {prepared}/{name}.json --state-dir {prepared}/{name}"
    )
    return main(["seq2seq", "train", "--sentences", str(prepared), *TINY.split(), *outputs.split(), *more])


def test_prepare_keeps_what_both_sides_say(prepared: Path) -> None:
    pairs = SentencePairs.open(prepared)
    stats = json.loads((prepared / "sentences.json").read_text())
    assert (len(pairs), stats["source classes"], stats["target classes"]) == (900, 9, 10)
    source, target = (vocabulary.text for vocabulary in pairs.vocabularies)
    for i in range(20):
        expected = " ".join(WORDS.get(word, word) for word in source(pairs.sides[0].phrase(i)).split())
        assert target(pairs.sides[1].phrase(i)) == expected


def test_long_and_empty_sentences_are_left_out_and_counted(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("a b\n\na a a a\na\n")
    (tmp_path / "t").write_text("u v\nu\nu\nu\n")
    command = f"seq2seq prepare --source {tmp_path}/s --target {tmp_path}/t --output-dir {tmp_path}/out"
    assert main([*command.split(), *["--source-vocab-size", "5", "--target-vocab-size", "5", "--max-length", "3"]]) == 0
    stats = json.loads((tmp_path / "out/sentences.json").read_text())
    assert (stats["pairs"], stats["pairs left out, empty"], stats["pairs left out, too long"]) == (2, 1, 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("--source {0}/train.s {0}/train.s", "2 --source but 1 --target files"),
        ("--source {0}/short", "ends after line 1"),
        ("--source {0}/none", "none"),
        ("--source-vocab-size 2", "--vocab-size 2: must be at least 3"),
        ("--max-length 0", "must be at least 1"),
    ],
)
def test_bad_input_of_prepare(text: Path, capsys: pytest.CaptureFixture[str], change: str, said: str) -> None:
    (text / "short").write_text("a\n")
    files = f"--source {text}/train.s --target {text}/train.t.gz --output-dir {text}/refused"
    command = f"seq2seq prepare {files} --source-vocab-size 8 --target-vocab-size 9 {change.format(text)}"
    try:
        code = main(command.split())
    except SystemExit as refused:
        code = refused.code
    assert code == 2
    assert said in capsys.readouterr().err
    assert not (text / "refused/sentences.json").exists()


def test_every_pair_comes_once_an_epoch_with_others_of_its_length(prepared: Path) -> None:
    pairs = SentencePairs.open(prepared)
    held_out = np.array([3, 77, 899])
    batches = SentenceBatches(pairs, 16, 5, held_out)
    epoch = [next(batches) for _ in range(batches.updates)]
    seen = np.sort(np.concatenate(epoch))
    assert np.array_equal(seen, np.setdiff1d(np.arange(900), held_out))
    assert max(int(np.ptp(pairs.sides[0].lengths(index))) for index in epoch) <= 1
    state = batches.state()
    following = [next(batches) for _ in range(70)]
    again = SentenceBatches(pairs, 16, 5, held_out)
    again.restore(state)
    assert all(np.array_equal(next(again), index) for index in following)
    assert not np.array_equal(following[0], epoch[0])


def test_the_network_learns_the_language(prepared: Path, text: Path) -> None:
    assert run_train(prepared, "good", *["--epochs", "60", "--learning-rate", "0.02", "--dropout", "0"]) == 0
    history = json.loads((prepared / "good.json").read_text())
    assert history["curve"][-1]["held-out perplexity"] < 1.5 < history["unigram perplexity"]
    (text / "in").write_text("a b d\n\nb c rareX a\n")
    command = f"seq2seq translate --model {prepared}/good.pt --input {text}/in --output {text}/out --beam 4 --unknown"
    assert main([*command.split(), "keep"]) == 0
    assert (text / "out").read_text().splitlines()[:2] == ["u v y", ""]
    assert main([*command.split(), "copy"]) == 0
    assert "<unk>" not in (text / "out").read_text()


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupted_is_uninterrupted(prepared: Path, tmp_path: Path, threads: int) -> None:
    """Through a checkpoint file, at every twentieth update, bit for bit."""
    pairs, settings = SentencePairs.open(prepared), replace(DEMO, hidden=24, batch=8, epochs=2.0, held_out=10)

    def advance(trainer: Seq2SeqTrainer, updates: int) -> None:
        for _ in range(updates):
            if trainer.finished:
                return
            trainer.step()
            if trainer.evaluation_due:
                trainer.evaluate()

    whole = Seq2SeqTrainer(pairs, settings, 1, CPU, threads)
    advance(whole, 10**6)
    number = 0
    while True:
        part = Seq2SeqTrainer(pairs, settings, 1, CPU, threads)
        checkpoint = Checkpoint(tmp_path, part.fingerprint())
        saved = checkpoint.load()
        assert (saved is None) == (number == 0)
        if saved:
            part.restore(saved)
        if part.finished:
            break
        advance(part, 20)
        checkpoint.save(part.state())
        number += 1
    assert number > 3
    assert torch.equal(whole.flat, part.flat)
    assert whole.history == part.history
    assert whole.best[0] == part.best[0]


def test_other_settings_do_not_go_on(prepared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs, place = SentencePairs.open(prepared), CPU
    trainer = Seq2SeqTrainer(pairs, DEMO, 1, place)
    assert trainer.fingerprint() != Seq2SeqTrainer(pairs, DEMO, 2, place).fingerprint()
    assert run_train(prepared, "one", "--batch", "0") == 2
    assert "--batch 0: must be above 0" in capsys.readouterr().err


def test_the_learning_rate_of_the_paper_is_halved_every_half_epoch_after_the_fifth() -> None:
    rates = [learning_rate(PAPER, update, 7500) for update in (0, 4999, 5000, 5499, 5500, 7000, 7499)]
    assert rates == [0.7, 0.7, 0.35, 0.35, 0.175, 0.7 / 32, 0.7 / 32]


def test_lists_and_lines_score_alike(prepared: Path, text: Path) -> None:
    if not (prepared / "small.pt").exists():
        assert run_train(prepared, "small") == 0
    (text / "nbest").write_text(
        "0 ||| u v ||| LM0= -3 ||| -1\n0 ||| u v y ||| LM0= -4 ||| -2\n1 ||| w x ||| LM0= -4 ||| -2\n"
    )
    (text / "source").write_text("a b\nc\n")
    model = f"--model {prepared}/small.pt {prepared}/small.pt --source {text}/source"
    assert main(f"seq2seq rescore {model} --nbest {text}/nbest --output {text}/rescored".split()) == 0
    found = [line.split("LSTM0= ")[1].split()[0] for line in (text / "rescored").read_text().splitlines()]
    (text / "s").write_text("a b\na b\nc\n")
    (text / "t").write_text("u v\nu v y\nw x\n")
    lines = f"--model {prepared}/small.pt --source {text}/s --target {text}/t --output {text}/scores"
    assert main(f"seq2seq score {lines}".split()) == 0
    expected = [float(line) for line in (text / "scores").read_text().splitlines()]
    assert [float(value) for value in found] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2 ||| u ||| LM0= -3 ||| -1", "line 1: sentence 2 of 2"),
        ("x ||| u ||| LM0= -3 ||| -1", "line 1: not number ||| text"),
        ("0 ||| u ||| LSTM0= -3 ||| -1", "has LSTM0= already"),
        ("0 ||| u", "line 1"),
        ("", "n-best list"),
    ],
)
def test_bad_lists_are_refused(
    prepared: Path, text: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    if not (prepared / "small.pt").exists():
        assert run_train(prepared, "small") == 0
    (text / "source").write_text("a b\nc\n")
    (text / "bad").write_text(line + "\n" if line else "")
    command = f"seq2seq rescore --model {prepared}/small.pt --source {text}/source --nbest {text}/bad"
    assert main([*command.split(), "--output", f"{text}/none"]) == 2
    assert said in capsys.readouterr().err
    assert not (text / "none").exists()


def test_no_pair_left_is_said(prepared: Path) -> None:
    pairs = SentencePairs.open(prepared)
    with pytest.raises(InputError, match="no pair is left to train on"):
        SentenceBatches(pairs, 4, 1, np.arange(900))


@pytest.fixture(scope="module")
def lists(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three lists of two texts, and the trained network as ``model``; sentence 1 of the first text is in one list."""
    folder = tmp_path_factory.mktemp("lists")
    if not (prepared / "small.pt").exists():
        assert run_train(prepared, "small") == 0
    (folder / "model").symlink_to(prepared / "small.pt")
    (folder / "s").write_text("a b\nc\nd d b\n")
    (folder / "other").write_text("b\nc\nd\n")
    rng = random.Random(3)
    for name, numbers in (("n1", (0, 2)), ("n2", (0, 1, 2)), ("n3", (0, 2))):
        rows = [
            f"{number} ||| {' '.join(rng.choices('uvwxy', k=rng.randint(0, 3)))}  ||| LM0= -{place} ||| -{place}.5\n"
            for number in numbers
            for place in range(40)
        ]
        (folder / name).write_text("".join(rows))
    return folder


def rescore(folder: Path, nbests: str, outputs: str, source: str = "s") -> int:
    def paths(names: str) -> list[str]:
        return [str(folder / name) for name in names.split()]

    command = ["seq2seq", "rescore", "--model", str(folder / "model"), "--nbest", *paths(nbests)]
    return main([*command, "--source", *paths(source), "--output", *paths(outputs), "--threads", "1"])


def test_lists_together_are_the_lists_one_by_one(lists: Path) -> None:
    assert rescore(lists, "n1 n2 n3", "t1 t2.gz t3", "s s other") == 0
    for name, source in (("1", "s"), ("2", "s"), ("3", "other")):
        assert rescore(lists, f"n{name}", f"alone{name}", source) == 0
    with gzip.open(lists / "t2.gz", "rb") as found:
        assert found.read() == (lists / "alone2").read_bytes()
    for name in "13":
        assert (lists / f"t{name}").read_bytes() == (lists / f"alone{name}").read_bytes()
    assert rescore(lists, "n3", "alone4", "s") == 0
    assert (lists / "alone4").read_bytes() != (lists / "alone3").read_bytes()


def test_every_different_translation_of_a_sentence_is_scored_once(
    lists: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scored: list[int] = []
    score = Scorer.score

    def counting(self: Scorer, sources: list[np.ndarray], translations: list[list[np.ndarray]]) -> list[np.ndarray]:
        scored.extend(map(len, translations))
        return score(self, sources, translations)

    monkeypatch.setattr(Scorer, "score", counting)
    (lists / "again").write_bytes((lists / "n1").read_bytes())
    (lists / "s-again").write_bytes((lists / "s").read_bytes())
    assert rescore(lists, "n1 again n2", "o1 o2 o3", "s s-again s") == 0
    pairs = {
        tuple(line.split(" ||| ")[:2]) for name in ("n1", "n2") for line in (lists / name).read_text().splitlines()
    }
    assert sum(scored) == len(pairs) < 200
    assert len(scored) == 3
    assert f"translations 280, distinct {len(pairs)}" in capsys.readouterr().err
    assert (lists / "o1").read_bytes() == (lists / "o2").read_bytes()


def test_lists_whose_sentences_are_out_of_order_stay_so(lists: Path) -> None:
    rows = (lists / "n2").read_text().splitlines(keepends=True)
    (lists / "backwards").write_text("".join(rows[::-1]))
    assert rescore(lists, "backwards n2", "back there") == 0
    back, there = ((lists / name).read_text().splitlines() for name in ("back", "there"))
    assert back[::-1] == there


@pytest.mark.parametrize(
    ("nbests", "outputs", "source", "said"),
    [
        ("n1 n2", "x1", "s", "2 --nbest but 1 --output files"),
        ("n1", "x1 x2", "s", "1 --nbest but 2 --output files"),
        ("n1 n2 n3", "x1 x2 x3", "s s", "2 --source but 3 --nbest files"),
        ("n1 n2", "x1 x1", "s", "is there twice"),
        ("n1 empty", "x1 x2", "s", "empty: is empty"),
        ("n1 bad", "x1 x2", "s", "bad, line 1: not number"),
        ("n1 n2", "x1 x2", "s short", "n2, line 41: sentence 1 of 1"),
    ],
)
def test_bad_lists_together_are_refused_and_nothing_is_written(
    lists: Path, capsys: pytest.CaptureFixture[str], nbests: str, outputs: str, source: str, said: str
) -> None:
    (lists / "empty").write_text("")
    (lists / "bad").write_text("u v\n")
    (lists / "short").write_text("a b\n")
    assert rescore(lists, nbests, outputs, source) == 2
    assert said in capsys.readouterr().err
    assert not [path for path in lists.iterdir() if path.name.startswith("x")]
