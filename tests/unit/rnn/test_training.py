"""Training: updates, learning curve, checkpoints and resuming, invalid input."""

import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors import safe_open  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

from rnnsmt.base import resuming  # noqa: E402
from rnnsmt.base.errors import InputError  # noqa: E402
from rnnsmt.base.resuming import Stop  # noqa: E402
from rnnsmt.cli import main  # noqa: E402
from rnnsmt.networks.devices import DeviceSetup, set_up_device  # noqa: E402
from rnnsmt.networks.gradients import flatten  # noqa: E402
from rnnsmt.networks.model_file import Checkpoint  # noqa: E402
from rnnsmt.networks.training import Training, learning_rate, make_optimizer  # noqa: E402
from rnnsmt.rnn.model import (  # noqa: E402
    FORMAT,
    RNNEncoderDecoder,
    hashes_of,
    load_model,
    load_model_of,
    save_model,
)
from rnnsmt.rnn.pairs import Pairs  # noqa: E402
from rnnsmt.rnn.settings import PRESETS, VARIANTS, RnnSettings, RnnSizes  # noqa: E402
from rnnsmt.rnn.training import RnnTask, pair_tensors  # noqa: E402

from ..gpu import NEEDS_GPU  # noqa: E402
from ..overriding import overridden  # noqa: E402
from ..phrase_store import compute_column, make_pairs, open_pairs, scores_of, training_of  # noqa: E402

torch.set_num_threads(1)
CPU = DeviceSetup(torch.device("cpu"))
TINY = RnnSettings(
    embedding=8, hidden=16, maxout=8, batching="lengths", deviation=0.1, batch=16, updates=30, optimizer="adam",
    learning_rate=0.01, schedule="linear", evaluations=3, keep="best",
)  # fmt: skip
OPTIONS = ["--preset", "demo", "--dropout", "0", "--hidden", "16", "--embedding", "8", "--maxout", "8", "--batch", "16"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Create pairs of a toy language: every word has one translation, the word order is the same."""
    directory = tmp_path_factory.mktemp("toy")
    rng = np.random.default_rng(1)
    words = [chr(ord("a") + i) for i in range(12)]
    phrases = {" ".join(rng.choice(words, rng.integers(1, 5))) for _ in range(1200)}
    text = " ".join(words)
    make_pairs(directory, [(phrase, phrase.upper()) for phrase in sorted(phrases)], text, text.upper())
    return directory


@pytest.fixture(scope="module")
def pairs(directory):
    return open_pairs(directory)


def command_line(directory, out, *options):
    files = [
        "--output-model",
        out / "m.safetensors",
        "--output-history",
        out / "h.json",
        "--checkpoint-dir",
        out / "checkpoint",
    ]
    return overridden([*training_of(directory), *OPTIONS, *files], options)


def outputs(out):
    return (out / "m.safetensors").read_bytes(), (out / "h.json").read_bytes()


# learning


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_GPU)])
def test_learns_the_toy_language(directory, tmp_path, capfd, device):
    assert main(command_line(directory, tmp_path, "--updates", "600", "--device", device)) == 0
    history = json.loads((tmp_path / "h.json").read_text())
    curve = [row["held-out log p per word"] for row in history["curve"]]
    assert curve[-1] > curve[2] > curve[0]
    assert curve[-1] > 0.6 * history["unigram log p per word"]
    assert len(curve) == PRESETS["demo"].evaluations
    last = history["curve"][-1]
    assert (last["update"], history["held-out pairs"]) == (600, len(open_pairs(directory)) // 100)
    assert 0 <= last["clip rate"] <= 1
    assert last["train log p per pair"] < last["train log p per word"] < 0
    log = capfd.readouterr().err
    assert f"parameters; on {'the CPU' if device == 'cpu' else 'cuda:'}" in log
    assert "pairs/s" in log
    assert "held out" in log
    assert "unigram model" in log

    model, meta = load_model(tmp_path / "m.safetensors")
    pairs = open_pairs(directory)
    load_model_of(pairs.vocabularies, directory, tmp_path / "m.safetensors", CPU)
    assert (meta["kept update"], meta["settings"]["hidden"]) == (600, 16)
    source, target = pairs.vocabularies

    def score(ours, theirs):
        x, y = source.ids(ours.split(), eos=True), target.ids(theirs.split(), eos=True)
        sides = [torch.from_numpy(side).long()[None] for side in (x, y)]
        return model.log_probability(sides[0], torch.tensor([len(x)]), sides[1], torch.tensor([len(y)])).item()

    assert score("a b", "A B") > score("a b", "A C") + 0.3
    assert score("a b", "A B") > score("b a", "A B") + 0.3


def test_loss_sum_clips_nearly_always(pairs):
    rates = {}
    for loss in ("mean", "sum"):
        trainer = Training(RnnTask(pairs, replace(TINY, loss=loss, clip=5.0), 1, CPU))
        for _ in range(10):
            trainer.step()
        rates[loss] = trainer.evaluate()
    assert rates["sum"]["clip rate"] == 1.0
    assert rates["mean"]["clip rate"] < 1.0
    assert rates["sum"]["gradient norm"] > 4 * rates["mean"]["gradient norm"]


def test_update_by_hand(pairs):
    """The first update equals Adadelta's (rho 0.95, eps 1e-6) with the clipped mean gradient."""
    settings = replace(TINY, optimizer="adadelta", learning_rate=1.0, schedule="constant", clip=0.01)
    trainer = Training(RnnTask(pairs, settings, 1, CPU))
    before = trainer.flat.detach().clone()
    other = Training(RnnTask(pairs, settings, 1, CPU))
    index = next(other.task.batches)
    source, target, lengths = pair_tensors(pairs, index)
    loss = -other.task.model.log_probability(source.t(), lengths[0], target.t(), lengths[1]).sum() / settings.batch
    gradient = torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(other.task.model.parameters()))])
    gradient = gradient * min(1.0, 0.01 / float(gradient.norm()))
    delta = gradient * math.sqrt(1e-6) / torch.sqrt(0.05 * gradient**2 + 1e-6)
    trainer.step()
    assert torch.allclose(trainer.flat.detach(), before - delta, atol=1e-7)


