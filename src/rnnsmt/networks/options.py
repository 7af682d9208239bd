"""Options of the command line for the settings of a training: one for every field of a dataclass with defaults.

Options that the stages of both networks share; imports nothing heavy until a training begins.

What a network consists of, without building it.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, replace
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar

from rnnsmt.io import InputError
from rnnsmt.options import option, positive

Settings = TypeVar("Settings")

PRECISIONS = ("float32", "reduced")
"""Of matrix products, see ``rnnsmt.networks.devices.choose_place``."""


def add_settings(parser: argparse.ArgumentParser, kind: type, choices: Mapping[str, tuple[str, ...]]) -> None:
    """An option for every field of ``kind``, without a default: what is not given is the preset's."""
    group = parser.add_argument_group("instead of the preset's")
    for field in _fields(kind):
        value = type(field.default)
        group.add_argument(
            option(field.name),
            type=value,
            choices=choices.get(field.name),
            default=argparse.SUPPRESS,
            metavar=None if field.name in choices else "N" if value is int else "X",
        )


def chosen_settings(
    args: argparse.Namespace, preset: Settings, above_zero: tuple[str, ...], not_negative: tuple[str, ...]
) -> Settings:
    """The preset with what the command line says instead.

    Raises:
        InputError: a number of a field named in ``above_zero`` or ``not_negative`` is not, or is not finite.
    """
    given = {field.name: getattr(args, field.name) for field in _fields(type(preset)) if field.name in args}
    settings: Settings = replace(preset, **given)  # type: ignore[type-var]
    for name in above_zero:
        if not 0 < getattr(settings, name) < float("inf"):
            raise InputError(f"{option(name)} {getattr(settings, name)}: must be above 0")
    for name in not_negative:
        if not 0 <= getattr(settings, name) < float("inf"):
            raise InputError(f"{option(name)} {getattr(settings, name)}: must be at least 0")
    return settings


def _fields(kind: type) -> tuple[Field[Any], ...]:
    return fields(kind)


def add_device(parser: argparse.ArgumentParser) -> None:
    """``--device`` and ``--threads``, the arguments of ``rnnsmt.networks.devices.choose_place``."""
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: a GPU if there is one")
    parser.add_argument("--threads", type=positive, default=1, help="threads on a CPU")


def need_torch() -> None:
    """Say what to install where torch is missing: not everybody who uses this package trains networks.

    Raises:
        InputError: it is missing.
    """
    if find_spec("torch") is None:
        raise InputError("networks need torch, which is not installed here: pip install 'rnnsmt[networks]'")


def add_training(parser: argparse.ArgumentParser) -> None:
    """What a training has besides its data and its settings: the arguments of ``train``."""
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output-model", required=True, metavar="FILE")
    parser.add_argument("--output-history", required=True, metavar="FILE", help="the learning curve, as JSON")
    parser.add_argument("--state-dir", required=True, metavar="DIR", help="where checkpoints are kept")
    parser.add_argument("--save-every", type=float, default=300.0, metavar="SECONDS", help="time between checkpoints")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="stop before, save, and exit with 75")
    add_device(parser)


def train(args: argparse.Namespace, precision: str, training: Callable[..., dict[str, object]]) -> dict[str, object]:
    """Run a training where ``--device`` says.

    training: takes ``seed``, ``place``, ``outputs`` and ``threads``. precision: as of ``choose_place``.
    """
    from rnnsmt.networks.devices import choose_place
    from rnnsmt.networks.training import Outputs

    place = choose_place(args.device, 1, precision, join=True)
    outputs = Outputs(args.output_model, args.output_history, args.state_dir, args.save_every, args.time_limit)
    threads = args.threads if place.device.type == "cpu" else 1
    try:
        return training(seed=args.seed, place=place, outputs=outputs, threads=threads)
    finally:
        place.close()


class NetworkSizes(Protocol):
    """The sizes of a network; parameters: part -> symbol -> how many numbers."""

    def as_dict(self) -> dict[str, Any]: ...
    def parameters(self) -> dict[str, dict[str, int]]: ...
    def count(self) -> int: ...


def print_description(settings: Any, *vocabularies: int) -> dict[str, object]:
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


def describe(sizes: NetworkSizes) -> str:
    """Sizes, then one line for every group of parameters, with the sum of every part."""
    lines = [f"{name.replace('_', ' '):20} {value}" for name, value in sizes.as_dict().items()]
    lines.append("")
    for part, symbols in sizes.parameters().items():
        lines.append(f"{part:30} {sum(symbols.values()):>12,}")
        lines += [f"    {symbol:26} {number:>12,}" for symbol, number in symbols.items()]
    lines.append(f"{'all parameters':30} {sizes.count():>12,}")
    return "\n".join(lines)
