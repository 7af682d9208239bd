"""Fixtures for real corpora and outputs of Moses, if available, and for signals; the check of the checkout."""

import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from rnnsmt.base.progress import print_messages
from rnnsmt.base.registry import Registry

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"

# Several test processes share the cores: waiting OpenMP threads must sleep. Those of OpenBLAS never do, which takes
# more than nine tenths of the CPU time of some tests. NumPy and PyTorch, which are imported later, read the variables.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

CACHES = frozenset(
    [
        ".git",
        ".venv",
        "__pycache__",
        ".pytest_cache",
        ".hypothesis",
        ".mypy_cache",
        ".ruff_cache",
        ".import_linter_cache",
    ]
)
"""Directories of the checkout that tools may write."""

ONE_PROCESS = (
    *("tests/unit/test_docs.py", "tests/unit/test_malformed_input.py"),
    *("tests/workflow/test_installed.py", "tests/workflow/test_module.py", "tests/workflow/test_plans.py"),
)
"""Files whose tests share input that takes seconds: small models, parsed pages, wheels, repositories, dry runs."""

LISTING = pytest.StashKey[set[str]]()


def listing(directory: Path) -> set[str]:
    """Return the path of every file below a directory, except for those in ``CACHES``."""
    found = set()
    for parent, directories, files in os.walk(directory):
        directories[:] = [name for name in directories if name not in CACHES]
        found.update(str(Path(parent, name).relative_to(directory)) for name in files)
    return found


def pytest_sessionstart(session: pytest.Session) -> None:
    """Record the files of the checkout, in the main process."""
    if not hasattr(session.config, "workerinput"):
        session.config.stash[LISTING] = listing(ROOT)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Fail if the tests have left files in the checkout; modified files are ignored.

    The files are named after pytest's closing line, so that the end of a log shows why the run failed.
    """
    yield
    before = session.config.stash.get(LISTING, None)
    if before is not None and (new := sorted(listing(ROOT) - before)):
        more = f" and {len(new) - 10} more" if len(new) > 10 else ""
        print(f"\nERROR: the tests have left files in the checkout: {', '.join(new[:10])}{more}", flush=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run all unit tests of a package in one process, so that its kernels are compiled once."""
    from xdist.scheduler import LoadScopeScheduling

    class ChapterScheduling(LoadScopeScheduling):
        """Scheduler that assigns the tests of a package, and those of a file of ``ONE_PROCESS``, to the same process.

        Other tests are assigned to any process.
        """

        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            directory = file.rpartition("/")[0]
            if file in ONE_PROCESS:
                return file
            if directory == "tests/unit/phrases":
                return "tests/unit/align"  # these run alignments, too
            return directory if directory.startswith("tests/unit/") else nodeid

    return ChapterScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.fixture(autouse=True)
def _printed_messages() -> None:
    """Print progress and warnings as the command line does, so that tests can read them."""
    print_messages()


def _directory(path: Path) -> Path:
    if not path.is_dir():
        pytest.skip(f"{path} is not there: real corpora and Moses' outputs live beside the repository")
    return path


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Return the directory with real corpora and fixtures beside the repository."""
    return _directory(SHARED)


@pytest.fixture(scope="session")
def moses_fixture() -> Path:
    """Return the directory with Moses' outputs for Multi30k: alignments, tables, LM, n-best lists."""
    return _directory(SHARED / "fixtures" / "moses-multi30k")


@pytest.fixture(scope="session")
def multi30k_tok() -> Path:
    """Return the directory with Multi30k as tokenised by its authors."""
    return _directory(SHARED / "data" / "multi30k-tok")


@pytest.fixture
def sigint() -> Iterator[Callable[[object], object]]:
    """Yield a function that sets the SIGINT handler; the handler is restored at the end."""
    before = signal.getsignal(signal.SIGINT)
    yield lambda handler: signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def other_package(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Registry[Any], str, str, str], None]:
    """Return a function that installs a package with one module, whose object is a thing of a registry.

    Its arguments: registry, name of the thing, name of the object, source text of the module. The package is named
    ``other-NAME 1.2``.
    """

    def install(registry: Registry[Any], name: str, thing: str, code: str) -> None:
        directory, module = tmp_path_factory.mktemp("site"), f"other_{name.replace('-', '_')}"
        (directory / f"{module}.py").write_text(code)
        information = directory / f"{module}-1.2.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: other-{name}\nVersion: 1.2\n")
        (information / "entry_points.txt").write_text(f"[{registry.group}]\n{name} = {module}:{thing}\n")
        monkeypatch.syspath_prepend(str(directory))
        monkeypatch.setattr(registry, "_loaded", dict(registry._loaded))
        monkeypatch.delitem(sys.modules, module, raising=False)

    return install


@pytest.fixture(scope="session")
def documented() -> Callable[[str], str]:
    """Return a function that returns the example file that a section of examples/README.md links."""
    sections = (ROOT / "examples/README.md").read_text(encoding="utf-8").split("\n## ")

    def example(section: str) -> str:
        (text,) = (text for text in sections if text.startswith(f"{section}\n"))
        return (ROOT / "examples" / text.split("](")[1].split(")")[0]).read_text(encoding="utf-8")

    return example
