"""All that can be added by name: one registry per kind, one line per thing.

A line names the object that implements the thing. Choices of the command line, values of the configuration, columns of
the tables, tables of the documentation and the tests of a kind follow from it. Another package adds a thing without a
change here, by an entry point in the group of the registry (docs/extending.md).
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from rnnsmt.base.registry import Registries, Registry

if TYPE_CHECKING:
    from rnnsmt.config.features import SystemFeature
    from rnnsmt.evaluation.metrics import Metric
    from rnnsmt.phrases.columns import ScoreColumn
    from rnnsmt.search.features import SearchFeature

SEARCH_FEATURES: "Registry[SearchFeature]" = Registry(
    "feature of the search",
    "rnnsmt.search_features",
    {
        "cslm": "rnnsmt.search.features:Cslm",
        "nnjm": "rnnsmt.search.features:Nnjm",
    },
)
"""Networks that the search queries. In a moses.ini, their kind is the name in capital letters."""

COLUMNS: "Registry[ScoreColumn]" = Registry(
    "score column",
    "rnnsmt.columns",
    {
        "rnn": "rnnsmt.rnn.columns:Rnn",
        "wp": "rnnsmt.rnn.columns:WordsOutsideShortlist",
    },
)
"""Score columns of the phrase table."""

FEATURES: "Registries[SystemFeature]" = Registries("feature", [SEARCH_FEATURES, COLUMNS])
"""Features that systems add to the baseline. Directories and columns of the phrase table are named in this order;
features of other packages follow."""

METRICS: "Registry[Metric]" = Registry(
    "metric",
    "rnnsmt.metrics",
    {
        "chrf": "rnnsmt.evaluation.metrics.chrf:Chrf",
        "chrfpp": "rnnsmt.evaluation.metrics.chrf:ChrfPlusPlus",
        "ter": "rnnsmt.evaluation.metrics.ter:Ter",
    },
)
"""Metrics of the detokenised text, besides BLEU."""

REGISTRIES: tuple[Registry[Any], ...] = (SEARCH_FEATURES, COLUMNS, METRICS)
"""All registries."""


def of_other_packages(words: Collection[str]) -> dict[str, str]:
    """Return the things of other packages with these names: kind and name, with the package and its version.

    Args:
        words: names, for example all strings of a configuration.
    """
    return {
        f"{registry.kind} {name}": registry.package(name)
        for registry in REGISTRIES
        for name in registry.others()
        if name in words
    }
