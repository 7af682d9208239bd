"""Tokenised BLEU, and the stage ``evaluation score``."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU
from sacrebleu.metrics.bleu import BLEUScore

from rnnsmt.bleu.batch import BatchBleu, corpus_bleu, corpus_statistics, sentence_bleu
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.cli import main

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "é"]), max_size=12).map(" ".join)
SEGMENTS = st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=6)


def segment_statistics(text: str, references: list[str]) -> list[int]:
    return corpus_statistics([text], [[reference] for reference in references])[0].tolist()


def sacrebleu_of(hypotheses: list[str], references: list[list[str]]) -> BLEUScore:
    return BLEU(tokenize="none", smooth_method="none").corpus_score(hypotheses, references)


def test_statistics_by_hand():
    # candidate: the cat the cat sat; the reference has "the cat" once
    assert segment_statistics("the cat the cat sat", ["the cat sat down"]) == [3, 2, 1, 0, 5, 4, 3, 2, 4]


def test_matches_are_clipped_by_the_reference_that_has_most():
    assert segment_statistics("a a a", ["a b", "a a c c c"])[:4] == [2, 1, 0, 0]


@pytest.mark.parametrize(
    ("length", "references", "closest"), [(4, [2, 6], 2), (5, [2, 6], 6), (3, [3, 9], 3), (0, [4, 1], 1)]
)
def test_closest_reference_length_and_the_shorter_on_ties(length, references, closest):
    texts = [" ".join("x" * n) for n in references]
    assert segment_statistics(" ".join("y" * length), texts)[8] == closest


def test_bleu_by_hand():
    # precisions 5/6, 3/5, 2/4, 1/3; 6 words against 7
    score = bleu_of([5, 3, 2, 1, 6, 5, 4, 3, 7])
    assert score.brevity_penalty == pytest.approx(math.exp(-1 / 6))
    assert score.bleu == pytest.approx(100 * math.exp(-1 / 6) * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25)
    assert str(score).startswith("BLEU = 45.48, 83.3/60.0/50.0/33.3 (BP=0.846, ratio=0.857, hyp_len=6, ref_len=7)")


def test_no_smoothing():
    assert corpus_bleu(["a b c x"], [["a b c d"]]).bleu == 0.0


def test_nothing_said_scores_zero():
    assert corpus_bleu([""], [["a b"]]).bleu == 0.0


def test_only_ascii_space_separates_words():
    # a no-break space and a line separator are parts of words, as multi-bleu.perl reads bytes
    assert segment_statistics("a\u00a0b\u2028c \t d", ["a\u00a0b\u2028c d"])[4] == 2


@given(SEGMENTS)
@settings(max_examples=60, deadline=None)
def test_equal_to_sacrebleu_without_tokenisation_and_smoothing(segments):
    hypotheses, first, second = (list(column) for column in zip(*segments, strict=True))
    expected = sacrebleu_of(hypotheses, [first, second])
    ours = corpus_bleu(hypotheses, [first, second])
    assert ours.hypothesis_length == expected.sys_len
    assert list(ours.precisions) == pytest.approx(list(expected.precisions))
    if min(expected.totals) > 0:  # sacreBLEU ends at the longest n-gram length that occurs
        assert ours.bleu == pytest.approx(expected.score)
    assert ours.reference_length == expected.ref_len


@given(SEGMENTS, st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_statistics_of_candidates_are_those_of_sacrebleu(segments, copies):
    hypotheses, first, second = (list(column) for column in zip(*segments, strict=True))
    # the candidates of a sentence: its text, rotated by one word each
    candidates = [
        [" ".join(text.split()[shift:] + text.split()[:shift]) for shift in range(copies)] for text in hypotheses
    ]
    for references in ([first], [first, second]):
        scores = [
            sacrebleu_of([text], [[texts[s]] for texts in references])
            for s, texts_of_s in enumerate(candidates)
            for text in texts_of_s
        ]
        expected = [[*score.counts, *score.totals, score.ref_len] for score in scores]
        assert BatchBleu(references).statistics(candidates).tolist() == expected


def test_batch_takes_sentences_without_candidates():
    statistics = BatchBleu([["a b", "c"]]).statistics([[], ["c"]])
    assert statistics.tolist() == [[1, 0, 0, 0, 1, 0, 0, 0, 1]]


def test_moses_output_of_real_text_equal_to_sacrebleu(moses_fixture, multi30k_tok):
    from rnnsmt.base.reading import read_lines

    hypotheses = list(read_lines(moses_fixture / "search" / "moses.cube.1best"))
    references = list(read_lines(multi30k_tok / "test_2016_flickr.fr.xz"))[: len(hypotheses)]
    assert corpus_bleu(hypotheses, [references]).bleu == pytest.approx(sacrebleu_of(hypotheses, [references]).score)


# The stage


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, str]:
    """Write a hypothesis and a reference, each tokenised and as plain text; return the paths by name."""
    files = {
        "hypothesis": "le chat dort sur le lit .\nil n' est pas là .\n",
        "reference": "le chat dort sur le tapis .\nil n' est pas là .\n",
        "plain_hypothesis": "Le chat dort sur le lit.\nIl n'est pas là.\n",
        "plain_reference": "Le chat dort sur le tapis.\nIl n'est pas là.\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in files}


def command(texts: dict[str, str], output: Path, *more: str) -> list[str]:
    return ["evaluation", "score", "--hypothesis", texts["hypothesis"], "--reference", texts["reference"], "--system",
            "baseline", "--test-set", "test", "--run", "2", "--output", str(output), *more]  # fmt: skip


def test_stage_writes_scores_and_the_decoder_s_report(texts, tmp_path):
    report = tmp_path / "report.json"
    report.write_text('{"unknown_words": 3, "search_cpu_seconds": 1.5, "cpu_seconds_with_loading": 2}')
    output = tmp_path / "scores" / "score.json"
    detok = ["--detok-hypothesis", texts["plain_hypothesis"], "--detok-reference", texts["plain_reference"]]
    assert main(command(texts, output, *detok, "--decode-report", str(report))) == 0
    score = json.loads(output.read_text())
    assert (score["system"], score["test_set"], score["run"], score["segments"]) == ("baseline", "test", 2, 2)
    assert score["tokenized"]["statistics"] == [12, 9, 7, 5, 13, 11, 9, 7, 13]
    assert score["tokenized"]["bleu"] == pytest.approx(100 * (12 / 13 * 9 / 11 * 7 / 9 * 5 / 7) ** 0.25, abs=1e-5)
    assert score["sacrebleu"]["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert score["decode"] == {"unknown_words": 3}, "times would make equal runs differ"
    before = output.read_bytes()
    assert main(command(texts, output, *detok, "--decode-report", str(report))) == 0
    assert output.read_bytes() == before


def test_without_case_the_signature_says_so(texts, tmp_path):
    detok = ["--detok-hypothesis", texts["plain_hypothesis"], "--detok-reference", texts["plain_reference"]]
    found = []
    for more in ([], ["--lowercase"]):
        assert main(command(texts, tmp_path / "score.json", *detok, *more)) == 0
        found.append(json.loads((tmp_path / "score.json").read_text())["sacrebleu"])
        upper = Path(texts["plain_hypothesis"])
        upper.write_text(upper.read_text().upper())
    assert "case:lc" in found[1]["signature"]
    assert found[1]["score"] >= found[0]["score"] > 0


def test_stage_takes_several_references(texts, tmp_path):
    output = tmp_path / "score.json"
    arguments = command(texts, output)
    place = arguments.index("--reference")
    arguments[place + 1 : place + 2] = [texts["reference"], texts["hypothesis"]]
    assert main(arguments) == 0
    assert json.loads(output.read_text())["tokenized"]["bleu"] == pytest.approx(100)


def refused(arguments: list[str], output: Path, capsys, *parts: str) -> None:
    """Check that the command exits with code 2, that the error contains these parts, and that nothing is written."""
    before = sorted(output.parent.rglob("*"))
    assert main(arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    for part in parts:
        assert part in error
    assert sorted(output.parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("hypothesis", b"one line\n", "has more lines"),
        ("hypothesis", b"a\nb\nc\n", "has more lines"),
        ("reference", b"", "has more lines"),
        ("hypothesis", b"\n\n", "all 2 lines are empty"),
        ("reference", b" \n\t\n", "all 2 lines are empty"),
        ("hypothesis", b"a\n\xff\xfe\n", "line 2: not UTF-8"),
    ],
)
def test_stage_refuses_bad_text(texts, tmp_path, capsys, name, content, said):
    Path(texts[name]).write_bytes(content)
    refused(command(texts, tmp_path / "score.json"), tmp_path / "score.json", capsys, said)


def test_stage_refuses_empty_files(texts, tmp_path, capsys):
    for name in ("hypothesis", "reference"):
        Path(texts[name]).write_bytes(b"")
    refused(command(texts, tmp_path / "score.json"), tmp_path / "score.json", capsys, "contains no lines")


def test_stage_refuses_detokenised_text_of_another_length(texts, tmp_path, capsys):
    for name in ("plain_hypothesis", "plain_reference"):
        Path(texts[name]).write_text("One.\n")
    more = ["--detok-hypothesis", texts["plain_hypothesis"], "--detok-reference", texts["plain_reference"]]
    refused(command(texts, tmp_path / "s.json", *more), tmp_path / "s.json", capsys, "has 1 lines", "has 2")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--detok-hypothesis", "x"], "must be used together"),
        (["--decode-report", "missing.json"], "no such file"),
    ],
)
def test_stage_refuses_bad_options(texts, tmp_path, capsys, more, said):
    refused(command(texts, tmp_path / "s.json", *more), tmp_path / "s.json", capsys, said)


def test_empty_segments_are_scored_and_counted(texts, tmp_path, capsys):
    Path(texts["hypothesis"]).write_text("le chat dort sur le lit .\n\n")
    assert main(command(texts, tmp_path / "score.json")) == 0
    assert "1 of 2 lines are empty" in capsys.readouterr().err


def test_sentence_bleu_by_hand():
    # 3/4 words, (1+1)/(3+1), (0+1)/(2+1), (0+1)/(1+1), shorter than the reference by one
    rows = np.array([[3, 1, 0, 0, 4, 3, 2, 1, 5], [0, 0, 0, 0, 4, 3, 2, 1, 4], [0, 0, 0, 0, 0, 0, 0, 0, 4]], np.int32)
    expected = (3 / 4 * 1 / 2 * 1 / 3 * 1 / 2) ** 0.25 * math.exp(1 - 5 / 4)
    assert sentence_bleu(rows).tolist() == pytest.approx([expected, 0, 0])
    whole = np.array([[4, 3, 2, 1, 4, 3, 2, 1, 4]], np.int32)
    assert sentence_bleu(whole).tolist() == [1]
