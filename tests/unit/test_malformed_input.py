"""Damaged, foreign and hostile input of every stage: exit code 2, an error of one line with the file, no output.

A tiny model is built once by the stages themselves. Each case damages one file of a copy and runs one stage. Existing
outputs must not change.
"""

import gzip
import io
import os
import random
import re
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from rnnsmt.cli import main

from .overriding import overridden

Damage = Callable[[bytes], bytes]

STAGES = {
    "prepare": "corpus prepare --source raw.en --target raw.fr --source-lang en --target-lang fr --output-source O1 "
    "--output-target O2 --report O3",
    "overlap": "corpus overlap --training tok.en --set dev=dev.en --output O1",
    "join": "corpus join --input tok.en --output O1",
    "truecase": "corpus truecase --model tc.en --input tok.en --output O1",
    "models": "selection models --in-domain dev.en --pool tok.en --output-dir OD --seed 1",
    "score": "selection score --text tok.en --models sel --output O1",
    "select": "selection select --lang en fr --corpus p=scores=tok.en=tok.fr --fraction 0.5 --output-dir OD --curve O1",
    "curve": "selection select --lang en fr --corpus p=scores=tok.en=tok.fr --fraction auto --held-out dev.fr "
    "--output-dir OD --curve O1",
    "words": "align words --source tok.en --target tok.fr --aligner fast_align --direction forward --output O1",
    "symmetrize": "align symmetrize --forward fwd --reverse rev --heuristic union --output O1",
    "lexical": "phrases lexical --source tok.en --target tok.fr --alignment al --output-e2f O1 --output-f2e O2",
    "extract": "phrases extract --source tok.en --target tok.fr --alignment al --output O1",
    "table": "phrases score --extract ex.parquet --pairs pairs.safetensors --lex-e2f lex.e2f --lex-f2e lex.f2e "
    "--output O1",
    "reordering": "phrases reordering --extract ex.parquet --pairs pairs.safetensors --output O1",
    "pairs for a text": "phrases select --pairs pairs.safetensors --scores phrase.scores --reordering orientations "
    "--input dev.en --output O1",
    "export": "phrases export --pairs pairs.safetensors --scores phrase.scores --reordering orientations "
    "--output-phrase-table O1 --output-reordering-table O2",
    "filter": "phrases filter --input dev.en --phrase-table pt --reordering-table ro --output-dir OD",
    "augment": "phrases augment --phrase-table pt --column sc --output O1",
    "lm": "lm estimate --input tok.fr --order 2 --estimator builtin --output O1",
    "perplexity": "networks perplexity --model lm.arpa --input dev.fr --output O1",
    "pairs": "phrases import-table --phrase-table pt --output O1",
    "vocabularies": "networks prepare --network rnn --source tok.en --target tok.fr --vocab-size 30 --output-dir OD",
    "column": "phrases column --name wp --pairs pairs.safetensors --vocabularies vocabularies --output O1",
    "decode": "search decode --ini moses.ini --input dev.en --output O1 --nbest 3 --nbest-file O2 --report O3",
    "mert": "tuning tune --ini moses.ini --source dev.en --reference dev.fr --output-ini O1 --output-history O2 "
    "--checkpoint-dir OD --seed 1 --nbest 5 --restarts 1 --iterations 1 --pop-limit 20",
    "bleu": "evaluation score --hypothesis dev.fr --reference dev.fr --system s --test-set t --output O1",
}

TABLES = ("pt", "ro", "lm.arpa")


def text(language: str, lines: int, seed: int) -> str:
    """Return lines of a toy language; the same seed gives parallel text."""
    rng = random.Random(seed)
    rows = [
        " ".join(f"{language}{int(12 * rng.random() ** 2)}" for _ in range(rng.randint(3, 7))) for _ in range(lines)
    ]
    return "".join(f"{row}\n" for row in rows)


