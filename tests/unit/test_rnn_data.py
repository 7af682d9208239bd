"""Vocabularies, pairs on disk, and the order in which they are trained on."""

import gzip
import json
from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from rnnsmt.cli import main  # noqa: E402
from rnnsmt.io import InputError  # noqa: E402
from rnnsmt.networks.sequences import Sequences  # noqa: E402
from rnnsmt.networks.shuffling import permuted  # noqa: E402
from rnnsmt.networks.vocabulary import Vocabulary  # noqa: E402
from rnnsmt.rnn import batches  # noqa: E402
from rnnsmt.rnn.batches import BatchStream, group_by_length, hold_out, words_of  # noqa: E402
from rnnsmt.rnn.pairs import Pairs  # noqa: E402

torch.set_num_threads(1)

# vocabularies


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


# rnn prepare

TABLE = """a b ||| x y ||| 1 1 1 1 ||| 0-0 ||| 1 1 1
a b ||| y ||| 0.5 1 1 1
a ||| x x x ||| 1 1 1 1 ||| 0-0 ||| 1 1 1 ||| |||
c rare ||| z ||| 1 1 1 1
"""


def corpus(folder):
    (folder / "train.en").write_text("a b a\na b c\nrare\n")
    with gzip.open(folder / "train.fr.gz", "wt") as out:
        out.write("x y x\nx z\n")
    return folder


def prepare(folder, table=TABLE, *options):
    path = corpus(folder) / "table"
    path.write_bytes(table.encode() if isinstance(table, str) else table)
    source, target = folder / "train.en", folder / "train.fr.gz"
    command = ["rnn", "prepare", "--phrase-table", path, "--source", source, "--target", target]
    return main([str(part) for part in [*command, "--output-dir", folder / "pairs", *options]])


def test_prepare(tmp_path):
    assert prepare(tmp_path, TABLE, "--vocab-size", "5") == 0
    pairs = Pairs.open(tmp_path / "pairs")
    source, target = pairs.vocabularies
    assert source.words == ["<null>", "<unk>", "a", "b", "c", "</s>"]
    assert target.words == ["<null>", "<unk>", "x", "y", "z", "</s>"]
    assert len(pairs) == 4
    assert [pairs.source(i).tolist() for i in range(4)] == [[2, 3, 5], [2, 3, 5], [2, 5], [4, 1, 5]]
    assert [pairs.target(i).tolist() for i in range(4)] == [[2, 3, 5], [3, 5], [2, 2, 2, 5], [4, 5]]
    figures = json.loads((tmp_path / "pairs" / "pairs.json").read_text())
    assert (figures["source words"], figures["source unknown words"], figures["target words"]) == (7, 1, 7)
    assert figures["source coverage"] == pytest.approx(6 / 7, abs=1e-6)
    assert isinstance(pairs.sides[0].words, np.memmap)


def test_the_same_input_gives_the_same_files(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assert prepare(tmp_path / name) == 0
    files = sorted(path.name for path in (tmp_path / "one" / "pairs").iterdir())
    assert len(files) == 7
    for name in files:
        assert (tmp_path / "one" / "pairs" / name).read_bytes() == (tmp_path / "two" / "pairs" / name).read_bytes()


def test_blocks_do_not_matter(tmp_path, monkeypatch):
    """Many small blocks give what one large block gives."""
    from rnnsmt.rnn import pairs as preparation

    lines = [f"a {'b ' * (i % 4)}w{i} ||| x {'y ' * (i % 3)}{i} ||| 1 1 1 1\n" for i in range(300)]
    found = []
    for size in (1 << 21, 64):
        monkeypatch.setattr(preparation, "read_line_blocks", lambda path, n=size: _blocks(path, n))
        (tmp_path / str(size)).mkdir()
        assert prepare(tmp_path / str(size), "".join(lines)) == 0
        found.append((tmp_path / str(size) / "pairs" / "pairs.json").read_bytes())
    assert found[0] == found[1]


def _blocks(path, size):
    from rnnsmt.io import read_line_blocks

    return read_line_blocks(path, size)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "the table is empty"),
        ("a\n", "line 1: 1 field"),
        ("a ||| x ||| 1\n ||| x ||| 1\n", "line 2: the source phrase is empty"),
        ("a ||| x ||| 1\na ||| x ||| 0.5\n", "line 2: this pair occurs twice"),
        (f"a ||| x ||| 1\n{'a ' * 51}||| x ||| 1\n", "line 2: the source phrase has 51 words, the limit is 50"),
        (f"a ||| x ||| 1\nb ||| {'x ' * 60}||| 1\n", "line 2: the target phrase has 60 words, the limit is 50"),
        (b"a ||| \xff ||| 1\n", "not UTF-8"),
    ],
)
def test_bad_tables(tmp_path, capsys, table, said):
    assert prepare(tmp_path, table) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len([line for line in error.splitlines() if "error" in line]) == 1
    assert not (tmp_path / "pairs" / "pairs.json").exists()
    assert not list((tmp_path / "pairs").glob("*.npy"))
    with pytest.raises(InputError, match="no such file"):
        Pairs.open(tmp_path / "pairs")


def test_bad_corpora_and_options(tmp_path, capsys):
    assert prepare(tmp_path, TABLE, "--max-length", "1") == 2
    assert "--max-length 2" in capsys.readouterr().err
    assert prepare(tmp_path, TABLE, "--vocab-size", "2") == 2
    (tmp_path / "empty").write_text("\n")
    assert prepare(tmp_path, TABLE, "--source", str(tmp_path / "empty")) == 2
    assert "no words on the source side" in capsys.readouterr().err
    assert prepare(tmp_path, TABLE, "--target", str(tmp_path / "none")) == 2
    assert "none: no such file" in capsys.readouterr().err


