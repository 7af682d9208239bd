"""The network: parameters, probabilities, batches, gradients, search and scores, against definitions and references."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rnnsmt.base.errors import InputError  # noqa: E402
from rnnsmt.networks.data import UNK, Vocabulary  # noqa: E402
from rnnsmt.networks.devices import set_up_device  # noqa: E402
from rnnsmt.networks.draws import ClassSampler, Draws  # noqa: E402
from rnnsmt.networks.gradients import flatten  # noqa: E402
from rnnsmt.seq2seq.decoding import best_translations, longest_target, translate_all  # noqa: E402
from rnnsmt.seq2seq.model import Seq2Seq, TrainedSeq2Seq, load_ensemble, load_model, save_model  # noqa: E402
from rnnsmt.seq2seq.sentences import as_read, padded  # noqa: E402
from rnnsmt.seq2seq.settings import PAPER, Seq2SeqSizes  # noqa: E402
from rnnsmt.seq2seq.training import loss_and_gradient  # noqa: E402
from rnnsmt.seq2seq.translation_scores import Scorer  # noqa: E402

torch.set_num_threads(1)

SIZES = Seq2SeqSizes(7, 6, 5, 4, 2)
SOURCE, TARGET = Vocabulary(["a", "b", "c", "d"]), Vocabulary(["u", "v", "w"])


def network(seed: int = 1, sizes: Seq2SeqSizes = SIZES, spread: float = 1.0) -> Seq2Seq:
    model = Seq2Seq(sizes, seed, spread)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model


def trained(seed: int = 1, order: str = "reversed") -> TrainedSeq2Seq:
    return TrainedSeq2Seq(network(seed), SOURCE, TARGET, order, {})


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def column(words: np.ndarray) -> "torch.Tensor":
    return torch.from_numpy(padded([words]))


def test_the_paper_s_network_has_384_million_parameters() -> None:
    sizes = PAPER.sizes(160_000, 80_000)
    parts = sizes.parameters()
    assert round(sizes.count() / 1e6) == 384
    without_biases = sum(value for part in parts.values() for name, value in part.items() if not name.startswith("b"))
    assert without_biases == 384_000_000
    assert parts["encoder"]["W"] + parts["encoder"]["U"] == 32_000_000


@pytest.mark.parametrize("layers", [1, 3])
def test_describe_counts_what_the_network_has(layers: int) -> None:
    sizes = Seq2SeqSizes(7, 6, 5, 4, layers)
    assert sum(parameter.numel() for parameter in Seq2Seq(sizes, 1).parameters()) == sizes.count()


def test_probabilities_of_all_translations_sum_to_one() -> None:
    """Probabilities of all sentences of up to two words and of all prefixes of three words sum to 1."""
    model, source = network(), column(ids(2, 5, 3, 6))
    total = 0.0
    words = range(5)  # the softmax treats id 0 like other classes
    for length in range(3):
        for sentence in itertools.product(words, repeat=length):
            total += _p(model, source, [*sentence, 5])
    for sentence in itertools.product(words, repeat=3):
        total += _p(model, source, list(sentence))
    assert total == pytest.approx(1.0, abs=1e-5)


def _p(model: Seq2Seq, source: "torch.Tensor", words: list[int]) -> float:
    target = torch.tensor(words)[:, None]
    g, _ = model.decode(model.read_before(target), model.encode(source))
    return float(torch.log_softmax(model.logits(g), -1).gather(2, target[..., None]).sum().exp())


def test_a_batch_of_different_lengths_is_its_sentences_one_by_one() -> None:
    model = network(2)
    sources = [ids(2, 3, 4, 6), ids(6), ids(5, 6), ids(2, 2, 5, 4, 3, 6)]
    targets = [ids(2, 5), ids(4, 3, 2, 5), ids(5), ids(2, 3, 5)]
    together = model.log_probability(*(torch.from_numpy(padded(side)) for side in (sources, targets)))
    alone = [model.log_probability(column(s), column(t)) for s, t in zip(sources, targets, strict=True)]
    assert together.tolist() == pytest.approx([float(value) for value in alone], abs=1e-5)


def test_forward_and_reversed_read_differently_and_end_alike() -> None:
    source = ids(2, 3, 4, 6)
    assert as_read(source, "reversed").tolist() == [4, 3, 2, 6]
    assert as_read(source, "forward").tolist() == [2, 3, 4, 6]
    assert as_read(ids(6), "reversed").tolist() == [6]
    scores = [Scorer([trained(1, order)]).score([source], [[ids(2, 5)]])[0][0] for order in ("reversed", "forward")]
    assert abs(scores[0] - scores[1]) > 1e-4


def test_the_gradient_is_that_of_the_loss() -> None:
    model = Seq2Seq(Seq2SeqSizes(7, 6, 3, 4, 2), 3, 0.5).double()
    flat = flatten(model)
    source = torch.from_numpy(padded([ids(2, 3, 4, 6), ids(5, 6)]))
    target = torch.from_numpy(padded([ids(2, 5), ids(4, 3, 2, 5)]))
    loss = float(loss_and_gradient(model, source, target))
    assert loss == pytest.approx(-model.log_probability(source, target).sum().item(), rel=1e-9)
    gradient = flat.grad.clone()
    for place in np.random.default_rng(0).choice(len(flat), 60, replace=False):
        values = []
        for step in (1e-5, -1e-5):
            flat.data[place] += step
            values.append(-model.log_probability(source, target).sum().item())
            flat.data[place] -= step
        assert (values[0] - values[1]) / 2e-5 == pytest.approx(float(gradient[place]), rel=1e-4, abs=1e-7)


def test_dropout_and_sampling_change_the_loss_and_depend_on_nothing_but_seed_and_numbers() -> None:
    model = Seq2Seq(SIZES, 3, 0.5)
    flatten(model)
    batch = [torch.from_numpy(padded(side)) for side in ([ids(2, 3, 6), ids(5, 6)], [ids(2, 5), ids(4, 3, 5)])]
    sampler = ClassSampler(np.ones(6), 2, 1)
    rows = torch.arange(2)
    plain = loss_and_gradient(model, *batch)
    dropped = [loss_and_gradient(model, *batch, draws=Draws(rows, seed, 0.5)) for seed in (1, 1, 2)]
    assert dropped[0] == dropped[1] != dropped[2]
    assert plain != dropped[0]
    sampled = [loss_and_gradient(model, *batch, draws=Draws(rows + first, 1, sampler=sampler)) for first in (0, 0, 64)]
    assert sampled[0] == sampled[1]
    assert sampled[0] != plain


def test_products_of_bfloat16_are_near_those_of_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products in bfloat16 (layers and softmax) are close to float32 on all CPUs."""
    model = Seq2Seq(Seq2SeqSizes(40, 50, 24, 32, 2), 3, 0.3)
    gradient = flatten(model).grad
    rng = np.random.default_rng(1)
    lengths = [6, 6, 6, 6, 3, 2]  # with and without padding, which torch computes in different ways
    source = torch.from_numpy(padded([ids(*rng.integers(2, 39, n), 39) for n in lengths]))
    target = torch.from_numpy(padded([ids(*rng.integers(2, 49, n), 49) for n in lengths]))
    inside = []
    encode = Seq2Seq.encode

    def watched(self: Seq2Seq, *args: object) -> object:
        inside.append(torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu"))
        return encode(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Seq2Seq, "encode", watched)
    try:
        for columns in (slice(0, 6), slice(0, 4)):
            batch = source[:, columns].contiguous(), target[:, columns].contiguous()
            losses, gradients = [], []
            for precision in ("float32", "bfloat16"):
                dtype = set_up_device("cpu", 1, precision).matmul_dtype
                losses.append(float(loss_and_gradient(model, *batch, dtype)))
                gradients.append(gradient.clone())
            assert inside[-2:] == [False, torch.bfloat16]
            assert losses[0] != losses[1]
            assert losses[1] == pytest.approx(losses[0], rel=2e-3)
            error = torch.linalg.vector_norm(gradients[1] - gradients[0]) / torch.linalg.vector_norm(gradients[0])
            assert 1e-5 < error < 0.03
            assert gradients[1].dtype == torch.float32
    finally:
        set_up_device("cpu", 1)


def _greedy(one: TrainedSeq2Seq, source: np.ndarray) -> list[int]:
    state, word, found = one.model.encode(column(as_read(source, one.source_order))), one.target.eos, []
    while len(found) < longest_target(len(source) - 1):
        g, state = one.model.decode(torch.tensor([[word]]), state)
        units = one.model.logits(g)[0, 0]
        units[0] = -math.inf
        word = int(units.argmax())
        if word == one.target.eos:
            break
        found.append(word)
    return found


def test_a_beam_of_one_is_greedy() -> None:
    for seed in range(8):
        one = trained(seed)
        sources = [ids(2, 3, 4, 6), ids(5, 6), ids(6)]
        found = best_translations([one], sources, 1, 1)
        assert [list(best.words) for (best,) in found] == [_greedy(one, source) for source in sources]


def test_a_wide_beam_is_exhaustive_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnnsmt.seq2seq.decoding.longest_target", lambda words: 3)
    ensemble = [trained(1), trained(2, "forward")]
    source = ids(2, 4, 6)
    everything = {}
    for length in range(4):
        for words in itertools.product(range(1, 5), repeat=length):
            everything[words] = Scorer(ensemble).score([source], [[ids(*words, 5)]])[0][0]
    ranked = sorted(everything.items(), key=lambda item: -item[1])
    found = best_translations(ensemble, [source, ids(6)], 200, 200)[0]
    assert [one.words for one in found] == [words for words, _ in ranked]
    assert [one.score for one in found] == pytest.approx([score for _, score in ranked], abs=1e-4)


def test_sentences_do_not_change_each_other_s_translation() -> None:
    ensemble = [trained(4), trained(5)]
    sources = [ids(2, 3, 4, 6), ids(5, 6), ids(6), ids(3, 3, 2, 2, 6)]
    together = best_translations(ensemble, sources, 3, 3)
    for source, hypotheses in zip(sources, together, strict=True):
        alone = best_translations(ensemble, [source], 3, 3)[0]
        assert [one.words for one in hypotheses] == [one.words for one in alone]
        assert [one.score for one in hypotheses] == pytest.approx([one.score for one in alone], abs=1e-4)


def test_an_ensemble_of_one_network_is_the_network() -> None:
    one, source = trained(3), ids(2, 3, 6)
    lists = [[ids(2, 5), ids(2, 3, 5), ids(5), ids(2, 3, 5)]]
    scores, mean_scores = (Scorer([one] * number).score([source], lists)[0] for number in (1, 2))
    assert scores.tolist() == pytest.approx(mean_scores.tolist(), abs=1e-6)
    (alone,), (twice,) = (best_translations([one] * number, [source], 3, 1)[0] for number in (1, 2))
    assert alone.words == twice.words


def test_n_best_lists_score_as_their_translations_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnnsmt.seq2seq.translation_scores.NODES", 20)
    rng = np.random.default_rng(1)
    one = trained(6)
    sources = [ids(*rng.integers(2, 6, rng.integers(0, 5)), 6) for _ in range(9)]
    lists = [[ids(*rng.integers(1, 5, rng.integers(0, 6)), 5) for _ in range(rng.integers(0, 16))] for _ in sources]
    found = Scorer([one]).score(sources, lists)
    for source, translations, scores in zip(sources, lists, found, strict=True):
        read = column(as_read(source, "reversed"))
        alone = [float(one.model.log_probability(read, column(target))[0]) for target in translations]
        assert scores.tolist() == pytest.approx(alone, abs=1e-5)


def test_a_file_holds_the_whole_network(tmp_path: Path) -> None:
    path = tmp_path / "lstm.safetensors"
    save_model(path, network(7), (SOURCE, TARGET), "forward", {"seed": 7})
    found = load_model(path)
    assert (found.source.hash(), found.target.hash()) == (SOURCE.hash(), TARGET.hash())
    assert (found.source_order, found.meta) == ("forward", {"seed": 7})
    batch = column(ids(2, 6)), column(ids(3, 5))
    assert found.model.log_probability(*batch) == network(7).log_probability(*batch)
    other = tmp_path / "other.safetensors"
    save_model(other, network(7), (SOURCE, Vocabulary(["u", "v", "x"])), "forward", {})
    with pytest.raises(
        InputError, match=r"other\.safetensors: its vocabularies differ from those of .*lstm\.safetensors"
    ):
        load_ensemble([str(path), str(other)])


def test_unknown_words_of_a_translation_are_unk() -> None:
    one = trained()
    with torch.no_grad():
        one.model.b_o[UNK] = 90.0
    [text, empty], figures = translate_all([one], [["a", "rare"], []], beam=1, batch=2)
    assert set(text.split()) == {"<unk>"} and empty == ""
    assert (figures["sentences"], figures["words"], figures["unknown_words"]) == (2, 2, 1)
