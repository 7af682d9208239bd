"""Table 1 in Markdown, HTML and JSON."""

import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from rnnsmt.cli import main
from rnnsmt.evaluation import render
from tests.unit.evaluation.test_table import ALL, command, score, table, write

SYSTEMS = ("baseline", "rnn", "cslm_rnn", "cslm_rnn_wp", "cslm", "baseline_wp", "rnn_wp", "cslm_wp")
EIGHT = [score(system, test_set, run) for system in SYSTEMS for run in (1, 2, 3)
         for test_set in ("test", "dev")]  # fmt: skip


def tables(text: str) -> list[list[list[str]]]:
    """Return the tables of a Markdown text as lists of rows of cells."""
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    return [[[cell.strip() for cell in line.strip("|").split("|")] for line in one.splitlines()] for one in found]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("table")
    options = ["--output-json", str(directory / "out/table1.json"), "--provenance", "provenance.json", "--paper"]
    options += ["--tuning", "every system by MERT"]
    assert main(command(directory, write(directory, *EIGHT), *options)) == 0
    return directory / "out"


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Create the outputs without published figures and a text on tuning."""
    directory = tmp_path_factory.mktemp("plain")
    assert main(command(directory, write(directory, *EIGHT))) == 0
    return directory / "out"


def test_one_table_for_every_test_set(outputs):
    """Published figures are beside ours, those of the dev set too."""
    text = (outputs / "table1.md").read_text()
    (dev_headings, _, *dev_rows), (headings, _, *rows) = tables(text)
    assert headings == dev_headings
    assert [row[2] for row in dev_rows[:4]] == ["30.64", "31.20", "31.48", "31.50"]
    assert headings == ["System", "BLEU", "paper", "Δ baseline", "95 %", "paper", "p"]
    assert [row[0] for row in rows[:4]] == ["Baseline", "RNN", "CSLM + RNN", "CSLM + RNN + WP"]
    assert (rows[2][2], rows[2][5]) == ("34.64", "+1.34")
    few = "too few segments for reliable scores; paper: on WMT 2014"
    assert re.findall("^## .*", text, re.MULTILINE) == [
        f"## dev: 1 segment, 3 runs; {few}", f"## test: 2 segments, 3 runs; {few}"
    ]  # fmt: skip


def test_dev_comes_first_without_published_figures_too(plain):
    text = (plain / "table1.md").read_text()
    assert "paper" not in tables(text)[0][0]
    assert re.findall("^## (\\w+)", text, re.MULTILINE) == ["dev", "test"]
    assert "not evidence of a gain" in text


def test_dev_sets_alone_are_shown(tmp_path):
    scores = [score(system, "dev", run) for system in ("baseline", "rnn") for run in (1, 2)]
    assert main(command(tmp_path, write(tmp_path, *scores))) == 0
    assert "## dev: 1 segment, 2 runs" in (tmp_path / "out/table1.md").read_text()


def test_the_notes_say_how_the_systems_were_tuned(outputs, plain):
    for name in ("table1.md", "table1.html"):
        assert "Tuning: every system by MERT." in " ".join((outputs / name).read_text().split())
    assert "Tuning" not in (plain / "table1.md").read_text()


def test_one_run_speaks_of_no_noise_between_runs(tmp_path):
    """With one run, the table has neither ± nor p nor intervals, nor notes on them."""
    scores = [score(system) for system in ("baseline", "rnn")]
    assert main(command(tmp_path, write(tmp_path, *scores))) == 0
    texts = {name: " ".join((tmp_path / "out" / name).read_text().split()) for name in ("table1.md", "table1.html")}
    for text in texts.values():
        assert "BLEU is that of one tuning run of each system." in text
        for word in ("±", "95 %:", "two-sided p-value", "Effects of", "have p below"):
            assert word not in text
    [(headings, *_)] = tables((tmp_path / "out/table1.md").read_text())
    assert headings == ["System", "BLEU", "Δ baseline"]


def test_without_networks_no_noise_of_their_training_is_mentioned(tmp_path):
    scores = [score("baseline", run=run) for run in (1, 2)]
    assert main(command(tmp_path, write(tmp_path, *scores))) == 0
    for name in ("table1.md", "table1.html"):
        text = " ".join((tmp_path / "out" / name).read_text().split())
        assert "± and p include the variance due to tuning." in text
        assert "network" not in text.lower()


def test_one_system_has_no_differences(tmp_path):
    """With one system, the table has neither columns of differences nor notes on them."""
    scores = [score("baseline", run=run) for run in (1, 2)]
    assert main(command(tmp_path, write(tmp_path, *scores))) == 0
    for name in ("table1.md", "table1.html"):
        text = " ".join((tmp_path / "out" / name).read_text().split())
        for word in ("Δ", "95 %", "p-value", "not corrected", "Effect"):
            assert word not in text, (name, word)


def test_the_sets_of_the_published_figures_are_named(outputs):
    for name in ("table1.md", "table1.html"):
        assert "on WMT 2014 English–French, newstest2014" in " ".join((outputs / name).read_text().split())


def test_markdown_reads_well_on_a_terminal(outputs):
    lines = (outputs / "table1.md").read_text().splitlines()
    assert max(map(len, lines)) <= 100
    for before, after in pairwise(lines):
        if before.startswith("|") and after.startswith("|"):
            assert [k for k, c in enumerate(before) if c == "|"] == [k for k, c in enumerate(after) if c == "|"]


def test_what_the_noise_is_stands_in_every_form(outputs):
    """All formats state that ± and p exclude the noise of network training."""
    for name in ("table1.md", "table1.html"):
        assert "one network of each kind" in " ".join((outputs / name).read_text().split()).lower()
    value = json.loads((outputs / "table1.json").read_text())
    assert {row["trainings"] for row in value["rows"]} == {1}
    assert "no value includes the variance due to training" in value["columns"]["trainings"]


def test_the_noise_of_several_trainings_is_stated(tmp_path):
    options = ["--output-json", f"{tmp_path}/t.json", "--trainings", "3"]
    three_systems = EIGHT[:18]
    assert main(command(tmp_path, write(tmp_path, *three_systems), *options)) == 0
    for name in ("table1.md", "table1.html"):
        text = " ".join((tmp_path / "out" / name).read_text().split())
        assert "cycle through 3 training runs of each network" in text
        assert "one network of each kind" not in text.lower()
    rows = json.loads((tmp_path / "t.json").read_text())["rows"]
    found = {row["system"]: row["trainings"] for row in rows}
    assert (found["baseline"], found["rnn"], found["cslm_rnn"]) == (1, 3, 3)


def test_refuses_runs_that_cannot_take_turns(tmp_path, capsys):
    assert main(command(tmp_path, write(tmp_path, *EIGHT), "--trainings", "2")) == 2
    assert "--trainings 2: baseline has 3 runs; the number of runs must be a multiple of 2" in capsys.readouterr().err


def test_columns_that_say_nothing_are_left_out(tmp_path):
    assert main(command(tmp_path, write(tmp_path, score(sacrebleu=None, decode=None)), "--paper")) == 0
    [scores] = tables((tmp_path / "out/table1.md").read_text())
    assert scores[0] == ["System", "BLEU", "paper"]


def test_json_has_the_figures_of_the_tsv_file(outputs):
    value = json.loads((outputs / "table1.json").read_text())
    frame = table(outputs.parent)
    assert list(value["columns"]) == ["label", *frame.columns]
    assert [row["system"] for row in value["rows"]] == list(frame["system"])
    for row, expected in zip(value["rows"], frame.to_dict("records"), strict=True):
        assert row["label"]
        assert row["bleu"] == pytest.approx(expected["bleu"], abs=1e-4)
        assert row["bleu_runs"] == pytest.approx([*map(float, expected["bleu_runs"].split())], abs=1e-4)
        assert (row["p_strict"] is None) == (expected["p_strict"] != expected["p_strict"])
    assert list(value["contrasts"][0]) == list(value["contrast_columns"])
    assert {row["feature"] for row in value["contrasts"] if row["system"] == "cslm_rnn_wp"} == {"rnn", "cslm", "wp"}
    assert value["paper"]["rnn"] == {"dev": 31.20, "test": 33.87}


class Balance(HTMLParser):
    """Parser that checks that every element is closed and collects external links."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "line", "circle"):
            self.stack.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("line", "circle"):
            assert self.stack.pop() == tag