def test_damaged_pairs(tmp_path):
    assert prepare(tmp_path) == 0
    folder = tmp_path / "pairs"
    words = (folder / "source.words.npy").read_bytes()
    (folder / "source.words.npy").write_bytes(words[:-4])
    with pytest.raises(InputError, match="again"):
        Pairs.open(folder)
    (folder / "source.words.npy").write_bytes(words)
    Pairs.open(folder)
    text = (folder / "vocab.target.txt").read_text()
    (folder / "vocab.target.txt").write_text(text.replace("z", "zz"))
    with pytest.raises(InputError, match=r"vocab\.target\.txt was changed"):
        Pairs.open(folder)
    (folder / "vocab.target.txt").write_text(text)
    (folder / "pairs.json").write_text("[]")
    with pytest.raises(InputError, match="not of this version"):
        Pairs.open(folder)


# the order of the training


@pytest.mark.parametrize("n", [1, 2, 3, 64, 65, 1000, 40_000])
def test_permutations(n):
    positions = np.arange(n)
    found = permuted(positions, n, [1, 2])
    assert sorted(found) == list(range(n))
    assert np.array_equal(found[n // 3 :], permuted(positions[n // 3 :], n, [1, 2]))
    if n >= 64:
        assert not np.array_equal(found, permuted(positions, n, [1, 3]))
        assert abs(np.corrcoef(positions, found)[0, 1]) < 4 / np.sqrt(n)
        assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 4 / np.sqrt(n)


class MadePairs:
    """Pairs of random lengths without files."""

    def __init__(self, n, seed=0, longest=5):
        rng = np.random.default_rng(seed)
        sides = []
        for _ in range(2):
            offsets = np.concatenate([[0], np.cumsum(rng.integers(2, longest + 1, n))])
            sides.append(Sequences(rng.integers(1, 50, offsets[-1]).astype(np.int32), offsets))
        self.sides = tuple(sides)

    def __len__(self):
        return len(self.sides[0].offsets) - 1


def epoch_of(stream):
    """The minibatches of the current epoch, up to its last."""
    epoch, found = stream.epoch, []
    while True:
        before = stream.state()
        found.append(next(stream))
        if stream.epoch != epoch:
            stream.restore(before)
            found.pop()
            return found


@pytest.mark.parametrize(("n", "batch"), [(1, 4), (50, 7), (1000, 16), (1000, 2000)])
def test_every_pair_once_an_epoch(monkeypatch, n, batch):
    monkeypatch.setattr(batches, "WINDOW", 256)
    pairs = MadePairs(n)
    held_out = hold_out(n, 10, 1)
    stream = BatchStream(pairs, batch, 3, held_out)
    orders = []
    for _ in range(2):
        found = epoch_of(stream)
        next(stream)
        stream.taken = 0
        stream._ready = None
        seen = np.concatenate(found)
        assert sorted(seen) == sorted(set(range(n)) - set(held_out.tolist()))
        assert all(len(index) <= batch for index in found)
        for index in found:
            assert all(len(set(side.lengths(index).tolist())) == 1 for side in pairs.sides)
        orders.append(seen)
    if n > 40:
        assert not np.array_equal(*orders)


def test_most_minibatches_are_whole(monkeypatch):
    monkeypatch.setattr(batches, "WINDOW", 512)
    pairs = MadePairs(10_000, longest=4)
    found = epoch_of(BatchStream(pairs, 32, 3, hold_out(10_000, 100, 1)))
    assert sum(len(index) < 32 for index in found) <= 9  # three lengths on each side
    lengths = [int(pairs.sides[1].lengths(index[:1])[0]) for index in found]
    changes = sum(a != b for a, b in pairwise(lengths))
    assert changes > len(found) / 3  # not sorted by length


def test_a_stream_goes_on_where_it_was(monkeypatch):
    monkeypatch.setattr(batches, "WINDOW", 128)
    pairs = MadePairs(700)

    def stream():
        return BatchStream(pairs, 8, 3, hold_out(700, 10, 1))

    expected = [index.tolist() for index in islice(stream(), 200)]
    for stop in (0, 1, 5, 30, 88, 110, 150):
        first = stream()
        for _ in range(stop):
            next(first)
        second = stream()
        second.restore(first.state())
        assert [index.tolist() for index in islice(second, 200 - stop)] == expected[stop:]


def test_words_of_pairs():
    pairs = MadePairs(100)
    for group in group_by_length(pairs, np.arange(100)):
        source, target = words_of(pairs, group)
        for column, i in enumerate(group):
            assert source[:, column].tolist() == pairs.sides[0].phrase(i).tolist()
            assert target[:, column].tolist() == pairs.sides[1].phrase(i).tolist()


def test_held_out_pairs():
    assert len(hold_out(1, 5000, 1)) == 0
    assert len(hold_out(2, 5000, 1)) == 1
    assert len(hold_out(100_000, 5000, 1)) == 1000
    found = hold_out(1_000_000, 5000, 1)
    assert len(set(found.tolist())) == 5000
    assert np.all(np.diff(found) > 0)
    assert 450_000 < found.mean() < 550_000
    assert np.array_equal(found, hold_out(1_000_000, 5000, 1))
    assert not np.array_equal(found, hold_out(1_000_000, 5000, 2))
