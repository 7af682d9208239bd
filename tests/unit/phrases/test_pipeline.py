"""Extraction, scoring and reordering: by hand, against the plain-Python twin, with limits, with invalid input."""

import gzip
import platform
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import rnnsmt
from rnnsmt.base.array_file import write_arrays
from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.numbers import put_number
from rnnsmt.base.reading import read_lines
from rnnsmt.cli import main
from rnnsmt.phrases.exporting import export_phrase_table, export_reordering_table
from rnnsmt.phrases.extract_file import ExtractFile, connect
from rnnsmt.phrases.extraction import extract_phrases
from rnnsmt.phrases.lexical_table import count_lexical, write_lexical_tables
from rnnsmt.phrases.packing import Packing
from rnnsmt.phrases.pairs import PhrasePairs, write_extracted_pairs
from rnnsmt.phrases.scores import greater_links, transpose_links
from rnnsmt.phrases.scoring import score_orientations, score_phrases

from . import phrases_twin as twin

# Koehn, Statistical Machine Translation (2010), figure 5.5, German-English
GERMAN = "michael geht davon aus , dass er im haus bleibt"
ENGLISH = "michael assumes that he will stay in the house"
LINKS = "0-0 1-1 2-1 3-1 5-2 6-3 9-4 9-5 7-6 7-7 8-8"


def write_corpus(directory: Path, pairs: list[twin.Pair], name: str = "c") -> list[str]:
    """Write source, target and alignment; return their paths."""
    paths = [directory / f"{name}.{part}" for part in ("f", "e", "a")]
    for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_bytes("".join(line + "\n" for line in lines).encode())
    return [str(path) for path in paths]


def build(
    directory: Path, corpora: list[list[str]], max_length: int = 7, smoothing: str = "none", **limits: int
) -> tuple[list[str], list[str]]:
    """Run all stages on corpora of three paths each; return the lines of both tables."""
    sources, targets, alignments = (list(paths) for paths in zip(*corpora, strict=True))
    files = ("x.parquet", "e2f", "f2e", "pairs", "scores", "orders", "pt", "rt")
    names = {name: str(directory / name) for name in files}
    counts, _ = count_lexical(sources, targets, alignments)
    write_lexical_tables(counts, names["e2f"], names["f2e"])
    extract_phrases(sources, targets, alignments, names["x.parquet"], max_length, **limits)
    write_extracted_pairs(ExtractFile(names["x.parquet"]), names["pairs"])
    extracted = names["x.parquet"], names["pairs"]
    score_phrases(*extracted, names["e2f"], names["f2e"], names["scores"], smoothing=smoothing, **limits)
    score_orientations(*extracted, names["orders"], **limits)
    store = PhrasePairs(names["pairs"])
    export_phrase_table(store, names["scores"], names["pt"])
    export_reordering_table(store, names["orders"], names["rt"])
    return list(read_lines(names["pt"])), list(read_lines(names["rt"]))


def export(directory: Path, *options: str) -> list[str]:
    """Return the command that exports ``pairs``, ``scores`` and ``orders`` as ``pt.gz`` and ``rt.gz``."""
    store = [f"--{name}={directory / file}" for name, file in (("pairs", "pairs"), ("scores", "scores"))]
    store += [f"--reordering={directory / 'orders'}", f"--output-phrase-table={directory / 'pt.gz'}"]
    return ["phrases", "export", *store, f"--output-reordering-table={directory / 'rt.gz'}", *options]


