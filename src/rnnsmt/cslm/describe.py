"""Print the sizes, the layers and the number of parameters of a CSLM, without building it."""

import argparse

from rnnsmt.common_options import positive
from rnnsmt.cslm.options import add_settings, settings_of
from rnnsmt.networks.description import print_description


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_settings(parser, "paper")
    parser.add_argument(
        "--vocabulary", type=positive, default=15_001, help="classes: id 0 (padding), UNK, the words, </s>"
    )


def run(args: argparse.Namespace) -> dict[str, object]:
    return print_description(settings_of(args), args.vocabulary)
