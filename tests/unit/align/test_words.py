"""The stage ``align words``: input and output files, interrupted jobs, malformed input."""

import gzip
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import rnnsmt
from rnnsmt.align import bitext, training
from rnnsmt.align import direction as direction_module
from rnnsmt.align.direction import Aligner
from rnnsmt.base.errors import InputError
from rnnsmt.base.resuming import CheckpointDirectory, Stop
from rnnsmt.cli import main
from rnnsmt.registries import ALIGNERS


def options(directory, *more: str) -> list[str]:
    names = ["--source", str(directory / "s"), "--target", str(directory / "t"), "--output", str(directory / "out.gz")]
    return ["align", "words", *names, *([] if "--direction" in more else ["--direction", "forward"]), *more]


def words(directory, source: bytes, target: bytes, *more: str) -> int:
    (directory / "s").write_bytes(source)
    (directory / "t").write_bytes(target)
    return main(options(directory, *more))


def test_same_bytes_again_and_with_threads_and_without_the_end_of_the_last_line(tmp_path):
    source, target = b"a b\nb\n\na\nb a" * 9, b"x y\ny\nx\n\ny x" * 9
    for direction in ("forward", "reverse"):
        written = []
        for more in ([], ["--threads", "2"], ["--threads", "8"]):
            assert words(tmp_path, source, target, "--direction", direction, *more) == 0
            written.append((tmp_path / "out.gz").read_bytes())
        assert written[0] == written[1] == written[2]
        lines = gzip.decompress(written[0]).decode().split("\n")
        assert len(lines) == source.count(b"\n") + 2
        assert lines[0] == "0-0 1-1"
        assert lines[2] == lines[3] == ""


def text(sentences: int) -> tuple[bytes, bytes]:
    """Return a source text with a vocabulary of 40 words, and its translation in reverse order."""
    draw = random.Random(1)
    lines = [[draw.randint(1, 40) for _ in range(draw.randint(1, 12))] for _ in range(sentences)]
    source = "".join(" ".join(f"e{word}" for word in line) + "\n" for line in lines)
    target = "".join(" ".join(f"f{word}" for word in line[::-1]) + "\n" for line in lines)
    return source.encode(), target.encode()