def test_koehns_example(tmp_path):
    pairs = [(GERMAN, ENGLISH, LINKS)]
    lines, _ = build(tmp_path, [write_corpus(tmp_path, pairs)])
    found = {tuple(line.split(" ||| ")[:2]) for line in lines}
    expected = {
        ("michael", "michael"),
        ("michael geht davon aus", "michael assumes"),
        ("michael geht davon aus ,", "michael assumes"),
        ("michael geht davon aus , dass", "michael assumes that"),
        ("michael geht davon aus , dass er", "michael assumes that he"),
        ("geht davon aus", "assumes"),
        ("geht davon aus ,", "assumes"),
        ("geht davon aus , dass", "assumes that"),
        ("geht davon aus , dass er", "assumes that he"),
        ("dass", "that"),
        (", dass", "that"),
        ("dass er", "that he"),
        (", dass er", "that he"),
        ("er", "he"),
        ("im", "in the"),
        ("haus", "house"),
        ("im haus", "in the house"),
        ("im haus bleibt", "will stay in the house"),
        ("bleibt", "will stay"),
        ("er im haus bleibt", "he will stay in the house"),
        ("dass er im haus bleibt", "that he will stay in the house"),
        (", dass er im haus bleibt", "that he will stay in the house"),
    }
    assert found == expected


def test_orientations_by_hand(tmp_path):
    # b and c change their order
    _, lines = build(tmp_path, [write_corpus(tmp_path, [("a b c", "x z y", "0-0 1-2 2-1")])])
    table = {tuple(line.split(" ||| ")[:2]): line.split(" ||| ")[2] for line in lines}
    mono, swap, other = "0.6 0.2 0.2", "0.2 0.6 0.2", "0.2 0.2 0.6"
    assert table["a", "x"] == f"{mono} {other}"
    assert table["b", "y"] == f"{swap} {other}"
    assert table["c", "z"] == f"{other} {swap}"
    assert table["b c", "z y"] == f"{mono} {mono}"
    assert table["a b c", "x z y"] == f"{mono} {mono}"


def test_the_same_alignment_twice_is_once(tmp_path):
    corpus = write_corpus(tmp_path, random_pairs(80, 6, 12, 8))
    once = build(tmp_path, [corpus])
    _, reordering = build(tmp_path, [corpus, corpus])
    assert reordering == once[1]


def test_reordering_of_two_alignments_by_hand(tmp_path):
    # both link b to y; in one, the preceding word is linked monotonically, in the other it has no link
    first = write_corpus(tmp_path, [("a b", "x y", "0-0 1-1")], "one")
    second = write_corpus(tmp_path, [("a b", "x y", "1-1")], "two")
    second[:2] = first[:2]
    _, lines = build(tmp_path, [first, second])
    table = {tuple(line.split(" ||| ")[:2]): line.split(" ||| ")[2] for line in lines}
    # monotone relative to a-x in one of two: (1/2 + 1/2) / (1 + 3/2); both end a sentence: (1 + 1/2) / 2.5
    assert table["b", "y"] == "0.4 0.2 0.4 0.6 0.2 0.2"


def test_scores_by_hand(tmp_path):
    pairs = [("a", "x", "0-0"), ("a", "y", "0-0"), ("a", "x", "0-0"), ("b", "x", "0-0")]
    lines, _ = build(tmp_path, [write_corpus(tmp_path, pairs)])
    # p(a|x) = 2/3, p(x|a) = 2/3; the lexical tables have seven decimals
    assert lines == [
        "a ||| x ||| 0.666667 0.666667 0.666667 0.666667 ||| 0-0 ||| 3 3 2 ||| |||",
        "a ||| y ||| 1 1 0.333333 0.333333 ||| 0-0 ||| 1 3 1 ||| |||",
        "b ||| x ||| 0.333333 0.333333 1 1 ||| 0-0 ||| 3 1 1 ||| |||",
    ]


WORDS = ["a", "b", "!", "}", "~x", "é", "ab", "NULL", "&apos;", "日本"]


@st.composite
def corpora(draw):
    pairs = []
    for _ in range(draw(st.integers(1, 12))):
        source = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9))
        target = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9))
        link = st.tuples(st.integers(0, len(source) - 1), st.integers(0, len(target) - 1))
        links = draw(st.lists(link, min_size=len(pairs) == 0, max_size=10, unique=True))
        pairs.append((" ".join(source), " ".join(target), " ".join(f"{i}-{j}" for i, j in links)))
    return pairs


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=corpora(), max_length=st.integers(1, 8))
def test_equals_the_plain_twin(tmp_path, pairs, max_length):
    expected = twin.tables(pairs, max_length)
    assume(expected[0])
    lines = build(tmp_path, [write_corpus(tmp_path, pairs)], max_length)
    assert lines[0] == expected[0]
    assert lines[1] == expected[1]


