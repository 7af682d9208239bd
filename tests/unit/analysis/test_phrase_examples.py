"""Tables 2 and 3 of the paper: the choice of phrases and the output."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import rnnsmt
from rnnsmt.analysis.phrase_pairs import LongPhrase, ScoredPairs, choose, long_phrases
from rnnsmt.base.errors import InputError
from rnnsmt.cli import main

from ..phrase_store import VOCABULARIES, import_table, write_column

TABLE = """a b c ||| x ||| 1 1 .5 1 ||| ||| 1 9 1 |||
a b c d ||| x y ||| 1 1 .2 1 ||| ||| 1 7 1 |||
a b c d ||| y ||| 1 1 .5 1 ||| ||| 1 7 1 |||
a b c d ||| z ||| 1 1 .3 1 ||| ||| 1 7 1 |||
b c d e ||| x ||| 1 1 .2 1 ||| ||| 1 3 1 |||
c d e f ||| x ||| 1 1 .2 1 ||| ||| 1 2 1 |||
c d e f ||| y ||| 1 1 .2 1 ||| ||| 1 2 1 |||
"""


def scored(directory: Path, text: str) -> ScoredPairs:
    """Return the pairs of a table, each with the score -1."""
    pairs, scores = import_table(directory, text)
    return ScoredPairs(pairs, scores, [write_column(directory / "column", pairs, [-1] * text.count("\n"))])


def test_phrases_are_long_and_have_several_targets(tmp_path):
    found = scored(tmp_path, TABLE)
    assert long_phrases(found, 2) == [LongPhrase(7, 1, 4), LongPhrase(2, 5, 7)]
    assert long_phrases(found, 3) == [LongPhrase(7, 1, 4)]
    assert long_phrases(found, 1)[1] == LongPhrase(3, 4, 5)
    found = scored(tmp_path, TABLE.replace("a b c d ||| y", "a  b\tc d||| y"))
    assert long_phrases(found, 2) == [LongPhrase(7, 1, 4), LongPhrase(2, 5, 7)]
    with pytest.raises(InputError, match="the counts of its table are missing"):
        long_phrases(scored(tmp_path, "a b c d ||| x ||| 1 1 1 1\n"), 1)


def test_frequent_and_rare_ones_are_drawn():
    phrases = [LongPhrase(count, 3 * count, 3 * count + 3) for count in range(1000)]
    frequent, rare = choose(phrases, 4, 1)
    assert len(frequent) == len(rare) == 4
    assert min(one.extracted for one in frequent) >= 989
    assert max(one.extracted for one in rare) <= 100
    assert [one.extracted for one in frequent] == sorted((one.extracted for one in frequent), reverse=True)
    assert choose(phrases, 4, 1) == (frequent, rare)
    assert choose(phrases, 4, 2) != (frequent, rare)
    assert len(choose(phrases[:3], 5, 1)[0]) == 1
    assert choose([], 4, 1) == ([], [])


def test_both_rankings_and_the_draws(toy: Path, tmp_path):
    source = "a b c d"
    targets = {"A B C D": (0.2, -3.0), "A B C": (0.7, -9.0), "D": (0.1, -1.0)}
    lines = [f"{source} ||| {target} ||| 1 1 {p} 1 ||| ||| 1 5 1 |||\n" for target, (p, _) in targets.items()]
    pairs, scores = import_table(tmp_path, "a ||| A ||| 1 1 1 1 ||| ||| 1 1 1 |||\n" + "".join(lines))
    column = write_column(tmp_path / "column", pairs, [-1.0, *(log for _, log in targets.values())])
    command = [
        "analysis", "phrase-examples", "--pairs", str(pairs), "--table-scores", str(scores), "--scores", str(column),
        "--model", str(toy / "m.safetensors"), "--vocabularies", str(toy / VOCABULARIES), "--top", "2", "--draws", "20",
        "--output-json", f"{tmp_path}/o.json", "--output-md", f"{tmp_path}/o.md",
    ]  # fmt: skip
    assert main(command) == 0
    (found,) = json.loads((tmp_path / "o.json").read_text())["frequent"]
    assert (found["source"], found["extracted"]) == (source, 5)
    assert found["table"] == [["A B C", 0.7], ["A B C D", 0.2]]
    assert [target for target, _ in found["network"]] == ["D", "A B C D"]
    assert found["network"][0][1] == pytest.approx(np.exp(-1))
    assert sum(times for *_, times in found["samples"]) <= 20
    assert [log for _, log, _ in found["samples"]] == sorted((log for _, log, _ in found["samples"]), reverse=True)
    assert "| A B C (0.70) | D (0.37) |" in (tmp_path / "o.md").read_text()
    examples = rnnsmt.analysis.phrase_examples(
        pairs,
        scores,
        column,
        toy / "m.safetensors",
        toy / VOCABULARIES,
        top=2,
        draws=20,
    )
    assert json.loads(json.dumps([example._asdict() for example in examples.frequent])) == [found]
    write_column(column, pairs, [0.0] * 2)
    assert main(command) == 2
