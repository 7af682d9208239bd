"""Vocabulary of the embedded corpus as tables with one entry per line; see ``entries`` for the notation."""