def random_pairs(n: int, seed: int, words: int = 30, longest: int = 14) -> list[twin.Pair]:
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(n):
        length = int(rng.integers(1, longest))
        source = [f"s{w}" for w in rng.zipf(1.3, length) % words]
        target = [f"t{w[1:]}" for w in source]
        swap = int(rng.integers(0, length))
        order = [*range(swap), *range(length - 1, swap - 1, -1)]
        links = [f"{i}-{j}" for j, i in enumerate(order) if rng.random() < 0.8]
        pairs.append((" ".join(source), " ".join(target[i] for i in order), " ".join(links)))
    return pairs


def test_kneser_ney_by_hand(tmp_path):
    # counts: a-x 2, a-y 1, b-x 1; one pair seen twice, two seen once: share 2 / (2 + 2) = 1/2, D(1) = 1 - 2 / 2 * 1/2
    pairs = [("a", "x", "0-0"), ("a", "y", "0-0"), ("a", "x", "0-0"), ("b", "x", "0-0")]
    lines, _ = build(tmp_path, [write_corpus(tmp_path, pairs)], smoothing="kneser-ney")
    scores = {tuple(line.split(" ||| ")[:2]): line.split(" ||| ")[2].split() for line in lines}
    # D(1) = 0.5, D(2) = 2 (none is seen three times); from x: (2 - 2) + (1 - 0.5), 2.5 is shared out as a 2 : b 1 of 3
    assert float(scores["a", "x"][0]) == pytest.approx((0 + 2.5 * 2 / 3) / 3, rel=1e-5)
    assert float(scores["b", "x"][0]) == pytest.approx((0.5 + 2.5 * 1 / 3) / 3, rel=1e-5)
    assert float(scores["a", "y"][2]) == pytest.approx((0.5 + 2.5 * 1 / 3) / 3, rel=1e-5)


@pytest.mark.parametrize("alignments", [1, 2, 3])
def test_kneser_ney_equals_the_plain_twin(tmp_path, monkeypatch, alignments):
    monkeypatch.setattr("rnnsmt.phrases.extract_file.BATCH_ROWS", 97)
    corpora = [random_pairs(120, 5 + n, 12, 6) for n in range(alignments)]
    paths = []
    for n, pairs in enumerate(corpora):  # the same text with other links
        text = [(a, b, links) for (a, b, _), (_, _, links) in zip(corpora[0], pairs, strict=True)]
        fitting = [(a, b, " ".join(k for k in c.split() if fits(k, a, b))) for a, b, c in text]
        paths.append(write_corpus(tmp_path, fitting, f"c{n}"))
        paths[-1][:2] = paths[0][:2]
    lines, _ = build(tmp_path, paths, smoothing="kneser-ney")
    fields = [line.split(" ||| ") for line in lines]
    expected = twin.kneser_ney({(f[0], f[1]): int(f[4].split()[2]) for f in fields}, alignments)
    sums: dict[str, float] = {}
    for source, target, scores, *_ in fields:
        found = [float(score) for score in scores.split()]
        assert (found[0], found[2]) == pytest.approx(expected[source, target], rel=1e-5)
        sums[source] = sums.get(source, 0.0) + found[2]
    assert max(sums.values()) <= 1 + 1e-4


def fits(link: str, source: str, target: str) -> bool:
    """Return whether both ends of a link lie within the sentences."""
    i, j = map(int, link.split("-"))
    return i < len(source.split()) and j < len(target.split())


def test_several_corpora_are_one(tmp_path):
    pairs = random_pairs(60, 1)
    whole = build(tmp_path, [write_corpus(tmp_path, pairs)])
    parts = [write_corpus(tmp_path, pairs[:25], "one"), write_corpus(tmp_path, pairs[25:], "two")]
    assert build(tmp_path, parts) == whole == twin.tables(pairs, 7)


