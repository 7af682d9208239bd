"""Table 1: rows, joint test sets, differences, invalid input, and the three output formats."""

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rnnsmt
from rnnsmt.base.errors import InputError
from rnnsmt.bleu.batch import corpus_bleu, corpus_statistics
from rnnsmt.cli import main
from rnnsmt.config.features import label
from rnnsmt.evaluation.metrics import score_texts
from rnnsmt.evaluation.scores import Score, read_score, sacre_bleu, write_score
from rnnsmt.evaluation.significance import compare

REFERENCES = {
    "test": ["the old man reads a long book .", "two dogs run over the green field ."],
    "more": ["a child eats an apple in the garden ."],
    "dev": ["the woman sells red apples at the market ."],
}


def output_of(system: str, test_set: str, run: int) -> list[str]:
    """Return the references with some words replaced."""
    strength = {"baseline": 3, "rnn": 2, "cslm_rnn_wp": 1}.get(system, 3)
    texts = []
    for text in REFERENCES[test_set]:
        words = text.split()
        for place in range(strength):
            words[(run + 7 * place) % len(words)] = "x"
        texts.append(" ".join(words))
    return texts


def score(system: str = "baseline", test_set: str = "test", run: int = 1, **changed) -> Score:
    hypotheses, references = output_of(system, test_set, run), [REFERENCES[test_set]]
    values = {
        "system": system,
        "test_set": test_set,
        "run": run,
        "references": 1,
        "sentences": corpus_statistics(hypotheses, references),
        "sacrebleu": sacre_bleu(hypotheses, references),
        "decode": {"unknown_words": 5},
        "metrics": {} if changed.get("sacrebleu", "") is None else score_texts(hypotheses, references),
    }
    return Score(**(values | changed))


def write(directory: Path, *scores: Score) -> list[str]:
    paths = []
    for number, one in enumerate(scores):
        path = directory / "scores" / f"{number}.json"
        write_score(path, one)
        paths.append(str(path))
    return paths


def command(directory: Path, paths: list[str], *more: str) -> list[str]:
    outputs = [f"--output-{kind}={directory / 'out' / f'table1.{kind}'}" for kind in ("tsv", "md", "html")]
    return ["evaluation", "table", "--scores", *paths, *outputs, *more]


def contrasts(directory: Path) -> pd.DataFrame:
    return pd.read_csv(directory / "out" / "contrasts.tsv", sep="\t")


def table(directory: Path) -> pd.DataFrame:
    return pd.read_csv(directory / "out" / "table1.tsv", sep="\t")


ALL = [score(system, test_set, run) for system in ("rnn", "cslm_rnn_wp", "baseline") for run in (1, 2, 3)
       for test_set in ("test", "more", "dev")]  # fmt: skip


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """Create the table of three systems, two test sets, the dev set, and two joint sets."""
    directory = tmp_path_factory.mktemp("joined")
    options = ["--joint", "both=test+more", "--joint", "all=test+more+dev", "--paper"]
    assert main(command(directory, write(directory, *ALL), *options)) == 0
    return table(directory)


def test_rows_means_and_order(joined):
    frame = joined
    assert list(frame["system"]) == ["rnn"] * 5 + ["cslm_rnn_wp"] * 5 + ["baseline"] * 5
    assert list(frame["test_set"])[:5] == ["dev", "test", "more", "both", "all"]
    runs = [corpus_bleu(output_of("rnn", "test", run), [REFERENCES["test"]]).bleu for run in (1, 2, 3)]
    row = frame[(frame["system"] == "rnn") & (frame["test_set"] == "test")].iloc[0]
    assert row["bleu"] == pytest.approx(sum(runs) / 3, abs=1e-4)
    assert row["bleu_sd"] == pytest.approx(pd.Series(runs).std(), abs=1e-4)
    assert row["runs"] == 3
    assert row["paper_bleu"] == 33.87
    assert row["unknown_words"] == 5


