"""Options that the commands of all networks share: device, training settings, training files; imports nothing heavy."""

import argparse
from collections.abc import Mapping
from dataclasses import Field, fields, replace
from importlib.util import find_spec
from typing import Any, TypeVar

from rnnsmt.base.io import InputError
from rnnsmt.base.options import not_negative, option, positive
from rnnsmt.networks.settings import NetworkSizes, TrainingSettings

SomeSettings = TypeVar("SomeSettings", bound=TrainingSettings)


def need_torch() -> None:
    """Check that torch, an optional dependency, is installed.

    Raises:
        InputError: torch is not installed.
    """
    if find_spec("torch") is None:
        raise InputError("neural networks need torch, which is not installed: pip install 'rnnsmt[networks]'")


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add ``--device`` and ``--threads``, the arguments of ``rnnsmt.networks.devices.choose_place``."""
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="device to compute on; auto: a GPU if one is available, else the CPU",
    )
    parser.add_argument("--threads", type=positive, default=1, help="number of CPU threads")


def add_settings(parser: argparse.ArgumentParser, presets: Mapping[str, TrainingSettings], default: str) -> None:
    """Add ``--preset`` and an option for every setting; a setting that is not given has the value of the preset.

    The help text of a setting is that of ``TrainingSettings.helps`` with the values of all presets.
    """
    parser.add_argument(
        "--preset", choices=tuple(presets), default=default, help="set of network sizes and training settings"
    )
    group = parser.add_argument_group("override preset settings")
    choices = presets[default].choices
    for field in _fields(presets[default]):
        value = type(field.default)
        group.add_argument(
            option(field.name),
            type=value,
            choices=choices.get(field.name),
            default=argparse.SUPPRESS,
            metavar=None if field.name in choices else "N" if value is int else "X",
            help=_help_with_presets(presets, field.name),
        )


def _help_with_presets(presets: Mapping[str, TrainingSettings], name: str) -> str:
    """Return the help text of a setting with its value in every preset, with ``%`` escaped for argparse."""
    values = {preset: getattr(settings, name) for preset, settings in presets.items()}
    texts = {preset: f"{value:g}" if isinstance(value, float) else str(value) for preset, value in values.items()}
    if len(set(texts.values())) == 1:
        shown = f"all presets: {next(iter(texts.values()))}"
    else:
        shown = ", ".join(f"{preset} {text}" for preset, text in texts.items())
    text = next(iter(presets.values())).helps[name]
    return f"{text} ({shown})".replace("%", "%%")


def chosen_settings(args: argparse.Namespace, presets: Mapping[str, SomeSettings]) -> SomeSettings:
    """Return the settings of ``--preset``, overridden by the options of the command line.

    Raises:
        InputError: a value is out of range, or values are incompatible.
    """
    preset = presets[args.preset]
    given = {field.name: getattr(args, field.name) for field in _fields(preset) if field.name in args}
    return preset_with(preset, given)


def preset_with(preset: SomeSettings, given: Mapping[str, Any]) -> SomeSettings:
    """Override settings of a preset; settings of the preset that the given values do not permit are set to 0.

    Raises:
        InputError: a value is out of range, or the given values are incompatible.
    """
    settings: SomeSettings = replace(preset, **given)  # type: ignore[type-var]
    unfit = {name: 0 for name in settings.unfit() if name not in given}
    settings = replace(settings, **unfit)  # type: ignore[type-var]
    settings.check()
    return settings


def _fields(settings: Any) -> tuple[Field[Any], ...]:
    return fields(settings)


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add the options of a training besides its data and settings: seed, files, time limit, processes, device."""
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--output-model", required=True, metavar="FILE", help="output file: the trained network")
    parser.add_argument(
        "--output-history", required=True, metavar="FILE", help="output file: settings and learning curve (JSON)"
    )
    parser.add_argument(
        "--state-dir", required=True, metavar="DIR", help="checkpoint directory, used to resume an interrupted run"
    )
    parser.add_argument("--save-every", type=float, default=300.0, metavar="SECONDS", help="time between checkpoints")
    parser.add_argument(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="save a checkpoint and exit with status 75 before this time limit",
    )
    parser.add_argument(
        "--processes",
        type=not_negative,
        default=1,
        help="number of data-parallel processes, one per GPU; 0 is the same as 1",
    )
    add_device(parser)


def print_description(settings: TrainingSettings, *vocabularies: int) -> dict[str, object]:
    """Print sizes, parameters of every part, and settings of a network; return the statistics of the command.

    vocabularies: the number of classes of each vocabulary.

    Raises:
        InputError: a size is out of range.
    """
    try:
        sizes = settings.sizes(*vocabularies)
    except ValueError as error:
        raise InputError(str(error)) from None
    print(_table(sizes))
    print("training: " + ", ".join(f"{name} {value}" for name, value in settings.as_dict().items()))
    return {"parameters": sizes.count()}


def _table(sizes: NetworkSizes) -> str:
    """Format the sizes, then one line for every group of parameters, with the sum of every part."""
    lines = [f"{name.replace('_', ' '):20} {value}" for name, value in sizes.as_dict().items()]
    lines.append("")
    for part, symbols in sizes.parameters().items():
        lines.append(f"{part:30} {sum(symbols.values()):>12,}")
        lines += [f"    {symbol:26} {number:>12,}" for symbol, number in symbols.items()]
    lines.append(f"{'all parameters':30} {sizes.count():>12,}")
    return "\n".join(lines)
