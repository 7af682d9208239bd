"""The cache of compiled kernels: a change of the source of a kernel invalidates the kernels compiled from it."""

import dis
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rnnsmt.base.kernels import decorator, strings

DECORATED = "from rnnsmt.base.kernels.decorator import kernel\n\n@kernel()\n"


def run(directory: Path, **modules: str) -> list[str]:
    """Write the modules whose text is new, run ``main.py`` in a new process, and return the words that it prints."""
    for name, text in modules.items():
        path = directory / f"{name}.py"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=directory, capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.split()


def test_an_edit_of_a_called_kernel_reaches_its_callers(tmp_path: Path) -> None:
    """An edit of a kernel or of its constants recompiles all direct and indirect callers, and no other edit does."""
    inner = "STEP = {step}\n" + DECORATED + "def inner(x):\n    return x + {constant}\n"
    (tmp_path / "middle_part.py").write_text(
        "from inner_part import STEP, inner\n" + DECORATED + "def middle(x):\n    return inner(x) * STEP\n"
    )
    (tmp_path / "outer_part.py").write_text(
        "from middle_part import middle\n" + DECORATED + "def outer(x):\n    return middle(x)\n"
    )
    (tmp_path / "main.py").write_text(
        "from outer_part import outer\nprint(outer(1), sum(outer.stats.cache_hits.values()))\n"
    )
    assert run(tmp_path, inner_part=inner.format(constant=1, step=1)) == ["2", "0"]
    assert run(tmp_path) == ["2", "1"]
    assert run(tmp_path, inner_part=inner.format(constant=10, step=1)) == ["11", "0"]
    assert run(tmp_path, inner_part=inner.format(constant=10, step=3)) == ["33", "0"]
    assert run(tmp_path, neighbour="STEP = 7\n") == ["33", "1"], "another file of the directory"


def test_an_edit_reaches_a_kernel_that_is_defined_above_those_that_it_calls(tmp_path: Path) -> None:
    (tmp_path / "kernels_here.py").write_text(
        "import numpy as np\nfrom constants import PAIR, TABLE\n"
        + DECORATED
        + "def outer(x):\n    return below(x)\n\n\n@kernel()\ndef below(x):\n    return TABLE[x] + PAIR[0]\n"
    )
    (tmp_path / "main.py").write_text("from kernels_here import outer\nprint(outer(1))\n")
    constants = "import numpy as np\nTABLE = np.array([0, {}])\nPAIR = ({}, 0)\n"
    assert run(tmp_path, constants=constants.format(1, 0)) == ["1"]
    assert run(tmp_path, constants=constants.format(2, 0)) == ["2"], "an array"
    assert run(tmp_path, constants=constants.format(2, 5)) == ["7"], "a tuple"


def test_a_kernel_is_compiled_after_one_that_it_calls_was_loaded(tmp_path: Path) -> None:
    """A new kernel can call a cached one; only compiling, not loading, initialises numba's runtime."""
    (tmp_path / "lower_part.py").write_text(
        "import numpy as np\n" + DECORATED + "def lower(x):\n    return np.full(3, x)\n"
    )
    (tmp_path / "main.py").write_text("from lower_part import lower\nprint(lower(2).sum())\n")
    assert run(tmp_path) == ["6"]
    (tmp_path / "upper_part.py").write_text(
        "from lower_part import lower\n" + DECORATED + "def upper(x):\n    return lower(x + 1)[0]\n"
    )
    (tmp_path / "main.py").write_text(
        "from numba.core.runtime import rtsys\nfrom upper_part import lower, upper\n"
        "print(lower(2).sum(), sum(lower.stats.cache_hits.values()), rtsys._init, upper(2), rtsys._init)\n"
    )
    assert run(tmp_path) == ["6", "1", "False", "3", "True"]


def test_the_globals_of_a_function_are_those_that_dis_shows() -> None:
    many = "def many(x):\n    return [" + ", ".join(f"g{number}(x.a{number})" for number in range(400)) + "]\n"
    names: dict[str, Any] = {}
    exec(many, names)
    for function in (names["many"], decorator.kernel, decorator._description):
        shown = {step.argval for step in dis.get_instructions(function) if step.opname == "LOAD_GLOBAL"}
        inner = [one for one in function.__code__.co_consts if hasattr(one, "co_code")]
        shown |= {step.argval for code in inner for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
        assert decorator._globals_read(function.__code__) == shown
    assert len(decorator._globals_read(names["many"].__code__)) == 400


def test_a_kernel_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(strings.hash_bytes)) is strings.hash_bytes


