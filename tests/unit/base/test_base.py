"""Files, command line and progress messages, which all stages use."""

import bz2
import gzip
import lzma
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnsmt.base.errors import InputError
from rnnsmt.base.progress import Meter, track
from rnnsmt.base.reading import (
    check_tokenised,
    count_lines,
    read_json,
    read_line_blocks,
    read_lines,
    read_parallel,
)
from rnnsmt.base.resuming import CheckpointDirectory
from rnnsmt.base.writing import _temporary_prefix, scratch_directory, write_lines
from rnnsmt.cli import main
from rnnsmt.stages import PACKAGES, operations

LINES = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=("Cs",))), max_size=20)


@settings(deadline=None)
@given(lines=LINES, suffix=st.sampled_from(["", ".gz", ".bz2", ".xz"]))
def test_lines_survive_a_round_trip(tmp_path_factory, lines, suffix):
    path = tmp_path_factory.mktemp("io") / f"text{suffix}"
    assert write_lines(path, lines) == len(lines)
    assert list(read_lines(path)) == lines
    assert count_lines(path) == len(lines)


def test_the_same_content_gives_the_same_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_lines(tmp_path / name, ["x"] * 100)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "out.gz"
    write_lines(path, ["old"])

    def lines():
        yield "new"
        raise ValueError

    with pytest.raises(ValueError):
        write_lines(path, lines())
    assert list(read_lines(path)) == ["old"]
    assert [p.name for p in tmp_path.iterdir()] == ["out.gz"]


def test_temporary_files_of_a_killed_process_are_removed(tmp_path):
    code = f"""
import os, signal
from rnnsmt.base.errors import InputError
from rnnsmt.base.reading import count_lines, read_json, read_line_blocks, read_lines, read_parallel
from rnnsmt.base.writing import _temporary_prefix, atomic_text, scratch_directory, write_lines
from rnnsmt.base.errors import InputError
with atomic_text({str(tmp_path / "out.gz")!r}) as out:
    out.write("half")
    out.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    write_lines(tmp_path / "other.gz", ["whole"])
    assert len(list(tmp_path.iterdir())) == 2
    write_lines(tmp_path / "out.gz", ["whole"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.gz", "out.gz"]


TEXT = b"some text\n" * 1000
PACKED = gzip.compress(TEXT, mtime=0)  # the time would be in the names of tests, which must be those of other processes


def spoilt(data, start, stop):
    """Return data with other bytes in a range."""
    return data[:start] + bytes(byte ^ 0xFF for byte in data[start:stop]) + data[stop:]


@pytest.mark.parametrize("read", [read_lines, read_line_blocks])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.gz", PACKED[:-20]),
        ("a.gz", spoilt(PACKED, 40, 41)),
        ("a.gz", PACKED + b"garbage"),
        ("a.gz", TEXT),
        ("a.bz2", bz2.compress(TEXT)[:-20]),
        ("a.xz", lzma.compress(TEXT)[:-20]),
        ("a.xz", TEXT),
        ("a", spoilt(lzma.compress(TEXT), 30, 40)),
        ("a", b"\x28\xb5\x2f\xfd\x04\x58" + TEXT),
    ],
)
def test_damaged_files(tmp_path, read, name, content):
    """A file that cannot be decompressed is named, with a remedy."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"/{name}: .*(create or download it again|decompress it first)"):
        list(read(tmp_path / name))


def test_several_gzip_members_are_one_file(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a\nb") + gzip.compress(b"c\nd\n"))
    assert list(read_lines(tmp_path / "a.gz")) == ["a", "bc", "d"]
    assert b"".join(read_line_blocks(tmp_path / "a.gz")) == b"a\nbc\nd\n"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", ["a", "a.txt", "a.gz", "a.xz"])
def test_compression_is_known_by_content(tmp_path, name, pack):
    path = tmp_path / name
    path.write_bytes(pack(b"some\ntext\n"))
    assert list(read_lines(path)) == ["some", "text"]
    assert list(read_line_blocks(path)) == [b"some\ntext\n"]


def test_an_empty_file_has_no_lines_whatever_it_is_called(tmp_path):
    for name in ("a", "a.gz", "a.bz2", "a.xz"):
        (tmp_path / name).touch()
        assert list(read_lines(tmp_path / name)) == []


def test_a_zip_archive_is_no_text(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.txt", "w") as archive:
        archive.writestr("inside.txt", "text\n")
    for read in (read_lines, read_line_blocks):
        with pytest.raises(InputError, match=r"a\.txt: is a zip archive; extract the text file"):
            list(read(tmp_path / "a.txt"))


def test_a_pipe_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"PK\nb\n",))
    writer.start()
    assert list(read_lines(tmp_path / "pipe")) == ["PK", "b"]
    writer.join()


