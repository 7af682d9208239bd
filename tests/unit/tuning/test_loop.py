"""The loop around the optimizer: pool, checkpoint, stop and resume."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.base.resuming import SAVED, Stop
from rnnsmt.bleu.batch import BatchBleu
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.tuning import loop
from rnnsmt.tuning.checkpoint import TuningCheckpoint, content_hash
from rnnsmt.tuning.loop import Decoded, averaged, second_half, tune
from rnnsmt.tuning.nbest_pool import NbestPool, candidate_batch
from rnnsmt.tuning.options import LoopOptions, OptimizerOptions

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


OPTIONS = LoopOptions(seed=3, iterations=8, optimizer=OptimizerOptions("mert-averaged", restarts=4))
MERT = LoopOptions(seed=3, iterations=25, optimizer=OptimizerOptions("mert", restarts=2))
START = np.array([0.1, 0.1, 0.3])


def run(directory: Path, options: LoopOptions = OPTIONS, decoder: ToyDecoder | None = None):
    decoder = decoder or ToyDecoder()
    return tune(decoder, BatchBleu([decoder.references]), START, TuningCheckpoint(directory, {"a": "1"}), options)


def test_the_result_is_the_mean_of_the_second_half_of_the_iterations(tmp_path):
    decoder = ToyDecoder()
    tuned = run(tmp_path, decoder=decoder)
    assert len(tuned.iterations) == 8 and decoder.decoded == 9
    rows = [np.array(iteration["weights"]) for iteration in tuned.iterations]
    assert [np.abs(row).sum() for row in rows] == pytest.approx([1] * 8)
    mean = sum(rows[4:]) / 4
    assert tuned.weights == pytest.approx(mean / np.abs(mean).sum(), rel=1e-12)
    best = ToyDecoder().decode(tuned.weights).best
    assert tuned.bleu == bleu_of(BatchBleu([decoder.references]).statistics([[x] for x in best]).sum(axis=0)).bleu
    assert tuned.bleu > tuned.iterations[0]["dev_bleu"] + 5
    assert tuned.weights[0] > 0 > tuned.weights[2]
    history = tuned.history(decoder.feature_names, 3)
    assert (history["averaged"], history["weights"]) == ([5, 6, 7, 8], tuned.weights.tolist())


@pytest.mark.parametrize(("iterations", "used"), [(1, [1]), (2, [2]), (3, [2, 3]), (25, [*range(13, 26)])])
def test_the_second_half(iterations, used):
    """Average from the middle iteration on; a single iteration is the result."""
    records = [{"iteration": n, "weights": [n, 100.0 - n]} for n in range(1, iterations + 1)]
    assert [record["iteration"] for record in second_half(records)] == used
    assert averaged(records) == pytest.approx([np.mean(used) / 100, 1 - np.mean(used) / 100])


def test_mert_ends_when_the_weights_no_longer_change(tmp_path, capsys):
    decoder = ToyDecoder()
    tuned = run(tmp_path, MERT, decoder)
    number = len(tuned.iterations)
    assert 2 < number < 25 and decoder.decoded == number
    assert f"no longer change after iteration {number}" in capsys.readouterr().err
    assert (tuned.weights.tolist(), tuned.bleu) == (tuned.iterations[-1]["weights"], tuned.iterations[-1]["dev_bleu"])
    assert tuned.history(decoder.feature_names, 3)["averaged"] == []


def test_mert_with_a_maximum_ends_with_the_weights_of_the_last_optimisation(tmp_path):
    """The weights after n iterations are those of iteration n + 1, however many the checkpoint has."""
    options = replace(MERT, iterations=2)
    decoder = ToyDecoder()
    tuned = run(tmp_path / "a", options, decoder)
    assert decoder.decoded == 3
    whole = run(tmp_path / "b", MERT)
    assert tuned.weights.tolist() == whole.iterations[2]["weights"]
    assert tuned.bleu == whole.iterations[2]["dev_bleu"]
    cut_short, extended = run(tmp_path / "b", options), run(tmp_path / "a", MERT)
    assert (cut_short.weights.tolist(), cut_short.bleu) == (tuned.weights.tolist(), tuned.bleu)
    assert (extended.weights.tolist(), extended.iterations) == (whole.weights.tolist(), whole.iterations)


@pytest.mark.parametrize("iterations", [1, 2])
def test_a_result_below_the_initial_weights_is_a_warning(tmp_path, capsys, monkeypatch, iterations):
    def worse(pool, start, active, seed, options, threads):
        return np.array([-0.8, 0.1, 0.1])

    monkeypatch.setattr(loop, "optimize_weights", worse)
    tuned = run(tmp_path, replace(MERT, iterations=iterations))
    initial = tuned.iterations[0]["dev_bleu"]
    assert tuned.bleu < initial
    assert f"{tuned.bleu:.2f} is below the {initial:.2f} of the initial weights" in capsys.readouterr().err


def test_candidates_accumulate(tmp_path):
    tuned = run(tmp_path)
    total = 0
    for iteration in tuned.iterations:
        total += iteration["new_candidates"]
        assert iteration["candidates"] == total
    assert tuned.iterations[0]["new_candidates"] == 250


def test_same_seed_same_history_whatever_the_threads(tmp_path):
    histories = [
        run(tmp_path / str(threads), LoopOptions(seed=3, threads=threads, optimizer=OPTIONS.optimizer)).iterations
        for threads in (1, 2)
    ]
    assert histories[0] == histories[1]


@pytest.mark.parametrize("complete", range(1, 5))
def test_resumes_bit_for_bit(tmp_path, complete):
    undisturbed = run(tmp_path / "a")
    run(tmp_path / "b", LoopOptions(seed=3, iterations=complete, optimizer=OPTIONS.optimizer))
    decoder = ToyDecoder()
    resumed = run(tmp_path / "b", decoder=decoder)
    assert resumed.iterations == undisturbed.iterations
    assert resumed.weights.tobytes() == undisturbed.weights.tobytes()
    assert decoder.decoded == len(undisturbed.iterations) - complete + 1  # and the mean


def test_a_finished_run_decodes_nothing_again(tmp_path):
    first = run(tmp_path)
    decoder = ToyDecoder()
    assert run(tmp_path, decoder=decoder).iterations == first.iterations
    assert decoder.decoded == 0


def test_a_finished_run_can_be_extended_and_cut_short(tmp_path):
    """The result depends on the options, not on the number of iterations of an earlier run."""

    def options(most: int) -> LoopOptions:
        return LoopOptions(seed=3, iterations=most, optimizer=OPTIONS.optimizer)

    expected = {most: run(tmp_path / f"{most}", options(most)) for most in (2, 3, 6)}
    decoded = 0
    for most in (3, 6, 2, 6):
        decoder = ToyDecoder()
        checkpoint = TuningCheckpoint(tmp_path / "one", {"a": "1"})
        tuned = tune(decoder, BatchBleu([decoder.references]), START, checkpoint, options(most))
        checkpoint.finish()
        del checkpoint
        decoded += decoder.decoded
        assert tuned.iterations == expected[most].iterations
        assert (tuned.weights.tolist(), tuned.bleu) == (expected[most].weights.tolist(), expected[most].bleu)
    assert decoded == 6 + 3  # every iteration once, and three means; that of two iterations is the second one


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


# Stopping


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
    for _ in range(len(expected.iterations)):
        assert limited(1e-6) == SAVED
    tuned = limited(1e-6)
    assert (tuned.iterations, tuned.bleu) == (expected.iterations, expected.bleu)
    assert limited(1e6).iterations == expected.iterations


def test_goes_on_without_new_candidates(tmp_path):
    """Run all iterations, and resume after an iteration that found no new candidate."""
    options = LoopOptions(seed=1, iterations=14, optimizer=OptimizerOptions("mira"))
    tuned = run(tmp_path / "a", options)
    without = [record["iteration"] for record in tuned.iterations if record["new_candidates"] == 0]
    assert len(tuned.iterations) == 14 and without[0] < 14
    run(tmp_path / "b", replace(options, iterations=without[0]))
    assert run(tmp_path / "b", options).iterations == tuned.iterations


def test_stops_by_a_signal_before_the_last_decoding_and_resumes(tmp_path):
    expected = run(tmp_path / "whole")

    class Killed(ToyDecoder):
        def decode(self, weights):
            if self.decoded == OPTIONS.iterations - 1:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().decode(weights)

    decoder = Killed()
    bleu = BatchBleu([decoder.references])
    code = None
    with Stop(None) as stop:
        try:  # not pytest.raises, which keeps the checkpoint and its lock
            tune(decoder, bleu, START, TuningCheckpoint(tmp_path / "b", {"a": "1"}), OPTIONS, stop)
        except SystemExit as stopped:
            code = stopped.code
    assert (code, decoder.decoded) == (SAVED, OPTIONS.iterations)
    decoder = ToyDecoder()
    resumed = run(tmp_path / "b", decoder=decoder)
    assert (resumed.bleu, resumed.weights.tolist()) == (expected.bleu, expected.weights.tolist())
    assert decoder.decoded == 1


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


def test_content_hash_sees_through_compression(tmp_path):
    import gzip

    (tmp_path / "a").write_bytes(b"text\n")
    with gzip.open(tmp_path / "a.gz", "wb") as out:
        out.write(b"text\n")
    assert content_hash(tmp_path / "a") == content_hash(tmp_path / "a.gz")
    assert content_hash(tmp_path / "a", tmp_path / "a") != content_hash(tmp_path / "a")
