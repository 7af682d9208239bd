"""The operations prepare, train, translate and rescore."""

import gzip
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rnnsmt  # noqa: E402
from rnnsmt.base.errors import InputError  # noqa: E402
from rnnsmt.cli import main  # noqa: E402
from rnnsmt.formats.ini import MosesIni  # noqa: E402
from rnnsmt.networks.devices import DeviceSetup, set_up_device  # noqa: E402
from rnnsmt.networks.model_file import Checkpoint  # noqa: E402
from rnnsmt.networks.training import Training, learning_rate  # noqa: E402
from rnnsmt.seq2seq.model import load_ensemble  # noqa: E402
from rnnsmt.seq2seq.sentences import SentencePairs  # noqa: E402
from rnnsmt.seq2seq.settings import DEMO, PAPER  # noqa: E402
from rnnsmt.seq2seq.training import SentenceBatches, Seq2SeqTask  # noqa: E402
from rnnsmt.seq2seq.translation_scores import Scorer  # noqa: E402

from ..overriding import overridden  # noqa: E402

torch.set_num_threads(1)

CPU = DeviceSetup(torch.device("cpu"))

WORDS = {"a": "u", "b": "v", "c": "w x", "d": "y"}

TINY = "--embedding 16 --hidden 24 --layers 2 --batch 8 --epochs 2 --held-out 10 --evaluations 4 --dropout 0.2"


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a text of a language that is translated word by word."""
    directory = tmp_path_factory.mktemp("text")
    rng = random.Random(1)
    source = [rng.choices([*WORDS, f"rare{i % 99}"], [9, 7, 5, 3, 0.2], k=rng.randint(1, 5)) for i in range(900)]
    target = [" ".join(WORDS.get(word, "R" + word) for word in words) for words in source]
    (directory / "train.s").write_text("".join(" ".join(words) + "\n" for words in source))
    with gzip.open(directory / "train.t.gz", "wt") as out:
        out.write("".join(line + "\n" for line in target))
    return directory


@pytest.fixture(scope="module")
def prepared(text: Path) -> Path:
    files = f"--source {text}/train.s --target {text}/train.t.gz --output-dir {text}/ids"
    assert main(f"networks prepare --network seq2seq {files} --vocab-size 8 9".split()) == 0
    return text / "ids"


def with_change(options: str, change: str) -> list[str]:
    """Return the words of options, some of them with other values."""
    found = dict(re.findall(r"(--\S+) (.*?)(?= --|$)", f"{options} {change}"))
    return " ".join(f"{name} {values}" for name, values in found.items()).split()


def run_train(prepared: Path, name: str, *more: str) -> int:
    stem = f"{prepared}/{name}"
    outputs = f"--output-model {stem}.safetensors --output-history {stem}.json --checkpoint-dir {stem}"
    return main(
        overridden(
            ["networks", "train", "--network", "seq2seq", "--data", prepared, *TINY.split(), *outputs.split()], more
        )
    )


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
    command = (
        f"networks prepare --network seq2seq --source {tmp_path}/s --target {tmp_path}/t --output-dir {tmp_path}/out"
    )
    assert main([*command.split(), *["--vocab-size", "5", "--max-length", "3"]]) == 0
    stats = json.loads((tmp_path / "out/sentences.json").read_text())
    assert (stats["pairs"], stats["discarded pairs, empty"], stats["discarded pairs, too long"]) == (2, 1, 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("--source {0}/train.s {0}/train.s", "2 --source files but 1 --target files"),
        ("--source {0}/short", "ends after line 1"),
        ("--source {0}/none", "none"),
    ],
)
def test_bad_input_of_prepare(text: Path, capsys: pytest.CaptureFixture[str], change: str, said: str) -> None:
    (text / "short").write_text("a\n")
    files = f"--source {text}/train.s --target {text}/train.t.gz --output-dir {text}/refused"
    options = with_change(f"{files} --vocab-size 8 9", change.format(text))
    assert main(["networks", "prepare", "--network", "seq2seq", *options]) == 2
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
    options = ["--epochs", "20", "--batch", "16", "--learning-rate", "0.03", "--dropout", "0"]
    assert run_train(prepared, "good", *options) == 0
    history = json.loads((prepared / "good.json").read_text())
    assert history["curve"][-1]["held-out perplexity"] < 1.5 < history["unigram perplexity"]
    (text / "in").write_text("a b d\n\nb c rareX a\n")
    command = f"seq2seq translate --model {prepared}/good.safetensors --input {text}/in --output {text}/out --beam 4"
    assert main(command.split()) == 0
    assert (text / "out").read_text().splitlines()[:2] == ["u v y", ""]


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupted_training_equals_uninterrupted(prepared: Path, tmp_path: Path, threads: int) -> None:
    """A training run that is interrupted and resumed every twenty updates equals an uninterrupted one, bit for bit."""
    pairs, settings = SentencePairs.open(prepared), replace(DEMO, hidden=24, batch=8, epochs=2.0, held_out=10)

    def advance(trainer: Training, updates: int) -> None:
        for _ in range(updates):
            if trainer.finished:
                return
            trainer.step()
            if trainer.evaluation_due:
                trainer.evaluate()

    whole = Training(Seq2SeqTask(pairs, settings, 1, CPU), threads)
    advance(whole, 10**6)
    number = 0
    while True:
        part = Training(Seq2SeqTask(pairs, settings, 1, CPU), threads)
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


def test_training_in_bfloat16_learns_as_in_float32(prepared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, small = [], ["--epochs", "1", "--layers", "1", "--hidden", "16", "--learning-rate", "0.02"]
    try:
        for precision in ("float32", "bfloat16"):
            assert run_train(prepared, precision, "--precision", precision, *small) == 0
            assert f"products with {precision} factors" in capsys.readouterr().err
            found.append(json.loads((prepared / f"{precision}.json").read_text()))
    finally:
        set_up_device("cpu", 1)
    assert found[1]["computed on"]["factors"] == "bfloat16"
    one, two = ([row["held-out perplexity"] for row in history["curve"]] for history in found)
    assert one != two
    assert one == pytest.approx(two, rel=0.03)
    assert one[-1] < 0.9 * found[0]["unigram perplexity"]


def test_other_settings_do_not_resume(prepared: Path) -> None:
    pairs, setup = SentencePairs.open(prepared), CPU
    trainer = Training(Seq2SeqTask(pairs, DEMO, 1, setup))
    assert trainer.fingerprint() != Training(Seq2SeqTask(pairs, DEMO, 2, setup)).fingerprint()


def test_the_learning_rate_of_the_paper_is_halved_every_half_epoch_after_the_fifth() -> None:
    rates = [learning_rate(PAPER, update, 7500) for update in (0, 4999, 5000, 5499, 5500, 7000, 7499)]
    assert rates == [0.7, 0.7, 0.35, 0.35, 0.175, 0.7 / 32, 0.7 / 32]


def test_translations_of_a_list_score_as_alone(prepared: Path, text: Path) -> None:
    if not (prepared / "small.safetensors").exists():
        assert run_train(prepared, "small") == 0
    (text / "nbest").write_text(
        "0 ||| u v ||| LM0= -3 ||| -1\n0 ||| u v y ||| LM0= -4 ||| -2\n1 ||| w x ||| LM0= -4 ||| -2\n"
    )
    (text / "source").write_text("a b\nc\n")
    model = f"--model {prepared}/small.safetensors {prepared}/small.safetensors --source {text}/source"
    assert main(f"networks rescore {model} --nbest {text}/nbest --output {text}/rescored".split()) == 0
    found = [line.split("LSTM0= ")[1].split()[0] for line in (text / "rescored").read_text().splitlines()]
    network = load_ensemble([f"{prepared}/small.safetensors"], CPU.device)[0]
    alone = [("a b", "u v"), ("a b", "u v y"), ("c", "w x")]
    ids = [
        [side.ids(text.split(), eos=True) for side, text in zip((network.source, network.target), pair, strict=True)]
        for pair in alone
    ]
    expected = [Scorer([network]).score([source], [[target]])[0][0] for source, target in ids]
    assert [float(value) for value in found] == pytest.approx(expected, abs=1e-4)


LISTS = {
    "one": "0 ||| u v ||| LM0= -3 ||| -3\n0 ||| u v y ||| LM0= -4 ||| -4\n1 ||| w x ||| LM0= -4 ||| -4\n",
    "two": "0 ||| u v y ||| LM0= -2 ||| -2\n0 ||| v ||| LM0= -5 ||| -5\n1 ||| w x ||| LM0= -1 ||| -1\n",
}

INI = "[feature]\nKENLM name=LM0 order=3 path=lm\n\n[weight]\nLM0= 1\n"


@pytest.fixture(scope="module")
def lists(prepared: Path, text: Path) -> Path:
    """Create two n-best lists of a text, the ini of their features, and a network."""
    if not (prepared / "small.safetensors").exists():
        assert run_train(prepared, "small") == 0
    for name, lines in LISTS.items():
        (text / f"{name}.nbest").write_text(lines)
    (text / "two.sentences").write_text("a b\nc\n")
    (text / "lists.ini").write_text(INI)
    return text


def rescored(path: Path) -> list[tuple[str, float]]:
    """Return every line of a rescored list without the score of the network, and that score."""
    parts = [line.split(" LSTM0= ") for line in path.read_text().splitlines()]
    return [(before + after.partition(" ")[2], float(after.split()[0])) for before, after in parts]


def test_several_lists_of_a_text_are_scored_together(
    lists: Path, prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"networks rescore --model {prepared}/small.safetensors --source {lists}/two.sentences".split()
    names = list(LISTS)
    both = ["--nbest", *(f"{lists}/{name}.nbest" for name in names), "--output", *(f"{lists}/{n}.both" for n in names)]
    capsys.readouterr()
    assert main([*command, *both]) == 0
    assert "translations 6, scored 4" in capsys.readouterr().err
    for name in names:
        assert main([*command, "--nbest", f"{lists}/{name}.nbest", "--output", f"{lists}/{name}.alone"]) == 0
        together, alone = rescored(lists / f"{name}.both"), rescored(lists / f"{name}.alone")
        assert [line for line, _ in together] == [line for line, _ in alone]
        assert [score for _, score in together] == pytest.approx([score for _, score in alone], abs=1e-5)


def test_each_list_by_networks_of_its_own(lists: Path, prepared: Path) -> None:
    """Each list is rescored by the networks of its --model, as in runs with different training runs."""
    if not (prepared / "other.safetensors").exists():
        assert run_train(prepared, "other", "--seed", "2") == 0
    models = [f"{prepared}/small.safetensors", f"{prepared}/other.safetensors"]
    files = f"--nbest {lists}/one.nbest {lists}/one.nbest --source {lists}/two.sentences --output {lists}/a {lists}/b"
    assert main(["networks", "rescore", *files.split(), "--model", models[0], "--model", models[1]]) == 0
    for model, output in zip(models, ("a", "b"), strict=True):
        files = f"--nbest {lists}/one.nbest --source {lists}/two.sentences --output {lists}/alone"
        assert main(f"networks rescore --model {model} {files}".split()) == 0
        assert rescored(lists / output) == rescored(lists / "alone")
    assert rescored(lists / "a") != rescored(lists / "b")


@pytest.mark.parametrize("weight", [0, 1])
def test_even_average_and_none(lists: Path, prepared: Path, weight: int) -> None:
    """With weight 0 the system's best translations are chosen, with weight 1 those with the best sum of both scores."""
    files = f"--nbest {lists}/one.nbest --source {lists}/two.sentences --output {lists}/weighted"
    assert main(f"networks rescore --model {prepared}/small.safetensors {files}".split()) == 0
    files = f"--nbest {lists}/weighted --input {lists}/two.sentences --output {lists}/best --report {lists}/best.json"
    inis = f"--ini {lists}/lists.ini --feature LSTM0={weight} --output-ini {lists}/weighted.ini"
    assert main(f"tuning rerank {inis} {files}".split()) == 0
    assert MosesIni.read(lists / "weighted.ini").weights["LSTM0"] == [weight]
    sums: dict[str, dict[str, float]] = {"0": {}, "1": {}}
    for line, score in rescored(lists / "weighted"):
        number, translation, _, total = (part.strip() for part in line.split("|||"))
        sums[number][translation] = float(total) + weight * score
    best = [max(found, key=lambda translation, found=found: found[translation]) for found in sums.values()]
    assert (lists / "best").read_text().splitlines() == best
    if not weight:
        assert best == ["u v", "w x"]
    assert json.loads((lists / "best.json").read_text())["sentences"] == 2


