"""Data selection: the split, the sample, scores and ranking by hand, and the three stages on a small pool."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rnnsmt
from rnnsmt.base.errors import InputError
from rnnsmt.base.reading import read_lines
from rnnsmt.cli import main
from rnnsmt.lm.queries import LOG2_10, load_kenlm, measure
from rnnsmt.selection import ORDER, PoolFiles
from rnnsmt.selection.curve import FRACTIONS, curve
from rnnsmt.selection.pool import best, read_scores
from rnnsmt.selection.side_models import sample_lines, split_held_out

NEWS = [f"news{i}" for i in range(60)]
CODE = [f"code{i}" for i in range(60)]
COMMON = ["the", "a", "of", "in", "is", "and"]


def sentences(words: list[str], number: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    every = words + COMMON * 5
    return [" ".join(rng.choice(every, rng.integers(3, 10))) for _ in range(number)]


def make_corpora(directory: Path) -> None:
    """Write in-domain text and a pool: `mixed` (even lines in domain) and `code`; side 2 is upper case."""
    mixed = [line for pair in zip(sentences(NEWS, 400, 1), sentences(CODE, 400, 2), strict=True) for line in pair]
    texts = {"dev": sentences(NEWS, 300, 3), "mixed": mixed, "code": sentences(CODE, 200, 4)}
    for name, lines in texts.items():
        for side, change in (("1", str), ("2", str.upper)):
            content = "".join(change(line) + "\n" for line in lines)
            (directory / f"{name}.{side}.gz").write_bytes(gzip.compress(content.encode(), mtime=0))


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """Create the corpora."""
    make_corpora(tmp_path)
    return tmp_path


def models(directory: Path, side: str) -> int:
    pool = [str(directory / f"{name}.{side}.gz") for name in ("mixed", "code")]
    in_domain = ["--in-domain", str(directory / f"dev.{side}.gz"), "--pool", *pool]
    return main(["selection", "models", *in_domain, "--output-dir", str(directory / f"m{side}"), "--seed", "7"])


def score(directory: Path, name: str, *options: str, bitext: bool = True) -> int:
    words = ["--text", str(directory / f"{name}.1.gz"), "--models", str(directory / "m1")]
    if bitext:
        words += ["--text2", str(directory / f"{name}.2.gz"), "--models2", str(directory / "m2")]
    return main(["selection", "score", *words, "--output", str(directory / f"{name}.tsv.gz"), *options])


def select(directory: Path, *options: str, bitext: bool = True) -> int:
    corpora = []
    for name in ("mixed", "code"):
        texts = [str(directory / f"{name}.{side}.gz") for side in ("12" if bitext else "1")]
        corpora.append("=".join([name, str(directory / f"{name}.tsv.gz"), *texts]))
    out = ["--output-dir", str(directory / "out"), "--curve", str(directory / "curve.tsv")]
    langs = ["--lang", *("12" if bitext else "1")]
    return main(["selection", "select", "--corpus", *corpora, *langs, *out, *options])


@pytest.fixture(scope="module")
def scored_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("scored")
    make_corpora(directory)
    for side in "12":
        assert models(directory, side) == 0
    for name in ("mixed", "code"):
        assert score(directory, name) == 0
    return directory


@pytest.fixture
def scored(scored_once: Path, tmp_path: Path) -> Path:
    """Create the corpora with models `m1`, `m2` and the scores of the bitext."""
    return Path(shutil.copytree(scored_once, tmp_path / "scored"))


def held(directory: Path) -> list[str]:
    return ["--held-out", str(directory / "m2" / "held-out.gz")]


def refused(capsys: pytest.CaptureFixture[str], *parts: str) -> None:
    lines = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert len(lines) == 1
    for part in parts:
        assert part in lines[0]


def test_both_doors_write_the_same_bytes(corpora: Path) -> None:
    """The commands, and the functions with files and with lists, write and return the same."""
    assert models(corpora, "1") == 0
    lines = {name: list(read_lines(corpora / f"{name}.1.gz")) for name in ("dev", "mixed", "code")}
    found = rnnsmt.selection.models(lines["dev"], lines["mixed"] + lines["code"], corpora / "py", seed=7)
    assert found.figures["in domain lines"] == 270
    for path in (corpora / "m1").iterdir():
        assert path.read_bytes() == (corpora / "py" / path.name).read_bytes(), path.name

    pool = []
    for name in ("mixed", "code"):
        assert score(corpora, name, bitext=False) == 0
        scores = rnnsmt.selection.score(lines[name], corpora / "py")
        rnnsmt.selection.score(corpora / f"{name}.1.gz", corpora / "m1", corpora / "py.tsv.gz")
        assert (corpora / "py.tsv.gz").read_bytes() == (corpora / f"{name}.tsv.gz").read_bytes()
        assert scores.values.tolist() == read_scores(corpora / f"{name}.tsv.gz").tolist()
        pool.append(PoolFiles(name, scores, [lines[name]]))

    held_out = corpora / "m1" / "held-out.gz"
    assert select(corpora, "--fraction", "auto", "--held-out", str(held_out), bitext=False) == 0
    options = {"lang": "1", "fraction": "auto", "held_out": list(read_lines(held_out))}
    selected = rnnsmt.selection.select(pool, corpora / "selected", **options)
    for path in (corpora / "out").iterdir():
        assert path.read_bytes() == (corpora / "selected" / path.name).read_bytes(), path.name
    assert sum(mask.sum() for mask in selected.kept.values()) == selected.figures["kept"]
    assert selected.curve["lines"].tolist()[-1] == 1000
    with pytest.raises(InputError, match=r"^fraction or words: exactly one"):
        rnnsmt.selection.select(pool, corpora / "selected", lang="1", fraction=0.5, words=9)
    with pytest.raises(InputError, match=r"^mixed has 800 scores, but mixed\.1 has 200 lines"):
        other = [pool[0]._replace(texts=[lines["code"]])]
        rnnsmt.selection.select(other, corpora / "selected", lang="1", fraction=0.5)


# functions


def test_every_tenth_block_is_held_out() -> None:
    lines = [str(i) for i in range(1234)]
    training, out = split_held_out(lines, "text")
    assert out == [str(i) for i in (*range(450, 500), *range(950, 1000))]
    assert sorted([*training, *out], key=int) == lines
    training, out = split_held_out(lines[:25], "text")
    assert out == ["9", "19"]
    with pytest.raises(InputError, match="19 lines"):
        split_held_out(lines[:19], "text")


def test_samples_have_the_wanted_size_and_depend_on_the_seed(tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    pool.write_text("".join(f"{i} b c d\n" for i in range(1000)), "utf-8")
    found = sample_lines([pool], 402, 1)
    assert (found.pool_lines, len(found.first), len(found.second)) == (1000, 101, 100)
    assert not set(found.first) & set(found.second)
    for sample in (found.first, found.second):
        numbers = [int(line.split()[0]) for line in sample]
        assert numbers == sorted(numbers)
        assert 300 < sum(numbers) / len(numbers) < 700
    assert sample_lines([pool], 402, 1) == found
    assert sample_lines([pool], 402, 2).first != found.first
    # each takes half of a small pool; copies of lines in the first sample are excluded from the second
    found = sample_lines([pool, pool], 10**6, 1)
    assert len(found.first) == 1000
    assert set(found.first) | set(found.second) == set(read_lines(pool))
    assert not set(found.first) & set(found.second)


def test_ranking_by_hand() -> None:
    scores = np.array([3, -1, 2, -1, 0], np.float32)
    # in order: lines 1, 3, 4, 2, 0; 20 %, 50 % (2.5 rounds up), 80 % of five
    assert best(scores, [0.2, 0.5, 0.8]).tolist() == [3, 0, 2, 1, 1]
    assert best(scores, [0.01]).tolist() == [1, 0, 1, 1, 1]


@given(
    st.lists(st.floats(-9, 9, width=32), min_size=1, max_size=40),
    st.lists(st.floats(0.01, 1), min_size=1, max_size=5, unique=True),
)
def test_ranking_keeps_the_lowest(values: list[float], fractions: list[float]) -> None:
    fractions = sorted(fractions)
    scores = np.array(values, np.float32)
    increments = best(scores, fractions)
    for i, fraction in enumerate(fractions):
        kept = increments <= i
        assert kept.sum() == max(int(fraction * len(values) + 0.5), 1)
        if not kept.all():
            assert scores[kept].max() <= scores[~kept].min()


def test_scores_file(tmp_path: Path) -> None:
    path = tmp_path / "scores"
    path.write_text("0.5\n-1\n")
    assert read_scores(path).tolist() == [0.5, -1]
    for bad in ("x", "1 2"):
        path.write_text(f"0.5\n{bad}\n")
        with pytest.raises(InputError, match=f"scores: contains other lines than scores .*'{bad}'"):
            read_scores(path)


def test_perplexities_of_different_fractions_are_over_the_same_events(tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    pool.write_text("a b a b c\n" * 3 + "d e d e\n" * 3, "utf-8")
    increments = np.array([0, 1, 1, 1, 1, 1], np.uint8)
    points = curve([(pool, increments)], [1 / 6, 1.0], ["a d x"], work=tmp_path)
    assert [(p.lines, p.words) for p in points] == [(1, 5), (6, 27)]
    assert [p.oov_rate for p in points] == pytest.approx([2 / 3, 1 / 3])
    # `d` is in the vocabulary of the first model, though not in its text: it has a share of the uniform mass
    from rnnsmt.lm.estimation import estimate

    first = tmp_path / "first"
    first.write_text("a b a b c\n", "utf-8")
    estimate([first], ORDER, tmp_path / "lm.arpa", vocabulary=["a", "b", "c", "d", "e"])
    found = measure(load_kenlm(tmp_path / "lm.arpa"), ["a d x"], "text")
    assert (found.oov, found.perplexity) == (1, pytest.approx(points[0].perplexity, rel=1e-6))


# stages


def test_models_are_what_they_say(corpora: Path) -> None:
    assert models(corpora, "1") == 0
    figures = json.loads((corpora / "m1" / "models.json").read_text())
    assert figures["in_domain_lines"] + figures["held_out_lines"] == 300
    assert figures["pool_lines"] == 1000
    assert figures["in_domain_words"] <= figures["general_words"] < figures["in_domain_words"] + 10
    out = set(read_lines(corpora / "m1" / "held-out.gz"))
    assert out <= set(read_lines(corpora / "dev.1.gz"))
    unigrams = {}
    for name in ("in-domain", "general"):
        lines = list(read_lines(corpora / "m1" / f"{name}.arpa.gz"))
        start = lines.index("\\1-grams:")
        unigrams[name] = {line.split("\t")[1] for line in lines[start + 1 : lines.index("", start)]}
    assert unigrams["in-domain"] == unigrams["general"]
    assert len(unigrams["general"]) == figures["vocabulary"] + 3
    assert {p.name for p in (corpora / "m1").iterdir()} == {
        "in-domain.arpa.gz", "general.arpa.gz", "general.gz", "general2.arpa.gz", "held-out.gz", "models.json"
    }  # fmt: skip


@pytest.mark.parametrize("leftover", [".work", ".tmp-other-1-models.scratch"])
def test_the_scratch_of_others_is_left_alone(corpora: Path, leftover: str) -> None:
    """Scratch files of another process are not removed; a stage may outlive its Snakemake."""
    (corpora / "m1" / leftover).mkdir(parents=True)
    (corpora / "m1" / leftover / "in-domain").write_text("half")
    assert models(corpora, "1") == 0
    assert (corpora / "m1" / leftover / "in-domain").read_text() == "half"


def test_both_sides_are_split_at_the_same_lines(scored: Path) -> None:
    sides = [list(read_lines(scored / f"m{side}" / "held-out.gz")) for side in "12"]
    assert [line.upper() for line in sides[0]] == sides[1]


def test_moore_lewis_score_by_hand(corpora: Path) -> None:
    assert models(corpora, "1") == 0
    assert score(corpora, "mixed", bitext=False) == 0
    names = ("in-domain", "general", "general2")
    in_domain, general, general2 = (load_kenlm(corpora / "m1" / f"{name}.arpa.gz") for name in names)
    seen = set(read_lines(corpora / "m1" / "general.gz"))
    for line, value in zip(read_lines(corpora / "mixed.1.gz"), read_lines(corpora / "mixed.tsv.gz"), strict=True):
        words = len(line.split()) + 1
        entropies = [
            -LOG2_10 * model.score(line) / words for model in (in_domain, general2 if line in seen else general)
        ]
        assert float(value) == pytest.approx(entropies[0] - entropies[1], abs=2e-6)


def test_axelrod_adds_both_sides(scored: Path) -> None:
    both = read_scores(scored / "mixed.tsv.gz")
    assert score(scored, "mixed", bitext=False) == 0
    one = read_scores(scored / "mixed.tsv.gz")
    words = ["--text", str(scored / "mixed.2.gz"), "--models", str(scored / "m2")]
    assert main(["selection", "score", *words, "--output", str(scored / "side2")]) == 0
    assert both == pytest.approx(one + read_scores(scored / "side2"), abs=3e-6)
    assert both[0::2].mean() < 0 < both[1::2].mean()


def test_the_control_is_as_many_random_lines(scored: Path) -> None:
    """The random control has the fraction of the ranking, and as many lines."""
    assert select(scored, "--fraction", "auto", *held(scored)) == 0
    ranked = json.loads((scored / "out/selected.json").read_text())
    curve_of_ranking = (scored / "curve.tsv").read_bytes()

    def control(seed: str) -> dict[str, list[str]]:
        options = ["--fraction", "auto", *held(scored), "--random", seed]
        assert select(scored, *options) == 0
        report = json.loads((scored / "out/selected.json").read_text())
        assert report["random"] == int(seed)
        assert (report["fraction"], report["curve"]) == (ranked["fraction"], ranked["curve"])
        assert (scored / "curve.tsv").read_bytes() == curve_of_ranking
        kept = {name: list(read_lines(scored / f"out/{name}.1.gz")) for name in ("mixed", "code")}
        for name, lines in kept.items():
            assert [line.upper() for line in lines] == list(read_lines(scored / f"out/{name}.2.gz"))
        return kept

    first = control("1")
    total = sum(item["kept"] for item in ranked["corpora"].values())
    assert sum(map(len, first.values())) == total
    assert len(first["code"]) / total == pytest.approx(0.2, abs=0.06)
    news = sum("news" in line for line in first["mixed"])
    assert news / len(first["mixed"]) == pytest.approx(0.5, abs=0.12)
    assert control("1") == first
    assert control("2") != first


def test_every_corpus_has_random_lines_of_its_own(scored: Path) -> None:
    """Corpora of the same length get different random lines."""
    for side in "12":
        (scored / f"code.{side}.gz").write_bytes((scored / f"mixed.{side}.gz").read_bytes())
    (scored / "code.tsv.gz").write_bytes((scored / "mixed.tsv.gz").read_bytes())
    for options in (["--fraction", "0.5"], ["--fraction", "1", "--keep", "mixed=0.5", "code=0.5"]):
        assert select(scored, *options, "--random", "1") == 0
        mixed, code = (list(read_lines(scored / f"out/{name}.1.gz")) for name in ("mixed", "code"))
        assert len(mixed) + len(code) == 800
        assert mixed != code
        assert len(set(mixed) & set(code)) < 300


def test_threads_and_reruns_give_the_same_bytes(scored: Path) -> None:
    before = {p: p.read_bytes() for p in scored.rglob("*") if p.is_file()}
    for side in "12":
        assert models(scored, side) == 0
    assert score(scored, "mixed", "--threads", "2") == 0
    assert {p: p.read_bytes() for p in scored.rglob("*") if p.is_file()} == before
    assert select(scored, "--fraction", "auto", *held(scored)) == 0
    before = {p: p.read_bytes() for p in scored.rglob("*") if p.is_file()}
    assert select(scored, "--fraction", "auto", *held(scored), "--threads", "2") == 0
    assert {p: p.read_bytes() for p in scored.rglob("*") if p.is_file()} == before


def test_a_fixed_fraction_keeps_the_in_domain_lines_in_order(scored: Path) -> None:
    assert select(scored, "--fraction", "0.3") == 0
    kept = list(read_lines(scored / "out" / "mixed.1.gz"))
    whole = list(read_lines(scored / "mixed.1.gz"))
    report = json.loads((scored / "out" / "selected.json").read_text())
    assert len(kept) + len(list(read_lines(scored / "out" / "code.1.gz"))) == 300
    assert [line for line in whole if line in set(kept)] == kept
    assert len(set(whole[0::2]) & set(kept)) > 0.9 * len(kept)
    assert [line.upper() for line in kept] == list(read_lines(scored / "out" / "mixed.2.gz"))
    assert report["corpora"]["mixed"]["kept"] == len(kept)
    assert (scored / "curve.tsv").read_text() == "fraction\tlines\twords\tperplexity\toov_rate\tchosen\n"


def test_auto_takes_the_fraction_with_the_least_perplexity(scored: Path) -> None:
    assert select(scored, "--fraction", "auto", *held(scored)) == 0
    rows = [line.split("\t") for line in read_lines(scored / "curve.tsv")][1:]
    assert [float(row[0]) for row in rows] == pytest.approx(FRACTIONS, abs=1e-6)
    assert [int(row[1]) for row in rows] == [16, 31, 63, 125, 188, 250, 375, 500, 750, 1000]
    perplexities = [float(row[3]) for row in rows]
    chosen = [float(row[0]) for row in rows if row[5] == "1"]
    assert chosen == [float(rows[int(np.argmin(perplexities))][0])]
    assert 0.1 < chosen[0] < 1
    report = json.loads((scored / "out" / "selected.json").read_text())
    assert report["fraction"] == chosen[0]
    written = {f"{name}.{side}.gz" for name in ("mixed", "code") for side in "12"} | {"selected.json"}
    assert {p.name for p in (scored / "out").iterdir()} == written


def test_corpora_with_their_own_settings(scored: Path) -> None:
    extra = f"whole=-={scored / 'dev.1.gz'}={scored / 'dev.2.gz'}"
    corpora = [f"{n}={scored / n}.tsv.gz={scored / n}.1.gz={scored / n}.2.gz" for n in ("mixed", "code")]
    out = ["--output-dir", str(scored / "out"), "--curve", str(scored / "curve.tsv")]
    keep = ["--keep", "whole=all", "code=0.25"]
    words = [
        "selection",
        "select",
        "--corpus",
        extra,
        *corpora,
        *keep,
        "--fraction",
        "auto",
        *held(scored),
        *out,
        "--lang",
        "1",
        "2",
    ]
    assert main(words) == 0
    report = json.loads((scored / "out" / "selected.json").read_text())["corpora"]
    assert report["whole"]["kept"] == 300
    assert list(read_lines(scored / "out" / "whole.2.gz")) == list(read_lines(scored / "dev.2.gz"))
    assert report["code"] == {"lines": 200, "kept": 50, "keep": 0.25}
    assert json.loads((scored / "out" / "selected.json").read_text())["curve"][-1]["lines"] == 800


def test_all_corpora_kept_whole_need_no_ranking(scored: Path) -> None:
    assert select(scored, "--keep", "mixed=all", "code=all", "--fraction", "auto", *held(scored)) == 0
    assert json.loads((scored / "out" / "selected.json").read_text())["fraction"] is None
    assert list(read_lines(scored / "out" / "code.1.gz")) == list(read_lines(scored / "code.1.gz"))


def test_pool_of_one_repeated_line(tmp_path: Path, corpora: Path) -> None:
    for side in "12":
        (corpora / f"mixed.{side}.gz").write_bytes(gzip.compress(b"same words\n" * 40))
        (corpora / f"code.{side}.gz").write_bytes(gzip.compress(b"same words\n" * 40))
        assert models(corpora, side) == 0
    for name in ("mixed", "code"):
        assert score(corpora, name) == 0
    assert select(corpora, "--fraction", "auto", *held(corpora)) == 0


# invalid input


def test_models_refuse_bad_text(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original = {p: p.read_bytes() for p in corpora.iterdir()}
    cases = [
        ("dev.1.gz", gzip.compress(b""), ["dev.1.gz", "0 lines"]),
        ("dev.1.gz", gzip.compress(b"one\n" * 19), ["19 lines", "at least 20"]),
        ("dev.1.gz", gzip.compress(b"\n" * 40), ["no words"]),
        ("dev.1.gz", gzip.compress(b"ok\n\xe9\n" * 20), ["dev.1.gz", "line 2", "not UTF-8"]),
        ("dev.1.gz", original[corpora / "dev.1.gz"][:300], ["dev.1.gz", "damaged"]),
        ("mixed.1.gz", original[corpora / "mixed.1.gz"][:300], ["mixed.1.gz", "damaged"]),
        ("mixed.1.gz", gzip.compress(b"\xe9\n" * 20), ["mixed.1.gz", "line 1", "not UTF-8"]),
        ("mixed.1.gz", gzip.compress(b"a </s> b\n"), ["mixed.1.gz", "</s>"]),
    ]
    for name, content, parts in cases:
        for path, data in original.items():
            path.write_bytes(data)
        (corpora / name).write_bytes(content)
        if "</s>" in parts:
            (corpora / "code.1.gz").write_bytes(gzip.compress(b""))
        assert models(corpora, "1") == 2, parts
        refused(capsys, *parts)
        assert not [p for p in (corpora / "m1").rglob("*") if p.name.startswith(".")]


def test_empty_pool_is_refused(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("mixed", "code"):
        (corpora / f"{name}.1.gz").write_bytes(gzip.compress(b"\n\n"))
    assert models(corpora, "1") == 2
    refused(capsys, "0 of 4 lines contain words")


def test_score_refuses_bad_input(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (scored / "mixed.tsv.gz").read_bytes()
    words = ["selection", "score", "--text", str(scored / "mixed.1.gz"), "--models", str(scored / "m1")]
    output = ["--output", str(scored / "mixed.tsv.gz")]
    assert main([*words, *output, "--text2", str(scored / "mixed.2.gz")]) == 2
    refused(capsys, "--text2 and --models2 must be used together")
    assert main([*words, *output, "--text2", str(scored / "code.2.gz"), "--models2", str(scored / "m2")]) == 2
    refused(capsys, "code.2.gz", "line 200", "same number of lines")
    assert main([*words[:4], "--models", str(scored / "nowhere"), *output]) == 2
    refused(capsys, "in-domain.arpa.gz", "no such file")
    (scored / "m1" / "general.arpa.gz").write_bytes(gzip.compress(b"nonsense\n"))
    for threads in ("1", "2"):
        assert main([*words, *output, "--threads", threads]) == 2
        refused(capsys, "general.arpa.gz, line 1", "expected")
    assert (scored / "mixed.tsv.gz").read_bytes() == before
    assert not [p for p in scored.iterdir() if p.name.startswith(".tmp")]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--fraction", "auto"], ["--held-out"]),
        (["--fraction", "1", "--keep", "other=all"], ["other", "mixed, code"]),
        (["--fraction", "auto", "--held-out", "nothing"], ["nothing", "no such file"]),
    ],
)
def test_select_refuses_bad_settings(
    scored: Path, capsys: pytest.CaptureFixture[str], options: list[str], parts: list[str]
) -> None:
    assert select(scored, *options) == 2
    refused(capsys, *parts)
    assert not (scored / "out").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--fraction", "0"],
        ["--fraction", "1.5"],
        ["--fraction", "-1"],
        ["--fraction", "nan"],
        ["--fraction", "some"],
        ["--fraction", "1", "--keep", "mixed"],
        ["--fraction", "1", "--keep", "mixed=2"],
        ["--fraction", "1", "--corpus", "x=y"],
        ["--fraction", "1", "--corpus", "x/y=s=t"],
        ["--fraction", "1", "--corpus", "x=s=t=u=v"],
    ],
)
def test_select_refuses_bad_options(corpora: Path, options: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        select(corpora, *options)
    assert stop.value.code == 2


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("mixed.tsv.gz", b"1\n" * 799, ["mixed.tsv.gz", "799 scores", "800 lines"]),
        ("mixed.tsv.gz", b"1\n" * 801, ["801 scores"]),
        ("mixed.tsv.gz", b"1\nx\n", ["mixed.tsv.gz: contains other lines than scores"]),
        ("mixed.2.gz", b"A\n", ["mixed.2.gz", "line 1", "same number of lines"]),
        ("mixed.1.gz", b"\xff\n" * 800, ["mixed.1.gz", "line 1", "not UTF-8"]),
        ("code.1.gz", None, ["code.1.gz", "no such file"]),
        ("code.1.gz", "cut", ["code.1.gz", "damaged"]),
        ("m2/held-out.gz", b"\n", ["held-out.gz", "no words"]),
    ],
)
def test_select_refuses_bad_files(
    scored: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | str | None, parts: list[str]
) -> None:
    path = scored / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-20] if isinstance(content, str) else gzip.compress(content))
    assert select(scored, "--fraction", "auto", *held(scored)) == 2
    refused(capsys, *parts)
    assert not (scored / "out").exists()


def test_select_refuses_inconsistent_corpora(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--fraction", "1", "--output-dir", str(scored / "out"), "--curve", str(scored / "curve.tsv")]
    out += ["--lang", "1", "2"]
    one = f"mixed={scored / 'mixed.tsv.gz'}={scored / 'mixed.1.gz'}"
    two = f"code={scored / 'code.tsv.gz'}={scored / 'code.1.gz'}={scored / 'code.2.gz'}"
    assert main(["selection", "select", "--corpus", one, one, *out]) == 2
    refused(capsys, "used twice")
    assert main(["selection", "select", "--corpus", one, two, *out]) == 2
    refused(capsys, "parallel and monolingual corpora cannot be combined")
    assert main(["selection", "select", "--corpus", f"mixed=-={scored / 'mixed.1.gz'}", *out]) == 2
    refused(capsys, "--keep mixed=all")
    assert main(["selection", "select", "--corpus", one, *out]) == 2
    refused(capsys, "mixed", "--lang")


def test_words_rather_than_a_fraction(scored: Path) -> None:
    """With --words, the best lines of all corpora are kept up to the number of words."""
    assert select(scored, "--fraction", "1") == 0
    lines, scores = [], []
    for name in ("mixed", "code"):
        lines += [(name, line) for line in read_lines(scored / f"{name}.2.gz")]
        scores += [float(line) for line in read_lines(scored / f"{name}.tsv.gz")]
    order = np.argsort(np.float32(scores), kind="stable")
    words = np.cumsum([len(lines[i][1].split()) for i in order])
    wanted = int(words[99])
    assert select(scored, "--words", str(wanted)) == 0
    kept = [(name, line) for name in ("mixed", "code") for line in read_lines(scored / "out" / f"{name}.2.gz")]
    assert kept == [lines[i] for i in sorted(order[:100])]
    assert select(scored, "--words", str(wanted - 1)) == 0
    report = json.loads((scored / "out" / "selected.json").read_text())
    assert sum(one["kept"] for one in report["corpora"].values()) == 99
    assert report["asked"] == f"{wanted - 1} words"


def test_more_words_than_there_are(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert select(scored, "--words", "1000000000") == 0
    assert "all lines are kept" in capsys.readouterr().err
    assert select(scored, "--words", "1") == 2
    assert "the best line has" in capsys.readouterr().err
