"""All that can be added by name: one registry per kind, one line per thing.

A line names the object that implements the thing, some with a description for help texts. Choices of the command line,
values of the configuration, columns of the tables, tables of the documentation and the tests of a kind follow from it.
Another package adds a thing without a change here, by an entry point in the group of the registry (docs/extending.md).
"""

from typing import TYPE_CHECKING

from rnnsmt.base.registry import Registry

if TYPE_CHECKING:
    from rnnsmt.align.direction import Aligner
    from rnnsmt.align.symmetrization import Symmetrization
    from rnnsmt.corpus.corpus_format import CorpusFormat
    from rnnsmt.evaluation.metrics import Metric
    from rnnsmt.tuning.optimizers import Optimizer

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

ALIGNERS: "Registry[Aligner]" = Registry(
    "aligner",
    "rnnsmt.aligners",
    {
        "fast_align": (
            "rnnsmt.align.fast_align:ALIGNER",
            "IBM Model 2 with a prior that favours the diagonal (Dyer et al. 2013)",
        ),
        "hmm": (
            "rnnsmt.align.hmm:ALIGNER",
            "HMM with jumps that depend on word classes (Vogel et al. 1996), initialised by Model 1",
        ),
        "model4": (
            "rnnsmt.align.model4:ALIGNER",
            "IBM Model 4 with word classes (Brown et al. 1993), initialised by the HMM and Model 3, as by GIZA++ and "
            "MGIZA in the standard Moses recipe",
        ),
    },
)
"""Aligners, in order of increasing quality."""

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

OPTIMIZERS: "Registry[Optimizer]" = Registry(
    "optimizer",
    "rnnsmt.optimizers",
    {
        "mert": (
            "rnnsmt.tuning.optimizers:Mert",
            "minimum error rate training as in mert-moses.pl and the paper, 25 iterations",
        ),
        "mert-averaged": (
            "rnnsmt.tuning.optimizers:AveragedMert",
            "with means of local optima and iterations, which vary less from run to run, 16 iterations",
        ),
        "mira": ("rnnsmt.tuning.optimizers:Mira", "batch MIRA, without restarts, 16 iterations"),
    },
)
"""Optimizers of the weights on n-best lists."""

CORPUS_FORMATS: "Registry[CorpusFormat]" = Registry(
    "corpus format",
    "rnnsmt.corpus_formats",
    {
        "tmx": ("rnnsmt.corpus.tmx:Tmx", "translation memory"),
        "tsv": ("rnnsmt.corpus.tsv:Tsv", "table with columns separated by tabs"),
    },
)
"""Formats of files with both sides of a corpus, in the order in which they are recognised."""
