"""Training the CSLM: text, updates, learning curve, early stop, checkpoints and resuming, invalid input."""

import json
import math
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rnnsmt.base.resuming import Stop  # noqa: E402
from rnnsmt.cli import main  # noqa: E402
from rnnsmt.cslm.model import cslm_task, load_model  # noqa: E402
from rnnsmt.cslm.scorer import CslmScorer  # noqa: E402
from rnnsmt.cslm.settings import PRESETS, CslmSettings  # noqa: E402
from rnnsmt.cslm.text import Text, contexts_at  # noqa: E402
from rnnsmt.networks.batches import draw_held_out  # noqa: E402
from rnnsmt.networks.data import NULL, UNK, Vocabulary, class_counts, unigram_log_p  # noqa: E402
from rnnsmt.networks.devices import DeviceSetup  # noqa: E402
from rnnsmt.networks.draws import Draws  # noqa: E402
from rnnsmt.networks.feed_forward_training import centre  # noqa: E402
from rnnsmt.networks.model_file import Checkpoint  # noqa: E402
from rnnsmt.networks.training import Training  # noqa: E402

from ..gpu import NEEDS_GPU  # noqa: E402
from ..overriding import overridden  # noqa: E402

torch.set_num_threads(1)
CPU = DeviceSetup(torch.device("cpu"))
TINY = CslmSettings(
    order=4, projection=8, hidden_1=16, hidden_2=12, spread=0.0, batch=64, epochs=3, learning_rate=0.01,
    output_bias="unigram", dropout=0.1, singletons=0.3, held_out_least=50,
)  # fmt: skip
SIZES = ["--projection", "8", "--hidden-1", "16", "--hidden-2", "12", "--batch", "64", "--order", "4"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Create a toy language in which subject, verb and object agree; other words are random, some occur once."""
    directory = tmp_path_factory.mktemp("toy")
    rng = np.random.default_rng(1)
    kinds = [["le", "chat", "voit"], ["la", "vache", "mange"], ["les", "chiens", "cherchent"]]
    lines = []
    for number in range(700):
        article, noun, verb = kinds[rng.integers(3)]
        rest = [f"o{rng.integers(9)}" for _ in range(rng.integers(0, 3))]
        lines.append(" ".join([article, noun, verb, *rest, *([f"rare{number}"] if number % 40 == 0 else [])]))
    (directory / "text").write_text("".join(f"{line}\n" for line in [*lines, "", lines[0]]))
    words = sorted({word for line in lines for word in line.split()})
    Vocabulary([word for word in words if word != "o8"]).write(directory / "vocab")
    assert main(prepare_line(directory, directory / "ids")) == 0
    return directory


@pytest.fixture(scope="module")
def text(directory):
    return Text.open(directory / "ids")


def prepare_line(directory, out, text="text", vocabulary="vocab"):
    files = ["--target", directory / text, "--target-vocabulary", directory / vocabulary, "--output-dir", out]
    return [str(part) for part in ["networks", "prepare", "--network", "cslm", *files]]


def command_line(directory, out, *options):
    files = [
        "--output-model",
        out / "m.safetensors",
        "--output-history",
        out / "h.json",
        "--checkpoint-dir",
        out / "checkpoint",
    ]
    base = ["networks", "train", "--network", "cslm", "--data", directory / "ids", "--preset", "demo", *SIZES]
    return overridden([*base, *files], options)


def outputs(out):
    return (out / "m.safetensors").read_bytes(), (out / "h.json").read_bytes()


# text


def test_prepare(directory, text):
    lines = [line.split() for line in (directory / "text").read_text().splitlines()]
    vocabulary = Vocabulary.read(directory / "vocab")
    expected = [i for line in lines if line for i in vocabulary.ids(line, eos=True)]
    assert text.words.dtype == np.int32
    assert text.words.tolist() == expected
    assert isinstance(text.words, np.memmap)
    assert text.offsets.tolist() == [0, *np.cumsum([len(line) + 1 for line in lines if line])]
    figures = json.loads((directory / "ids" / "text.json").read_text())
    assert (figures["sentences"], figures["empty lines"], figures["classes"]) == (701, 1, len(vocabulary))
    assert figures["unknown words"] == expected.count(UNK) > 0
    distinct = {word for line in lines for word in line} - set(vocabulary.words)
    assert figures["distinct unknown words"] == text.unknown_words == len(distinct) > 0
    assert figures["words"] == len(expected) - 701


def test_prepare_again_gives_the_same_bytes(directory, tmp_path):
    assert main(prepare_line(directory, tmp_path)) == 0
    for path in (directory / "ids").iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


def test_prepare_with_a_shortlist_of_its_own(directory, tmp_path, capfd):
    files = ["--target", str(directory / "text"), "--output-dir", str(tmp_path / "ids")]
    base = ["networks", "prepare", "--network", "cslm", *files]
    assert main([*base, "--vocab-size", "5"]) == 0
    counts = Counter((directory / "text").read_text().split())
    assert Text.open(tmp_path / "ids").vocabulary.words[2:-1] == sorted(counts, key=lambda w: (-counts[w], w))[:3]
    (tmp_path / "bitext").write_text("o8 o8 o8 n1 n1 v2\n")
    assert main([*base, "--vocab-size", "4", "--vocabulary-text", str(tmp_path / "bitext")]) == 0
    assert Text.open(tmp_path / "ids").vocabulary.words[2:-1] == ["o8", "n1"]
    vocabulary = ["--target-vocabulary", str(directory / "vocab"), "--vocabulary-text", str(tmp_path / "bitext")]
    assert main([*base, *vocabulary]) == 2
    assert "--vocabulary-text: cannot be combined with --target-vocabulary" in capfd.readouterr().err
    assert main([*base, "--source", str(directory / "text")]) == 2
    assert "--source: is not used for cslm" in capfd.readouterr().err


def test_unigrams(text):
    held_out = np.array([0, 5, 9])
    counts = class_counts([text.words], len(text.vocabulary), text.words[held_out])
    expected = np.ones(len(text.vocabulary))
    for i, word in enumerate(text.words):
        expected[word] += i not in (0, 5, 9)
    assert np.array_equal(counts, expected)
    mean = np.mean([math.log(expected[text.words[i]] / expected.sum()) for i in held_out])
    assert unigram_log_p(text.words[held_out], counts) == pytest.approx(mean)


def test_unigrams_of_words_that_training_has_not_are_those_of_unknown_words(text):
    """The unigram model and the network both score words that occur in held-out n-grams only as UNK."""
    task = cslm_task(text, replace(TINY, held_out_least=10_000), 1, CPU)
    held_out, counts = text.words[task.ngrams.held_out], task.ngrams.counts[0]
    seen = np.where(counts[held_out] == 1, UNK, held_out)
    assert np.count_nonzero(seen != held_out), "some words are not in training"
    assert task.unigram == pytest.approx(np.log(counts / counts.sum())[seen].mean())


# learning


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_GPU)])
def test_learns_the_toy_language(directory, tmp_path, capfd, device):
    options = ["--epochs", "8", "--learning-rate", "0.01", "--device", device]
    assert main(command_line(directory, tmp_path, *options)) == 0
    history = json.loads((tmp_path / "h.json").read_text())
    curve = [row["validation perplexity"] for row in history["curve"]]
    assert curve[-1] < curve[0] < history["unigram perplexity"]
    assert min(curve) == history["validation perplexity"] < 5
    assert history["curve"][history["kept epoch"] - 1]["validation perplexity"] == min(curve)
    assert history["validation ngrams"] == len(Text.open(directory / "ids")) // 10
    log = capfd.readouterr().err
    for said in ("n-grams/s", "at most", "validation", "unigram model", "epoch 8"):
        assert said in log
    scorer = CslmScorer(tmp_path / "m.safetensors", "cpu")

    def score(*words):
        ids = scorer.ids(list(words))
        context = np.concatenate([np.zeros(3, np.int32), ids[:-1]])[-3:]
        return float(scorer.score(context[None], np.zeros(1, np.int32), ids[-1:])[0])

    assert score("le", "chat", "voit") > math.log(0.8)
    assert score("le", "chat", "mange") < math.log(0.1)
    assert score("les") == pytest.approx(math.log(1 / 3), abs=0.3)
    # singletons give UNK some probability, also if the text has no UNK
    assert -12 < score("le", "chat", "voit", "zebra") < -1


def test_self_normalised(text):
    """The self-normalisation penalty halves |ln Z| and raises the perplexity by less than 10 %."""
    found = {}
    for alpha in (0.0, 0.3):
        settings = replace(TINY, epochs=10, self_normalised=alpha, output_bias="zero", spread=0.3, dropout=0.0)
        trainer = Training(cslm_task(text, settings, 1, CPU))
        while not trainer.finished:
            trainer.step()
            if trainer.evaluation_due:
                row = trainer.evaluate()
        found[alpha] = row["validation |ln Z|"], row["validation perplexity"]
        assert ("train (ln Z)^2" in row) == (alpha > 0)
    assert found[0.3][0] < 0.5 * found[0.0][0]
    assert found[0.3][1] < 1.1 * found[0.0][1]


def test_centring_changes_no_probability(text):
    trainer = Training(cslm_task(text, replace(TINY, epochs=3, self_normalised=0.1, dropout=0.3), 1, CPU))
    while not trainer.finished:
        trainer.step()
        if trainer.evaluation_due:
            before = trainer.evaluate()
    centre(trainer.task.model, trainer.task.centring_contexts())
    after = trainer.task.validation.measure(trainer.task.model)
    assert after.log_sum < 0.9 * before["validation |ln Z|"]
    assert math.exp(-after.log_p) == pytest.approx(before["validation perplexity"], rel=1e-5)


def test_centring_of_a_network_whose_hidden_units_are_always_0(text):
    trainer = Training(cslm_task(text, replace(TINY, spread=1e-30, self_normalised=0.1), 1, CPU))
    with torch.no_grad():
        trainer.task.model.b_2.fill_(-1.0)
        trainer.task.model.b_o.fill_(1.0)
    centre(trainer.task.model, trainer.task.centring_contexts())
    assert trainer.task.validation.measure(trainer.task.model).log_sum == pytest.approx(0.0, abs=1e-5)


def test_words_of_the_validation_alone_are_unknown_there(text):
    trainer = Training(cslm_task(text, TINY, 1, CPU))
    words = text.words[trainer.task.ngrams.held_out]
    counts = np.bincount(np.delete(text.words, trainer.task.ngrams.held_out), minlength=len(text.vocabulary))
    found = torch.cat(trainer.task.validation.words).numpy()
    assert np.array_equal(found, np.where(counts[words] == 0, UNK, words))
    contexts = torch.cat(trainer.task.validation.contexts).numpy()
    assert not (counts[contexts[contexts > UNK]] == 0).any()
    assert (contexts == NULL).any()


def test_self_normalised_models_are_marked(directory, text, tmp_path):
    for alpha in ("0", "0.1"):
        assert main(command_line(directory, tmp_path / alpha, "--epochs", "1", "--self-normalised", alpha)) == 0
        trained = load_model(tmp_path / alpha / "m.safetensors")
        assert trained.self_normalised == (alpha != "0")
        assert trained.vocabulary.words == Text.open(directory / "ids").vocabulary.words
        contexts = contexts_at(text.words, np.arange(len(text)), trained.model.sizes.context, text.vocabulary.eos)
        log_sum = torch.logsumexp(trained.model.logits(torch.from_numpy(contexts)), 1).mean().item()
        assert (abs(log_sum) < 1e-2) == (alpha != "0"), "centred after the training"
        assert (trained.meta["seed"], trained.meta["settings"]["self_normalised"]) == (1, float(alpha))
        assert not any(parameter.requires_grad for parameter in trained.model.parameters())


def test_early_stop(text, monkeypatch):
    """Patience counts the epochs since the best one; the best parameters are kept."""
    curve = iter([9.0, 7.0, 8.0, 7.0, 6.0, 6.5, 6.0, 7.0, 1.0])
    trainer = Training(cslm_task(text, replace(TINY, epochs=50, patience=3, batch=4096), 1, CPU))
    measured = trainer.task.validation.measure
    monkeypatch.setattr(
        trainer.task.validation, "measure", lambda model: measured(model)._replace(log_p=-math.log(next(curve)))
    )
    parameters = []
    while not trainer.finished:
        trainer.step()
        if trainer.evaluation_due:
            trainer.evaluate()
            parameters.append(trainer.flat.detach().clone())
    assert [round(row["validation perplexity"], 3) for row in trainer.history] == [9, 7, 8, 7, 6, 6.5, 6, 7]
    assert (trainer.kept["epoch"], trainer.without_better) == (5, 3)
    assert torch.equal(trainer.best[1], parameters[4])
    assert not torch.equal(trainer.flat, parameters[4])
    assert trainer.choose()["epoch"] == 5
    assert torch.equal(trainer.flat, parameters[4])


def test_held_out_ngrams_are_not_trained_on(text, monkeypatch):
    trainer = Training(cslm_task(text, TINY, 1, CPU))
    seen = []
    batch = trainer.minibatch
    monkeypatch.setattr(trainer, "minibatch", lambda places: seen.extend(places.tolist()) or batch(places))
    for _ in range(trainer.task.batches.updates):
        trainer.step()
    assert sorted([*seen, *trainer.task.ngrams.held_out]) == list(range(len(text)))
    assert trainer.seen == len(seen)


def test_singletons_become_unknown(text):
    trainer = Training(cslm_task(text, replace(TINY, singletons=1.0), 1, CPU))
    places = np.setdiff1d(np.arange(len(text)), trainer.task.ngrams.held_out)
    counts = np.bincount(text.words[places], minlength=len(text.vocabulary))
    contexts, words, _ = trainer.minibatch(places)
    assert np.array_equal(words.numpy(), np.where(counts[text.words[places]] == 1, UNK, text.words[places]))
    assert not set(contexts.unique().tolist()) & set(np.flatnonzero(counts == 1))
    plain = Training(cslm_task(text, replace(TINY, singletons=0.0), 1, CPU))
    assert np.array_equal(plain.minibatch(places)[1].numpy(), text.words[places])


def test_classes_are_sampled_by_what_is_predicted(text):
    """Classes are sampled by their frequency as targets, including singletons replaced by UNK."""
    trainer = Training(cslm_task(text, replace(TINY, singletons=0.5, sampled_classes=5), 1, CPU))
    places = np.setdiff1d(np.arange(len(text)), trainer.task.ngrams.held_out)
    seen = np.zeros(len(text.vocabulary))
    for trainer.update in range(20):
        np.add.at(seen, trainer.minibatch(places)[1].numpy(), 1 / (20 * len(places)))
    expected = -np.expm1(trainer.task.sampler._log_absent[0].numpy())
    assert expected == pytest.approx(seen, abs=2e-3)
    moved = np.count_nonzero(trainer.task.rare) / 2 / len(places)
    assert moved > 0
    assert expected[UNK] - np.mean(text.words[places] == UNK) == pytest.approx(moved, abs=moved / 3)


def test_a_share_of_singletons_and_other_ones_every_time(text):
    trainer = Training(cslm_task(text, replace(TINY, singletons=0.5), 1, CPU))
    trainer.task.rare[:] = True
    trainer.task.rare[text.vocabulary.eos] = False
    places = np.flatnonzero(text.words[:] != text.vocabulary.eos)
    first = trainer.minibatch(places)[1].numpy() == UNK
    assert 0.4 < first.mean() < 0.6
    trainer.step()
    assert 0.3 < (trainer.minibatch(places)[1].numpy() == UNK)[first].mean() < 0.7


def test_the_end_of_the_only_sentence_is_not_unknown(text):
    assert not cslm_task(text, replace(TINY, singletons=1.0), 1, CPU).rare[text.vocabulary.eos]


def test_no_two_updates_leave_out_the_same_units(text):
    trainer = Training(cslm_task(text, replace(TINY, dropout=0.5), 1, CPU))
    factors = []
    for _ in range(2):
        rows = trainer.minibatch(np.arange(40))[2]
        factors.append(Draws(rows, 1, 0.5).drop(torch.ones(40, 64)))
        trainer.step()
    assert 0.4 < (factors[0] == factors[1]).float().mean() < 0.6


def test_validation_is_drawn_from_the_whole_text():
    first, second = (
        draw_held_out(10_000, replace(TINY, held_out=0.01, held_out_least=10).held_out_of(10_000), seed)
        for seed in (1, 2)
    )
    assert len(first) == len(set(first)) == 100
    assert first[0] < 500
    assert first[-1] > 9_500
    assert not np.array_equal(first, second)


def test_output_biases_of_the_unigrams(text):
    trainer = Training(cslm_task(text, replace(TINY, output_bias="unigram"), 1, CPU))
    held_out = text.words[trainer.task.ngrams.held_out]
    counts = class_counts([text.words], len(text.vocabulary), held_out)
    assert torch.allclose(trainer.task.model.b_o.exp(), torch.from_numpy(counts / counts.sum()).float())


def test_moments_without_gradient_become_0(text, tmp_path):
    """Treat the decayed moments of words without gradient as 0: denormal numbers would make every update slower."""
    trainer = Training(cslm_task(text, replace(TINY, epochs=1), 1, CPU))
    trainer.step()
    first, _ = (trainer.optimizer.state[trainer.flat][name] for name in ("exp_avg", "exp_avg_sq"))
    tiny = torch.finfo(torch.float32).tiny
    first[first == 0] = tiny
    assert (first == tiny).any(), "some words do not occur in the first minibatch"
    trainer.fit(tmp_path / "checkpoint", 1e9, Stop(None))
    sizes = first.abs()
    assert not ((sizes > 0) & (sizes < tiny)).any()
    assert torch.tensor(tiny) / 2 > 0, "after training, denormal results are not rounded to 0"


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_threads_share_a_minibatch(text, dropout):
    """Dropout does not depend on the number of threads, and results are reproducible."""
    found = []
    for threads in (1, 3, 3):
        trainer = Training(cslm_task(text, replace(TINY, dropout=dropout, batch=100), 1, CPU), threads)
        for _ in range(20):
            trainer.step()
        found.append(trainer.flat.detach())
    assert torch.allclose(found[0], found[1], atol=1e-4)
    assert torch.equal(found[1], found[2])


# stopping and resuming


@pytest.mark.parametrize(
    "settings", [TINY, replace(TINY, optimizer="adadelta", learning_rate=1.0, self_normalised=0.1)]
)
def test_interrupted_training_equals_uninterrupted(text, tmp_path, settings):
    """A training run that is interrupted and resumed every seven updates equals an uninterrupted one, bit for bit."""

    def advance(trainer, updates):
        for _ in range(updates):
            if trainer.finished:
                return
            trainer.step()
            if trainer.evaluation_due:
                trainer.evaluate()

    whole = Training(cslm_task(text, settings, 1, CPU))
    advance(whole, 10**6)
    number = 0
    while True:
        part = Training(cslm_task(text, settings, 1, CPU))
        checkpoint = Checkpoint(tmp_path, part.fingerprint())
        saved = checkpoint.load()
        assert (saved is None) == (number == 0)
        if saved:
            part.restore(saved)
        if part.finished:
            break
        advance(part, 7)
        checkpoint.save(part.state())
        number += 1
    assert number > 20
    assert torch.equal(whole.flat, part.flat)
    assert whole.history == part.history
    assert whole.best[0] == part.best[0]
    assert torch.equal(whole.best[1], part.best[1])


@pytest.mark.slow
def test_killed_and_terminated_runs_end_like_an_uninterrupted_one(directory, tmp_path):
    options = ["--epochs", "8"]
    assert main(command_line(directory, tmp_path / "quiet", *options)) == 0
    broken = tmp_path / "broken"

    def start(*more):
        command = [sys.executable, "-m", "rnnsmt", *command_line(directory, broken, *options, *more)]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def wait_for(process, words):
        said = ""
        while words not in said:
            line = process.stderr.readline()
            assert line, said
            said += line

    process = start("--save-every", "0.02")
    wait_for(process, "epoch 1:")
    process.kill()
    process.wait(60)
    process = start()
    wait_for(process, "resuming after")
    process.terminate()
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 75, said
    assert not (broken / "m.safetensors").exists()
    assert "stopped by SIGTERM" in said
    assert "run the same command again to resume" in said
    assert main(command_line(directory, broken, *options)) == 0
    assert outputs(broken) == outputs(tmp_path / "quiet")
    # a finished run that is repeated only writes its files
    (broken / "m.safetensors").unlink()
    assert main(command_line(directory, broken, *options)) == 0
    assert outputs(broken) == outputs(tmp_path / "quiet")


@pytest.mark.parametrize(("handler", "code"), [(signal.default_int_handler, 130), (signal.SIG_IGN, 0)])
def test_ctrl_c_saves_unless_it_is_ignored(directory, tmp_path, monkeypatch, sigint, handler, code):
    original = Training.step

    def step(self):
        original(self)
        if self.update == 5:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Training, "step", step)
    sigint(handler)
    try:
        ended = main(command_line(directory, tmp_path, "--epochs", "1"))
    except SystemExit as stopped:
        ended = stopped.code
    assert ended == code
    assert Checkpoint(tmp_path / "checkpoint", {}).file.exists()
    assert (tmp_path / "m.safetensors").exists() == (code == 0)


# invalid input


def refused(capfd, stage, *said):
    error = capfd.readouterr().err
    lines = [line for line in error.splitlines() if line.startswith(f"rnnsmt networks {stage}: error:")]
    assert len(lines) == 1, error
    for part in said:
        assert part in lines[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "contains no words"), ("\n \n", "contains no words"), (b"le\n\xff\n", "not UTF-8")],
)
def test_bad_texts(directory, tmp_path, capfd, content, said):
    (tmp_path / "text").write_bytes(content if isinstance(content, bytes) else content.encode())
    command = prepare_line(tmp_path, tmp_path / "ids")
    command[command.index("--target-vocabulary") + 1] = str(directory / "vocab")
    assert main(command) == 2
    refused(capfd, "prepare", str(tmp_path / "text"), said)
    assert not list((tmp_path / "ids").iterdir())


def test_bad_vocabularies(directory, tmp_path, capfd):
    for content, said in (
        ("le\nla\n", "does not begin with"),
        ("<null>\n<unk>\nle\nle\n</s>\n", "line 4: an empty or duplicate word"),
    ):
        (tmp_path / "vocab").write_text(content)
        command = prepare_line(directory, tmp_path / "ids")
        command[command.index("--target-vocabulary") + 1] = str(tmp_path / "vocab")
        assert main(command) == 2
        refused(capfd, "prepare", said)
        assert not (tmp_path / "ids").exists()


def test_text_directories_that_do_not_fit(directory, tmp_path, capfd):
    def spoil(name, content):
        assert main(prepare_line(directory, tmp_path / "ids")) == 0
        if content is None:
            (tmp_path / "ids" / name).unlink()
        else:
            (tmp_path / "ids" / name).write_bytes(content)
        capfd.readouterr()
        assert main(command_line(tmp_path, tmp_path)) == 2
        refused(capfd, "train", "ids")

    for name, content in (
        ("text.json", None), ("text.json", b"{}"), ("words.npy", None), ("vocab.txt", None),
    ):  # fmt: skip
        spoil(name, content)
    assert main(command_line(tmp_path / "nowhere", tmp_path)) == 2
    refused(capfd, "train", "no such file")


def test_other_settings_are_refused(directory, tmp_path, capfd):
    assert main(command_line(directory, tmp_path, "--epochs", "1")) == 0
    before = (tmp_path / "checkpoint" / "checkpoint.pt").read_bytes()
    (tmp_path / "checkpoint" / "finished.json").unlink()  # as if it had been interrupted
    for options in (["--epochs", "2"], ["--seed", "2"], ["--hidden-1", "17"], ["--self-normalised", "0.1"]):
        epochs = [] if "--epochs" in options else ["--epochs", "1"]
        assert main(command_line(directory, tmp_path, *epochs, *options)) == 2
        refused(capfd, "train", f"{options[0].strip('-').replace('-', '_')} (was", "remove", "to start over")
    assert (tmp_path / "checkpoint" / "checkpoint.pt").read_bytes() == before


def test_a_finished_training_gives_way_to_other_settings(directory, tmp_path, capfd):
    assert main(command_line(directory, tmp_path, "--epochs", "1")) == 0
    assert main(command_line(directory, tmp_path, "--epochs", "2")) == 0
    assert "starting again; changed: epochs (was 1, is 2)" in capfd.readouterr().err
    assert len(json.loads((tmp_path / "h.json").read_text())["curve"]) == 2


def test_another_text_is_refused(directory, tmp_path, capfd):
    assert main(command_line(directory, tmp_path, "--epochs", "1")) == 0
    (tmp_path / "checkpoint" / "finished.json").unlink()
    (tmp_path / "text").write_text("le chat voit\n" * 30)
    command = prepare_line(tmp_path, tmp_path / "ids")
    command[command.index("--target-vocabulary") + 1] = str(directory / "vocab")
    assert main(command) == 0
    assert main(command_line(tmp_path, tmp_path, "--epochs", "1")) == 2
    refused(capfd, "train", "changed: text;")


def test_not_a_number(directory, tmp_path, capfd):
    options = ["--epochs", "30", "--learning-rate", "1e38", "--save-every", "0", "--clip", "1e38"]
    assert main(command_line(directory, tmp_path, *options)) == 2
    refused(capfd, "train", "infinite or NaN", "lower --learning-rate", "checkpoint is kept")
    assert not (tmp_path / "m.safetensors").exists()
    state = tmp_path / "checkpoint" / "checkpoint.pt"
    if state.exists():
        assert torch.load(state)["state"]["parameters"].isfinite().all()


def test_a_text_too_small_for_validation(tmp_path, capfd):
    (tmp_path / "text").write_text("le chat\n")
    Vocabulary(["le", "chat"]).write(tmp_path / "vocab")
    assert main(prepare_line(tmp_path, tmp_path / "ids")) == 0
    assert main(command_line(tmp_path, tmp_path, "--epochs", "20", "--dropout", "0", "--singletons", "0")) == 0
    history = json.loads((tmp_path / "h.json").read_text())
    assert (history["epochs"], history["kept epoch"], history["validation ngrams"]) == (20, 20, 0)
    assert "validation perplexity" not in history["curve"][-1]
    assert history["curve"][-1]["train perplexity"] < history["curve"][0]["train perplexity"]


def test_presets_fit_their_text():
    assert PRESETS["demo"].sizes(2000).count() < PRESETS["small"].sizes(2000).count()
    assert {PRESETS[name].order for name in PRESETS} == {7}
