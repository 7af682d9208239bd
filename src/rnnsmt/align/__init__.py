"""Word alignment and symmetrisation."""

PASSES_OF = {"fast_align": 5, "hmm": 11, "model4": 16}
"""The aligners, and how often each goes over the corpus; the rules of the workflow count on it."""
