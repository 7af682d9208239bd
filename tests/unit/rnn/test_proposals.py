"""Proposed targets: selection of source phrases and targets, scores, and invalid input."""

import gzip
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from rnnsmt.cli import main  # noqa: E402
from rnnsmt.phrases.lexical_table import best_lexical_weight  # noqa: E402
from rnnsmt.phrases.table import PhraseEntry, read_phrase_table  # noqa: E402
from rnnsmt.rnn.generation import beam_search, propose_targets, score_proposals, unfamiliar_phrases  # noqa: E402
from rnnsmt.rnn.model import save_model, vocabularies_of  # noqa: E402
from rnnsmt.rnn.pairs import Pairs  # noqa: E402
from tests.unit.rnn.test_generation import network  # noqa: E402

TABLE = [
    "a b ||| b ||| 1 1 1 1 ||| 0-0 ||| 9 3 3 ||| |||",
    "a ||| a ||| 1 1 1 1 ||| 0-0 ||| 9 9 3 ||| |||",
    "a ||| b ||| 1 1 1 1 ||| 0-0 ||| 9 9 6 ||| |||",
    "d ||| d ||| 1 1 1 1 ||| 0-0 ||| 9 9 9 ||| |||",
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("proposals")
    (directory / "corpus").write_text("a b c d a b\n")
    (directory / "text").write_text("a b c\nd new a b\n\n")
    with gzip.open(directory / "table.gz", "wt") as out:
        out.writelines(f"{line}\n" for line in TABLE)
    (directory / "e2f").write_text("a x 0.5\na y 0.25\nb x 0.125\nNULL x 0.1\nc NULL 0.01\n")
    (directory / "f2e").write_text("x a 0.75\ny a 0.25\nx b 1.0\ny NULL 0.5\nx NULL 0.1\n")
    corpus = str(directory / "corpus")
    options = ["--source", corpus, "--target", corpus, "--vocab-size", "6", "--output-dir", str(directory / "pairs")]
    assert main(["rnn", "prepare", "--phrase-table", str(directory / "table.gz"), *options]) == 0
    save_model(directory / "model", network(0.3, source=7, target=7), vocabularies_of(Pairs.open(directory / "pairs")))
    return directory


def propose(directory: Path, *options: str, **names: str) -> int:
    files = {"model": "model", "pairs": "pairs", "input": "text", "phrase-table": "table.gz"}
    files |= {"lex-e2f": "e2f", "lex-f2e": "f2e", "output": "out"}
    files |= {name.replace("_", "-"): file for name, file in names.items()}
    paths = [part for name, file in files.items() for part in (f"--{name}", str(directory / file))]
    return main(["rnn", "propose", *paths, *options])


@pytest.mark.parametrize(
    ("limits", "rare"),
    [((0, 0), {}), ((3, 0), {"a b": {"b"}}), ((2, 0), {}), ((0, 1), {"a b": {"b"}, "d": {"d"}})],
)
def test_unseen_and_rare_phrases(directory, limits, rare):
    unseen = {phrase: set() for phrase in ("b", "c", "new", "b c", "d new", "new a")}
    assert unfamiliar_phrases([str(directory / "text")], str(directory / "table.gz"), 2, *limits) == unseen | rare


def test_proposals_are_the_best_of_the_beam(directory):
    pairs = Pairs.open(directory / "pairs")
    model, (source, target) = network(0.3, source=7, target=7), pairs.vocabularies
    found = propose_targets(model, pairs.vocabularies, {"b c": set(), "a b": {"b"}, "a new": set()}, 8, 3, 2)
    for phrase, known in (("a b", {"b"}), ("b c", set())):
        (ranked,) = beam_search(model, [source.ids(phrase.split(), eos=True)], 8, 3, 8)
        texts = [target.text(one.words) for one in ranked]
        assert any("<unk>" in text or not text or text in known for text in texts)  # some are discarded
        best = [text for text in texts if text and "<unk>" not in text and text not in known][:2]
        own = {entry.target: entry.scores for entry in found if entry.source == phrase}
        assert set(own) == set(best)
        scores = dict(zip(texts, (one.score for one in ranked), strict=True))
        for text in best:
            assert own[text] == pytest.approx([torch.tensor(scores[text]).exp().item()], rel=1e-4)
    assert {entry.source for entry in found} == {"a b", "b c"}


def test_scores_by_hand(directory):
    proposals = [PhraseEntry("a b", "x y", [0.125]), PhraseEntry("a c", "y", [0.5]), PhraseEntry("d", "x", [0.25])]
    score_proposals(proposals, str(directory / "e2f"), str(directory / "f2e"))
    # lex(f|e) = p(a|x) p(b|x), lex(e|f) = p(x|b) p(y|NULL); c is linked to NULL alone; d has no link, x one to NULL
    expected = [[0.0625, 0.0625, 0.125, 0.5, 0.125], [0.0025, 0.0025, 0.5, 0.5, 0.5], [1e-7, 1e-7, 0.25, 0.1, 0.25]]
    assert [entry.scores for entry in proposals] == expected


def test_a_lexical_weight_is_that_of_the_best_alignment():
    table = {(b"x", b"a"): 0.5, (b"x", b"NULL"): 0.75, (b"y", b"b"): 0.25}
    assert best_lexical_weight([b"x", b"y"], [b"a", b"b"], table) == 0.75 * 0.25


def test_the_stage_writes_a_sorted_table(directory):
    assert propose(directory, "--source-length", "2", "--nbest", "3") == 0
    lines = (directory / "out").read_bytes().splitlines()
    assert lines == sorted(lines)
    found = list(read_phrase_table(directory / "out", 5))
    assert {entry.source for entry in found} == {"b", "c", "b c"}
    assert all(0 < entry.scores[2] == entry.scores[4] < 1 for entry in found)
    assert propose(directory, "--source-length", "2", "--nbest", "3", "--extractions", "3", output="more") == 0
    more = list(read_phrase_table(directory / "more"))
    assert {entry.source for entry in more} == {"b", "c", "b c", "a b"}
    assert ("a b", "b") not in {(entry.source, entry.target) for entry in more}


def test_nothing_to_propose(directory):
    (directory / "known").write_text("a b\n")
    assert propose(directory, "--source-length", "1", "--targets", "0", input="known", output="few") == 0
    assert {entry.source for entry in read_phrase_table(directory / "few")} == {"b"}
    (directory / "known").write_text("a\n")
    assert propose(directory, input="known", output="none") == 0
    assert (directory / "none").read_bytes() == b""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--nbest", "11"], "--nbest 11: must be an integer from 1 to the beam size, 10"),
        (["--extractions", "-1"], "--extractions -1: must be at least 0"),
        (["--targets", "-2"], "--targets -2: must be at least 0"),
    ],
)
def test_refuses_options(directory, capsys, options, said):
    assert propose(directory, *options, output="bad") == 2
    assert said in capsys.readouterr().err
    assert not (directory / "bad").exists()


def test_refuses_inputs(directory, capsys):
    (directory / "empty").write_text("\n")
    assert propose(directory, input="empty", output="bad") == 2
    assert "empty: the input contains no words" in capsys.readouterr().err
    (directory / "plain").write_text("a ||| b ||| 1\n")
    assert propose(directory, "--extractions", "1", phrase_table="plain", output="bad") == 2
    assert "the entry of 'a' has no counts; omit --extractions" in capsys.readouterr().err
    assert not (directory / "bad").exists()
    assert propose(directory, lex_e2f="text", output="bad") == 2
    assert "text, line 1: expected 'word word probability'" in capsys.readouterr().err
    assert not (directory / "bad").exists()
