"""What a network consists of, without building it."""

from collections.abc import Callable
from typing import Any, Protocol

from rnnsmt.io import InputError


class Sizes(Protocol):
    """The sizes of a network; parameters: part -> symbol -> how many numbers."""

    def as_dict(self) -> dict[str, Any]: ...
    def parameters(self) -> dict[str, dict[str, int]]: ...
    def count(self) -> int: ...


class Settings(Protocol):
    """The settings of a training, which give a network its sizes."""

    def as_dict(self) -> dict[str, Any]: ...
    @property
    def sizes(self) -> Callable[..., Sizes]: ...


def print_description(settings: Settings, *vocabularies: int) -> dict[str, object]:
    """Print sizes, parts and settings; the figures of the stage. vocabularies: their numbers of classes.

    Raises:
        InputError: sizes that do not go together.
    """
    try:
        sizes = settings.sizes(*vocabularies)
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
