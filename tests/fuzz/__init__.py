"""Harnesses that damage files and requests; ``python -m tests.fuzz --help``."""

from .binary_models import BinaryModels, FlippedModels, ForgedModels
from .harness import Harness
from .networks import Networks
from .texts import Texts

HARNESSES: dict[str, type[Harness]] = {
    one.name: one for one in (BinaryModels, ForgedModels, FlippedModels, Networks, Texts)
}
"""All harnesses by name."""
