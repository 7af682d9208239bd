"""The table of the search from the store: equal to the exported tables as the search reads them."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rnnsmt
from rnnsmt.base.array_file import ArrayFile
from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decimals import six_digits
from rnnsmt.cli import main
from rnnsmt.phrases.table import PhraseTable, index_of, open_table
from rnnsmt.search.phrase_pairs import load_phrase_table, load_reordering_table

from ..phrase_store import write_column
from .test_pipeline import random_pairs

TEXT = ["s1 s2 s3", "", "s1 s1 s29 unknown s2 s4"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Create a store of random pairs, all its scores and two columns; the tables are exported and augmented."""
    directory = tmp_path_factory.mktemp("store")
    source, target, alignment = (list(side) for side in zip(*random_pairs(150, 3), strict=True))
    text = source, target, [[tuple(map(int, link.split("-"))) for link in line.split()] for line in alignment]
    lexical = rnnsmt.phrases.lexical(*text, directory / "e2f", directory / "f2e")
    extracted = rnnsmt.phrases.extract(*text, directory / "extract", directory / "pairs"), directory / "pairs"
    rnnsmt.phrases.score(*extracted, lexical.e2f, lexical.f2e, directory / "scores")
    rnnsmt.phrases.reordering(*extracted, directory / "orders")
    tables = {"reordering": directory / "orders", "output_reordering_table": directory / "rt"}
    rnnsmt.phrases.export(directory / "pairs", directory / "scores", directory / "pt", **tables)
    number = sum(1 for _ in (directory / "pt").open())
    scores = np.random.default_rng(1).uniform(-100, 0, number)
    write_column(directory / "1", directory / "pairs", scores[:77])
    write_column(directory / "2", directory / "pairs", scores[77:], begin=77)
    write_column(directory / "wp", directory / "pairs", np.arange(number) % 3)
    (directory / "text").write_text("".join(f"{line}\n" for line in TEXT))
    columns = [[directory / "1", directory / "2"], [directory / "wp"]]
    rnnsmt.phrases.augment(columns, directory / "augmented", phrase_table=directory / "pt")
    return directory


def contents(table: PhraseTable) -> dict:
    """Return all that a table says of every pair, by source and target."""
    words = table.source_words.strings()
    found = {}
    for run, (first, end) in enumerate(zip(table.first, table.first[1:], strict=False)):
        source = b" ".join(words[i] for i in table.sources.words[slice(*table.sources.offsets[run : run + 2])])
        for row in range(first, end):
            place = slice(*table.targets.offsets[row : row + 2])
            target = b" ".join(table.target_words[i] for i in table.targets.words[place])
            reordering = table.reordering.log_scores[table.reordering.row_of[row]].tolist()
            found[source, target] = (
                table.log_scores[row].tolist(), reordering, table.affiliations[place].tolist(), table.counts[row],
            )  # fmt: skip
    return found


def options(store, *more: str) -> list[str]:
    files = ["--pairs", "pairs", "--scores", "scores", "--reordering", "orders"]
    return ["phrases", "select", *(str(store / word) if not word.startswith("--") else word for word in files), *more]


@pytest.mark.parametrize("text", [True, False])
def test_a_selection_is_what_the_search_reads_from_text(store, tmp_path, text):
    """All scores are equal to the last bit, of the pairs of a text and of all pairs."""
    columns = ["--column", str(store / "1"), str(store / "2"), "--column", str(store / "wp")]
    inputs = ["--input", str(store / "text")] if text else []
    assert main(options(store, *columns, *inputs, "--output", str(tmp_path / "table"))) == 0
    pairs = load_phrase_table(store / "augmented", 6, TEXT if text else None, links=True)
    expected = contents(pairs.table(load_reordering_table(store / "rt", pairs, 6)))
    found = contents(open_table(tmp_path / "table", ""))
    assert len(expected) > 20 and found == expected


def test_an_imported_store_is_the_extracted_one(store, tmp_path):
    files = {"output_scores": tmp_path / "scores", "output_reordering": tmp_path / "orders"}
    rnnsmt.phrases.import_table(store / "pt", tmp_path / "pairs", reordering_table=store / "rt", **files)
    selected = []
    for directory in (store, tmp_path):
        names = (directory / name for name in ("pairs", "scores", "orders"))
        path = rnnsmt.phrases.select(*names, tmp_path / "table", input=TEXT)
        selected.append(contents(open_table(path, "")))
    assert selected[0] == selected[1]
    with pytest.raises(InputError, match="has no links, as scores of an imported table"):
        rnnsmt.phrases.export(tmp_path / "pairs", tmp_path / "scores", tmp_path / "no")
    lines = (store / "rt").read_text().splitlines(keepends=True)
    (tmp_path / "rt").write_text("".join([*lines[1:], lines[0]]))
    with pytest.raises(InputError, match="rt: does not have the phrase pairs of the phrase table in the same order"):
        rnnsmt.phrases.import_table(store / "pt", tmp_path / "x", reordering_table=tmp_path / "rt", **files)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["scores", "orders", "1"])