def test_html_is_whole_and_needs_nothing_else(tmp_path):
    assert main(command(tmp_path, write(tmp_path, *ALL), "--joint", "both=test+more")) == 0
    page = Balance()
    text = (tmp_path / "out" / "table1.html").read_text()
    page.feed(text)
    assert page.stack == []
    assert page.links == []
    assert len(re.findall(r"<svg ", text)) == 4
    # a scrolling element can be focused and has a unique name
    boxes = re.findall(r'<div class="scroll" role="(?:group|img)" aria-label="([^"]+)" tabindex="0">', text)
    assert len(set(boxes)) == len(boxes) == text.count('class="scroll"') == 8
    assert text.count("<main>") == 1


def test_html_links_to_the_provenance_only(outputs):
    page = Balance()
    text = (outputs / "table1.html").read_text()
    page.feed(text)
    assert page.links == ["provenance.json"]
    assert text.count("Effects of single features") == 1


def test_plots_take_the_page_s_colours(outputs):
    """Plots use the colours of the page, which has a light and a dark theme."""
    plots = re.findall(r"<svg.*?</svg>", (outputs / "table1.html").read_text(), re.DOTALL)
    for plot in plots:
        assert not re.findall(r"#[0-9a-f]{6}", plot)
        assert "var(--mark)" in plot
    names = [name for plot in plots for name in re.findall(r' id="([^"]*)"', plot)]
    assert len(names) == len(set(names))


