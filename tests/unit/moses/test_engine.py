"""Moses' programs instead of rnnsmt's stages: search, checks, calls, output; fake programs call rnnsmt."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.base.reading import read_json
from rnnsmt.cli import main
from rnnsmt.formats.ini import MosesIni
from rnnsmt.formats.nbest import read_details
from rnnsmt.moses import training
from rnnsmt.moses.installation import Installation, Needs, failure_reason, run, try_decoder
from tests.fake_moses import install

from ..search.twin import tiny_model

TEXT = ["a b c", "c a b a", "", "d b", "c c b a b"]
EVERYTHING = Needs(("alignment", "training", "tuning", "decoding"), ("model4", "fast_align"))


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return install(tmp_path_factory.mktemp("moses"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Create a model directory, a text and references."""
    directory = tiny_model(tmp_path / "model", seed=3).directory
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in TEXT))
    (tmp_path / "reference").write_text("u v w\nw u\n\nd v\nw v u\n")
    return directory


def script(path: Path, content: str) -> Path:
    """Write a shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{content}\n")
    path.chmod(0o755)
    return path


def test_programs_are_found_below_the_installation_and_on_the_path(home, tmp_path, monkeypatch):
    moses = Installation(home)
    assert moses.missing(EVERYTHING) == []
    assert moses.program("moses") == home / "bin/moses"
    assert moses.giza() == ("mgiza", home / "bin")
    assert moses.scripts() == home / "scripts"
    (tmp_path / "empty").mkdir()
    empty = Installation(tmp_path / "empty")
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, (home / "bin", home / "scripts/training"))))
    assert empty.missing(EVERYTHING) == []
    (tmp_path / "linked/bin").mkdir(parents=True)
    (tmp_path / "linked/scripts").symlink_to(home / "scripts")
    assert Installation(tmp_path / "linked").program("score") == home / "bin/score"  # the path that a script would use
    (tmp_path / "with blank").mkdir()
    with pytest.raises(InputError, match="do not support paths with spaces"):
        Installation(tmp_path / "with blank")
    with pytest.raises(InputError, match="not a directory"):
        Installation(tmp_path / "none")


def test_everything_that_is_missing_is_named_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    moses = Installation(install(tmp_path, without=("kbmira", "atools", "mkcls", "moses", "score")))
    with pytest.raises(InputError) as error:
        moses.check(EVERYTHING)
    assert all(f"{name} (for " in str(error.value) for name in ("kbmira", "atools", "moses", "score"))
    assert "mgiza snt2cooc merge_alignment.py mkcls or GIZA++ snt2cooc.out mkcls in one directory" in str(error.value)
    assert "extract (" not in str(error.value)
    moses.check(Needs((), ("fast_align",)))
    assert moses.missing(Needs(("tuning",))) == ["kbmira (for tuning)", "moses (for tuning)"]


def test_the_decoder_is_tried(home, tmp_path, monkeypatch):
    try_decoder(home / "bin/moses", 5)
    try_decoder(home / "bin/moses", 1)
    old = script(tmp_path / "old", "echo 'Exception: this model has order 7 but KenLM was compiled for 6' >&2; exit 1")
    with pytest.raises(
        InputError, match=r"LM of order 7.*compiled for 6; build a newer Moses, with --max-kenlm-order=7"
    ):
        try_decoder(old, 7)
    with pytest.raises(InputError, match="cannot be run"):
        try_decoder(tmp_path / "none", 5)
    with pytest.raises(InputError, match="cannot translate a word"):
        try_decoder(script(tmp_path / "mute", "cat > /dev/null; echo b"), 5)
    monkeypatch.setattr("rnnsmt.moses.installation.SECONDS", 0.5)
    with pytest.raises(InputError, match=r"did not translate a word within 0\.5 s"):
        try_decoder(script(tmp_path / "slow", "exec sleep 9"), 5)
    monkeypatch.undo()
    latin1 = script(tmp_path / "latin1", r"cat > /dev/null; printf 'Exception: mod\350le\n' >&2; exit 1")
    with pytest.raises(InputError, match="Exception: mod\ufffdle"):
        try_decoder(latin1, 5)


def test_failure_reason():
    trace = (
        "Use of uninitialized value at /x.pl line 3.\nERROR: Cannot find mkcls at /opt/x/train-model.perl line 491.\n"
    )
    assert failure_reason(trace + "Exit code: 2\n") == "ERROR: Cannot find mkcls"
    assert failure_reason("one\ntwo\n\n") == "two"
    assert failure_reason("") == ""


def test_a_failure_is_reported_with_the_log(tmp_path, capsys):
    log = tmp_path / "logs/program.log"
    bad = script(tmp_path / "bad.pl", "echo step 1; echo 'ERROR: no model at /opt/x.perl line 7.' >&2; exit 3")
    with pytest.raises(InputError, match=rf"^bad.pl: ended with status 3: ERROR: no model; full output in {log}$"):
        run([bad, "--option"], log, tmp_path)
    assert capsys.readouterr().err == f"running bad.pl; command and output in {log}\n"
    assert log.read_text() == f"$ {bad} --option\nstep 1\nERROR: no model at /opt/x.perl line 7.\n"
    with pytest.raises(InputError, match="SIGKILL: no output"):
        run([script(tmp_path / "killed", "kill -9 $$")], log, tmp_path)
    with pytest.raises(InputError, match="cannot be run: No such file"):
        run([tmp_path / "none"], log, tmp_path)


def test_a_program_ends_with_all_that_it_called(tmp_path):
    started = tmp_path / "started"
    slow = script(tmp_path / "slow", f"sleep 100 & echo $! > {started}; wait")
    code = (
        "from pathlib import Path\nfrom rnnsmt.moses.installation import run\n"
        "from rnnsmt.base.resuming import catch_signals\n"
        f"catch_signals()\nrun(['{slow}'], Path('{tmp_path}/log'), Path('{tmp_path}'))"
    )
    stage = subprocess.Popen([sys.executable, "-c", code])
    while not started.exists() or not started.read_text().strip():
        time.sleep(0.05)
    stage.send_signal(signal.SIGTERM)
    assert stage.wait(300) != 0
    until_gone(int(started.read_text()))


def until_gone(process: int) -> None:
    """Wait until a process has ended or is a zombie."""
    for _ in range(6000):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except FileNotFoundError:
            return
        time.sleep(0.05)
    raise AssertionError(f"{process} lives on")


def test_alignment(home, tmp_path):
    for side, lines in (("en", ["a b", "b a c", "c", "a c"]), ("fr", ["x y", "y x z", "z", "x z"])):
        (tmp_path / side).write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    common = ["--source", f"{tmp_path}/en", "--target", f"{tmp_path}/fr", "--moses-home", str(home)]
    common += ["--program-log", f"{tmp_path}/log"]
    same = [*common, "--aligner", "fast_align", "--heuristic", "intersection", "--output", f"{tmp_path}/model4.gz"]
    assert main(["moses", "align", *same]) == 0
    for aligner in ("model4", "fast_align"):
        assert main(["moses", "align", *common, "--aligner", aligner, "--output", f"{tmp_path}/{aligner}.gz"]) == 0
        with gzip.open(tmp_path / f"{aligner}.gz", "rt") as links:
            assert len(links.read().splitlines()) == 4
    with gzip.open(tmp_path / "fast_align.gz", "rt") as links:
        assert links.read() == "0-0 1-1\n0-0 1-1 2-2\n0-0\n0-0 1-1\n"
    (tmp_path / "fr").write_text("x\n")
    assert main(["moses", "align", *common, "--output", f"{tmp_path}/no"]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["en", "fast_align.gz", "fr", "log", "model4.gz"]


@pytest.mark.parametrize(("smoothing", "alignments"), [("none", ["one", "two"]), ("kneser-ney", ["one"])])
def test_training(home, tmp_path, smoothing, alignments):
    """Tables from one or two alignments of a text equal those of rnnsmt."""
    (tmp_path / "en").write_text("a b c\nb a\n" * 5)
    (tmp_path / "fr").write_text("x y z\ny x\n" * 5)
    (tmp_path / "one").write_text("0-0 1-1 2-2\n0-0 1-1\n" * 5)
    (tmp_path / "two").write_text("0-0 1-1\n0-1 1-0\n" * 5)
    texts = ["--source", *[f"{tmp_path}/en"] * len(alignments), "--target", *[f"{tmp_path}/fr"] * len(alignments)]
    texts += ["--alignment", *(f"{tmp_path}/{name}" for name in alignments)]
    programs = ["--moses-home", str(home), "--program-log", f"{tmp_path}/log"]
    assert main(["moses", "train", *texts, *programs, "--smoothing", smoothing, "--output-dir", f"{tmp_path}/m"]) == 0
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == [
        "lex.e2f", "lex.f2e", "phrase-table.gz", "reordering-table.wbe-msd-bidirectional-fe.gz",
    ]  # fmt: skip
    x, pairs, scores = (f"{tmp_path}/{name}" for name in ("x.parquet", "pairs", "scores"))
    lexical = ["--lex-e2f", f"{tmp_path}/m/lex.e2f", "--lex-f2e", f"{tmp_path}/m/lex.f2e", "--smoothing", smoothing]
    for command in (
        ["extract", *texts, "--output", x, "--output-pairs", pairs],
        ["score", "--extract", x, "--pairs", pairs, *lexical, "--output", scores],
        ["export", "--pairs", pairs, "--scores", scores, "--output-phrase-table", f"{tmp_path}/t.gz"],
    ):
        assert main(["phrases", *command]) == 0
    tables = [gzip.decompress((tmp_path / name).read_bytes()) for name in ("m/phrase-table.gz", "t.gz")]
    assert tables[0] == tables[1]


def train(home, directory, links, source="a b\nc\n\nd e f\n", target="x\ny z\nw\nu v w\n"):
    """Run ``moses train`` on a text of four lines."""
    for name, content in (("en", source), ("fr", target), ("links", links)):
        (directory / name).write_text(content)
    texts = ["--source", f"{directory}/en", "--target", f"{directory}/fr", "--alignment", f"{directory}/links"]
    programs = ["--moses-home", str(home), "--program-log", f"{directory}/log", "--output-dir", f"{directory}/model"]
    return main(["moses", "train", *texts, *programs])


def test_training_reads_every_link_once_and_sorted(home, tmp_path, monkeypatch):
    read = []

    def run_and_note(command, log, work, **options):
        read.append((work / "model/aligned.links").read_text())
        return run(command, log, work, **options)

    monkeypatch.setattr(training, "run", run_and_note)
    assert train(home, tmp_path, "1-0 0-0 1-0\n0-1\n\n2-2 0-0\n") == 0
    assert read == ["0-0 1-0\n0-1\n\n0-0 2-2\n"]


@pytest.mark.parametrize(
    ("links", "says"),
    [
        ("0-0\n0-0\n\n", "has 3 lines, but the text has 4"),
        ("0-0\n0-0\n\n0-0\n0-0\n", "has 5 lines, but the text has 4"),
        ("2-0\n0-0\n\n0-0\n", "line 1: the link 2-0 points beyond the end of the source sentence, which has 2 words"),
        ("0-0\n0-2\n\n0-0\n", "line 2: the link 0-2 points beyond the end of the target sentence, which has 2 words"),
        (
            "0-0\n0-0\n0-0\n0-0\n",
            "line 3: the link 0-0 points beyond the end of the source sentence, which has 0 words",
        ),
        ("0-0\n0-0\n\n0-0 x\n", "line 4: 'x' is not a link"),
    ],
)
def test_training_checks_the_alignment(home, tmp_path, capsys, links, says):
    assert train(home, tmp_path, links) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not list(tmp_path.glob("model/*"))


def test_training_on_texts_of_different_length(home, tmp_path, capsys):
    assert train(home, tmp_path, "0-0\n", target="x\n") == 2
    assert "same number of lines" in capsys.readouterr().err


def test_training_that_failed_in_part_is_noticed(home, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FAIL_SCORE", "1")
    assert train(home, tmp_path, "0-0 1-1\n", "a b\n", "x y\n") == 2
    assert "tables are incomplete" in capsys.readouterr().err
    assert not (tmp_path / "model/phrase-table.gz").exists()


def test_decoding_writes_what_ours_does(home, model, tmp_path):
    inputs = ["--ini", f"{model}/moses.ini", "--input", f"{tmp_path}/text"]
    for name, words in (("ours", ["search"]), ("theirs", ["moses"])):
        more = ["--moses-home", str(home), "--program-log", f"{tmp_path}/log"] if name == "theirs" else []
        outputs = [f"{tmp_path}/{name}.{kind}" for kind in ("out", "details", "json")]
        options = [
            word for pair in zip(("--output", "--output-details", "--report"), outputs, strict=True) for word in pair
        ]
        assert main([*words, "decode", *inputs, *options, *more]) == 0
    assert (tmp_path / "theirs.out").read_text() == (tmp_path / "ours.out").read_text()
    details = [read_details(tmp_path / f"{name}.details", TEXT) for name in ("ours", "theirs")]
    assert details[0] == details[1]
    ours, theirs = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("ours", "theirs"))
    same = ("sentences", "words", "unknown_words", "pop_limit", "stack")
    assert ours["unknown_words"] == 1
    assert [ours[key] for key in same] == [theirs[key] for key in same]
    assert theirs["score_sum"] == pytest.approx(ours["score_sum"], abs=1e-3)


def test_what_moses_has_not(home, model, tmp_path, capsys):
    ini = MosesIni.read(model / "moses.ini")
    text = ini.text_for(model).replace(
        "[weight]", "[feature]\nCSLM name=CSLM0 path=none.safetensors\n[weight]\nCSLM0= 1"
    )
    (model / "cslm.ini").write_text(text)
    outputs = ["--output", f"{tmp_path}/o", "--output-details", f"{tmp_path}/d", "--report", f"{tmp_path}/r"]
    command = ["moses", "decode", "--ini", f"{model}/cslm.ini", "--input", f"{tmp_path}/text", *outputs]
    assert main([*command, "--moses-home", str(home), "--program-log", f"{tmp_path}/log"]) == 2
    assert "does not support networks" in capsys.readouterr().err
    (model / "cslm.ini").write_text(text.replace("CSLM", "NNJM"))
    assert main([*command, "--moses-home", str(home), "--program-log", f"{tmp_path}/log"]) == 2
    assert "does not support networks; decode with rnnsmt" in capsys.readouterr().err


@pytest.mark.slow
def test_tuning_keeps_the_last_iteration_and_resumes(home, model, tmp_path, monkeypatch, capsys):
    command = [
        "moses", "tune", "--ini", f"{model}/moses.ini", "--source", f"{tmp_path}/text", "--reference",
        f"{tmp_path}/reference", "--seed", "2", "--output-ini", f"{tmp_path}/tuned/moses.ini", "--output-history",
        f"{tmp_path}/history.json", "--checkpoint-dir", f"{tmp_path}/checkpoint", "--moses-home", str(home),
        "--program-log", f"{tmp_path}/log",
    ]  # fmt: skip
    monkeypatch.setenv("FAIL", "1")
    assert main(command) == 2
    reason = "mert-moses.pl: ended with status 1: The decoder died. CONFIG WAS -weight-overwrite; full output in "
    assert f"{reason}{tmp_path}/log" in capsys.readouterr().err
    monkeypatch.delenv("FAIL")
    assert main(command) == 0
    first, second = (
        line for line in (tmp_path / "log").read_text().splitlines() if line.startswith(f"$ {home}/scripts/")
    )
    assert "--continue" in second and "--continue" not in first
    run_again(command, tmp_path, capsys)
    history = read_json(f"{tmp_path}/history.json")
    bleu = [one["dev_bleu"] for one in history["iterations"]]
    assert (history["seed"], history["dev_bleu"], len(bleu)) == (2, bleu[-1], 2)
    tuned, untuned = MosesIni.read(tmp_path / "tuned/moses.ini"), MosesIni.read(model / "moses.ini")
    (factor,) = history["averaged"]
    assert factor == 2
    assert tuned.weights["LM0"] == pytest.approx([factor * weight for weight in untuned.weights["LM0"]])
    assert [feature.kind for feature in tuned.features] == [feature.kind for feature in untuned.features]
    assert len(history["features"]) == len(history["weights"]) and np.isfinite(history["weights"]).all()
    paths = [tuned.file_of(feature).resolve() for feature in tuned.features if "path" in feature.options]
    assert paths == [untuned.file_of(feature).resolve() for feature in untuned.features if "path" in feature.options]


def run_again(command: list[str], directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Check that a finished tuning run writes only its files again, and starts again with changed settings."""
    before = (directory / "history.json").read_bytes()
    (directory / "history.json").unlink()
    assert main(command) == 0
    assert (directory / "history.json").read_bytes() == before
    log = (directory / "log").read_text()
    assert main([*command, "--nbest", "50"]) == 0
    assert "in this directory had different settings; starting again; changed: nbest" in capsys.readouterr().err
    assert "--continue" not in (directory / "log").read_text()[len(log) :]
    assert main(command) == 0
    assert (directory / "history.json").read_bytes() == before