def test_learning_rates():
    settings = RnnSettings(learning_rate=2.0, schedule="linear", warmup=3)
    assert [learning_rate(settings, k, 8) for k in range(9)] == [0.5, 0.875, 1.125, 1.25, 1.0, 0.75, 0.5, 0.25, 0.0]
    assert learning_rate(replace(settings, schedule="constant", warmup=0), 7, 8) == 2.0


def test_presets():
    paper = PRESETS["paper"]
    optimizer = make_optimizer(torch.nn.Parameter(torch.zeros(3)), paper)
    assert isinstance(optimizer, torch.optim.Adadelta)
    group = optimizer.param_groups[0]
    assert (group["rho"], group["eps"], group["lr"]) == (0.95, 1e-6, 1.0)
    assert (paper.batch, paper.clip, paper.deviation, paper.keep, paper.loss) == (64, 1.0, 0.01, "last", "sum")
    assert paper.sizes(15_001, 15_001).count() == 17_269_501
    assert {name: preset.batching for name, preset in PRESETS.items()} == {
        "demo": "lengths", "small": "lengths", "paper": "random",
    }  # fmt: skip


def test_parameters_are_views_of_one_tensor():
    model = torch.nn.Linear(3, 2)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    flat = flatten(model)
    assert flat.numel() == 8
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    flat.data.zero_()
    flat.grad.fill_(3.0)
    assert not any(parameter.any() for parameter in model.parameters())
    assert all(bool((parameter.grad == 3).all()) for parameter in model.parameters())


