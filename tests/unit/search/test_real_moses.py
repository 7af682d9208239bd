"""Real Moses on an augmented table, where Moses is installed (on PATH, or named by the variable MOSES)."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.cli import main
from rnnsmt.moses.ini import default_ini
from rnnsmt.moses.nbest import read_nbest

from .twin import tiny_model

SENTENCES = ["a b c", "c a b a", "b", "a d c b", "c c b a b"]
WEIGHTS = {"TranslationModel0": [0.1, 0.07, 0.2, 0.05, 0.13, 0.3], "WordPenalty0": [-0.4], "LM0": [0.6]}


@pytest.fixture(scope="module")
def moses() -> str:
    found = shutil.which(os.environ.get("MOSES", "moses"))
    if found is None:
        pytest.skip("no moses on PATH, and the variable MOSES does not name it")
    return found


@pytest.fixture
def augmented(tmp_path: Path) -> Path:
    """A model directory whose table has the columns of the RNN and of WP; some probabilities are at their limit."""
    folder = tiny_model(tmp_path / "model", seed=4).folder
    lines = len((folder / "phrase-table").read_text().splitlines())
    scores = np.random.default_rng(1).uniform(-9.0, 0.0, lines).astype(np.float32)
    scores[::7] = -200.0
    np.save(folder / "rnn.npy", scores)
    np.save(folder / "wp.npy", -np.arange(lines, dtype=np.float32) % 3)
    command = f"phrases augment --phrase-table {folder}/phrase-table --column {folder}/rnn.npy --column {folder}/wp.npy"
    assert main([*command.split(), "--output", f"{folder}/augmented.gz"]) == 0
    ini = default_ini(folder, "augmented.gz", "reordering", "lm.arpa", 3, 6)
    ini.weights.update(WEIGHTS)
    ini.write(folder / "moses.ini")
    (folder / "input").write_text("\n".join(SENTENCES) + "\n")
    return folder


def test_moses_gives_the_same_translations_features_and_scores(moses: str, augmented: Path) -> None:
    options = "-search-algorithm 1 -cube-pruning-pop-limit 5000 -s 5000 -n-best-list moses.nbest 50 distinct"
    with (augmented / "input").open() as text:
        command = [moses, "-f", "moses.ini", *options.split()]
        subprocess.run(command, cwd=augmented, stdin=text, check=True, capture_output=True)
    files = f"--ini {augmented}/moses.ini --input {augmented}/input --output {augmented}/out"
    options = f"--pop-limit 5000 --stack 5000 --nbest 50 --nbest-file {augmented}/ours.nbest"
    assert main(["search", "decode", *files.split(), *options.split()]) == 0
    (names, expected), (our_names, found) = (read_nbest(augmented / f"{who}.nbest") for who in ("moses", "ours"))
    places = [our_names.index(name) for name in names]
    assert len(our_names) == len(names)
    theirs, own = list(expected), list(found)
    for sentence in range(len(SENTENCES)):
        lists = [{c.text: c for c in side if c.sentence == sentence} for side in (theirs, own)]
        best = max(candidate.score for candidate in lists[0].values())
        for text, candidate in lists[0].items():
            if text not in lists[1]:  # the search may drop what is far from the best
                assert candidate.score < best - 5.0
                continue
            other = lists[1].pop(text)
            assert other.score == pytest.approx(candidate.score, abs=2e-3)
            features = [other.features[place] for place in places]
            assert features == pytest.approx(candidate.features, abs=2e-3, rel=1e-4)
        assert not lists[1]
