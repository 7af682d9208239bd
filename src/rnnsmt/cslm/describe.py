"""Print the sizes, the layers and the number of parameters of a CSLM, without building it."""

import argparse

from rnnsmt.cslm.options import add_training, settings_of
from rnnsmt.cslm.sizes import Sizes
from rnnsmt.phrases.options import positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--vocabulary", type=positive, default=15_001, help="classes: id 0 (padding), UNK, the words, </s>"
    )
    add_training(parser, "paper")


def run(args: argparse.Namespace) -> dict[str, object]:
    from rnnsmt.io import InputError

    settings = settings_of(args)
    try:
        sizes = settings.sizes(args.vocabulary)
    except ValueError as error:
        raise InputError(str(error)) from None
    print(describe(sizes))
    print("training: " + ", ".join(f"{name} {value}" for name, value in settings.as_dict().items()))
    return {"parameters": sizes.count()}


def describe(sizes: Sizes) -> str:
    """Sizes, then one line for every parameter, with the sum of every layer."""
    lines = [f"{name.replace('_', ' '):20} {value}" for name, value in sizes.as_dict().items()]
    lines.append("")
    for part, symbols in sizes.parameters().items():
        lines.append(f"{part:30} {sum(symbols.values()):>12,}")
        lines += [f"    {symbol:26} {number:>12,}" for symbol, number in symbols.items()]
    lines.append(f"{'all parameters':30} {sizes.count():>12,}")
    return "\n".join(lines)
