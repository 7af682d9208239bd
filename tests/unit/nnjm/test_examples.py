"""Training examples of the joint model, against sentences written out by hand and a plain definition."""

import numpy as np
import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.networks.data import NULL, Vocabulary
from rnnsmt.nnjm.examples import Examples, prepare_examples

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


def test_text_without_links_is_refused(directory):
    (directory / "a").write_text("\n\n\n\n")
    with pytest.raises(InputError, match="no sentence pair has an alignment link"):
        prepare(directory)
