"""The loop around the optimiser: pool, checkpoint, stop and resume."""

import errno
import fcntl
import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.base.io import InputError
from rnnsmt.base.resuming import SAVED, Stop
from rnnsmt.bleu.batch import BatchBleu
from rnnsmt.tuning import loop
from rnnsmt.tuning.checkpoint import TuningCheckpoint, content_hash, file_hash
from rnnsmt.tuning.loop import Decoded, tune
from rnnsmt.tuning.nbest_pool import NbestPool, candidate_batch, normalised
from rnnsmt.tuning.options import LoopOptions, OptimiserOptions

WORDS = ["a", "b", "c", "d", "e", "f", "g", "h"]


class ToyDecoder:
    """Decoder of fixed translations; it returns the ten best of each sentence."""

    def __init__(self, sentences: int = 25, features: int = 3, seed: int = 0, constant: tuple[int, ...] = ()) -> None:
        rng = np.random.default_rng(seed)
        self.references = [" ".join(rng.choice(WORDS, 9)) for _ in range(sentences)]
        self.feature_names = [f"F{k}:0" for k in range(features)]
        self._texts, self._features = [], []
        for reference in self.references:
            texts, rows = [], []
            for _ in range(40):
                words = reference.split()
                errors = int(rng.integers(0, 7))
                for place in rng.choice(9, errors, replace=False):
                    words[place] = str(rng.choice(WORDS))
                texts.append(" ".join(words))
                row = rng.standard_normal(features).round(3) * 2
                row[0] -= 0.5 * errors
                row[-1] = row[-1] + 0.3 * errors
                row[list(constant)] = 1.0
                rows.append(row)
            self._texts.append(texts)
            self._features.append(np.array(rows))
        self.decoded = 0

    def decode(self, weights: np.ndarray) -> Decoded:
        self.decoded += 1
        texts, features = [], []
        for all_texts, rows in zip(self._texts, self._features, strict=True):
            order = np.argsort(-(rows @ weights), kind="stable")[:10]
            texts.append([all_texts[place] for place in order])
            features.append(rows[order])
        return Decoded([each[0] for each in texts], texts, features)


OPTIONS = LoopOptions(seed=3, max_iterations=8, optimiser=OptimiserOptions(restarts=4))
CLASSICAL = OptimiserOptions(restarts=5, combine="best")
START = np.array([0.1, 0.1, 0.3])


def run(directory: Path, options: LoopOptions = OPTIONS, decoder: ToyDecoder | None = None):
    decoder = decoder or ToyDecoder()
    return tune(decoder, BatchBleu([decoder.references]), START, TuningCheckpoint(directory, {"a": "1"}), options)


def test_tuning_raises_bleu_and_keeps_the_best_decoded_weights(tmp_path):
    tuned = run(tmp_path)
    scores = [iteration["dev_bleu"] for iteration in tuned.iterations]
    assert tuned.bleu == max(scores) > scores[0] + 5
    best = scores.index(max(scores))
    assert tuned.weights.tolist() == tuned.iterations[best]["weights"]
    assert np.abs(tuned.weights).sum() == pytest.approx(1)
    assert tuned.weights[0] > 0 > tuned.weights[2]


def test_candidates_accumulate(tmp_path):
    tuned = run(tmp_path)
    total = 0
    for iteration in tuned.iterations:
        total += iteration["new_candidates"]
        assert iteration["candidates"] == total
    assert tuned.iterations[0]["new_candidates"] == 250


def test_same_seed_same_history_whatever_the_threads(tmp_path):
    histories = [
        run(tmp_path / str(threads), LoopOptions(seed=3, threads=threads, optimiser=OPTIONS.optimiser)).iterations
        for threads in (1, 2)
    ]
    assert histories[0] == histories[1]


@pytest.mark.parametrize("complete", range(1, 5))
def test_resumes_bit_for_bit(tmp_path, complete):
    undisturbed = run(tmp_path / "a")
    run(tmp_path / "b", LoopOptions(seed=3, max_iterations=complete, optimiser=OPTIONS.optimiser))
    decoder = ToyDecoder()
    resumed = run(tmp_path / "b", decoder=decoder)
    assert resumed.iterations == undisturbed.iterations
    assert resumed.weights.tobytes() == undisturbed.weights.tobytes()
    assert decoder.decoded == len(undisturbed.iterations) - complete


def test_a_finished_run_decodes_nothing_again(tmp_path):
    first = run(tmp_path)
    decoder = ToyDecoder()
    assert run(tmp_path, decoder=decoder).iterations == first.iterations
    assert decoder.decoded == 0


