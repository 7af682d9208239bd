"""The store of phrase pairs: equal to the phrase table line by line, from both commands; damaged stores are refused."""

import json
import struct
from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import rnnsmt
from rnnsmt.base.array_file import ArrayFile, write_arrays
from rnnsmt.base.errors import InputError
from rnnsmt.cli import main
from rnnsmt.formats import phrase_table
from rnnsmt.phrases import pairs as store
from rnnsmt.phrases.importing import import_tables
from rnnsmt.phrases.pairs import FORMAT, PhrasePairs

from .test_pipeline import random_pairs

load_file = pytest.importorskip("safetensors.numpy").load_file


def words_of(lines):
    """Return the words of source and target of the lines of a table."""
    return [tuple(field.split(" ") for field in line.split(" ||| ")[:2]) for line in lines]


def by_definition(path):
    """Read a store with the safetensors library alone, by the description of its arrays."""
    arrays = load_file(path)
    phrases = {}
    for side in ("source", "target"):
        words = arrays[f"{side} vocabulary"].tobytes().decode().split("\n")[:-1]
        ids, offsets = arrays[f"{side} words"].tolist(), arrays[f"{side} offsets"].tolist()
        phrases[side] = [[words[i] for i in ids[a:b]] for a, b in pairwise(offsets)]
    first = arrays["first"].tolist()
    sources = [phrases["source"][run] for run, (a, b) in enumerate(pairwise(first)) for _ in range(a, b)]
    return list(zip(sources, phrases["target"], strict=True))


def tables_of(directory, corpus, max_length=7, **limits):
    """Extract from a corpus; return the lines of the phrase table. The store is ``extracted``."""
    source, target, alignment = (list(side) for side in zip(*corpus, strict=True))
    links = [[tuple(map(int, link.split("-"))) for link in line.split()] for line in alignment]
    text = source, target, links
    lexical = rnnsmt.phrases.lexical(*text, directory / "e2f", directory / "f2e")
    extract, pairs = directory / "extract.parquet", directory / "extracted"
    rnnsmt.phrases.extract(*text, extract, pairs, max_length=max_length, **limits)
    scores = rnnsmt.phrases.score(extract, pairs, lexical.e2f, lexical.f2e, directory / "scores")
    rnnsmt.phrases.export(pairs, scores, directory / "table")
    return (directory / "table").read_text().splitlines()


@given(st.integers(0, 99), st.integers(1, 8), st.integers(1, 30))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_doors_give_the_lines_of_the_table(tmp_path, seed, max_length, words):
    corpus = random_pairs(12, seed, words, 9)
    assume(any(links for *_, links in corpus))
    lines = tables_of(tmp_path, corpus, max_length)
    figures = rnnsmt.phrases.import_table(tmp_path / "table", tmp_path / "imported").figures
    expected = words_of(lines)
    runs = len([*groupby(source for source, _ in expected)])
    assert figures == {"source phrases": runs, "phrase pairs": len(lines)}
    for name in ("extracted", "imported"):
        pairs = PhrasePairs(tmp_path / name)
        assert len(pairs) == len(lines)
        assert [*pairs.texts()] == expected == by_definition(tmp_path / name)
        assert len(pairs.first) == runs + 1, "every source phrase once"
        middle = len(lines) // 2
        assert [*pairs.texts(middle)] == expected[middle:] and [*pairs.texts(0, middle)] == expected[:middle]


def test_long_phrases_of_many_words(tmp_path):
    """Phrases that take several packed integers, and ids that take more than 16 bits.

    All phrases of every 50th sentence are extracted, of the others only the longest one.
    """
    rng = np.random.default_rng(1)
    words = [[f"{side}{i}" for i in rng.permutation(70_000)] for side in "st"]
    diagonal = " ".join(f"{k}-{k}" for k in range(8))
    corpus = [
        (" ".join(words[0][i : i + 8]), " ".join(words[1][i : i + 8]), diagonal if i % 400 == 0 else "0-0 0-7 7-0 7-7")
        for i in range(0, 70_000, 8)
    ]
    lines = tables_of(tmp_path, corpus, 8)
    assert load_file(tmp_path / "extracted")["source words"].dtype == np.uint32
    assert [*PhrasePairs(tmp_path / "extracted").texts()] == words_of(lines)


