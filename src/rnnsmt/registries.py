"""All that can be added by name: one registry per kind, one line per thing.

A line names the object that implements the thing. Choices of the command line, values of the configuration, columns of
the tables, tables of the documentation and the tests of a kind follow from it. Another package adds a thing without a
change here, by an entry point in the group of the registry (docs/extending.md).
"""

from typing import TYPE_CHECKING

from rnnsmt.base.registry import Registry

if TYPE_CHECKING:
    from rnnsmt.evaluation.metrics import Metric

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
