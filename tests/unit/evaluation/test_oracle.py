"""Oracles of n-best lists, against all selections by brute force, with BLEU computed for each text separately."""

import itertools
import json
import random

import pytest

from rnnsmt.bleu.batch import BatchBleu, sentence_bleu
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.cli import main
from rnnsmt.evaluation.oracles import oracles

WORDS = ["a", "b", "c", "d"]


def corpus_bleu(texts, references):
    return bleu_of(BatchBleu(references).statistics([[text] for text in texts]).sum(0)).bleu


def lists(seed, sentences, size):
    """Return n-best lists of references with words replaced, dropped or added, and the references."""
    rng = random.Random(seed)
    references = [[" ".join(rng.choices(WORDS, k=rng.randint(4, 9))) for _ in range(sentences)] for _ in range(2)]
    texts = []
    for sentence in range(sentences):
        found = []
        for _ in range(rng.randint(1, size)):
            words = references[rng.randrange(2)][sentence].split()
            for _ in range(rng.randint(0, 4)):
                words[rng.randrange(len(words))] = rng.choice([*WORDS, "x", "x y", ""])
            found.append(" ".join(" ".join(words).split()))
        texts.append(found)
    return texts, references


@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_all_selections(seed):
    texts, references = lists(seed, 5, 4)
    first, (cut, whole) = oracles(texts, references, [2, 0])
    assert first == pytest.approx(corpus_bleu([found[0] for found in texts], references))
    for oracle, allowed in ((cut, [found[:2] for found in texts]), (whole, texts)):
        by_sentence = []
        for sentence, found in enumerate(allowed):
            one = BatchBleu([[lines[sentence]] for lines in references])
            values = [float(sentence_bleu(one.statistics([[text]]))[0]) for text in found]
            by_sentence.append(found[values.index(max(values))])
        assert oracle.sentence == pytest.approx(corpus_bleu(by_sentence, references))
        assert oracle.corpus == pytest.approx(corpus_bleu(oracle.translations, references))
        best = max(corpus_bleu(selection, references) for selection in itertools.product(*allowed))
        assert oracle.sentence <= oracle.corpus + 1e-9 <= best + 2e-9
        # replacing a single translation does not increase BLEU
        for sentence, found in enumerate(allowed):
            for text in found:
                other = [*oracle.translations[:sentence], text, *oracle.translations[sentence + 1 :]]
                assert corpus_bleu(other, references) <= oracle.corpus + 1e-6


def test_the_corpus_oracle_is_often_better_and_finds_the_best():
    better = optimal = 0
    for seed in range(20):
        texts, references = lists(seed, 5, 4)
        _, (oracle,) = oracles(texts, references, [0])
        best = max(corpus_bleu(selection, references) for selection in itertools.product(*texts))
        better += oracle.corpus > oracle.sentence + 1e-6
        optimal += oracle.corpus > best - 1e-6
    assert better >= 5 and optimal >= 12


def test_command(tmp_path, capsys):
    (tmp_path / "reference").write_text("a b c d\nb c d a\na a a a\n")
    lines = ["0 ||| a b x d", "0 ||| a b c d", "0 ||| b", "2 ||| a a a", "2 ||| a a a a"]  # sentence 1 has no list
    (tmp_path / "nbest").write_text("".join(f"{line} ||| LM0= -1 ||| -1\n" for line in lines))
    files = ["--nbest", f"{tmp_path}/nbest", "--reference", f"{tmp_path}/reference"]
    outputs = ["--output", f"{tmp_path}/json", "--output-text", f"{tmp_path}/text"]
    assert main(["evaluation", "oracle", *files, "--sizes", "1", "2", *outputs]) == 0
    found = json.loads((tmp_path / "json").read_text())
    assert (found["sentences"], found["translations"]) == (3, 6)
    assert [one["size"] for one in found["oracles"]] == [1, 2, None]
    reference = [["a b c d", "b c d a", "a a a a"]]
    assert found["oracles"][0]["corpus"] == found["oracles"][0]["sentence"] == found["first"]
    assert found["first"] == pytest.approx(corpus_bleu(["a b x d", "", "a a a"], reference))
    assert found["oracles"][1] | {"size": None} == found["oracles"][2]
    assert found["oracles"][2]["corpus"] == pytest.approx(corpus_bleu(["a b c d", "", "a a a a"], reference))
    assert (tmp_path / "text").read_text() == "a b c d\n\na a a a\n"
    capsys.readouterr()
    (tmp_path / "short").write_text("a\n")
    assert main(["evaluation", "oracle", *files[:3], f"{tmp_path}/short", *outputs]) == 2
    assert "has sentence 2, but the references have only 1" in capsys.readouterr().err
    assert main(["evaluation", "oracle", *files, f"{tmp_path}/short", *outputs]) == 2
    assert "short" in capsys.readouterr().err
