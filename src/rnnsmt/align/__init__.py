"""Word alignment and symmetrisation."""

FAST_ALIGN_ITERATIONS = 5
"""Iterations of fast_align, including the last one, which only aligns."""

MODEL1_ITERATIONS = 5

HMM_ITERATIONS = 5
"""Iterations that estimate parameters; a further one aligns."""

MODEL4_ITERATIONS = 6
"""Iterations of Models 3 and 4, see ``model4.PASSES``."""

PASSES_OF = {
    "fast_align": FAST_ALIGN_ITERATIONS,
    "hmm": MODEL1_ITERATIONS + HMM_ITERATIONS + 1,
    "model4": MODEL1_ITERATIONS + HMM_ITERATIONS + MODEL4_ITERATIONS,
}
"""Number of iterations over the corpus of each aligner; defined here, so that the workflow does not import numba."""

DIRECTIONS = ("forward", "reverse")
"""Alignment directions; in ``forward``, target words are generated from source words."""

HEURISTICS = ("grow-diag-final-and", "grow-diag-final", "grow-diag", "intersection", "union")
"""Names of the symmetrisation heuristics, the default first."""

ORDERS = ("atools", "symal")
"""Orders in which grow-diag tries links, the default first."""

MAX_PAIRS = 500_000_000
"""Maximum number of word pairs in a lexicon; each takes 16 bytes in a pass over the corpus."""
