"""All commands of the pipeline.

A command ``rnnsmt PACKAGE NAME`` is a function in the module ``operations`` of the package. Its docstring is the help
text, and its decorator (``rnnsmt.base.operations.operation``) states the version of its output.
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
    "networks": "training data, training and scores of neural networks, perplexity",
    "rnn": "RNN Encoder-Decoder (Cho et al. 2014)",
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


FORMER = {
    "align check": "`rnnsmt phrases lexical` and the other commands that read an alignment check it",
    "align count": "use `rnnsmt align words`",
    "align cut": "use `rnnsmt align words`",
    "align estimate": "use `rnnsmt align words`",
    "align links": "use `rnnsmt align words`",
    "analysis learning-curve": "use `rnnsmt analysis history-curves --history TITLE=FILE`",
    "analysis mert-curves": "use `rnnsmt analysis history-curves`",
    "analysis tuning-curves": "use `rnnsmt analysis history-curves`",
    "cslm prepare": "use `rnnsmt networks prepare --network cslm`",
    "cslm train": "use `rnnsmt networks train --network cslm`",
    "cslm describe": "`rnnsmt networks train --network cslm --help` shows the presets",
    "cslm perplexity": "use `rnnsmt networks perplexity`",
    "cslm rescore": "use `rnnsmt networks rescore`",
    "cslm score": "use `rnnsmt networks rescore` on an n-best list with one translation per sentence",
    "evaluation bleu": "use `rnnsmt evaluation score`",
    "evaluation comet": "use the program `comet-score` of unbabel-comet",
    "lm interpolate": "use `rnnsmt lm estimate` on all text",
    "lm perplexity": "use `rnnsmt networks perplexity`",
    "monitoring": "use `rnnsmt status`",
    "monitoring status": "use `rnnsmt status`",
    "monitoring usage": 'see the section "Resource usage" of the report',
    "moses add-column": "use `rnnsmt phrases augment --ini`",
    "moses add-feature": "use `rnnsmt tuning optimize --feature NAME=W` or `rnnsmt tuning rerank --feature NAME=W`",
    "moses check": "use `snakemake --dry-run --config engine=moses moses_home=DIR`",
    "moses ini": "use `rnnsmt moses write-ini`",
    "nnjm prepare": "use `rnnsmt networks prepare --network nnjm`",
    "nnjm train": "use `rnnsmt networks train --network nnjm`",
    "nnjm describe": "`rnnsmt networks train --network nnjm --help` shows the presets",
    "nnjm export-nplm": "use `rnnsmt moses write-ini --network nnjm=FILE` with a network of `rnnsmt networks train`",
    "nnjm import-nplm": "use `rnnsmt moses write-ini --network nnjm=FILE` with a network of `rnnsmt networks train`",
    "nnjm perplexity": "use `rnnsmt networks perplexity`",
    "nnjm rescore": "use `rnnsmt moses write-ini --network nnjm=FILE` with a network of `rnnsmt networks train`",
    "phrases fill-up": "there is no replacement",
    "phrases prune": "use Moses' `filter-pt`",
    "rnn prepare": "use `rnnsmt networks prepare --network rnn`",
    "rnn train": "use `rnnsmt networks train --network rnn`",
    "rnn describe": "`rnnsmt networks train --network rnn --help` shows the presets",
    "rnn propose": "use `rnnsmt rnn translate --nbest N`",
    "rnn sample": "use `rnnsmt rnn translate --nbest N`",
    "rnn score": "use `rnnsmt phrases column --name rnn`",
    "rnn shortlist": "use `rnnsmt phrases column --name wp`",
    "search binarise": "use `rnnsmt search binarize`",
    "seq2seq prepare": "use `rnnsmt networks prepare --network seq2seq`",
    "seq2seq train": "use `rnnsmt networks train --network seq2seq`",
    "seq2seq describe": "`rnnsmt networks train --network seq2seq --help` shows the presets",
    "seq2seq rescore": "use `rnnsmt networks rescore`",
    "seq2seq score": "use `rnnsmt networks rescore` on an n-best list with one translation per sentence",
    "tuning mert": "use `rnnsmt tuning tune`",
    "tuning optimise": "use `rnnsmt tuning optimize`",
    "usage": 'see the section "Resource usage" of the report',
}
"""Commands of version 1.0.0 that were renamed or removed, with what to use instead; see docs/upgrading.md."""


def operations(package: str) -> "dict[str, Operation]":
    """Return the operations of a package by command name."""
    from rnnsmt.base.operations import operations_of

    return operations_of(import_module(f"rnnsmt.{package}.operations"))
