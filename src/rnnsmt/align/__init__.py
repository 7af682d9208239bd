"""Word alignment and symmetrisation."""

from typing import get_args

from rnnsmt.config.sections import Aligner, Symmetrization

FAST_ALIGN_ITERATIONS = 5
"""Iterations of fast_align, including the last one, which only aligns."""

MODEL1_ITERATIONS = 5

HMM_ITERATIONS = 5
"""Iterations that estimate parameters; a further one aligns."""

ALIGNERS: tuple[str, ...] = get_args(Aligner)
"""Names of the aligners."""

DIRECTIONS = ("forward", "reverse")
"""Alignment directions; in ``forward``, target words are generated from source words."""

HEURISTICS: tuple[str, ...] = get_args(Symmetrization)
"""Names of the symmetrisation heuristics, the default first."""

ORDERS = ("atools", "symal")
"""Orders in which grow-diag tries links, the default first."""

MAX_PAIRS = 500_000_000
"""Maximum number of word pairs in a lexicon; each takes 16 bytes in a pass over the corpus."""
