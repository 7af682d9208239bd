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
    "search": {
        "decode": Stage(4, "translate tokenised text with a Moses model"),
        "binarise": Stage(1, "convert a model to one memory-mapped binary file"),
    },
    "tuning": {
        "mert": Stage(9, "tune weights by MERT or batch MIRA on a dev set"),
        "optimise": Stage(1, "optimise weights on given n-best lists"),
        "rerank": Stage(1, "select the best hypothesis of every n-best list"),
    },
    "evaluation": {
        "bleu": Stage(6, "score one output: BLEU, sacreBLEU, chrF, chrF++ and TER"),
        "score": Stage(6, "detokenise and score the output of all runs of a system"),
        "table": Stage(13, "write Table 1 from the score files of all runs"),
        "compare": Stage(4, "compare two systems sentence by sentence"),
        "oracle": Stage(1, "compute the oracle BLEU of n-best lists"),
        "provenance": Stage(7, "record the files, seeds and weights of Table 1"),
    },
    "translation": {
        "describe": Stage(3, "write the preprocessing and decoder settings that `translate` reads"),
        "translate": Stage(1, "translate raw text with a tuned system, or serve it over HTTP"),
        "pack": Stage(1, "pack a tuned system into one archive"),
    },
    "moses": {
        "check": Stage(1, "check that a Moses installation is complete and works"),
        "align": Stage(1, "align a parallel corpus with MGIZA, GIZA++ or fast_align"),
        "train": Stage(1, "train phrase and reordering tables with train-model.perl"),
        "tune": Stage(2, "tune weights with mert-moses.pl"),
        "decode": Stage(1, "translate tokenised text with the decoder of Moses"),
        "ini": Stage(2, "write the moses.ini of a model directory"),
        "add-feature": Stage(2, "add the feature of rescored n-best lists to a moses.ini"),
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
