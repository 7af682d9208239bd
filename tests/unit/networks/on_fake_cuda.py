"""Tests of GPU code on a simulated device; ``test_fake_cuda.py`` runs them in a process that has it.

Values are computed on the CPU; the limits of launches, copies and waits are those in ``research/gpu.md``.
"""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from rnnsmt.base.reading import read_json
from rnnsmt.base.resuming import Stop
from rnnsmt.cslm.settings import CslmSizes
from rnnsmt.networks import ngram_scorer
from rnnsmt.networks.data import Vocabulary
from rnnsmt.networks.devices import DeviceSetup, set_up_device
from rnnsmt.networks.draws import NEVER, ClassSample, ClassSampler, Draws
from rnnsmt.networks.feed_forward import FeedForwardLM
from rnnsmt.networks.feed_forward_training import centre
from rnnsmt.networks.softmax import softmax_gradient
from rnnsmt.rnn import phrase_scores
from rnnsmt.rnn.generation import best_targets, sample_targets
from rnnsmt.rnn.settings import VARIANTS
from rnnsmt.seq2seq.model import Seq2Seq, TrainedSeq2Seq
from rnnsmt.seq2seq.settings import Seq2SeqSizes
from rnnsmt.seq2seq.translation_scores import Scorer

from ..fake_cuda import CudaTensor, Device, MixedDevicesError
from ..launches import WORDS, counts_of_update, cslm_trainer, make_text, pairs_of, pairs_of_length, rnn_trainer

torch.set_num_threads(1)
CPU = DeviceSetup(torch.device("cpu"))


@pytest.fixture(scope="module")
def setup():
    return set_up_device("cuda", 1)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return pairs_of_length(tmp_path_factory.mktemp("pairs"), 5)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return make_text(tmp_path_factory.mktemp("text"))


def close(one, other):
    return torch.allclose(one.detach().cpu(), other.detach().cpu(), atol=1e-5)


def take_steps(make, setup, number=4):
    trainer = make(setup)
    for _ in range(number):
        trainer.step()
    return trainer


# an update


def test_rnn_training_has_the_values_of_the_processor(pairs, setup):
    here, there = (take_steps(lambda at: rnn_trainer(pairs, at), at) for at in (CPU, setup))
    assert isinstance(there.flat, CudaTensor)
    assert close(here.flat, there.flat)
    rows = here.evaluate(), there.evaluate()
    assert rows[0] == pytest.approx(rows[1], rel=1e-4)


def test_cslm_training_has_the_values_of_the_processor(text, setup):
    here, there = (take_steps(lambda at: cslm_trainer(text, at, self_normalised=0.1), at) for at in (CPU, setup))
    assert close(here.flat, there.flat)
    rows = here.evaluate(), there.evaluate()
    assert rows[0] == pytest.approx(rows[1], rel=1e-4)
    for trainer in (here, there):
        centre(trainer.task.model, trainer.task.centring_contexts())
    assert close(here.flat, there.flat)


LAUNCHED = {"to_device": 1, "to_host": 0, "waits": 0}

RNN_BOUNDS = {
    ("paper", 3): {"launches": 28, **LAUNCHED},
    ("paper", 5): {"launches": 28, **LAUNCHED},
    ("paper", 8): {"launches": 28, **LAUNCHED},
    ("small", 5): {"launches": 19, **LAUNCHED},
}

CSLM_BOUNDS = {
    "paper": {"launches": 18, **LAUNCHED},
    "small": {"launches": 18, **LAUNCHED},
}

WITHOUT_GRAPH = {3: 238, 5: 306, 8: 408}
"""Launches of an update of the RNN's preset ``paper``, by the ids of either side."""


def within(counts, bounds):
    return all(counts[name] <= bound for name, bound in bounds.items())


@pytest.mark.parametrize(("preset", "length"), RNN_BOUNDS)
def test_rnn_update(tmp_path, setup, preset, length):
    counts = counts_of_update(rnn_trainer(pairs_of_length(tmp_path, length, 2000), setup, preset))
    assert within(counts, RNN_BOUNDS[preset, length]), counts


