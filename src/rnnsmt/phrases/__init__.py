"""Phrase extraction, scoring, reordering tables, files of phrase tables, and filtering."""

SMOOTHINGS = ("none", "kneser-ney")
"""Values of the smoothing of phrase probabilities, the default first."""
