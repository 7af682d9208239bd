"""Options that the stages of this chapter share; imports nothing heavy."""

import argparse
from importlib.util import find_spec

from rnnsmt.io import InputError
from rnnsmt.phrases.options import positive


def add_device(parser: argparse.ArgumentParser) -> None:
    """``--device`` and ``--threads``, the arguments of ``rnnsmt.devices.choose_place``."""
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: a GPU if there is one")
    parser.add_argument("--threads", type=positive, default=1, help="threads on a CPU")


def need_torch() -> None:
    """Say what to install where torch is missing: not everybody who uses this package trains networks.

    Raises:
        InputError: it is missing.
    """
    if find_spec("torch") is None:
        raise InputError("networks need torch, which is not installed here: pip install 'rnnsmt[networks]'")