def valid_files() -> None:
    """Write valid input of every stage into the working directory."""
    for side in ("en", "fr"):
        for name in ("raw", "tok"):
            Path(f"{name}.{side}").write_text(text(side[0], 40, 1))
        Path(f"dev.{side}").write_text(text(side[0], 20, 2))
    for line in (
        "corpus train-truecaser --input tok.en --output-model tc.en",
        STAGES["models"].replace("OD", "sel"),
        STAGES["score"].replace("O1", "scores"),
        STAGES["words"].replace("O1", "fwd"),
        STAGES["words"].replace("forward", "reverse").replace("O1", "rev"),
        STAGES["symmetrize"].replace("O1", "al"),
        STAGES["lexical"].replace("O1", "lex.e2f").replace("O2", "lex.f2e"),
        STAGES["extract"].replace("O1", "ex.parquet --output-pairs pairs.safetensors"),
        STAGES["table"].replace("O1", "phrase.scores"),
        STAGES["reordering"].replace("O1", "orientations"),
        STAGES["export"].replace("O1", "pt").replace("O2", "ro"),
        STAGES["vocabularies"].replace("OD", "vocabularies"),
        STAGES["column"].replace("O1", "sc"),
        STAGES["lm"].replace("O1", "lm.arpa"),
        "moses write-ini --model-dir . --output moses.ini --phrase-table pt --reordering-table ro --lm lm.arpa "
        "--lm-order 2",
    ):
        assert main(line.split()) == 0, line


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a directory with valid input of every stage."""
    directory = tmp_path_factory.mktemp("good")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        valid_files()
    return directory


@pytest.fixture
def place(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Copy the directory, add old outputs, and make it the working directory."""
    directory = tmp_path / "place"
    shutil.copytree(good, directory)
    for name in ("O1", "O2", "O3"):
        (directory / name).write_text("old\n")
    monkeypatch.chdir(directory)
    yield directory


def contents(directory: Path) -> dict[str, bytes]:
    """Return the content of all files except locks."""
    return {
        str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file() and p.name != "lock"
    }


