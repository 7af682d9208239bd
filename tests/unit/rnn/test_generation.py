"""Sampling and beam search against the enumeration of all targets of a toy vocabulary."""

import itertools
from collections import Counter

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rnnsmt  # noqa: E402
from rnnsmt.cli import main  # noqa: E402
from rnnsmt.networks.data import Vocabulary  # noqa: E402
from rnnsmt.rnn.generation import best_targets, read_phrases, sample_targets  # noqa: E402
from rnnsmt.rnn.model import (  # noqa: E402
    RNNEncoderDecoder,
    hashes_of,
    save_model,
)
from rnnsmt.rnn.pairs import vocabulary_files  # noqa: E402
from rnnsmt.rnn.settings import VARIANTS, RnnSizes  # noqa: E402

EOS, LONGEST = 4, 4
SOURCES = [np.array(phrase, np.int32) for phrase in ([2, 5], [3, 2, 4, 5], [5], [2, 5])]


def network(scale=1.0, source=6, target=EOS + 1, variant="paper"):
    model = RNNEncoderDecoder(RnnSizes(source, target, 4, 6, 3, variant), 1)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.requires_grad_(False).add_(scale * torch.randn(parameter.shape, generator=generator))
        model.output.b_G[0] = -20.0  # "no word" is never generated
    return model


@pytest.fixture(scope="module", params=VARIANTS)
def model(request):
    return network(0.5, variant=request.param)


def everything(model, source):
    """Return log p(target | source) of all targets of up to LONGEST words, without id 0."""
    targets = [t for length in range(LONGEST + 1) for t in itertools.product(range(1, EOS), repeat=length)]
    lengths = torch.tensor([len(target) + 1 for target in targets])
    padded = torch.tensor([[*target, EOS, *[1] * (LONGEST - len(target))] for target in targets])
    sources = torch.from_numpy(source.astype(np.int64)).expand(len(targets), -1)
    scores = model.log_probability(sources, torch.full((len(targets),), len(source)), padded, lengths)
    return dict(zip(targets, scores.tolist(), strict=True))


@pytest.mark.parametrize("nbest", [1, 5])
def test_a_wide_beam_finds_the_best(model, nbest):
    found = best_targets(model, SOURCES, 81, LONGEST, nbest)
    for source, targets in zip(SOURCES, found, strict=True):
        best = sorted(everything(model, source).items(), key=lambda item: -item[1])[:nbest]
        assert [target.words for target in targets] == [words for words, _ in best]
        assert [target.score for target in targets] == pytest.approx([score for _, score in best], abs=1e-5)


def test_a_narrow_beam_finds_targets_with_their_scores(model):
    for source, targets in zip(SOURCES, best_targets(model, SOURCES, 2, LONGEST, 2), strict=True):
        scores = everything(model, source)
        assert 1 <= len(targets) <= 2
        for target in targets:
            assert target.score == pytest.approx(scores[target.words], abs=1e-5)
    assert best_targets(model, SOURCES, 2, LONGEST, 2) == best_targets(model, SOURCES, 2, LONGEST, 2)


def test_greedy_search_is_a_beam_of_one(model):
    (target,) = best_targets(model, SOURCES[1:2], 1, LONGEST)[0]
    scores = everything(model, SOURCES[1])
    assert scores[target.words] == pytest.approx(target.score, abs=1e-5)


def test_draws_follow_the_distribution(model):
    draws = 4000
    found = sample_targets(model, SOURCES[1:2], draws, 3, LONGEST)[0]
    scores = everything(model, SOURCES[1])
    assert [target.score for target in found] == sorted((t.score for t in found), reverse=True)
    for target in found:
        assert target.score == pytest.approx(scores[target.words], abs=1e-5)
    drawn = Counter({target.words: target.times for target in found})
    for words, score in scores.items():
        p = np.exp(score)
        assert drawn[words] / draws == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / draws) + 1e-4)
    unfinished = 1 - sum(np.exp(list(scores.values())))
    assert 1 - drawn.total() / draws == pytest.approx(unfinished, abs=0.04)


