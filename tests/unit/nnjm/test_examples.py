"""Training examples of the joint model, against sentences written out by hand and a plain definition."""

import itertools

import numpy as np
import pytest

from rnnsmt.base.io import InputError
from rnnsmt.networks.data import NULL, Vocabulary
from rnnsmt.nnjm.examples import Examples, prepare_examples
from rnnsmt.nnjm.settings import DIRECTIONS

SOURCE = ["a b c", "d", "", "a rare b"]
TARGET = ["x y", "z", "x", "y y z x"]
LINKS = ["0-0 2-1 1-1", "", "", "2-0 0-3"]


@pytest.fixture
def directory(tmp_path):
    for name, lines in (("s", SOURCE), ("t", TARGET), ("a", LINKS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def prepare(directory, source=("a", "b", "c", "d"), target=("x", "y", "z")):
    files = ([str(directory / name)] for name in "sta")
    return prepare_examples(*files, (Vocabulary(source), Vocabulary(target)), str(directory / "examples"))


def test_windows_and_histories(directory):
    figures = prepare(directory)
    assert figures["pairs"] == 2
    assert figures["discarded pairs, without links"] == 2
    assert figures["target words with several links"] == 1
    examples = Examples.open(directory / "examples")
    source, target = examples.source_vocabulary, examples.target_vocabulary
    # y of the first sentence is affiliated with b, the middle of b and c rounded down; in the fourth sentence, y and
    # the following y are affiliated with b, z and x with a
    assert examples.affiliations.tolist() == [0, 1, 3, 2, 2, 0, 0, 3]
    assert [target.words[i] for i in examples.target.words] == ["x", "y", "</s>", "y", "y", "z", "x", "</s>"]
    rows = examples.inputs(np.arange(len(examples)), order=3, window=1)
    names = [
        [source.words[i - len(target)] for i in row[:3]] + [target.words[i] for i in row[3:]] for row in rows.tolist()
    ]
    nothing = source.words[NULL]
    assert names == [
        [nothing, "a", "b", nothing, nothing],
        ["a", "b", "c", nothing, "x"],
        ["c", "</s>", "</s>", "x", "y"],
        ["<unk>", "b", "</s>", nothing, nothing],
        ["<unk>", "b", "</s>", nothing, "y"],
        [nothing, "a", "<unk>", "y", "y"],
        [nothing, "a", "<unk>", "y", "z"],
        ["b", "</s>", "</s>", "z", "x"],
    ]


@pytest.mark.parametrize("direction", DIRECTIONS[1:])
def test_other_directions_are_the_direct_one_of_exchanged_and_reversed_text(directory, direction):
    source, target = ("a", "b", "c", "d"), ("x", "y", "z")
    files = [str(directory / name) for name in "sta"]
    vocabularies = Vocabulary(source), Vocabulary(target)
    figures = prepare_examples(*([path] for path in files), vocabularies, str(directory / "found"), direction=direction)
    pairs = list(zip(SOURCE, TARGET, LINKS, strict=True))
    if direction.startswith("inverse"):
        pairs = [(t, s, " ".join("-".join(link.split("-")[::-1]) for link in a.split())) for s, t, a in pairs]
        vocabularies = vocabularies[::-1]
    for name, lines in zip("sta", zip(*pairs, strict=True), strict=True):
        (directory / name).write_text("".join(f"{line}\n" for line in lines))
    expected_figures = prepare_examples(*([path] for path in files), vocabularies, str(directory / "expected"))
    found, expected = Examples.open(directory / "found"), Examples.open(directory / "expected")
    words, affiliations = expected.target.words.copy(), expected.affiliations.copy()
    if direction.endswith("-rl"):  # following words become preceding words; </s> remains at the end
        for begin, end in itertools.pairwise(expected.target.offsets.tolist()):
            words[begin : end - 1] = words[begin : end - 1][::-1]
            affiliations[begin : end - 1] = affiliations[begin : end - 1][::-1]
    assert found.direction == direction
    assert found.source.words.tolist() == expected.source.words.tolist()
    assert found.target.words.tolist() == words.tolist()
    assert found.target.offsets.tolist() == expected.target.offsets.tolist()
    assert found.affiliations.tolist() == affiliations.tolist()
    assert {**figures} == {**expected_figures}


def test_damage_is_reported(directory):
    prepare(directory)
    path = directory / "examples/affiliations.npy"
    found = np.load(path)
    for wrong in (np.where(found == 3, 4, found), found[1:], -found):
        np.save(path, wrong.astype(np.int32))
        with pytest.raises(InputError, match=r"affiliations\.npy"):
            Examples.open(directory / "examples")
    np.save(path, found)
    (directory / "examples/vocab.source.txt").write_text("<null>\n<unk>\na\n</s>\n")
    with pytest.raises(InputError, match=r"vocab\.source\.txt is newer"):
        Examples.open(directory / "examples")


def test_text_without_links_is_refused(directory):
    (directory / "a").write_text("\n\n\n\n")
    with pytest.raises(InputError, match="no sentence pair has an alignment link"):
        prepare(directory)