def refused(directory: Path, command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a stage that must refuse its input; return the error."""
    before = contents(directory)
    try:
        status = main(command.split())
    except SystemExit as stopped:  # of the parser of options
        status = stopped.code
    assert status == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    sentences = [line for line in error.splitlines() if ": error: " in line]
    assert len(sentences) == 1
    assert error.splitlines()[-1] == sentences[0], "nothing comes after the sentence"
    assert contents(directory) == before
    return sentences[0].split(": error: ", 1)[1]


def with_suffix(directory: Path, command: str, name: str, suffix: str, data: bytes) -> str:
    """Replace a file by data under its name with a suffix; return the command that reads it."""
    (directory / name).unlink()
    (directory / f"{name}{suffix}").write_bytes(data)
    if name in TABLES:
        ini = directory / "moses.ini"
        ini.write_text(ini.read_text().replace(f"path={name}", f"path={name}{suffix}"))
    return re.sub(rf"(?<=[ =]){re.escape(name)}(?=[ =]|$)", name + suffix, command)


READERS = [
    *(("prepare", "raw.en"), ("prepare", "raw.fr"), ("join", "tok.en"), ("truecase", "tc.en"), ("truecase", "tok.en")),
    *(("models", "dev.en"), ("models", "tok.en"), ("score", "tok.en"), ("select", "scores"), ("select", "tok.fr")),
    *(("curve", "dev.fr"), ("words", "tok.en"), ("extract", "al"), ("symmetrize", "rev"), ("lexical", "al")),
    *(("extract", "tok.fr"), ("table", "lex.e2f"), ("filter", "dev.en"), ("filter", "pt"), ("filter", "ro")),
    *(("augment", "pt"), ("lm", "tok.fr"), ("perplexity", "lm.arpa"), ("perplexity", "dev.fr"), ("pairs", "pt")),
    *(("vocabularies", "tok.fr"), ("decode", "pt"), ("decode", "ro"), ("decode", "lm.arpa"), ("decode", "dev.en")),
    *(("mert", "dev.fr"), ("mert", "lm.arpa"), ("bleu", "dev.fr"), ("overlap", "tok.en"), ("overlap", "dev.en")),
]
"""(stage, a text file that it reads)."""


@pytest.mark.parametrize(("stage", "name"), READERS)
def test_files_that_cannot_be_read(place: Path, capsys: pytest.CaptureFixture[str], stage: str, name: str) -> None:
    """Every reader names a truncated file and a directory; tests/unit/base has the other damages of ``open_binary``."""
    data, ini = (place / name).read_bytes(), (place / "moses.ini").read_text()
    truncated = with_suffix(place, STAGES[stage], name, ".gz", gzip.compress(data)[:-20])
    assert f"{name}.gz" in refused(place, truncated, capsys)
    (place / "moses.ini").write_text(ini)
    (place / name).mkdir()
    assert name in refused(place, STAGES[stage], capsys)


@pytest.mark.parametrize(
    ("stage", "name"),
    [
        *(("words", "tok.en"), ("lexical", "tok.en"), ("extract", "tok.fr"), ("filter", "dev.en")),
        *(("pairs for a text", "dev.en"), ("decode", "dev.en"), ("mert", "dev.en")),
    ],
)
def test_text_that_is_not_tokenised(place: Path, capsys: pytest.CaptureFixture[str], stage: str, name: str) -> None:
    """A word must not contain a tab, wherever a tokenised text is read; tests/unit/base has the other characters."""
    data = (place / name).read_bytes()
    second = data.index(b"\n") + 1
    (place / name).write_bytes(data[:second] + data[second:].replace(b" ", b"\t", 1))
    assert refused(place, STAGES[stage], capsys).startswith(f"{name}, line 2: control character U+0009")


def test_names_that_are_not_utf8(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for stage, name in (("prepare", "raw.en"), ("perplexity", "lm.arpa")):
        (place / f"{name}\udce9").write_bytes((place / name).read_bytes())
        with redirect_stderr(io.StringIO()):  # like stderr and unlike that of pytest, it takes any name
            assert main(STAGES[stage].replace(name, f"{name}\udce9").split()) == 0
    ini = "moses write-ini --model-dir . --output O1 --phrase-table pt\udce9 --reordering-table ro --lm lm.arpa"
    (place / "pt").rename("pt\udce9")
    (place / "ex.parquet").rename("ex.parquet\udce9")
    for command, sentence in (
        (ini, "O1: cannot name the file path="),
        (STAGES["table"].replace("ex.parquet", "ex.parquet\udce9"), "ex.parquet\\udce9: the name is not UTF-8; rename"),
        (STAGES["extract"].replace("O1", "O1\udce9"), "O1\\udce9: the name is not UTF-8; rename the file"),
    ):
        assert refused(place, command, capsys).startswith(sentence)


def line(number: int, change: Damage) -> Damage:
    """Return a change of one line (1-based)."""

    def damage(data: bytes) -> bytes:
        lines = data.split(b"\n")
        lines[number - 1] = change(lines[number - 1])
        return b"\n".join(lines)

    return damage


def instead(old: bytes, new: bytes) -> Damage:
    """Return a replacement of the first occurrence, which must exist."""

    def damage(data: bytes) -> bytes:
        assert old in data
        return data.replace(old, new, 1)

    return damage


def header(order: int, count: bytes) -> Damage:
    return lambda data: re.sub(rb"ngram %d=\d+" % order, b"ngram %d=%s" % (order, count), data)


UTF16: Damage = lambda data: data.decode().encode("utf-16")  # noqa: E731

DAMAGES: list[tuple[str, str, str, Damage, str]] = [
    # (kind, stage, file, damage, error)
    ("UTF-16", "prepare", "raw.en", UTF16, "raw.en: is UTF-16"),
    ("CR only", "prepare", "raw.fr", lambda d: d.replace(b"\n", b"\r"), "raw.fr: its lines end with CR"),
    ("blank", "prepare", "raw.en", lambda d: b"\n" * d.count(b"\n"), "raw.en and raw.fr: none of 40 lines"),
    ("one line less", "prepare", "raw.fr", lambda d: d[: d.rstrip().rfind(b"\n") + 1], "raw.fr has 39 lines"),
    ("all rejected", "prepare", "raw.en", lambda d: d.replace(b"\n", b" \xff\n"), "40 of 40 lines"),
    ("UTF-16", "models", "dev.en", UTF16, "dev.en, line 1: not UTF-8 at byte 0"),
    ("blank", "models", "dev.en", lambda d: b"\n" * 20, "dev.en: "),
    ("blank", "models", "tok.en", lambda d: b"\n" * 40, "tok.en: 0 of 40 lines"),
    ("too short", "models", "dev.en", lambda d: b"e1\n" * 19, "dev.en: 19 lines"),
    ("blank", "curve", "tok.fr", lambda d: b"\n" * 40, "tok.fr: no words"),
    ("NaN", "select", "scores", line(3, lambda row: b"nan"), "scores: contains NaN"),
    ("text", "select", "scores", line(3, lambda row: b"good"), "scores: "),
    ("BOM", "lexical", "al", lambda d: b"\xef\xbb\xbf" + d, "al, line 1: not a list of links i-j: '\\ufeff0-0'"),
    ("line feed in a message", "lexical", "al", line(2, lambda row: b"\x0b"), "al, line 2: "),
    ("not UTF-8", "perplexity", "lm.arpa", line(9, lambda row: row + b"\xff"), "lm.arpa: "),
    ("bytes", "perplexity", "lm.arpa", lambda d: random.Random(1).randbytes(500), "lm.arpa, line 1: \\data\\"),
    ("negative count", "perplexity", "lm.arpa", header(2, b"-4"), "lm.arpa, line 3: "),
    ("other count", "perplexity", "lm.arpa", header(2, b"3"), "lm.arpa: "),
    ("endless", "perplexity", "lm.arpa", line(3, lambda row: b"x" * 10**6), "lm.arpa, line 3"),
    ("CR only", "perplexity", "lm.arpa", lambda d: d.replace(b"\n", b"\r"), "lm.arpa, line 1: \\data\\"),
    ("not UTF-8", "pairs", "pt", line(3, lambda row: b"\xff" + row), "pt, line 3: not UTF-8"),
    ("not UTF-8", "vocabularies", "tok.fr", line(4, lambda row: b"\xff" + row), "tok.fr, line 4: not UTF-8"),
    ("half a line", "pairs", "pt", line(3, lambda row: row[:9]), "pt, line 3: 1 field"),
    ("empty", "pairs", "pt", lambda d: b"", "pt: "),
    ("empty", "column", "pairs.safetensors", lambda d: b"", "pairs.safetensors: is empty; create it with `rnnsmt phr"),
    (
        "cut",
        "column",
        "pairs.safetensors",
        lambda d: d[:-1],
        "pairs.safetensors: not a complete file",
    ),
    ("text", "column", "pairs.safetensors", lambda d: b"a ||| x ||| 1\n", "pairs.safetensors: not a complete file"),
]


@pytest.mark.parametrize(
    ("stage", "name", "damage", "sentence"),
    [case[1:] for case in DAMAGES],
    ids=[f"{case[1]}-{case[2]}-{case[0]}" for case in DAMAGES],
)
def test_damaged_files(
    place: Path, capsys: pytest.CaptureFixture[str], stage: str, name: str, damage: Damage, sentence: str
) -> None:
    path = place / name
    path.write_bytes(damage(path.read_bytes()))
    found = refused(place, STAGES[stage], capsys)
    assert sentence in found
    assert len(found) < 700
    assert found.isprintable()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--output tok.en", "--output tok.en: used twice; every output must have a different name"),
        ("--output ./sel/../tok.fr", "tok.fr: used twice"),
        ("--output directory", "directory: is a directory; specify the path of a file"),
        ("--output tc.en/O1", "tc.en is a file, not a directory"),
        ("--output tc.en/new/O1", "tc.en is a file, not a directory"),
        ("--output pipe", "pipe: is not a regular file and cannot be replaced"),
        ("--output device", "device: is not a regular file and cannot be replaced"),
        ("--threads 2000000000", "--threads: 2000000000: must be at most 1024"),
    ],
)
def test_options_are_checked_first(
    place: Path, capsys: pytest.CaptureFixture[str], options: str, sentence: str
) -> None:
    """Options are checked before the input is read."""
    (place / "directory").mkdir()
    os.mkfifo(place / "pipe")
    (place / "device").symlink_to("/dev/null")
    (place / "tok.en").write_bytes(b"\xff\n")
    command = " ".join(overridden(STAGES["words"].split(), options.split()))
    assert sentence in refused(place, command, capsys)
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("stage", "options", "sentence"),
    [
        ("models", "--seed -1", "--seed: -1: must be at least 0"),
        ("models", "--seed 9223372036854775808", "--seed: 9223372036854775808: must be at most 9223372036854775807"),
        ("select", "--random -1", "--random: -1: must be at least 0"),
        ("mert", "--time-limit nan", "--time-limit: nan: must be a finite number"),
        ("extract", "--memory-mb 10000000000", "--memory-mb: 10000000000: must be at most 2147483647"),
    ],
)
def test_numbers_that_no_library_takes(
    place: Path, capsys: pytest.CaptureFixture[str], stage: str, options: str, sentence: str
) -> None:
    assert sentence in refused(place, " ".join(overridden(STAGES[stage].split(), options.split())), capsys)


def test_output_directories_are_checked_first(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for directory in ("tc.en/models", "tc.en"):
        command = STAGES["models"].replace("OD", directory)
        assert "tc.en is a file, not a directory" in refused(place, command, capsys)


def test_a_link_stays_one(place: Path) -> None:
    (place / "elsewhere").mkdir()
    (place / "O1").unlink()
    (place / "O1").symlink_to("elsewhere/real")
    assert main(STAGES["join"].split()) == 0
    assert (place / "O1").is_symlink()
    assert (place / "elsewhere/real").read_bytes() == (place / "tok.en").read_bytes()


@pytest.mark.parametrize(
    "stage",
    [
        *("prepare", "models", "select", "words", "lexical", "extract", "table", "filter", "lm", "pairs"),
        *("vocabularies", "column", "decode", "mert"),
    ],
)
def test_a_full_disk(place: Path, capsys: pytest.CaptureFixture[str], stage: str) -> None:
    """On a full disk, simulated by a limit on file sizes, the error names the output, and old outputs do not change."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, hard))
    try:
        sentence = refused(place, STAGES[stage], capsys)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert "cannot be written (File too large); " in sentence
    assert ".tmp-" not in sentence


@pytest.fixture(scope="module")
def network(good: Path) -> Path:
    """Create a directory with a network and the checkpoint of its training run."""
    directory = good.parent / "network"
    with pytest.MonkeyPatch.context() as patch:
        shutil.copytree(good, directory)
        patch.chdir(directory)
        assert main(TRAIN.replace("O1", "m.safetensors").replace("O2", "m.json").split()) == 0
    return directory


TRAIN = (
    "networks train --network rnn --data pairs.safetensors vocabularies --preset demo "
    "--hidden 8 --embedding 4 --maxout 4 "
    "--updates 4 --held-out 5 --batch 4 --output-model O1 --output-history O2 --checkpoint-dir checkpoint"
)


@pytest.fixture
def trained(network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "trained"
    shutil.copytree(network, directory)
    (directory / "O1").write_text("old")
    monkeypatch.chdir(directory)
    return directory


def test_weights_that_are_there_twice(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (place / "moses.ini").open("a") as ini:
        ini.write("LM0= 0.7\n")
    assert "duplicate weights of LM0" in refused(place, STAGES["decode"], capsys)


def test_a_sentence_that_is_too_long_for_the_search(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "dev.en").write_text("e1\n" + "e1 " * 5000 + "\n")
    assert "line 2: more than 4000 words in one sentence" in refused(place, STAGES["decode"], capsys)


def test_a_text_of_a_language_model_stays_where_it_cannot_be_replaced(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vocabulary = "--target-vocabulary vocabularies/vocab.target.txt"
    command = f"networks prepare --network cslm --target tok.fr {vocabulary} --output-dir ids"
    assert main(command.split()) == 0
    capsys.readouterr()
    (trained / "tok.fr").write_bytes(b"f1\n\xff\n")
    assert "tok.fr, line 2: not UTF-8" in refused(trained, command, capsys)


def test_a_training_without_enough_memory(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(trained / "checkpoint")
    assert "out of memory" in refused(trained, " ".join(overridden(TRAIN.split(), ["--hidden", "2147483647"])), capsys)
