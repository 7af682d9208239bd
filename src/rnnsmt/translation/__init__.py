"""Use of a tuned system: translation of raw text to raw text from the command line, from Python, and over HTTP."""

from rnnsmt.translation.operations import describe, pack, translate

__all__ = ["describe", "pack", "translate"]
