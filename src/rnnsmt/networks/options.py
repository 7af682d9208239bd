"""What the commands of all networks share; does not import torch."""

import argparse
from importlib.util import find_spec

from rnnsmt.base.fields import add_fields
from rnnsmt.base.io import InputError
from rnnsmt.base.options import add_threads
from rnnsmt.config.sections import Rnn


def need_torch() -> None:
    """Check that torch and safetensors, optional dependencies, are installed."""
    for package in ("torch", "safetensors"):
        if find_spec(package) is None:
            raise InputError(
                f"neural networks require {package}, which is not installed; run `pip install 'rnnsmt[networks]'`"
            )


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add ``--device`` and ``--threads``, the arguments of ``rnnsmt.networks.devices.set_up_device``."""
    add_fields(parser, Rnn, "device")
    add_threads(parser)