def test_scores_of_other_pairs_are_refused(store, tmp_path, capsys, name):
    (tmp_path / "table").write_text("a ||| x ||| 1 1 1 1\n")
    rnnsmt.phrases.import_table(tmp_path / "table", tmp_path / "pairs")
    words = ["phrases", "show", "--pairs", str(tmp_path / "pairs")]
    option = {"scores": "--scores", "orders": "--reordering", "1": "--column"}[name]
    assert main([*words, option, str(store / name)]) == 2
    assert f"{store / name}: has the scores of other phrase pairs than those of" in capsys.readouterr().err


def test_refused_texts_and_tables(store, tmp_path, capsys):
    (tmp_path / "empty").write_text("\n\n")
    assert main(options(store, "--input", str(tmp_path / "empty"), "--output", str(tmp_path / "no"))) == 2
    assert "the input contains no words" in capsys.readouterr().err
    (tmp_path / "table").write_text("b ||| x ||| 1\na ||| x ||| 1\nb ||| y ||| 1\n")
    (tmp_path / "rt").write_text("b ||| x ||| 1\na ||| x ||| 1\nb ||| y ||| 1\n")
    files = {"output_scores": tmp_path / "scores", "output_reordering": tmp_path / "orders"}
    pairs = rnnsmt.phrases.import_table(
        tmp_path / "table", tmp_path / "pairs", reordering_table=tmp_path / "rt", **files
    )
    with pytest.raises(InputError, match="a source phrase of the table occurs in several places"):
        rnnsmt.phrases.select(pairs, tmp_path / "scores", tmp_path / "orders", tmp_path / "no")
    assert not (tmp_path / "no").exists()
    other = tmp_path / "others"
    assert main(options(store, "--input", str(other), "--output", str(tmp_path / "no"))) == 2
    other.write_text("nothing known\n")
    assert main(options(store, "--input", str(other), "--output", str(tmp_path / "none"))) == 0
    assert "no phrase pair of the table occurs in the text" in capsys.readouterr().err
    assert len(open_table(tmp_path / "none", "")) == 0


def test_shown_pairs(store, capsys):
    frame = rnnsmt.phrases.show(
        store / "pairs", source="s1", scores=store / "scores", column=[[store / "1", store / "2"]], limit=3
    ).frame
    assert len(frame) == 3 and set(frame["source"]) == {"s1"}
    assert frame["p(target|source)"].is_monotonic_decreasing
    lines = [line.split(" ||| ") for line in (store / "augmented").read_text().splitlines()]
    table = {(line[0], line[1]): (line[2].split(), line[4].split()) for line in lines}
    for row in frame.to_dict("records"):
        scores, counts = table[row["source"], row["target"]]
        assert float(scores[2]) == row["p(target|source)"] and int(counts[2]) == row["count"]
        assert np.exp(max(row["score"], np.log(1e-40))) == pytest.approx(float(scores[4]), rel=1e-5)
    assert main(["phrases", "show", "--pairs", str(store / "pairs"), "--limit", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "source\ttarget"
    assert len(rnnsmt.phrases.show(store / "pairs", source="nothing")) == 1, "the names alone"


def test_other_programs_read_the_scores(store):
    arrays = pytest.importorskip("safetensors.numpy").load_file(store / "scores")
    direct = [float(line.split(" ||| ")[2].split()[2]) for line in (store / "pt").read_text().splitlines()]
    assert six_digits(arrays["p(target|source)"]).tolist() == direct
    assert ArrayFile(store / "scores", "").entries["pairs"] == ArrayFile(store / "pairs", "").entries["fingerprint"]


@given(st.floats(1e-37, 1e9) | st.just(0.0))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_single_precision_holds_six_digits(value):
    (digits,) = six_digits(np.array([value]))
    assert f"{digits:.6g}" == f"{value:.6g}"
    assert six_digits(np.array([digits], np.float32))[0] == digits


def test_an_index_finds_every_phrase_and_no_other():
    rng = np.random.default_rng(1)
    phrases = {tuple(rng.integers(0, 5, rng.integers(1, 5)).tolist()) for _ in range(300)}
    ids = as_ids(sorted(phrases))
    slots = index_of(ids)
    assert sorted(slots[slots > 0].tolist()) == list(range(1, len(phrases) + 1))
    with pytest.raises(InputError, match="occurs in several places"):
        index_of(as_ids([(1, 2), (1,), (1, 2)]))


def as_ids(phrases):
    """Return phrases as ids."""
    from rnnsmt.phrases.pairs import PhraseIds

    words = np.array([word for phrase in phrases for word in phrase], np.int32)
    return PhraseIds(words, np.cumsum([0, *map(len, phrases)]))
