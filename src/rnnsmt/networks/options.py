"""Options that the stages of the networks share: the device, the settings of a training, its files; nothing heavy."""

import argparse
from collections.abc import Mapping
from dataclasses import Field, fields, replace
from importlib.util import find_spec
from typing import Any, TypeVar

from rnnsmt.io import InputError
from rnnsmt.networks.settings import NetworkSizes, TrainingSettings
from rnnsmt.options import not_negative, option, positive

SomeSettings = TypeVar("SomeSettings", bound=TrainingSettings)


def need_torch() -> None:
    """Say what to install where torch is missing: not everybody who uses this package trains networks.

    Raises:
        InputError: it is missing.
    """
    if find_spec("torch") is None:
        raise InputError("networks need torch, which is not installed here: pip install 'rnnsmt[networks]'")


def add_device(parser: argparse.ArgumentParser) -> None:
    """``--device`` and ``--threads``, the arguments of ``rnnsmt.networks.devices.choose_place``."""
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: a GPU if there is one")
    parser.add_argument("--threads", type=positive, default=1, help="threads on a CPU")


def add_settings(parser: argparse.ArgumentParser, presets: Mapping[str, TrainingSettings], default: str) -> None:
    """``--preset``, and an option for every setting of it, without a default: what is not given is the preset's."""
    parser.add_argument("--preset", choices=tuple(presets), default=default)
    group = parser.add_argument_group("instead of the preset's")
    choices = presets[default].choices
    for field in _fields(presets[default]):
        value = type(field.default)
        group.add_argument(
            option(field.name),
            type=value,
            choices=choices.get(field.name),
            default=argparse.SUPPRESS,
            metavar=None if field.name in choices else "N" if value is int else "X",
        )


def chosen_settings(args: argparse.Namespace, presets: Mapping[str, SomeSettings]) -> SomeSettings:
    """The preset with what the command line says instead.

    Raises:
        InputError: a number that makes no sense.
    """
    preset = presets[args.preset]
    given = {field.name: getattr(args, field.name) for field in _fields(preset) if field.name in args}
    return preset_with(preset, given)


def preset_with(preset: SomeSettings, given: Mapping[str, Any]) -> SomeSettings:
    """The preset with other values; what the preset says and they do not allow is left out.

    Raises:
        InputError: a number that makes no sense, or values that do not go together.
    """
    settings: SomeSettings = replace(preset, **given)  # type: ignore[type-var]
    unfit = {name: 0 for name in settings.unfit() if name not in given}
    settings = replace(settings, **unfit)  # type: ignore[type-var]
    settings.check()
    return settings


def _fields(settings: Any) -> tuple[Field[Any], ...]:
    return fields(settings)


def add_training(parser: argparse.ArgumentParser) -> None:
    """What a training has besides its data and its settings."""
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output-model", required=True, metavar="FILE")
    parser.add_argument("--output-history", required=True, metavar="FILE", help="the learning curve, as JSON")
    parser.add_argument("--state-dir", required=True, metavar="DIR", help="where checkpoints are kept")
    parser.add_argument("--save-every", type=float, default=300.0, metavar="SECONDS", help="time between checkpoints")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="stop before, save, and exit with 75")
    parser.add_argument(
        "--processes",
        type=not_negative,
        default=1,
        help="that train together, each on a GPU of its own; 0 and 1: this one alone",
    )
    add_device(parser)


def print_description(settings: TrainingSettings, *vocabularies: int) -> dict[str, object]:
    """Print sizes, parts and settings; returns the stats of the stage. vocabularies: their numbers of classes.

    Raises:
        InputError: sizes that do not go together.
    """
    try:
        sizes = settings.sizes(*vocabularies)
    except ValueError as error:
        raise InputError(str(error)) from None
    print(_table(sizes))
    print("training: " + ", ".join(f"{name} {value}" for name, value in settings.as_dict().items()))
    return {"parameters": sizes.count()}


def _table(sizes: NetworkSizes) -> str:
    """Sizes, then one line for every group of parameters, with the sum of every part."""
    lines = [f"{name.replace('_', ' '):20} {value}" for name, value in sizes.as_dict().items()]
    lines.append("")
    for part, symbols in sizes.parameters().items():
        lines.append(f"{part:30} {sum(symbols.values()):>12,}")
        lines += [f"    {symbol:26} {number:>12,}" for symbol, number in symbols.items()]
    lines.append(f"{'all parameters':30} {sizes.count():>12,}")
    return "\n".join(lines)
