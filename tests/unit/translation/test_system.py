"""Tuned systems on tiny models: translation of raw text, explanations, archives."""

import gzip
import hashlib
import html
import io
import json
import multiprocessing
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from html import escape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import rnnsmt
from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import sha256
from rnnsmt.cli import main
from rnnsmt.registries import SEARCH_FEATURES
from rnnsmt.translation import archives
from rnnsmt.translation.archives import CACHE, system_directory
from rnnsmt.translation.description import Description
from rnnsmt.translation.lines import BLOCK, waiting_lines
from rnnsmt.translation.system import System

from ..other_package import install
from ..phrase_store import compute_column, make_pairs, scores_of, training_of
from ..search.twin import SOURCE, TARGET, tiny_model

RAW = ["A b c, d!", "", "c  c\tD b.", "&apos; a & b"]


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """Create the directory of a tuned system, with its model in another directory."""
    tiny_model(tmp_path / "model", 3, columns=5)
    (tmp_path / "true").write_text("a (9/9)\nb (9/9)\nc (9/9)\nd (9/9)\n")
    directory = tmp_path / "run1"
    directory.mkdir()
    from rnnsmt.formats.ini import MosesIni

    MosesIni.read(tmp_path / "model/moses.ini").write(directory / "moses.ini")
    assert main([*described(directory), "--truecaser", str(tmp_path / "true")]) == 0
    return directory


def described(*directories: Path) -> list[str]:
    """Return the command that describes systems."""
    words = ["translation", "describe", "--name", "tiny", "--source-lang", "en", "--target-lang", "fr"]
    return [*words, "--columns", "rnn", "--output-dir", *map(str, directories)]


def change(directory: Path, **changes: object) -> None:
    """Change values of the description."""
    content = json.loads((directory / "system.json").read_text())
    (directory / "system.json").write_text(json.dumps(content | changes))


def by_hand(directory: Path, texts: list[str]) -> list[str]:
    """Translate raw text with the stages, one after the other."""
    (directory / "raw").write_text("\n".join(texts) + "\n")
    files = {name: str(directory / name) for name in ("raw", "tok", "true", "out", "fr", "report")}
    prepare = ["corpus", "prepare", "--keep-all", "--source", files["raw"], "--output-source", files["tok"]]
    truecaser = str(directory.parent / "true")
    for command in (
        [*prepare, "--source-lang", "en", "--report", files["report"]],
        ["corpus", "truecase", "--model", truecaser, "--input", files["tok"], "--output", files["true"]],
        ["search", "decode", "--ini", f"{directory}/moses.ini", "--input", files["true"], "--output", files["out"]],
        ["corpus", "detokenize", "--lang", "fr", "--input", files["out"], "--output", files["fr"]],
    ):
        assert main(command) == 0
    return (directory / "fr").read_text().split("\n")[:-1]


def test_examples_of_the_page_are_segments_of_a_raw_text(system, tmp_path):
    """Examples have 5 to 15 words, differ and are evenly spaced in the text; lines that are not UTF-8 are skipped."""
    lines = [f"a sentence of the number {number} ." for number in range(40)]
    text = [lines[0].encode(), b"too short", *(line.encode() for line in lines), b"not utf-8 \xe9 at all here ."]
    (tmp_path / "dev.gz").write_bytes(gzip.compress(b"\n".join(text) + b"\n"))
    assert main([*described(system), "--examples", f"{tmp_path}/dev.gz"]) == 0
    assert rnnsmt.load(system).description.examples == [lines[0], lines[10], lines[20], lines[30]]


def test_as_the_stages_one_after_the_other(system):
    expected = by_hand(system, RAW)
    assert expected[1] == ""
    loaded = rnnsmt.load(system)
    assert loaded.translate_all(RAW) == expected
    assert [loaded.translate(text) for text in RAW] == expected
    assert System(system, RAW).translate_all(RAW) == expected
    assert loaded.translate("A b c\r\n\nc b\n") == "\n".join(loaded.translate_all(["A b c", "", "c b", ""]))


def test_the_command_takes_files_and_pipes(system, tmp_path, monkeypatch, capsysbinary):
    expected = by_hand(system, RAW)
    (tmp_path / "in").write_text("\n".join(RAW))  # no newline at the end
    words = ["translate", "--system", str(system)]
    assert main([*words, "--input", f"{tmp_path}/in", "--output", f"{tmp_path}/out"]) == 0
    assert (tmp_path / "out").read_text() == "".join(f"{line}\n" for line in expected)
    segments = "".join(f'<seg id="{n}">{escape(line)}</seg>\n' for n, line in enumerate(RAW, 1))
    (tmp_path / "in.sgm").write_text(f'<srcset setid="s">\n<doc docid="d">\n{segments}</doc>\n</srcset>\n')
    assert main([*words, "--input", f"{tmp_path}/in.sgm", "--output", f"{tmp_path}/of.sgm"]) == 0
    assert (tmp_path / "of.sgm").read_bytes() == (tmp_path / "out").read_bytes()
    pipe(monkeypatch, "\n".join(RAW).encode())
    capsysbinary.readouterr()
    assert main(words) == 0
    assert capsysbinary.readouterr().out.decode() == "".join(f"{line}\n" for line in expected)