@pytest.mark.parametrize(
    ("feature", "said"),
    [
        ("LM0=1", "lists.ini: already has a feature LM0"),
        ("L-M=1", "must be a name such as LSTM0"),
        ("LSTM0=nan", "nan: must be a finite number"),
    ],
)
def test_features_that_cannot_be_added(
    lists: Path, capsys: pytest.CaptureFixture[str], feature: str, said: str
) -> None:
    files = f"--ini {lists}/lists.ini --nbest {lists}/one.nbest --input {lists}/two.sentences --output {lists}/no"
    try:
        assert main(f"tuning rerank {files} --feature {feature}".split()) == 2
    except SystemExit as stopped:  # of argparse
        assert stopped.code == 2
    assert said in capsys.readouterr().err
    assert not (lists / "no").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("--output {0}/a {0}/b", "got 1 --nbest files but 2 --output files"),
        (
            "--source {0}/two.sentences {0}/two.sentences {0}/two.sentences",
            "--source: specify one, or one for each of the 1 n-best lists",
        ),
        (
            "--nbest {0}/one.nbest {0}/unsorted --output {0}/a {0}/b",
            "line 2: sentence 0 follows sentence 1; sort the list",
        ),
        ("--feature LM0", "already has the feature LM0"),
    ],
)
def test_bad_input_of_several_lists(
    lists: Path, prepared: Path, capsys: pytest.CaptureFixture[str], change: str, said: str
) -> None:
    (lists / "unsorted").write_text("1 ||| u ||| LM0= -3 ||| -1\n0 ||| u ||| LM0= -3 ||| -1\n")
    model, files = f"--model {prepared}/small.safetensors", f"--nbest {lists}/one.nbest --output {lists}/a"
    files = f"{model} --source {lists}/two.sentences {files}"
    assert main(["networks", "rescore", *with_change(files, change.format(lists))]) == 2
    assert said in capsys.readouterr().err


