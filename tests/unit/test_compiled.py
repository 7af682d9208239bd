"""Compiled kernels on disk: an edit of a called kernel or of a constant must reach its callers."""

import subprocess
import sys
from pathlib import Path

INNER = (
    "from rnnsmt.kernels.decorator import kernel\n"
    "STEP = {step}\n\n@kernel()\ndef inner(x):\n    return x + {constant}\n"
)


def test_an_edit_of_a_called_kernel_reaches_its_caller(tmp_path: Path) -> None:
    (tmp_path / "outer_part.py").write_text(
        "from inner_part import STEP, inner\nfrom rnnsmt.kernels.decorator import kernel\n\n"
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
