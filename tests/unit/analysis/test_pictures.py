"""Pictures: their data, reproducibility, and invalid input."""

import json
import math
import re
import warnings
from pathlib import Path

import pytest

import rnnsmt
from rnnsmt.analysis.curves import HELD_OUT, perplexity, points
from rnnsmt.analysis.phrase_pairs import ScoredPairs, draw_sample
from rnnsmt.base.errors import InputError
from rnnsmt.cli import main

from ..phrase_store import STORE, import_table, write_column

RNN = {
    "unigram log p per word": -2.0,
    "curve": [
        {"epoch": 0.5, "train log p per word": -1.5, "held-out log p per word": -1.2},
        {"epoch": 1.0, "train log p per word": -1.0, "held-out log p per word": -1.0},
    ],
}
CSLM = {
    "unigram perplexity": 90.0,
    "kept epoch": 2,
    "curve": [
        {"epoch": 1, "train perplexity": 60.0, "validation perplexity": 50.0},
        {"epoch": 2, "train perplexity": 40.0, "validation perplexity": 52.5},
    ],
}
MERT = {
    "averaged": [2, 3],
    "dev_bleu": 20.7,
    "iterations": [{"iteration": k, "dev_bleu": 20.0 + k % 2} for k in (1, 2, 3)],
}
TABLE = [(0.5, 3.0), (0.25, 1.0), (1.0, 12.0), (0.125, 1.0)]
"""Direct probability and count of the pair."""


@pytest.fixture
def directory(tmp_path) -> Path:
    for name, value in (("rnn", RNN), ("cslm", CSLM), ("mert", MERT)):
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    lines = [f"s{k} ||| t{k} ||| 0.9 0.8 {p} 0.7 ||| 0-0 ||| 20 30 {n}" for k, (p, n) in enumerate(TABLE)]
    pairs, _ = import_table(tmp_path, "\n".join(lines) + "\n")
    write_column(tmp_path / "1.column", pairs, [-1, -2])
    write_column(tmp_path / "2.column", pairs, [-3, -4], begin=2)
    return tmp_path


def files_of(directory: Path) -> tuple[Path, Path, list[Path]]:
    """Return the store, the scores of its table, and both parts of the column."""
    return directory / STORE, directory / "table.scores", [directory / f"{part}.column" for part in (1, 2)]


def commands(directory: Path) -> dict[str, list[str]]:
    pairs, scores, parts = files_of(directory)
    files = ["--pairs", str(pairs), "--table-scores", str(scores), "--scores", *map(str, parts)]
    return {
        "rnn": ["history-curves", "--history", f"RNN={directory}/rnn.json"],
        "cslm": ["history-curves", "--history", f"CSLM={directory}/cslm.json"],
        "mert": [
            "history-curves",
            "--history",
            *(f"{name}={directory}/mert.json" for name in ("baseline", "rnn", "rnn")),
        ],
        "scatter": ["score-scatter", *files],
    }


