"""The Python interface: from sentences to a tuned system, files and lists, invalid arguments."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import rnnsmt
from rnnsmt.base.errors import InputError
from rnnsmt.cli import main
from rnnsmt.cslm import CslmSettings
from rnnsmt.networks.training import Training
from rnnsmt.nnjm import JointSettings
from rnnsmt.rnn import RnnSettings

from .phrase_store import STORE, VOCABULARIES, make_pairs

OUTPUTS = ("model.safetensors", "history.json", "checkpoint")


def test_from_sentences_to_a_tuned_system(tmp_path):
    """Every package on a toy corpus; what one function returns is an argument of the next one."""
    english, french = (
        ["the house", "the sea", "a house", "a sea"] * 5,
        ["la maison", "la mer", "une maison", "une mer"] * 5,
    )
    directions = [
        rnnsmt.align.words(english, french, direction=direction, aligner="fast_align")
        for direction in ("forward", "reverse")
    ]
    alignment = rnnsmt.align.symmetrize(*directions)
    assert alignment[0] == [(0, 0), (1, 1)]
    table, reordering = tables_of(english, french, tmp_path)
    lm = rnnsmt.lm.estimate(french, tmp_path / "lm.arpa.gz", order=2)
    vocabularies = rnnsmt.networks.prepare("rnn", french, tmp_path / "vocabularies", source=english)
    outputs = [tmp_path / name for name in OUTPUTS]
    inputs = tmp_path / STORE, vocabularies
    network = rnnsmt.networks.train("rnn", inputs, *outputs, settings=RnnSettings.preset("demo", updates=3, hidden=8))
    column = {"name": "rnn", "vocabularies": vocabularies, "model": network}
    scores = rnnsmt.phrases.column(tmp_path / STORE, tmp_path / "scores", **column)
    assert len(scores.values) == 8 and max(scores.values) < 0
    augmented = rnnsmt.phrases.augment([[scores]], tmp_path / "augmented.gz", phrase_table=table)
    files = {"phrase_table": augmented, "reordering_table": reordering, "lm": lm, "lm_order": 2, "num_features": 5}
    ini = rnnsmt.moses.write_ini(tmp_path / "moses.ini", **files)
    assert list(rnnsmt.search.decode(ini, ["a house", ""])) == ["une maison", ""]
    tuned = tmp_path / "mine/moses.ini"
    [run] = rnnsmt.tuning.tune(ini, ["the house a sea"], ["la maison une mer"], tuned, iterations=1)
    assert len(run.weights) > 10
    rnnsmt.translation.describe(tuned.parent, name="mine", source_lang="en", target_lang="fr")
    assert rnnsmt.load(tuned.parent).translate("a house") == "une maison"
    assert round(bleu(["la maison bleue et grande"], ["la maison bleue et belle"]).bleu, 2) == 66.87


def bleu(hypothesis: object, reference: object) -> object:
    """Return BLEU of one output."""
    [score] = rnnsmt.evaluation.score(hypothesis, reference)  # type: ignore[arg-type]
    return score.bleu


def test_files_and_lists_are_the_same(tmp_path):
    path = tmp_path / "text"
    path.write_text("la maison bleue et grande\nune mer\n")
    lines = ["la maison bleue et grande", "une mer"]
    reference = ["la maison bleue et belle", "la mer"]
    assert bleu(path, reference) == bleu(lines, reference)


def test_mistakes_are_input_errors(tmp_path):
    with pytest.raises(InputError, match="line break"):
        bleu(["a\nb"], ["a b"])
    with pytest.raises(InputError, match="fast_align"):
        rnnsmt.align.words(["a"], ["b"], direction="forward", aligner="giza")
    with pytest.raises(InputError, match=r"unknown .*'unk'.*: must be class or word"):
        rnnsmt.moses.write_ini(tmp_path / "moses.ini", network={"cslm": "m"}, unknown={"cslm": "unk"})


def test_texts_are_any_iterable_of_strings():
    lines, reference = ["la maison bleue et grande", "une mer"], ["la maison bleue et belle", "la mer"]
    score = bleu(lines, reference)
    assert bleu((line for line in lines), iter(reference)) == score
    assert bleu(np.array(lines), tuple(reference)) == score


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a b", "hypothesis b'a b': must be a path, a list of Path objects, or one or several lists of sentences"),
        (None, "hypothesis None: must be a path, a list of Path objects, or one or several lists of sentences"),
        ([b"a b"], "hypothesis 1: must be a path or a list of sentences, not bytes"),
        (["a", float("nan")], "hypothesis: sentence 2 must be a string, not float"),
        ([["a", ["b"]]], "hypothesis 1: sentence 2 must be a string, not list"),
        (["\udcff"], "hypothesis: sentence 1 is not valid Unicode; decode the text as UTF-8"),
    ],
)
def test_what_is_not_a_text(text, message):
    with pytest.raises(InputError) as error:
        bleu(text, ["a b"])
    assert str(error.value) == message


def test_messages_name_the_arguments():
    with pytest.raises(InputError, match=r"^reference ends after line 1, but hypothesis has more lines"):
        bleu(["a", "b"], ["a"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda path: rnnsmt.align.words(["a"], ["b"], direction="forward", threads=0),
            "threads 0: must be at least 1",
        ),
        (
            lambda path: rnnsmt.phrases.extract(["a"], ["b"], [[(0, 0)]], path / "x", max_length=9),
            "max_length 9: must be at most 8",
        ),
        (
            lambda path: rnnsmt.phrases.extract(["a"], ["b"], ["0-0"], path / "x"),
            "alignment: must be a path, or a list",
        ),
        (
            lambda path: rnnsmt.networks.train("rnn", [path, path], *OUTPUTS, device="gpu"),
            "device 'gpu': must be auto, cpu or cuda",
        ),
        (lambda path: rnnsmt.networks.train("rnn", [path, path], *OUTPUTS, seed=-1), "seed -1: must be at least 0"),
        (
            lambda path: rnnsmt.networks.train("rnn", [path, path], *OUTPUTS, settings="demo"),
            "settings 'demo': must be TrainingSettings",
        ),
        (
            lambda path: rnnsmt.networks.train("rnn", path, *OUTPUTS, settings=CslmSettings.preset("demo")),
            "data: rnn requires 2: phrase pairs",
        ),
        (
            lambda path: rnnsmt.networks.train("rnn", [path] * 2, *OUTPUTS, settings=CslmSettings.preset("demo")),
            "must be RnnSettings for the network rnn",
        ),
        (
            lambda path: rnnsmt.networks.prepare("rnn", ["b"], path, source=["a"], vocab_size=2),
            "vocab_size 2: must be an integer from 3",
        ),
        (
            lambda path: rnnsmt.phrases.column(path, name="wp", shard=(3, 2)),
            r"shard \(3, 2\): must be \(K, N\) with K from",
        ),
        (lambda path: rnnsmt.load(None), "directory None: must be a path"),
        (lambda path: rnnsmt.load(path, threads="2"), "threads '2': must be an integer"),
        (lambda path: rnnsmt.networks.prepare("rnn", ["b"], path), "^source: is required for rnn"),
        (
            lambda path: rnnsmt.networks.prepare("seq2seq", ["b"], path, source=["a"], vocab_size=(9, 9, 9)),
            "vocab_size: 3 given, but there are two vocabularies",
        ),
        (
            lambda path: rnnsmt.networks.prepare("nnjm", ["b"], path, source=["a"], alignment=["0-0"]),
            "alignment: must be a path, or a list of links",
        ),
        (lambda path: rnnsmt.tuning.tune("ini", ["a"], ["b"], path / "ini", iterations=0), "iterations 0: must be"),
        (lambda path: rnnsmt.tuning.tune("ini", ["a"], ["b"], path), "is a directory"),
    ],
)
def test_arguments_out_of_range(tmp_path, call, message):
    with pytest.raises(InputError, match=message):
        call(tmp_path)


def tables_of(source: list[str], target: list[str], directory: Path) -> tuple[Path, Path]:
    """Write phrase table and reordering table of pairs of two words, which are aligned monotonically."""
    text = source, target, [[(0, 0), (1, 1)]] * len(source)
    lexical = rnnsmt.phrases.lexical(*text, directory / "lex.e2f", directory / "lex.f2e")
    extracted = rnnsmt.phrases.extract(*text, directory / "pairs.parquet", directory / STORE), directory / STORE
    files = lexical.e2f, lexical.f2e, directory / "table.scores"
    scores = rnnsmt.phrases.score(*extracted, *files, smoothing="none")
    reordering = rnnsmt.phrases.reordering(*extracted, directory / "reordering.scores")
    more = {"reordering": reordering, "output_reordering_table": directory / "reordering.gz"}
    table, reordering_table = rnnsmt.phrases.export(extracted[1], scores, directory / "table.gz", **more)
    return table, reordering_table


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Set Python's SIGINT handler, since background jobs of a shell ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_session_continues_after_an_interruption(tmp_path, monkeypatch):
    """After KeyboardInterrupt, a kept traceback does not hold the lock, and the second call resumes."""
    source, target = (
        ["the house", "the sea", "a house", "a sea"] * 5,
        ["la maison", "la mer", "une maison", "une mer"] * 5,
    )
    make_pairs(tmp_path, zip(source, target, strict=True), "\n".join(source), "\n".join(target))
    arguments = "rnn", [tmp_path / STORE, tmp_path / VOCABULARIES], *(tmp_path / name for name in OUTPUTS)
    settings = RnnSettings.preset("demo", updates=4, hidden=8)
    step, resumed = Training.step, []

    def interrupted(trainer):
        step(trainer)
        if trainer.update == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Training, "step", interrupted)
    with pytest.raises(KeyboardInterrupt) as kept:
        rnnsmt.networks.train(*arguments, settings=settings)
    monkeypatch.setattr(Training, "step", lambda trainer: (resumed.append(trainer.update), step(trainer)))
    with (tmp_path / OUTPUTS[2] / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails immediately where the second call would wait
    assert rnnsmt.networks.train(*arguments, settings=settings).path.exists()
    assert resumed == [2, 3]
    assert rnnsmt.networks.train(*arguments, settings=settings).figures["updates"] == 4
    assert resumed == [2, 3], "a finished training does not train again"
    assert kept.traceback


def test_trains_outside_of_the_main_thread(tmp_path):
    source, target = ["the house", "the sea"] * 9, ["la maison", "la mer"] * 9
    make_pairs(tmp_path, zip(source, target, strict=True), "\n".join(source), "\n".join(target))
    arguments = "rnn", [tmp_path / STORE, tmp_path / VOCABULARIES], *(tmp_path / name for name in OUTPUTS)
    settings = RnnSettings.preset("demo", updates=1, hidden=8)
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(rnnsmt.networks.train, *arguments, settings=settings)
        assert call.result().path.exists()


def test_networks_of_the_search(tmp_path):
    """Networks equal those of the commands, and both are features of the search."""
    source, target = ["the house", "the sea", "a house"] * 9, ["la maison", "la mer", "une maison"] * 9
    links = [[(0, 0), (1, 1)]] * 27
    table, reordering = tables_of(source, target, tmp_path)
    lm = rnnsmt.lm.estimate(target, tmp_path / "lm.arpa.gz", order=2)
    words = rnnsmt.networks.prepare("cslm", target, tmp_path / "cslm", vocab_size=10).path
    small = {"epochs": 1, "hidden_1": 8}
    outputs = [words / name for name in OUTPUTS]
    cslm = rnnsmt.networks.train("cslm", words, *outputs, settings=CslmSettings.preset("demo", **small)).path
    aligned = {"source": source, "alignment": links}
    examples = rnnsmt.networks.prepare("nnjm", target, tmp_path / "nnjm", **aligned, vocab_size=10).path
    outputs = [examples / name for name in OUTPUTS]
    nnjm = rnnsmt.networks.train("nnjm", examples, *outputs, settings=JointSettings.preset("demo", **small)).path
    files = {"phrase_table": table, "reordering_table": reordering, "lm": lm, "lm_order": 2}
    ini = rnnsmt.moses.write_ini(tmp_path / "moses.ini", **files, network={"cslm": cslm, "nnjm": nnjm}).path
    assert "CSLM name=CSLM0 " in ini.read_text() and "NNJM name=NNJM0 " in ini.read_text()
    assert len(rnnsmt.search.decode(ini, ["the house", "a sea"])) == 2

    ids = tmp_path / "ids"
    text = tmp_path / "text"
    text.write_text("".join(f"{line}\n" for line in target))
    prepare = ["networks", "prepare", "--network", "cslm", "--target", str(text), "--vocab-size", "10"]
    assert main([*prepare, "--output-dir", str(ids)]) == 0
    outputs = ["--output-model", str(tmp_path / "model.safetensors"), "--output-history", str(tmp_path / "model.json")]
    options = ["--preset", "demo", "--epochs", "1", "--hidden-1", "8", "--seed", "1"]
    checkpoint = ["--checkpoint-dir", str(tmp_path / "checkpoint")]
    assert main(["networks", "train", "--network", "cslm", "--data", str(ids), *options, *outputs, *checkpoint]) == 0
    assert (tmp_path / "model.safetensors").read_bytes() == cslm.read_bytes()


def test_names_of_the_package():
    assert {"evaluation", "lm", "load", "moses", "rnn", "search", "seq2seq", "tuning"} <= set(dir(rnnsmt))


def test_is_loaded_on_first_use():
    code = (
        "import sys, rnnsmt; assert 'numpy' not in sys.modules and 'rnnsmt.align' not in sys.modules; "
        "rnnsmt.tuning.tune, rnnsmt.align.words; assert 'numba' not in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_is_printed_at_exit(tmp_path):
    """Numba keeps modules with kernels until the end; duckdb reports its objects to which they refer."""
    code = (
        "import sys, rnnsmt; texts = ['a b', 'b a'] * 9, ['x y', 'y x'] * 9; "
        "links = rnnsmt.align.words(*texts, direction='forward', aligner='fast_align'); "
        "rnnsmt.phrases.extract(*texts, links, sys.argv[1] + '/pairs'); print('end', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], check=True, capture_output=True, text=True)
    assert done.stderr == "end\n" and not done.stdout


@pytest.mark.slow
def test_types_for_the_callers_checker(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        'import rnnsmt\ntext: str = rnnsmt.load("dir").translate("a")\n'
        'links: object = rnnsmt.align.words(iter(["a"]), ["b"], direction="forward")[0]\n'
        'table = rnnsmt.phrases.score("extract", "pairs", "e2f", "f2e", "scores")\n'
        'words: object = rnnsmt.networks.prepare("rnn", ["b"], "vocabularies", source=["a"])\n'
        'settings = rnnsmt.rnn.RnnSettings.preset("demo", epochs=2)\n'
        'outputs = "model", "history", "checkpoint"\n'
        'path: object = rnnsmt.networks.train("rnn", ["pairs", "vocabularies"], *outputs, settings=settings).path\n'
        'order: object = rnnsmt.lm.estimate(iter(["a"]), "lm", prune=[0, 1]).figures["lines"]\n'
    )
    source = Path(rnnsmt.__file__).parents[1]
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path), program]
    checked = subprocess.run(
        command, check=False, env=os.environ | {"MYPYPATH": str(source)}, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout
