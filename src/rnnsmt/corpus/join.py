"""Join text files, one after the other."""

import argparse

from rnnsmt.io import InputError, read_lines, write_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``rnnsmt corpus join``."""
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="text files, in their order")
    parser.add_argument("--output", required=True, metavar="FILE", help="the joined text")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Write all lines of the inputs; raises ``InputError`` where there are none."""
    lines = write_lines(args.output, (line for path in args.input for line in read_lines(path)))
    if not lines:
        raise InputError(f"{', '.join(args.input)}: no lines at all")
    return {"files": len(args.input), "lines": lines}