@pytest.mark.parametrize("preset", CSLM_BOUNDS)
def test_cslm_update(text, setup, preset):
    counts = counts_of_update(cslm_trainer(text, setup, preset))
    assert within(counts, CSLM_BOUNDS[preset]), counts


@pytest.mark.parametrize("length", WITHOUT_GRAPH)
def test_rnn_update_without_a_graph(tmp_path, setup, length):
    trainer = rnn_trainer(pairs_of_length(tmp_path, length), setup)
    trainer.graphed = None
    counts = counts_of_update(trainer)
    assert within(counts, {"launches": WITHOUT_GRAPH[length], **LAUNCHED}), counts


# CUDA graphs


def of_two_lengths(directory):
    """Return pairs of two lengths: two full minibatches and a smaller one of each."""
    rng = np.random.default_rng(2)
    phrases = {" ".join(rng.choice(WORDS, length)) for length in (2, 4) for _ in range(150)}
    return pairs_of(directory, sorted(phrases))


@pytest.mark.parametrize(("batching", "graphs"), [("lengths", 4), ("random", 3)])
def test_replays_have_the_values_of_launches(tmp_path, setup, batching, graphs):
    """Replayed CUDA graphs give the values of launched kernels, for two lengths and smaller or padded minibatches."""
    pairs = of_two_lengths(tmp_path)
    here, there = (
        take_steps(lambda at: rnn_trainer(pairs, at, batching=batching, dropout=0.0), at, 18) for at in (CPU, setup)
    )
    assert len(there.graphed._captured) == graphs
    assert close(here.flat, there.flat)
    assert here.evaluate() == pytest.approx(there.evaluate(), rel=1e-4)


@pytest.mark.parametrize("problem", ["waits", "differs"])
def test_what_is_no_graph_is_launched(pairs, setup, capsys, problem):
    trainers = [rnn_trainer(pairs, setup) for _ in range(2)]
    inner, calls = trainers[0].loss_and_gradient, []

    def planted(model, *batch):
        loss = inner(model, *batch)
        calls.append(None)
        if problem == "waits":
            return loss + 0.0 * loss.item()
        if len(calls) == 3:  # the captured update
            trainers[0].flat.grad.mul_(1.01)
        return loss

    trainers[0].loss_and_gradient = planted
    for _ in range(4):
        for trainer in trainers:
            trainer.step()
    assert len(calls) == 5
    assert close(trainers[0].flat, trainers[1].flat)
    said = capsys.readouterr().err
    expected = {"waits": "the capture failed: ", "differs": "differs from that without a graph"}[problem]
    assert said.count("CUDA graphs are disabled") == said.count(expected) == 1


@pytest.mark.parametrize("preset", ["paper", "small"])
@pytest.mark.parametrize("make", [rnn_trainer, cslm_trainer])
def test_replays_draw_the_random_numbers_of_launches(text, pairs, setup, make, preset):
    """With dropout and sampled classes, replayed graphs and launched kernels draw the same numbers for an update."""
    data = pairs if make is rnn_trainer else text

    def without_graphs(at):
        trainer = make(data, at, preset)
        trainer.graphed = None
        return trainer

    graphs, launches = take_steps(lambda at: make(data, at, preset), setup, 8), take_steps(without_graphs, setup, 8)
    assert graphs.graphed.works and graphs.graphed._captured
    assert close(graphs.flat, launches.flat)
    others = take_steps(lambda at: make(data, at, "paper" if preset == "small" else "small"), setup, 8)
    assert not close(graphs.flat, others.flat)


def test_autograd_is_no_graph(pairs, setup):
    assert rnn_trainer(pairs, setup).graphed is not None
    assert rnn_trainer(pairs, setup, variant="supplementary").graphed is None


