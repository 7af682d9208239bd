"""Phrase pairs with the ids of a network: those of the store, in the vocabularies of the network."""

import json
from itertools import chain

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rnnsmt
from rnnsmt.base.errors import InputError
from rnnsmt.cli import main
from rnnsmt.networks.data import UNK, Vocabulary, class_counts
from rnnsmt.phrases import pairs as store
from rnnsmt.rnn.pairs import Pairs, vocabulary_files, words_outside

from ..phrase_store import STORE, VOCABULARIES, make_pairs, open_pairs
from ..resident import reads_smaps, resident_kilobytes

TABLE = [("a b", "x y"), ("a b", "y"), ("a", "x x x"), ("c rare", "z")]

SOURCE, TARGET = "a b a\na b c\nrare\n", "x y x\nx z\n\n"


def prepare(directory, *options, source=SOURCE, target=TARGET):
    """Run ``networks prepare`` on two texts, each of one or several files."""
    command = ["networks", "prepare", "--network", "rnn", "--output-dir", str(directory / VOCABULARIES), *options]
    for side, texts in (("source", source), ("target", target)):
        files = []
        for number, text in enumerate([texts] if isinstance(texts, str) else texts):
            files.append(directory / f"{side}.{number}")
            files[-1].write_text(text)
        command += [f"--{side}", *map(str, files)]
    return main(command)


def test_pairs_in_the_vocabularies(tmp_path):
    pairs = make_pairs(tmp_path, TABLE, SOURCE, TARGET, 5)
    source, target = pairs.vocabularies
    assert source.words == ["<null>", "<unk>", "a", "b", "c", "</s>"]
    assert target.words == ["<null>", "<unk>", "x", "y", "z", "</s>"]
    assert len(pairs) == 4
    assert [pairs.source(i).tolist() for i in range(4)] == [[2, 3, 5], [2, 3, 5], [2, 5], [4, 1, 5]]
    assert [pairs.target(i).tolist() for i in range(4)] == [[2, 3, 5], [3, 5], [2, 2, 2, 5], [4, 5]]


phrases = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=4).map(" ".join)


@given(st.lists(st.tuples(phrases, phrases), min_size=1, max_size=20), st.integers(3, 8), st.data())
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_view_of_a_phrase_is_that_of_its_words(tmp_path, table, size, data):
    pairs = make_pairs(tmp_path, table, "a b c\nd e f g", "a b b\nc c d", size)
    index = np.array(data.draw(st.lists(st.integers(0, len(table) - 1), max_size=9)), np.int64)
    for number, (side, vocabulary) in enumerate(zip(pairs.sides, pairs.vocabularies, strict=True)):
        every = [vocabulary.ids(pair[number].split(), eos=True).tolist() for pair in table]
        expected = [every[i] for i in index]
        assert [side.phrase(i).tolist() for i in index] == expected
        assert side.lengths(index).tolist() == [len(ids) for ids in expected]
        assert side.joined(index).tolist() == [*chain.from_iterable(expected)]
        longest = max(map(len, expected), default=1)
        padded = [ids + [vocabulary.eos] * (longest - len(ids)) for ids in expected]
        assert side.padded(index).tolist() == np.array(padded).reshape(-1, longest).T.tolist()
        assert np.concatenate([*side.blocks()]).tolist() == [*chain.from_iterable(every)]


def test_vocabularies_are_those_of_the_texts(tmp_path):
    assert prepare(tmp_path, "--vocab-size", "5") == 0
    words = [Vocabulary.read(file).words[2:-1] for file in vocabulary_files(tmp_path / VOCABULARIES)]
    assert words == [["a", "b", "c"], ["x", "y", "z"]]
    figures = json.loads((tmp_path / VOCABULARIES / "vocabularies.json").read_text())
    assert figures == {
        "source classes": 6,
        "source coverage": pytest.approx(6 / 7, abs=1e-6),
        "target classes": 6,
        "target coverage": 1.0,
    }


