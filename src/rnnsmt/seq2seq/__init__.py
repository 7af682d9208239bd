"""Sequence-to-sequence learning with LSTMs (Sutskever, Vinyals and Le 2014)."""

from rnnsmt.seq2seq.operations import translate
from rnnsmt.seq2seq.settings import Seq2SeqSettings

__all__ = ["Seq2SeqSettings", "translate"]