@pytest.mark.parametrize("patience", [1, 3])
def test_a_finished_run_can_be_extended_and_cut_short(tmp_path, patience):
    """The result depends on the options, not on the number of iterations of an earlier run."""

    def options(most: int) -> LoopOptions:
        return LoopOptions(seed=3, max_iterations=most, patience=patience, optimiser=OPTIONS.optimiser)

    expected = {most: run(tmp_path / f"{most}", options(most)) for most in (2, 3, 6)}
    decoded = 0
    for most in (3, 6, 2, 6):
        decoder = ToyDecoder()
        checkpoint = TuningCheckpoint(tmp_path / "one", {"a": "1"})
        tuned = tune(decoder, BatchBleu([decoder.references]), START, checkpoint, options(most))
        checkpoint.finish()
        del checkpoint
        decoded += decoder.decoded
        assert (tuned.iterations, tuned.stopped) == (expected[most].iterations, expected[most].stopped)
        assert (tuned.weights.tolist(), tuned.bleu) == (expected[most].weights.tolist(), expected[most].bleu)
    assert decoded == len(expected[6].iterations)


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import rnnsmt.tuning.checkpoint as checkpoint
from unit.tuning.test_loop import *
count, stop = 0, sys.argv[3]
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
if stop == "while decoding":
    decode = ToyDecoder.decode
    def decode_or_die(self, weights):
        return decode(self, weights) if self.decoded < 2 else die()
    ToyDecoder.decode = decode_or_die
elif stop == "while saving candidates":
    save = checkpoint.np.savez
    def save_or_die(out, **arrays):
        global count
        count += 1
        if count == 3:
            out.write(b"half")
            out.flush()
            die()
        save(out, **arrays)
    checkpoint.np.savez = save_or_die
elif stop == "between the files":
    write = checkpoint.write_json
    def write_or_die(*args):
        global count
        count += 1
        return write(*args) if count < 3 else die()
    checkpoint.write_json = write_or_die
