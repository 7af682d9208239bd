"""All that can be added by name: one registry per kind, one line per thing.

A line names the object that implements the thing, some with a description for help texts. Choices of the command line,
values of the configuration, columns of the tables, tables of the documentation and the tests of a kind follow from it.
Another package adds a thing without a change here, by an entry point in the group of the registry (docs/extending.md).
"""

from typing import TYPE_CHECKING

from rnnsmt.base.registry import Registry

if TYPE_CHECKING:
    from rnnsmt.align.symmetrization import Symmetrization
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

SYMMETRIZATIONS: "Registry[Symmetrization]" = Registry(
    "symmetrisation",
    "rnnsmt.symmetrizations",
    {
        "grow-diag-final-and": (
            "rnnsmt.align.symmetrization:grow_diag_final_and",
            "grow-diag, and links of which neither word is aligned",
        ),
        "grow-diag-final": (
            "rnnsmt.align.symmetrization:grow_diag_final",
            "grow-diag, and links with an unaligned word",
        ),
        "grow-diag": (
            "rnnsmt.align.symmetrization:grow_diag",
            "links of both directions, and links beside them with an unaligned word",
        ),
        "intersection": ("rnnsmt.align.symmetrization:intersection", "links of both directions"),
        "union": ("rnnsmt.align.symmetrization:union", "links of either direction"),
    },
)
"""Symmetrisations of the alignments of both directions."""