def test_small_vocabularies_take_two_bytes(tmp_path):
    tables_of(tmp_path, random_pairs(5, 1))
    assert load_file(tmp_path / "extracted")["source words"].dtype == np.uint16


def test_threads_and_memory_do_not_matter(tmp_path):
    corpus = random_pairs(300, 4)
    tables_of(tmp_path, corpus)
    expected = (tmp_path / "extracted").read_bytes()
    tables_of(tmp_path, corpus, threads=2, memory_mb=100)
    assert (tmp_path / "extracted").read_bytes() == expected


def test_a_source_phrase_over_several_blocks_is_one_run(tmp_path, monkeypatch):
    """The size of the blocks in which a table is read does not matter."""
    lines = [f"a {'b ' * (i // 90)}||| x {'y ' * (i % 3)}{i} ||| 1 1 1 1\n" for i in range(300)]
    (tmp_path / "table").write_text("".join(lines))
    found = []
    for size in (1 << 21, 64):
        monkeypatch.setattr(phrase_table, "read_line_blocks", lambda path, n=size: _blocks(path, n))
        assert import_tables(tmp_path / "table", tmp_path / "pairs") == {"source phrases": 4, "phrase pairs": 300}
        found.append((tmp_path / "pairs").read_bytes())
    assert found[0] == found[1]


def _blocks(path, size):
    from rnnsmt.base.reading import read_line_blocks

    return read_line_blocks(path, size)


def test_a_source_phrase_that_comes_again_is_another_run(tmp_path):
    """The pairs have the order of the table, even if it is not sorted; equal lines are two pairs."""
    (tmp_path / "table").write_text("b ||| x ||| 1\na ||| x ||| 1\nb ||| x ||| 1\nb ||| x ||| 1\n")
    import_tables(tmp_path / "table", tmp_path / "pairs")
    pairs = PhrasePairs(tmp_path / "pairs")
    assert [source for (source,), _ in pairs.texts()] == ["b", "a", "b", "b"]
    assert pairs.runs(np.arange(4)).tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (b"", "the table is empty"),
        (b"a\n", "line 1: 1 field"),
        (b"a ||| x ||| 1\n ||| x ||| 1\n", "line 2: the source phrase is empty"),
        (b"a ||| \xff ||| 1\n", "not UTF-8"),
    ],
)
def test_tables_that_are_refused(tmp_path, capsys, table, said):
    (tmp_path / "table").write_bytes(table)
    command = ["phrases", "import-table", "--phrase-table", f"{tmp_path}/table", "--output", f"{tmp_path}/pairs"]
    assert main(command) == 2
    (error,) = [line for line in capsys.readouterr().err.splitlines() if ": error: " in line]
    assert said in error and "table" in error
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


@pytest.fixture
def made(tmp_path):
    """Create the store ``pairs`` of four pairs."""
    (tmp_path / "table").write_text("a b ||| x ||| 1\na b ||| y ||| 1\na ||| x y z ||| 1\nc ||| z ||| 1\n")
    import_tables(tmp_path / "table", tmp_path / "pairs")
    return tmp_path / "pairs"


def changed(path, entries=(), **arrays):
    """Write a store again with other entries and arrays (``_`` for a space in their names); None removes one."""
    found = ArrayFile(path, "")
    content = {**found, **{name.replace("_", " "): values for name, values in arrays.items()}}
    content = {name: np.array(values) for name, values in content.items() if values is not None}
    with write_arrays(path, {name: values.dtype for name, values in content.items()}) as writer:
        for name, values in content.items():
            writer.append(name, values)
        writer.entries |= found.entries | dict(entries)


I64 = np.int64