run(Path(sys.argv[2]))
"""


@pytest.mark.parametrize("stop", ["while decoding", "while saving candidates", "between the files"])
def test_kill_at_any_time_and_resume(tmp_path, stop):
    undisturbed = run(tmp_path / "a")
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parents[2]), str(tmp_path / "b"), stop]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -9
    resumed = run(tmp_path / "b")
    assert resumed.iterations == undisturbed.iterations
    assert json.loads((tmp_path / "a" / "checkpoint.json").read_text()) == json.loads(
        (tmp_path / "b" / "checkpoint.json").read_text()
    )


# Nested models

GOOD = np.array([0.6, 0.0, -0.3])
NEAR = np.array([0.5, 0.01, -0.45])
BAD = np.array([-0.6, 0.0, 0.3])


class Ahead(ToyDecoder):
    """Decoder whose translations with certain weights are better than those of any iteration."""

    def __init__(self, *ahead: np.ndarray) -> None:
        super().__init__()
        self.ahead = [normalised(weights) for weights in ahead]

    def decode(self, weights):
        decoded = super().decode(weights)
        is_ahead = any(np.allclose(weights, other, atol=1e-12) for other in self.ahead)
        return decoded._replace(best=self.references) if is_ahead else decoded


@pytest.fixture
def all_decoded(monkeypatch):
    """Decode all nested models, even those far behind."""
    monkeypatch.setattr(loop, "HOPELESS", 0.35)


def run_with_nested(
    directory: Path, *nested: np.ndarray, decoder: ToyDecoder, options: LoopOptions = OPTIONS, stop=None
):
    bleu = BatchBleu([decoder.references])
    return tune(decoder, bleu, START, TuningCheckpoint(directory, {"a": "1"}), options, stop, nested)


def test_a_nested_model_that_is_behind_changes_nothing(tmp_path, all_decoded):
    alone = run(tmp_path / "a")
    tuned = run_with_nested(tmp_path / "b", GOOD, decoder=ToyDecoder())
    assert (tuned.weights.tolist(), tuned.bleu) == (alone.weights.tolist(), alone.bleu)
    assert tuned.iterations == alone.iterations
    assert [(one["nested"], one["part"]) for one in tuned.comparisons] == [(1, 0)]
    assert 0 < tuned.comparisons[0]["dev_bleu"] < tuned.bleu


def test_a_nested_model_that_is_far_behind_on_the_lists_is_not_decoded(tmp_path):
    decoder = ToyDecoder()
    tuned = run_with_nested(tmp_path, BAD, decoder=decoder)
    assert not tuned.comparisons
    assert decoder.decoded == len(tuned.iterations)


def test_a_nested_model_that_is_ahead_is_the_result(tmp_path, all_decoded):
    """The result is a nested model if no point between it and the best iteration has as high a BLEU."""
    tuned = run_with_nested(tmp_path, BAD, NEAR, decoder=Ahead(NEAR))
    assert (tuned.weights.tolist(), tuned.bleu) == (normalised(NEAR).tolist(), 100)
    assert [(one["nested"], one["part"]) for one in tuned.comparisons] == [(2, 0.75), (2, 0.5), (2, 0.25), (2, 0)]
    assert tuned.iterations[tuned.best_iteration - 1]["dev_bleu"] < 100


def test_the_point_nearest_to_the_own_weights_that_is_as_good(tmp_path, all_decoded):
    own = run(tmp_path / "a").weights
    near = normalised(NEAR)
    half = normalised(near + 0.5 * (own - near))
    tuned = run_with_nested(tmp_path / "b", NEAR, decoder=Ahead(NEAR, half))
    assert tuned.weights == pytest.approx(half)
    assert [one["part"] for one in tuned.comparisons] == [0.75, 0.5, 0]


def test_comparisons_are_not_made_again(tmp_path, all_decoded):
    """Comparisons are not repeated after an interruption or with another number of iterations."""
    expected = run_with_nested(tmp_path / "a", NEAR, decoder=Ahead(NEAR))
    decoded = 0
    while True:
        decoder = Ahead(NEAR)
        try:
            tuned = run_with_nested(tmp_path / "b", NEAR, decoder=decoder, stop=Stop(1e-6))
        except SystemExit as stopped:
            assert stopped.code == SAVED
            assert decoder.decoded == 1
        decoded += decoder.decoded
        if decoder.decoded == 0:
            break
    assert decoded == len(expected.iterations) + len(expected.comparisons)
    assert (tuned.comparisons, tuned.weights.tolist()) == (expected.comparisons, expected.weights.tolist())
    fewer = LoopOptions(seed=3, max_iterations=2, optimiser=OPTIONS.optimiser)
    cut = run_with_nested(tmp_path / "b", NEAR, decoder=Ahead(NEAR), options=fewer)
    directly = run_with_nested(tmp_path / "c", NEAR, decoder=Ahead(NEAR), options=fewer)
    assert cut.history(["a", "b", "c"], 3) == directly.history(["a", "b", "c"], 3)


# Stopping


def test_stops_without_new_candidates(tmp_path):
    tuned = run(tmp_path, LoopOptions(seed=1, patience=99, optimiser=CLASSICAL))
    assert tuned.stopped == "stopped: no new candidates"
    assert tuned.iterations[-1]["new_candidates"] == 0


def test_stops_after_a_number_of_iterations(tmp_path):
    tuned = run(tmp_path, LoopOptions(seed=1, max_iterations=2, optimiser=OPTIONS.optimiser))
    assert tuned.stopped == "stopped after 2 iterations"


def test_stops_when_bleu_does_not_rise(tmp_path):
    class Worse(ToyDecoder):
        def decode(self, weights):
            decoded = super().decode(weights)
            if self.decoded == 1:
                return decoded._replace(best=self.references)
            return decoded

    tuned = run(tmp_path, LoopOptions(seed=1, patience=2, optimiser=OptimiserOptions(restarts=5)), Worse())
    assert tuned.stopped == "stopped: dev BLEU has not risen by 0.05 in 2 iterations"
    assert len(tuned.iterations) == 3
    assert tuned.weights == pytest.approx(START / 0.5)


def test_stops_before_the_time_limit_and_resumes(tmp_path):
    """With a short time limit, one iteration is done per call; the result is that of a run without a limit."""

    def limited(seconds: float):
        decoder = ToyDecoder()
        bleu = BatchBleu([decoder.references])
        try:
            return tune(
                decoder, bleu, START, TuningCheckpoint(tmp_path / "limited", {"a": "1"}), OPTIONS, Stop(seconds)
            )
        except SystemExit as stopped:
            assert decoder.decoded == 1
            return stopped.code

    expected = run(tmp_path / "whole")
    for _ in range(len(expected.iterations) - 1):
        assert limited(1e-6) == SAVED
    tuned = limited(1e-6)
    assert (tuned.iterations, tuned.stopped) == (expected.iterations, expected.stopped)
    assert limited(1e6).iterations == expected.iterations


def test_stops_where_another_iteration_would_not_fit():
    stop = Stop(1000)
    assert not stop.asked(10)
    assert stop.asked(950)


# Lists that cannot be tuned


def test_a_constant_feature_is_named_and_keeps_its_weight(tmp_path, capsys):
    tuned = run(tmp_path, decoder=ToyDecoder(constant=(1,)))
    assert (
        "features that are constant on every n-best list, whose weights are not tuned: F1:0" in capsys.readouterr().err
    )
    assert tuned.iterations[1]["constant_features"] == ["F1:0"]
    assert tuned.weights[1] > 0


def test_all_features_constant_is_refused(tmp_path):
    with pytest.raises(InputError, match="every feature is constant on every n-best list"):
        run(tmp_path, decoder=ToyDecoder(constant=(0, 1, 2)))
    assert not (tmp_path / "checkpoint.json").exists()


def test_no_common_word_is_refused(tmp_path):
    decoder = ToyDecoder()
    bleu = BatchBleu([["z z z z"] * len(decoder.references)])
    with pytest.raises(InputError, match="shares a 1-gram with its reference, so BLEU is 0"):
        tune(decoder, bleu, START, TuningCheckpoint(tmp_path, {}), OPTIONS)


def test_several_references(tmp_path):
    decoder = ToyDecoder()
    bleu = BatchBleu([["z"] * len(decoder.references), decoder.references])
    assert tune(decoder, bleu, START, TuningCheckpoint(tmp_path, {}), OPTIONS).bleu > 20


# The pool


def test_pool_keeps_distinct_candidates_in_order():
    pool = NbestPool(2, 2)
    statistics = np.tile(np.array([1, 0, 0, 0, 4, 3, 2, 1, 4], np.int32), (3, 1))
    pool.add(candidate_batch([np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([[0.0, 1.0]])], statistics))
    assert len(pool) == 2
    again = candidate_batch([np.array([[3.0, 2.0]]), np.array([[-0.0, 1.0], [1.0, 2.0]])], statistics)
    fresh = pool.add(again)
    assert fresh.sentences.tolist() == [0, 1]  # -0.0 is 0.0; the same features in another sentence are new
    flat = pool.flat()
    assert flat.offsets.tolist() == [0, 2, 4]
    assert flat.features.T.tolist() == [[1, 2], [3, 2], [0, 1], [1, 2]]


def test_candidates_with_other_statistics_are_distinct():
    statistics = np.array([[1, 0, 0, 0, 4, 3, 2, 1, 4], [2, 0, 0, 0, 4, 3, 2, 1, 4]], np.int32)
    assert len(NbestPool(1, 1).add(candidate_batch([np.array([[1.0], [1.0]])], statistics)).sentences) == 2


# The checkpoint


def test_a_second_process_waits_for_the_first(tmp_path, capsys):
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as by a process that survived its Snakemake
        opened = threading.Event()
        waiting = threading.Thread(target=lambda: TuningCheckpoint(tmp_path, {}) and opened.set())
        waiting.start()
        assert not opened.wait(0.3)
    assert opened.wait(10)
    waiting.join()
    assert "another process is using" in capsys.readouterr().err


def test_a_file_system_without_locks(tmp_path, capsys, monkeypatch):
    def flock(file, how):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    TuningCheckpoint(tmp_path, {})
    assert "cannot be locked (Function not implemented); make sure" in capsys.readouterr().err


def test_other_settings_are_refused_by_name(tmp_path):
    run(tmp_path)
    with pytest.raises(InputError, match=r"changed: --seed \(was not set, is 2\), new .*; .* remove"):
        TuningCheckpoint(tmp_path, {"a": "1", "--seed": "2", "new": "x"})


def test_settings_that_are_gone_are_named(tmp_path):
    run(tmp_path)
    with pytest.raises(InputError, match=r"changed: a \(was 1, is not set\);"):
        TuningCheckpoint(tmp_path, {})


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "other"}'])
def test_a_damaged_checkpoint_is_refused(tmp_path, content):
    run(tmp_path)
    (tmp_path / "checkpoint.json").write_text(content)
    with pytest.raises(InputError, match=r"checkpoint\.json"):
        TuningCheckpoint(tmp_path, {"a": "1"})


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 half a file"])
def test_damaged_candidates_are_refused(tmp_path, content):
    run(tmp_path, LoopOptions(seed=3, max_iterations=3, optimiser=OPTIONS.optimiser))
    path = tmp_path / "nbest-002.npz"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"nbest-002\.npz: damaged .* to start over"):
        run(tmp_path)


def test_content_hash_sees_through_compression(tmp_path):
    import gzip

    (tmp_path / "a").write_bytes(b"text\n")
    with gzip.open(tmp_path / "a.gz", "wb") as out:
        out.write(b"text\n")
    assert content_hash(tmp_path / "a") == content_hash(tmp_path / "a.gz")
    assert content_hash(tmp_path / "a", tmp_path / "a") != content_hash(tmp_path / "a")


def test_file_hash_sees_every_byte(tmp_path):
    """The hash of a file depends on all its bytes."""
    path = tmp_path / "table"
    hashes = set()
    middle = b"a" * 100_000 + b"b" + b"a" * 99_999
    for content in (b"a" * 200_000, b"b" + b"a" * 199_999, middle, b"a" * 199_999 + b"b", b"a" * 200_001, b""):
        path.write_bytes(content)
        hashes.add(file_hash(path))
    assert len(hashes) == 6
    with pytest.raises(InputError, match="no such file"):
        file_hash(tmp_path / "none")
