"""The stages ``lm estimate`` and ``networks perplexity`` on the command line, with valid and invalid input."""

import gzip
import json
import math
import os
from pathlib import Path

import pytest

import rnnsmt
from rnnsmt.base.errors import InputError
from rnnsmt.cli import main
from rnnsmt.lm.text import LmVocabulary, frequent_words, read_blocks

TEXT = "the cat sat on the mat\nthe dog sat\n\na cat\n"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text(TEXT, "utf-8")
    return path


def estimate(source: Path, *options: str) -> int:
    """Estimate a model of a text, and of those of further options ``--input``."""
    output = source.parent / "out" / "lm.arpa"
    estimator = () if "--estimator" in options else ("--estimator", "builtin")
    return main(["lm", "estimate", "--input", str(source), "--output", str(output), *estimator, *options])


def refused(capsys: pytest.CaptureFixture[str], *parts: str) -> None:
    """Check that exactly one error line was printed, with these parts."""
    lines = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert len(lines) == 1
    for part in parts:
        assert part in lines[0]


def left_behind(directory: Path) -> list[str]:
    return [path.name for path in directory.rglob("*") if path.is_file()]


def test_every_compression_gives_the_same_model(text: Path) -> None:
    assert estimate(text) == 0
    plain = (text.parent / "out" / "lm.arpa").read_bytes()
    packed = text.with_name("packed.gz")
    packed.write_bytes(gzip.compress(TEXT.encode()))
    assert estimate(packed) == 0
    assert (text.parent / "out" / "lm.arpa").read_bytes() == plain
    output = text.parent / "lm.arpa.gz"
    assert main(["lm", "estimate", "--input", str(text), "--output", str(output), "--estimator", "builtin"]) == 0
    assert gzip.decompress(output.read_bytes()) == plain


def test_several_inputs_are_one_text(text: Path) -> None:
    assert estimate(text) == 0
    whole = (text.parent / "out" / "lm.arpa").read_bytes()
    first, second = text.with_name("first"), text.with_name("second")
    first.write_text("the cat sat on the mat", "utf-8")  # the last line has no newline and is read all the same
    second.write_text("the dog sat\r\n\na\tcat \n", "utf-8")
    assert estimate(first, "--input", str(second)) == 0
    assert (text.parent / "out" / "lm.arpa").read_bytes() == whole


@pytest.mark.parametrize("content", ["word\n", "word word word\n" * 50, "a\n\n\n\n", "\u00a0 \u2028\n", "é"])
def test_tiny_text_gets_a_model_and_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    source = tmp_path / "text"
    source.write_bytes(content.encode())
    assert estimate(source) == 0
    errors = capsys.readouterr().err
    assert "5-grams with count" in errors
    assert "fallback discounts 0.5, 1 and 1.5" in errors
    output = tmp_path / "perplexity.json"
    arpa = str(tmp_path / "out" / "lm.arpa")
    assert main(["networks", "perplexity", "--model", arpa, "--input", str(source), "--output", str(output)]) == 0
    assert json.loads(output.read_text())["oov"] == 0


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("empty", b"", ["no words"]),
        ("blank", b"\n \n\t\n", ["no words"]),
        ("latin1", b"good\ncaf\xe9 noir\n", ["line 2", "not UTF-8", "byte 3"]),
        ("reserved", b"fine\nthe <s> tag\n", ["line 2", "<s>"]),
        ("reserved", b"the </s> tag\n", ["line 1", "</s>"]),
        ("reserved", b"x\n\nan <unk>", ["line 3", "<unk>"]),
        ("cut.gz", gzip.compress(os.urandom(99999))[:50000], ["cut.gz", "damaged"]),
        ("no.gz", b"not compressed\n", ["no.gz", "damaged"]),
        ("no.xz", b"not compressed\n", ["no.xz", "damaged"]),
        ("no.bz2", b"not compressed\n", ["no.bz2", "damaged"]),
        ("endless", b"x " * (1 << 24), ["line 1", "longer than"]),
    ],
)
def test_bad_text_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, parts: list[str]
) -> None:
    source = tmp_path / name
    source.write_bytes(content)
    assert estimate(source) == 2
    refused(capsys, name, *parts)
    assert left_behind(tmp_path) == [name]