def test_the_same_input_gives_the_same_files(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        make_pairs(tmp_path / name, TABLE, SOURCE, TARGET)
    files = [
        STORE,
        *(f"{VOCABULARIES}/{name}" for name in ("vocab.source.txt", "vocab.target.txt", "vocabularies.json")),
    ]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert open_pairs(tmp_path / "one").fingerprint == open_pairs(tmp_path / "two").fingerprint


def test_the_fingerprint_depends_on_pairs_and_vocabularies(tmp_path):
    found = {make_pairs(tmp_path, TABLE, SOURCE, TARGET).fingerprint}
    found.add(make_pairs(tmp_path, TABLE[1:], SOURCE, TARGET).fingerprint)
    found.add(make_pairs(tmp_path, TABLE, SOURCE, TARGET, 4).fingerprint)
    assert len(found) == 3


def test_texts_and_options_that_are_refused(tmp_path, capsys):
    assert prepare(tmp_path, source="\n") == 2
    assert "no words on the source side" in capsys.readouterr().err
    files = ["--source", "none", "--target", "none", "--output-dir", f"{tmp_path}/v"]
    assert main(["networks", "prepare", "--network", "rnn", *files]) == 2
    assert "none: no such file" in capsys.readouterr().err


def test_sides_with_different_numbers_of_lines_are_refused(tmp_path, capsys):
    """The number that is compared is the sum over the files of a side."""
    assert prepare(tmp_path, target=[TARGET, "x"]) == 2
    files = f"{tmp_path}/target.0, {tmp_path}/target.1"
    assert f"source.0: 3 lines, but {files}: 4 lines; parallel files must" in capsys.readouterr().err
    assert not (tmp_path / VOCABULARIES).exists()
    assert prepare(tmp_path, source=[SOURCE, "x"], target=[TARGET, "x"]) == 0


def test_a_missing_file_is_named(tmp_path):
    make_pairs(tmp_path, TABLE, SOURCE, TARGET)
    with pytest.raises(InputError, match=r"none: no such file; .*import-table"):
        Pairs.open(tmp_path / "none", tmp_path / VOCABULARIES)
    (tmp_path / VOCABULARIES / "vocab.target.txt").unlink()
    with pytest.raises(InputError, match=r"vocab\.target\.txt: no such file"):
        open_pairs(tmp_path)


@given(st.lists(phrases, min_size=1, max_size=12), st.integers(1, 5), st.data())
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_words_outside_in_blocks(tmp_path, targets, block, data):
    pairs = make_pairs(tmp_path, [("a", target) for target in targets], "a", "a b b c c c", 5)
    begin = data.draw(st.integers(0, len(targets)))
    end = data.draw(st.integers(begin, len(targets)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rnnsmt.rnn.pairs.BLOCK", block)
        counts = np.concatenate([np.zeros(0), *words_outside(pairs, begin, end)])
    assert counts.tolist() == [sum(word not in "abc" for word in target.split()) for target in targets[begin:end]]


@reads_smaps
def test_passes_over_the_pairs_leave_no_pages_mapped(tmp_path, monkeypatch):
    """Unmap what a pass has read."""
    monkeypatch.setattr(store, "BLOCK", 1 << 14)
    monkeypatch.setattr("rnnsmt.rnn.pairs.BLOCK", 1 << 14)
    pairs = make_pairs(tmp_path, [("a b", f"x w{i:06}") for i in range(300_000)], SOURCE, TARGET)
    assert resident_kilobytes(tmp_path) < 1000, "opened: of 7,000"
    counts = class_counts(pairs.sides[1].blocks(), len(pairs.vocabularies[1]), np.zeros(0, np.int32))
    assert counts[UNK] == 300_001
    pairs.release()
    assert resident_kilobytes(tmp_path) < 1000
    assert sum(block.sum() for block in words_outside(pairs, 0, len(pairs))) == 300_000
    assert resident_kilobytes(tmp_path) < 1000
    assert rnnsmt.phrases.column(tmp_path / STORE, name="wp", vocabularies=tmp_path / VOCABULARIES).values.all()
    assert resident_kilobytes(tmp_path) < 1000