RECORD = "from typing import NamedTuple\n\nclass {name}(NamedTuple):\n    {fields}\n\nNAME = {name}\n"


@pytest.mark.parametrize("argument", ["NAME(a=5.0, b=3.0)", "(NAME(a=5.0, b=3.0),)", "Holder(NAME(a=5.0, b=3.0))"])
def test_other_fields_of_a_named_tuple_reach_the_kernels_that_take_it(tmp_path: Path, argument: str) -> None:
    """Kernels are recompiled if the fields of a named tuple change their order, which numba does not notice."""
    pair = "pair" if argument.startswith("NAME") else "pair[0]"
    (tmp_path / "taker.py").write_text(DECORATED + f"def difference(pair):\n    return {pair}.a - {pair}.b\n")
    (tmp_path / "main.py").write_text(
        "from collections import namedtuple\nfrom records import *\nfrom taker import difference\n"
        f"Holder = namedtuple('Holder', ['held'])\nprint(difference({argument}))\n"
    )

    def difference(name: str, fields: str) -> list[str]:
        return run(tmp_path, records=RECORD.format(name=name, fields=fields))

    assert difference("Pair", "a: float; b: float") == ["2.0"]
    assert difference("Pair", "b: float; a: float") == ["2.0"]
    assert difference("Couple", "a: float; b: float") == ["2.0"], "what numba has kept names a class that is gone"


def test_other_fields_of_a_named_tuple_reach_the_kernels_that_build_it(tmp_path: Path) -> None:
    (tmp_path / "builder.py").write_text(
        "from records import Pair\n" + DECORATED + "def build(x):\n    return Pair(x, x + 1.0)\n"
    )
    (tmp_path / "taker.py").write_text(
        "from builder import build\n" + DECORATED + "def first(x):\n    return build(x).a\n"
    )
    (tmp_path / "main.py").write_text("from taker import first\nprint(first(1.0))\n")
    assert run(tmp_path, records=RECORD.format(name="Pair", fields="a: float; b: float")) == ["1.0"]
    assert run(tmp_path, records=RECORD.format(name="Pair", fields="b: float; a: float")) == ["2.0"]


def test_a_global_whose_changes_cannot_be_noticed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text("STEP = 1\n")
    (tmp_path / "reader.py").write_text(
        "import settings\n" + DECORATED + "def read(x):\n    return x + settings.STEP\n"
    )
    (tmp_path / "main.py").write_text(
        "from reader import read\ntry:\n    read(1)\nexcept TypeError as error:\n    print(error)\n"
    )
    assert " ".join(run(tmp_path)).startswith("kernel reader.read reads settings, a global of type module;")


def test_a_closure_is_refused() -> None:
    step = 1

    def add(x: int) -> int:
        return x + step

    with pytest.raises(TypeError, match="reads variables of an enclosing function"):
        decorator.kernel()(add)


def test_a_numba_with_another_cache_is_refused() -> None:
    """A version of numba with another cache interface is refused, so that no outdated code is used."""
    with pytest.raises(RuntimeError, match=r"numba .* requirements\.lock"):
        decorator._set_cache(object(), object())


def test_a_configuration_of_numba_is_read_where_there_is_one(tmp_path: Path) -> None:
    """A configuration file of numba is applied, and modules imported after numba are found."""
    (tmp_path / "main.py").write_text(
        "from rnnsmt.base.kernels import decorator\nimport numba, scipy, yaml\n"
        "print(numba.config.LOOP_VECTORIZE, scipy.__name__)\n"
    )
    assert run(tmp_path) == ["1", "scipy"]
    (tmp_path / ".numba_config.yaml").write_text("loop_vectorize: 0\n")
    assert run(tmp_path) == ["0", "scipy"]
    (tmp_path / "main.py").write_text("import yaml\n" + (tmp_path / "main.py").read_text())
    assert run(tmp_path) == ["0", "scipy"]
