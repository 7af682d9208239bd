"""The splits and the estimates of benchmarks/held_out.py."""

import argparse
import importlib.util
import random
import re
import tarfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml

from rnnsmt.base.reading import read_lines
from rnnsmt.evaluation.scores import Score, write_score

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def held_out():
    """Import the script as a module."""
    spec = importlib.util.spec_from_file_location("held_out", ROOT / "benchmarks/held_out.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def splits(held_out, sizes=(60, 80, 70), gain=0.1):
    """Return splits whose second system is better, with two runs each."""
    rng = np.random.default_rng(1)
    found = []
    for number, size in enumerate(sizes, 1):
        statistics = {}
        for name, quality in (("baseline", 0.6), ("rnn", 0.6 + gain)):
            right = rng.random((2, size, 12)) < quality
            counts = [np.lib.stride_tricks.sliding_window_view(right, n, -1).all(-1).sum(-1) for n in range(1, 5)]
            totals = [np.full(counts[0].shape, 13 - n) for n in range(1, 5)]
            statistics[name] = np.stack([*counts, *totals, np.full(counts[0].shape, 12)], -1)
        found.append(held_out.Split(f"random{number}", statistics, np.round(rng.random(size), 1)))
    return found


def test_random_splits_are_disjoint_and_new(held_out):
    source = [f"line {k}" for k in range(15_000)] + ["twice", "twice"]
    drawn = held_out.random_splits(source)
    assert [len(part) for part in drawn] == [2000] * 5
    numbers = {row for part in drawn for row in part}
    assert len(numbers) == 10_000
    used = set(random.Random(20261122).sample(range(15_000), 2000))
    assert not numbers & used
    assert max(numbers) < 15_000


def test_the_held_out_set_of_multi30k_was_never_drawn(held_out, shared_dir):
    """The lines in the configuration are all unique sentences that are in no set of the experiments before."""
    source = list(read_lines(shared_dir / "data/multi30k/train.en.gz"))
    unused = held_out.unused_sentences(source)
    drawn = [*held_out.random_splits(source), *held_out.fresh_splits(source)]
    unique = [number for number, times in enumerate(map(Counter(source).get, source)) if times == 1]
    before = random.Random(20261122).sample(unique, 2000)
    assert sorted([*unused, *before, *(number for part in drawn for number in part)]) == unique
    corpora = yaml.safe_load((ROOT / "workflow/configs/multi30k.yaml").read_text())["corpora"]
    (lines,) = [entry["held_out"]["lines"] for entry in corpora if "held_out" in entry]
    assert lines == [number + 1 for number in unused]


WEIGHTS = {"rnn": 1, "baseline": -1}


def test_fresh_splits_share_no_sentence_with_others(held_out):
    source = [f"line {k}" for k in range(29_000)]
    drawn = [set(rows) for rows in held_out.fresh_splits(source)]
    assert [len(rows) for rows in drawn] == [2000] * 8
    assert len(set.union(*drawn)) == 16_000
    used = set(random.Random(20261122).sample(range(29_000), 2000)).union(*held_out.random_splits(source))
    assert not used & set.union(*drawn)


def test_the_variance_of_a_split_has_sentences_and_repeated_trainings(held_out):
    three = splits(held_out)
    found = held_out.estimate(three, WEIGHTS)
    each = [float(held_out.contrast([split], WEIGHTS)[0]) for split in three]
    assert found.by_split == each and found.value == pytest.approx(np.mean(each))
    runs = [[float(held_out.contrast([held_out.run_of(split, r)], WEIGHTS)[0]) for r in (0, 1)] for split in three]
    measured = np.mean(np.var(runs, axis=1, ddof=1)) / 2
    draws = [
        held_out.contrast([s], WEIGHTS, [times]) for s, times in zip(three, held_out.resamples(three), strict=True)
    ]
    assert found.within == pytest.approx(np.mean(np.var(draws, axis=1)) + measured)
    larger = max(found.within, np.var(each, ddof=1))
    from scipy import stats  # takes 0.7 CPU seconds, which collection spends in every process

    half = stats.t.ppf(0.975, (larger / measured) ** 2 * 3) * (larger / 3) ** 0.5
    assert found.interval == pytest.approx((found.value - half, found.value + half))
    assert found.p == pytest.approx(
        2 * stats.t.sf(abs(found.value) / (larger / 3) ** 0.5, (larger / measured) ** 2 * 3)
    )


def test_splits_that_differ_widen_the_interval(held_out):
    alike, different = splits(held_out), splits(held_out)
    better = different[0].statistics["rnn"]
    better[..., :4] = better[..., 4:8]  # all n-grams match
    narrow, wide = held_out.estimate(alike, WEIGHTS), held_out.estimate(different, WEIGHTS)
    assert wide.between > wide.within > narrow.between
    assert np.diff(wide.interval) > 2 * np.diff(narrow.interval)


def test_what_was_not_repeated_is_assumed(held_out):
    """A network counts with the sum of the factors of its systems; tuning counts for every system."""
    contrasts = held_out.CONTRASTS
    of_one_run = [held_out.assumed_variance(weights, "mert", 1, only_networks=False) for weights in contrasts.values()]
    tuning, network = 0.09**2, 0.09**2
    assert of_one_run == pytest.approx([2 * tuning + network, 2 * tuning + network, 4 * tuning, 2 * tuning + network])
    pair = {"moses:rnn": 1, "moses:baseline": -1, "mira:rnn": -1, "mira:baseline": 1}
    assert held_out.assumed_variance(pair, "fresh1", 1, only_networks=False) == pytest.approx(2 * (tuning + 0.04**2))
    two = held_out.assumed_variance(contrasts["I = B - A"], "mira", 2, only_networks=True)
    assert two == 0
    one, both = splits(held_out)[:1], held_out.estimate(splits(held_out)[:1], WEIGHTS)
    shared = held_out.estimate(one, WEIGHTS, networks=1)
    assert shared.within == pytest.approx(both.within + network)
    first = [held_out.run_of(one[0], 0)]
    assert held_out.optimizer_of(first[0].name) == "mira"
    assert np.isnan(held_out.estimate(first, WEIGHTS).between)


@pytest.mark.parametrize(
    ("interval", "paper", "said"),
    [
        ((0.1, 0.4), None, "significant"),
        ((0.1, 0.4), 0.57, "significant, smaller"),
        ((0.1, 0.6), 0.57, "significant, agrees"),
        ((-0.4, -0.1), 0.57, "significant loss, smaller"),
        ((-0.1, 0.3), 0.57, "not significant, smaller"),
        ((-0.1, 0.6), 0.57, "inconclusive: 0 and the paper's figure"),
        ((0.6, 0.9), 0.57, "significant, larger"),
    ],
)
def test_two_answers(held_out, interval, paper, said):
    assert held_out.answers(interval, paper) == said


def test_holm(held_out):
    assert held_out.holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])


