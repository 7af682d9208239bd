"""The stage ``tuning tune`` with the search on a tiny model."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rnnsmt
from rnnsmt.base.errors import InputError
from rnnsmt.base.reading import read_lines
from rnnsmt.base.resuming import SAVED
from rnnsmt.base.writing import write_lines
from rnnsmt.cli import main
from rnnsmt.formats.ini import MosesIni
from rnnsmt.search import model as model_of_search
from rnnsmt.tuning import runs

from .tiny_model import INI, write_model, write_texts


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """Create a model with a dev set."""
    directory = tmp_path_factory.mktemp("model")
    write_model(directory)
    write_texts(directory)
    return directory


def command(model: Path, out: Path, **changed) -> list[str]:
    options = {"ini": model / "moses.ini", "source": model / "dev.en", "reference": model / "dev.fr",
               "output-ini": out / "tuned" / "moses.ini", "output-history": out / "tuned" / "history.json",
               "checkpoint-dir": out / "checkpoint", "seed": 1, "nbest": 20, "iterations": 6,
               "pop-limit": 50, "stack": 50, "restarts": 4, "optimizer": "mert-averaged"}  # fmt: skip
    options |= {name.replace("_", "-"): value for name, value in changed.items()}
    return ["tuning", "tune", *(f"--{name}={value}" for name, value in options.items() if value is not None)]


def outputs(out: Path) -> list[bytes]:
    return [(out / "tuned" / name).read_bytes() for name in ("moses.ini", "history.json")]


def test_tunes_and_reports(model, tmp_path, capsys):
    assert main(command(model, tmp_path)) == 0
    history = json.loads((tmp_path / "tuned" / "history.json").read_text())
    scores = [iteration["dev_bleu"] for iteration in history["iterations"]]
    assert history["dev_bleu"] > scores[0] + 3
    assert "UnknownWordPenalty0:0" not in history["features"]
    tuned = MosesIni.read(tmp_path / "tuned" / "moses.ini")
    for name, weight in zip(history["features"], history["weights"], strict=True):
        feature, _, place = name.partition(":")
        assert tuned.weights[feature][int(place)] == pytest.approx(weight, rel=1e-9)
    assert tuned.weights["UnknownWordPenalty0"] == [1.0]
    assert sum(abs(w) for name, ws in tuned.weights.items() if name[0] != "U" for w in ws) == pytest.approx(1)
    assert tuned.file_of(tuned.features[3]).exists()
    log = capsys.readouterr().err
    assert "run 1 of 1, seed 1\n" in log
    assert "run 1 of 1, iteration 1 of 6: dev BLEU = " in log


def test_python_and_the_command_give_the_same(model, tmp_path):
    """Lists and paths, several runs and one, with outputs and without; optimising on n-best lists too."""
    assert main(command(model, tmp_path, iterations=2)) == 0
    source, reference = ((model / name).read_text().splitlines() for name in ("dev.en", "dev.fr"))
    settings = {"nbest": 20, "iterations": 2, "pop_limit": 50, "stack": 50, "restarts": 4}
    paths = tmp_path / "a.ini", tmp_path / "a.json"
    ini = model / "moses.ini"
    runs = rnnsmt.tuning.tune(
        ini, source, [reference], [*paths[:1], tmp_path / "b.ini"], [*paths[1:], tmp_path / "b.json"], seed=[1, 2],
        optimizer="mert-averaged", **settings,
    )  # fmt: skip
    history = json.loads(paths[1].read_text())
    assert history == runs[0].history == json.loads(outputs(tmp_path)[1])
    assert list(MosesIni.read(paths[0]).weights.values()) == list(
        MosesIni.read(tmp_path / "tuned" / "moses.ini").weights.values()
    )
    assert runs[0].bleu == history["dev_bleu"] and list(runs[0].weights.values()) == history["weights"]
    assert runs.figures["dev BLEU"] == (runs[0].bleu + runs[1].bleu) / 2
    with pytest.raises(InputError, match=r"^optimizer 'pro': must be mert, mert-averaged, mira, or the name of"):
        rnnsmt.tuning.tune(ini, source, reference, optimizer="pro")
    with pytest.raises(InputError, match=r"^reference 2 ends after line 1, but source has more lines"):
        rnnsmt.tuning.tune(ini, source, [reference, ["a"]])


def test_former_names_are_refused_with_the_new_one(capsys):
    for former, new in (("mert", "tune"), ("optimise", "optimize")):
        assert main(["tuning", former, "--ini", "moses.ini"]) == 2
        assert f"rnnsmt tuning {new}" in capsys.readouterr().err


def test_same_command_same_bytes_whatever_the_threads(model, tmp_path):
    assert main(command(model, tmp_path / "a")) == 0
    assert main(command(model, tmp_path / "b", threads=2)) == 0
    before = outputs(tmp_path / "a")
    assert outputs(tmp_path / "b") == before
    assert main(command(model, tmp_path / "a")) == 0
    assert outputs(tmp_path / "a") == before


def test_mert_as_moses_ends_by_itself_and_is_the_default(model, tmp_path):
    assert main(command(model, tmp_path / "a", optimizer=None, iterations=None)) == 0
    history = json.loads((tmp_path / "a" / "tuned" / "history.json").read_text())
    assert len(history["iterations"]) < 25 and history["averaged"] == []
    assert main(command(model, tmp_path / "b", optimizer="mert", iterations=25, threads=2)) == 0
    assert outputs(tmp_path / "b") == outputs(tmp_path / "a")


def test_batch_mira(model, tmp_path):
    """Results of MIRA depend on the seed and not on the threads; an interrupted run resumes."""
    changed = {"optimizer": "mira", "iterations": 4}
    assert main(command(model, tmp_path / "a", **changed)) == 0
    history = json.loads((tmp_path / "a" / "tuned" / "history.json").read_text())
    assert history["dev_bleu"] > history["iterations"][0]["dev_bleu"] + 2
    assert main(command(model, tmp_path / "b", threads=2, **changed | {"iterations": 2})) == 0
    assert main(command(model, tmp_path / "b", threads=2, **changed)) == 0
    assert outputs(tmp_path / "b") == outputs(tmp_path / "a")
    assert main(command(model, tmp_path / "c", seed=2, **changed)) == 0
    assert outputs(tmp_path / "c") != outputs(tmp_path / "a")


def test_kill_and_the_same_command_again(model, tmp_path):
    assert main(command(model, tmp_path / "a")) == 0
    arguments = [sys.executable, "-m", "rnnsmt", *command(model, tmp_path / "b")]
    process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
    state = tmp_path / "b" / "checkpoint" / "checkpoint.json"
    until = time.monotonic() + 120
    while process.poll() is None and not state.exists() and time.monotonic() < until:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert main(command(model, tmp_path / "b")) == 0
    assert outputs(tmp_path / "b") == outputs(tmp_path / "a")


def of_both(model: Path, out: Path, **changed) -> list[str]:
    """Return the command for runs with seeds 1 and 2."""
    separate = ("--seed", "--output-ini", "--output-history", "--checkpoint-dir")
    kept = [text for text in command(model, out, **changed) if not text.startswith(separate)]
    directories = [out / "one", out / "two"]
    return [
        *kept, "--seed", "1", "2", "--checkpoint-dir", *(str(directory / "checkpoint") for directory in directories),
        "--output-ini", *(str(directory / "tuned" / "moses.ini") for directory in directories),
        "--output-history", *(str(directory / "tuned" / "history.json") for directory in directories),
    ]  # fmt: skip


@pytest.fixture
def alone(model, tmp_path) -> list[list[bytes]]:
    """Return the outputs of separate runs with seeds 1 and 2."""
    for seed in (1, 2):
        assert main(command(model, tmp_path / f"alone{seed}", seed=seed)) == 0
    return [outputs(tmp_path / f"alone{seed}") for seed in (1, 2)]


def test_several_runs_end_as_each_alone(model, tmp_path, alone, monkeypatch, capsys):
    decodings = []
    search = runs.decode
    monkeypatch.setattr(runs, "decode", lambda *args: decodings.append(1) or search(*args))
    assert main(of_both(model, tmp_path)) == 0
    assert [outputs(tmp_path / name) for name in ("one", "two")] == alone
    assert alone[0] != alone[1]
    iterations = sum(len(json.loads(history)["iterations"]) for _, history in alone)
    assert len(decodings) == iterations - 1 + 2  # the first one is shared; the mean weights of both runs are decoded
    assert "run 2 of 2, seed 2" in capsys.readouterr().err


def test_runs_of_several_models_end_as_each_alone(model, tmp_path, monkeypatch, capsys):
    """Three runs of two models give the results of separate runs, and each model is loaded once."""
    other = tmp_path / "other"
    shutil.copytree(model, other)
    lines = list(read_lines(other / "phrase-table.gz"))
    write_lines(other / "phrase-table.gz", lines[::2])
    directories = [model, other, model]
    alone = []
    for seed, directory in enumerate(directories, 1):
        out = tmp_path / f"alone{seed}"
        assert main(command(model, out, ini=directory / "moses.ini", model_dir=directory, seed=seed)) == 0
        alone.append(outputs(out)[1])
    separate = ("--ini", "--seed", "--output-ini", "--output-history", "--checkpoint-dir")
    kept = [text for text in command(model, tmp_path) if not text.startswith(separate)]
    runs = [tmp_path / name for name in ("one", "two", "three")]
    loaded = []
    load = model_of_search.load_model
    monkeypatch.setattr(model_of_search, "load_model", lambda *args: loaded.append(1) or load(*args))
    together = [
        *kept, "--seed", "1", "2", "3", "--checkpoint-dir", *(str(run / "checkpoint") for run in runs),
        "--ini", *(str(directory / "moses.ini") for directory in directories), "--model-dir", *map(str, directories),
        "--output-ini", *(str(run / "tuned" / "moses.ini") for run in runs),
        "--output-history", *(str(run / "tuned" / "history.json") for run in runs),
    ]  # fmt: skip
    assert main(together) == 0
    assert [outputs(run)[1] for run in runs] == alone
    assert len(loaded) == 2
    tuned = MosesIni.read(runs[1] / "tuned" / "moses.ini")
    table = next(feature for feature in tuned.features if feature.kind == "PhraseDictionaryMemory")
    assert tuned.file_of(table).resolve() == (other / "phrase-table.gz").resolve()
    capsys.readouterr()
    place = together.index("--ini")
    assert main([*together[: place + 3], *together[place + 4 :]]) == 2
    assert "--ini: 2 given; specify one, or one for each of the 3 runs" in capsys.readouterr().err


def test_a_time_limit_requires_a_checkpoint(model):
    with pytest.raises(rnnsmt.InputError, match="time_limit requires checkpoint_dir"):
        rnnsmt.tuning.tune(model / "moses.ini", model / "dev.en", model / "dev.fr", time_limit=9)


def test_several_runs_stop_before_the_time_limit_and_resume(model, tmp_path, alone):
    codes = []
    while not codes or codes[-1] != 0:
        try:
            codes.append(main(of_both(model, tmp_path, time_limit=1e-6)))
        except SystemExit as stopped:
            codes.append(stopped.code)
        assert codes[-1] in (0, SAVED)
    assert len(codes) == sum(len(json.loads(history)["iterations"]) + 1 for _, history in alone)
    assert [outputs(tmp_path / name) for name in ("one", "two")] == alone


def test_an_interrupted_run_refuses_before_a_finished_one_starts_over(model, tmp_path, capsys):
    assert main(of_both(model, tmp_path)) == 0
    (tmp_path / "two" / "checkpoint" / "finished.json").unlink()  # as if it had been interrupted
    before = [path.read_bytes() for path in sorted((tmp_path / "one" / "checkpoint").iterdir())]
    assert main(of_both(model, tmp_path, restarts=2)) == 2
    assert "--restarts (was 4, is 2)" in capsys.readouterr().err
    assert [path.read_bytes() for path in sorted((tmp_path / "one" / "checkpoint").iterdir())] == before


def test_filtered_tables_from_another_directory(model, tmp_path, capsys):
    directory = tmp_path / "filtered"
    directory.mkdir()
    (directory / "phrase-table.gz").write_bytes((model / "phrase-table.gz").read_bytes())
    assert main(command(model, tmp_path / "a")) == 0
    assert main(command(model, tmp_path / "b", model_dir=directory)) == 0
    assert outputs(tmp_path / "b")[1] == outputs(tmp_path / "a")[1]


def test_resumes_with_other_path_names(model, tmp_path, monkeypatch):
    """A run resumes if the same files have other path names, or with another number of iterations."""
    assert main(command(model, tmp_path / "whole")) == 0
    assert main(command(model, tmp_path / "b", iterations=2)) == 0
    (tmp_path / "b" / "checkpoint" / "finished.json").unlink()  # as if it had been interrupted
    monkeypatch.chdir(model)
    here = {"ini": "moses.ini", "source": "../" + model.name + "/dev.en", "reference": "dev.fr"}
    assert main(command(model, tmp_path / "b", **here)) == 0
    assert outputs(tmp_path / "b") == outputs(tmp_path / "whole")


def test_a_finished_run_is_extended_with_more_iterations(model, tmp_path, capsys):
    assert main(command(model, tmp_path / "whole")) == 0
    assert main(command(model, tmp_path / "b", iterations=2)) == 0
    assert main(command(model, tmp_path / "b")) == 0
    assert "resuming after iteration 2" in capsys.readouterr().err
    assert outputs(tmp_path / "b") == outputs(tmp_path / "whole")


def test_unknown_words_and_empty_sentences(model, tmp_path):
    source, reference = (model / "dev.en").read_text(), (model / "dev.fr").read_text()
    (tmp_path / "dev.en").write_text(source + "s1 new s2\n\n")
    (tmp_path / "dev.fr").write_text(reference + "t1a new t2a\n\n")
    assert main(command(model, tmp_path, source=tmp_path / "dev.en", reference=tmp_path / "dev.fr")) == 0


# Invalid input


def refused(arguments: list[str], out: Path, capsys, *parts: str) -> None:
    """Check for exit code 2, an error of one line with these parts, and no output."""
    assert main(arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("rnnsmt tuning tune: error: ")
    for part in parts:
        assert part in error
    assert not (out / "tuned").exists()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": 2}, "--seed"),
        ({"nbest": 10}, "--nbest"),
        ({"pop_limit": 40}, "--pop-limit"),
        ({"restarts": 1}, "--restarts"),
        ({"optimizer": "mira"}, "--optimizer"),
    ],
)
def test_a_checkpoint_of_other_options_is_refused(model, tmp_path, capsys, changed, said):
    assert main(command(model, tmp_path, iterations=1)) == 0
    for path in (tmp_path / "tuned").iterdir():
        path.unlink()
    (tmp_path / "tuned").rmdir()
    changed = {"iterations": 1, **changed}
    (tmp_path / "checkpoint" / "finished.json").rename(tmp_path / "finished")  # as if it had been interrupted
    refused(command(model, tmp_path, **changed), tmp_path, capsys, f"changed: {said} (was ", "to start over")
    (tmp_path / "finished").rename(tmp_path / "checkpoint" / "finished.json")
    assert main(command(model, tmp_path, **changed)) == 0
    assert "the finished run in this directory had different settings; starting again" in capsys.readouterr().err


def test_a_checkpoint_of_other_text_is_refused(model, tmp_path, capsys):
    source = tmp_path / "dev.en"
    source.write_text((model / "dev.en").read_text())
    ini = tmp_path / "moses.ini"
    for name in ("phrase-table.gz", "reordering-table.gz", "lm.arpa"):
        (tmp_path / name).write_bytes((model / name).read_bytes())
    ini.write_text(INI)
    assert main(command(model, tmp_path, source=source, ini=ini)) == 0
    (tmp_path / "tuned").rename(tmp_path / "before")
    (tmp_path / "checkpoint" / "finished.json").unlink()
    source.write_text(source.read_text().replace("s1", "s2"))
    ini.write_text(INI.replace("LM0= 0.5", "LM0= 0.4"))
    refused(command(model, tmp_path, source=source, ini=ini), tmp_path, capsys, "changed: --ini, --source;")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"source": "missing"}, "missing: no such file"),
        ({"reference": "missing"}, "missing: no such file"),
        ({"ini": "missing.ini"}, "missing.ini: no such file"),
    ],
)
def test_bad_options_are_refused(model, tmp_path, capsys, changed, said):
    refused(command(model, tmp_path, **changed), tmp_path, capsys, said)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--seed", "1", "2"], "specify one value of each for each run"),
        (["--checkpoint-dir", "checkpoint", "x/../checkpoint"], "checkpoint: used twice"),
        (["--output-ini", "tuned/a", "tuned/a"], "a: used twice"),
    ],
)
def test_bad_options_of_several_runs_are_refused(model, tmp_path, capsys, more, said, monkeypatch):
    """A list option that is given again has the values of both."""
    monkeypatch.chdir(tmp_path)
    refused([*command(model, tmp_path), *more], tmp_path, capsys, said)


@pytest.mark.parametrize(
    ("name", "least"),
    [("nbest", 2), ("iterations", 1), ("pop_limit", 1), ("stack", 1), ("cslm_cells", 1), ("seed", 0)],
)
def test_numbers_out_of_range(model, tmp_path, capsys, name, least):
    with pytest.raises(SystemExit, match="2"):
        main(command(model, tmp_path, **{name: least - 1}))
    message = f"--{name.replace('_', '-')}: {least - 1}: must be at least {least}"
    assert message in capsys.readouterr().err


def test_the_ini_is_not_overwritten(model, tmp_path, capsys):
    refused(command(model, tmp_path, output_ini=model / "moses.ini"), tmp_path, capsys, "a different name")
    assert (model / "moses.ini").read_text() == INI


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("reference", b"t1a t2a\n", "has more lines"),
        ("reference", b"\n" * 30, "all 30 lines are empty"),
        ("reference", b"\xff\n" * 30, "line 1: not UTF-8"),
        ("reference", b"q q q q q\n" * 30, "shares a 1-gram with its reference, so BLEU is 0"),
        ("source", b"", "has more lines"),
        ("source", b"\n" * 30, "all 30 lines are empty"),
        ("source", b"new\n" * 30, "is constant on every n-best list"),
    ],
)
def test_bad_text_is_refused(model, tmp_path, capsys, name, content, said):
    path = tmp_path / "text"
    path.write_bytes(content)
    changed = {name: path}
    if content.startswith(b"new"):
        (tmp_path / "ref").write_text("a new b c d\n" * 30)
        changed["reference"] = tmp_path / "ref"
        said = "BLEU is 0"
    refused(command(model, tmp_path, **changed), tmp_path, capsys, said)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("LM0= 0.5\n", "", "LM0"),
        ("0.2 0.2 0.2 0.2", "0.2 0.2", "TranslationModel0"),
        ("LM0= 0.5", "LM0= half", "LM0"),
        ("lm.arpa", "other.arpa", "the file of LM0 is missing"),
        ("LM0= 0.5", "LM0= 1e300", "a weight of LM0 is larger than"),
        (INI[INI.index("\nWordPenalty0=") :], "\nWordPenalty0= 0\nPhrasePenalty0= 0\nTranslationModel0= 0 0 0 0\n"
         "LexicalReordering0= 0 0 0 0 0 0\nDistortion0= 0\nLM0= 0\n", "all weights are 0"),
    ],
)  # fmt: skip
def test_bad_models_are_refused(model, tmp_path, capsys, old, new, said):
    for name in ("phrase-table.gz", "reordering-table.gz", "lm.arpa"):
        (tmp_path / name).write_bytes((model / name).read_bytes())
    (tmp_path / "moses.ini").write_text(INI.replace(old, new))
    refused(command(model, tmp_path, ini=tmp_path / "moses.ini"), tmp_path, capsys, said)