def test_missing_file_and_directory_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert estimate(tmp_path / "nothing") == 2
    refused(capsys, "nothing", "no such file")
    assert estimate(tmp_path) == 2
    refused(capsys, "is a directory")


@pytest.mark.parametrize("option", [("--order", "0"), ("--order", "11"), ("--order", "x"), ("--memory-mb", "0")])
def test_bad_options_are_refused(text: Path, option: tuple[str, str]) -> None:
    with pytest.raises(SystemExit) as stop:
        estimate(text, *option)
    assert stop.value.code == 2


def fake_lmplz(directory: Path, script: str) -> None:
    directory.mkdir()
    program = directory / "lmplz"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)


def run_auto(text: Path) -> int:
    return main(["lm", "estimate", "--input", str(text), "--output", str(text.parent / "lm.gz"), "--order", "3"])


def test_lmplz_on_path_is_used(text: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_lmplz(tmp_path / "bin", 'for last; do :; done; (echo "$@" | cut -c1-5; cat) > "$last"\n')
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    assert run_auto(text) == 0
    assert gzip.decompress((tmp_path / "lm.gz").read_bytes()).decode() == "-o 3 \n" + TEXT
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin", "lm.gz", "text"]


@pytest.mark.parametrize(
    "script", ["cat > /dev/null; echo out of cheese >&2; exit 3\n", "echo out of cheese >&2; exit 3\n"]
)
def test_failing_lmplz_is_reported(
    text: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], script: str
) -> None:
    fake_lmplz(tmp_path / "bin", script)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    assert run_auto(text) == 2
    refused(capsys, "lmplz", "status 3", "out of cheese")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin", "text"]


