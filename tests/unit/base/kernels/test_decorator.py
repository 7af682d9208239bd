"""Compiled kernels on disk: an edit of what a kernel was compiled from must reach it."""

import subprocess
import sys
from pathlib import Path

import pytest

from rnnsmt.base.kernels import decorator

INNER = (
    "from rnnsmt.base.kernels.decorator import kernel\n"
    "STEP = {step}\n\n@kernel()\ndef inner(x):\n    return x + {constant}\n"
)


def test_an_edit_of_a_called_kernel_reaches_its_caller(tmp_path: Path) -> None:
    (tmp_path / "outer_part.py").write_text(
        "from inner_part import STEP, inner\nfrom rnnsmt.base.kernels.decorator import kernel\n\n"
        "@kernel()\ndef outer(x):\n    return inner(x) * STEP\n"
    )
    (tmp_path / "main.py").write_text(
        "from outer_part import outer\nprint(outer(1), sum(outer.stats.cache_hits.values()))\n"
    )

    def run(constant: int, step: int) -> list[str]:
        text = INNER.format(constant=constant, step=step)
        path = tmp_path / "inner_part.py"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        done = subprocess.run(
            [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
        )
        return done.stdout.split()

    assert run(1, 1) == ["2", "0"]
    assert run(1, 1) == ["2", "1"]
    assert run(10, 1) == ["11", "0"]
    assert run(10, 3) == ["33", "0"]
    assert run(10, 3) == ["33", "1"]


def test_other_fields_of_a_named_tuple_reach_the_kernels_that_take_it(tmp_path: Path) -> None:
    """numba knows a named tuple by its name and the types of its fields: in another order they would be mixed up."""
    (tmp_path / "taker.py").write_text(
        "from rnnsmt.base.kernels.decorator import kernel\n\n"
        "@kernel()\ndef difference(pair):\n    return pair.a - pair.b\n"
    )
    (tmp_path / "main.py").write_text(
        "from records import *\nfrom taker import difference\nprint(difference(NAME(a=5.0, b=3.0)))\n"
    )

    def run(name: str, fields: str) -> str:
        (tmp_path / "records.py").write_text(
            f"from typing import NamedTuple\n\nclass {name}(NamedTuple):\n    {fields}\n\nNAME = {name}\n"
        )
        done = subprocess.run(
            [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
        )
        return done.stdout.strip()

    assert run("Pair", "a: float; b: float") == "2.0"
    assert run("Pair", "b: float; a: float") == "2.0"
    assert run("Couple", "a: float; b: float") == "2.0", "what numba has kept names a class that is gone"


def test_a_numba_with_another_cache_is_refused() -> None:
    """Better no start than old code without a word."""

    class Changed:
        code_stamp = "x"

    with pytest.raises(RuntimeError, match=r"numba .* requirements\.lock"):
        decorator._mark_cache(Changed())
