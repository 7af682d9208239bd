"""Registries of the components that are selected by name: features, networks, metrics, aligners and others.

A registry has one line per component. It names the object that implements the component and may add a description for
help texts. The choices of command-line options, the values in the configuration, the columns of the tables, the tables
in the documentation and the tests of each kind of component are derived from the registries.

Another installed Python package can add components by entry points in the group of a registry, without a change of this
file (docs/extending.md).
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from rnnsmt.base.registry import Registries, Registry

if TYPE_CHECKING:
    from rnnsmt.align.direction import Aligner
    from rnnsmt.align.symmetrization import Symmetrization
    from rnnsmt.config.features import SystemFeature
    from rnnsmt.corpus.corpus_format import CorpusFormat
    from rnnsmt.evaluation.metrics import Metric
    from rnnsmt.networks.network import Network
    from rnnsmt.phrases.columns import ScoreColumn
    from rnnsmt.search.features import SearchFeature
    from rnnsmt.tuning.optimizers import Optimizer

SEARCH_FEATURES: "Registry[SearchFeature]" = Registry(
    "feature of the search",
    "rnnsmt.search_features",
    {
        "cslm": ("rnnsmt.search.features:CslmFeature", "continuous-space language model (Schwenk 2007)"),
        "nnjm": ("rnnsmt.search.features:NnjmFeature", "neural network joint model (Devlin et al. 2014)"),
    },
)
"""Features of the search that a network computes. In moses.ini, the kind of such a feature is its name in capitals."""

COLUMNS: "Registry[ScoreColumn]" = Registry(
    "score column",
    "rnnsmt.columns",
    {
        "rnn": ("rnnsmt.rnn.columns:RnnScore", "log p(target | source) of the RNN Encoder-Decoder (Cho et al. 2014)"),
        "wp": (
            "rnnsmt.rnn.columns:WordsOutsideShortlist",
            "word penalty of the paper, number of target words outside the networks' shortlist",
        ),
    },
)
"""Score columns of the phrase table."""

FEATURES: "Registries[SystemFeature]" = Registries("feature", [SEARCH_FEATURES, COLUMNS])
"""Features that systems add to the baseline. Names of directories and columns of the phrase table have this order;
features of other Python packages come last."""

NETWORKS: "Registry[Network]" = Registry(
    "network",
    "rnnsmt.networks",
    {
        "rnn": ("rnnsmt.rnn.network:RnnNetwork", "RNN Encoder-Decoder of phrase pairs (Cho et al. 2014)"),
        "cslm": ("rnnsmt.cslm.network:CslmNetwork", "continuous-space language model (Schwenk 2007)"),
        "nnjm": ("rnnsmt.nnjm.network:NnjmNetwork", "neural network joint model (Devlin et al. 2014)"),
        "seq2seq": (
            "rnnsmt.seq2seq.network:LstmNetwork",
            "LSTM encoder-decoder of sentences (Sutskever, Vinyals and Le 2014)",
        ),
    },
)
"""Networks that can be trained."""

METRICS: "Registry[Metric]" = Registry(
    "metric",
    "rnnsmt.metrics",
    {
        "chrf": "rnnsmt.evaluation.metrics.chrf:Chrf",
        "chrfpp": "rnnsmt.evaluation.metrics.chrf:ChrfPlusPlus",
        "ter": "rnnsmt.evaluation.metrics.ter:Ter",
    },
)
"""Metrics of detokenised text other than BLEU."""

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
"""Formats of files with both sides of a corpus, in the order in which they are tried if no format is specified."""

REGISTRIES: tuple[Registry[Any], ...] = (
    SEARCH_FEATURES,
    COLUMNS,
    NETWORKS,
    METRICS,
    ALIGNERS,
    SYMMETRIZATIONS,
    OPTIMIZERS,
    CORPUS_FORMATS,
)
"""All registries."""


def of_other_packages(words: Collection[str]) -> dict[str, str]:
    """Return the components of other Python packages that have one of these names.

    Args:
        words: names, for example all strings of a configuration.

    Returns:
        Package and version of each component (``other-package 1.2``) by its kind and name (``metric length``).
    """
    return {
        f"{registry.kind} {name}": registry.package(name)
        for registry in REGISTRIES
        for name in registry.others()
        if name in words
    }
