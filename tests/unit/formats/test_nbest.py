"""n-best lists in Moses' format, with and without the features of an ini."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnsmt.base.errors import InputError
from rnnsmt.formats.ini import MosesIni
from rnnsmt.formats.nbest import (
    fields_of,
    nbest_lines,
    read_details,
    read_lists,
    read_nbest,
    read_segmentation,
    segmentation,
    with_feature,
)

NBEST = """0 ||| a b ||| LM0= -1 TM0= 1 2 ||| -3.5 ||| 0=0
0 ||| a  c ||| LM0= -2 TM0= 1 3 ||| -4
2 ||| d ||| LM0= 0 TM0= 1 3 ||| -4
"""


def test_nbest_file(tmp_path):
    path = tmp_path / "nbest"
    path.write_text(NBEST)
    names, candidates = read_nbest(path)
    found = list(candidates)
    assert names == ["LM0:0", "TM0:0", "TM0:1"]
    assert [one.sentence for one in found] == [0, 0, 2]
    assert found[1].text == "a c"
    assert found[0].features == (-1.0, 1.0, 2.0)
    assert found[0].score == -3.5


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "is this an n-best list"),
        ("0 ||| a ||| LM0= 1", "expected .number .* score.; is this"),
        ("x ||| a ||| LM0= -1 TM0= 1 2 ||| 0", "expected .number"),
        ("0 ||| a ||| LM0= -1 TM0= 1 y ||| 0", "could not convert"),
        ("0 ||| a ||| LM0= -1 TM0= 1 nan ||| 0", "not finite"),
        ("0 ||| a ||| LM0= -1 TM0= 1 ||| 0", "the features differ"),
        ("0 ||| a ||| LM0= -1 XX0= 1 2 ||| 0", "the features differ"),
        ("-1 ||| a ||| LM0= -1 TM0= 1 2 ||| 0", "expected .number"),
        ("1 ||| a ||| LM0= -1 TM0= 1 2 ||| 0", "sort the list"),
    ],
)
def test_bad_nbest_lines(tmp_path, line, said):
    path = tmp_path / "nbest"
    path.write_text(NBEST + line + "\n")
    with pytest.raises(InputError, match=f"line 4: .*{said}"):
        list(read_nbest(path)[1])


def test_words_are_separated_by_spaces_only(tmp_path):
    path = tmp_path / "nbest"
    path.write_text(
        "0 ||| 10\u00a0000  x\u2009y  ||| LM0= -1 ||| -1\n0 ||| 5\u00a0% ||| LM0= -2 ||| -2\n", encoding="utf-8"
    )
    assert [one.text for one in read_nbest(path)[1]] == ["10\u00a0000 x\u2009y", "5\u00a0%"]


@pytest.mark.parametrize(
    "text",
    [
        "the house |0-1| is |2-2| old |3-3| ",
        "the house |0-1,wa=0-0 1-1 ,total=-1.5,LM0= -3.2 WordPenalty0= -2| is old |2-3,wa=0-0 ,total=-1,LM0= -1| ",
    ],
)
def test_segmentation_marks_are_no_words(tmp_path, text):
    """Moses writes them with -t and -tt; other words with bars stay."""
    path = tmp_path / "nbest"
    path.write_text(f"0 ||| {text}||| LM0= -1 ||| -1 ||| 0-1=0-1\n0 ||| x |0-1|y | ||| LM0= -1 ||| -1\n")
    assert [one.text for one in read_nbest(path)[1]] == ["the house is old", "x |0-1|y |"]


def test_empty_nbest_file(tmp_path):
    path = tmp_path / "nbest"
    path.write_text("")
    with pytest.raises(InputError, match="is empty"):
        read_nbest(path)


INI = """[feature]
UnknownWordPenalty
PhraseDictionaryMemory name=TM0 num-features=2 path=pt
KENLM name=LM0 path=lm
[weight]
TM0= 0.5 0.25
LM0= 0.125
"""


def lists(tmp_path, ini=INI, sentences=4, nbest=NBEST):
    (tmp_path / "ini").write_text(ini)
    (tmp_path / "nbest").write_text(nbest)
    source = [text for text, _ in zip(["s t", "", "u", " "], range(sentences), strict=False)]
    return read_lists(tmp_path / "nbest", MosesIni.read(tmp_path / "ini"), source)


def test_lists_have_no_fixed_scores(tmp_path):
    ini = INI.replace("num-features=2", "num-features=4 tuneable-components=1,0,0,1").replace("0.25", "0.1 0.1 0.25")
    ini = ini.replace("KENLM", "Distortion name=D0 tuneable=false\nKENLM").replace("LM0= ", "D0= 0.3\nLM0= ")
    found, plain = lists(tmp_path, ini), lists(tmp_path)
    assert found.names == ["TM0:0", "TM0:3", "LM0:0"]
    assert [rows.tolist() for rows in found.features] == [rows.tolist() for rows in plain.features]


def test_lists_in_the_order_of_the_ini(tmp_path):
    found = lists(tmp_path)
    assert found.names == ["TM0:0", "TM0:1", "LM0:0"]
    assert found.texts == [["a b", "a c"], [""], ["d"], [""]]
    assert [rows.tolist() for rows in found.features] == [
        [[1, 2, -1], [1, 3, -2]], [[0, 0, 0]], [[1, 3, 0]], [[0, 0, 0]]
    ]  # fmt: skip
    assert all(rows.dtype == np.float64 for rows in found.features)


@pytest.mark.parametrize(
    ("ini", "sentences", "nbest", "said"),
    [
        (INI, 2, NBEST, r"sentence 2 \(0-based\), but the source text has 2 lines"),
        (INI.replace("LM0", "LM1"), 4, NBEST, r"lacks LM1:0 of .*ini and has LM0:0, which .*ini lacks; use the ini"),
        (INI.replace("num-features=2", "num-features=3").replace("0.25", "0.25 1"), 4, NBEST, "lacks TM0:2 of"),
        (INI, 4, NBEST.replace(" ||| -", " CSLM0= -3 ||| -"), "has CSLM0:0, which .*ini lacks"),
        (INI, 4, NBEST.replace("LM0=", "TM0= 1 2 LM0="), "contains a duplicate feature"),
        (INI, 4, "", "is empty"),
    ],
)
def test_lists_that_do_not_fit(tmp_path, ini, sentences, nbest, said):
    with pytest.raises(InputError, match=said):
        lists(tmp_path, ini, sentences, nbest)


def test_what_is_written_is_read(tmp_path):
    names = ["LM0:0", "TM0:0", "TM0:1", "A:B0:0"]
    features = np.array([[-1.5, 0.25, 3, 1e-7], [2, 0, -1e9, 0]])
    lines = list(nbest_lines(3, names, ["a b", ""], features, np.array([1.0, -2.0]), [[(0, 1, 2)], [(2, 2, 0)]]))
    assert lines[0] == "3 ||| a b  ||| LM0= -1.5 TM0= 0.25 3 A:B0= 1e-07 ||| 1 ||| 0-1=0-1"
    path = tmp_path / "nbest"
    path.write_text("\n".join(lines) + "\n")
    found, candidates = read_nbest(path)
    assert found == names
    assert [(c.sentence, c.text, c.features, c.score) for c in candidates] == [
        (3, "a b", tuple(features[0]), 1.0), (3, "", tuple(features[1]), -2.0)
    ]  # fmt: skip


def test_one_more_feature(tmp_path):
    path = tmp_path / "nbest"
    path.write_text("".join(with_feature(fields_of(x, path, 1), "CSLM0", -1 / 3) + "\n" for x in NBEST.splitlines()))
    names, candidates = read_nbest(path)
    assert names == ["LM0:0", "TM0:0", "TM0:1", "CSLM0:0"]
    assert [one.features[3] for one in candidates] == [-0.333333] * 3
    assert path.read_text().splitlines()[0] == "0 ||| a b ||| LM0= -1 TM0= 1 2 CSLM0= -0.333333 ||| -3.5 ||| 0=0"


def test_lists_that_lack_a_sentence(tmp_path):
    """A non-empty sentence without a line in the n-best list is an error; an empty sentence has no line."""
    nbest = "".join(line for line in NBEST.splitlines(keepends=True) if not line.startswith("2"))
    with pytest.raises(
        InputError,
        match=r"has no translation of sentence 2 \(0-based\); create the list",
    ):
        lists(tmp_path, nbest=nbest)


SEGMENTS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9), st.integers(0, 9)), max_size=8).map(
    lambda rows: [(first, first + more, size) for first, more, size in rows]
)


@given(SEGMENTS)
def test_segmentations_are_read_as_they_are_written(phrases):
    assert read_segmentation(segmentation(phrases)) == phrases


@pytest.mark.parametrize("text", ["0", "0=1", "x=0", "2-1=0", "0=0-", "0=0 1=0", "0=0 1=2", "-1=0", "0==0"])
def test_other_segmentations_are_refused(text):
    with pytest.raises(ValueError, match=f"'{text.split()[-1]}'"):
        read_segmentation(text)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0 ||| x y ||| LM0= -1 ||| -1", "do not match the sentence"),
        ("0 ||| x y ||| LM0= -1 ||| -1 ||| 0=0", "do not match the sentence"),
        ("0 ||| x y ||| LM0= -1 ||| -1 ||| 0=0 0=1", "do not match the sentence"),
        ("0 ||| x ||| LM0= -1 ||| -1 ||| 0=0 1=1", "do not match the sentence"),
        ("0 ||| x y ||| LM0= -1 ||| -1 ||| 0=0 1=2", "does not follow"),
        ("2 ||| x y ||| LM0= -1 ||| -1 ||| 0=0 1=1", "source text has 2 lines"),
        ("1 ||| x ||| LM0= -1 ||| -1 ||| ", "do not match the sentence"),
    ],
)
def test_details_of_another_text_are_refused(tmp_path, line, said):
    path = tmp_path / "details"
    path.write_text(f"{line}\n")
    with pytest.raises(InputError, match=said):
        read_details(path, ["a b", ""])


def test_details_are_of_every_sentence(tmp_path):
    path = tmp_path / "details"
    path.write_text("1 ||| x  y z ||| LM0= -1 ||| -1 ||| 1=0-1 0=2\n1 ||| x ||| LM0= -2 ||| -2 ||| 0-1=0\n")
    assert read_details(path, ["", "a b"]) == [("", []), ("x y z", [(1, 1, 2), (0, 0, 1)])]
    with pytest.raises(InputError, match=r"no translation of sentence 0"):
        read_details(path, ["a", "a b"])
