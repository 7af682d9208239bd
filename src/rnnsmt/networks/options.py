"""Options that the commands of all networks share: device, training settings, scoring; does not import torch."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any, TypeVar

from rnnsmt.base.io import InputError
from rnnsmt.base.options import DEVICES, MAX_INT, option, positive
from rnnsmt.moses.ini import CSLM_UNKNOWN
from rnnsmt.networks.settings import NetworkSizes, TrainingSettings

SomeSettings = TypeVar("SomeSettings", bound=TrainingSettings)


def need_torch() -> None:
    """Check that torch, an optional dependency, is installed.

    Raises:
        InputError: torch is not installed.
    """
    if find_spec("torch") is None:
        raise InputError("neural networks require torch, which is not installed; run `pip install 'rnnsmt[networks]'`")


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add ``--device`` and ``--threads``, the arguments of ``rnnsmt.networks.devices.set_up_device``."""
    parser.add_argument(
        "--device",
        choices=DEVICES,
        default="auto",
        help="device to compute on; auto: a GPU if one is available, else the CPU",
    )
    parser.add_argument("--threads", type=positive, default=1, help="number of CPU threads")


def add_settings(parser: argparse.ArgumentParser, presets: Mapping[str, TrainingSettings], default: str) -> None:
    """Add ``--preset`` and an option for every setting; a setting that is not given has the value of the preset.

    The help text of a setting is that of ``Setting.help`` with the values of all presets.
    """
    parser.add_argument(
        "--preset", choices=tuple(presets), default=default, help="preset of network sizes and training settings"
    )
    group = parser.add_argument_group("override preset settings")
    for name, setting in presets[default].described().items():
        value = type(getattr(presets[default], name))
        group.add_argument(
            option(name),
            type=value,
            choices=setting.choices or None,
            default=argparse.SUPPRESS,
            metavar=None if setting.choices else "N" if value is int else "X",
            help=_help_with_presets(setting.help, presets, name),
        )


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
    """Return the settings of ``--preset``, overridden by the command-line options.

    Raises:
        InputError: a value is out of range, or values are incompatible.
    """
    preset = presets[args.preset]
    overrides = {name: getattr(args, name) for name in preset.described() if name in args}
    return preset_with(preset, overrides)


def preset_with(preset: SomeSettings, overrides: Mapping[str, Any]) -> SomeSettings:
    """Override settings of a preset; other settings that cannot be combined with the given values are set to 0.

    Raises:
        InputError: a value has the wrong type or is out of range, or the given values are incompatible.
    """
    for name, value in overrides.items():
        _check_value(name, value, type(getattr(preset, name)), preset.described()[name].choices)
    settings: SomeSettings = replace(preset, **overrides)  # type: ignore[type-var]
    disabled = {name: 0 for name in settings.incompatible() if name not in overrides}
    settings = replace(settings, **disabled)  # type: ignore[type-var]
    settings.check()
    return settings


def _check_value(name: str, value: Any, kind: type, choices: Sequence[str]) -> None:
    """Check type and choices of a setting that did not come from the command line.

    Raises:
        InputError: the value is not one of the choices, not a number, or an integer that is too large.
    """
    if choices:
        if value not in choices:
            raise InputError(f"{option(name)} {value}: must be one of {', '.join(choices)}")
    elif isinstance(value, bool) or not isinstance(value, Integral if kind is int else Real):
        raise InputError(f"{option(name)} {value!r}: must be {'an integer' if kind is int else 'a number'}")
    elif isinstance(value, Integral) and int(value) > MAX_INT:
        raise InputError(f"{option(name)} {value}: must be at most {MAX_INT}")


def print_description(settings: TrainingSettings, *vocabularies: int) -> dict[str, object]:
    """Print sizes, parameters of every part, and settings of a network; return the statistics of the command.

    ``vocabularies`` are the numbers of classes of the vocabularies.

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
    for group, symbols in sizes.parameters().items():
        lines.append(f"{group:30} {sum(symbols.values()):>12,}")
        lines += [f"    {symbol:26} {number:>12,}" for symbol, number in symbols.items()]
    lines.append(f"{'all parameters':30} {sizes.count():>12,}")
    return "\n".join(lines)


def add_scoring(parser: argparse.ArgumentParser) -> None:
    """Add ``--normalize``, ``--unknown``, ``--device``, ``--threads``: arguments of ``NGramScorer``."""
    parser.add_argument(
        "--normalize",
        choices=("auto", "yes", "no"),
        default="auto",
        help="softmax normalisation; yes: exact sum over all classes; no: unnormalised logit; auto: no for "
        "self-normalised models, else yes",
    )
    parser.add_argument(
        "--unknown",
        choices=CSLM_UNKNOWN,
        default=CSLM_UNKNOWN[0],
        help="probability of a word outside the shortlist; class: p(UNK), as in the paper; word: p(UNK) divided by the "
        "number of such words in the training text",
    )
    add_device(parser)


def normalize_of(args: argparse.Namespace) -> bool | None:
    """Return ``--normalize`` as the argument ``normalize`` of ``NGramScorer``: None for auto."""
    return {"auto": None, "yes": True, "no": False}[args.normalize]
