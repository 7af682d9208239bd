"""Word alignment and symmetrisation."""

PASSES_OF = {"fast_align": 5, "hmm": 11, "model4": 16}
"""Number of passes over the corpus of each aligner, used by the rules of the workflow."""