def test_draws_depend_on_seed_and_place_only(model):
    """Samples depend only on the seed and on the index of the source phrase; scores may differ in the last digits."""

    def drawn(sources, seed):
        found = sample_targets(model, sources, 30, seed, LONGEST)
        return [{target.words: target.times for target in targets} for targets in found]

    found = drawn(SOURCES, 3)
    assert sample_targets(model, SOURCES, 30, 3, LONGEST) == sample_targets(model, SOURCES, 30, 3, LONGEST)
    assert drawn(SOURCES[:2], 3) == found[:2]
    assert drawn(SOURCES, 4) != found
    assert found[0] != found[3]  # the same phrase drawn again


def test_a_no_break_space_is_part_of_a_word(tmp_path):
    (tmp_path / "in.txt").write_text("10\u00a0000  a\n", encoding="utf-8")
    vocabulary = Vocabulary(["a", "10\u00a0000"])
    assert read_phrases(tmp_path / "in.txt", vocabulary)[0].tolist() == [3, 2, 4]


# stages


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("generation")
    text = ["a b c d a b"]
    rnnsmt.networks.prepare("rnn", text, directory / "vocabularies", source=text, vocab_size=6)
    vocabularies = [Vocabulary.read(file) for file in vocabulary_files(directory / "vocabularies")]
    save_model(directory / "model.safetensors", network(0.3, source=7, target=7), hashes_of(vocabularies))
    (directory / "in.txt").write_text("a b\nunknown words\nc\n")
    return directory


def run(directory, stage, *options, model="model.safetensors", source="in.txt", output="out.txt"):
    files = ["--model", directory / model, "--vocabularies", directory / "vocabularies", "--input", directory / source]
    return main(["rnn", stage, *map(str, files), "--output", str(directory / output), *options])


def test_translate_stage(directory):
    assert run(directory, "translate") == 0
    one = (directory / "out.txt").read_text().splitlines()
    assert len(one) == 3
    assert run(directory, "translate", "--nbest", "4") == 0
    rows = [line.split(" ||| ") for line in (directory / "out.txt").read_text().splitlines()]
    assert [rows[4 * i][1] for i in range(3)] == one
    assert [row[0] for row in rows] == [str(i) for i in range(3) for _ in range(4)]


def test_the_function_returns_what_the_command_writes(directory):
    assert run(directory, "translate", "--nbest", "2") == 0
    files = directory / "model.safetensors", directory / "vocabularies"
    found = rnnsmt.rnn.translate(*files, ["a b", "unknown words", "c"], directory / "again.txt", nbest=2)
    assert (directory / "again.txt").read_bytes() == (directory / "out.txt").read_bytes()
    lines = [f"{i} ||| {text} ||| {score:.6f}" for i, targets in enumerate(found) for text, score in targets]
    assert (directory / "out.txt").read_text().splitlines() == lines
    assert rnnsmt.rnn.translate(*files, ["c"])[0][0] == found[2][0]


def test_refuses_more_targets_than_the_beam(directory, capsys):
    assert run(directory, "translate", "--nbest", "11", output="bad.txt") == 2
    assert "--nbest 11: must be an integer from 1 to the beam size, 10" in capsys.readouterr().err
    assert not (directory / "bad.txt").exists()


@pytest.mark.parametrize("option", ["--beam", "--max-length", "--nbest"])
def test_refuses_nothing_to_do(directory, capsys, option):
    with pytest.raises(SystemExit, match="2"):
        run(directory, "translate", option, "0", output="bad.txt")
    assert f"{option}: 0: must be at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(("content", "said"), [("", "contains no lines"), ("a\n\nb\n", "line 2: is empty")])
def test_refuses_inputs(directory, capsys, content, said):
    (directory / "bad.in").write_text(content)
    assert run(directory, "translate", source="bad.in", output="bad.txt") == 2
    assert said in capsys.readouterr().err
    assert not (directory / "bad.txt").exists()
