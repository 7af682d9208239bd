"""Word alignment and symmetrisation."""

FAST_ALIGN_ITERATIONS = 5
"""Iterations of fast_align, including the last one, which only aligns."""

MODEL1_ITERATIONS = 5

HMM_ITERATIONS = 5
"""Iterations that estimate parameters; a further one aligns."""

ALIGNERS = ("fast_align", "hmm", "model4")
"""Names of the aligners."""

DIRECTIONS = ("forward", "reverse")
"""Alignment directions; in ``forward``, target words are generated from source words."""

HEURISTICS = ("grow-diag-final-and", "grow-diag-final", "grow-diag", "intersection", "union")
"""Names of the symmetrisation heuristics, the default first."""

ORDERS = ("atools", "symal")
"""Orders in which grow-diag tries links, the default first."""

MAX_PAIRS = 500_000_000
"""Maximum number of word pairs in a lexicon; each takes 16 bytes in a pass over the corpus."""
