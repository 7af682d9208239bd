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
