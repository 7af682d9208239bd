"""Options of the command line for the settings of a training: one for every field of a dataclass with defaults."""

import argparse
from collections.abc import Mapping
from dataclasses import Field, fields, replace
from typing import Any, TypeVar

from rnnsmt.common_options import option
from rnnsmt.io import InputError

Settings = TypeVar("Settings")
PRECISIONS = ("float32", "reduced")
"""Of matrix products, see ``rnnsmt.devices.choose_place``."""


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