def test_lmplz_gets_no_half_text(
    text: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_lmplz(tmp_path / "bin", "cat > /dev/null\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    text.with_name("cut.gz").write_bytes(gzip.compress(os.urandom(99999))[:50000])
    assert run_auto(text.with_name("cut.gz")) == 2
    refused(capsys, "cut.gz", "damaged")
    assert not (tmp_path / "lm.gz").exists()


def test_missing_lmplz_is_reported(
    text: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(text.parent))
    assert estimate(text, "--estimator", "lmplz") == 2
    refused(capsys, "no lmplz on PATH")


BIGRAMS = """\\data\\
ngram 1=4
ngram 2=1

\\1-grams:
-2\t<unk>\t0
0\t<s>\t0
-0.5\t</s>\t0
-1\tword\t-0.125

\\2-grams:
-0.25\t<s> </s>

\\end\\
"""


def test_perplexity_by_hand(tmp_path: Path) -> None:
    arpa = tmp_path / "lm.arpa"
    arpa.write_text(BIGRAMS, "utf-8")
    source, output = tmp_path / "text", tmp_path / "perplexity.json"
    source.write_text("word other word\n\n", "utf-8")
    assert main(["networks", "perplexity", "--model", str(arpa), "--input", str(source), "--output", str(output)]) == 0
    found = json.loads(output.read_text())
    # word -1; other -0.125 -2; word -1; </s> -0.125 -0.5; and of the empty line </s> -0.25
    assert (found["sentences"], found["words"], found["oov"]) == (2, 3, 1)
    assert found["perplexity"] == pytest.approx(10 ** (5 / 5))
    assert found["perplexity_without_oov"] == pytest.approx(10 ** (2.875 / 4))
    assert math.isclose(found["oov_rate"], 1 / 3)


@pytest.mark.parametrize(
    ("lm", "text_", "parts"),
    [
        (None, b"word\n", ["lm.arpa", "no such file"]),
        (b"", b"word\n", ["lm.arpa", "expected"]),
        (b"this is text\n", b"word\n", ["lm.arpa, line 1", "expected"]),
        (
            b"\\data\\\nngram 1=4\n\n\\1-grams:\n-2\t<unk>\n",
            b"word\n",
            ["lm.arpa", "cannot load"],
        ),
        (b"good", b"", ["text", "no lines"]),
        (b"good", b"ok\n\xff\n", ["text", "line 2", "not UTF-8"]),
        (b"good", None, ["text", "no such file"]),
    ],
)
def test_perplexity_refuses_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lm: bytes | None, text_: bytes | None, parts: list[str]
) -> None:
    if lm == b"good":
        lm = BIGRAMS.encode()
    for name, content in (("lm.arpa", lm), ("text", text_)):
        if content is not None:
            (tmp_path / name).write_bytes(content)
    words = ["--model", str(tmp_path / "lm.arpa"), "--input", str(tmp_path / "text")]
    assert main(["networks", "perplexity", *words, "--output", str(tmp_path / "out.json")]) == 2
    refused(capsys, *parts)
    assert not (tmp_path / "out.json").exists()


def test_both_doors_write_the_same_bytes(text: Path, tmp_path: Path) -> None:
    """The command, and the function with a file, with files and with sentences, write the same model and figures."""
    assert estimate(text, "--order", "3", "--prune", "0", "1") == 0
    expected = (tmp_path / "out" / "lm.arpa").read_bytes()
    for input_ in (text, str(text), [text], TEXT.splitlines(), iter(TEXT.splitlines())):
        model = rnnsmt.lm.estimate(input_, tmp_path / "lm.arpa", order=3, prune=[0, 1], estimator="builtin")
        assert model.path.read_bytes() == expected
        assert model.figures["lines"] == 4

    output = tmp_path / "perplexity.json"
    words = ["--model", str(model.path), "--input", str(text), "--output", str(output)]
    assert main(["networks", "perplexity", *words]) == 0
    found = rnnsmt.networks.perplexity(model.path, TEXT.splitlines(), tmp_path / "of-python.json")
    assert (tmp_path / "of-python.json").read_bytes() == output.read_bytes()
    assert {"lm_order": 3, **found.as_dict()} == json.loads(output.read_text())
    assert rnnsmt.networks.perplexity(model.path, text) == found


def test_messages_in_python_name_the_arguments(tmp_path: Path) -> None:
    arpa = tmp_path / "lm.arpa"
    for arguments, message in (
        ({"order": 11}, r"^order 11: must be at most 10"),
        ({"prune": [0, 1, 0]}, r"^prune 0 1 0: thresholds must not decrease"),
        ({"estimator": "srilm"}, r"^estimator 'srilm': must be auto, lmplz or builtin"),
        ({"input": ["fine", "the <s> tag"]}, r"^input, line 2: the word <s>"),
        ({"input": []}, r"^input: contains no words"),
    ):
        with pytest.raises(InputError, match=message):
            rnnsmt.lm.estimate(**{"input": ["a b"], "output": arpa, "estimator": "builtin", **arguments})
    assert not arpa.exists()


def test_blocks_are_whole_lines_whatever_their_size(text: Path) -> None:
    for size in range(1, 40):
        blocks = list(read_blocks(text, size))
        assert b"".join(block for block, _ in blocks).decode() == TEXT
        assert all(block.endswith(b"\n") for block, _ in blocks)
        before = 0
        for block, lines in blocks:
            assert lines == before
            before += block.count(b"\n")


def test_vocabulary_grows_and_keeps_its_numbers(tmp_path: Path) -> None:
    words = [f"wörd{i}" for i in range(30000)]
    path = tmp_path / "text"
    path.write_text("".join(f"{word} {words[0]}\n" for word in words), "utf-8")
    vocabulary = LmVocabulary()
    numbers = [n for block, lines in read_blocks(path, 1000) for n in vocabulary.number(memory(block), path, lines)]
    assert vocabulary.words() == ["<unk>", "<s>", "</s>", *words]
    assert numbers[:8] == [1, 3, 3, 2, 1, 4, 3, 2]
    assert numbers[-4:] == [1, 30002, 3, 2]
    assert frequent_words([path], 2) == [words[0]]
    closed = LmVocabulary(words[:2])
    assert closed.number(memory(b"a w\xc3\xb6rd1 b\n"), path, 0).tolist() == [1, 0, 4, 0, 2]


def memory(block: bytes):  # type: ignore[no-untyped-def]
    import numpy as np

    return np.frombuffer(block, np.uint8)


def test_reserved_words_are_refused_in_closed_vocabularies_too() -> None:
    with pytest.raises(InputError, match="line 12"):
        LmVocabulary(["a"]).number(memory(b"a\n<s> b\n"), "text", 10)
