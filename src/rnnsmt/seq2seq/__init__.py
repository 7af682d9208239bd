"""Sequence-to-sequence learning with LSTMs (Sutskever, Vinyals and Le 2014)."""
