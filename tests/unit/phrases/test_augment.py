"""Further columns of a phrase table: the output, and invalid input."""

import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rnnsmt.cli import main
from rnnsmt.formats.ini import MosesIni
from tests.unit.phrases.phrases_twin import parse_line, phrase_line
from tests.unit.phrases.test_table import column, entries, table_entries
from tests.unit.search.twin import parse_segmentation, path_of, tiny_model

LINES = [
    "a b ||| x ||| 1 0.5 1 0.25 ||| 0-0 1-0 ||| 2 1 1 ||| |||",
    "a ||| x y ||| 0.1 0.2 0.3 2e-05 ||| 0-0 ||| 1 2 1 ||| |||",
    "ça ||| é ||| 1 1 1 1 ||| ||| 3 3 3",
]


@pytest.fixture
def table(tmp_path) -> Path:
    path = tmp_path / "phrase-table.gz"
    with gzip.open(path, "wt", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in LINES)
    return path


def augment(table: Path, *options: str) -> tuple[int, Path]:
    output = table.parent / "out" / "augmented.gz"
    return main(["phrases", "augment", "--phrase-table", str(table), *options, "--output", str(output)]), output


def lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def test_a_column_by_hand(table, tmp_path):
    scores = column(tmp_path, [math.log(0.125), -12.5, -200.0])
    code, output = augment(table, "--column", scores)
    assert code == 0
    assert lines(output) == [
        "a b ||| x ||| 1 0.5 1 0.25 0.125 ||| 0-0 1-0 ||| 2 1 1 ||| |||",
        "a ||| x y ||| 0.1 0.2 0.3 2e-05 3.72665e-06 ||| 0-0 ||| 1 2 1 ||| |||",
        "ça ||| é ||| 1 1 1 1 1e-40 ||| ||| 3 3 3",
    ]


def test_columns_in_several_files(table, tmp_path):
    """A column may consist of several files, as cluster jobs write it; a count column is written as exp(n)."""
    parts = [column(tmp_path, [0.0], "1"), column(tmp_path, np.float32([-1, -2]), "2", begin=1)]
    code, output = augment(table, "--column", *parts, "--column", column(tmp_path, [0.0, 1.0, 2.0], "wp"))
    assert code == 0
    added = [[float(score) for score in line.split(" ||| ")[2].split()[4:]] for line in lines(output)]
    assert added == [pytest.approx(row, rel=1e-5) for row in ([1, 1], [0.367879, math.e], [0.135335, math.exp(2)])]


@given(
    st.lists(entries(), min_size=1, max_size=4),
    st.lists(st.floats(-120, 5), min_size=4, max_size=4),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_everything_else_stays(tmp_path, written, scores):
    for entry in written:
        entry.scores = [*entry.scores, 1.0, 1.0, 1.0, 1.0, 1.0][:6]
    path = tmp_path / "any.txt"
    path.write_text("".join(phrase_line(entry) + "\n" for entry in written), "utf-8", newline="\n")
    code, output = augment(path, "--column", column(tmp_path, np.array(scores[: len(written)])))
    assert code == 0
    for before, after, score in zip(written, map(parse_line, lines(output)), scores, strict=False):
        assert after.scores[:6] == before.scores
        assert after.scores[6] == float(f"{max(math.exp(score), 1e-40):.6g}")
        assert (after.source, after.target, after.alignment) == (before.source, before.target, before.alignment)
        assert (after.counts, after.further) == (before.counts, before.further)


def test_many_blocks_and_a_rerun(tmp_path):
    path = tmp_path / "long.gz"
    with gzip.open(path, "wt", compresslevel=1) as out:
        out.writelines(f"w{i} ||| {'x ' * 20}y ||| 1 0.5 ||| 0-0 ||| 1 1 1\n" for i in range(60_000))
    scores = column(tmp_path, -np.arange(60_000) / 1000)
    code, output = augment(path, "--column", scores)
    assert code == 0
    for i, line in enumerate(lines(output)):
        assert line.split(" ||| ")[2] == f"1 0.5 {max(math.exp(-i / 1000), 1e-40):.6g}"
    before = output.read_bytes()
    assert augment(path, "--column", scores, "--threads", "2") == (0, output)
    assert output.read_bytes() == before


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([-1.0, -2.0], "2 scores, but"),
        ([-1.0] * 4, "4 scores, but"),
        ([], "0 scores, but"),
        ([-1.0, math.nan, -1.0], "score 2 is nan"),
        ([-1.0, -1.0, -math.inf], "score 3 is -inf"),
        ([-1.0, 50.0, -1.0], "score 2 is 50"),
        (np.array([1, 2, 3]), "not a file of `phrases column`"),
    ],
)
def test_refused_scores(table, tmp_path, capsys, values, said):
    array = np.array(values, np.float64) if len(values) == 0 else np.array(values)
    refused(augment(table, "--column", column(tmp_path, array)), capsys, "scores", said)