@pytest.mark.parametrize("figure", ["rnn", "cslm", "mert", "scatter"])
def test_pictures_are_drawn_alike_every_time(directory, figure):
    for number in (1, 2):
        outputs = [str(directory / f"{number}.{kind}") for kind in ("png", "svg")]
        assert main(["analysis", *commands(directory)[figure], "--output", *outputs]) == 0
    assert (directory / "1.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (directory / "1.svg").read_text()
    for kind in ("png", "svg"):
        assert (directory / f"1.{kind}").read_bytes() == (directory / f"2.{kind}").read_bytes()


def test_both_networks_as_perplexity():
    assert points(RNN["curve"], ("train",)) == [(0.5, math.exp(1.5)), (1.0, math.exp(1.0))]
    assert points(CSLM["curve"], HELD_OUT) == [(1.0, 50.0), (2.0, 52.5)]
    assert perplexity(RNN, ("unigram",)) == math.exp(2.0)
    assert perplexity(CSLM, ("unigram",)) == 90.0
    assert points([{"epoch": 1}, {"train perplexity": 3.0}], ("train",)) == []


def test_the_held_out_perplexity_of_the_kept_parameters_is_stated(directory, capsys):
    assert main(["analysis", *commands(directory)["cslm"], "--output", str(directory / "a.png")]) == 0
    assert "held-out perplexity 52.5," in capsys.readouterr().err


def test_the_legend_of_a_learning_curve(directory):
    assert main(["analysis", *commands(directory)["cslm"], "--output", str(directory / "a.svg")]) == 0
    texts = re.findall(r">([^<]+)</text>", (directory / "a.svg").read_text())
    assert texts[-4:] == ["training", "held-out", "unigram model, held-out", "kept parameters: 52.5"]


def test_a_sample_holds_both_scores_of_the_same_lines(directory):
    for size in (2, 3, 99):
        found = draw_sample(ScoredPairs(*files_of(directory)), size, 3)
        assert (len(found.table), found.total) == (min(size, 4), 4)
        for table, network, count in zip(found.table, found.network, found.counts, strict=True):
            line = round(-network) - 1
            assert math.exp(table) == pytest.approx(TABLE[line][0])
            assert count == TABLE[line][1]


def test_a_sample_depends_on_its_seed(directory):
    scored = ScoredPairs(*files_of(directory))
    drawn = {tuple(draw_sample(scored, 2, seed).network) for seed in range(20)}
    assert len(drawn) > 3


@pytest.mark.parametrize(
    ("figure", "change", "sentence"),
    [
        ("rnn", {"--history": "RNN=not.json"}, "not.json: no such file"),
        ("scatter", {"--scores": "2.column"}, "is not the part after"),
    ],
)
def test_refusals(directory, capsys, monkeypatch, figure, change, sentence):
    monkeypatch.chdir(directory)
    command = ["analysis", *commands(directory)[figure], "--output", "a.png"]
    for name, value in change.items():
        if name.startswith("--"):
            command += [name, value]
        else:
            (directory / name).write_text(value)
    assert main(command) == 2
    assert sentence in capsys.readouterr().err
    assert not list(directory.glob("a.*"))


def test_unsupported_formats_are_refused(directory, capsys):
    with pytest.raises(SystemExit):
        main(["analysis", *commands(directory)["rnn"], "--output", "a.pdf"])
    assert "the suffix must be .png or .svg" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"^output 'a.pdf': must be a file \(.png or .svg\)"):
        rnnsmt.analysis.history_curves({"RNN": [directory / "rnn.json"]}, "a.pdf")


def test_the_data_of_pictures(directory):
    """Functions return what they plot, draw what the commands draw, and nothing without an output."""
    curves = rnnsmt.analysis.history_curves({"CSLM": [directory / "cslm.json"]}, [directory / "python.svg"])
    (curve,) = curves.networks["CSLM"]
    assert (curve.held_out, curve.kept) == ([(1.0, 50.0), (2.0, 52.5)], (2.0, 52.5))
    assert main(["analysis", *commands(directory)["cslm"], "--output", str(directory / "command.svg")]) == 0
    assert (directory / "python.svg").read_bytes() == (directory / "command.svg").read_bytes()
    pairs = rnnsmt.analysis.score_scatter(*files_of(directory))
    assert sorted(pairs.network) == [-4, -3, -2, -1]
    tuned = rnnsmt.analysis.history_curves({"rnn": [directory / "mert.json"] * 2})
    assert tuned.systems["rnn"][1].points == [(1, 21.0), (2, 20.0), (3, 21.0)]
    assert (tuned.systems["rnn"][0].result, tuned.systems["rnn"][0].bleu) == ((2, 3), 20.7)
    assert tuned.figures == {"systems": 1, "runs": 2}
    last = {"iteration": 3, "dev_bleu": 21.0, "weights": [1.0]}
    for weights, iteration in (([1.0], 3), ([2.0], 4)):
        history = MERT | {"averaged": None, "iterations": [last], "weights": weights}
        (directory / "one.json").write_text(json.dumps(history))
        one = rnnsmt.analysis.history_curves({"rnn": [directory / "one.json"]}).systems["rnn"][0]
        assert one.result == (iteration, iteration)
    assert {path.name for path in directory.iterdir() if path.suffix in (".png", ".svg")} == {
        "python.svg",
        "command.svg",
    }


def test_characters_that_the_font_lacks_are_reported_once(directory, capsys):
    """Characters that the font lacks are reported once, for the PNG file; the SVG file has text."""
    files = [str(directory / f"curve.{kind}") for kind in ("png", "svg")]
    command = [*commands(directory)["rnn"][:-1], f"東京の港={directory}/rnn.json", "--output", *files]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert main(["analysis", *command]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "lacks" in line]
    assert said == [
        f"warning: {files[0]}: the font DejaVu Sans lacks 4 characters, which are shown as boxes; use the SVG file, "
        "which browsers display with other fonts"
    ]
    assert "東京の港" in Path(files[1]).read_text()
