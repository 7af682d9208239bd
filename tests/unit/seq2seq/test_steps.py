"""A network step by step, against its encode and decode; results do not depend on the batch."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rnnsmt.networks.data import Vocabulary  # noqa: E402
from rnnsmt.networks.exact_softmax import ExactSoftmax  # noqa: E402
from rnnsmt.networks.scoring import add_to_nbest  # noqa: E402
from rnnsmt.seq2seq.decoding import best_translations  # noqa: E402
from rnnsmt.seq2seq.model import ROWS, Seq2Seq, State, Steps, TrainedSeq2Seq, lstm_units  # noqa: E402  # noqa: E402
from rnnsmt.seq2seq.sentences import as_read, padded  # noqa: E402
from rnnsmt.seq2seq.settings import Seq2SeqSizes  # noqa: E402
from rnnsmt.seq2seq.translation_scores import Scorer, scores_of_block  # noqa: E402

torch.set_num_threads(1)

SIZES = Seq2SeqSizes(40, 700, 24, 32, 2)

EOS = SIZES.target_vocabulary - 1


@pytest.fixture(scope="module")
def one() -> TrainedSeq2Seq:
    model = Seq2Seq(SIZES, 1, 0.5)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    source, target = (Vocabulary([f"w{k}" for k in range(n - 3)]) for n in (40, 700))
    return TrainedSeq2Seq(model, source, target, "reversed", {})


def sentences(number: int, classes: int, longest: int, seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(1, classes - 1, rng.integers(0, longest + 1)) for _ in range(number)]
    return [np.array([*words, classes - 1], np.int32) for words in drawn]


@pytest.mark.parametrize("number", [1, 5, 16, 300])
def test_the_encoder_is_the_network_s(one: TrainedSeq2Seq, number: int) -> None:
    sources = sentences(number, 40, 7)
    found = Steps(one).encode(sources)
    expected = one.model.encode(torch.from_numpy(padded([as_read(source, "reversed") for source in sources])))
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.allclose(mine[:, :number], theirs, atol=1e-6)


@pytest.mark.parametrize("number", [1, 16, ROWS + 3])
def test_a_step_of_the_decoder_is_the_network_s(one: TrainedSeq2Seq, number: int) -> None:
    rng = np.random.default_rng(2)
    state = State(*(torch.randn(2, 20, 32) for _ in range(2)))
    words, parents = rng.integers(0, 700, number), rng.integers(0, 20, number)
    g, after = Steps(one).step(words, parents, state)
    expected_g, expected = one.model.decode(torch.from_numpy(words)[None], state.select(torch.from_numpy(parents)))
    assert torch.allclose(g[:number], expected_g[0], atol=1e-6)
    assert torch.allclose(after.h[:, :number], expected.h, atol=1e-6)
    assert torch.allclose(after.c[:, :number], expected.c, atol=1e-6)


def test_units_far_from_zero_are_those_of_torch() -> None:
    gates = np.linspace(-300, 300, 4 * 64, dtype=np.float32).reshape(1, -1)[:, ::-1].copy()
    c, h = np.linspace(-90, 90, 64, dtype=np.float32)[None], np.empty((1, 64), np.float32)
    enters, keeps, new, leaves = torch.from_numpy(gates.astype(np.float64)).chunk(4, 1)
    cells = keeps.sigmoid() * torch.from_numpy(c.astype(np.float64)) + enters.sigmoid() * new.tanh()
    lstm_units(gates, c, h)
    assert np.allclose(c, cells.numpy(), atol=1e-5)
    assert np.allclose(h, (leaves.sigmoid() * cells.tanh()).numpy(), atol=1e-6)
    gates[0, 0] = np.nan
    lstm_units(gates, c, h)
    assert np.isnan(h[0, 0])
    assert np.isfinite(h[0, 1:]).all()


@pytest.mark.parametrize(("classes", "width"), [(700, 12), (5, 4), (513, 513), (512, 1)])
def test_the_likeliest_classes_are_those_of_the_whole_softmax(classes: int, width: int) -> None:
    g, W, b = torch.randn(9, 8), torch.randn(classes, 8), torch.randn(classes)
    b[0] = 20  # the first class is excluded, but has most of the sum
    logs = torch.log_softmax(torch.addmm(b, g, W.t()).double(), 1)
    logs[:, 0] = -torch.inf
    expected, which = logs.topk(width, 1)
    found, named = ExactSoftmax(W, b).best(g, width, least_class=1)
    assert np.allclose(found, expected.numpy(), atol=1e-5)
    there = np.isfinite(found)
    assert there.sum() == 9 * min(width, classes - 1)
    assert np.array_equal(named[there], which.numpy()[there])


def test_of_equal_units_the_lower_class_comes_first() -> None:
    found, named = ExactSoftmax(torch.zeros(600, 3), torch.zeros(600)).best(torch.randn(2, 3), 4, least_class=1)
    assert named.tolist() == [[1, 2, 3, 4]] * 2
    assert np.allclose(found, -np.log(600))


def test_scores_have_the_same_bits_whatever_they_are_computed_with(one: TrainedSeq2Seq) -> None:
    sources = sentences(4, 40, 6)
    lists = [sentences(number, 700, 4, seed) for seed, number in enumerate((400, 3, 1, 60))]
    together = Scorer([one]).score(sources, lists)
    for source, translations, scores in zip(sources, lists, together, strict=True):
        assert np.array_equal(Scorer([one]).score([source], [translations])[0], scores)
        assert Scorer([one]).score([source], [translations[-1:]])[0][0] == scores[-1]


def test_translations_and_their_scores_have_the_same_bits_in_every_batch(one: TrainedSeq2Seq) -> None:
    sources = sentences(30, 40, 5, 3)
    together = best_translations([one], sources, 5, 5)
    assert together == [best_translations([one], [source], 5, 5)[0] for source in sources]
    twice = best_translations([one] * 2, sources, 5, 5)
    assert [found[0].words for found in together] == [found[0].words for found in twice]


def test_rescored_lists_have_the_same_bytes_together_and_alone(one: TrainedSeq2Seq, tmp_path: Path) -> None:
    scores = partial(scores_of_block, Scorer([one]), ["w1 w2 w3", "w4", ""])
    paths = [str(tmp_path / name) for name in ("a", "b", "c")]
    for seed, path in enumerate(paths):
        rows = [
            f"{number} ||| {one.target.text(ids[:-1])} ||| LM0= -1 ||| -1"
            for number in range(3)
            for ids in sentences(150, 700, 3, seed)
        ]
        Path(path).write_text("\n".join(rows) + "\n")
    add_to_nbest(scores, paths, [path + ".together" for path in paths], "LSTM0")
    for path in paths:
        add_to_nbest(scores, [path], [path + ".alone"], "LSTM0")
        assert Path(path + ".together").read_bytes() == Path(path + ".alone").read_bytes()