def test_blocks_batches_and_buffers_do_not_show(tmp_path, monkeypatch):
    pairs = random_pairs(60, 2)
    corpus = [write_corpus(tmp_path, pairs)]
    whole = build(tmp_path, corpus)
    monkeypatch.setattr("rnnsmt.phrases.aligned_text.BLOCK_TOKENS", 40)
    monkeypatch.setattr("rnnsmt.phrases.extraction.EXTRACTED_TOKENS", 40)
    monkeypatch.setattr("rnnsmt.phrases.extract_file.BATCH_ROWS", 17)
    monkeypatch.setattr("rnnsmt.phrases.exporting.BUFFER_BYTES", 64)
    assert build(tmp_path, corpus) == whole


def test_threads_and_memory_do_not_show(tmp_path):
    source, target, alignment = write_corpus(tmp_path, random_pairs(3000, 3, 300))
    results = []
    for threads, memory in (("1", "2000"), ("2", "2000"), ("1", "50")):
        limits = ["--threads", threads, "--memory-mb", memory]
        x, e2f, f2e, pt, rt = (str(tmp_path / name) for name in ("x.parquet", "e2f", "f2e", "pt.gz", "rt.gz"))
        pairs, scores, orders = (str(tmp_path / name) for name in ("pairs", "scores", "orders"))
        text = ["--source", source, "--target", target, "--alignment", alignment]
        assert main(["phrases", "lexical", *text, "--output-e2f", e2f, "--output-f2e", f2e]) == 0
        assert main(["phrases", "extract", *text, "--output", x, "--output-pairs", pairs, *limits]) == 0
        extracted = ["--extract", x, "--pairs", pairs]
        score = ["phrases", "score", *extracted, "--lex-e2f", e2f, "--lex-f2e", f2e, "--output", scores, *limits]
        assert main(score) == 0
        assert main(["phrases", "reordering", *extracted, "--output", orders, *limits]) == 0
        assert main(export(tmp_path, "--threads", threads)) == 0
        results.append([Path(path).read_bytes() for path in (x, e2f, f2e, scores, orders, pt, rt)])
    assert results[0] == results[1] == results[2]


def test_long_sentences_and_long_words(tmp_path):
    word = "w" * 3_000_000
    words = [f"v{n}" for n in range(700)]
    pairs = [(" ".join(words), " ".join(words), " ".join(f"{n}-{n}" for n in range(700))), (word, word, "0-0")]
    lines, _ = build(tmp_path, [write_corpus(tmp_path, pairs)])
    assert len(lines) == sum(700 - n for n in range(7)) + 1
    assert f"{word} ||| {word} ||| 1 1 1 1 ||| 0-0 ||| 1 1 1 ||| |||" in lines


def test_large_vocabularies_take_more_keys():
    for words, max_length, keys in ((10, 7, 1), (500, 7, 1), (10_000, 7, 2), (40_000, 7, 3), (40_000, 10, 4)):
        packing = Packing([b"%d" % n for n in range(words)], max_length)
        assert packing.keys == keys
        assert packing.width * packing.per_key <= 63
        assert 2**packing.width > len(packing.words)


def test_only_blanks_separate_words(tmp_path):
    lines, _ = build(tmp_path, [write_corpus(tmp_path, [(" a\u00a0b  c", "50\u202f000 x\u2028y ", "0-0 1-1")])])
    assert [line.split(" ||| ")[:2] for line in lines] == [
        ["a\u00a0b c", "50\u202f000 x\u2028y"],
        ["a\u00a0b", "50\u202f000"],
        ["c", "x\u2028y"],
    ]


def test_aligner_and_extraction_see_the_same_words(tmp_path, capsys):
    source, target, alignment = write_corpus(tmp_path, [("a b", "50\u00a0000 x", "")] * 20)
    forward, reverse = str(tmp_path / "fw"), str(tmp_path / "rv")
    text = ["--source", source, "--target", target]
    for direction, output in (("forward", forward), ("reverse", reverse)):
        assert main(["align", "words", *text, "--direction", direction, "--output", output]) == 0
    links = ["--forward", forward, "--reverse", reverse, "--heuristic", "union", "--output", alignment]
    assert main(["align", "symmetrize", *links]) == 0
    assert main(["phrases", "extract", *text, "--alignment", alignment, "--output", str(tmp_path / "x")]) == 0


