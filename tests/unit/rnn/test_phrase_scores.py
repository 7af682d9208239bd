"""Scores of whole tables: equal to those of single pairs for any split of the table; invalid input."""

import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rnnsmt  # noqa: E402
from rnnsmt.cli import main  # noqa: E402
from rnnsmt.networks.exact_softmax import ExactSoftmax  # noqa: E402
from rnnsmt.rnn import phrase_scores  # noqa: E402
from rnnsmt.rnn.model import RNNEncoderDecoder, hashes_of, save_model  # noqa: E402
from rnnsmt.rnn.pairs import Pairs  # noqa: E402
from rnnsmt.rnn.settings import VARIANTS, RnnSizes  # noqa: E402

from ..gpu import NEEDS_GPU  # noqa: E402
from ..phrase_store import TABLE, VOCABULARIES, compute_column, make_pairs, open_pairs, scores_of  # noqa: E402
from .twin import Twin  # noqa: E402

WORDS = "abcdefgh"


def some_pairs(seed: int, number: int = 120) -> list[tuple[str, str]]:
    """Return pairs whose phrases share prefixes; two sources differ only in unknown words."""
    rng = np.random.default_rng(seed)
    pairs = {("Q a", "b"), ("R a", "b"), ("a b c", "Q"), ("a", "R"), ("a", "S")}
    while len(pairs) < number:
        pairs.add(tuple(" ".join(rng.choice(list(WORDS[:4]), rng.integers(1, 5))) for _ in range(2)))
    return sorted(pairs)


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("scoring")
    text = "a b c d e f g h a b c d"
    pairs = make_pairs(directory, some_pairs(1), text, text, 8)
    save_model(directory / "model.safetensors", network(pairs), hashes_of(pairs.vocabularies))
    return directory


def network(pairs: Pairs, variant: str = "paper") -> RNNEncoderDecoder:
    source, target = map(len, pairs.vocabularies)
    model = RNNEncoderDecoder(RnnSizes(source, target, 5, 7, 4, variant), 2)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.requires_grad_(False).add_(0.7 * torch.randn(parameter.shape, generator=generator))
    return model


def score(directory: Path, output: Path, *options: str) -> int:
    model = [] if "--model" in options else ["--model", str(directory / "model.safetensors")]
    return compute_column("rnn", directory, output, *model, *options)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("sizing", [phrase_scores.CPU, phrase_scores.Sizing(7, 3, 2), phrase_scores.Sizing(1, 1, 1)])
def test_equal_to_single_pairs(directory, monkeypatch, variant, sizing):
    monkeypatch.setattr(phrase_scores, "CPU", sizing)
    pairs = open_pairs(directory)
    model = network(pairs, variant)
    found = phrase_scores.score_range(model, pairs, 0, len(pairs), torch.device("cpu"))
    twin = Twin({name: value.numpy() for name, value in model.named_parameters()}, variant)
    expected = [twin.log_probability(pairs.source(i), pairs.target(i)) for i in range(len(pairs))]
    assert found == pytest.approx(expected, abs=1e-4)
    assert found.dtype == np.float32


def test_rows_of_the_softmax(directory, monkeypatch):
    """The softmax has one row for each source and preceding target words."""
    pairs, rows = open_pairs(directory), []
    log_p = ExactSoftmax.log_p
    monkeypatch.setattr(ExactSoftmax, "log_p", lambda self, g, *asked: rows.append(len(g)) or log_p(self, g, *asked))
    phrase_scores.score_range(network(pairs), pairs, 0, len(pairs), torch.device("cpu"))
    places = {
        (tuple(pairs.source(i)), tuple(pairs.target(i)[:k]))
        for i in range(len(pairs))
        for k in range(len(pairs.target(i)))
    }
    assert sum(rows) == len(places)


def test_batches_end_where_a_source_ends(directory):
    pairs = open_pairs(directory)
    batches = list(phrase_scores._batches(pairs, 0, len(pairs), 9))
    assert [begin for begin, _ in batches[1:]] == [end for _, end in batches[:-1]]
    assert (batches[0][0], batches[-1][1]) == (0, len(pairs))
    assert max(end - begin for begin, end in batches) <= 9
    split = [end for _, end in batches[:-1] if np.array_equal(pairs.source(end - 1), pairs.source(end))]
    for end in split:  # only a source with more targets than fit
        begin = next(begin for begin, last in batches if last == end)
        assert all(np.array_equal(pairs.source(i), pairs.source(end)) for i in range(begin, end))


def test_every_source_is_encoded_once(directory, monkeypatch):
    pairs = open_pairs(directory)
    model = network(pairs)
    words, lengths = phrase_scores._phrases(pairs, 0, 0, len(pairs))
    c, which = phrase_scores.encode_distinct(model, words, lengths, torch.device("cpu"), 4)
    sources = [tuple(pairs.source(i)) for i in range(len(pairs))]
    assert len(c) == len(set(sources))
    rows = dict(zip(sources, which, strict=True))
    assert [rows[source] for source in sources] == which.tolist()


def test_shards_follow_each_other(directory, tmp_path):
    assert score(directory, tmp_path / "all") == 0
    whole = scores_of(tmp_path / "all")
    parts = []
    for k in range(1, 8):
        assert score(directory, tmp_path / f"{k}", "--shard", f"{k}/7" if k % 2 else f"{k}-of-7") == 0
        parts.append(scores_of(tmp_path / f"{k}"))
    assert len(whole) == len(open_pairs(directory))
    assert np.concatenate(parts) == pytest.approx(whole, abs=1e-5)
    before = (tmp_path / "all").read_bytes()
    assert score(directory, tmp_path / "all") == 0
    assert (tmp_path / "all").read_bytes() == before


