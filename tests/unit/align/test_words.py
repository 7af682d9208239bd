"""The stage ``align words``: files in, files out, malformed input."""

import gzip

import pytest

from rnnsmt.align import directions
from rnnsmt.align.bitext import read_bitext
from rnnsmt.cli import main


def words(folder, source: bytes, target: bytes, *options: str) -> int:
    (folder / "s").write_bytes(source)
    (folder / "t").write_bytes(target)
    names = ["--source", str(folder / "s"), "--target", str(folder / "t")]
    outputs = ["--output-forward", str(folder / "forward.gz"), "--output-reverse", str(folder / "reverse.gz")]
    return main(["align", "words", *names, *outputs, *options])


def test_same_bytes_again_and_with_threads_and_without_the_end_of_the_last_line(tmp_path):
    source, target = b"a b\nb\n\na\nb a" * 9, b"x y\ny\nx\n\ny x" * 9
    written = []
    for options in ([], ["--threads", "2"], ["--threads", "8"]):
        assert words(tmp_path, source, target, *options) == 0
        written.append([(tmp_path / name).read_bytes() for name in ("forward.gz", "reverse.gz")])
    assert written[0] == written[1] == written[2]
    lines = gzip.decompress(written[0][0]).decode().split("\n")
    assert len(lines) == source.count(b"\n") + 2
    assert lines[0] == "0-0 1-1"
    assert lines[2] == lines[3] == ""


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        (b"a\nb\n", b"x\n", "need the same number of lines"),
        (b"", b"", "is empty"),
        (b"\n\n", b"x\ny\n", "has words on both sides"),
        (b"a\n\n", b"\ny\n", "has words on both sides"),
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


def test_truncated_gzip(tmp_path, capsys):
    (tmp_path / "s.gz").write_bytes(gzip.compress(b"a b c\n" * 1000)[:-12])
    (tmp_path / "t").write_bytes(b"x y z\n" * 1000)
    names = ["--source", str(tmp_path / "s.gz"), "--target", str(tmp_path / "t")]
    outputs = ["--output-forward", str(tmp_path / "f"), "--output-reverse", str(tmp_path / "r")]
    assert main(["align", "words", *names, *outputs]) == 2
    assert "damaged after line" in capsys.readouterr().err


def test_unknown_aligner(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        words(tmp_path, b"a\n", b"x\n", "--aligner", "giza")
    assert stopped.value.code == 2
    assert "fast_align" in capsys.readouterr().err


def test_a_failing_direction_ends_the_other(tmp_path, monkeypatch):
    """The forward direction fails at once; the reverse one would go on for ever."""

    def train(given, generated, after_pass):
        if given.vocabulary == ["a"]:
            raise MemoryError
        while True:
            after_pass()

    monkeypatch.setitem(directions.TRAINERS, "fast_align", train)
    (tmp_path / "s").write_text("a\n")
    (tmp_path / "t").write_text("x\n")
    with pytest.raises(MemoryError):
        directions.align_both_directions(read_bitext(tmp_path / "s", tmp_path / "t"), "fast_align", 2)