def test_repeated_links_count_once(tmp_path, capsys):
    source, target, alignment = write_corpus(tmp_path, [("a b", "x y", "0-0 1-1 0-0")])
    text = ["--source", source, "--target", target, "--alignment", alignment]
    assert main(["phrases", "extract", *text, "--output", str(tmp_path / "x")]) == 0
    assert "duplicate links ignored 1" in capsys.readouterr().err


@given(st.floats(1e-280, 1e9) | st.floats(0, 1) | st.integers(1, 10**6).map(lambda n: 1 / n))
def test_numbers_are_printed_as_c_does(value):
    buffer = np.zeros(32, np.uint8)
    for number in (value, float(np.float32(value))):
        if 0 < number < 1e-280:
            continue
        end = put_number(buffer, 0, number)
        assert buffer[:end].tobytes().decode() == f"{number:.6g}"


@pytest.mark.parametrize(
    "value", [0.0, 1.0, 1 / 1024, 0.5, 999999.5, 0.9999995, 0.99999949999, 999.999499999, 9.999995, 1e-4, 9.99999999e-5]
)
def test_numbers_at_the_edges(value):
    buffer = np.zeros(32, np.uint8)
    assert buffer[: put_number(buffer, 0, value)].tobytes().decode() == f"{value:.6g}"


links_bits = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1)


@pytest.fixture(scope="module")
def compiled_links():
    """Compile the kernels before the hypothesis test, whose examples have a time limit."""
    greater_links(1, 1)
    transpose_links(1)


@pytest.mark.usefixtures("compiled_links")
@given(links_bits, links_bits)
def test_ties_are_broken_like_a_vector_of_sets(a, b):
    bits = [sum(1 << (8 * j + i) for i, j in links) for links in (a, b)]
    lists = [[sorted(i for i, jj in links if jj == j) for j in range(8)] for links in (a, b)]
    assert greater_links(*bits) == (lists[0] > lists[1])
    assert transpose_links(bits[0]) == sum(1 << (8 * i + j) for i, j in a)


BAD_CORPORA = {
    "a link out of the source": (
        ("a b", "x", "2-0"),
        "c.a, line 2: a link points beyond the end of the sentence: '2-0'",
    ),
    "a link out of the target": (
        ("a b", "x", "0-1"),
        "c.a, line 2: a link points beyond the end of the sentence: '0-1'",
    ),
    "no dash": (("a", "x", "00"), "c.a, line 2: not a list of links i-j: '00'"),
    "a negative link": (("a", "x", "0--1"), "c.a, line 2: not a list of links i-j: '0--1'"),
    "a possible link": (("a", "x", "0?0"), "c.a, line 2: not a list of links i-j: '0?0'"),
    "three numbers": (("a", "x", "0-0-0"), "c.a, line 2: not a list of links i-j: '0-0-0'"),
    "a huge number": (("a", "x", "0-99999999999999999999"), "c.a, line 2: not a list of links i-j"),
    "a half link": (("a", "x", "0-"), "c.a, line 2: not a list of links i-j: '0-'"),
    "a form feed": (("a", "x", "\f"), "c.a, line 2: not a list of links i-j: ' ' (the sentences"),
    "a good link, then a bad one": (("a", "x", "0-0 x-0"), "c.a, line 2: not a list of links i-j: 'x-0'"),
    "the separator in the source": (("a ||| b", "x", "0-0"), "c.f, line 2: contains |||"),
    "the separator in a word": (("a", "x|||", "0-0"), "c.e, line 2: contains |||"),
    "NUL": (("a", "x\0y", "0-0"), "c.e, line 2: control character U+0000"),
    "a link with an empty source": (("", "x", "0-0"), "c.a, line 2: a link points beyond the end of the sentence"),
}