def test_threads_change_nothing(directory, tmp_path, monkeypatch):
    monkeypatch.setattr(phrase_scores, "CPU", phrase_scores.Sizing(10, 8, 4))
    assert score(directory, tmp_path / "1") == 0
    assert score(directory, tmp_path / "3", "--threads", "3") == 0
    assert (tmp_path / "1").read_bytes() == (tmp_path / "3").read_bytes()


def test_more_shards_than_pairs(directory, tmp_path):
    assert score(directory, tmp_path / "0", "--shard", "1/1000") == 0
    assert len(scores_of(tmp_path / "0")) == 0
    rest = tmp_path / "rest"
    assert score(directory, rest) == 0
    command = ["phrases", "augment", "--phrase-table", str(directory / TABLE), "--output", str(tmp_path / "t.gz")]
    assert main([*command, "--column", str(tmp_path / "0"), str(rest)]) == 0


def test_a_filtered_table(directory, tmp_path):
    """Its scores are those of its lines in the whole table."""
    assert score(directory, tmp_path / "whole") == 0
    (tmp_path / "in").write_text("a b c\nd a\n")
    (tmp_path / "reordering").write_text("a ||| b ||| 1 1 1 1 1 1\n")
    tables = ["--phrase-table", str(directory / TABLE), "--reordering-table", str(tmp_path / "reordering")]
    command = ["phrases", "filter", "--input", str(tmp_path / "in"), *tables, "--output-dir", str(tmp_path / "few")]
    assert main(command) == 0
    kept, whole = ((path / TABLE).read_text().splitlines() for path in (tmp_path / "few", directory))
    lines = [number for number, line in enumerate(whole) if line in kept]
    assert 0 < len(lines) == len(kept) < len(whole)
    rnnsmt.phrases.import_table(tmp_path / "few" / TABLE, tmp_path / "few.safetensors")
    assert score(directory, tmp_path / "scores", "--pairs", str(tmp_path / "few.safetensors")) == 0
    assert scores_of(tmp_path / "scores") == pytest.approx(scores_of(tmp_path / "whole")[lines], abs=1.3e-5)


@pytest.mark.parametrize(("kind", "least", "most"), [("cpu", 3, 8), ("cuda", 1, 2)])
def test_batches_at_the_same_time(directory, monkeypatch, kind, least, most):
    """Batches run in as many threads as given on a CPU, but at most two at the same time on a GPU."""
    pairs = open_pairs(directory)
    busy, found = [], []

    def score_batch(model, softmax, pairs, bounds, device, sizing):
        busy.append(bounds)
        time.sleep(0.02)
        found.append(len(busy))
        busy.remove(bounds)
        return np.zeros(bounds[1] - bounds[0], np.float32)

    monkeypatch.setattr(phrase_scores, "_score_batch", score_batch)
    for name in ("CPU", "CUDA"):
        monkeypatch.setattr(phrase_scores, name, phrase_scores.Sizing(10, 8, 4))
    device = SimpleNamespace(type=kind)
    batches = list(phrase_scores.score_batches(network(pairs), pairs, 0, len(pairs), device, 8))
    assert len(batches) > 8
    assert least <= max(found) <= most


@NEEDS_GPU
def test_gpu_equals_cpu(directory):
    pairs = open_pairs(directory)
    model = network(pairs)
    here = phrase_scores.score_range(model, pairs, 0, len(pairs), torch.device("cpu"))
    there = phrase_scores.score_range(model.cuda(), pairs, 0, len(pairs), torch.device("cuda"))
    assert there == pytest.approx(here, abs=1e-4)


# invalid input


def refused(code: int, capsys, output: Path, *parts: str) -> None:
    assert code == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    for part in parts:
        assert part in error[0]
    assert not output.exists()


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/0", "1/2/3", "-1/2"])
def test_refuses_shards(directory, tmp_path, capsys, shard):
    output = tmp_path / "x"
    with pytest.raises(SystemExit):
        score(directory, output, f"--shard={shard}")
    assert f"argument --shard: {shard}: must be K/N" in capsys.readouterr().err
    assert not output.exists()


def test_refuses_a_network_of_other_vocabularies(directory, tmp_path, capsys):
    make_pairs(tmp_path, some_pairs(1), "x y z", "x y z", 8)
    (tmp_path / "model.safetensors").write_bytes((directory / "model.safetensors").read_bytes())
    capsys.readouterr()
    output = tmp_path / "x"
    refused(score(tmp_path, output), capsys, output, "do not match", "model.safetensors", VOCABULARIES)


def test_refuses_what_is_no_network_or_no_store(directory, tmp_path, capsys):
    output = tmp_path / "x"
    refused(score(directory, output, "--model", str(directory / TABLE)), capsys, output, TABLE)
    refused(score(directory, output, "--model", str(directory / "no.safetensors")), capsys, output, "no.safetensors")
    refused(score(directory, output, "--pairs", str(directory / TABLE)), capsys, output, TABLE, "import-table")
    refused(compute_column("rnn", directory, output), capsys, output, "--model")
