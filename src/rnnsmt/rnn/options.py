"""Options that the stages of this chapter share; imports nothing heavy."""

import argparse

from rnnsmt.phrases.options import positive


def add_device(parser: argparse.ArgumentParser) -> None:
    """``--device`` and ``--threads``, the arguments of ``rnnsmt.devices.choose_place``."""
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: a GPU if there is one")
    parser.add_argument("--threads", type=positive, default=1, help="threads of matrix products on a CPU")
