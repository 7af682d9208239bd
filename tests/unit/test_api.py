"""The Python interface: its doctest goes through all packages on a toy corpus; files and lists; what it refuses."""

import doctest
import subprocess
import sys

import pytest

from rnnsmt import api
from rnnsmt.base.io import InputError


@pytest.mark.slow
def test_doctest():
    result = doctest.testmod(api)
    assert result.attempted >= 12
    assert not result.failed


def test_files_and_lists_are_the_same(tmp_path):
    path = tmp_path / "text"
    path.write_text("la maison bleue et grande\nune mer\n")
    lines = ["la maison bleue et grande", "une mer"]
    reference = ["la maison bleue et belle", "la mer"]
    assert api.evaluate(path, reference) == api.evaluate(lines, reference)


def test_mistakes_are_input_errors(tmp_path):
    with pytest.raises(InputError, match="line break"):
        api.evaluate(["a\nb"], ["a b"])
    with pytest.raises(InputError, match="one reference"):
        api.evaluate(["a"])
    with pytest.raises(InputError, match="fast_align"):
        api.align(["a"], ["b"], aligner="giza")
    with pytest.raises(InputError, match="nonsense"):
        api.train_rnn("table", ["a"], ["b"], tmp_path, nonsense=1)
    with pytest.raises(InputError, match="no such file"):
        api.write_ini(tmp_path / "moses.ini", tmp_path / "table", None, tmp_path / "lm")


def test_is_loaded_on_first_use():
    code = (
        "import sys, rnnsmt; assert 'numpy' not in sys.modules and 'rnnsmt.api' not in sys.modules; "
        "rnnsmt.api.align; assert 'numba' not in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
