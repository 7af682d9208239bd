"""All commands of the pipeline.

A command ``rnnsmt PACKAGE NAME`` is a function in the module ``operations`` of a package (``rnnsmt.base.operations``),
which carries its help text and the version of its output.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rnnsmt.base.operations import Operation

PACKAGES: dict[str, str] = {
    "demo": "English-French demo corpus",
    "corpus": "download, normalise, tokenise, clean and truecase text",
    "selection": "data selection by cross-entropy difference (Moore-Lewis, Axelrod)",
    "align": "word alignment and symmetrisation",
    "phrases": "phrase table and lexicalised reordering table",
    "lm": "n-gram language models",
    "rnn": "RNN Encoder-Decoder (Cho et al. 2014)",
    "cslm": "continuous-space language model (Schwenk 2007)",
    "nnjm": "neural network joint model (Devlin et al. 2014)",
    "seq2seq": "sequence-to-sequence learning with LSTMs (Sutskever et al. 2014)",
    "search": "phrase-based decoder",
    "tuning": "weight tuning by MERT or batch MIRA",
    "evaluation": "BLEU, significance tests and Table 1",
    "analysis": "figures, tables and the report of a run",
    "translation": "translation of raw text with a tuned system",
    "moses": "conversion of models for Moses, and calls of Moses programs",
    "project": "creation of a run directory, and execution of the workflow",
}

SHORT = {
    "init": ("project", "init"),
    "run": ("project", "run"),
    "translate": ("translation", "translate"),
    "pack": ("translation", "pack"),
    "status": ("project", "status"),
}
"""Short names of commands: ``rnnsmt translate`` is ``rnnsmt translation translate``."""


def operations(package: str) -> "dict[str, Operation]":
    """Return the operations of a package by name of the command."""
    from rnnsmt.base.operations import operations_of

    return operations_of(import_module(f"rnnsmt.{package}.operations"))