def test_a_sample_of_classes_on_a_gpu_has_the_weights_of_the_cpu():
    """A sample on a GPU repeats classes; with the repeated ones left out, the weights are those of the CPU."""
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 100, 400).astype(float)
    sampler, words = ClassSampler(counts, 300, 1), torch.from_numpy(rng.integers(0, 60, 50))
    classes, places, log_pi = (
        part.cpu() for part in sampler.draw_on_device(words.to("cuda"), torch.Generator("cuda").manual_seed(3))
    )
    assert len(classes) == len(log_pi) == 350
    assert torch.equal(classes[places], words)
    counted = log_pi < NEVER
    assert torch.equal(classes[counted], classes.unique())
    assert counted[places].all()
    batch, drawn = torch.from_numpy(counts / counts.sum()), torch.from_numpy(counts**0.75 / (counts**0.75).sum())
    absent = (1 - batch) ** 50 * (1 - drawn) ** 300
    assert torch.allclose(log_pi[counted].double(), (1 - absent).log()[classes[counted]], atol=1e-6)


def test_a_large_sample_is_all_classes():
    """If words and draws are as many as the classes, all classes are returned, the others with a weight of 0."""
    counts = np.arange(40.0)
    words = torch.tensor([5, 7, 5])
    classes, places, log_pi = (
        part.cpu()
        for part in ClassSampler(counts, 50, 1).draw_on_device(words.to("cuda"), torch.Generator("cuda").manual_seed(3))
    )
    assert torch.equal(classes, torch.arange(40))
    assert torch.equal(places, words)
    assert (log_pi[words] < 0).all()
    assert log_pi[0] == NEVER, "a class that does not occur"
    assert 2 < (log_pi == NEVER).sum() < 30
    assert log_pi.isfinite().all()


def test_classes_are_drawn_by_their_frequencies_on_a_gpu():
    counts = np.zeros(200_000)
    counts[:4] = 1, 0, 16, 81
    sampler = ClassSampler(counts, 100_000, 1)
    drawn = sampler.draw_on_device(torch.tensor([0]).to("cuda"), torch.Generator("cuda").manual_seed(3))
    shares = drawn.classes.cpu().bincount(minlength=4) / 100_001
    assert shares.tolist() == pytest.approx([1 / 36, 0, 8 / 36, 27 / 36], abs=0.01)


@pytest.mark.parametrize("number", [5, 100])
def test_the_gradient_of_sampled_classes_is_that_of_the_cpu(number):
    """The gradient with a sample that has classes with a weight of 0 equals that with the sample without them."""
    generator = torch.Generator().manual_seed(1)
    weights, biases, g = (torch.randn(*size, generator=generator) for size in ((60, 8), (60,), (50, 8)))
    words = torch.randint(0, 60, (50,), generator=generator)
    counts = np.arange(1, 61).astype(float)
    found = ClassSampler(counts, number, 1).draw_on_device(words.to("cuda"), torch.Generator("cuda").manual_seed(3))
    counted = found.log_pi.cpu() < NEVER
    classes = found.classes.cpu()[counted]
    samples = [found, ClassSample(classes, torch.searchsorted(classes, words), found.log_pi.cpu()[counted])]
    results = []
    for device, sample in zip(("cuda", "cpu"), samples, strict=True):
        W, b = (torch.nn.Parameter(value.clone().to(device)) for value in (weights, biases))
        W.grad, b.grad = torch.zeros_like(W.data), torch.zeros_like(b.data)
        sums, d_g = softmax_gradient(W, b, g.to(device), words.to(device), None, 0.1, sample)
        results.append([*sums, d_g, W.grad, b.grad])
    for one, other in zip(*results, strict=True):
        assert close(one, other)