def test_both_doors_give_the_same(system, tmp_path):
    """Functions and commands write equal bytes; from Python, texts are lists and lines are returned."""
    (tmp_path / "in").write_text("\n".join([*RAW, "a b c d a b"]) + "\n")
    loaded = rnnsmt.load(system)
    for options, words in (({}, []), ({"nbest": 2}, ["--nbest", "2"]), ({"explain": True}, ["--explain"])):
        files = ["--input", f"{tmp_path}/in", "--output", f"{tmp_path}/out"]
        assert main(["translate", "--system", str(system), *files, *words]) == 0
        lines = rnnsmt.translation.translate(system, [*RAW, "a b c d a b"], **options)
        assert "".join(f"{line}\n" for line in lines) == (tmp_path / "out").read_text()
        assert lines.figures["segments"] == 5
        assert rnnsmt.translation.translate(system, tmp_path / "in", tmp_path / "again", **options) == lines
        assert (tmp_path / "again").read_bytes() == (tmp_path / "out").read_bytes()
    assert rnnsmt.translation.translate(system, RAW) == loaded.translate_all(RAW)
    before = (system / "system.json").read_bytes()
    languages = {"source_lang": "en", "target_lang": "fr"}
    [path] = rnnsmt.translation.describe(
        system, name="tiny", **languages, columns=["rnn"], truecaser=tmp_path / "true", examples=None
    )
    assert (path, path.read_bytes()) == (system / "system.json", before)
    rnnsmt.translation.describe(system, name="tiny", **languages, examples=["one two three four five", "short"])
    assert rnnsmt.load(system).description.examples == ["one two three four five"]
    assert main(["pack", "--system", str(system), "--output", f"{tmp_path}/a.tar.gz"]) == 0
    packed = rnnsmt.translation.pack(system, tmp_path / "b/a.tar.gz")
    assert packed.path.read_bytes() == (tmp_path / "a.tar.gz").read_bytes()
    with pytest.raises(InputError, match=r"^explain and nbest cannot be combined"):
        rnnsmt.translation.translate(system, RAW, explain=True, nbest=2)
    with pytest.raises(InputError, match=r"^rnn: specify one network, or one for each output_dir, together with voca"):
        rnnsmt.translation.describe(system, name="tiny", **languages, rnn="x")


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Replace standard input by a pipe with this content."""
    reading, writing = os.pipe()
    threading.Thread(target=lambda: (os.write(writing, content), os.close(writing)), daemon=True).start()
    monkeypatch.setattr(sys, "stdin", os.fdopen(reading))


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_lines_of_a_pipe_are_answered_as_they_come(monkeypatch, end):
    pipe(monkeypatch, b"\n".join(f"{number}".encode() for number in range(9000)) + end)
    found = list(waiting_lines())
    assert [text for texts in found for text in texts] == [str(number) for number in range(9000)]
    assert max(sum(map(len, texts)) for texts in found) <= BLOCK
    pipe(monkeypatch, b"")
    assert list(waiting_lines()) == []
    pipe(monkeypatch, b"\n\na")
    assert [text for texts in waiting_lines() for text in texts] == ["", "", "a"]


@pytest.mark.parametrize(
    ("content", "said"), [(b"a\n\xff\n", "line 2: not UTF-8"), (b"a\n" + b"b" * 1_100_000, "line 2: longer than")]
)
def test_bad_lines_of_a_pipe(monkeypatch, content, said):
    pipe(monkeypatch, content)
    with pytest.raises(InputError, match=said):
        list(waiting_lines())


@pytest.mark.parametrize("how", ["interrupt", "bad input"])
def test_an_open_pipe_does_not_delay_the_end(system, how):
    """`rnnsmt translate` ends after Ctrl-C or an error, although its standard input is still open."""
    command = [sys.executable, "-m", "rnnsmt", "translate", "--system", str(system)]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    # SIGINT is ignored if the tests run in the background
    restore = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, **streams, preexec_fn=restore) as process:
        process.stdin.write(b"a b\n")
        process.stdin.flush()
        assert process.stdout.readline().strip()
        if how == "interrupt":
            process.send_signal(signal.SIGINT)
        else:
            process.stdin.write(b"a " * 4001 + b"\n")
            process.stdin.flush()
        assert process.wait(30) == (130 if how == "interrupt" else 2)
        said = process.stderr.read().decode()
    assert said.splitlines()[-1].startswith(
        "rnnsmt translate: " + ("interrupted" if how == "interrupt" else "error: segment 2")
    )


def test_a_document_in_html(system, tmp_path, capsys):
    """Tags stay, text between them is translated and escaped, in a file of any size, and in Python."""
    loaded = System(system)
    first, second = loaded.translate_all(["A b c", "c & <x>"])
    second = html.escape(second, quote=False)
    page = "<html>\r\n<p>A <b>b</b> c</p>\n<code>A b c</code>\n<p>c &amp; &lt;x&gt;</p>\n</html>\n"
    expected = f"<html>\r\n<p><b>{first}</b></p>\n<code>A b c</code>\n<p>{second}</p>\n</html>\n"
    (tmp_path / "in.html").write_bytes(page.encode())
    words = ["translate", "--system", str(system), "--format", "html", "--input", f"{tmp_path}/in.html"]
    assert main([*words, "--output", f"{tmp_path}/out.html"]) == 0
    assert (tmp_path / "out.html").read_bytes().decode() == expected
    lines = rnnsmt.translation.translate(system, page.splitlines(), format="html")
    assert lines == expected.splitlines()
    (tmp_path / "in.html").write_text("<p>&#" + "1" * 5000 + ";</p>")
    assert main(words) == 2
    assert "too many digits" in capsys.readouterr().err


def test_nbest(system, capsysbinary, tmp_path):
    loaded = System(system)
    found = loaded.nbest("A b c", 5)
    assert len({one.tokens for one in found}) == len(found) == 5
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    for one in found:
        assert sum(phrase.target_words for phrase in one.phrases) == len(one.tokens.split())
        assert {k for phrase in one.phrases for k in range(phrase.first, phrase.last + 1)} == {0, 1, 2}
        assert sum(one.contributions.values()) == pytest.approx(one.score)
        assert {"p(source|target)", "rnn", "LM"} < set(one.contributions)
    (tmp_path / "in").write_text("A b c\n\nc b\n")
    capsysbinary.readouterr()
    assert main(["translate", "--system", str(system), "--input", f"{tmp_path}/in", "--nbest", "2"]) == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert [line.split(" ||| ")[0] for line in lines] == ["0", "0", "2", "2"]
    assert lines[0] == f"0 ||| {found[0].text} ||| {found[0].score:.6f}"


def test_explanation(system, capsysbinary, tmp_path):
    loaded = System(system)
    best, phrases = loaded.explain("A b c, d!")
    assert best.text == loaded.translate("A b c, d!")
    assert sum(best.contributions.values()) == pytest.approx(best.score)
    assert sorted(place for use in phrases for place in range(use.first, use.last + 1)) == list(range(6))
    table = [line.split(" ||| ") for line in (system.parent / "model/phrase-table").read_text().splitlines()]
    for use in phrases:
        scores = {
            target: list(map(float, numbers.split())) for source, target, numbers, *_ in table if source == use.source
        }
        if scores:
            assert list(use.scores.values()) == pytest.approx(scores[use.target])
            assert set(use.runners_up) == set(scores) - {use.target}
        else:
            assert (use.target, use.scores, use.runners_up) == (use.source, {}, [])
    (tmp_path / "in").write_text("A b c, d!\n\n")
    assert main(["translate", "--system", str(system), "--input", f"{tmp_path}/in", "--explain"]) == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert lines[0] == best.text
    assert len(lines) == 1 + len(phrases) + 1 + 2
    assert any("(unknown word)" in line for line in lines)


def test_a_packed_system_is_the_same_elsewhere(system, tmp_path):
    archive = tmp_path / "elsewhere/tiny-en-fr.tar.gz"
    assert main(["pack", "--system", str(system), "--output", str(archive)]) == 0
    with tarfile.open(archive) as packed:
        for member in packed:
            assert member.isfile()
            assert (member.uname, member.uid, member.name.split("/")[0]) == ("", 0, "tiny-en-fr")
        packed.extractall(tmp_path / "elsewhere", filter="data")
    expected = System(system).translate_all(RAW)
    system.rename(tmp_path / "gone")
    (tmp_path / "model").rename(tmp_path / "gone/model")
    directory = tmp_path / "elsewhere/tiny-en-fr"
    assert System(directory).translate_all(RAW) == expected
    assert "/" not in "".join(
        part for part in (directory / "moses.ini").read_text().split() if part.startswith("path=")
    )
    once_more = tmp_path / "once_more/tiny-en-fr.tar.gz"
    assert main(["pack", "--system", str(directory), "--output", str(once_more)]) == 0
    (directory / "moses.ini").touch()
    assert main(["pack", "--system", str(directory), "--output", str(archive)]) == 0
    assert archive.read_bytes() == once_more.read_bytes()
    again = tmp_path / "again.tar"
    assert main(["pack", "--system", str(directory), "--output", str(again)]) == 0
    with tarfile.open(again) as packed:
        assert len(packed.getnames()) == len(list(directory.iterdir()))


def test_every_network_of_the_search_has_a_name_of_its_own_in_an_archive(system, tmp_path):
    """Networks, which are all called model.safetensors in a run, have different names in an archive."""
    text = (system / "moses.ini").read_text()
    for kind in map(str.upper, SEARCH_FEATURES):
        (tmp_path / kind).mkdir()
        save_file({kind: torch.zeros(1)}, tmp_path / kind / "model.safetensors")
        text = text.replace("[feature]\n", f"[feature]\n{kind} name={kind}0 path=../{kind}/model.safetensors\n")
        text = text.replace("[weight]\n", f"[weight]\n{kind}0= 0.1\n")
    (system / "moses.ini").write_text(text)
    assert main(["pack", "--system", str(system), "--output", str(tmp_path / "a.tar")]) == 0
    with tarfile.open(tmp_path / "a.tar") as packed:
        packed.extractall(tmp_path, filter="data")
    for kind in map(str.upper, SEARCH_FEATURES):
        assert list(load_file(tmp_path / "a" / f"{kind.lower()}.safetensors")) == [kind]
        assert f"path={kind.lower()}.safetensors" in (tmp_path / "a/moses.ini").read_text()


def test_score_and_embed(system, tmp_path):
    pytest.importorskip("torch")
    table = [(f"{a} {b}", f"{a.upper()} {b.upper()}") for a in "abcdef" for b in "abcdef"]
    make_pairs(tmp_path, table, "a b c d e f", "A B C D E F")
    files = [
        f"--output-model={tmp_path}/m.safetensors",
        f"--output-history={tmp_path}/h.json",
        f"--checkpoint-dir={tmp_path}/checkpoint",
    ]
    small = ["--preset", "demo", "--hidden", "8", "--embedding", "4", "--maxout", "4", "--updates", "3", "--batch", "8"]
    assert main([*training_of(tmp_path), *files, *small]) == 0
    assert compute_column("rnn", tmp_path, tmp_path / "scores", "--model", f"{tmp_path}/m.safetensors") == 0
    vocabularies = [f"{tmp_path}/vocabularies/vocab.{side}.txt" for side in ("source", "target")]
    assert main([*described(system), "--rnn", f"{tmp_path}/m.safetensors", "--vocabulary", *vocabularies]) == 0
    loaded = System(system)
    scores = scores_of(tmp_path / "scores")
    assert [loaded.score(f"a {b}", f"A {b.upper()}") for b in "abcdef"] == pytest.approx(scores[:6].tolist(), abs=1e-4)
    assert loaded.embed("a b").shape == (8,)
    assert not np.allclose(loaded.embed("a b"), loaded.embed("b a"))
    assert np.array_equal(loaded.embed("x y"), loaded.embed("y x"))  # both are UNK UNK
    with pytest.raises(InputError, match="0 words; the network accepts phrases of at least one word"):
        loaded.score("a", " ")
    with pytest.raises(InputError, match="phrase: must be a string, not list"):
        loaded.embed(["a"])
    assert main([*described(system), "--rnn", f"{tmp_path}/m.safetensors", "--vocabulary", *vocabularies[::-1]]) == 0
    with pytest.raises(InputError, match=r"vocabular(y|ies) differs?"):
        System(system).embed("a")


def with_line(directory: Path, line: str) -> None:
    """Add a line to the features of a system."""
    path = directory / "moses.ini"
    path.write_text(path.read_text().replace("[feature]\n", f"[feature]\n{line}\n"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda directory: (directory / "system.json").unlink(), "contains no system.json; use the directory"),
        (lambda directory: directory.rename(directory.parent / "other"), "no such directory or archive"),
        (lambda directory: (directory / "system.json").write_text("{}"), "written by a different version"),
        (lambda directory: (directory / "system.json").write_text('{"format": "rnnsmt-system-1"}'), "json: name: "),
        (lambda directory: change(directory, further=1), "system.json: further: "),
        (lambda directory: change(directory, stack=0), "system.json: stack: "),
        (lambda directory: change(directory, pop_limit=10**24), "system.json: pop_limit: "),
        (lambda directory: change(directory, rnn=None), "system.json: rnn: "),
        (lambda directory: change(directory, rnn=["a", "b"]), "system.json: rnn: "),
        (lambda directory: change(directory, name="\ud800"), "system.json: name: "),
        (lambda directory: change(directory, examples=["\ud800"]), "system.json: examples: "),
        (lambda directory: change(directory, truecaser="a" * 300), "refers to"),
        (lambda directory: change(directory, truecaser="a" * 5000), "at most 1000 characters"),
        (lambda directory: (directory / "system.json").write_text("[" * 100_000), "nested too deeply"),
        (lambda directory: (directory / "system.json").write_text("9" * 5000), "too many digits"),
        (
            lambda directory: (directory / "moses.ini").write_text(
                (directory / "moses.ini").read_text().replace("path=", f"path={'a' * 5000}")
            ),
            "path= has more than 1000 characters",
        ),
        *(
            (lambda directory, odd=odd: with_line(directory, odd), "a name or value has more than 300 characters")
            for odd in ("WordPenalty " + "9" * 5000, "x" * 2000, f"Distortion name={'x' * 400}")
        ),
        (lambda directory: change(directory, source="../x"), "not a language code"),
        (lambda directory: change(directory, tokenizer=None), "a version before 2 of the tokeniser"),
        (lambda directory: change(directory, tokenizer="2-00"), "version 2-00 of the tokeniser, and this is"),
        (lambda directory: change(directory, tokenizer=2), "system.json: tokenizer: "),
        (lambda directory: (directory / "moses.ini").unlink(), "moses.ini"),
        (lambda directory: (directory.parent / "true").unlink(), "true, which does not exist"),
        (lambda directory: (directory.parent / "model/lm.arpa").unlink(), "the file of LM0 is missing"),
        (lambda directory: (directory.parent / "in").write_bytes(b"a\xffb\n"), "in, line 1: not UTF-8"),
        (lambda directory: (directory.parent / "in").write_text("b\n" + "a" * 10_000_000), "segment 2: 10,000,000"),
        (lambda directory: (directory.parent / "in").write_text("a " * 4001), "segment 1: more than 4,000 words"),
        (lambda directory: (directory.parent / "in").unlink(), "no such file"),
    ],
)  # fmt: skip
def test_errors_have_one_line(system, tmp_path, capsys, change, said):
    (tmp_path / "in").write_text("a b\n")
    change(system)
    capsys.readouterr()
    assert main(["translate", "--system", str(system), "--input", f"{tmp_path}/in", "--output", f"{tmp_path}/o"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("rnnsmt translate: error: ")
    assert said in last
    assert len(last) < 600
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--explain", "--nbest", "3"], "cannot be combined"),
        (["--serve", "0", "--input", "x"], "cannot be combined with --input"),
        (["--serve", "70000"], "choose another port"),
        (["--format", "html", "--nbest", "2"], "cannot be combined"),
        (["--host", "0.0.0.0"], "require --serve"),
    ],
)
def test_options_that_do_not_go_together(system, capsys, words, said):
    assert main(["translate", "--system", str(system), *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"), [(["--output", name], "must end in .tar.gz") for name in ("x.zip", ".tar", "...tar.gz")]
)
def test_packing_refuses(system, capsys, words, said):
    assert main(["pack", "--system", str(system), *words]) == 2
    assert said in capsys.readouterr().err


def test_binary_models_are_not_packed(system, tmp_path, capsys):
    words = ["pack", "--system", str(system), "--output", str(tmp_path / "a.tar")]
    assert main(["search", "binarize", "--ini", str(system / "moses.ini")]) == 0
    assert main(words) == 0
    with tarfile.open(tmp_path / "a.tar") as packed:
        assert not [name for name in packed.getnames() if "binary" in name]
    (tmp_path / "a.tar").unlink()
    (tmp_path / "model/lm.arpa").write_bytes(b"mmap lm http://kheafield.com/code" + bytes(100))
    assert main(words) == 2
    assert "lm.arpa: is a binary KenLM file; use the ARPA text file" in capsys.readouterr().err
    assert not (tmp_path / "a.tar").exists()


def test_description_of_several_runs(tmp_path, capsys):
    directories = [tmp_path / "run1", tmp_path / "run2"]
    networks = [
        "--rnn",
        f"{tmp_path}/a.safetensors",
        f"{tmp_path}/b.safetensors",
        "--vocabulary",
        f"{tmp_path}/s",
        f"{tmp_path}/t",
    ]
    assert main([*described(*directories), *networks, "--no-tokenize"]) == 0
    assert [Description.read(directory).rnn[0] for directory in directories] == ["../a.safetensors", "../b.safetensors"]
    assert not Description.read(directories[0]).tokenize
    assert json.loads((directories[1] / "system.json").read_text())["columns"] == ["rnn"]
    assert main([*described(*directories), *networks[:2]]) == 2
    assert "together with --vocabulary" in capsys.readouterr().err


def test_the_version_of_the_tokeniser_is_that_of_the_training_text(system, tmp_path, capsys):
    """It is read from the report of `corpus prepare`; other reports are refused, and no report is a warning."""
    (tmp_path / "text").write_text("a b\n")
    prepare = ["corpus", "prepare", "--source", f"{tmp_path}/text", "--output-source", f"{tmp_path}/o"]
    report = tmp_path / "report"
    assert main([*prepare, "--source-lang", "en", "--report", str(report)]) == 0
    capsys.readouterr()
    assert main([*described(system), "--prepared", str(report)]) == 0
    assert "warning" not in capsys.readouterr().err
    version = json.loads(report.read_text())["tokenizer"]["en"]
    assert Description.read(system).tokenizer == version

    report.write_text(json.dumps({"tokenizer": {"en": "1-other"}}))
    assert main([*described(system), "--prepared", str(report)]) == 0
    with pytest.raises(InputError, match="version 1-other"):
        System(system)
    assert main(["pack", "--system", str(system), "--output", f"{tmp_path}/tiny.tar"]) == 2
    assert "version 1-other" in capsys.readouterr().err
    for content in ("{}", "[]", '{"tokenizer": {"fr": "2"}}'):
        report.write_text(content)
        assert main([*described(system), "--prepared", str(report)]) == 2
        assert f"{report}: contains no version of the tokeniser of en" in capsys.readouterr().err

    assert main(described(system)) == 0
    assert "--prepared" in capsys.readouterr().err
    assert main([*described(system), "--no-tokenize"]) == 0
    change(system, tokenizer="other")
    System(system)


def test_a_system_for_its_own_sets_says_so(system, capsys, tmp_path):
    change(system, filtered=True)
    (tmp_path / "in").write_text("a d e\n")
    assert main(["translate", "--system", str(system), "--input", f"{tmp_path}/in"]) == 0
    said = capsys.readouterr().err
    assert "warning: tiny contains phrase pairs for its dev and test sets" in said
    assert "words 3, unknown words 2" in said
    assert main(["pack", "--system", str(system), "--output", f"{tmp_path}/tiny.tar"]) == 0
    assert "warning: tiny contains phrase pairs for its dev and test sets" in capsys.readouterr().err


def test_sums_of_an_archive_are_those_of_sha256sum(system, tmp_path):
    assert main(["pack", "--system", str(system), "--output", f"{tmp_path}/out.tar.gz"]) == 0
    with tarfile.open(tmp_path / "out.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    assert subprocess.run(command, cwd=tmp_path / "out", check=False).returncode == 0


def test_an_error_of_a_forged_description_is_one_line(system: Path) -> None:
    change(system, source="a\nb" + "c" * 1000)
    with pytest.raises(InputError, match="is not a language code") as refused:
        System(system)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 500


def test_an_error_of_a_long_path_is_short(system: Path) -> None:
    change(system, truecaser="é" * 1000)
    with pytest.raises(InputError, match="does not exist") as refused:
        System(system)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("changed", [{"name": "a\x1b[2Jb"}, {"name": "a\u202eb"}, {"columns": ["a\nb"]}])
def test_a_name_with_control_characters_is_refused(system: Path, changed: dict[str, object]) -> None:
    change(system, **changed)
    with pytest.raises(InputError, match=r"system.json: (name|columns): .*must not contain control characters"):
        System(system)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda path: rnnsmt.load(path, texts="a b"), "texts 'a b': must be a list of strings"),
        (lambda path: rnnsmt.load(path, device="gpu"), "device 'gpu': must be auto, cpu or cuda"),
        (lambda path: rnnsmt.load(path, threads=0), "threads 0: must be at least 1"),
        (lambda path: rnnsmt.load(path).translate_all("a b"), "texts: must be a list of segments, not a single string"),
        (lambda path: rnnsmt.load(path).translate_all(["a", None]), "segment 2: must be a string, not NoneType"),
        (lambda path: rnnsmt.load(path).translate(["a"]), "text: must be a string, not list; use translate_all"),
        (lambda path: rnnsmt.load(path).nbest("a", 0), "n 0: must be at least 1"),
        (lambda path: rnnsmt.load(path).nbest("a", "3"), "n '3': must be an integer"),
        (lambda path: rnnsmt.load(path).nbest(3, 3), "text 3: must be a string"),
    ],
)
def test_wrong_arguments_from_python(system, call, said):
    with pytest.raises(InputError) as error:
        call(system)
    assert str(error.value).startswith(said)


@pytest.fixture
def archive(system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pack a system, and set an empty cache."""
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    path = tmp_path / "packed/tiny-en-fr.tar.gz"
    assert main(["pack", "--system", str(system), "--output", str(path)]) == 0
    return path


