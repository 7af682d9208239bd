"""Command-line options made from the fields of pydantic dataclasses, and messages for values that a field rejects.

A field declares type, bounds, default and help text once (``rnnsmt.config.sections``, the settings of the networks); a
command adds the option with ``add_fields``. ``checked`` validates settings that did not come from a command line.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from rnnsmt.base.io import InputError
from rnnsmt.base.options import option

Settings = TypeVar("Settings")

_MESSAGES = {
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "finite_number": "must be a finite number",
    "literal_error": "must be {expected}",
    "string_pattern_mismatch": "must match {pattern}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "none_required": "must be null",
}
"""Messages by type of pydantic's error."""

_KINDS = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "string": "a string",
    "list": "a list ([a, b])",
    "tuple": "a list ([a, b])",
    "dict": "a map (key: value)",
    "dataclass": "a map (key: value)",
}
"""Names of the types in messages, by the beginning of the type of pydantic's error (``int_parsing``)."""


def message(error: Mapping[str, Any]) -> str:
    """Return the message for an error of pydantic: ``must be at least 2``."""
    if template := _MESSAGES.get(error["type"]):
        return template.format_map(error.get("ctx", {})).replace("'", "")
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] == "unexpected_keyword_argument":
        return "unknown setting"
    kind = _KINDS.get(error["type"].partition("_")[0])
    return f"must be {kind}" if kind else str(error["msg"])


def fields_of(owner: type) -> dict[str, FieldInfo]:
    """Return the fields of a pydantic dataclass by name."""
    fields: dict[str, FieldInfo] = owner.__pydantic_fields__  # type: ignore[attr-defined]
    return fields


def checked(owner: type[Settings], values: Mapping[str, Any]) -> Settings:
    """Return settings with these values, converted to the types of the fields."""
    try:
        return owner(**values)
    except ValidationError as error:
        name, text, value = next(mistakes(error))
        raise InputError(f"{option(name)} {value}: {text}" if name else text) from None


def mistakes(error: ValidationError) -> Iterator[tuple[str, str, Any]]:
    """Yield name, message and value of every wrong value; the name is empty for values that cannot be combined."""
    for wrong in error.errors():
        yield str(wrong["loc"][0]) if wrong["loc"] else "", message(wrong), wrong["input"]


def add_fields(parser: argparse._ActionsContainer, owner: type, *names: str, **changes: Any) -> None:
    """Add the options of fields of a pydantic dataclass, with their types, bounds, choices, defaults and help texts.

    Args:
        parser: parser or group of options.
        owner: the dataclass.
        names: names of the fields; the option of ``learning_rate`` is ``--learning-rate``.
        changes: arguments of ``add_argument`` that replace those of the field.
    """
    for name in names:
        info = fields_of(owner)[name]
        kind: Any = info.annotation
        rest: dict[str, Any] = {}
        if len(some := [part for part in get_args(kind) if part is not NoneType]) == 1 and NoneType in get_args(kind):
            (kind,) = some
        if get_origin(kind) is Literal:
            rest = {"choices": get_args(kind)}
        elif get_origin(kind) is list:
            (kind,) = get_args(kind)
            rest = {"nargs": "+", "type": _parser(Annotated[kind, None]), "metavar": "N"}
        else:
            metavar = {int: "N", float: "X"}.get(kind)
            rest = {"type": _parser(Annotated[kind, *info.metadata]), "metavar": metavar}
        default = info.get_default(call_default_factory=True)
        text = (info.description or "").replace("%", "%%")
        parser.add_argument(option(name), **{"default": default, "help": text} | rest | changes)


def _parser(annotation: Any) -> Callable[[str], Any]:
    """Return the function that argparse calls with the text of an option."""

    def parse(text: str) -> Any:
        try:
            return TypeAdapter(annotation).validate_python(text)
        except ValidationError as error:
            raise argparse.ArgumentTypeError(f"{text}: {message(error.errors()[0])}") from None

    return parse
