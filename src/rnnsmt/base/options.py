"""Bounds and names of arguments."""

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar

from rnnsmt.base.errors import InputError

WORDING: ContextVar[Callable[[str], str]] = ContextVar("WORDING", default=str)
"""Function that is applied to messages; in a call from Python, it replaces options by arguments."""

MAX_THREADS = 1024

MAX_SEED = 2**63 - 1

MAX_INT = 2**31 - 1
"""Maximum of all other integer arguments, as limited by libraries."""


def pruning_mistake(thresholds: Sequence[int], order: int) -> str | None:
    """Return the error message for pruning thresholds of n-grams of order 1, 2 and so on, or None if they are valid."""
    if len(thresholds) > order:
        return f"{len(thresholds)} thresholds for a model of order {order}; specify at most one for each order"
    if list(thresholds) != sorted(thresholds):
        return "thresholds must not decrease"
    return None


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Check that an argument of a Python function is one of the choices."""
    if value not in (names := list(choices)):
        raise InputError(f"{name} {value!r}: must be one of {', '.join(names)}")


def option(name: str) -> str:
    """Return an option as it is written on the command line."""
    return f"--{name.replace('_', '-')}"
