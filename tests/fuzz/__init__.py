"""Harnesses that damage files and requests; ``python -m tests.fuzz --help``."""

from .archives import Archives
from .binary_models import BinaryModels, FlippedModels, ForgedModels
from .configurations import Configurations, Plans
from .harness import Harness
from .http_requests import HttpRequests
from .networks import Networks
from .texts import Texts

HARNESSES: dict[str, type[Harness]] = {
    one.name: one
    for one in (
        BinaryModels,
        ForgedModels,
        FlippedModels,
        Networks,
        Texts,
        Archives,
        Configurations,
        Plans,
        HttpRequests,
    )
}
"""All harnesses by name."""
