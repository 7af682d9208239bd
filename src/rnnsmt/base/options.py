"""Checks of the options of every command before it starts, so that it does not fail after hours of computation.

Outputs are the options whose names begin with ``--output``, and those of ``OTHER_OUTPUTS``.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from rnnsmt.base.io import STANDARD_STREAM, InputError, check_output, check_output_directory

MAX_THREADS = 1024

DEVICES = ("auto", "cpu", "cuda")

MAX_SEED = 2**63 - 1

MAX_INT = 2**31 - 1
"""Maximum of all other integers, as limited by the libraries."""

SEEDS = ("seed", "random")

NONE_IS_MINUS_ONE = ("distortion_limit",)

DIRECTORIES = ("output_dir", "checkpoint_dir", "run_dir")

OTHER_OUTPUTS = ("report", "curve", "nbest_file")

NO_PATHS = ("package", "stage", "aligner", "direction", "heuristic", "optimiser", "preset", "smoothing", "threshold")
"""Options whose values may be equal to the name of an output."""


def positive(text: str) -> int:
    """Parse a positive integer, as the type of an option."""
    value = _integer(text)
    if value is None or value < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be a positive integer")
    return value


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def add_threads(parser: argparse._ActionsContainer, of: str = "threads") -> None:
    """Add ``--threads``; the number does not affect the result."""
    parser.add_argument(
        "--threads", type=positive, default=1, metavar="N", help=f"number of {of}; does not affect the result"
    )


def integer_between(least: int, most: int) -> Callable[[str], int]:
    """Return the type of an option for integers from ``least`` to ``most``."""

    def integer(text: str) -> int:
        value = _integer(text)
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text}: must be an integer from {least} to {most}")
        return value

    return integer


def pruning_mistake(thresholds: Sequence[int], order: int) -> str | None:
    """Return the error message for invalid pruning thresholds of n-grams of order 1, 2 and so on; None: valid."""
    if len(thresholds) > order:
        return f"{len(thresholds)} thresholds for a model of order {order}; specify at most one for each order"
    if list(thresholds) != sorted(thresholds):
        return "thresholds must not decrease"
    return None


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Check that an argument of a Python function is one of the choices."""
    if value not in (names := list(choices)):
        raise InputError(f"{name} {value!r}: must be one of {', '.join(names)}")


def check_integer(name: str, value: object, least: int, most: int) -> None:
    """Check that an argument of a Python function is an integer from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        raise InputError(f"{name} {value!r}: must be an integer from {least} to {most}")


def check_options(args: argparse.Namespace) -> None:
    """Check the threads, random seed, other integers, seconds and outputs of a command."""
    _check_range(args, "threads", 1, MAX_THREADS)
    for name, value in vars(args).items():
        if name in SEEDS:
            _check_range(args, name, 0, MAX_SEED)
        elif any(isinstance(item, int) for item in _values(value)):
            _check_range(args, name, -1 if name in NONE_IS_MINUS_ONE else 0, MAX_INT)
    if not getattr(args, "save_every", 0) >= 0:
        raise InputError(f"--save-every {args.save_every}: must be a non-negative number of seconds")
    if getattr(args, "time_limit", None) is not None and not args.time_limit > 0:
        raise InputError(f"--time-limit {args.time_limit}: must be a positive number of seconds")
    paths = [
        (name, Path(item))
        for name, value in vars(args).items()
        for item in _values(value)
        if name not in NO_PATHS and isinstance(item, (str, Path)) and str(item) != STANDARD_STREAM
    ]
    for name, path in paths:
        if name in DIRECTORIES:
            check_output_directory(path)
        elif name.startswith("output") or name in OTHER_OUTPUTS:
            check_output(path)
        else:
            continue
        # the directories of different options may be equal
        others = [other.resolve() for user, other in paths if user == name or name not in DIRECTORIES]
        if others.count(path.resolve()) > 1:
            raise InputError(f"{option(name)} {path}: used twice; every output must have a different name")


def option(name: str) -> str:
    """Return an option as it is written on the command line."""
    return f"--{name.replace('_', '-')}"


def _values(value: Any) -> list[Any]:
    """Return the values of an option as a flat list: one value, a list, the lists of a repeated option, or None."""
    if not isinstance(value, list):
        return [] if value is None else [value]
    return [item for element in value for item in (element if isinstance(element, list) else [element])]


def _check_range(args: argparse.Namespace, name: str, least: int, most: int) -> None:
    for value in _values(getattr(args, name, None)):
        if not least <= value <= most:
            limit = f"at least {least}" if value < least else f"at most {most}"
            raise InputError(f"{option(name)} {value}: must be {limit}")