@pytest.mark.parametrize("make", [rnn_trainer, cslm_trainer])
def test_a_checkpoint_resumes(tmp_path, text, pairs, setup, make):
    data = pairs if make is rnn_trainer else text
    first = take_steps(lambda at: make(data, at), setup)
    torch.save(first.state(), tmp_path / "checkpoint.pt")
    again = make(data, setup)
    again.restore(torch.load(tmp_path / "checkpoint.pt", setup.device))
    for trainer in (first, again):
        trainer.step()
    assert isinstance(again.flat, CudaTensor)
    assert torch.equal(first.flat.detach().cpu(), again.flat.detach().cpu())


@pytest.mark.parametrize(
    ("make", "length"), [(rnn_trainer, {"updates": 6, "evaluations": 2}), (cslm_trainer, {"epochs": 1})]
)
def test_a_whole_training_run(tmp_path, text, pairs, setup, make, length):
    """The run writes checkpoints, a learning curve and a file with the parameters, which has no device."""
    trainer = make(pairs if make is rnn_trainer else text, setup, **length)
    with Stop(None) as stop:
        trainer.fit(tmp_path / "checkpoint", 0.0, stop)
    trainer.save(tmp_path / "m.safetensors", tmp_path / "h.json")
    last = read_json(tmp_path / "h.json")["curve"][-1]
    assert last["update"] == trainer.task.total and np.isfinite(list(last.values())).all()
    saved = load_file(tmp_path / "m.safetensors")
    parameters = dict(trainer.task.model.named_parameters())
    assert saved and all(torch.equal(value, parameters[name].detach().cpu()) for name, value in saved.items())


def test_dropout_of_a_minibatch_is_drawn_at_once():
    """The dropout mask of a minibatch is drawn in one call and depends only on its first example's number."""
    units, found, generator = torch.ones(64, 501).to("cuda"), [], torch.Generator("cuda")
    for seed in (0, 0, 64):
        Device.current.reset()
        generator.manual_seed(seed)
        found.append(Draws(generator, 1, 0.25).drop(units).cpu())
        assert within(Device.current.counts(), {"launches": 5, "to_device": 0, "to_host": 1}), Device.current.counts()
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    assert found[0].unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert float(found[0].mean()) == pytest.approx(1.0, abs=0.02)


# scores


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_of_pairs(pairs, setup, variant):
    found = []
    for at in (CPU, setup):
        model = rnn_trainer(pairs, at, variant=variant, deviation=0.5).task.model.requires_grad_(False)
        batches = phrase_scores.score_batches(model, pairs, 0, len(pairs), at.device, 2)
        found.append(np.concatenate(list(batches)))
    assert found[0] == pytest.approx(found[1], abs=1e-4)


def test_targets_of_phrases(pairs, setup):
    sources = [pairs.source(i) for i in range(5)]
    found = []
    for at in (CPU, setup):
        model = rnn_trainer(pairs, at, deviation=0.5).task.model.requires_grad_(False)
        found.append([best_targets(model, sources, 4, 6, 3), sample_targets(model, sources, 20, 1, 6)])
    for here, there in zip(*found, strict=True):
        for one, other in zip(here, there, strict=True):
            assert [target.words for target in one] == [target.words for target in other]
            assert [t.score for t in one] == pytest.approx([t.score for t in other], abs=1e-4)


def ngram_requests(engine_classes):
    rng = np.random.default_rng(1)
    owner = np.sort(rng.integers(0, 300, 900)).astype(np.int32)
    contexts = rng.integers(0, engine_classes, (300, 6)).astype(np.int32)
    return contexts, owner, rng.integers(1, engine_classes, 900).astype(np.int32)


@pytest.mark.parametrize(("normalize", "launches"), [(True, 21), (False, 15)])
def test_ngrams_of_the_search(normalize, launches):
    """A batch of up to 4,096 contexts takes one copy to the GPU and one back."""
    model = FeedForwardLM(CslmSizes(60, 7, 8, 16, 12), 1, 0.3).requires_grad_(False)
    asked = ngram_requests(60)
    here = ngram_scorer.CpuEngine(model, normalize, 1).score(*asked)
    engine = ngram_scorer.CudaEngine(model.to("cuda"), normalize)
    Device.current.reset()
    there = engine.score(*asked)
    counts = Device.current.counts()
    assert here == pytest.approx(there, abs=1e-4)
    assert within(counts, {"launches": launches, "to_device": 1, "to_host": 1, "waits": 1}), counts