def test_bad_text_is_named_by_line(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"good\nbad \xff\n")
    with pytest.raises(InputError, match="a, line 2: not UTF-8 at byte 4"):
        list(read_lines(path))


@pytest.mark.parametrize(
    ("block", "line", "what"),
    [
        (b"a b\r\nc\r\n", 6, "U+000D; clean the text"),
        (b"a b\nc\td\n", 7, "U+0009"),
        (b"a b\nc \xc2\x85 d\n", 7, "U+0085"),
        (b"a b\nc ||| d\n", 7, "contains |||"),
        (b"a b\nc \xff d\n", 7, "not UTF-8 at byte 2"),
    ],
)
def test_text_that_is_not_tokenised_is_named_by_line(block, line, what):
    """The line is that of the file: five lines precede the block."""
    check_tokenised(b"a b\n", "a", 5)
    with pytest.raises(InputError, match=rf"^a, line {line}: .*{re.escape(what)}"):
        check_tokenised(block, "a", 5)


def test_an_endless_line_stops_the_reading(tmp_path, monkeypatch):
    monkeypatch.setattr("rnnsmt.base.reading.MAX_LINE_BYTES", 1000)
    path = tmp_path / "a"
    path.write_bytes(b"x\n" + b"y" * 5000)
    with pytest.raises(InputError, match="line 2: longer than 1000 bytes"):
        list(read_lines(path))


