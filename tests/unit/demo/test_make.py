"""The demo corpus."""

import gzip
import hashlib
import re
from collections import Counter
from pathlib import Path

import pytest

import rnnsmt
from rnnsmt.cli import main

TRAINING = ["in-domain.en.gz", "in-domain.fr.gz", "general.en.gz", "general.fr.gz", "mono.fr.gz"]
HELD_OUT = ["dev.en", "dev.fr", "test.en", "test.fr"]

TEXTS = {
    "in-domain.en.gz": (4000, "ad431664dae9571d"),
    "in-domain.fr.gz": (4000, "0e3e680d2d36e1eb"),
    "general.en.gz": (16000, "76a98a4e626ec847"),
    "general.fr.gz": (16000, "68abb6bba291bb32"),
    "mono.fr.gz": (20000, "352bf05c33cc2777"),
    "dev.en": (400, "24865393aaed12b5"),
    "dev.fr": (400, "d5e73c16df627bed"),
    "test.en": (2700, "c31ef0034b5ae315"),
    "test.fr": (2700, "9678dfdae67a1e25"),
    "spare.en.gz": (5000, "0c0e3b2e99c856c0"),
    "spare.fr.gz": (5000, "645a60786a5a6334"),
}
"""Number of lines and the first digits of the SHA-256 of every text."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("demo")
    assert main(["demo", "make", "--output-dir", str(directory), "--spare"]) == 0
    return directory


def read(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def lines(path: Path) -> list[bytes]:
    raw = read(path)
    assert raw.endswith(b"\n")
    return raw.split(b"\n")[:-1]


def test_the_text_is_that_of_the_published_results(corpus: Path) -> None:
    found = {path.name: (len(lines(path)), hashlib.sha256(read(path)).hexdigest()[:16]) for path in corpus.iterdir()}
    assert found == TEXTS


def test_scale_keeps_the_first_training_lines(corpus: Path, tmp_path: Path) -> None:
    made = rnnsmt.demo.make(tmp_path, scale=0.1)
    assert made.figures == {"in-domain": 400, "general": 1600, "mono": 2000, "dev": 400, "test": 2700}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(TRAINING + HELD_OUT)
    for name in TRAINING:
        assert lines(tmp_path / name) == lines(corpus / name)[: TEXTS[name][0] // 10]
    for name in HELD_OUT:
        assert read(tmp_path / name) == read(corpus / name)


def test_held_out_sentences_are_unseen_and_have_unseen_words(corpus: Path) -> None:
    seen = {line for name in TRAINING for line in lines(corpus / name)}
    words = Counter(word for line in seen for word in re.findall(rb"\w+", line.replace("é".encode(), b"e")))
    unknown = total = 0
    for name in HELD_OUT:
        for line in lines(corpus / name):
            assert line not in seen or line == b"Elle ne sait pas."
            if name.endswith("en"):
                found = re.findall(rb"\w+", line.replace("é".encode(), b"e"))
                total += len(found)
                unknown += sum(word not in words for word in found)
    assert 0.003 < unknown / total < 0.08
    others = seen.union(*(lines(corpus / name) for name in HELD_OUT))
    for name in ("spare.en.gz", "spare.fr.gz"):
        spare = lines(corpus / name)
        assert len(set(spare) - others) == len(spare)


@pytest.mark.parametrize("scale", ["0", "-1", "1.01", "nan"])
def test_bad_scale(tmp_path: Path, capsys: pytest.CaptureFixture[str], scale: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["demo", "make", "--output-dir", str(tmp_path / "d"), f"--scale={scale}"])
    assert f"--scale: {scale}: must be" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


def test_output_directory_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d").write_text("")
    assert main(["demo", "make", "--output-dir", str(tmp_path / "d"), "--scale", "0.01"]) == 2
    assert len(capsys.readouterr().err.strip().split("\n")) == 1


def test_it_goes_through_corpus_prepare(corpus: Path, tmp_path: Path) -> None:
    words = []
    for side, name in (("source", "general.en.gz"), ("target", "general.fr.gz")):
        words += [f"--{side}", str(corpus / name), f"--output-{side}", str(tmp_path / side)]
    assert main(["corpus", "prepare", *words, "--report", str(tmp_path / "r.json")]) == 0
