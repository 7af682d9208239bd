"""Fixtures that lead to the real corpora and to Moses' own outputs, where they are at hand; signals."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


def _folder(path: Path) -> Path:
    if not path.is_dir():
        pytest.skip(f"{path} is not there: real corpora and Moses' outputs live beside the repository")
    return path


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder with real corpora and fixtures beside the repository."""
    return _folder(SHARED)


@pytest.fixture(scope="session")
def moses_fixture() -> Path:
    """What real Moses made of Multi30k: alignments, tables, LM, n-best lists."""
    return _folder(SHARED / "fixtures" / "moses-multi30k")


@pytest.fixture(scope="session")
def multi30k_tok() -> Path:
    """Multi30k as tokenised by its authors."""
    return _folder(SHARED / "data" / "multi30k-tok")


@pytest.fixture
def sigint() -> Iterator[Callable[[object], object]]:
    """Sets the handler of Ctrl-C: Python's, or none, as for what a shell runs in the background; undone at the end."""
    before = signal.getsignal(signal.SIGINT)
    yield lambda handler: signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGINT, before)
