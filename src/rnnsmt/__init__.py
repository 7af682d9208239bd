"""rnnsmt: reproduction of Table 1 of Cho et al. (2014), from raw text to BLEU.

Each step of the pipeline is a subpackage: ``demo``, ``corpus``, ``selection``, ``align``, ``phrases``, ``lm``,
``networks``, ``rnn``, ``cslm``, ``nnjm``, ``seq2seq``, ``search``, ``tuning``, ``evaluation``, ``analysis``,
``translation``. ``bleu`` contains the code that ``tuning`` and ``evaluation`` share; ``formats`` reads and writes files
of Moses and KenLM, ``moses`` calls the programs of Moses, and ``base.kernels`` contains the shared numba kernels.
``rnnsmt.stages`` lists every command.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from rnnsmt.stages import PACKAGES

if TYPE_CHECKING:
    from rnnsmt import align as align
    from rnnsmt import analysis as analysis
    from rnnsmt import corpus as corpus
    from rnnsmt import cslm as cslm
    from rnnsmt import demo as demo
    from rnnsmt import evaluation as evaluation
    from rnnsmt import lm as lm
    from rnnsmt import moses as moses
    from rnnsmt import networks as networks
    from rnnsmt import nnjm as nnjm
    from rnnsmt import phrases as phrases
    from rnnsmt import project as project
    from rnnsmt import rnn as rnn
    from rnnsmt import search as search
    from rnnsmt import selection as selection
    from rnnsmt import seq2seq as seq2seq
    from rnnsmt import translation as translation
    from rnnsmt import tuning as tuning
    from rnnsmt.base.errors import InputError as InputError
    from rnnsmt.translation.system import System

    load = System

__version__ = "2.0.0"

_MODULES = {*PACKAGES, "cslm", "nnjm"}
"""Packages of the public interface: all packages with commands, and ``cslm`` and ``nnjm`` (settings of networks)."""


def __getattr__(name: str) -> object:
    """Return a package, ``InputError``, or ``load``; ``rnnsmt.load(directory)`` loads a tuned system."""
    if name in _MODULES:
        return import_module(f"rnnsmt.{name}")
    if name == "load":
        return import_module("rnnsmt.translation.system").System
    if name == "InputError":
        return import_module("rnnsmt.base.errors").InputError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names in the module, including those that are loaded on first use."""
    return sorted({*globals(), *_MODULES, "InputError", "load"})
