"""The report page: content, resources of the run, accessibility, and escaping of the data."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rnnsmt.analysis.report_page import Cost, costs, heading, picture_of, provenance_of
from rnnsmt.cli import main
from rnnsmt.evaluation.render import effects

ROW = {
    "label": "Baseline", "system": "baseline", "test_set": "test", "bleu": 20.5, "bleu_sd": 0.25, "segments": 1000,
    "runs": 2, "trainings": 1, "diff_baseline": None, "p_strict": None, "paper_bleu": 33.3,
    "bleu_runs": [20.25, 20.75], "low_baseline": None, "high_baseline": None,
}  # fmt: skip
RNN = ROW | {"label": "RNN", "system": "rnn", "bleu": 21.0, "diff_baseline": 0.5, "p_strict": 0.0004, "bleu_sd": None}
RNN |= {"bleu_runs": [21.0, 21.0], "low_baseline": 0.25, "high_baseline": 0.75}
CONTRAST = {"test_set": "test", "system": "rnn", "feature": "rnn", "difference": 0.5, "p_strict": 0.2} | {
    "without": "baseline", "low": -0.125, "high": 1.125, "detectable": 0.875
}  # fmt: skip
TABLE = {"rows": [ROW, RNN], "contrasts": [CONTRAST | {"paper_difference": 0.57}]}
PROVENANCE = {
    "software": {"rnnsmt": "0.1.0", "commit": None, "modified": None, "python": "3.11", "packages": {"torch": "2"}},
    "config": {
        "seed": 1, "name": "</script><b>", "languages": {"source": "en", "target": "de"},
        "corpora": [
            {"name": "val", "role": "dev"}, {"name": "train", "role": "bitext"}, {"name": "more", "role": "bitext"}
        ],
    },
    "files": {"a.output": {"bytes": 3, "sha256": "abc"}, "table.gz": {"bytes": 3}},
    "cells": [{
        "system": "rnn", "test_set": "test",
        "runs": [{"run": "rnn/run1", "bleu": 21.0, "sacrebleu": None, "output": "a.output"}],
    }],
    "runs": {
        "rnn/run1": {"seed": 2, "averaged": [9, 16], "weights": {"LM0": [0.123456789]}, "model": {"TM": "table.gz"}}
    },
}  # fmt: skip
COMPARISON = {
    "baseline": "Baseline", "system": "RNN", "difference": 0.5, "p_strict": None, "sentences": 9,
    "first run": {"changed": 3},
    "groups": {"source words": [{"group": "1-5", "sentences": 2, "bleu": [1.0, 2.0], "difference": 1.0}]},
    "exchanged pairs": {"extracted": [{"group": "1", "pairs": [4, 5], "sentences": 0, "mean gain": None}]},
    "decided": {"rnn": 0.25},
    "examples": {"Largest gains": [{
        "sentence": 7, "gain": 12.3, "source": "a <i> &amp; b", "reference": ["r"], "texts": ["t &apos;", "u"],
        "pairs": [[["a", "x", 3.0]], []], "decided": {"LM": -0.5, "rnn": 0.001},
    }]},
}  # fmt: skip


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Create the result files and logs of a small run."""
    (tmp_path / "logs/rnn").mkdir(parents=True)
    for name, line in (
        ("rnn/a", "rnnsmt rnn score: done: pairs 3, mean score -2.5, 1.5 s, 20.5 CPU s, peak 1,234 MB"),
        ("rnn/b", "rnnsmt rnn score: done: pairs 3, 0.5 s, 1.5 CPU s, peak 234 MB"),
        ("c", "rnnsmt translate: done: 4.0 s, 3.0 CPU s, peak 10 MB"),
        ("d", "update 3 of 4"),
        ("e", ""),
    ):
        (tmp_path / f"logs/{name}.log").write_text(f"begins\n{line}\n" if line else "")
    for name, content in (("t", TABLE), ("p", PROVENANCE), ("test", COMPARISON)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    words = {"labels": ["it&apos;s", "</script>"], "points": [[0, 0], [1, 2.5]], "clusters": [[1]]}
    (tmp_path / "words.json").write_text(json.dumps(words))
    (tmp_path / "mert.svg").write_text(
        '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><path id="a"/></svg>'
    )
    return tmp_path


def write(directory: Path, *more: str) -> int:
    files = {"table": "t.json", "provenance": "p.json", "logs": "logs", "output": "page.html"}
    return main(["analysis", "report", *(f"--{name}={directory}/{file}" for name, file in files.items()), *more])


class Reader(HTMLParser):
    """Parser that collects the tags, links and text of a page and checks that all tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "link", "br", "img"):
            self.open.append(tag)
        self.addresses += [value for name, value in attributes if name in ("href", "src")]
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(directory: Path) -> Reader:
    reader = Reader()
    reader.feed((directory / "page.html").read_text())
    assert reader.open == []
    return reader


def test_sentences_and_phrases_have_a_language_and_a_direction(directory):
    content = json.loads(json.dumps(COMPARISON))
    content["examples"]["Largest gains"][0] |= {"source": "سلام", "pairs": [[["سلام", "x &amp; y", 3.0]], []]}
    (directory / "test.json").write_text(json.dumps(content))
    provenance = json.loads(json.dumps(PROVENANCE))
    provenance["config"]["languages"]["source"] = "ar"
    (directory / "p.json").write_text(json.dumps(provenance))
    assert write(directory, "--comparisons", f"{directory}/test.json") == 0
    read(directory)
    page = (directory / "page.html").read_text()
    assert '<dd dir="auto" lang="ar">سلام</dd>' in page
    assert '<dd dir="auto" lang="de">u</dd>' in page
    assert '<bdi dir="auto" lang="ar">سلام</bdi> → <bdi dir="auto" lang="de">x &amp; y</bdi> (3)' in page


def test_everything_is_on_the_page(directory):
    more = ["--figures", "mert.svg", "--maps", "words.json", "--comparisons", "test.json"]
    assert write(directory, *(part if part.startswith("--") else f"{directory}/{part}" for part in more)) == 0
    page = read(directory)
    for said in ("20.50 ± 0.25", "+0.50", "0.0004", "33.30", "a <i> & b", "t '", "rnn score", "22.0", "1,234"):
        assert said in page.text, said
    assert "rnn +0.00" not in page.text
    assert "name: </script><b>" in page.text
    for address in page.addresses:
        assert address.startswith(("#", "data:")), address
        assert not address.startswith("#") or address[1:] in page.ids
    assert not re.search(r"(src|href)=.?https?:", (directory / "page.html").read_text())
    scripts = re.findall(
        r'<script type="application/json" id="(\w+)">(.*?)</script>', (directory / "page.html").read_text()
    )
    found = {name: json.loads(text) for name, text in scripts}
    assert found["mapdata"][0]["labels"] == ["it's", "</script>"]
    assert found["provenance"]["rnn/test"][0]["files"] == [["a.output", "abc"], ["table.gz", ""]]


def test_a_run_without_networks_has_a_page_too(directory):
    assert write(directory) == 0
    assert "Maps" not in read(directory).text


def test_columns_without_values_are_left_out(directory):
    """Differences are omitted for a single system, published figures for test sets without any."""
    other = {"test_set": "other", "paper_bleu": None}
    for rows, headings in (
        ([ROW, ROW | other], [["System", "BLEU", "paper"], ["System", "BLEU"]]),
        ([ROW, RNN], [["System", "BLEU", "paper", "Δ baseline", "95 %", "p"]]),
    ):
        (directory / "t.json").write_text(json.dumps({"rows": rows, "contrasts": []}))
        assert write(directory) == 0
        text = (directory / "page.html").read_text()
        found = re.findall(r'<table class="sortable">\n<thead>(.*?)</thead>\n<tbody>(.*?)</tbody>', text, re.DOTALL)
        for names, (head, body) in zip(headings, found, strict=True):
            assert re.findall("<button>(.*?)</button>", head) == names
            assert [line.count("<td") for line in body.split("<tr>")[1:]] == [len(names)] * (len(rows) // len(headings))
        read(directory)


def test_a_comparison_without_differences_is_one_sentence(directory):
    """The report shows no tables and examples of a pair of systems whose translations are equal."""
    (directory / "test.json").write_text(json.dumps(COMPARISON | {"first run": {"changed": 0}}))
    assert write(directory, "--comparisons", f"{directory}/test.json") == 0
    text = " ".join(read(directory).text.split())
    assert "Pairs of systems with equal translations in the first run: RNN and Baseline on test." in text
    assert "Largest gains" not in text and "Sentence by sentence" not in text


def test_the_keyboard_and_a_screen_reader_reach_everything(directory):
    """The page has one main element; scrolling boxes are focusable, with unique names; pictures have role img."""
    more = ["--maps", "words.json", "--comparisons", "test.json"]
    assert write(directory, *(part if part.startswith("--") else f"{directory}/{part}" for part in more)) == 0
    page = (directory / "page.html").read_text()
    assert page.count("<main>") == page.count("<header>") == 1
    boxes = re.findall(r'<div class="scroll"[^>]*>', page)
    named = [
        re.fullmatch(r'<div class="scroll" role="(?:group|img)" aria-label="(.+)" tabindex="0">', box) for box in boxes
    ]
    assert len(boxes) > 5
    assert all(named)
    assert len({match[1] for match in named if match}) == len(boxes)
    assert all('role="img"' in canvas for canvas in re.findall(r"<canvas[^>]*>", page))


def test_costs_are_those_of_the_logs(directory):
    stages, jobs = costs(directory / "logs")
    assert stages == [Cost("rnn score", 2, 2.0, 22.0, 1234.0), Cost("translate", 1, 4.0, 3.0, 10.0)]
    assert jobs == [
        Cost("rnn/a", 1, 1.5, 20.5, 1234.0),
        Cost("c", 1, 4.0, 3.0, 10.0),
        Cost("rnn/b", 1, 0.5, 1.5, 234.0),
    ]


def test_logs_of_earlier_plans_are_not_counted(directory):
    """The report counts the named jobs; a job without a log is omitted."""
    assert costs(directory / "logs", {"c", "rnn/b", "rnn/z"})[1] == [
        Cost("c", 1, 4.0, 3.0, 10.0),
        Cost("rnn/b", 1, 0.5, 1.5, 234.0),
    ]
    assert write(directory, "--jobs", "c", "rnn/b") == 0
    text = read(directory).text
    assert "2 jobs" in text and "rnn/a" not in text


def test_the_heading_says_which_run_it_is(directory):
    assert write(directory) == 0
    page = read(directory)
    assert page.text.count("Report: en → de") == 2, "title and heading"
    assert re.search(r"Parallel text: train, more; dev: val; \d{4}-\d\d-\d\d \d\d:\d\d", page.text)
    assert heading({}, 0.0)[0] == "Report"


def test_what_came_out_stands_first(directory):
    """The page begins with the tables, dev first, and the effects of the features on each test set."""
    better = CONTRAST | {"p_strict": 0.01, "low": 0.25, "high": 0.75}
    contrasts = [better, CONTRAST | {"without": "cslm"}, better | {"test_set": "other"}]
    other = [row | {"test_set": "other", "p_strict": None} for row in (ROW | {"bleu": 22.5}, RNN)]
    unpublished = {"bleu": 99.0, "paper_bleu": None}
    dev = [row | unpublished | {"test_set": name} for name in ("dev", "val") for row in (ROW, RNN)]
    (directory / "t.json").write_text(json.dumps({"rows": [*dev, ROW, RNN, *other], "contrasts": contrasts}))
    assert write(directory, "--figures", f"{directory}/mert.svg") == 0
    page = (directory / "page.html").read_text()
    assert re.findall("<h3>(.*?)</h3>", page) == [
        *(f"{name}: 1,000 segments, 2 runs" for name in ("dev", "val")),
        *(f"{name}: 1,000 segments, 2 runs; paper: on WMT 2014" for name in ("test", "other")),
    ]
    said = [" ".join(unescape(text).split()) for text in re.findall(r'<p class="said">(.*?)</p>', page, re.S)]
    assert said == ["Effects of single features (p below 0.05; 95 % intervals in brackets):"] * 2
    found, other_found = (
        re.findall("<li>(.*?)</li>", text) for text in re.findall('<ul class="said">(.*?)</ul>', page)
    )
    assert found == effects(contrasts[:2])
    assert found == [
        "higher BLEU: RNN added to Baseline (+0.25 to +0.75)", "not significant: RNN added to CSLM (less than 1.12)",
    ]  # fmt: skip
    assert other_found == found[:1]
    rest = page[page.index("<h3>test:") :]  # after the dev sets, which have no effects
    places = [rest.index(part) for part in ("20.50 ± 0.25", said[0][:20], "<svg", 'id="pictures"')]
    assert page.index('id="table"') < page.index("<h3>dev:")
    assert places == sorted(places)
    assert page.count('<div class="scroll" role="img"') == 4
    read(directory)


def test_wide_figures_have_a_line_to_themselves(directory):
    for size, is_wide in (("576 900", False), ("576.5 100", True)):
        (directory / "a.svg").write_text(f'<svg width="1pt" viewBox="0 0 {size}" version="1.1"></svg>')
        assert picture_of(str(directory / "a.svg"))["is_wide"] == is_wide


def test_dev_alone_is_summed_up(directory):
    rows = [row | {"test_set": "dev"} for row in (ROW, RNN)]
    (directory / "t.json").write_text(json.dumps({"rows": rows, "contrasts": []}))
    assert write(directory) == 0
    assert "dev: 1,000 segments" in read(directory).text


def test_one_run_speaks_of_no_noise_between_runs(directory):
    single = {"runs": 1, "bleu_sd": None, "p_strict": None, "paper_bleu": None, "bleu_runs": [20.5]}
    single |= {"low_baseline": None, "high_baseline": None}
    contrast = CONTRAST | {"p_strict": None}
    (directory / "t.json").write_text(json.dumps({"rows": [ROW | single, RNN | single], "contrasts": [contrast]}))
    assert write(directory) == 0
    text = read(directory).text
    assert "one tuning run: differences cannot be tested against the variation between tuning runs" in text
    for word in ("±", "p below", "Effects of", "newstest", "95 %", ">Figures<"):
        assert word not in text


def test_the_sets_of_the_published_figures_are_named(directory):
    assert write(directory) == 0
    assert "on WMT 2014 English–French, newstest2014" in " ".join(read(directory).text.split())


def test_provenance_of_a_cell():
    (run,) = provenance_of(PROVENANCE, {"test"})["rnn/test"]
    assert (run["seed"], run["averaged"], run["weights"]) == (2, [9, 16], {"LM0": [0.12346]})


def test_the_configuration_may_be_missing(directory):
    """Accept the output of `evaluation provenance` without --config."""
    (directory / "p.json").write_text(json.dumps(PROVENANCE | {"config": None}))
    assert write(directory) == 0
    assert "Report" in read(directory).text


def test_a_comparison_may_say_less(directory):
    """A comparison without details, model or phrase pairs is accepted."""
    little = {name: value for name, value in COMPARISON.items() if name not in ("decided", "exchanged pairs")}
    (example,) = COMPARISON["examples"]["Largest gains"]
    for kept in ((), ("source", "pairs")):
        some = {name: example[name] for name in ("sentence", "gain", "reference", "texts", *kept)}
        content = little | {"groups": {}, "examples": {"Largest gains": [some], "Largest losses": []}}
        (directory / "test.json").write_text(json.dumps(content))
        assert write(directory, "--comparisons", f"{directory}/test.json") == 0
        assert "+12.3" in read(directory).text


def test_sets_that_are_in_the_training_text(directory):
    overlap = {"val": {"sentences": 100, "known": 2}, "test": {"sentences": 1000, "known": 21}}
    (directory / "overlap.json").write_text(json.dumps(overlap))
    assert write(directory, f"--overlap={directory}/overlap.json") == 0
    text = read(directory).text
    assert "test: 21 of 1,000 source sentences also occur in the training text, which makes scores too high" in text
    assert "val: 2 of" not in text