@pytest.mark.parametrize("aligner", ALIGNERS)
@pytest.mark.parametrize(("way", "more"), [("forward", []), ("reverse", ["--max-pairs", "700"])])
def test_several_threads_share_several_blocks(tmp_path, monkeypatch, aligner, way, more):
    """The links of ten blocks do not depend on the threads; some sentences are too long for the HMM and Model 4."""
    monkeypatch.setattr(direction_module, "_LEAST_BLOCK", 6)
    draw = random.Random(1)
    lines = [[draw.randint(1, 30) + k // 2 for _ in range(draw.randint(0, 9))] for k in range(60)]
    lines[11], lines[50] = lines[11] * 30 + [7] * 210, [9, 8] * 120
    sides = [
        "".join(" ".join(f"{letter}{k}" for k in line[::step]) + "\n" for line in lines).encode()
        for letter, step in (("e", 1), ("f", -1))
    ]
    written = []
    for threads in ("1", "3"):
        assert words(tmp_path, *sides, "--aligner", aligner, "--direction", way, "--threads", threads, *more) == 0
        written.append((tmp_path / "out.gz").read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize("aligner", ALIGNERS)
def test_interrupted_in_any_iteration_and_resumed(tmp_path, monkeypatch, aligner):
    assert words(tmp_path, *text(300), "--aligner", aligner) == 0
    right = (tmp_path / "out.gz").read_bytes()
    (tmp_path / "out.gz").unlink()
    state = ["--aligner", aligner, "--checkpoint-dir", str(tmp_path / "checkpoint"), "--save-every", "0"]
    begin, iterate, iterations = ALIGNERS[aligner]
    savez = np.savez

    def savez_of_numpy_2_0(file, **arrays):  # it takes every keyword for the name of an array
        assert all(isinstance(array, np.ndarray) for array in arrays.values())
        savez(file, **arrays)

    def one_iteration(*arguments):
        yield next(iterate(*arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", savez_of_numpy_2_0)
    monkeypatch.setitem(ALIGNERS._loaded, aligner, Aligner(begin, one_iteration, iterations))
    for number in range(1, iterations):  # every process completes one iteration and is killed in the next one
        assert main(options(tmp_path, *state)) == 130
        with np.load(tmp_path / "checkpoint/parameters.npz") as saved:
            assert saved["done"] == number
        assert not (tmp_path / "out.gz").exists()
    assert main(options(tmp_path, *state)) == 0
    assert (tmp_path / "out.gz").read_bytes() == right
    assert not (tmp_path / "checkpoint/parameters.npz").exists()


@pytest.mark.parametrize("aligner", ALIGNERS)
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_one_sentence_pair_and_pairs_with_an_empty_side(aligner, direction):
    assert rnnsmt.align.words(["a"], ["x"], aligner=aligner, direction=direction) in ([[(0, 0)]], [[]])
    sides = [["a b c", "", "a", "b"], ["x y", "z", "", "y"]]
    links = rnnsmt.align.words(*sides, aligner=aligner, direction=direction)
    assert len(links) == 4
    assert links[1] == links[2] == []
    for pair, source, target in zip(links, *sides, strict=True):
        words = [i if direction == "reverse" else j for i, j in pair]
        assert len(set(words)) == len(words), "at most one link of every generated word"
        assert all(i < len(source.split()) and j < len(target.split()) for i, j in pair)


def test_the_documented_aligner_of_another_package(tmp_path, monkeypatch, other_package, documented):
    """Its version is in the fingerprint of the checkpoint; without it, checkpoints are those of version 1.0.0."""
    source, target = ["a b c d", "", "a"], ["x y", "x", "x y z"]
    with pytest.raises(
        InputError, match="aligner 'diagonal': must be fast_align, hmm, model4, or the name of an aligner"
    ):
        rnnsmt.align.words(source, target, aligner="diagonal", direction="forward")
    other_package(ALIGNERS, "diagonal", "ALIGNER", documented("An aligner"))
    forward = rnnsmt.align.words(source, target, aligner="diagonal", direction="forward")
    assert forward == [[(0, 0), (2, 1)], [], [(0, 0), (0, 1), (0, 2)]]
    reverse = rnnsmt.align.words(source, target, aligner="diagonal", direction="reverse")
    assert reverse == [[(0, 0), (1, 0), (2, 1), (3, 1)], [], [(0, 0)]]
    seen = []

    def kept(_self, path, fingerprint):
        seen.append(fingerprint)
        raise InputError("enough")

    monkeypatch.setattr(CheckpointDirectory, "__init__", kept)
    for aligner in ("diagonal", "model4"):
        with pytest.raises(InputError, match="enough"):
            rnnsmt.align.words(source, target, aligner=aligner, direction="forward", checkpoint_dir=tmp_path / "state")
    assert [fingerprint["--aligner"] for fingerprint in seen] == ["diagonal of other-diagonal 1.2", "model4"]


@pytest.mark.parametrize(
    ("best", "says"),
    [
        ("np.zeros(2, np.int16)", "best must be an array of shape (3,) and type int16"),
        ("np.zeros(3)", "best must be an array of shape (3,) and type int16"),
        ("np.array([0, 5, -2], np.int16)", "2 of 3 elements of best are not a position"),
    ],
)
def test_wrong_links_of_another_package(other_package, best, says):
    code = (
        "import numpy as np\nfrom rnnsmt.align.direction import Aligner\n"
        f"ALIGNER = Aligner(lambda direction: {{'best': {best}}}, lambda *_: iter([None]), 1)\n"
    )
    other_package(ALIGNERS, "wrong", "ALIGNER", code)
    with pytest.raises(InputError, match=re.escape(f"aligner wrong of other-wrong 1.2: {says}")):
        rnnsmt.align.words(["a b"], ["x y z"], aligner="wrong", direction="forward")


def test_the_log_has_a_line_for_every_iteration(tmp_path, capsys):
    assert words(tmp_path, *text(200), "--aligner", "fast_align") == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "aligning with fast_align, forward: iteration 1 of 5"
    assert re.fullmatch("aligning with fast_align, forward: iteration 5 of 5, about [0-9]+ s left", lines[4])
    assert len(lines) == 6


def test_killed_and_stopped(tmp_path):
    """Alignment resumes after SIGKILL; SIGTERM and the time limit end it with a checkpoint and exit code 75."""
    source, target = text(4000)
    assert words(tmp_path, source, target, "--threads", "2") == 0
    right = (tmp_path / "out.gz").read_bytes()
    (tmp_path / "out.gz").unlink()
    state = ["--checkpoint-dir", str(tmp_path / "checkpoint"), "--save-every", "0"]
    command = [sys.executable, "-m", "rnnsmt", *options(tmp_path, *state)]

    def until_saved(number: signal.Signals) -> int:
        before = (
            (tmp_path / "checkpoint/parameters.npz").stat().st_mtime_ns
            if (tmp_path / "checkpoint/parameters.npz").exists()
            else 0
        )
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            found = (tmp_path / "checkpoint/parameters.npz").exists()
            if found and (tmp_path / "checkpoint/parameters.npz").stat().st_mtime_ns != before:
                process.send_signal(number)
                break
            time.sleep(0.005)
        return process.wait()

    assert until_saved(signal.SIGKILL) == -signal.SIGKILL
    assert until_saved(signal.SIGTERM) == 75
    assert subprocess.run([*command, "--time-limit", "0.001"], stderr=subprocess.DEVNULL, check=False).returncode == 75
    assert not (tmp_path / "out.gz").exists()
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0
    assert "resuming after iteration" in done.stderr
    assert (tmp_path / "out.gz").read_bytes() == right


def test_checkpoint_of_another_job(tmp_path, capsys):
    state = ["--checkpoint-dir", str(tmp_path / "checkpoint"), "--save-every", "0", "--time-limit", "0.001"]
    assert words(tmp_path, *text(50)) == 0
    command = [sys.executable, "-m", "rnnsmt", *options(tmp_path, *state)]
    assert subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 75
    capsys.readouterr()
    assert words(tmp_path, *text(51), *state) == 2
    assert "saved with different settings; changed: source text, target text" in capsys.readouterr().err
    assert words(tmp_path, *text(50), "--aligner", "hmm", *state) == 2
    assert "--aligner (was model4, is hmm)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        (b"a\nb\n", b"x\n", "must have the same number of lines"),
        (b"", b"", "is empty"),
        (b"\n\n", b"x\ny\n", "words on both sides"),
        (b"a\n\n", b"\ny\n", "words on both sides"),
        (b"a \xff\n", b"x\n", "line 1: not UTF-8"),
        (b"a\n", b"x " * 10_001 + b"\n", "line 1: 10,001 words in one sentence"),
    ],
)
def test_malformed(tmp_path, capsys, source, target, says):
    assert words(tmp_path, source, target) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s", "t"]


def test_more_words_than_a_count_can_hold(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bitext, "MAX_WORDS", 3)
    assert words(tmp_path, b"a b\nc\n", b"x\ny\n") == 0
    assert words(tmp_path, b"a b\nc\n", b"x y\nx y\n") == 2
    assert "t: 4 words; the maximum is 3; align the corpus in several parts" in capsys.readouterr().err


def test_time_of_the_next_iteration(tmp_path, monkeypatch):
    """The estimated time of the next iteration excludes the time before the first one."""
    clock, asked = [0.0], []
    monkeypatch.setattr(training.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(Stop, "asked", lambda _, ahead: asked.append(ahead) or False)
    state = training.AlignmentCheckpoint(CheckpointDirectory(tmp_path / "checkpoint", {}), 1e9, Stop(None))
    clock[0] = 1000.0
    assert state.load() == (0, {})
    clock[0] = 1010.0
    state.after_iteration(1, {})
    assert asked == [10.0]


def test_a_time_limit_requires_a_checkpoint_directory(tmp_path, capsys):
    assert words(tmp_path, b"a\n", b"x\n", "--time-limit", "10") == 2
    assert "--time-limit requires --checkpoint-dir" in capsys.readouterr().err


def test_truncated_gzip(tmp_path, capsys):
    (tmp_path / "s").write_bytes(gzip.compress(b"a b c\n" * 1000)[:-12])
    (tmp_path / "t").write_bytes(b"x y z\n" * 1000)
    assert main(options(tmp_path)) == 2
    assert "damaged after line" in capsys.readouterr().err


def test_both_doors_give_the_same_links(tmp_path):
    """The command, and the function with files or lists, align equally; only the function does without an output."""
    source, target = text(60)
    assert words(tmp_path, source, target, "--aligner", "fast_align", "--direction", "reverse") == 0
    lines = gzip.decompress((tmp_path / "out.gz").read_bytes()).decode().splitlines()
    sides = [side.decode().splitlines() for side in (source, target)]
    links = rnnsmt.align.words(*sides, aligner="fast_align", direction="reverse")
    assert [" ".join(f"{i}-{j}" for i, j in sentence) for sentence in links] == lines
    written = rnnsmt.align.words(
        tmp_path / "s", tmp_path / "t", tmp_path / "py.gz", aligner="fast_align", direction="reverse",
        checkpoint_dir=tmp_path / "checkpoint",
    )  # fmt: skip
    assert (tmp_path / "py.gz").read_bytes() == (tmp_path / "out.gz").read_bytes()
    assert written == links
    assert written.figures == {"sentences": 60, "links": sum(map(len, links))}


def test_messages_in_python_name_the_arguments():
    for arguments, message in (
        ({"source": [], "target": []}, "^source is empty"),
        ({"source": ["a", "b"]}, "^target ends after line 1, but source has more lines"),
        ({"aligner": "giza"}, "^aligner 'giza': must be fast_align, hmm, model4, or the name of an aligner of another"),
        ({"time_limit": 9.0}, "^time_limit requires checkpoint_dir"),
    ):
        with pytest.raises(InputError, match=message):
            rnnsmt.align.words(**{"source": ["a"], "target": ["x"], "direction": "forward", **arguments})
