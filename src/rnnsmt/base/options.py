"""Bounds and names of arguments."""

from collections.abc import Iterable, Sequence
from numbers import Integral

from rnnsmt.base.errors import InputError

MAX_THREADS = 1024

DEVICES = ("auto", "cpu", "cuda")

MAX_SEED = 2**63 - 1

MAX_INT = 2**31 - 1
"""Maximum of all other integers, as limited by the libraries."""


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


def option(name: str) -> str:
    """Return an option as it is written on the command line."""
    return f"--{name.replace('_', '-')}"
