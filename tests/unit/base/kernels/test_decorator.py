"""The cache of compiled kernels: a change of a source, also of another file, invalidates the code compiled from it."""

import ast
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from numba.core.caching import IndexDataCacheFile

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels import cache, strings
from rnnsmt.base.kernels.cache import PACKAGE, KernelFiles, kernel_sources


def names_read(tree: ast.Module) -> set[str]:
    """Return the names that the kernels of a module read, directly or by constants of the module."""
    waiting: list[ast.AST] = []
    for node in tree.body:
        if isinstance(node, ast.Assign) and "kernel()(" in ast.unparse(node):
            waiting.append(node)
        elif isinstance(node, ast.FunctionDef):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            waiting += node.body if "kernel(" in decorators or "intrinsic" in decorators else []
    values = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    names: set[str] = set()
    while waiting:
        new = {node.id for node in ast.walk(waiting.pop()) if isinstance(node, ast.Name)} - names
        names |= new
        waiting += [values[name] for name in new & values.keys()]
    return names


def test_the_sources_contain_everything_that_is_compiled_into_a_kernel() -> None:
    sources = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in kernel_sources()}
    imports = 0
    for path in kernel_sources():
        if "kernels.decorator import" not in (text := path.read_text()):
            continue
        tree = ast.parse(text)
        read = names_read(tree)
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("rnnsmt."):
                used = {alias.asname or alias.name for alias in node.names} & read
                assert not used or node.module in sources, f"{path}: {used} from {node.module}, which says no `kernel`"
                imports += len(used)
    assert imports > 100


def test_an_edit_of_a_called_kernel_reaches_its_callers(tmp_path: Path) -> None:
    """The callers of another file are loaded from the cache, and recompiled after the edit."""
    (tmp_path / "rnnsmt").mkdir()
    for name in ("__init__.py", "stages.py"):
        shutil.copy(PACKAGE / name, tmp_path / "rnnsmt")
    shutil.copytree(PACKAGE / "base", tmp_path / "rnnsmt/base", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "rnnsmt/caller.py").write_text(
        "from rnnsmt.base.kernels.decorator import kernel\nfrom rnnsmt.base.kernels.numbers import scramble\n"
        "@kernel()\ndef twice(x):\n    return scramble(x) * 2\n"
    )
    code = (
        "import numpy as np, rnnsmt.caller\nfrom rnnsmt.caller import twice\n"
        "print(twice(np.uint64(0)), sum(twice.stats.cache_hits.values()))"
    )

    def run(first: str = "", **variables: str) -> list[str]:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), **variables}
        command = [sys.executable, "-c", first + code]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    cache = tmp_path / "cache"
    assert run(NUMBA_CACHE_DIR=str(cache)) == ["0", "0"]
    assert run(NUMBA_CACHE_DIR=str(cache)) == ["0", "1"]
    assert len(list(cache.iterdir())) == 1
    numbers = tmp_path / "rnnsmt/base/kernels/numbers.py"
    numbers.write_text(numbers.read_text().replace("return value ^ (value >> np.uint64(31))", "return value + 21"))
    assert run(NUMBA_CACHE_DIR=str(cache)) == ["42", "0"]
    assert len(list(cache.iterdir())) == 2
    for directory in cache.glob("*/*"):  # an image with a read-only root, without these kernels
        shutil.rmtree(directory)
    refuse = "import tempfile\ndef refuse(**_): raise PermissionError\ntempfile.TemporaryFile = refuse\n"
    assert run(refuse, NUMBA_CACHE_DIR=str(cache)) == ["42", "0"]
    assert not list(cache.glob("*/*/*.nbc"))
    assert run(NUMBA_CACHE_DIR="") == ["42", "0"]
    assert len(list((tmp_path / "rnnsmt/__pycache__").glob("kernels-*"))) == 1


def test_an_import_changes_nothing_for_other_kernels(tmp_path: Path) -> None:
    """A user's kernel keeps its place and its file names, and has BLAS; scipy can be imported all the time."""
    (tmp_path / "user.py").write_text(
        "import numba, numpy as np\n@numba.njit(cache=True)\ndef norm(x):\n    return np.dot(x, x)\n"
    )
    code = """
import sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        assert sys.modules.get("scipy", "") is not None, name
sys.meta_path.insert(0, Watch())
from rnnsmt.base.kernels import strings
strings.Interner().add([b"a"])
import numpy as np, user
print(user.norm(np.ones(3)))
"""
    variables = {"PYTHONPATH": f"{PACKAGE.parent}:{tmp_path}", "NUMBA_CACHE_DIR": ""}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True)
    assert done.stdout == "3.0\n"
    names = sorted(path.name for path in (tmp_path / "__pycache__").glob("user.norm-*"))
    assert [name.partition(".py")[2].partition(".")[2] for name in names] == ["1.nbc", "nbi"]


def test_commands_load_kernels_without_the_compiler_and_scipy(tmp_path: Path) -> None:
    """Numba would import both, which takes 0.4 s; a process that compiles a kernel imports the compiler alone."""
    code = """
import sys
from rnnsmt import base
base.is_program = True
import numpy as np
from rnnsmt.base.kernels import strings
assert "scipy" not in sys.modules
print(strings.Interner().add([b"a"]), sum(strings._add_all.stats.cache_hits.values()), *(
    name in sys.modules for name in ("numba.np.arraymath", "numba.typed.typeddict", "scipy")
))
import scipy.linalg
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs == ["[0] 0 True True False\n", "[0] 1 False False False\n"]


def test_code_that_is_loaded_calls_functions_of_numba(tmp_path: Path) -> None:
    """Allocation, sorting, exceptions and functions of numpy in a kernel that is loaded without the compiler."""
    (tmp_path / "user.py").write_text(
        """
import numpy as np
from rnnsmt.base.kernels.decorator import kernel

@kernel()
def most(x, least):
    y = np.sort(np.concatenate((x, np.array([3, 1]))))
    if y.max() < least:
        raise ValueError("too small")
    return y, y.sum(), [int(value) for value in y][-1], np.log(np.float64(y.max()))
"""
    )
    code = """
import numpy as np, user
print(*user.most(np.array([2]), 0), sum(user.most.stats.cache_hits.values()))
try:
    user.most(np.array([2]), 9)
except ValueError as error:
    print(error)
"""
    environment = os.environ | {"PYTHONPATH": f"{PACKAGE.parent}:{tmp_path}", "NUMBA_CACHE_DIR": str(tmp_path)}
    for hits in range(2):
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == f"[1 2 3] 6 3 1.0986122886681098 {hits}\ntoo small\n"


def test_a_directory_that_cannot_be_written_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file := tmp_path / "file").touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(file))
    monkeypatch.setattr(cache, "PACKAGE", file)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_directory.__wrapped__().parent == tmp_path / "rnnsmt"
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    with pytest.raises(InputError, match="NUMBA_CACHE_DIR"):
        cache.cache_directory.__wrapped__()


def test_a_kernel_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(strings.hash_bytes)) is strings.hash_bytes


def test_processes_that_compile_a_kernel_at_the_same_time_write_different_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one file for two signatures, a later process ran the code of the other one: wrong results, no error."""
    processes = [KernelFiles(str(tmp_path), "kernel", "stamp") for _ in range(2)]
    with monkeypatch.context() as patch:
        patch.setattr(IndexDataCacheFile, "_load_index", lambda _: {})  # both have read it before either writes
        processes[0].save("int64", 1)
        processes[1].save("float64", 2)
    assert len(list(tmp_path.glob("*.nbc"))) == 2
    assert (processes[0].load("float64"), processes[0].load("int64")) == (2, None)