DISAGREEING = {
    "no array": {"first": None},
    "no vocabulary": {"target_vocabulary": None},
    "no runs": {"first": np.zeros(0, I64)},
    "another beginning": {"first": np.array([1, 2, 3, 4])},
    "an empty run": {"first": np.array([0, 2, 2, 4])},
    "descending runs": {"first": np.array([0, 3, 2, 4])},
    "more pairs": {"first": np.array([0, 2, 3, 5])},
    "more runs": {"first": np.array([0, 1, 2, 3, 4])},
    "overflow": {"source_offsets": np.array([0, 2**63 - 1, -5, 4])},
    "type of offsets": {"target_offsets": np.array([0, 1, 2, 5, 6], np.int32)},
    "offsets behind the end": {"target_offsets": np.array([0, 1, 2, 5, 7])},
    "an empty phrase": {"target_offsets": np.array([0, 1, 1, 5, 6])},
    "type of ids": {"target_words": np.zeros(6, np.float32)},
    "signed ids": {"target_words": np.full(6, -1, np.int32)},
    "fewer ids": {"source_words": np.zeros(3, np.uint32)},
    "an id of no word": {"source_words": np.array([0, 1, 0, 3], np.uint32)},
    "a vocabulary that is cut": {"source_vocabulary": np.frombuffer(b"a\nb\nc", np.uint8)},
    "not UTF-8": {"source_vocabulary": np.frombuffer(b"a\nb\n\xff\n", np.uint8)},
}


@pytest.mark.parametrize("case", DISAGREEING)
def test_arrays_that_do_not_agree_are_refused(made, case):
    changed(made, **DISAGREEING[case])
    with pytest.raises(InputError, match=r"pairs: the arrays .* do not agree .*phrases extract.*phrases import-table"):
        PhrasePairs(made)


def test_a_shard_is_checked_without_reading_the_others(made):
    """The jobs of shards share a store of any size, so each reads only its part."""
    pairs = len(PhrasePairs(made))
    shards = [PhrasePairs(made, (k, 2)) for k in (1, 2)]
    assert [(shard.begin, shard.end) for shard in shards] == [(0, pairs // 2), (pairs // 2, pairs)]
    changed(made, target_words=np.array([0, 1, 0, 1, 0, 9], np.uint32))
    PhrasePairs(made, (1, 2))
    with pytest.raises(InputError, match="do not agree"):
        PhrasePairs(made, (2, 2))


def test_an_unchanged_store_is_read(made):
    before = [*PhrasePairs(made).texts()]
    changed(made)
    assert [*PhrasePairs(made).texts()] == before


@pytest.mark.parametrize("entries", [{"format": "rnnsmt-phrase-pairs-0"}, {"format": ""}])
def test_another_format_is_refused(made, entries):
    changed(made, entries)
    with pytest.raises(InputError, match=rf"pairs: not a file of phrase pairs of this version \({FORMAT}\)"):
        PhrasePairs(made)


def test_a_store_without_fingerprint_is_refused(made):
    data = made.read_bytes()
    length = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:length])
    del header["__metadata__"]["fingerprint"]
    text = json.dumps(header).encode()
    made.write_bytes(struct.pack("<Q", len(text)) + text + data[length:])
    with pytest.raises(InputError, match="not a file of phrase pairs"):
        PhrasePairs(made)


def test_the_fingerprint_depends_on_pairs_and_words(tmp_path):
    found = set()
    for text in ("a ||| x ||| 1\n", "a ||| x ||| 0.5\n", "a ||| y ||| 1\n", "b ||| x ||| 1\n", "a ||| x ||| 1\n" * 2):
        (tmp_path / "table").write_text(text)
        import_tables(tmp_path / "table", tmp_path / "pairs")
        found.add(PhrasePairs(tmp_path / "pairs").fingerprint)
    assert len(found) == 4, "scores are not part of the store"


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:9], lambda data: b"\0" + data[1:]])
def test_damaged_stores_are_refused(made, capsys, damage):
    made.write_bytes(damage(made.read_bytes()))
    output = made.parent / "column"
    command = ["phrases", "column", "--name", "wp", "--pairs", made, "--vocabularies", "none", "--output", output]
    assert main([str(part) for part in command]) == 2
    error = capsys.readouterr().err
    assert f"{made}: " in error and "phrases extract" in error and "Traceback" not in error
    assert not output.exists()


def test_blocks_of_texts(made, monkeypatch):
    expected = [*PhrasePairs(made).texts()]
    monkeypatch.setattr(store, "BLOCK", 1)
    assert [*PhrasePairs(made).texts()] == expected