def test_texts_of_several_runs(lists: Path, prepared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every text is translated with every --model; equal networks translate once."""
    if not (prepared / "other.safetensors").exists():
        assert run_train(prepared, "other", "--seed", "2") == 0
    (lists / "more").write_text("d a\n")
    small, other = f"--model {prepared}/small.safetensors", f"--model {prepared}/other.safetensors"
    texts = f"--input {lists}/two.sentences {lists}/more --beam 3 --output"
    runs = " ".join(f"{lists}/{run}.{name}" for run in (1, 2, 3) for name in ("two", "more"))
    reports = " ".join(f"{lists}/{run}.{name}.json" for run in (1, 2, 3) for name in ("two", "more"))
    assert main(f"seq2seq translate {small} {other} {small} {texts} {runs} --report {reports}".split()) == 0
    assert (lists / "1.two").read_bytes() == (lists / "3.two").read_bytes()
    assert main(f"seq2seq translate {other} {texts} {lists}/two.alone {lists}/more.alone".split()) == 0
    assert (lists / "2.two").read_bytes() == (lists / "two.alone").read_bytes()
    models = [[prepared / "other.safetensors"]]
    found = rnnsmt.seq2seq.translate(models, [["a b", "c"], ["d a"]], [lists / "a", lists / "b"], beam=3)
    assert [(lists / name).read_bytes() for name in "ab"] == [
        (lists / f"2.{name}").read_bytes() for name in ("two", "more")
    ]
    assert found[0] == (lists / "a").read_text().splitlines() and found.figures["sentences"] == 3
    report = json.loads((lists / "2.two.json").read_text())
    assert (report["sentences"], report["words"], report["unknown_words"]) == (2, 3, 0)
    assert main(f"seq2seq translate {small} {other} {texts} {lists}/two.alone".split()) == 2
    assert "2 --model and 2 --input require 4 --output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2 ||| u ||| LM0= -3 ||| -1", "line 1: sentence 2 (0-based), but the source text has 2 lines"),
        ("x ||| u ||| LM0= -3 ||| -1", "line 1: expected `number ||| text"),
        ("0 ||| u ||| LSTM0= -3 ||| -1", "already has the feature LSTM0"),
        ("0 ||| u", "line 1"),
        ("", "n-best list"),
    ],
)
def test_bad_lists_are_refused(
    prepared: Path, text: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    if not (prepared / "small.safetensors").exists():
        assert run_train(prepared, "small") == 0
    (text / "source").write_text("a b\nc\n")
    (text / "bad").write_text(line + "\n" if line else "")
    command = f"networks rescore --model {prepared}/small.safetensors --source {text}/source --nbest {text}/bad"
    assert main([*command.split(), "--output", f"{text}/none"]) == 2
    assert said in capsys.readouterr().err
    assert not (text / "none").exists()


def test_without_held_out_pairs_there_is_no_perplexity(prepared: Path) -> None:
    assert run_train(prepared, "all", "--held-out", "0", "--keep", "last", "--epochs", "0.1") == 0
    text = (prepared / "all.json").read_text()
    assert "NaN" not in text, "which is no JSON"
    assert "unigram perplexity" not in json.loads(text)


def test_no_remaining_pair_is_reported(prepared: Path) -> None:
    pairs = SentencePairs.open(prepared)
    with pytest.raises(InputError, match="no pairs remain for training"):
        SentenceBatches(pairs, 4, 1, np.arange(900))
