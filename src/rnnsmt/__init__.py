"""rnnsmt: Table 1 of Cho et al. 2014, from raw text to BLEU.

One sub-package per chapter of the pipeline: ``demo``, ``corpus``, ``selection``, ``align``, ``phrases``, ``lm``,
``rnn``, ``cslm``, ``search``, ``tuning``, ``evaluation``, ``analysis``, ``translation``. ``networks`` is what ``rnn``
and ``cslm`` share, ``bleu`` what ``tuning`` and ``evaluation`` share; ``moses`` holds what concerns Moses' own files,
``kernels`` the compiled ground of all. ``rnnsmt.stages`` lists every command.
"""

from importlib import import_module

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """``rnnsmt.load(folder)``: a tuned system, see ``rnnsmt.translation.system.System``."""
    if name == "load":
        return import_module("rnnsmt.translation.system").System
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