def refused(result: tuple[int, Path], capsys, *parts: str) -> None:
    code, output = result
    assert code == 2
    error = capsys.readouterr().err.strip().splitlines()
    for part in parts:
        assert part in error[-1]
    assert not any(output.parent.glob("*")) if output.parent.exists() else True


def test_refused_parts(table, tmp_path, capsys):
    parts = [column(tmp_path, [-1.0, -1.0], "1"), column(tmp_path, [-1.0, -1.0], "2", begin=2)]
    refused(augment(table, "--column", *parts), capsys, "1 to 2: 4 scores, but", "3 lines")
    refused(augment(table, "--column", *parts[::-1]), capsys, f"{parts[1]}: is not the part after")
    refused(augment(table, "--column", parts[0], parts[0]), capsys, "is not the part after")


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00"])
def test_refused_files(table, tmp_path, capsys, content):
    path = tmp_path / "scores"
    path.write_bytes(content)
    refused(augment(table, "--column", str(path)), capsys, "scores: ", "compute it again")


def test_refused_missing_file(table, tmp_path, capsys):
    refused(augment(table, "--column", str(tmp_path / "none")), capsys, "none: no such file")
    other = column(tmp_path, [-1.0] * 3, array="scores")
    refused(augment(table, "--column", other), capsys, "not a file of `phrases column`")


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("a b", "field(s) between |||"),
        ("a ||| b", "field(s) between |||"),
        ("a ||| b ||| ", "expected: 4"),
        ("a ||| b ||| 1 2 ||| 0-0", "2 numbers, expected: 4"),
        ("a ||| b ||| 1 2 3 4 5 ||| 0-0", "5 numbers, expected: 4"),
        ("", "field(s) between |||"),
    ],
)
def test_refused_tables(table, tmp_path, capsys, bad, said):
    table.write_bytes(gzip.compress("\n".join([LINES[0], bad, LINES[2]]).encode()))
    refused(augment(table, "--column", column(tmp_path, [-1.0] * 3)), capsys, "line 2", said)


def test_refused_empty_table(table, tmp_path, capsys):
    table.write_bytes(gzip.compress(b""))
    refused(augment(table, "--column", column(tmp_path, [-1.0])), capsys, "the table is empty")


def test_refused_own_table_as_output(table, tmp_path, capsys):
    command = ["--phrase-table", str(table), "--column", column(tmp_path, [-1.0] * 3), "--output", str(table)]
    assert main(["phrases", "augment", *command]) == 2
    assert "used twice" in capsys.readouterr().err
    assert lines(table) == LINES


def test_the_ini_of_an_augmented_table(tmp_path):
    """The file moses.ini refers to the new table and to the other files of the baseline, and has default weights."""
    model, augmented = tmp_path / "model", tmp_path / "augmented" / "rnn"
    augmented.mkdir(parents=True)
    model.mkdir()
    for path in (model / "r.gz", model / "lm.arpa.gz", augmented / "phrase-table.gz"):
        path.touch()
    options = [
        "--phrase-table",
        "../augmented/rnn/phrase-table.gz",
        "--reordering-table",
        "r.gz",
        "--num-features",
        "5",
    ]
    output = augmented / "moses.ini"
    assert main(["moses", "write-ini", "--model-dir", str(model), *options, "--output", str(output)]) == 0
    ini = MosesIni.read(output)
    table = next(feature for feature in ini.features if feature.kind == "PhraseDictionaryMemory")
    assert table.options["num-features"] == "5"
    assert table.options["path"] == "phrase-table.gz"
    assert ini.weights["TranslationModel0"] == [0.2] * 5
    paths = [ini.file_of(feature) for feature in ini.features if "path" in feature.options]
    assert all(path.is_file() for path in paths)