def test_joint_test_set_is_one_corpus(joined):
    frame = joined.set_index(["system", "test_set"])
    hypotheses = output_of("rnn", "test", 2) + output_of("rnn", "more", 2)
    references = [REFERENCES["test"] + REFERENCES["more"]]
    row = frame.loc[("rnn", "both")]
    assert float(row["bleu_runs"].split()[1]) == pytest.approx(corpus_bleu(hypotheses, references).bleu, abs=1e-4)
    assert float(row["sacrebleu_runs"].split()[1]) == pytest.approx(sacre_bleu(hypotheses, references).score, abs=1e-4)
    assert row["segments"] == 3
    assert row["unknown_words"] == 10
    assert pd.isna(row["paper_bleu"])


def test_differences_to_the_baseline(joined):
    frame = joined.set_index(["system", "test_set"])
    difference = frame.loc[("rnn", "test")]["bleu"] - frame.loc[("baseline", "test")]["bleu"]
    assert frame.loc[("rnn", "test")]["diff_baseline"] == pytest.approx(difference, abs=2e-4)
    assert pd.isna(frame.loc[("baseline", "test")]["diff_baseline"])


def test_significance_of_the_differences(joined):
    frame = joined.set_index(["system", "test_set"])
    assert frame.loc["baseline"][["p_bootstrap", "p_strict"]].isna().all(axis=None)
    systems = [
        np.array([[*score(system, part, run).sentences] for run in (1, 2, 3)])
        for system in ("baseline", "rnn")
        for part in ("test", "more")
    ]
    joined = [np.concatenate(systems[:2], 1), np.concatenate(systems[2:], 1)]
    for test_set, (first, second) in {"test": (systems[0], systems[2]), "both": joined}.items():
        expected = compare(first, second)
        row = frame.loc[("rnn", test_set)]
        for column, value in (
            ("diff_baseline", expected.difference),
            ("low_baseline", expected.interval[0]),
            ("high_baseline", expected.interval[1]),
            ("detectable_baseline", expected.detectable),
            ("p_bootstrap", expected.p_bootstrap),
            ("p_strict", expected.p_strict),
        ):
            assert row[column] == pytest.approx(value, abs=1e-4)


def test_features_rather_than_names_say_what_a_system_lacks(tmp_path):
    """A system is compared with systems by their features; names of systems and the order of features do not matter."""
    added = {"mine": "rnn+cslm", "rnn_big": "rnn", "plain": "", "all": "wp+rnn+cslm"}
    scores = [score(system, "test", run) for system in added for run in (1, 2)]
    options = ["--features", *(f"{system}={names}" for system, names in added.items())]
    assert main(command(tmp_path, write(tmp_path, *scores), *options)) == 0
    expected = {"all": "mine", "mine": "rnn_big", "rnn_big": "plain"}
    assert table(tmp_path).set_index("system")["without"].dropna().to_dict() == expected


def test_features_that_the_paper_does_not_know(tmp_path):
    """Features that are not in the paper follow those of the paper and have their own contrasts."""
    added = {"baseline": "", "rnn": "rnn", "mine": "bag+rnn"}
    scores = [score(system, "test", run) for system in added for run in (1, 2)]
    options = ["--features", *(f"{system}={names}" for system, names in added.items())]
    options += ["--output-contrasts", str(tmp_path / "out/contrasts.tsv")]
    assert main(command(tmp_path, write(tmp_path, *scores), *options)) == 0
    assert table(tmp_path).set_index("system")["without"].dropna().to_dict() == {"rnn": "baseline", "mine": "rnn"}
    assert contrasts(tmp_path)[["feature", "system"]].values.tolist() == [["rnn", "rnn"], ["bag", "mine"]]


@pytest.mark.parametrize("features", ["rnn", "=rnn", "rnn=rnn+"])
def test_features_that_nobody_knows(tmp_path, capsys, features):
    refused(tmp_path, command(tmp_path, write(tmp_path, *ALL), "--features", features), capsys, "must be SYSTEM=A+B")


