"""Options that the commands of all networks share: device, training settings; does not import torch."""

import argparse
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, TypeVar

from rnnsmt.base.fields import add_fields, add_option, checked, fields_of
from rnnsmt.base.io import InputError
from rnnsmt.base.options import MAX_INT, add_threads, integer_between, option
from rnnsmt.config.sections import Rnn
from rnnsmt.networks.settings import NetworkSizes, TrainingSettings

SomeSettings = TypeVar("SomeSettings", bound=TrainingSettings)


def need_torch() -> None:
    """Check that torch and safetensors, optional dependencies, are installed."""
    for package in ("torch", "safetensors"):
        if find_spec(package) is None:
            raise InputError(
                f"neural networks require {package}, which is not installed; run `pip install 'rnnsmt[networks]'`"
            )


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add ``--device`` and ``--threads``, the arguments of ``rnnsmt.networks.devices.set_up_device``."""
    add_fields(parser, Rnn, "device")
    add_threads(parser)


def add_settings(parser: argparse.ArgumentParser, presets: Mapping[str, TrainingSettings], default: str) -> None:
    """Add ``--preset`` and an option for every setting; a setting that is not given has the value of the preset.

    The help text of a setting ends with the values of all presets.
    """
    parser.add_argument(
        "--preset", choices=tuple(presets), default=default, help="preset of network sizes and training settings"
    )
    group = parser.add_argument_group("override preset settings")
    owner = type(presets[default])
    for name, setting in fields_of(owner).items():
        text = _help_with_presets(setting.field.description, presets, name)
        add_option(group, name, setting, default=argparse.SUPPRESS, help=text)


def _help_with_presets(text: str, presets: Mapping[str, TrainingSettings], name: str) -> str:
    """Append the value of a setting in every preset to its help text, with ``%`` escaped for argparse."""
    values = {preset: getattr(settings, name) for preset, settings in presets.items()}
    texts = {preset: f"{value:g}" if isinstance(value, float) else str(value) for preset, value in values.items()}
    if len(set(texts.values())) == 1:
        shown = f"all presets: {next(iter(texts.values()))}"
    else:
        shown = ", ".join(f"{preset} {text}" for preset, text in texts.items())
    return f"{text} ({shown})".replace("%", "%%")


def chosen_settings(args: argparse.Namespace, presets: Mapping[str, SomeSettings]) -> SomeSettings:
    """Return the settings of ``--preset``, overridden by the command-line options."""
    preset = presets[args.preset]
    return preset_with(preset, {name: getattr(args, name) for name in fields_of(type(preset)) if name in args})


def preset_with(preset: SomeSettings, overrides: Mapping[str, Any]) -> SomeSettings:
    """Override settings of a preset; other settings that cannot be combined with the given values are set to 0."""
    return checked(type(preset), values_with(preset, overrides))


def values_with(preset: TrainingSettings, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a preset with overrides, as in ``preset_with``, without a check."""
    values = vars(preset) | dict(overrides)
    return values | {name: 0 for name in preset.incompatible(values) if name not in overrides}


def add_description(parser: argparse.ArgumentParser, presets: Mapping[str, TrainingSettings], **classes: int) -> None:
    """Add all options of ``describe``. classes: default of every option for a number of classes."""
    add_settings(parser, presets, "paper")
    for name, number in classes.items():
        text = f"number of {name.replace('_', ' ')}, including id 0, UNK and EOS"
        parser.add_argument(option(name), type=integer_between(3, MAX_INT), default=number, metavar="N", help=text)


def print_description(
    args: argparse.Namespace, presets: Mapping[str, TrainingSettings], *classes: str
) -> dict[str, object]:
    """Print sizes, parameters of every part, and settings of a network; return the statistics of the command.

    classes: names of the options of ``add_description``, in the order of the arguments of ``sizes``.
    """
    settings = chosen_settings(args, presets)
    sizes = settings.sizes(*(getattr(args, name) for name in classes))
    print(_table(sizes))
    print("training: " + ", ".join(f"{name} {value}" for name, value in settings.as_dict().items()))
    return {"parameters": sizes.count()}


def _table(sizes: NetworkSizes) -> str:
    """Format the sizes, then one line for every group of parameters, with the sum of every part."""
    lines = [f"{name.replace('_', ' '):20} {value}" for name, value in sizes.as_dict().items()]
    lines.append("")
    for group, symbols in sizes.parameters().items():
        lines.append(f"{group:30} {sum(symbols.values()):>12,}")
        lines += [f"    {symbol:26} {number:>12,}" for symbol, number in symbols.items()]
    lines.append(f"{'all parameters':30} {sizes.count():>12,}")
    return "\n".join(lines)