def test_a_sentence_says_what_was_detected_and_how_much_was_missed(outputs):
    """The summary lists every contrast once, with its interval if detected and with an upper limit otherwise."""
    rows = json.loads((outputs / "table1.json").read_text())["contrasts"]
    labels = {"cslm": "CSLM", "rnn": "RNN", "wp": "WP", "baseline": "Baseline"}
    text = re.sub(r"\s+", " ", (outputs / "table1.md").read_text()).split("Effects of single features")[1]
    for row in (row for row in rows if row["test_set"] == "test"):
        added_to = " + ".join(labels[part] for part in row["without"].split("_"))
        said = f"{labels[row['feature']]} added to {added_to} ("
        assert row["p_strict"] >= 0.05  # two sentences are too few to detect a difference
        assert f"{said}less than {max(row['high'], 0):.2f})" in text.split("not significant")[1]
    found = {"feature": "rnn", "without": "cslm", "low": 0.123, "high": 0.71, "p_strict": 0.01}
    assert render.contrast_words(found) == "RNN added to CSLM (+0.12 to +0.71)"
    assert (
        render.contrast_words(found | {"low": -0.9, "high": -0.1, "p_strict": 0.2})
        == "RNN added to CSLM (less than 0.00)"
    )


def test_the_number_of_contrasts_is_stated(outputs):
    page = " ".join((outputs / "table1.md").read_text().split())
    rows = json.loads((outputs / "table1.json").read_text())
    pairs = {(row["system"], row["without"]) for row in rows["contrasts"] if row["test_set"] == "test"}
    pairs |= {(row["system"], "baseline") for row in rows["rows"] if row["system"] != "baseline"}
    assert len(pairs) > sum(row["test_set"] == "test" for row in rows["contrasts"])
    assert f"{len(pairs)} contrasts are tested on every test set; p and intervals are those of single contrasts" in page
