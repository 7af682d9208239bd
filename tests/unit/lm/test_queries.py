"""Queries of texts with KenLM, against the automaton of the decoder."""

import gzip
import lzma
import random
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.cli import main
from rnnsmt.lm.automaton import LN10, load_automaton
from rnnsmt.lm.queries import load_kenlm, measure

from ..search.twin import TARGET, arpa_text


def test_perplexity_is_that_of_the_decoder(moses_fixture: Path, tmp_path: Path) -> None:
    """The perplexity of a text equals that computed by the automaton, for a model of order 5 by lmplz."""
    path = tmp_path / "lm.arpa.xz"
    path.write_bytes((moses_fixture / "lm.arpa.xz").read_bytes())
    lines = (moses_fixture / "search" / "moses.cube.1best").read_text().splitlines()
    found, lm = measure(load_kenlm(path), lines, "text"), load_automaton(path)
    log10 = sum(lm.score_words(line) for line in lines) / LN10
    assert (found.sentences, found.words) == (250, sum(len(line.split()) for line in lines))
    assert found.log10 == pytest.approx(log10, rel=1e-5)
    assert found.perplexity == pytest.approx(10 ** (-log10 / (found.words + 250)), rel=1e-4)


@pytest.mark.parametrize("order", [2, 6])
def test_compressed_files(tmp_path: Path, order: int) -> None:
    """Compressed files give the same scores as plain files; the scores are sums in single precision."""
    text = arpa_text(random.Random(order), TARGET, order=order).encode()
    (tmp_path / "plain").write_bytes(text)
    (tmp_path / "lm.gz").write_bytes(gzip.compress(text))
    (tmp_path / "lm.xz").write_bytes(lzma.compress(text))
    line = " ".join(random.Random(2).choices([*TARGET, "oov"], k=5000)).encode()
    scores = {load_kenlm(tmp_path / name).score(line) for name in ("plain", "lm.gz", "lm.xz")}
    (score,) = scores
    assert score == np.float32(score)


def test_orders_that_kenlm_cannot_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("a b a\nb a c\n" * 4)
    (tmp_path / "1.arpa").write_text(arpa_text(random.Random(1), ["a", "b", "c"], order=1))
    estimate = ["lm", "estimate", "--input", f"{tmp_path}/text", "--output", f"{tmp_path}/7.arpa.gz"]
    assert main([*estimate, "--order", "7"]) == 0
    capsys.readouterr()
    for name in ("1.arpa", "7.arpa.gz"):
        command = ["networks", "perplexity", "--model", f"{tmp_path}/{name}", "--input", f"{tmp_path}/text"]
        assert main([*command, "--output", f"{tmp_path}/p"]) == 2
        (line,) = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
        assert f"{name}: KenLM cannot load it" in line


def test_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "lm.arpa"
    path.write_text(arpa_text(random.Random(1), TARGET, order=3))
    with pytest.raises(InputError, match="no lines"):
        measure(load_kenlm(path), [], "text")
