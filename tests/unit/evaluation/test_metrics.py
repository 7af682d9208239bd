"""chrF, chrF++ and TER: against sacreBLEU, in the table with differences, intervals and p, in joint test sets."""

import json
import random

import numpy as np
import pandas as pd
import pytest
from sacrebleu.metrics import CHRF, TER

from rnnsmt.bleu.batch import bleu_of_many
from rnnsmt.cli import main
from rnnsmt.evaluation.metrics import score_texts
from rnnsmt.evaluation.scores import read_score
from rnnsmt.evaluation.significance import compare
from rnnsmt.registries import METRICS
from tests.unit.evaluation.test_significance import statistics
from tests.unit.evaluation.test_table import ALL, REFERENCES, command, contrasts, output_of, score, table, write

SACRE = {"chrf": CHRF(), "chrfpp": CHRF(word_order=2), "ter": TER()}


def texts(seed: int, references: int) -> tuple[list[str], list[list[str]]]:
    source = random.Random(seed)
    words = ["the", "boat", "is", "red", "a", "harbour,", "sees", "Old", "x"]

    def lines() -> list[str]:
        return [" ".join(source.choices(words, k=source.randint(1, 9))) for _ in range(12)]

    return ["", *lines()[1:]], [lines() for _ in range(references)]


@pytest.mark.parametrize("name", METRICS)
def test_sums_of_statistics_give_the_scores_of_texts(name):
    """For every metric: arrays of sums are scored one by one, and a text without words has a score."""
    hypotheses, many = texts(1, 2)
    found = score_texts(hypotheses, many, metrics=[name])[name]
    summed = found.sentences.sum(0)
    both = METRICS[name].score(np.array([summed, np.zeros_like(summed)]))
    assert both.shape == (2,) and both[0] == pytest.approx(found.score) and np.isfinite(both).all()
    assert len(found.sentences) == len(hypotheses) and found.signature == METRICS[name].signature(2)


@pytest.mark.parametrize("name", SACRE)
@pytest.mark.parametrize(("seed", "references"), [(1, 1), (2, 1), (3, 2)])
def test_sums_of_statistics_give_the_score_of_sacrebleu(name, seed, references):
    hypotheses, many = texts(seed, references)
    expected = SACRE[name].corpus_score(hypotheses, many)
    found = score_texts(hypotheses, many)[name]
    assert found.score == pytest.approx(expected.score)
    assert METRICS[name].score(found.sentences.sum(0)) == pytest.approx(expected.score)
    summed = found.sentences.sum(0)
    both = METRICS[name].score(np.array([summed, np.zeros_like(summed)]))
    assert both == pytest.approx([expected.score, 0])


def test_a_text_scored_again():
    """Scores of cached segments do not change after a text with another number of references."""
    one, two = texts(1, 1), texts(3, 2)
    first = score_texts(*one)
    assert "nrefs:2" in score_texts(*two)["ter"].signature
    again = score_texts(*one)
    assert all(np.array_equal(again[name].sentences, first[name].sentences) for name in METRICS)
    assert all("nrefs:1" in first[name].signature for name in SACRE)


def test_case_in_signatures():
    hypotheses, many = texts(1, 1)
    cased, lower = score_texts(hypotheses, many), score_texts(hypotheses, many, lowercase=True)
    assert "case:mixed" in cased["chrfpp"].signature and "case:lc" in lower["chrfpp"].signature
    assert lower["chrf"].score > cased["chrf"].score


def as_any_metric(summed: np.ndarray) -> np.ndarray:
    return bleu_of_many(summed)


@pytest.mark.parametrize(("trainings", "shared"), [((1, 1), False), ((3, 3), True), ((1, 3), False)])
def test_the_test_of_any_metric_is_that_of_bleu(trainings, shared):
    """The test of a metric with BLEU as the metric gives the difference, p and interval of the BLEU test."""
    rng = np.random.default_rng(4)
    quality = rng.uniform(0.6, 0.9, 80)
    first, second = (statistics(rng, np.broadcast_to(quality + gain, (3, 80))) for gain in (0, 0.02))
    expected = compare(first, second, trainings, shared)
    found = compare(first, second, trainings, shared, as_any_metric)
    assert found.difference == expected.difference
    assert found.p_strict == pytest.approx(expected.p_strict, abs=0.02)
    assert found.margin == pytest.approx(expected.margin, rel=0.05)
    assert found.p_bootstrap is None
    turned = compare(second, first, trainings[::-1], shared, as_any_metric)
    assert (turned.difference, turned.p_strict, turned.margin) == (-found.difference, found.p_strict, found.margin)


def test_the_table_has_them(tmp_path):
    """The table has mean sacreBLEU scores, differences, intervals and p; joint sets are scored as one corpus."""
    outputs = [f"--output-contrasts={tmp_path / 'out/contrasts.tsv'}", f"--output-json={tmp_path / 'out/table.json'}"]
    assert main(command(tmp_path, write(tmp_path, *ALL), "--joint", "both=test+more", *outputs)) == 0
    frame = table(tmp_path).set_index(["system", "test_set"])
    for name, metric in SACRE.items():
        means = {
            system: np.mean([
                metric.corpus_score(output_of(system, "test", run) + output_of(system, "more", run),
                                    [REFERENCES["test"] + REFERENCES["more"]]).score for run in (1, 2, 3)
            ]) for system in ("baseline", "rnn")
        }  # fmt: skip
        row = frame.loc[("rnn", "both")]
        assert row[name] == pytest.approx(means["rnn"], abs=1e-4)
        assert row[f"{name}_diff_baseline"] == pytest.approx(means["rnn"] - means["baseline"], abs=2e-4)
        assert row[f"{name}_low_baseline"] < row[f"{name}_diff_baseline"] < row[f"{name}_high_baseline"]
        assert 0 < row[f"{name}_p_strict_baseline"] <= 1
        assert pd.isna(frame.loc[("baseline", "both")][f"{name}_diff_baseline"])
        of_feature = contrasts(tmp_path).set_index(["test_set", "feature"]).loc[("both", "rnn")]
        assert of_feature[f"{name}_diff"] == row[f"{name}_diff_baseline"] == row[f"{name}_diff_without"]
    described = json.loads((tmp_path / "out/table.json").read_text())["columns"]
    assert described["ter_diff_baseline"] == "TER minus that of the baseline; lower is better"


def test_one_run_has_no_p(tmp_path):
    assert main(command(tmp_path, write(tmp_path, score(), score("rnn")))) == 0
    row = table(tmp_path).set_index("system").loc["rnn"]
    assert not pd.isna(row["ter_diff_baseline"])
    assert pd.isna(row["ter_p_strict_baseline"]) and pd.isna(row["chrf_low_baseline"])


def test_score_files_of_the_format_before(tmp_path):
    """Score files of the previous format are read; they have no metrics except BLEU."""
    (path,) = write(tmp_path, score())
    content = json.loads((tmp_path / "scores/0.json").read_text())
    del content["metrics"]
    content["format"] = "rnnsmt-bleu-3"
    if content["sacrebleu"]:
        content["sacrebleu"]["chrf"] = 12.3
    (tmp_path / "scores/0.json").write_text(json.dumps(content))
    assert read_score(path).metrics == {}
    assert main(command(tmp_path, [path])) == 0
    assert pd.isna(table(tmp_path).iloc[0]["chrf"])
