"""Print the sizes, the parts and the number of parameters of a network, without building it."""

import argparse

from rnnsmt.common_options import positive
from rnnsmt.networks.description import print_description
from rnnsmt.rnn.options import add_settings, settings_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_settings(parser, "paper")
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}-vocabulary", type=positive, default=15_001, help="classes: id 0, UNK, the words, EOS"
        )


def run(args: argparse.Namespace) -> dict[str, object]:
    return print_description(settings_of(args), args.source_vocabulary, args.target_vocabulary)
