"""Options that the stages of this chapter share; imports nothing heavy."""

import argparse


def positive(text: str) -> int:
    """A whole number above 0, as the type of an option."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return value


def add_resources(parser: argparse.ArgumentParser) -> None:
    """``--threads`` and ``--memory-mb``; neither changes an output."""
    parser.add_argument("--threads", type=positive, default=1, help="threads of counting, reading and compression")
    parser.add_argument("--memory-mb", type=positive, default=2000, help="about how much memory to use before spilling")