@pytest.mark.parametrize("stage", ["extract", "lexical"])
@pytest.mark.parametrize("case", BAD_CORPORA)
def test_bad_lines_are_named(tmp_path, capsys, case, stage):
    pair, message = BAD_CORPORA[case]
    run_bad(tmp_path, capsys, stage, write_corpus(tmp_path, [("a", "x", "0-0"), pair]), message)


def run_bad(directory: Path, capsys, stage: str, paths: list[str], message: str) -> None:
    """Run a stage that must fail with an error of one line and write nothing."""
    before = set(directory.rglob("*"))
    arguments = ["--source", paths[0], "--target", paths[1], "--alignment", *paths[2:]]
    out = str(directory / "out" / "o")
    outputs = ["--output", out] if stage == "extract" else ["--output-e2f", out, "--output-f2e", out + "2"]
    assert main(["phrases", stage, *arguments, *outputs]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert message in errors[0]
    assert {path for path in directory.rglob("*") if not path.is_dir()} <= before


@pytest.mark.parametrize("stage", ["extract", "lexical"])
def test_bad_files_are_named(tmp_path, capsys, stage):
    good = [("a", "x", "0-0"), ("b", "y", "0-0")]
    source, target, alignment = write_corpus(tmp_path, good)
    short = write_corpus(tmp_path, good[:1], "short")
    run_bad(tmp_path, capsys, stage, [source, target, short[2]], "short.a ended after line 1, but")
    run_bad(tmp_path, capsys, stage, [short[0], target, alignment], "short.f ended after line 1, but")
    run_bad(tmp_path, capsys, stage, [source, target, alignment, alignment], "--alignment 2; specify the same number")
    run_bad(tmp_path, capsys, stage, [str(tmp_path / "none"), target, alignment], "none: no such file")
    run_bad(tmp_path, capsys, stage, [str(tmp_path), target, alignment], "is a directory")
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    run_bad(tmp_path, capsys, stage, [str(empty)] * 3, "contains no sentence pair; the file is empty")
    latin = tmp_path / "latin"
    latin.write_bytes("a\né\n".encode("latin-1"))
    run_bad(tmp_path, capsys, stage, [source, str(latin), alignment], "latin, line 2: not UTF-8 at byte 0")
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(b"a b c d e f\n" * 1000)[:-12])
    run_bad(tmp_path, capsys, stage, [str(cut), target, alignment], "cut.gz")


def test_no_link_at_all(tmp_path, capsys):
    run_bad(tmp_path, capsys, "extract", write_corpus(tmp_path, [("a", "x", "")]), "no phrase pair is consistent")


def test_bad_extract_and_lexicon(tmp_path, capsys):
    corpus = write_corpus(tmp_path, [("a b", "x y", "0-0 1-1")])
    build(tmp_path, [corpus])
    x, e2f, f2e, pairs = (str(tmp_path / name) for name in ("x.parquet", "e2f", "f2e", "pairs"))
    out = tmp_path / "out.gz"
    capsys.readouterr()

    def score(message: str, extract: str = x, table: str = e2f) -> None:
        arguments = ["--extract", extract, "--pairs", pairs, "--lex-e2f", table, "--lex-f2e", f2e, "--output", str(out)]
        assert main(["phrases", "score", *arguments]) == 2
        errors = capsys.readouterr().err.splitlines()
        assert len(errors) == 1
        assert message in errors[0]
        assert not out.exists()
        assert not list(tmp_path.glob(".tmp*"))

    score("none: no such file", extract=str(tmp_path / "none"))
    score("e2f: not a file of `phrases extract`", extract=e2f)
    bad = tmp_path / "bad"
    for line in (b"a x", b"a x nan", b"a x 1.5", b"a x -1", b"a x y z", b"a  x 1", b""):
        bad.write_bytes(b"a x 1.0\n" + line + b"\n")
        score("bad, line 2", table=str(bad))
    score("no such file", table=str(tmp_path / "none"))
    for smoothing in ("0", "-1", "nan", "inf"):
        arguments = ["--extract", x, "--pairs", pairs, "--output", str(out), "--smoothing", smoothing]
        with pytest.raises(SystemExit, match="2"):
            main(["phrases", "reordering", *arguments])
        assert "--smoothing" in capsys.readouterr().err
        assert not out.exists()


