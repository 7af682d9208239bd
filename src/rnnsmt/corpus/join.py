"""Join text files, one after the other."""

import argparse
from collections.abc import Iterator

from rnnsmt.io import InputError, read_lines, write_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``rnnsmt corpus join``."""
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="text files, in their order")
    parser.add_argument("--output", required=True, metavar="FILE", help="the joined text")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Write all lines of the inputs; raises ``InputError`` where there are none."""
    lines = write_lines(args.output, _all_lines(args.input))
    return {"files": len(args.input), "lines": lines}


def _all_lines(paths: list[str]) -> Iterator[str]:
    empty = True
    for path in paths:
        for line in read_lines(path):
            empty = False
            yield line
    if empty:
        raise InputError(f"{', '.join(paths)}: no lines at all")