def test_missing_files_and_directories(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        list(read_lines(tmp_path / "a.gz"))
    with pytest.raises(InputError, match="is a directory"):
        list(read_lines(tmp_path))


def test_unequal_line_counts(tmp_path):
    write_lines(tmp_path / "a", ["1", "2"])
    write_lines(tmp_path / "b", ["1", "2", "3"])
    with pytest.raises(InputError, match=r"a ends after line 2, but .*b has more lines"):
        list(read_parallel(tmp_path / "a", tmp_path / "b"))


def test_json_errors_name_the_file(tmp_path):
    (tmp_path / "a.json").write_text('{"x": ')
    with pytest.raises(InputError, match=r"a\.json, line 1: not valid JSON"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("words", [[c, s] for c in PACKAGES for s in operations(c)], ids=" ".join)
def test_every_stage_has_help_and_refuses_no_options(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--help"])
    assert stopped.value.code == 0
    if words[1] in ("status", "run", "settings"):  # all have defaults
        assert main(words) == (0 if words[1] == "settings" else 2)
        return
    try:
        status = main(words)
    except SystemExit as refused:
        status = refused.code
    assert status == 2
    assert "required" in capsys.readouterr().err


def test_help_without_a_stage(capsys):
    assert main([]) == 2
    assert main(["corpus"]) == 2
    assert "prepare" in capsys.readouterr().out


def test_invalid_input_is_reported_with_code_2(tmp_path, capsys):
    assert main(["corpus", "join", "--input", str(tmp_path / "none"), "--output", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("rnnsmt corpus join: error: ")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_join_refuses_to_write_nothing(tmp_path):
    (tmp_path / "empty").touch()
    assert main(["corpus", "join", "--input", str(tmp_path / "empty"), "--output", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_the_last_line_gives_the_figures(tmp_path, capsys):
    write_lines(tmp_path / "a", ["x"] * 1234)
    assert main(["corpus", "join", "--input", str(tmp_path / "a"), "--output", str(tmp_path / "out")]) == 0
    assert "rnnsmt corpus join: done: files 1, lines 1,234, " in capsys.readouterr().err


def test_a_full_disk_is_reported(capsys, tmp_path):
    write_lines(tmp_path / "a", ["x" * 10000] * 100)
    assert main(["corpus", "join", "--input", str(tmp_path / "a"), "--output", "/dev/full/out"]) == 2
    assert "error" in capsys.readouterr().err


def test_progress_in_a_log(capsys, monkeypatch):
    monkeypatch.setattr("rnnsmt.base.progress.LOG_SECONDS", 0.0)
    assert list(track([1, 2], "reading")) == [1, 2]
    assert "reading: 1 of 2 lines (50 %), about 0 s left" in capsys.readouterr().err
    meter = Meter("counting", unit="pairs")
    meter.add(5)
    assert "counting: 5 pairs, " in capsys.readouterr().err


def test_temporary_files_of_a_running_process_are_kept(tmp_path):
    other = tmp_path / f"{_temporary_prefix()}{os.getppid()}-out"
    other.write_text("half")
    write_lines(tmp_path / "out", ["whole"])
    assert other.exists()


def test_two_processes_have_their_own_scratch_directories(tmp_path):
    """Each process has its own scratch directory; the directory of a killed process is removed by the next one."""
    code = f"""
import sys
from rnnsmt.base.writing import scratch_directory
with scratch_directory({str(tmp_path / "new" / "out")!r}) as directory:
    (directory / "spool").write_text("first")
    print(directory, flush=True)
    sys.stdin.readline()
    assert (directory / "spool").read_text() == "first"
    print("undisturbed", flush=True)
    sys.stdin.readline()
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin
    assert child.stdout
    try:
        theirs = Path(child.stdout.readline().strip())
        for _ in range(2):
            with scratch_directory(tmp_path / "new" / "out") as ours:
                assert ours != theirs
                assert not list(ours.iterdir())
                (ours / "spool").write_text("second")
            assert not ours.exists()
            assert (theirs / "spool").read_text() == "first"
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "undisturbed\n"
    finally:
        child.kill()
        child.wait()
    assert theirs.exists()
    with scratch_directory(tmp_path / "new" / "out"):
        assert not theirs.exists()
    assert not list((tmp_path / "new").iterdir())


def test_scratch_directories_on_a_local_disk(tmp_path, monkeypatch):
    """RNNSMT_SCRATCH names the directory of scratch files; outputs of the same name get different directories in it."""
    (tmp_path / "local").mkdir()
    monkeypatch.setenv("DISK", str(tmp_path / "local"))
    monkeypatch.setenv("RNNSMT_SCRATCH", "$DISK")
    with scratch_directory(tmp_path / "a" / "out") as first, scratch_directory(tmp_path / "b" / "out") as second:
        assert {first.parent, second.parent} == {tmp_path / "local"}
        assert first != second
    assert not list((tmp_path / "local").iterdir())
    assert not (tmp_path / "a").exists()
    monkeypatch.setenv("RNNSMT_SCRATCH", "$DISK/none")
    with pytest.raises(InputError, match="local/none is not a directory"), scratch_directory(tmp_path / "out"):
        pass


def test_checkpoints_in_a_place_that_survives_the_job(tmp_path, monkeypatch):
    """A job in another directory finds the checkpoint of a job with the same relative path."""
    monkeypatch.setenv("DISK", str(tmp_path / "kept"))
    monkeypatch.setenv("RNNSMT_CHECKPOINTS", "$DISK")
    with pytest.raises(InputError, match="kept is not a directory"):
        CheckpointDirectory("results/checkpoint", {})
    for place in ("kept", "first", "second"):
        (tmp_path / place).mkdir()
    monkeypatch.chdir(tmp_path / "first")
    first = CheckpointDirectory("results/checkpoint", {})
    first.lock()
    first.finish()
    monkeypatch.chdir(tmp_path / "second")
    assert CheckpointDirectory.is_finished("results/checkpoint")
    for elsewhere in ("../checkpoint", tmp_path / "checkpoint"):
        assert CheckpointDirectory(elsewhere, {}).path == tmp_path / "kept" / str(tmp_path / "checkpoint").lstrip("/")
    assert not list((tmp_path / "first").iterdir())


def test_no_scratch_directory_below_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file, not a directory"), scratch_directory(tmp_path / "file" / "out"):
        pass


# checkpoint directories


def test_only_finished_checkpoints_are_replaced(tmp_path, capsys):
    """With changed settings, an interrupted job is refused and a finished job starts again."""
    (tmp_path / "checkpoint.json").write_text("{}")
    before = CheckpointDirectory(tmp_path, {"epochs": 3, "text": "a" * 64})
    changed = CheckpointDirectory(tmp_path, {"epochs": 4, "text": "b" * 64})
    changed.clear_finished("checkpoint.json")
    with pytest.raises(InputError, match=r"changed: epochs \(was 3, is 4\), text; .* or remove .* to start over"):
        changed.check(before.fingerprint)
    before.finish()
    before.clear_finished("checkpoint.json")
    assert (tmp_path / "checkpoint.json").exists()
    changed.clear_finished("checkpoint.json")
    assert not list(tmp_path.iterdir())
    assert "in this directory had different settings; starting again; changed: epochs" in capsys.readouterr().err


def test_temporary_files_in_a_checkpoint_directory_are_removed(tmp_path):
    """Temporary files in a checkpoint directory are removed, even those of a process on another node."""
    (tmp_path / ".tmp-another-node-17-passes.npz").write_text("half")
    (tmp_path / "passes.npz").write_text("whole")
    CheckpointDirectory(tmp_path, {}).lock()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "passes.npz"]


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to ...")],
)
def test_too_little_memory_is_reported(tmp_path, capsys, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr("rnnsmt.corpus.raw_text.all_lines", fail)
    assert main(["corpus", "join", "--input", "in", "--output", str(tmp_path / "out")]) == 2
    assert "join: error: out of memory; use a machine with more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "extra"), [("torch", "networks"), ("matplotlib.figure", "figures"), ("nothere", "")]
)
def test_a_missing_module_is_reported(tmp_path, capsys, monkeypatch, module, extra):
    """A missing optional module is reported with the extra to install; any other missing module raises an exception."""

    def fail(*_):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr("rnnsmt.corpus.raw_text.all_lines", fail)
    command = ["corpus", "join", "--input", "in", "--output", str(tmp_path / "out")]
    if not extra:
        with pytest.raises(ModuleNotFoundError):
            main(command)
        return
    assert main(command) == 2
    assert f"is not installed; install rnnsmt with the extra `{extra}`" in capsys.readouterr().err


def stage(*words: object, **streams: object) -> "subprocess.Popen[str]":
    """Start a stage in a process with the default action of SIGINT, which background jobs of a shell ignore."""
    hear = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    command = [sys.executable, "-m", "rnnsmt", *map(str, words)]
    return subprocess.Popen(command, text=True, preexec_fn=hear, **streams)  # type: ignore[call-overload]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_nothing(tmp_path, number, code):
    os.mkfifo(tmp_path / "in")
    (tmp_path / "out").write_text("old")
    process = stage("corpus", "join", "--input", tmp_path / "in", "--output", tmp_path / "out", stderr=subprocess.PIPE)
    with (tmp_path / "in").open("w") as text:
        text.write("a line\n")
        text.flush()
        while len(list(tmp_path.iterdir())) < 3:
            time.sleep(0.01)
        time.sleep(0.2)  # until it waits for the next line
        process.send_signal(number)
        error = process.communicate(timeout=20)[1]
    assert process.returncode == code
    assert error == ("rnnsmt corpus join: interrupted\n" if number == signal.SIGINT else "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
    assert (tmp_path / "out").read_text() == "old"


def test_a_signal_inside_a_destructor_is_not_lost():
    code = """
import os, signal, sys, time
from rnnsmt.base.resuming import catch_signals, signal_again
catch_signals()
sys.unraisablehook = signal_again
class Unlucky:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
Unlucky()
time.sleep(20)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (143, "")


def test_a_signal_inside_a_constructor_ends_the_process_without_a_traceback():
    """The destructor of the incomplete object misses an attribute, as with llvmlite's strings during compilation."""
    code = """
import signal, sys
from rnnsmt.base.resuming import catch_signals, signal_again
catch_signals()
sys.unraisablehook = signal_again
class Incomplete:
    def __init__(self):
        signal.raise_signal(signal.SIGTERM)
        self.owned = True
    def __del__(self):
        self.owned
Incomplete()
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (143, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_code_generation_ends_the_process_without_a_traceback(tmp_path, number):
    """LLVM calls numba when it has generated code; Python discards an exception there, and numba raises another one."""
    code = f"""
import signal
from numba.core.codegen import JITCodeLibrary
from rnnsmt.cli import entry
def compiled(library, module, code):
    if module.name == "hash_bytes":
        signal.raise_signal({int(number)})
JITCodeLibrary._object_compiled_hook = classmethod(compiled)
entry()
"""
    (tmp_path / "text").write_text("a b\n")
    words = ["lm", "estimate", "--input", str(tmp_path / "text"), "--output", str(tmp_path / "lm")]
    command, new = [sys.executable, "-c", code, *words], os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    # child processes inherit that SIGINT is ignored if the tests run in the background
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=new, preexec_fn=heard)
    assert done.returncode == 128 + number
    assert done.stderr == ("rnnsmt lm estimate: interrupted\n" if number == signal.SIGINT else "")


def test_output_to_a_closed_pipe():
    reading, writing = os.pipe()
    os.close(reading)
    for words in (["project", "settings"], ["--help"]):
        process = stage(*words, stdout=writing, stderr=subprocess.PIPE)
        assert process.communicate()[1] == ""
        assert process.returncode in (0, 141)  # argparse ignores the closed pipe
    os.close(writing)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_terminal_is_reported(monkeypatch, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with Path("/dev/full").open("w") as full:
        process = stage("project", "settings", stdout=full, stderr=subprocess.PIPE)
        error = process.communicate()[1]
    assert process.returncode == 2
    assert error.startswith("rnnsmt project settings: error: a file cannot be written (No space left on device); ")
    assert error.count("\n") == 1