def test_order_and_repetition_of_links_have_no_effect(tmp_path):
    """Links of other programs, unsorted and repeated, give the bytes of the sorted distinct ones."""
    pairs = random_pairs(200, 4, 30)
    draw = random.Random(1)
    mixed = []
    for source, target, links in pairs:
        several = links.split() + draw.choices(links.split(), k=2) if links else []
        mixed.append((source, target, " ".join(draw.sample(several, len(several)))))
    written = []
    for name, corpus in (("sorted", pairs), ("mixed", mixed)):
        (tmp_path / name).mkdir()
        build(tmp_path / name, [write_corpus(tmp_path / name, corpus)])
        written.append([(tmp_path / name / file).read_bytes() for file in ("x.parquet", "e2f", "f2e", "pt", "rt")])
    assert mixed != pairs
    assert written[0] == written[1]


def test_both_doors_write_the_same_bytes(tmp_path):
    """The commands, and the functions with files and with lists, write the same tables, smoothed by default."""
    pairs = random_pairs(100, 5, 30)
    source, target, alignment = write_corpus(tmp_path, pairs)
    names = ("e2f", "f2e", "x.parquet", "pairs", "scores", "orders", "pt.gz", "rt.gz")
    e2f, f2e, x, pairs_file, scores, orders, *_ = (str(tmp_path / name) for name in names)
    text = ["--source", source, "--target", target, "--alignment", alignment]
    assert main(["phrases", "lexical", *text, "--output-e2f", e2f, "--output-f2e", f2e]) == 0
    extracted = ["--extract", x, "--pairs", pairs_file]
    assert main(["phrases", "extract", *text, "--output", x, "--output-pairs", pairs_file, "--max-length", "5"]) == 0
    assert main(["phrases", "score", *extracted, "--lex-e2f", e2f, "--lex-f2e", f2e, "--output", scores]) == 0
    assert main(["phrases", "reordering", *extracted, "--output", orders]) == 0
    assert main(export(tmp_path)) == 0

    lists = [list(side) for side in zip(*pairs, strict=True)]
    links = [[tuple(map(int, link.split("-"))) for link in line.split()] for line in lists[2]]
    for number, inputs in enumerate(((source, Path(target), alignment), (*lists[:2], links))):
        directory = tmp_path / str(number)
        lexical = rnnsmt.phrases.lexical(*inputs, directory / "e2f", directory / "f2e")
        x, store = directory / "x.parquet", directory / "pairs"
        rnnsmt.phrases.extract(*inputs, x, store, max_length=5)
        scored = rnnsmt.phrases.score(x, store, lexical.e2f, lexical.f2e, directory / "scores")
        ordered = rnnsmt.phrases.reordering(x, store, directory / "orders")
        tables = {"reordering": ordered, "output_reordering_table": directory / "rt.gz"}
        rnnsmt.phrases.export(store, scored, directory / "pt.gz", **tables)
        for name in names:
            assert (directory / name).read_bytes() == (tmp_path / name).read_bytes(), name
        assert scored.figures["phrase pairs"] == len(list(read_lines(directory / "pt.gz")))

    for arguments, message in (
        ({"max_length": 9}, "^max_length 9: must be at most 8"),
        ({"alignment": [[(0, 99)]] * 100}, "^alignment, line 1: a link points beyond the end of the sentence"),
        ({"alignment": ["0-0"]}, "^alignment: must be a path, or a list of links"),
        ({"source": ["a"]}, "^source ended after line 1, but target has more lines"),
    ):
        texts = {"source": lists[0], "target": lists[1], "alignment": links}
        with pytest.raises(InputError, match=message):
            rnnsmt.phrases.extract(**texts | {"output": tmp_path / "no.parquet"} | arguments)


