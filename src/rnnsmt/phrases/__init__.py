"""Phrase extraction, scoring, reordering tables, files of phrase tables, and filtering."""

from typing import get_args

from rnnsmt.config.sections import Smoothing

SMOOTHINGS: tuple[str, ...] = get_args(Smoothing)
"""Values of the smoothing of phrase probabilities, the default first."""
