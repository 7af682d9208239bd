"""A tiny system for the tests of the server."""

import pytest

from rnnsmt.cli import main
from rnnsmt.formats.ini import MosesIni
from rnnsmt.translation.system import System

from ..search.twin import tiny_model


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> System:
    """Create a tiny system."""
    directory = tmp_path_factory.mktemp("system")
    tiny_model(directory, 3)
    MosesIni.read(directory / "moses.ini").write(directory / "moses.ini")
    words = ["translation", "describe", "--name", "tiny", "--source-lang", "en", "--target-lang", "fr"]
    assert main([*words, "--output-dir", str(directory)]) == 0
    return System(directory)