def test_filtered_and_augmented_in_python(tmp_path):
    pairs = [("a b", "x y", "0-0 1-1"), ("c", "z", "0-0")]
    corpus = write_corpus(tmp_path, pairs)
    build(tmp_path, [corpus])
    table, reordering = tmp_path / "pt", tmp_path / "rt"
    kept = rnnsmt.phrases.filter(["c"], table, reordering, tmp_path / "kept")
    assert kept.figures["phrase lines kept"] == 1
    with write_arrays(tmp_path / "column", {"score": np.float32}) as out:
        out.append("score", np.log([0.5] * len(list(read_lines(table)))))
    columns = [[tmp_path / "column"]]
    whole = rnnsmt.phrases.augment(columns, tmp_path / "more", phrase_table=table)
    assert [line.split(" ||| ")[2].split()[-1] for line in read_lines(whole.path)] == ["0.5"] * whole.figures["lines"]
    with pytest.raises(InputError, match=r"^output .*column: used twice"):
        rnnsmt.phrases.augment(columns, columns[0][0], phrase_table=table)


def test_missing_lexicon_entries_are_counted(tmp_path, capsys):
    corpus = write_corpus(tmp_path, [("a b", "x y", "0-0 1-1")])
    build(tmp_path, [corpus])
    (tmp_path / "e2f").write_text("a x 1.0\n")
    arguments = ["--extract", str(tmp_path / "x.parquet"), "--pairs", str(tmp_path / "pairs")]
    arguments += ["--lex-e2f", str(tmp_path / "e2f")]
    arguments += ["--lex-f2e", str(tmp_path / "f2e"), "--output", str(tmp_path / "o")]
    assert main(["phrases", "score", *arguments]) == 0
    # b given y, in the pairs 'b, y' and 'a b, x y'
    assert "(probability 1) 2" in capsys.readouterr().err


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_stage_leaves_nothing(tmp_path, sent):
    """A stage that is stopped while it reads, or during its longest query, leaves no files."""
    paths = write_corpus(tmp_path, random_pairs(20_000, 4, 3000))
    arguments = ["--source", paths[0], "--target", paths[1], "--alignment", paths[2]]
    out = tmp_path / "out"
    command = [sys.executable, "-m", "rnnsmt", "phrases", "extract", *arguments, "--output", str(out / "x.parquet")]
    for moment in ("spool", "counting"):
        # child processes inherit that SIGINT is ignored if the tests run in the background
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        )
        assert process.stderr
        if moment == "spool":
            while process.poll() is None and not list(out.glob(".tmp*/spool")):
                time.sleep(0.02)
        else:
            assert any(moment in line.decode() for line in process.stderr)
            time.sleep(0.05)
        process.send_signal(sent)
        errors = process.communicate(timeout=60)[1]
        assert process.returncode == 128 + sent
        assert b"Traceback" not in errors
        assert list(out.iterdir()) == []


def test_a_killed_run_is_cleared_away(tmp_path):
    paths = write_corpus(tmp_path, [("a", "x", "0-0")])
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / "out" / f".tmp-{platform.node()}-{ended.pid}-x.parquet.scratch" / "spool"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    arguments = ["--source", paths[0], "--target", paths[1], "--alignment", paths[2]]
    assert main(["phrases", "extract", *arguments, "--output", str(tmp_path / "out" / "x.parquet")]) == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["x.parquet"]


@pytest.mark.parametrize(("memory_mb", "limit"), [(3200, 2622), (450, 100), (1, 100)])
def test_the_memory_limit_of_duckdb(tmp_path, memory_mb, limit):
    """Leave memory to the process itself and to what duckdb allocates in addition to its buffers."""
    with connect(str(tmp_path), 1, memory_mb) as connection:
        found = connection.execute("SELECT value FROM duckdb_settings() WHERE name = 'memory_limit'").fetchone()
    number, unit = found[0].split(" ")
    assert float(number) * {"MiB": 1 << 20, "GiB": 1 << 30}[unit] == pytest.approx(limit * 1e6, rel=0.03)