def test_differences_to_the_system_without_the_last_feature(tmp_path):
    systems = ("baseline", "baseline_wp", "rnn", "cslm_rnn", "cslm_rnn_wp", "cslm_wp", "mine")
    scores = [score(system, "test", run) for system in systems for run in (1, 2)]
    assert main(command(tmp_path, write(tmp_path, *scores), "--paper")) == 0
    frame = table(tmp_path).set_index("system")
    expected = {"baseline_wp": "baseline", "rnn": "baseline", "cslm_rnn": "rnn", "cslm_rnn_wp": "cslm_rnn"}
    assert frame["without"].dropna().to_dict() == expected
    for system, smaller in expected.items():
        row = frame.loc[system]
        assert row["diff_without"] == pytest.approx(row["bleu"] - frame.loc[smaller]["bleu"], abs=2e-4)
        first, second = (np.array([score(name, "test", run).sentences for run in (1, 2)]) for name in (smaller, system))
        found = compare(first, second)
        assert row[["p_bootstrap_without", "p_strict_without"]].tolist() == pytest.approx(
            [found.p_bootstrap, found.p_strict], abs=1e-4
        )
    paper = frame[["paper_diff_baseline", "paper_diff_without"]].dropna().round(2).T.to_dict("list")
    assert paper == {"rnn": [0.57, 0.57], "cslm_rnn": [1.34, 0.77], "cslm_rnn_wp": [1.24, -0.10]}


def test_every_feature_against_the_system_without_it(tmp_path):
    """A feature is compared with every system of the table that lacks only it, e.g. cslm_rnn with cslm and rnn."""
    systems = ("baseline", "rnn", "cslm", "cslm_rnn", "cslm_rnn_wp", "rnn_wp", "mine")
    scores = [score(system, "test", run) for system in systems for run in (1, 2)]
    added = [f"--output-contrasts={tmp_path / 'out' / 'contrasts.tsv'}", "--paper"]
    assert main(command(tmp_path, write(tmp_path, *scores), *added)) == 0
    frame = contrasts(tmp_path)
    assert list(zip(frame["feature"], frame["without"], frame["system"], strict=True)) == [
        ("rnn", "baseline", "rnn"),
        ("rnn", "cslm", "cslm_rnn"),
        ("cslm", "baseline", "cslm"),
        ("cslm", "rnn", "cslm_rnn"),
        ("cslm", "rnn_wp", "cslm_rnn_wp"),
        ("wp", "rnn", "rnn_wp"),
        ("wp", "cslm_rnn", "cslm_rnn_wp"),
    ]
    bleu = table(tmp_path).set_index("system")["bleu"]
    for row in frame.itertuples():
        assert row.difference == pytest.approx(bleu[row.system] - bleu[row.without], abs=2e-4)
        first, second = (
            np.array([score(name, "test", run).sentences for run in (1, 2)]) for name in (row.without, row.system)
        )
        found = compare(first, second)
        expected = [found.p_bootstrap, found.p_strict, *found.interval, found.detectable]
        got = [row.p_bootstrap, row.p_strict, row.low, row.high, row.detectable]
        assert got == pytest.approx(expected, abs=1e-4)
    assert frame["paper_difference"].dropna().round(2).tolist() == [0.57, 0.77, -0.10]


def test_without_other_languages_figures(tmp_path):
    """Without --paper, no output contains figures of the paper, which are for English to French."""
    output = tmp_path / "out"
    more = [f"--output-contrasts={output / 'contrasts.tsv'}", f"--output-json={output / 'table1.json'}"]
    assert main(command(tmp_path, write(tmp_path, *ALL), *more)) == 0
    for name in ("table1.tsv", "contrasts.tsv", "table1.json", "table1.md", "table1.html"):
        text = (output / name).read_text()
        assert "paper_" not in text
        assert "33.87" not in text
        assert "WMT" not in text
        assert "newstest" not in text


def test_equal_runs_give_the_same_bytes(tmp_path):
    """The output does not depend on the decoding time."""
    texts = []
    for seconds in (2.0, 3.0):
        report = tmp_path / "decode.json"
        report.write_text(json.dumps({"unknown_words": 5, "search_cpu_seconds": seconds}))
        for name, lines in (("out", output_of("rnn", "test", 1)), ("ref", REFERENCES["test"])):
            (tmp_path / name).write_text("\n".join(lines) + "\n")
        score_file = tmp_path / "s.json"
        options = ["--system", "rnn", "--test-set", "test", "--decode-report", str(report), "--output", str(score_file)]
        files = ["--hypothesis", str(tmp_path / "out"), "--reference", str(tmp_path / "ref")]
        assert main(["evaluation", "score", *files, *options]) == 0
        directory = tmp_path / str(seconds)
        json_file = directory / "out/table1.json"
        assert main(command(directory, [str(score_file)], f"--output-json={json_file}")) == 0
        texts.append([path.read_bytes() for path in sorted(directory.glob("out/*"))] + [score_file.read_bytes()])
    assert len(texts[0]) == 5
    assert texts[0] == texts[1]


