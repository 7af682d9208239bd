"""Damaged files end in a sentence; the counts of ``python -m tests.fuzz.damage`` are larger."""

from pathlib import Path

import pytest

from .damage import BAD, damaged_models, damaged_others


@pytest.mark.parametrize("seed", [1])
def test_binary_models(tmp_path: Path, seed: int) -> None:
    found = damaged_models(tmp_path, 60, 30, seed)
    assert not [name for name in found if name.endswith(BAD)], found
    assert found["binary model forged: refused by a sentence"] > 30


@pytest.mark.parametrize("seed", [1])
def test_networks_and_states(tmp_path: Path, seed: int) -> None:
    found = damaged_others(tmp_path, 120, seed)
    assert not [name for name in found if name.endswith(BAD)], found
    assert sum(count for name, count in found.items() if name.endswith("refused by a sentence")) > 60