@pytest.mark.filterwarnings("ignore:PyTorch was compiled without cuDNN")
def test_scores_of_an_lstm(setup):
    source, target = (Vocabulary([f"w{k}" for k in range(n - 3)]) for n in (40, 70))
    rng = np.random.default_rng(1)
    ours = [np.array([*rng.integers(1, 39, 6), 39], np.int32) for _ in range(3)]
    theirs = [[np.array([*rng.integers(1, 69, 5), 69], np.int32) for _ in range(4)] for _ in range(3)]
    found = []
    for at in (CPU, setup):
        model = Seq2Seq(Seq2SeqSizes(40, 70, 8, 12, 2), 1, 0.5).requires_grad_(False).to(at.device)
        found.append(Scorer([TrainedSeq2Seq(model, source, target, "reversed", {})]).score(ours, theirs))
    assert np.concatenate(found[0]) == pytest.approx(np.concatenate(found[1]), abs=1e-4)


# a tensor left on the CPU, and counted operations


@pytest.mark.parametrize("make", [rnn_trainer, cslm_trainer])
def test_a_minibatch_left_on_the_processor(pairs, text, setup, monkeypatch, make):
    trainer = make(pairs if make is rnn_trainer else text, setup)
    minibatch = trainer.minibatch
    monkeypatch.setattr(trainer, "minibatch", lambda index: tuple(part.cpu() for part in minibatch(index)))
    with pytest.raises(MixedDevicesError, match="is on the processor"):
        trainer.step()


@pytest.mark.parametrize("make", [rnn_trainer, cslm_trainer])
def test_held_out_examples_left_on_the_processor(pairs, text, setup, make):
    held_out = make(pairs if make is rnn_trainer else text, CPU).task.validation
    task = make(pairs if make is rnn_trainer else text, setup).task
    with pytest.raises(MixedDevicesError):
        task.likelihood(held_out) if make is rnn_trainer else held_out.measure(task.model)


@pytest.mark.parametrize("part", ["encoder.U", "decoder.C_r", "output.O_c", "output.G_r"])
def test_a_parameter_left_on_the_processor(pairs, setup, part):
    model = rnn_trainer(pairs, setup).task.model.requires_grad_(False)
    owner, name = part.split(".")
    module = getattr(model, owner)
    setattr(module, name, torch.nn.Parameter(getattr(module, name).cpu(), requires_grad=False))
    with pytest.raises(MixedDevicesError):
        phrase_scores.score_range(model, pairs, 0, len(pairs), setup.device)


@pytest.mark.parametrize("part", ["places", "table"])
def test_a_part_of_the_search_s_network_left_on_the_processor(part):
    engine = ngram_scorer.CudaEngine(
        FeedForwardLM(CslmSizes(60, 7, 8, 16, 12), 1).requires_grad_(False).to("cuda"), True
    )
    setattr(engine, part, getattr(engine, part).cpu())
    with pytest.raises(MixedDevicesError):
        engine.score(*ngram_requests(60))


def test_an_operation_and_a_wait_more_are_seen(pairs, setup, monkeypatch):
    trainer = rnn_trainer(pairs, setup)
    trainer.graphed = None
    before = counts_of_update(trainer)
    inner = trainer.loss_and_gradient

    def planted(model, *batch):
        loss = inner(model, *batch)
        return loss + 0.0 * loss.item()

    monkeypatch.setattr(trainer, "loss_and_gradient", planted)
    after = counts_of_update(trainer)
    assert {name: after[name] - before[name] for name in after} == {
        "launches": 1, "to_device": 0, "to_host": 1, "waits": 1,
    }  # fmt: skip