def test_python_returns_data_frames(tmp_path):
    """The rows are those of the TSV file, also without outputs."""
    paths = write(tmp_path, *ALL)
    assert main(command(tmp_path, paths, f"--output-contrasts={tmp_path}/out/contrasts.tsv")) == 0
    found = rnnsmt.evaluation.table(paths)
    written = table(tmp_path)
    assert found.rows[["system", "test_set"]].equals(written[["system", "test_set"]])
    assert found.rows["bleu"].tolist() == pytest.approx(written["bleu"].tolist(), abs=5e-5)
    assert found.contrasts["feature"].tolist() == contrasts(tmp_path)["feature"].tolist()
    with pytest.raises(InputError, match=r"^joint both: no score file for the test set nothing"):
        rnnsmt.evaluation.table(paths, joint={"both": ["test", "nothing"]})


def test_no_significance_with_other_runs(tmp_path, capsys):
    assert main(command(tmp_path, write(tmp_path, score(), score("rnn", run=2)))) == 0
    assert table(tmp_path)["p_bootstrap"].isna().all()
    assert "rnn on test: no significance test, because its runs differ" in capsys.readouterr().err


def test_a_run_below_its_start_is_marked(tmp_path):
    scores = [score(system, run=run) for system in ("baseline", "rnn") for run in (1, 2)]
    paths, histories = [], []
    for one in scores:
        directory = tmp_path / one.system / f"run{one.run}"
        directory.mkdir(parents=True)
        write_score(directory / "test.bleu.json", one)
        dev = 40.0 if (one.system, one.run) == ("rnn", 2) else 60.0
        history = {"dev_bleu": dev, "iterations": [{"dev_bleu": 50.0}]}
        (directory / "history.json").write_text(json.dumps(history))
        paths.append(str(directory / "test.bleu.json"))
        histories.append(str(directory / "history.json"))
    assert main([*command(tmp_path, paths), "--history", *histories]) == 0
    frame = pd.read_csv(tmp_path / "out/table1.tsv", sep="\t", dtype={"below_start": str}, keep_default_na=False)
    assert dict(zip(frame["system"], frame["below_start"], strict=True)) == {"baseline": "", "rnn": "2"}
    text = (tmp_path / "out/table1.md").read_text()
    assert "| RNN †" in text and "| Baseline " in text
    assert "below that of the initial weights: RNN, run 2" in " ".join(text.split())


def test_one_run_has_no_deviation(tmp_path):
    assert main(command(tmp_path, write(tmp_path, score(sacrebleu=None, decode=None)))) == 0
    row = table(tmp_path).iloc[0]
    assert pd.isna(row["bleu_sd"])
    assert pd.isna(row["sacrebleu"])
    assert pd.isna(row["unknown_words"])
    assert "±" not in (tmp_path / "out" / "table1.md").read_text().split("\n")[2]


def test_dev_set_by_name(tmp_path):
    assert (
        main(command(tmp_path, write(tmp_path, score(), score(test_set="more")), "--dev-set", "more", "--paper")) == 0
    )
    frame = table(tmp_path)
    assert list(frame["test_set"]) == ["more", "test"]
    assert list(frame["paper_bleu"]) == [30.64, 33.30]


def test_output_does_not_depend_on_the_order_of_the_files_within_a_system(tmp_path):
    paths = write(tmp_path, *(score(run=run) for run in (1, 2, 3)))
    assert main(command(tmp_path, paths)) == 0
    before = (tmp_path / "out" / "table1.tsv").read_bytes()
    assert main(command(tmp_path, paths[::-1])) == 0
    assert (tmp_path / "out" / "table1.tsv").read_bytes() == before


