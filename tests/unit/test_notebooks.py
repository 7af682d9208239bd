"""Notebooks: valid, executed, small and without local paths; executed again with the solutions (slow)."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MAX_BYTES = 100_000
EXERCISES = (2, 6)

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def cells(notebook: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def solutions(source: str) -> list[str]:
    """Return the Python code in the solutions of a Markdown cell."""
    return [
        code
        for block in re.findall(r"<details>.*?</details>", source, re.S)
        for code in re.findall(r"```python\n(.*?)```", block, re.S)
    ]


def test_there_are_notebooks():
    assert NOTEBOOKS


@each_notebook
def test_format(path):
    notebook = read(path)
    assert notebook["nbformat"] == 4
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    identifiers = [cell["id"] for cell in notebook["cells"]]
    assert len(set(identifiers)) == len(identifiers)
    assert text(notebook["cells"][0]).startswith("# ")


@each_notebook
def test_is_executed(path):
    code = cells(read(path), "code")
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert len(outputs) >= len(code) // 2
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert path.stat().st_size < MAX_BYTES


@each_notebook
def test_names_no_directory_of_a_machine(path):
    for cell in read(path)["cells"]:
        for part in (cell["source"], *(output.get("text", "") for output in cell.get("outputs", ()))):
            found = re.findall(r"(?<![\w.:/<}])/(?:\w[\w.+-]*/)+[\w.+-]+", "".join(part))
            assert all(place.startswith("/tmp/") for place in found), found


@each_notebook
def test_exercises_have_solutions(path):
    markdown = [text(cell) for cell in cells(read(path), "markdown")]
    exercises = [source for source in markdown if "**Exercise" in source]
    assert EXERCISES[0] <= len(exercises) <= EXERCISES[1]
    numbers = [int(number) for source in exercises for number in re.findall(r"\*\*Exercise (\d+)\.\*\*", source)]
    assert numbers == list(range(1, len(exercises) + 1))
    for source in exercises:
        assert solutions(source)
        for code in solutions(source):
            compile(code, path.name, "exec")
        assert source.count("<details><summary>Solution</summary>") == source.count("</details>") == 1


@each_notebook
def test_links_lead_to_pages(path):
    for cell in cells(read(path), "markdown"):
        for link in re.findall(r"\]\((\.\./[^)#]+)", text(cell)):
            assert (path.parent / link).is_file(), link


@pytest.mark.slow
@each_notebook
def test_runs_with_its_solutions(path, monkeypatch):
    needed = ["nbclient", "nbformat", "ipykernel", *["torch"] * (path.stem == "encoder-decoder")]
    for module in needed:
        pytest.importorskip(module, reason=f"{module} is not installed")
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    executed = []
    for cell in notebook.cells:
        executed.append(cell)
        if cell.cell_type == "markdown":
            executed += map(nbformat.v4.new_code_cell, solutions(cell.source))
    notebook.cells = executed
    # the kernel and `rnnsmt` in its cells are those of this interpreter
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    NotebookClient(notebook, timeout=1800, kernel_name="python3").execute()
    errors = [o for cell in notebook.cells for o in cell.get("outputs", ()) if o.output_type == "error"]
    assert not errors
