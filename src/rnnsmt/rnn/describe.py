"""Print the sizes, the parts and the number of parameters of a network, without building it."""

import argparse

from rnnsmt.phrases.options import positive
from rnnsmt.rnn.presets import PRESETS
from rnnsmt.rnn.sizes import Sizes
from rnnsmt.rnn.train import add_settings, settings_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", choices=tuple(PRESETS), default="paper")
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}-vocabulary", type=positive, default=15_001, help="classes: id 0, UNK, the words, EOS"
        )
    add_settings(parser)


def run(args: argparse.Namespace) -> dict[str, object]:
    from rnnsmt.io import InputError

    settings = settings_of(args)
    try:
        sizes = settings.sizes(args.source_vocabulary, args.target_vocabulary)
    except ValueError as error:
        raise InputError(str(error)) from None
    print(describe(sizes))
    print("training: " + ", ".join(f"{name} {value}" for name, value in settings.as_dict().items()))
    return {"parameters": sizes.count()}


def describe(sizes: Sizes) -> str:
    """Sizes, then one line for every group of parameters, with the sum of every part."""
    lines = [f"{name.replace('_', ' '):20} {value}" for name, value in sizes.as_dict().items()]
    lines.append("")
    for part, symbols in sizes.parameters().items():
        lines.append(f"{part:30} {sum(symbols.values()):>12,}")
        lines += [f"    {symbol:26} {number:>12,}" for symbol, number in symbols.items()]
    lines.append(f"{'all parameters':30} {sizes.count():>12,}")
    return "\n".join(lines)