def test_held_out_pairs_are_drawn_from_the_table(pairs):
    """One pair in a hundred is drawn by the seed, is not trained on and is evaluated."""
    trainer = Training(RnnTask(pairs, replace(TINY, held_out=10), 1, CPU))
    assert len(trainer.task.held_out) == min(10, len(pairs) // 100)
    assert trainer.task.held_out.tolist() == sorted(set(trainer.task.held_out.tolist()))
    seen = set()
    while trainer.task.batches.epoch == 0:
        seen.update(next(trainer.task.batches).tolist())
    assert seen == set(range(len(pairs))) - set(trainer.task.held_out.tolist())
    assert RnnTask(pairs, replace(TINY, held_out=10), 2, CPU).held_out.tolist() != trainer.task.held_out.tolist()


def test_something_is_left_to_train_on(pairs, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(InputError, match="no pairs remain for training"):
        patch.setattr(RnnSettings, "held_out_of", lambda settings, number: number)
        RnnTask(pairs, TINY, 1, CPU)
    without = Training(RnnTask(pairs, replace(TINY, held_out=0, keep="best"), 1, CPU))
    assert not len(without.task.held_out)
    assert "0 held out (so the last parameters are kept" in without.task.start_message()


def test_scores_follow_the_equations(directory, pairs, tmp_path):
    trainer = Training(RnnTask(pairs, TINY, 1, CPU))
    trainer.fit(tmp_path / "checkpoint", 1e9, Stop(None))
    model, out = tmp_path / "m.safetensors", tmp_path / "scores"
    trainer.save(model, tmp_path / "h.json")
    assert compute_column("rnn", directory, out, "--model", str(model)) == 0
    assert scores_of(out)[:20] == pytest.approx(
        [log_p(load_model(model)[0], pairs, i).item() for i in range(20)], abs=1e-4
    )


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_gradient_of_a_random_minibatch_is_that_of_its_pairs(pairs, threads, variant):
    """The gradient of a minibatch of different lengths equals autograd's for the sum over its pairs."""
    trainer = Training(RnnTask(pairs, replace(TINY, batching="random", variant=variant), 1, CPU), threads)
    index = np.arange(0, len(pairs), len(pairs) // 16)[:16]
    assert len({tuple(len(side.phrase(int(i))) for side in pairs.sides) for i in index}) > 3
    found = trainer.gradient(trainer.minibatch(index))
    gradient = trainer.flat.grad.clone()
    for parameter in trainer.task.model.parameters():
        parameter.grad = None
    loss = -sum(log_p(trainer.task.model, pairs, i) for i in index).sum()
    loss.backward()
    expected = torch.cat([parameter.grad.flatten() for parameter in trainer.task.model.parameters()])
    assert found.item() == pytest.approx(loss.item(), rel=1e-5)
    assert torch.allclose(gradient, expected, rtol=1e-3, atol=1e-5)


def test_random_minibatches_teach_as_much(pairs, tmp_path):
    ends = []
    for settings in (replace(TINY, batching="random"), TINY):
        trainer = Training(RnnTask(pairs, settings, 1, CPU))
        trainer.fit(tmp_path / settings.batching, 1e9, Stop(None))
        ends.append(trainer.history[-1]["train log p per word"])
    assert ends[0] == pytest.approx(ends[1], abs=0.5)


def log_p(model, pairs, i):
    source, target = (torch.from_numpy(side.phrase(int(i)).astype(np.int64))[None] for side in pairs.sides)
    return model.log_probability(source, torch.tensor([source.shape[1]]), target, torch.tensor([target.shape[1]]))


def test_dropout_is_the_same_however_the_minibatch_is_shared(pairs):
    """The dropout mask does not depend on the number of threads; results differ by rounding only."""
    results = []
    for threads in (1, 2):
        trainer = Training(RnnTask(pairs, replace(TINY, batch=64, dropout=0.3), 1, CPU), threads)
        for _ in range(3):
            trainer.step()
        results.append(trainer.flat.detach().clone())
    assert torch.allclose(*results, atol=1e-5)
    without = Training(RnnTask(pairs, replace(TINY, batch=64), 1, CPU))
    for _ in range(3):
        without.step()
    assert not torch.allclose(results[0], without.flat, atol=1e-3)


def test_weight_decay_takes_its_share(pairs):
    """An update with gradient 0 multiplies every parameter by 1 - rate * weight decay."""
    trainer = Training(RnnTask(pairs, replace(TINY, weight_decay=0.5, schedule="constant"), 1, CPU))
    before = trainer.flat.detach().clone()
    trainer.flat.grad.zero_()
    trainer.optimizer.step()
    assert torch.allclose(trainer.flat, before * (1 - 0.01 * 0.5))


def test_held_out_likelihood(pairs):
    trainer = Training(RnnTask(pairs, replace(TINY, held_out=7), 1, CPU))
    found = trainer.task.likelihood(trainer.task.validation)
    total = words = 0
    for i in trainer.task.held_out:
        x, y = (torch.from_numpy(phrase.astype(np.int64))[None] for phrase in (pairs.source(i), pairs.target(i)))
        total += trainer.task.model.log_probability(x, torch.tensor([x.shape[1]]), y, torch.tensor([y.shape[1]])).item()
        words += y.shape[1]
    assert found.per_pair == pytest.approx(total / 7, rel=1e-5)
    assert found.per_word == pytest.approx(total / words, rel=1e-5)


def test_unigram_likelihood(pairs):
    task = RnnTask(pairs, replace(TINY, held_out=7), 1, CPU)
    counts = np.ones(len(pairs.vocabularies[1]))
    for i in set(range(len(pairs))) - set(task.held_out.tolist()):
        for word in pairs.target(i):
            counts[word] += 1
    logs = [math.log(counts[word] / counts.sum()) for i in task.held_out for word in pairs.target(i)]
    assert task.unigram == pytest.approx(np.mean(logs))


def test_reduced_precision_changes_little(pairs):
    """Training with products in bfloat16 changes log p per word by at most 0.05."""
    curves = []
    for factors in (None, torch.bfloat16):
        trainer = Training(RnnTask(pairs, replace(TINY, updates=200), 1, replace(CPU, matmul_dtype=factors)))
        for _ in range(200):
            trainer.step()
        curves.append(trainer.evaluate()["train log p per word"])
    assert curves[0] != curves[1]
    assert curves[0] == pytest.approx(curves[1], abs=0.05)


# stopping and resuming


@pytest.mark.parametrize(
    "settings",
    [
        TINY,
        replace(TINY, optimizer="adadelta", learning_rate=1.0, keep="last", loss="sum"),
        replace(TINY, variant="supplementary"),
        replace(TINY, dropout=0.3, sampled_classes=5),
        replace(TINY, dropout=0.3, sampled_classes=5, batching="random"),
        replace(PRESETS["paper"], embedding=8, hidden=16, maxout=8, batch=16, updates=30, evaluations=3),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_interrupted_training_equals_uninterrupted(pairs, tmp_path, settings, threads):
    """A training run that is saved and resumed every three updates equals an uninterrupted one, bit for bit."""

    def advance(trainer, updates):
        for _ in range(updates):
            trainer.step()
            if trainer.evaluation_due:
                trainer.evaluate()

    whole = Training(RnnTask(pairs, settings, 1, CPU), threads)
    advance(whole, 30)
    for number in range(10):
        part = Training(RnnTask(pairs, settings, 1, CPU), threads)
        checkpoint = Checkpoint(tmp_path, part.fingerprint())
        saved = checkpoint.load()
        assert (saved is None) == (number == 0)
        if saved:
            part.restore(saved)
        advance(part, 3)
        checkpoint.save(part.state())
    assert torch.equal(whole.flat, part.flat)
    assert whole.history == part.history
    assert whole.choose() == part.choose()
    assert torch.equal(whole.flat, part.flat)


def start(directory, out, *options):
    command = [sys.executable, "-m", "rnnsmt", *command_line(directory, out, *options)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for(process, words):
    """Read standard error of a process until a line contains the words; return what was read."""
    said = ""
    while words not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said


@pytest.mark.slow
@pytest.mark.parametrize("batching", ["lengths", "random"])
def test_killed_and_terminated_runs_end_like_an_uninterrupted_one(directory, tmp_path, batching):
    options = ["--updates", "400", "--evaluations", "4", "--batching", batching]
    (tmp_path / "quiet").mkdir()
    assert main(command_line(directory, tmp_path / "quiet", *options)) == 0
    broken = tmp_path / "broken"
    process = start(directory, broken, *options, "--save-every", "0")
    wait_for(process, "update 100 of 400")
    process.kill()
    process.wait(60)
    assert not (broken / "m.safetensors").exists()
    process = start(directory, broken, *options)
    wait_for(process, "resuming after")
    process.terminate()
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 75
    assert not (broken / "m.safetensors").exists()
    assert "stopped by SIGTERM" in said
    assert "run the same command again to resume" in said
    assert main(command_line(directory, broken, *options)) == 0
    assert outputs(broken) == outputs(tmp_path / "quiet")
    # a finished run that is repeated only writes its files
    (broken / "m.safetensors").unlink()
    began = time.process_time()
    assert main(command_line(directory, broken, *options)) == 0
    assert outputs(broken) == outputs(tmp_path / "quiet")
    assert time.process_time() - began < 5


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_time_limit(directory, tmp_path, capfd, sigint, handler):
    sigint(handler)
    with pytest.raises(SystemExit) as stopped:
        main(command_line(directory, tmp_path, "--time-limit", "0.001"))
    assert stopped.value.code == 75
    assert "before the time limit after 1 updates, checkpoint saved" in capfd.readouterr().err
    assert (tmp_path / "checkpoint" / "checkpoint.pt").exists()
    ignored = handler is signal.SIG_IGN  # as with nohup; otherwise it is again the handler of the command
    assert signal.getsignal(signal.SIGINT) is (handler if ignored else resuming._stop)


def test_ctrl_c_before_the_first_update_ends_at_once(directory, tmp_path, monkeypatch, sigint):
    """There is nothing to save: neither an update nor the wait for the lock of another process follows."""
    original = Pairs.open

    def interrupted(*paths):
        os.kill(os.getpid(), signal.SIGINT)
        return original(*paths)

    sigint(signal.default_int_handler)
    monkeypatch.setattr(Pairs, "open", interrupted)
    monkeypatch.setattr(Training, "__init__", lambda self, *_: pytest.fail("the training begins"))
    assert main(command_line(directory, tmp_path)) == 130
    stop = resuming.Stop(None)
    with stop, pytest.raises(SystemExit) as ended, stop.waiting():
        signal.raise_signal(signal.SIGTERM)
        pytest.fail("the wait goes on")
    assert ended.value.code == 75


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
        ended = main(command_line(directory, tmp_path, "--updates", "8"))
    except SystemExit as stopped:
        ended = stopped.code
    assert ended == code
    assert Checkpoint(tmp_path / "checkpoint", {}).file.exists()
    assert (tmp_path / "m.safetensors").exists() == (code == 0)


def test_equal_trainings_have_equal_checkpoints(pairs, tmp_path):
    """Checkpoints do not depend on the state of the global random generators."""
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)
        trainer = Training(RnnTask(pairs, replace(TINY, dropout=0.3), 1, CPU))
        for _ in range(3):
            trainer.step()
        Checkpoint(tmp_path / str(seed), trainer.fingerprint()).save(trainer.state())
    assert (tmp_path / "1/checkpoint.pt").read_bytes() == (tmp_path / "2/checkpoint.pt").read_bytes()


# invalid input


def fails(capfd, *said):
    error = capfd.readouterr().err
    lines = [line for line in error.splitlines() if line.startswith("rnnsmt networks train: error:")]
    assert len(lines) == 1, error
    for part in said:
        assert part in lines[0]


def test_other_settings_are_refused(directory, tmp_path, capfd):
    assert main(command_line(directory, tmp_path, "--updates", "5")) == 0
    before = (tmp_path / "checkpoint" / "checkpoint.pt").read_bytes()
    (tmp_path / "checkpoint" / "finished.json").unlink()  # as if it had been interrupted
    for options in (["--updates", "6"], ["--updates", "5", "--seed", "2"], ["--updates", "5", "--hidden", "17"]):
        assert main(command_line(directory, tmp_path, *options)) == 2
        name = options[-2].strip("-")
        fails(capfd, f"{name} (was", "remove", "to start over")
    assert (tmp_path / "checkpoint" / "checkpoint.pt").read_bytes() == before


def test_not_a_number(directory, tmp_path, capfd):
    options = ["--updates", "400", "--optimizer", "adadelta", "--learning-rate", "1e38", "--save-every", "0"]
    assert main(command_line(directory, tmp_path, *options)) == 2
    fails(capfd, "infinite or NaN", "lower --learning-rate", "checkpoint is kept")
    assert not (tmp_path / "m.safetensors").exists()
    state = tmp_path / "checkpoint" / "checkpoint.pt"
    if state.exists():
        assert torch.load(state)["state"]["parameters"].isfinite().all()


def test_full_disk_keeps_the_last_checkpoint(directory, tmp_path, capfd):
    with pytest.raises(SystemExit):
        main(command_line(directory, tmp_path, "--time-limit", "0.001"))
    state = tmp_path / "checkpoint" / "checkpoint.pt"
    before = state.read_bytes()
    capfd.readouterr()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        assert main(command_line(directory, tmp_path, "--save-every", "0")) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    fails(capfd, "checkpoint.pt: cannot be written", "was not changed", "free disk space")
    assert state.read_bytes() == before
    assert sorted(path.name for path in state.parent.iterdir()) == ["checkpoint.pt", "lock"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--data", "/nowhere", "/nowhere"], "no such file"),
        (
            ["--dropout", "0.1", "--variant", "supplementary"],
            "--dropout 0.1: cannot be combined with --variant supplementary; set it to 0",
        ),
        (["--weight-decay", "0.1", "--optimizer", "adadelta"], "--weight-decay 0.1: requires --optimizer adam"),
    ],
)
def test_bad_options(directory, tmp_path, capfd, options, said):
    assert main(command_line(directory, tmp_path, *options)) == 2
    fails(capfd, said)


def test_no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="finds no GPU"):
        set_up_device("cuda", 1)
    assert set_up_device("auto", 1).device.type == "cpu"


def test_models_and_pairs_that_do_not_belong_together(directory, tmp_path, pairs):
    assert main(command_line(directory, tmp_path, "--updates", "2")) == 0
    model, meta = load_model(tmp_path / "m.safetensors")
    assert hashes_of(pairs.vocabularies).items() <= meta.items()
    save_model(tmp_path / "other.safetensors", model, {**meta, "target vocabulary": "other"})
    with pytest.raises(InputError, match="do not match: their target vocabulary differs"):
        load_model_of(pairs.vocabularies, directory, tmp_path / "other.safetensors", CPU)


def test_a_file_holds_the_whole_network(tmp_path):
    """A network is read as it was written; equal networks give equal bytes, with one key of metadata."""
    model, meta = RNNEncoderDecoder(RnnSizes(9, 8, 4, 6, 3), 1), {"b": 0.1, "a": [1, "é", None], "seed": 3}
    for name, order in (("m", sorted(meta)), ("again", meta)):
        save_model(tmp_path / name, model, {key: meta[key] for key in order})
    assert (tmp_path / "m").read_bytes() == (tmp_path / "again").read_bytes()
    with safe_open(tmp_path / "m", "pt") as file:
        assert list(file.metadata()) == ["rnnsmt"]
    found, meta_found = load_model(tmp_path / "m")
    assert (found.sizes, meta_found) == (model.sizes, meta)
    for (name, parameter), (name_found, parameter_found) in zip(
        model.named_parameters(), found.named_parameters(), strict=True
    ):
        assert name == name_found and torch.equal(parameter, parameter_found) and not parameter_found.requires_grad


def test_bad_model_files(tmp_path):
    torch.save({"format": FORMAT.version}, tmp_path / "m.pt")
    for content in (b"", b"nonsense", (tmp_path / "m.pt").read_bytes()):
        (tmp_path / "m").write_bytes(content)
        with pytest.raises(InputError, match=r"1\.0\.0 cannot be read\); train the network again with `networks"):
            load_model(tmp_path / "m")
    save_file({"a": torch.zeros(1)}, tmp_path / "m")
    with pytest.raises(InputError, match="is not an RNN Encoder-Decoder, or was written by a different version"):
        load_model(tmp_path / "m")
    with pytest.raises(InputError, match="no such file"):
        load_model(tmp_path / "none")


def test_one_pair_is_enough(tmp_path):
    make_pairs(tmp_path, [("a", "b")], "a", "b")
    assert main(command_line(tmp_path, tmp_path, "--updates", "20")) == 0
    curve = json.loads((tmp_path / "h.json").read_text())["curve"]
    assert curve[-1]["train log p per pair"] > curve[0]["train log p per pair"]
    assert "held-out log p per pair" not in curve[-1]


# several threads


@pytest.mark.parametrize("variant", VARIANTS)
def test_threads_share_a_minibatch(pairs, variant):
    found = []
    for threads in (1, 3, 3):
        trainer = Training(RnnTask(pairs, replace(TINY, batch=20, variant=variant), 1, CPU), threads)
        for _ in range(25):  # the end of an epoch, with its small minibatches, is included
            trainer.step()
        found.append((trainer.flat.detach(), trainer.evaluate()))
    assert torch.allclose(found[0][0], found[1][0], atol=1e-4)
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-4)
    assert torch.equal(found[1][0], found[2][0])
    assert found[1][1] == found[2][1]