@contextmanager
def served(directory: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve the files of a directory; yield the address and the list of requests."""
    asked: list[str] = []

    class Site(SimpleHTTPRequestHandler):
        """Record the requests."""

        def log_message(self, *_args: object) -> None:
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, directory=str(directory))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


def test_an_archive_is_a_system(system, archive, tmp_path):
    """An archive, given as a file or as an address, translates like the system; it is downloaded and unpacked once."""
    expected = System(system).translate_all(RAW)
    (tmp_path / "in").write_text("\n".join(RAW) + "\n")

    def translated(address: object) -> list[str]:
        words = ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")]
        assert main(["translate", "--system", str(address), *words]) == 0
        return (tmp_path / "out").read_text().splitlines()

    assert translated(archive) == expected
    (directory,) = (tmp_path / "cache").iterdir()
    assert directory.name == sha256(archive)
    before = directory.stat().st_mtime_ns
    assert translated(archive) == expected
    assert directory.stat().st_mtime_ns == before
    shutil.rmtree(directory)
    with served(archive.parent) as (site, asked):
        address = f"{site}/{archive.name}#sha256={sha256(archive).upper()}"
        assert translated(address) == expected
        assert len(asked) == 1
    assert translated(address) == expected, "without the server"
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [directory.name], "the archive itself is not kept"


def test_an_address_needs_the_right_hash(archive, tmp_path, capsys):
    """An address without SHA-256 is not requested, and an archive with another one is not unpacked."""
    (tmp_path / "in").write_text("a\n")
    with served(archive.parent) as (site, asked):
        for ending in ("", "#", "#sha256=abc", f"#md5={'0' * 32}"):
            assert (
                main(["translate", "--system", f"{site}/{archive.name}{ending}", "--input", str(tmp_path / "in")]) == 2
            )
            assert "requires the SHA-256" in capsys.readouterr().err
        assert asked == []
        with pytest.raises(InputError, match=f"its sha256 is {sha256(archive)}"):
            System(f"{site}/{archive.name}#sha256={'0' * 64}")
        with pytest.raises(InputError, match="404"):
            System(f"{site}/none.tar.gz#sha256={'0' * 64}")
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]
    with pytest.raises(InputError, match="https:// or http://"):
        System(f"file://{archive}#sha256={sha256(archive)}")


def test_only_what_pack_writes_is_unpacked(archive, tmp_path):
    """Archives with links, paths outside, several directories, other files or damage are refused and leave no files."""
    with tarfile.open(archive) as packed:
        files = {member.name: packed.extractfile(member).read() for member in packed}

    def forged(*more: tuple[str, bytes], sums: str = "", **kept: bytes) -> Path:
        """Write an archive with further members, lines of SHA256SUMS and other contents of moses.ini."""
        path = tmp_path / "forged.tar"
        with tarfile.open(path, "w") as out:
            for name, before in files.items():
                content = kept.get(Path(name).stem, before) + (sums.encode() if name.endswith("SHA256SUMS") else b"")
                member = tarfile.TarInfo(name)
                member.size = len(content)
                out.addfile(member, io.BytesIO(content))
            for name, kind in more:
                member = tarfile.TarInfo(name)
                member.type, member.linkname = kind, "/etc/passwd" if name.endswith("outside") else "moses.ini"
                out.addfile(member)
        return path

    System(forged())
    shutil.rmtree(tmp_path / "cache")
    file, link, folder, empty = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE, hashlib.sha256().hexdigest()
    top = next(iter(files)).split("/")[0]
    wrong = [
        lambda: forged((f"{top}/outside", link)),
        lambda: forged((f"{top}/x", link), sums=f"{hashlib.sha256(files[f'{top}/moses.ini']).hexdigest()}  x\n"),
        lambda: forged((f"{top}/../x", file)),
        lambda: forged((f"{top}/../../x", file)),
        lambda: forged((f"{top}/x", file)),
        lambda: forged((f"{top}/x", folder)),
        lambda: forged((f"{top}/device", tarfile.CHRTYPE)),
        lambda: forged(("b/x", file)),
        lambda: forged((f"{top}/lm.binary.safetensors", file), sums=f"{empty}  lm.binary.safetensors\n"),
        lambda: forged(moses=b"[feature]\n"),
        lambda: forged(sums=f"{empty}  x\n"),
    ]
    for make in wrong:
        with pytest.raises(InputError, match=r"forged\.tar: "):
            System(make())
    with pytest.raises(InputError, match="binary model"):
        System(forged((f"{top}/lm.Binary.safetensors", file), sums=f"{empty}  lm.Binary.safetensors\n"))
    content = archive.read_bytes()
    # the last bytes are the checksum and the size; the byte before them has at least one bit of the compressed data
    last = bytes([content[-9] ^ 0xFF])
    for damaged in (content[: len(content) // 2], b"text\n", content[:-9] + last + content[-8:]):
        (tmp_path / "damaged.tar.gz").write_bytes(damaged)
        with pytest.raises(InputError, match="damaged"):
            System(tmp_path / "damaged.tar.gz")
    assert list((tmp_path / "cache").iterdir()) == []
    assert not (tmp_path / "x").exists()


def sparse_member(name: str, size: int) -> bytes:
    """Return the header of a GNU sparse file without data."""
    member = tarfile.TarInfo(name)
    member.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    header[482:495] = b"\0\x80" + size.to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def test_archives_that_tarfile_does_not_refuse(archive, tmp_path):
    """Times that are no numbers, members of any size without data, deep directories and huge attributes."""
    with tarfile.open(archive) as packed:
        files = {member.name: packed.extractfile(member).read() for member in packed}
    top = next(iter(files)).split("/")[0]

    def refused(*members: tuple[tarfile.TarInfo, bytes], before: bytes = b"") -> str:
        path = tmp_path / "forged.tar"
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as out:
            for member, content in members:
                member.size = len(content)
                out.addfile(member, io.BytesIO(content))
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                out.addfile(member, io.BytesIO(content))
        path.write_bytes(before + path.read_bytes())
        start = time.process_time()
        with pytest.raises(InputError, match=r"forged\.tar: ") as error:
            System(path)
        assert time.process_time() - start < 2
        assert len(str(error.value)) < 500
        assert list((tmp_path / "cache").iterdir()) == []
        return str(error.value)

    for attribute, value in (
        ("mtime", "1e400"),
        ("mtime", "nan"),
        ("size", "-5"),
        ("size", "9" * 30),
        ("path", "a\0b"),
    ):
        member = tarfile.TarInfo(f"{top}/x")
        member.pax_headers = {attribute: value}
        refused((member, b"x"))
    assert "a sparse file" in refused(before=sparse_member(f"{top}/x", 20 << 30))
    deep = [(tarfile.TarInfo(f"{top}/{'d/' * depth}d"), b"") for depth in range(1500)]
    for member, _ in deep:
        member.type = tarfile.DIRTYPE
    assert "a directory" in refused(*deep)
    assert "occurs twice" in refused((tarfile.TarInfo(f"{top}/MOSES.INI"), b"x"))
    attributes = tarfile.TarInfo("x")
    attributes.type = tarfile.XHDTYPE
    assert "too long" in refused((attributes, b"x" * (2 << 20)))
    refused(*((tarfile.TarInfo(f"{top}/{number}"), b"") for number in range(1001)))


def test_an_archive_does_not_load_another_package(system, monkeypatch, tmp_path):
    """Its moses.ini names a network that an installed package reads: the package is named, and not imported."""
    code = "raise SystemExit('imported')"
    install(
        tmp_path, monkeypatch, "their-networks", {"rnnsmt.search_features": {"topic": "their_networks:Topic"}}, code
    )
    directory = tmp_path / "forged"
    shutil.copytree(system, directory)
    with_line(directory, "TOPIC name=TOPIC0 path=model.safetensors unknown=class")
    ini = (directory / "moses.ini").read_text()
    for line in ("TOPIC name", " TOPIC name", "\tTOPIC\tname"):
        (directory / "moses.ini").write_text(ini.replace("TOPIC name", line))
        with pytest.raises(InputError, match=r"TOPIC is computed by code of the package their-networks 1\.2"):
            archives._check_networks(directory, "forged.tar")
    archives._check_networks(system, "a.tar")


def test_an_archive_that_changes_while_it_is_read(archive, monkeypatch):
    """The hash by which the directory is called is that of the bytes that were unpacked."""
    content = archive.read_bytes()
    opened = archives.open_tar

    def replaced(stream: io.BufferedReader) -> tarfile.TarFile:
        archive.write_bytes(content + b"\0")
        return opened(stream)

    monkeypatch.setattr(archives, "open_tar", replaced)
    with pytest.raises(InputError, match="was changed while it was read"):
        System(archive)


def test_a_model_card_has_data_licence_figures_and_limits(system, tmp_path, capsys, monkeypatch):
    """A model card has the data, figures and limits of its run; a card in the directory is packed unchanged."""
    run = tmp_path / "results/systems/tiny/run1"
    run.parent.mkdir(parents=True)
    rows = [
        {"system": name, "test_set": "news", "bleu": bleu, "bleu_sd": 0.5, "ter": 30.25, "runs": 3, "segments": 1234}
        for name, bleu in (("tiny", 20.0), ("other", 99.0))
    ]
    corpora = [{"name": "mine", "role": "bitext", "source": "d/a.en", "target": "d/a.fr"}]
    cell = {"system": "tiny", "test_set": "news", "runs": [{"run": "tiny/run1", "bleu": 19.75}]}
    provenance = {
        "software": {"rnnsmt": "0.1"},
        "config": {"corpora": corpora},
        "files": {"d/a.en": {"sha256": "abcdef0123456789abcdef"}},
        "cells": [cell],
    }
    (tmp_path / "results/table1.json").write_text(json.dumps({"rows": rows}))
    (tmp_path / "results/provenance.json").write_text(json.dumps(provenance))
    command = ["pack", "--system", str(run), "--results", str(tmp_path / "results")]
    output = ["--output", str(tmp_path / "a.tar")]
    system.rename(run)
    for name in ("model", "true"):
        (tmp_path / name).rename(run.parents[2] / name)
    ini = (run / "moses.ini").read_text().replace("../model/", "../../../model/")
    (run / "moses.ini").write_text(ini)
    change(run, truecaser="../../../true")
    assert main([*command, *output]) == 2
    assert "--licence" in capsys.readouterr().err
    assert main([*command, *output, "--licence", "MIT, as the text"]) == 0
    with tarfile.open(tmp_path / "a.tar") as packed:
        packed.extractall(tmp_path, filter="data")
    card = (tmp_path / "a/MODEL_CARD.md").read_text()
    for said in (
        "# tiny: English to French",
        "phrase table with translation probabilities and rnn",
        "| mine | parallel text | a.en, a.fr | abcdef0123456789, – |",
        "## Licence\n\nMIT, as the text\n",
        "| news | 1,234 | 19.75 | 20.00 ± 0.50 | 30.25 |",
        "## Limits",
    ):
        assert said in card
    assert "99.00" not in card
    assert "made up" not in card
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    assert (system_directory(tmp_path / "a.tar") / "MODEL_CARD.md").read_text() == card
    (tmp_path / "a/SHA256SUMS").unlink()
    (tmp_path / "a/MODEL_CARD.md").write_text("Mine.\n")
    assert main(["pack", "--system", str(tmp_path / "a"), "--output", str(tmp_path / "b.tar")]) == 0
    with tarfile.open(tmp_path / "b.tar") as packed:
        found = packed.extractfile("b/MODEL_CARD.md")
        assert found is not None
        assert found.read() == b"Mine.\n"
    (tmp_path / "results/table1.json").write_text('{"rows": []}')
    assert main([*command, *output, "--licence", "MIT"]) == 2
    assert "has no system tiny/run1" in capsys.readouterr().err


def test_an_unpacked_archive_has_binary_files(system, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    assert main(["pack", "--system", str(system), "--output", str(tmp_path / "a.tar")]) == 0
    directory = system_directory(tmp_path / "a.tar")
    assert {path.name for path in directory.glob("*.binary.safetensors")} == {
        "phrase-table.binary.safetensors",
        "lm.binary.safetensors",
    }
    monkeypatch.setattr("rnnsmt.search.model.load_automaton", None)  # no text is read
    monkeypatch.setattr("rnnsmt.search.model.load_phrase_table", None)
    binary = System(tmp_path / "a.tar").translate_all(RAW)
    monkeypatch.undo()
    assert binary == System(system).translate_all(RAW)
    assert "warning" not in capsys.readouterr().err


def test_an_archive_writes_nothing_beside_other_files(system, tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    assert main(["pack", "--system", str(system), "--output", str(tmp_path / "a.tar")]) == 0
    with tarfile.open(tmp_path / "a.tar") as packed:
        packed.extractall(tmp_path, filter="data")
    for name in ("lm.arpa", "phrase-table"):
        text = (tmp_path / "a/moses.ini").read_text()
        (tmp_path / "a/moses.ini").write_text(text.replace(f"path={name}", f"path={tmp_path}/model/{name}"))
        assert f"path={tmp_path}/model/{name}" in (tmp_path / "a/moses.ini").read_text()
        next((tmp_path / "a").glob(f"{name}*")).unlink()
    sums = sorted(path.name for path in (tmp_path / "a").iterdir() if path.name != "SHA256SUMS")
    (tmp_path / "a/SHA256SUMS").write_text("".join(f"{sha256(tmp_path / 'a' / name)}  {name}\n" for name in sums))
    with tarfile.open(tmp_path / "a.tar", "w") as packed:
        packed.add(tmp_path / "a", "a")
    before = set((tmp_path / "model").iterdir())
    System(tmp_path / "a.tar")
    assert set((tmp_path / "model").iterdir()) == before


def test_a_process_loads_a_pickled_system_again(system, monkeypatch):
    monkeypatch.chdir(system.parent)
    loaded = System(system.name, RAW, "cpu", threads=2, max_words=50)
    monkeypatch.chdir("/")
    again = pickle.loads(pickle.dumps(loaded))
    assert (again.device, again.threads, again.max_words) == ("cpu", 2, 50)
    sizes = [len(one.model.table) for one in (again, loaded, System(system))]
    assert sizes[0] == sizes[1] < sizes[2]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        assert processes.submit(loaded.translate_all, RAW).result() == loaded.translate_all(RAW)


@pytest.fixture
def with_networks(system: Path, tmp_path: Path) -> Path:
    """Add a CSLM and a joint model, of random text, to the system."""
    rng = random.Random(1)
    lines = [rng.choices(range(4), k=rng.randint(3, 9)) for _ in range(60)]
    source, target = ([" ".join(words[word] for word in line) for line in lines] for words in (SOURCE, TARGET))
    links = [[(position, position) for position in range(len(line))] for line in lines]
    words = rnnsmt.networks.prepare("cslm", target, tmp_path / "cslm", vocab_size=8).path
    examples = rnnsmt.networks.prepare(
        "nnjm", target, tmp_path / "nnjm", source=source, alignment=links, vocab_size=8
    ).path
    trainings = {
        "CSLM": (words, rnnsmt.cslm.CslmSettings),
        "NNJM": (examples, rnnsmt.nnjm.JointSettings),
    }
    networks = {}
    for kind, (data, settings) in trainings.items():
        outputs = [data / name for name in ("model.safetensors", "history.json", "checkpoint")]
        of_demo = settings.preset("demo", epochs=1)
        networks[kind] = rnnsmt.networks.train(kind.lower(), data, *outputs, settings=of_demo, device="cpu").path
    text = (system / "moses.ini").read_text()
    for kind, path in networks.items():
        text = text.replace("[feature]\n", f"[feature]\n{kind} name={kind}0 path={path}\n")
        text = text.replace("[weight]\n", f"[weight]\n{kind}0= 0.3\n")
    (system / "moses.ini").write_text(text)
    return system


def test_threads_translate_as_one_thread(with_networks):
    """Kernels fill the stores of the networks without the global interpreter lock."""
    rng = random.Random(2)
    texts = [" ".join(rng.choices(SOURCE, k=rng.randint(5, 20))) for _ in range(60)]
    alone, shared = (rnnsmt.load(with_networks, device="cpu") for _ in range(2))

    def everything(system: System, text: str) -> tuple[object, list[float]]:
        entries = system.nbest(text, 5)
        return (system.translate(text), [entry.text for entry in entries]), [entry.score for entry in entries]

    expected = [everything(alone, text) for text in texts]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(partial(everything, shared), texts))
    for (strings, scores), (right, right_scores) in zip(found, expected, strict=True):
        assert strings == right
        assert scores == pytest.approx(right_scores, abs=1e-4)  # rounding of few classes depends on the row
    assert (shared.words, shared.unknown) == (alone.words, alone.unknown)