def test_only_primary_contrasts_are_corrected(held_out, capsys):
    assert list(held_out.contrasts_table(splits(held_out), {held_out.PRIMARY[0]: WEIGHTS}, None)) == ["A, random"]
    assert not held_out.contrasts_table(splits(held_out), {"A": WEIGHTS}, None)
    assert "nan" not in capsys.readouterr().out


def table_rows(directory: Path, held_out, texts) -> list[str]:
    """Return the rows of the published table that the archives give for these texts."""
    archives = ROOT / "benchmarks"
    of_e11 = [text.pattern.endswith("-fresh?") for text in texts]
    paths = [archives / "held_out.tar.xz"] if not all(of_e11) else []
    for path in [*paths, *(sorted((archives / "e11").iterdir()) if any(of_e11) else [])]:
        with tarfile.open(path) as tar:
            tar.extractall(directory, filter="data")
    return held_out.claims_table(directory, texts)


def test_the_primary_row_comes_from_the_archive(held_out, tmp_path):
    texts = [text for text in held_out.PUBLISHED if text.pattern == "moses-fresh?"][:1]
    row = table_rows(tmp_path, held_out, texts)[-1]
    assert row in (ROOT / "docs/results.md").read_text()
    gain = re.search(r"\*\*(.*)\*\*", row)[1]
    assert gain in re.sub(r"\s+", " ", (ROOT / "README.md").read_text())
    assert gain in (ROOT / "research/reproduction.md").read_text()


@pytest.mark.slow
def test_the_published_table_comes_from_the_archives(held_out, tmp_path):
    page = (ROOT / "docs/results.md").read_text()
    assert "\n".join(table_rows(tmp_path, held_out, held_out.PUBLISHED)) in page
    page = (ROOT / "benchmarks/tuning.md").read_text()
    assert "\n".join(held_out.optimizers_table(tmp_path)) in page