def test_score_file_round_trip(tmp_path):
    (path,) = write(tmp_path, score())
    before = Path(path).read_bytes()
    assert write(tmp_path, read_score(path)) == [path]
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize(
    ("system", "shown"),
    [
        ("baseline", "Baseline"),
        ("cslm_rnn_wp", "CSLM + RNN + WP"),
        ("my_rnn", "my_rnn"),
        ("baseline_wp", "Baseline + WP"),
    ],
)
def test_labels(system, shown):
    assert label(system) == shown


# Invalid input


def refused(directory: Path, arguments: list[str], capsys, *parts: str) -> None:
    with suppress(SystemExit):  # of the parser
        assert main(arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    for part in parts:
        assert part in error
    assert not (directory / "out").exists()


def test_refuses_the_same_run_twice(tmp_path, capsys):
    paths = write(tmp_path, score(), score())
    refused(tmp_path, command(tmp_path, paths), capsys, "1.json", "run 1 of baseline on test", "already")


def test_refuses_runs_that_lack_a_test_set(tmp_path, capsys):
    paths = write(tmp_path, score(), score(run=2), score(test_set="more"))
    refused(tmp_path, command(tmp_path, paths), capsys, "runs [1, 2] on test, but [1] on more")


def test_refuses_test_sets_that_differ(tmp_path, capsys):
    paths = write(tmp_path, score(), score("rnn", sentences=np.zeros((7, 9), np.int64), metrics={}))
    refused(tmp_path, command(tmp_path, paths), capsys, "test has 7 segments", "2 and 1 in")


def test_refuses_sacrebleu_of_some_runs_only(tmp_path, capsys):
    paths = write(tmp_path, score(), score("rnn", sacrebleu=None))
    refused(tmp_path, command(tmp_path, paths), capsys, "signature")


@pytest.mark.parametrize(
    ("joint", "said"),
    [
        ("both", "must be NAME=A+B"),
        ("both=", "must be NAME=A+B"),
        ("=test+more", "must be NAME=A+B"),
        ("both=test", "two or more"),
        ("both=test+test", "two or more"),
        ("both=test+other", "no score file for the test set other; available: more, test"),
        ("test=test+more", "already"),
    ],
)
def test_refuses_bad_joint_sets(tmp_path, capsys, joint, said):
    paths = write(tmp_path, score(), score(test_set="more"))
    refused(tmp_path, command(tmp_path, paths, "--joint", joint), capsys, said)


def test_refuses_a_joint_set_that_a_system_lacks(tmp_path, capsys):
    paths = write(tmp_path, score(), score(test_set="more"), score("rnn"))
    refused(tmp_path, command(tmp_path, paths, "--joint", "both=test+more"), capsys, "rnn has no score on more")


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '"text"'])
def test_refuses_files_that_are_no_score_file(tmp_path, capsys, content):
    path = tmp_path / "score.json"
    path.write_text(content)
    refused(tmp_path, command(tmp_path, [str(path)]), capsys, str(path))


def test_shared_networks_are_paired(tmp_path):
    """Systems that share networks are compared in pairs: CSLM + RNN shares with CSLM, not with the baseline."""
    systems = ("baseline", "cslm", "cslm_rnn")
    scores = [score(system, "test", run) for system in systems for run in (1, 2, 3)]
    options = ["--trainings", "3", f"--output-contrasts={tmp_path / 'out' / 'contrasts.tsv'}"]
    assert main(command(tmp_path, write(tmp_path, *scores), *options)) == 0
    frame = contrasts(tmp_path).set_index(["feature", "without"])
    sides = {name: np.array([score(name, "test", run).sentences for run in (1, 2, 3)]) for name in systems}
    paired = compare(sides["cslm"], sides["cslm_rnn"], trainings=(3, 3), shared=True)
    assert frame.loc[("rnn", "cslm")]["high"] == pytest.approx(paired.interval[1], abs=1e-4)
    assert paired.margin != pytest.approx(compare(sides["cslm"], sides["cslm_rnn"], trainings=(3, 3)).margin)
    alone = compare(sides["baseline"], sides["cslm"], trainings=(1, 3))
    assert frame.loc[("cslm", "baseline")]["high"] == pytest.approx(alone.interval[1], abs=1e-4)
