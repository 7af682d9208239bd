"""Figures 4 and 5 of the paper: phrase vectors, projection to the plane, clusters and labels."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import rnnsmt
from rnnsmt.analysis.representations import (
    clusters,
    draw_sentence_vectors,
    draw_zooms,
    frames,
    phrase_vectors,
    plane,
    word_vectors,
)
from rnnsmt.cli import main
from rnnsmt.rnn.model import load_model_with

from ..phrase_store import STORE, VOCABULARIES, make_pairs, open_pairs, options_of


def blobs(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return points in ten dimensions around six centres, and the index of the centre of each point."""
    rng = np.random.default_rng(seed)
    kinds = np.repeat(np.arange(6), 25)
    return (8 * rng.normal(size=(6, 10))[kinds] + rng.normal(size=(150, 10))).astype(np.float32), kinds


def test_clusters_of_the_plane_are_those_of_the_vectors():
    vectors, kinds = blobs()
    points = plane(vectors, 1)
    assert points.shape == (150, 2)
    assert np.array_equal(points, plane(vectors, 1))
    found = clusters(points)
    assert len(found) == 4
    for rows in found:
        assert len(set(kinds[rows])) == 1
        assert len(rows) >= 15
    assert not plane(vectors[:9], 1).any()
    assert clusters(np.zeros((9, 2))) == []
    assert min(map(len, clusters(points[kinds < 2][::2]))) < 15  # smaller clusters if there are no larger ones
    noise = np.random.default_rng(1).normal(size=(15, 2))
    assert draw_zooms(noise, ["a"] * 15, []).axes


def test_labels_do_not_lie_over_each_other():
    points = np.array([[x, y] for x in np.linspace(0, 1, 8) for y in np.linspace(0, 1, 8)])
    zooms = [np.arange(64)]
    figure = draw_zooms(points, [f"a $ long $ \\frac label {number}" for number in range(64)], zooms)
    axes = figure.axes[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    assert 5 < len(boxes) < 64
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:place])
        assert box.x0 >= axes.get_window_extent().x0 - 1
    (low, high) = frames(points, zooms)[0]
    assert (low < points.min(0)).all()
    assert (high > points.max(0)).all()


def test_labels_have_characters_and_not_moses_entities():
    points = np.array([[0.0, 0.0], [1.0, 1.0]])
    figure = draw_zooms(points, ["it &apos;s", "a &lt;b&gt; &amp; c"], [np.arange(2)])
    assert {text.get_text() for text in figure.axes[0].texts} == {"it 's", "a <b> & c"}
    sentences = {"points": points.tolist(), "variance": [0.75, 0.25], "sentences": ["it &apos;s", "b"]}
    figure = draw_sentence_vectors([sentences])
    assert {text.get_text() for text in figure.axes[0].texts} == {"it 's", "b"}


def test_vectors_are_those_of_the_network(toy: Path):
    pairs = open_pairs(toy)
    model = load_model_with(toy / "m.safetensors", pairs.vocabularies, toy, "cpu")
    words = word_vectors(model, pairs, 3)
    assert words.labels == list(pairs.vocabularies[0].index)[:3]
    assert words.vectors.shape == (3, model.sizes.embedding)
    phrases = phrase_vectors(model, pairs, 30, 1)
    assert len(set(phrases.labels)) == len(phrases.labels)
    assert all(len(label.split()) >= 4 for label in phrases.labels)
    assert phrases.vectors.shape == (len(phrases.labels), model.sizes.hidden)


def test_the_stage(toy: Path, tmp_path, capsys):
    pictures = ["--output-zooms", f"{tmp_path}/z.svg", "--output-json", f"{tmp_path}/m.json"]
    files = ["--output", f"{tmp_path}/m.png", *pictures]
    common = ["analysis", "embeddings", "--model", str(toy / "m.safetensors"), *options_of(toy), *files]
    assert main([*common, "--of", "phrases", "--sample", "40"]) == 0
    found = json.loads((tmp_path / "m.json").read_text())
    assert len(found["labels"]) == len(found["points"]) >= 10
    assert (tmp_path / "m.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (tmp_path / "z.svg").read_text()
    drawn = rnnsmt.analysis.embeddings(toy / "m.safetensors", toy / STORE, toy / VOCABULARIES, of="phrases", sample=40)
    assert np.round(drawn.points, 3).tolist() == found["points"]
    assert (drawn.labels, list(map(list, drawn.clusters))) == (found["labels"], found["clusters"])
    assert main([*common, "--of", "words", "--sample", "5"]) == 0
    assert "warning: 5 words are too few to plot" in capsys.readouterr().err


def test_phrases_are_drawn_alike_however_many_targets_they_have(toy: Path, tmp_path):
    """The number of targets of a source phrase does not change the probability that the phrase is drawn."""
    phrases = [" ".join(words) for words in itertools.product("ab", repeat=4)][:10]
    targets = ["".join(words) for words in itertools.product("ABCDEF", repeat=3)][:200]
    table = [*((phrases[0], target) for target in targets), *((phrase, "A") for phrase in phrases[1:])]
    pairs = make_pairs(tmp_path, table, "a b c d e", "A B C D E")
    model = load_model_with(toy / "m.safetensors", pairs.vocabularies, toy, "cpu")
    drawn = [phrase_vectors(model, pairs, 1, seed).labels[0] for seed in range(150)]
    assert 3 <= drawn.count(phrases[0]) <= 32
