"""The Python interface: its doctest with all packages on a toy corpus, files and lists, invalid arguments."""

import doctest
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
from rnnsmt import api
from rnnsmt.base.io import InputError
from rnnsmt.cli import main
from rnnsmt.networks.training import Training


@pytest.mark.slow
def test_doctest():
    result = doctest.testmod(api)
    assert result.attempted >= 12
    assert not result.failed


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
        api.align(["a"], ["b"], aligner="giza")
    with pytest.raises(InputError, match="nonsense"):
        api.train_rnn("table", ["a"], ["b"], tmp_path, nonsense=1)
    with pytest.raises(InputError, match="cslm_unknown 'unk': must be class or word"):
        rnnsmt.moses.write_ini(tmp_path / "moses.ini", cslm_unknown="unk")


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
    with pytest.raises(InputError, match=r"^source is empty"):
        api.align([], [], aligner="fast_align")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda path: api.align(["a"], ["b"], threads=0), "threads 0: must be an integer from 1 to 1024"),
        (lambda path: api.extract(["a"], ["b"], [[(0, 0)]], path, max_length=9), "max_length 9: must be an integer"),
        (lambda path: api.extract(["a"], ["b"], [[(0, 0)]], path, smoothing="kn"), "smoothing 'kn': must be one of"),
        (lambda path: api.extract(["a"], ["b"], ["0-0"], path), "alignment: must be a path, or a list of links"),
        (lambda path: api.extract(["a"], ["b"], [[(0, 0)]], __file__), "is a file, not a directory"),
        (lambda path: api.train_rnn("table", ["a"], ["b"], path, device="gpu"), "device 'gpu': must be one of"),
        (lambda path: api.train_rnn("table", ["a"], ["b"], path, seed=-1), "seed -1: must be an integer"),
        (
            lambda path: api.train_rnn("table", ["a"], ["b"], path, variant="lstm"),
            "--variant lstm: must be paper or supplementary",
        ),
        (lambda path: api.train_rnn("table", ["a"], ["b"], path, epochs="two"), "--epochs two: must be a number"),
        (lambda path: api.train_rnn("table", ["a"], ["b"], path, hidden=8.5), "--hidden 8.5: must be an integer"),
        (lambda path: api.train_rnn("table", ["a"], ["b"], path, update=2), "--update 2: unknown setting"),
        (lambda path: api.train_rnn("table", ["a"], ["b"], path, vocab_size="9"), "vocab_size '9': must be an integer"),
        (
            lambda path: api.train_rnn("table", ["a"], ["b"], path, vocab_size=2),
            "vocab_size 2: must be an integer from 3",
        ),
        (lambda path: api.augment("table", api.Network(path, path), "./table"), "table: is the phrase table itself"),
    ],
)
def test_arguments_out_of_range(tmp_path, call, message):
    with pytest.raises(InputError, match=message):
        call(tmp_path)


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
    table = api.extract(source, target, [[(0, 0), (1, 1)]] * 20, tmp_path).phrases
    arguments = (table, source, target, tmp_path / "rnn", "demo")
    step, resumed = Training.step, []

    def interrupted(trainer):
        step(trainer)
        if trainer.update == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Training, "step", interrupted)
    with pytest.raises(KeyboardInterrupt) as kept:
        api.train_rnn(*arguments, updates=4, hidden=8)
    monkeypatch.setattr(Training, "step", lambda trainer: (resumed.append(trainer.update), step(trainer)))
    with (tmp_path / "rnn" / "rnn.checkpoint" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails immediately where the second call would wait
    assert api.train_rnn(*arguments, updates=4, hidden=8).model.exists()
    assert resumed == [2, 3]
    assert kept.traceback


def test_trains_outside_of_the_main_thread(tmp_path):
    source, target = ["the house", "the sea"] * 9, ["la maison", "la mer"] * 9
    table = api.extract(source, target, [[(0, 0), (1, 1)]] * 18, tmp_path).phrases
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(api.train_rnn, table, source, target, tmp_path / "rnn", "demo", updates=1, hidden=8)
        assert call.result().model.exists()


def test_networks_of_the_search(tmp_path):
    """Networks equal those of the commands, and both are features of the search."""
    source, target = ["the house", "the sea", "a house"] * 9, ["la maison", "la mer", "une maison"] * 9
    links = [[(0, 0), (1, 1)]] * 27
    api.extract(source, target, links, tmp_path)
    lm = rnnsmt.lm.estimate(target, tmp_path / "lm.arpa.gz", order=2).path
    cslm = api.train_cslm(target, tmp_path / "cslm", "demo", vocab_size=10, epochs=1, hidden_1=8)
    nnjm = api.train_nnjm(source, target, links, tmp_path / "nnjm", "demo", vocab_size=10, epochs=1, hidden_1=8)
    ini = rnnsmt.moses.write_ini(
        tmp_path / "moses.ini", tmp_path, lm=lm.name, lm_order=2, cslm=cslm, nnjm=nnjm,
    ).path  # fmt: skip
    assert "CSLM name=CSLM0 " in ini.read_text() and "NNJM name=NNJM0 " in ini.read_text()
    assert len(rnnsmt.search.decode(ini, ["the house", "a sea"])) == 2

    ids = tmp_path / "ids"
    text = tmp_path / "text"
    text.write_text("".join(f"{line}\n" for line in target))
    assert main(["cslm", "prepare", "--input", str(text), "--vocab-size", "10", "--output-dir", str(ids)]) == 0
    outputs = ["--output-model", str(tmp_path / "model.safetensors"), "--output-history", str(tmp_path / "model.json")]
    options = ["--preset", "demo", "--epochs", "1", "--hidden-1", "8", "--seed", "1"]
    checkpoint = ["--checkpoint-dir", str(tmp_path / "checkpoint")]
    assert main(["cslm", "train", "--text", str(ids), *options, *outputs, *checkpoint]) == 0
    assert (tmp_path / "model.safetensors").read_bytes() == cslm.read_bytes()


def test_names_of_the_package():
    assert {"api", "evaluation", "lm", "load", "moses", "search", "tuning"} <= set(dir(rnnsmt))


def test_is_loaded_on_first_use():
    code = (
        "import sys, rnnsmt; assert 'numpy' not in sys.modules and 'rnnsmt.api' not in sys.modules; "
        "rnnsmt.api.align; assert 'numba' not in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_types_for_the_callers_checker(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        'import rnnsmt\ntext: str = rnnsmt.load("dir").translate("a")\n'
        'links: rnnsmt.api.Links = rnnsmt.api.align(iter(["a"]), ["b"])\n'
        'order: object = rnnsmt.lm.estimate(iter(["a"]), "lm", prune=[0, 1]).figures["lines"]\n'
    )
    source = Path(rnnsmt.__file__).parents[1]
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path), program]
    checked = subprocess.run(
        command, check=False, env=os.environ | {"MYPYPATH": str(source)}, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout
