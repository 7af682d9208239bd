"""Options that the stages of this chapter share; imports nothing heavy."""

import argparse

from rnnsmt.common_options import positive


def add_resources(parser: argparse.ArgumentParser) -> None:
    """``--threads`` and ``--memory-mb``; neither changes an output."""
    parser.add_argument("--threads", type=positive, default=1, help="threads of counting, reading and compression")
    parser.add_argument("--memory-mb", type=positive, default=2000, help="about how much memory to use before spilling")
