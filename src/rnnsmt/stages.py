"""All commands of the pipeline, with the version of their output.

The command line and the rules of the workflow read this table. The commands of a package that has a module
``operations`` are its functions (``rnnsmt.base.operations``), which carry version and help text. The other packages are
in ``STAGES``; their command ``corpus join`` consists of two functions in ``rnnsmt.corpus.commands``::

    def join_options(parser: argparse.ArgumentParser) -> None: ...
    def join(args: argparse.Namespace) -> dict[str, object]: ...   # the figures of its last log line

Increase ``version`` when the same input gives a different output than before: the rules pass it in ``params``, so that
Snakemake, which does not track changes of Python code, reruns the jobs of this command.
"""

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rnnsmt.base.operations import Operation


class Stage(NamedTuple):
    """A command ``rnnsmt PACKAGE NAME``: the version of its output, and its help text."""

    version: int
    help: str


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

STAGES: dict[str, dict[str, Stage]] = {
    "translation": {
        "describe": Stage(3, "write the preprocessing and decoder settings that `translate` reads"),
        "translate": Stage(1, "translate raw text with a tuned system, or serve it over HTTP"),
        "pack": Stage(1, "pack a tuned system into one archive"),
    },
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
    """Return the operations of a package by name; empty: its commands are in ``STAGES``."""
    if package in STAGES:
        return {}

    from rnnsmt.base.operations import operations_of

    return operations_of(import_module(f"rnnsmt.{package}.operations"))


def stages(package: str) -> dict[str, Stage]:
    """Return the commands of a package by name."""
    found = {name: Stage(one.version, one.summary) for name, one in operations(package).items()}
    return found or STAGES[package]
