"""Reading ARPA files and the automaton built from them, against KenLM."""

import gzip
import lzma
import os
import random
import threading
from pathlib import Path

import kenlm
import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.lm.arpa import read_arpa
from rnnsmt.lm.automaton import LN10, build_automaton, load_automaton

from ..search.twin import TARGET, arpa_text

GOOD = """\\data\\
ngram 1=5
ngram 2=2

\\1-grams:
-1.5\t<unk>\t0
0\t<s>\t-0.5
-1\t</s>
-0.7\tle\t-0.25
-0.9\tchat

\\2-grams:
-0.3\t<s> le
-0.2\tle chat

\\end\\
"""


def _refused(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "lm.arpa"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        load_automaton(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_scores_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "lm.arpa"
    path.write_text(GOOD)
    lm = load_automaton(path)
    assert lm.score_words("le chat") / LN10 == pytest.approx(-0.3 - 0.2 - 1)
    # chat is not a context; le backs off with -0.25, the unknown word is scored as <unk>
    assert lm.score_words("le chien chat") / LN10 == pytest.approx(-0.3 - 0.25 - 1.5 - 0.9 - 1)
    assert lm.score_words("chat", end=False) / LN10 == pytest.approx(-0.5 - 0.9)
    assert lm.score_words("", begin=False) / LN10 == pytest.approx(-1)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_reads_compressed_files_windows_line_ends_and_a_missing_last_newline(tmp_path: Path, suffix, pack) -> None:
    path = tmp_path / f"lm.arpa{suffix}"
    path.write_bytes(pack(GOOD.replace("\n", "\r\n").rstrip().encode()))
    arpa = read_arpa(path)
    assert [len(p) for p in arpa.log10_probs] == [5, 2]
    assert arpa.words.strings() == [b"<unk>", b"<s>", b"</s>", b"le", b"chat"]


@pytest.mark.parametrize("seed", range(6))
def test_equals_kenlm_on_random_models(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = tmp_path / "lm.arpa"
    path.write_text(arpa_text(rng, TARGET, order=2 + seed % 4))
    lm, reference = load_automaton(path), kenlm.Model(str(path))
    for _ in range(200):
        text = " ".join(rng.choices([*TARGET, "oov"], k=rng.randint(0, 8)))
        for begin in (True, False):
            ours = lm.score_words(text, begin, True) / LN10
            assert ours == pytest.approx(reference.score(text, bos=begin, eos=True), abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_pruned_models_where_suffixes_are_missing(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    sections = arpa_text(rng, TARGET, order=4).split("\n\n")
    for order in (2, 3):
        title, *lines = sections[order].split("\n")
        # a line with a back-off weight is the context of longer n-grams, which KenLM and rnnsmt require
        kept = [line for line in lines if line.count("\t") == 2 or rng.random() < 0.9]
        sections[order] = "\n".join([title, *kept])
    counts = [f"ngram {n}={len(section.splitlines()) - 1}" for n, section in enumerate(sections[1:5], 1)]
    path = tmp_path / "lm.arpa"
    path.write_text("\n\n".join(["\n".join(["\\data\\", *counts]), *sections[1:]]))
    lm = load_automaton(path)
    try:
        reference = kenlm.Model(str(path))
    except OSError as error:
        assert "ProbingSizeException" in str(error)
        pytest.skip("KenLM's hash table has no room for the n-grams that are missing here")
    for _ in range(300):
        text = " ".join(rng.choices([*TARGET, "oov"], k=rng.randint(0, 8)))
        assert lm.score_words(text) / LN10 == pytest.approx(reference.score(text), abs=1e-5)


def test_equals_kenlm_on_real_text(moses_fixture: Path, tmp_path: Path) -> None:
    path = tmp_path / "lm.arpa"
    path.write_bytes(lzma.decompress((moses_fixture / "lm.arpa.xz").read_bytes()))
    lm, reference = load_automaton(path), kenlm.Model(str(path))
    assert lm.order == 5
    for number, line in enumerate((moses_fixture / "search" / "moses.cube.1best").read_text().splitlines()):
        text = line.strip() if number % 2 else line.strip().replace(" un ", " xyzzy ")
        assert lm.score_words(text) / LN10 == pytest.approx(reference.score(text), abs=1e-4)
        assert lm.score_words(text, False, False) / LN10 == pytest.approx(
            reference.score(text, bos=False, eos=False), abs=1e-4
        )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("\\data\\", "data", "line 1"),
        ("\\data\\", "# by hand\n\ndata", "line 3"),
        ("ngram 2=2", "ngram 3=2", "line 3"),
        ("ngram 2=2", "ngram two", "line 3"),
        ("ngram 1=5", "ngram 1=6", "specifies 6"),
        ("ngram 1=5", "ngram 1=4", "line 10"),
        ("-0.9\tchat", "-0.9\tle", "line 14"),
        ("-0.9\tchat", "nan\tchat", "line 10"),
        ("-0.9\tchat", "0.9\tchat", "line 10"),
        ("-0.9\tchat", "-inf\tchat", "line 10"),
        ("-0.9\tchat", "-1e308\tchat", "line 10"),
        ("ngram 1=5", "ngram 1=" + "9" * 5000, "line 2"),
        ("ngram 1=5", "ngram \u0661=5", "line 2"),
        ("-0.9\tchat", "chat", "line 10"),
        ("-0.7\tle\t-0.25", "-0.7\tle\tabc", "line 9"),
        ("-0.7\tle\t-0.25", "-0.7\tle\tnan", "line 9"),
        ("-0.2\tle chat", "-0.2\tle chien", "line 14"),
        ("-0.2\tle chat", "-0.2\tchat", "line 14"),
        ("-0.2\tle chat", "-0.2\tle chat le", "line 14"),
        ("-0.2\tle chat", "-0.3\t<s> le", "line 14: the n-gram is a duplicate"),
        ("-0.2\tle chat", "\n \t\n-0.3\t<s> le", "line 16: the n-gram is a duplicate"),
        ("-0.2\tle chat\n", "-0.2\tle chat\n\n\\3-grams:\n-0.1\tchat le chat\n", "line 18: the n-gram has a context"),
        ("-0.9\tchat", "\n-0.9\tle", "line 15: a word of the n-gram is not among"),
        ("\\2-grams:", "\\3-grams:", "line 12"),
        ("\\end\\\n", "", "complete"),
        ("-1\t</s>", "-1\tfin", "</s>"),
    ],
)
def test_malformed_files_are_refused_by_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new)
    if "\\3-grams:\n-0.1" in new:
        text = text.replace("ngram 2=2", "ngram 2=2\nngram 3=1")
    assert words in _refused(tmp_path, text)


def test_an_ngram_in_a_pipe_is_named_without_its_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    text = GOOD.replace("-0.2\tle chat", "-0.3\t<s> le")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(text,))
    writer.start()
    with pytest.raises(InputError, match=r"pipe, 2-gram [12]: the n-gram is a duplicate"):
        load_automaton(tmp_path / "pipe")
    writer.join()


@pytest.mark.parametrize(
    ("old", "new", "unigrams"),
    [
        ("\\data\\", "# made by hand\n\n#\n\\data\\", 5),
        ("\tle chat", "\tle \t  chat", 5),
        ("\tle chat", "  \t le chat", 5),
        ("-0.2\tle chat", " \t-0.2\tle chat", 5),
        ("-0.2\tle chat", "\n  \n-0.2\tle chat\n", 5),
        ("\tle\t-0.25", "\tle\t \t-0.25", 5),
        ("-0.9\tchat", "-0.1\tle\t-0.9\n-0.9\tchat", 6),
        ("-0.9\tchat", "-0.1\t<s>\t-0.9\n-0.9\tchat", 6),
        ("-0.9\tchat", "-0.9\tchat\n-0.1\tchat", 6),
        ("-0.9\tchat", "-0.1\t<unk>\n-0.9\tchat", 6),
        ("-0.9\tchat", "-0.1\t<UNK>\n-0.9\tchat", 6),
    ],
)
def test_what_kenlm_accepts_is_read_as_kenlm_does(tmp_path: Path, old: str, new: str, unigrams: int) -> None:
    assert GOOD.count(old) == 1
    text = GOOD.replace(old, new).replace("ngram 1=5", f"ngram 1={unigrams}")
    (tmp_path / "lm.arpa").write_text(text)
    lm, reference = load_automaton(tmp_path / "lm.arpa"), kenlm.Model(str(tmp_path / "lm.arpa"))
    for sentence in ("le chat", "chat le", "zut le chat le", "chat zut"):
        assert lm.score_words(sentence) / LN10 == pytest.approx(reference.score(sentence), abs=1e-5)


def test_files_that_are_no_arpa_files_are_refused(tmp_path: Path) -> None:
    assert "binary" in _refused(tmp_path, b"mmap lm http://kheafield.com/code format version 5\n\x00")
    assert "expected" in _refused(tmp_path, b"")
    assert "expected" in _refused(tmp_path, b"\x00\xff\xfe\n")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(GOOD.encode())[:-20])
    with pytest.raises(InputError, match="damaged"):
        read_arpa(tmp_path / "cut.gz")
    with pytest.raises(InputError, match="no such file"):
        read_arpa(tmp_path / "missing.arpa")


def test_a_missing_unk_costs_what_kenlm_charges(tmp_path: Path) -> None:
    path = tmp_path / "lm.arpa"
    path.write_text(GOOD.replace("-1.5\t<unk>\t0\n", "").replace("ngram 1=5", "ngram 1=4"))
    assert build_automaton(read_arpa(path)).score_words("zut", begin=False, end=False) / LN10 == pytest.approx(-100)
