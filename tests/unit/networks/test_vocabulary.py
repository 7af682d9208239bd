"""Vocabularies: ids of words, and the file format."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnsmt.base.errors import InputError
from rnnsmt.networks.data import Vocabulary


def test_the_most_frequent_words_get_the_ids():
    vocabulary = Vocabulary.from_counts({"b": 5, "a": 5, "c": 9, "d": 1}, 5)
    assert vocabulary.words == ["<null>", "<unk>", "c", "a", "b", "</s>"]
    assert (len(vocabulary), vocabulary.eos) == (6, 5)
    assert vocabulary.ids(["a", "d", "c"], eos=True).tolist() == [3, 1, 2, 5]
    assert vocabulary.ids([]).tolist() == []
    assert vocabulary.text([3, 1, 2, 5, 2]) == "a <unk> c"


def test_paper_size():
    vocabulary = Vocabulary.from_counts(Counter({f"w{i}": 1 for i in range(20_000)}), 15_000)
    assert (len(vocabulary), vocabulary.eos, len(vocabulary.index)) == (15_001, 15_000, 14_998)


def test_reserved_spellings_are_words_of_their_own(tmp_path):
    vocabulary = Vocabulary.from_counts({"</s>": 3, "<unk>": 2, "<null>": 1}, 10)
    vocabulary.write(tmp_path / "v")
    again = Vocabulary.read(tmp_path / "v")
    assert again.ids(["</s>", "<unk>", "<null>"]).tolist() == [2, 3, 4]
    assert again.hash() == vocabulary.hash()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"]), min_size=1), unique=True))
def test_vocabulary_round_trip(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("v") / "v"
    Vocabulary(words).write(path)
    assert Vocabulary.read(path).words == ["<null>", "<unk>", *words, "</s>"]


@pytest.mark.parametrize(
    "text", ["", "a\n", "<null>\n<unk>\na\na\n</s>\n", "<null>\n<unk>\n\n</s>\n", "<null>\n<unk>\na\n"]
)
def test_bad_vocabularies(tmp_path, text):
    (tmp_path / "v").write_text(text)
    with pytest.raises(InputError, match="again"):
        Vocabulary.read(tmp_path / "v")
