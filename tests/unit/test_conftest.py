"""The check of the checkout notices files written by tests, except for caches of tools."""

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT, listing


def test_files_of_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "src/__pycache__").mkdir(parents=True)
    (tmp_path / "src/module.py").write_text("x = 1\n")
    before = listing(tmp_path)
    (tmp_path / "src/__pycache__/module.pyc").write_text("")
    (tmp_path / ".hypothesis").mkdir()
    (tmp_path / ".hypothesis/example").write_text("")
    assert listing(tmp_path) == before
    (tmp_path / "results").mkdir()
    (tmp_path / "results/table1.tsv").write_text("")
    assert listing(tmp_path) - before == {"results/table1.tsv"}


def test_the_last_line_names_the_files(tmp_path: Path) -> None:
    """A run whose tests pass and leave a file fails, and names the file after pytest's closing line."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "__init__.py").touch()
    (tests / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tests / "test_it.py").write_text(f"def test_it():\n    open({str(tmp_path / 'left')!r}, 'w').close()\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    *_, closing, _, last = done.stdout.splitlines()
    assert done.returncode == 1
    assert closing.startswith("1 passed"), done.stdout + done.stderr
    assert last.startswith("ERROR: ") and last.endswith(": left")
