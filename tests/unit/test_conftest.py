"""The check of the checkout notices files written by tests, except for caches of tools."""

from pathlib import Path

from tests.conftest import listing


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