def test_bins_hold_every_sentence_once(held_out):
    three = splits(held_out)
    three[0].overlap[:] = 1.0
    for number in (2, 5, 40):
        cut = held_out.bins(three, number)
        assert sum(len(part.overlap) for _, _, parts in cut for part in parts) == 210
        assert all(before[1] < after[0] for before, after in pairwise(cut))
    value, low, high = held_out.slope(cut, {"rnn": 1, "baseline": -1})
    assert low < value < high


def test_overlap(held_out):
    found = held_out.overlap_with(["a b c d e", "a x", "z"], ["a b c d", "x a"])
    assert found == pytest.approx([(4 / 5 + 3 / 4 + 2 / 3 + 1 / 2) / 4, (1 + 0) / 2, 0])


def test_contrasts_as_text(held_out):
    assert held_out.parse_contrast("D=cslm_rnn-cslm-rnn+baseline") == (
        "D", {"cslm_rnn": 1, "cslm": -1, "rnn": -1, "baseline": 1},
    )  # fmt: skip
    assert held_out.parse_contrast("L=rnn_leave10-rnn") == ("L", {"rnn_leave10": 1, "rnn": -1})
    with pytest.raises(SystemExit, match="write NAME=SYSTEM-SYSTEM"):
        held_out.parse_contrast("x")


def test_what_does_not_depend_on_smoothing_is_linked(held_out, tmp_path):
    for path in (
        "rnn/network1/model.safetensors",
        "model/lex.e2f",
        "model/phrase-table.gz",
        "systems/rnn/run1/moses.ini",
    ):
        (tmp_path / "a/results" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "a/results" / path).write_text(path)
    held_out.link_shared(tmp_path / "a", tmp_path / "b")
    linked = sorted(
        str(path.relative_to(tmp_path / "b/results")) for path in (tmp_path / "b").rglob("*") if path.is_file()
    )
    assert linked == ["model/lex.e2f", "rnn/network1/model.safetensors"]
    assert (tmp_path / "b/results/model/lex.e2f").samefile(tmp_path / "a/results/model/lex.e2f")


def test_archive_gives_the_same_figures_without_texts(held_out, tmp_path):
    texts = {"train.en": "a b c d\nx a\n", "test.en": "a b c d e\na x\nz\n", "test.fr": "f g\nf\ng\n"}
    for path, text in texts.items():
        (tmp_path / "work/random1").mkdir(parents=True, exist_ok=True)
        (tmp_path / "work/random1" / path).write_text(text)
    rows = ((5, 4, 3, 2, 5, 4, 3, 2, 5), (1, 1, 0, 0, 2, 1, 0, 0, 2), (1, 0, 0, 0, 1, 0, 0, 0, 1))
    for system in ("baseline", "rnn"):
        directory = tmp_path / f"work/random1/none/results/systems/{system}/run1"
        directory.mkdir(parents=True)
        write_score(directory / "test.bleu.json", Score(system, "test", 1, 1, np.array(rows), None, None))
    archive = tmp_path / "scores.tar.xz"
    held_out.archive(argparse.Namespace(split=[str(tmp_path / "work/random1")], output=str(archive)))
    with tarfile.open(archive) as tar:
        assert {Path(name).name for name in tar.getnames()} == {"overlap.json", "test.bleu.json"}
        tar.extractall(tmp_path / "unpacked", filter="data")
    before, after = (
        held_out.read_split(tmp_path / where / "random1", "none", ["baseline", "rnn"]) for where in ("work", "unpacked")
    )
    assert (before.overlap == after.overlap).all()
    assert all((before.statistics[name] == after.statistics[name]).all() for name in before.statistics)
    assert held_out.read_split(tmp_path / "work/random1", "none", ["baseline", "rnn"], [1, 2]) is not None
    assert held_out.read_split(tmp_path / "work/random1", "none", ["baseline", "rnn"], [2]) is None


def test_names_with_a_plus_in_contrasts(held_out):
    assert held_out.parse_contrast("L=baseline+cslm - baseline") == ("L", {"baseline+cslm": 1, "baseline": -1})
    assert held_out.parse_contrast("I=cslm_rnn-cslm-rnn+baseline")[1] == {
        "cslm_rnn": 1, "cslm": -1, "rnn": -1, "baseline": 1
    }  # fmt: skip
