"""Queries of texts: KenLM and the automaton give identical results."""

import lzma
import random
from collections.abc import Callable
from pathlib import Path

import kenlm
import numpy as np
import pytest

from rnnsmt.base.io import InputError
from rnnsmt.cli import main
from rnnsmt.lm import queries
from rnnsmt.lm.arpa import read_arpa
from rnnsmt.lm.queries import AutomatonQueries, KenLmQueries, Queries, load_queries, measure

from ..search.twin import TARGET, arpa_text

BLANKS = [" ", "  ", "\t", "\v", "\f", "\r", " \t "]


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], tuple[Queries, Queries]]:
    """Load a model with KenLM, and as if KenLM were not installed."""

    def load(path: Path) -> tuple[Queries, Queries]:
        reference = load_queries(path)
        with monkeypatch.context() as patch:
            patch.setattr(queries, "find_spec", lambda name: None)
            own = load_queries(path)
        assert isinstance(reference, KenLmQueries)
        assert isinstance(own, AutomatonQueries)
        return reference, own

    return load


def assert_same_bits(reference: Queries, own: Queries, lines: list[bytes]) -> None:
    """Check that line scores, word scores and perplexity are identical."""
    assert own.order == reference.order
    assert own.line_scores(lines) == reference.line_scores(lines)
    assert list(own.word_scores(lines)) == list(reference.word_scores(lines))
    texts = [line.decode() for line in lines]
    assert measure(own, texts, "own") == measure(reference, texts, "reference")


@pytest.mark.parametrize("seed", range(8))
def test_random_models(tmp_path: Path, both: Callable, seed: int) -> None:
    """Results are identical with unknown words, repeated blanks, empty lines and reserved words in the text."""
    rng = random.Random(seed)
    path = tmp_path / "lm.arpa"
    path.write_text(arpa_text(rng, TARGET, order=2 + seed % 5))
    words = [*TARGET, "oov", "inconnu\u00a0", "\u2003", "<unk>", "</s>"]
    lines = ["", " ", "\t"]
    for _ in range(300):
        lines.append(rng.choice(BLANKS).join(rng.choices(words, k=rng.randint(0, 12))) + rng.choice(["", *BLANKS]))
    assert_same_bits(*both(path), [line.encode() for line in lines])


def test_a_model_of_order_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Models of order 1, which KenLM refuses to load, are queried with the automaton."""
    text, path = tmp_path / "text", tmp_path / "lm.arpa.gz"
    text.write_text("a b a\nb a c\n")
    assert main(["lm", "estimate", "--input", str(text), "--output", str(path), "--order", "1"]) == 0
    assert "KenLM" in capsys.readouterr().err
    with pytest.raises(OSError, match="at least a bigram"):
        kenlm.Model(str(path))
    model, arpa = load_queries(path), read_arpa(path)
    assert model.order == 1
    probs = dict(zip(arpa.words.strings(), arpa.log10_probs[0].tolist(), strict=True))
    (score,) = model.line_scores([b"a c d"])
    assert score == pytest.approx(sum(probs[word] for word in (b"a", b"c", b"<unk>", b"</s>")))
    assert [unknown for _, unknown in model.word_scores([b"a c d"])] == [False, False, True, False]
    assert main(["lm", "perplexity", "--lm", str(path), "--input", str(text), "--output", str(tmp_path / "p")]) == 0


def test_a_model_of_order_5(moses_fixture: Path, tmp_path: Path, both: Callable) -> None:
    """Results are identical for a model of order 5 by lmplz on real text."""
    path = tmp_path / "lm.arpa"
    path.write_bytes(lzma.decompress((moses_fixture / "lm.arpa.xz").read_bytes()))
    lines = (moses_fixture / "search" / "moses.cube.1best").read_bytes().splitlines()
    assert len(lines) == 250
    assert_same_bits(*both(path), lines)


def test_the_sum_is_that_of_single_precision(tmp_path: Path, both: Callable) -> None:
    """The score of a long line is a sum in single precision in KenLM's order."""
    path = tmp_path / "lm.arpa"
    path.write_text(arpa_text(random.Random(1), TARGET, order=3))
    line = " ".join(random.Random(2).choices(TARGET, k=5000)).encode()
    _, own = both(path)
    (found,) = own.line_scores([line])
    words = [log10 for log10, _ in own.word_scores([line])]
    assert found == kenlm.Model(str(path)).score(line)
    assert found == np.float32(found) != sum(words)


def test_no_lines(tmp_path: Path, both: Callable) -> None:
    path = tmp_path / "lm.arpa"
    path.write_text(arpa_text(random.Random(1), TARGET, order=3))
    for model in both(path):
        assert model.line_scores([]) == list(model.word_scores([])) == []
        with pytest.raises(InputError, match="no lines"):
            measure(model, [], "text")


def test_the_command_without_kenlm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without KenLM, `lm perplexity` writes the same file; binary models are refused."""
    (tmp_path / "lm.arpa").write_text(arpa_text(random.Random(3), TARGET, order=3))
    (tmp_path / "text").write_text(" ".join(TARGET) + "\n")
    command = ["lm", "perplexity", "--lm", str(tmp_path / "lm.arpa"), "--input", str(tmp_path / "text"), "--output"]
    assert main([*command, str(tmp_path / "kenlm.json")]) == 0
    monkeypatch.setattr(queries, "find_spec", lambda name: None)
    monkeypatch.setattr(queries, "load_kenlm", None)
    assert main([*command, str(tmp_path / "own.json")]) == 0
    assert (tmp_path / "own.json").read_bytes() == (tmp_path / "kenlm.json").read_bytes()
    (tmp_path / "lm.arpa").write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\x00")
    assert main([*command, str(tmp_path / "own.json")]) == 2
    assert "is a binary KenLM file; use the ARPA text file it was built from" in capsys.readouterr().err