def test_a_model_of_moses_gets_columns(tmp_path, monkeypatch):
    """The copy of moses.ini has the new table and weights, and decodes in any directory with the scores as features."""
    model = tiny_model(tmp_path / "model", 3, reordering_type="hier-mslr-bidirectional-fe", two_lms=True).directory
    with (model / "moses.ini").open("a") as ini:
        ini.write("\n[cube-pruning-pop-limit]\n77\n")
    pairs = {(one.source, one.target): number for number, one in enumerate(table_entries(model / "phrase-table"))}
    scores = -np.linspace(0.25, 3.1, len(pairs))
    columns = ["--column", column(tmp_path, scores)]
    columns += ["--column", column(tmp_path, np.arange(len(pairs)) % 3.0, "wp")]
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    command = ["phrases", "augment", "--ini", "../model/moses.ini", *columns, "--output", "table.gz"]
    assert main([*command, "--output-ini", "new/moses.ini"]) == 0
    before, after = MosesIni.read(model / "moses.ini"), MosesIni.read(out / "new/moses.ini")
    (table,) = (feature for feature in after.features if feature.name == "TranslationModel0")
    assert (table.options["path"], table.options["num-features"]) == (str(out / "table.gz"), "6")
    assert after.weights.pop("TranslationModel0") == [*before.weights.pop("TranslationModel0"), 0.2, 0.0]
    assert after.weights == before.weights
    assert (after.sections, after.distortion_limit) == (before.sections, before.distortion_limit)
    assert after.table_limit == before.table_limit
    for old, new in zip(before.features, after.features, strict=True):
        assert (old.kind, old.name) == (new.kind, new.name)
        if new is not table:
            paths = {"path": str(model / old.options["path"])} if "path" in old.options else {}
            assert new.options == old.options | paths
    text, nbest = tmp_path / "text", tmp_path / "nbest"
    text.write_text("a b c\n")
    monkeypatch.chdir("/")
    decode = ["search", "decode", "--ini", str(out / "new/moses.ini"), "--input", str(text)]
    assert main([*decode, "--nbest", "20", "--nbest-file", str(nbest), "--output", str(tmp_path / "best")]) == 0
    for line in nbest.read_text().splitlines():
        _, target, features, _, segments = line.split(" ||| ")
        path = path_of(target, parse_segmentation(segments))
        added = sum(scores[pairs[" ".join("abc"[first : last + 1]), " ".join(words)]] for first, last, words in path)
        assert float(features.split("TranslationModel0= ")[1].split()[4]) == pytest.approx(added, abs=2e-3)


MODEL = """\
[feature]
{table} name=TranslationModel0 num-features={scores} path=phrase-table.gz
WordPenalty
[weight]
TranslationModel0= {weights}
WordPenalty0= -1
"""


@pytest.mark.parametrize(
    ("kind", "scores", "options", "said"),
    [
        ("PhraseDictionaryMemory", 4, [], "--ini and --output-ini: must be used together"),
        (
            "PhraseDictionaryCompact",
            4,
            ["--output-ini", "new.ini"],
            "has no PhraseDictionaryMemory; scores can be added to",
        ),
        ("PhraseDictionaryMemory", 3, ["--output-ini", "new.ini"], "line 1: 4 scores, but moses.ini has 3 weights of"),
        ("PhraseDictionaryMemory", 4, ["--output-ini", "moses.ini"], "--output-ini moses.ini: used twice"),
    ],
)
def test_refused_models(table, capsys, monkeypatch, kind, scores, options, said):
    directory = table.parent
    values = column(directory, [-1.0] * 3)
    ini = MODEL.format(table=kind, scores=scores, weights=" ".join(["0.2"] * scores))
    (directory / "moses.ini").write_text(ini)
    monkeypatch.chdir(directory)
    command = ["phrases", "augment", "--ini", "moses.ini", "--column", values, "--output", "out.gz", *options]
    assert main(command) == 2
    assert said in capsys.readouterr().err
    assert not any((directory / name).exists() for name in ("out.gz", "new.ini"))
    assert (directory / "moses.ini").read_text() == ini


@pytest.mark.parametrize(
    "options", [[], ["--ini", "moses.ini", "--output-ini", "new.ini", "--phrase-table", "phrase-table.gz"]]
)
def test_one_of_table_and_model_is_required(capsys, options):
    assert main(["phrases", "augment", *options, "--column", "scores", "--output", "out.gz"]) == 2
    assert "--phrase-table or --ini: exactly one of them" in capsys.readouterr().err
