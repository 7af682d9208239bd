"""Alignment in shards: the output of ``align words`` for any number of shards, and mismatched files."""

import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.align import PASSES_OF, direction, training
from rnnsmt.base.io import InputError
from rnnsmt.cli import main

SENTENCES = 60


@pytest.fixture
def text(tmp_path, monkeypatch) -> Path:
    """Create a text of ten blocks; some word pairs occur in one shard only, some sentences are too long for Model 4."""
    monkeypatch.setattr(direction, "_LEAST_BLOCK", 6)
    draw = random.Random(1)
    lines = [[draw.randint(1, 30) + k // 2 for _ in range(draw.randint(0, 9))] for k in range(SENTENCES)]
    lines[11], lines[50] = lines[11] * 30 + [7] * 210, [9, 8] * 120
    for name, letter, step in (("s", "e", 1), ("t", "f", -1)):
        (tmp_path / name).write_text("".join(" ".join(f"{letter}{k}" for k in line[::step]) + "\n" for line in lines))
    return tmp_path


def cut(directory: Path, aligner: str, shards: int, *more: str, way: str = "forward") -> Path:
    names = [
        "--source",
        str(directory / "s"),
        "--target",
        str(directory / "t"),
        "--aligner",
        aligner,
        "--direction",
        way,
    ]
    shutil.rmtree(directory / "shards", ignore_errors=True)
    arguments = ["align", "cut", *names, "--shards", str(shards), "--output-dir", str(directory / "shards"), *more]
    assert main(arguments) == 0
    return directory / "shards"


def count(directory: Path, done: int, shard: str, *more: str) -> int:
    parameters = str(directory / f"parameters.{done}.npz")
    files = ["--shard", str(directory / f"shard.{shard}.npz"), "--parameters", parameters]
    return main(["align", "count", *files, "--output", str(directory / f"counts.{done}.{shard}.npz"), *more])


def gather(directory: Path, done: int, *more: str, counts: str = "*") -> int:
    files = [
        "--corpus",
        str(directory / "corpus.npz"),
        "--counts",
        *map(str, sorted(directory.glob(f"counts.{done}.{counts}"))),
    ]
    return main(["align", *more[:1], *files, *more[1:]])


def estimate(directory: Path, done: int, counts: str = "*") -> int:
    files = ["--parameters", str(directory / f"parameters.{done}.npz")]
    output = ["--output", str(directory / f"parameters.{done + 1}.npz")]
    return gather(directory, done, "estimate", *files, *output, counts=counts)


def align(directory: Path, aligner: str, shards: int, *more: str, way: str = "forward") -> tuple[bytes, bytes]:
    """Align in shards; return the links and the lexical probabilities before the last pass."""
    passes = cut(directory, aligner, shards, *more, way=way)
    last = PASSES_OF[aligner] - 1
    for done in range(last + 1):
        for number in range(1, shards + 1):
            assert count(passes, done, f"{number}-of-{shards}") == 0
        if done < last:
            assert estimate(passes, done) == 0
    assert gather(passes, last, "links", "--output", str(directory / "links.gz")) == 0
    with np.load(passes / f"parameters.{last}.npz") as saved:
        return (directory / "links.gz").read_bytes(), saved["t"].tobytes()


def test_the_rules_know_how_many_passes_there_are():
    assert {name: len(aligner.passes) for name, aligner in training.ALIGNERS.items()} == PASSES_OF


@pytest.mark.parametrize("aligner", [pytest.param(a, marks=[pytest.mark.slow] * (a == "model4")) for a in PASSES_OF])
@pytest.mark.parametrize(("way", "more"), [("forward", []), ("reverse", ["--max-pairs", "700"])])
def test_the_same_links_for_any_number_of_shards(text, aligner, way, more):
    """The links do not depend on the number of shards, even if some shards are empty (13 shards of 10 blocks)."""
    files = ["--source", str(text / "s"), "--target", str(text / "t"), "--output", str(text / "whole.gz")]
    assert main(["align", "words", *files, "--aligner", aligner, "--direction", way, *more]) == 0
    whole = (text / "whole.gz").read_bytes()
    t = set()
    for shards in (1, 2, 3, 13):
        links, probabilities = align(text, aligner, shards, *more, way=way)
        assert links == whole, shards
        t.add(probabilities)
    assert len(t) == 1


def test_a_shard_has_its_own_text_and_word_pairs(text):
    """The first of three shards has three of the ten blocks (18 sentences) and only the word pairs of these."""
    directory = cut(text, "fast_align", 3)
    with np.load(directory / "corpus.npz") as corpus, np.load(directory / "shard.1-of-3.npz") as shard:
        assert len(shard["given_offsets"]) == len(shard["generated_offsets"]) == 3 * 6 + 1
        lines = [(text / name).read_text().splitlines()[:18] for name in ("s", "t")]
        pairs = {(e, f) for source, target in zip(*lines, strict=True) for e in source.split() for f in target.split()}
        assert len(shard["words"]) == len(shard["cells"]) == shard["starts"][-1] == len(pairs)
        assert len(pairs) < corpus["starts"][-1]


@pytest.mark.parametrize("threads", ["1", "3"])
def test_the_same_counts_again_and_with_threads(text, threads):
    directory = cut(text, "hmm", 2)
    assert count(directory, 0, "1-of-2") == 0
    before = (directory / "counts.0.1-of-2.npz").read_bytes()
    assert count(directory, 0, "1-of-2", "--threads", threads) == 0
    assert (directory / "counts.0.1-of-2.npz").read_bytes() == before


def test_files_that_do_not_belong_together(text, capsys):
    directory = cut(text, "fast_align", 2)
    other = text / "other"
    directory.rename(other)
    directory = cut(text, "fast_align", 2, "--max-pairs", "700")
    for number in (1, 2):
        assert count(directory, 0, f"{number}-of-2") == 0
    capsys.readouterr()

    def refused(code: int) -> str:
        error = capsys.readouterr().err
        assert code == 2
        assert error.count("\n") == 1
        return error

    assert "--counts: shard 2 of 2 is missing" in refused(estimate(directory, 0, "1-*"))
    assert not (directory / "parameters.1.npz").exists()
    assert estimate(directory, 0) == 0
    assert count(directory, 1, "1-of-2") == 0
    shutil.copy(directory / "counts.1.1-of-2.npz", directory / "counts.0.1-of-2.npz")
    capsys.readouterr()
    assert "counts.0.1-of-2.npz: is not from iteration 1 of this alignment" in refused(estimate(directory, 0))
    shutil.copy(other / "parameters.0.npz", directory)
    assert "parameters.0.npz: was written for a different alignment" in refused(count(directory, 0, "1-of-2"))
    shutil.copy(directory / "corpus.npz", directory / "parameters.0.npz")
    assert "parameters.0.npz: was written by a different alignment step" in refused(count(directory, 0, "1-of-2"))
    (directory / "shard.2-of-2.npz").write_bytes((directory / "shard.2-of-2.npz").read_bytes()[:-30])
    assert "shard.2-of-2.npz: damaged" in refused(count(directory, 1, "2-of-2"))
    assert "shard.3-of-2.npz: no such file" in refused(count(directory, 1, "3-of-2"))


def test_nothing_is_counted_after_the_last_pass(text, capsys):
    directory = cut(text, "fast_align", 1)
    for done in range(PASSES_OF["fast_align"]):
        assert count(directory, done, "1-of-1") == 0
        assert estimate(directory, done) == 0
    capsys.readouterr()
    assert count(directory, 5, "1-of-1") == 2
    assert "parameters.5.npz: contains the parameters of the last iteration" in capsys.readouterr().err


def test_files_may_have_any_name(tmp_path):
    training.save_arrays(tmp_path / "counts", {"--shard": "1"}, t=np.arange(3))
    about, arrays = training.load_arrays(tmp_path / "counts", "create it again")
    assert about == {"--shard": "1"}
    assert arrays["t"].tolist() == [0, 1, 2]


def test_an_archive_that_lost_an_array_is_refused(tmp_path):
    """A .npz file that lacks an array is refused, as after damage to its directory."""
    path = tmp_path / "passes.npz"
    training.save_arrays(path, {"text": "x"}, t=np.arange(3), done=np.array(1))
    with np.load(path) as saved:
        np.savez(path, **{name: saved[name] for name in saved.files if name != "t"})
    with pytest.raises(InputError, match="damaged; remove it"):
        training.load_arrays(path, "remove it")
