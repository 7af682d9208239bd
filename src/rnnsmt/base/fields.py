"""Values that are set by users: their types, bounds and descriptions, declared once in an annotation.

``Annotated[int, Field("order of the n-grams", ge=2, le=10)]`` declares a setting of the configuration, a setting of a
network or an argument of an operation. The declaration is used by ``valid`` to check a value, by ``add_option`` to add
the option of a command, and by pydantic, which also understands ``Field``, to check a whole configuration and to write
its JSON schema. pydantic is imported only to check or describe a configuration, so that the help of a command appears
quickly.
"""

import argparse
import dataclasses
import functools
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from math import isfinite
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    NoReturn,
    Protocol,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from rnnsmt.base.options import MAX_INT, option
from rnnsmt.base.registry import Registry

_BOUNDS: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "ge": ("at least", operator.ge),
    "gt": ("greater than", operator.gt),
    "le": ("at most", operator.le),
    "lt": ("less than", operator.lt),
}

_METAVARS = {int: "N", float: "X"}

_LISTS = (list, tuple, Sequence)


class Group(Protocol):
    """Several options of a command that together determine one argument of a function."""

    def add_options(self, parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
        """Add the options to a parser; ``words`` are the words of the command that will be parsed."""

    def value(self, namespace: argparse.Namespace) -> object:
        """Return the argument for parsed options."""

    def fields(self) -> "dict[str, Setting]":
        """Return the declarations of all possible options by name."""


@dataclass(frozen=True, repr=False)
class Field:
    """Description and bounds of a value, as metadata of its annotation.

    Attributes:
        description: meaning of the value, one sentence without a period.
        ge, gt, le, lt: bounds of a number: at least, greater than, at most, less than. Integers without ``le`` are at
            most ``MAX_INT``.
        min_length, max_length: bounds of the length of a string or list.
        pattern: regular expression that a string must match.
        demo: value for the demo corpus, if the setting may be ``auto`` in a configuration.
        metavar: placeholder in the help of a command; a tuple of them for an option with several values.
        parse: function for the text of the option, if the type of the value does not determine it; it raises
            ``ValueError`` with a message such as ``must be K/N``.
        expected: description of valid values for error messages, in place of the description derived from the type.
        check: function that raises ``ValueError`` for an invalid value.
        path: kind of path: ``input``, ``output`` (a file) or ``directory`` (of outputs); empty if the value is no path.
        several: whether the option takes several values, which are passed to the function as a list. The annotation
            is a union; its ``Sequence`` gives the type of a single value. For a mapping, ``parse`` returns the key and
            the value of an entry.
        required: whether the command requires the option although the function has a default.
        positional: whether the command takes the value without the name of an option.
        group: several options of a command that together determine the value, for example the settings of a network.
        registry: registry that contains the valid names, if the value is a name.
    """

    description: str = ""
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    demo: Any = None
    metavar: str | tuple[str, ...] | None = None
    parse: Callable[[str], Any] | None = None
    expected: str = ""
    check: Callable[[Any], object] | None = None
    path: Literal["", "input", "output", "directory"] = ""
    several: bool = False
    required: bool = False
    positional: bool = False
    group: "Group | None" = None
    registry: "Registry[Any] | None" = None

    __is_annotated_types_grouped_metadata__: ClassVar[Literal[True]] = True

    def __repr__(self) -> str:
        """Return the bounds, for signatures that Python's ``help`` shows."""
        bounds = {name: getattr(self, name) for name in (*_BOUNDS, "min_length", "max_length", "pattern")}
        return f"Field({', '.join(f'{name}={value!r}' for name, value in bounds.items() if value is not None)})"

    def __iter__(self) -> Iterator[object]:
        """Yield description, bounds and check as metadata of pydantic, which iterates over grouped metadata."""
        from pydantic import AfterValidator
        from pydantic import Field as Expanded

        bounds = {name: getattr(self, name) for name in (*_BOUNDS, "min_length", "max_length", "pattern")}
        extra = {"demo": self.demo} if self.demo is not None else {}
        if self.registry is not None:
            extra["examples"] = list(self.registry)
        yield Expanded(
            description=self.description.replace("``", "`") or None, json_schema_extra=extra or None, **bounds
        )
        check = self.check if self.registry is None else self.registry.check
        if check is not None:
            yield AfterValidator(lambda value: (check(value), value)[1])

    def over(self, other: "Field") -> "Field":
        """Return a copy of ``other`` in which the attributes that are set in this field replace those of ``other``."""
        given = {name: value for name, value in vars(self).items() if value != getattr(Field, name)}
        return dataclasses.replace(other, **given)

    def refuse(self, value: Any) -> None:
        """Check the bounds of a value.

        Raises:
            ValueError: the value is out of bounds; the message is, for example, ``must be at least 2``.
        """
        for name, (words, holds) in _BOUNDS.items():
            bound = getattr(self, name)
            if bound is not None and not holds(value, bound):
                raise ValueError(f"must be {words} {bound}")
        unit = "characters" if isinstance(value, str) else "items"
        if self.min_length is not None and len(value) < self.min_length:
            raise ValueError(f"must have at least {self.min_length} {unit}")
        if self.max_length is not None and len(value) > self.max_length:
            raise ValueError(f"must have at most {self.max_length} {unit}")
        if self.pattern is not None and not re.search(self.pattern, value):
            raise ValueError(f"must match {self.pattern}")
        if self.check is not None:
            self.check(value)
        if self.registry is not None:
            self.registry.check(value)


@dataclass(frozen=True)
class Setting:
    """A declared value: a field of a dataclass, or an argument of a function.

    Attributes:
        annotation: the type, without the field and without None.
        field: description and bounds.
        optional: whether the value may be None.
        default: the default; ``MISSING`` if there is none.
    """

    annotation: Any
    field: Field
    optional: bool
    default: Any

    @classmethod
    def of(cls, annotation: Any, default: Any = MISSING) -> "Setting":
        """Return the setting of an annotation such as ``Annotated[int, Field(...)] | None``."""
        kind, field = described(annotation)
        optional = False
        if get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind):
            optional, rest = True, [part for part in get_args(kind) if part is not NoneType]
            kind, inner = described(functools.reduce(operator.or_, rest))
            field = field.over(inner)
        return cls(kind, field, optional, default)

    @property
    def required(self) -> bool:
        """Return whether there is no default."""
        return self.default is MISSING

    @property
    def path(self) -> str:
        """Return the kind of path (see ``Field``) of the value, or of the items of a list or map."""
        return self.field.path or _kind_of_path(self.annotation)

    def paths(self, value: Any) -> Iterator[str | PathLike[str]]:
        """Yield the paths in a value; strings in a list that represents a text are sentences, not paths."""
        return _paths(self.annotation, self.field, value)

    def with_description(self, description: str) -> "Setting":
        """Return the setting with another description, unless it is empty."""
        return dataclasses.replace(self, field=Field(description).over(self.field))

    def valid(self, value: Any, text: bool = False) -> Any:
        """Check a value with the function ``valid``; None is valid if the setting is optional."""
        return value if value is None and self.optional else valid(Annotated[self.annotation, self.field], value, text)


def described(annotation: Any) -> tuple[Any, Field]:
    """Return the type and the field of an annotation; an outer field has precedence over an inner one."""
    if get_origin(annotation) is not Annotated:
        return annotation, Field()
    kind, *metadata = get_args(annotation)
    field = Field()
    for part in metadata:
        if isinstance(part, Field):
            field = part.over(field)
    return kind, field


def fields_of(owner: Any) -> dict[str, Setting]:
    """Return the fields of a dataclass by name."""
    return dict(_fields_of(owner if isinstance(owner, type) else type(owner)))


@functools.cache
def _fields_of(owner: type) -> dict[str, Setting]:
    hints = get_type_hints(owner, include_extras=True)
    return {
        field.name: Setting.of(
            hints[field.name], field.default if field.default_factory is MISSING else field.default_factory()
        )
        for field in dataclasses.fields(owner)
    }


def valid(annotation: Any, value: Any, text: bool = False) -> Any:
    """Check a value, and return it with the type of its annotation.

    Args:
        annotation: type of a number, string, path, ``Literal``, list, tuple, map or iterable, or a union of such types;
            each may be annotated with a ``Field``.
        value: the value; if the annotation is an ``Iterable``, its items are neither read nor checked.
        text: whether the value is a string that is converted to the annotated type.

    Raises:
        ValueError: the value is invalid; the message is, for example, ``must be at least 2``.
    """
    kind, field = described(annotation)
    if text and field.parse is not None:
        value = field.parse(value)
    else:
        try:
            value = _converted(kind, value, text)
        except ValueError as error:
            raise ValueError(f"must be {field.expected}" if field.expected else str(error)) from None
        if kind is int and field.le is None:
            field = dataclasses.replace(field, le=MAX_INT)
    if value is not None:
        field.refuse(value)
    return value


def _converted(kind: Any, value: Any, text: bool) -> Any:
    """Return a value with the given type, or raise ``ValueError``; bounds of items and alternatives are checked."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _one_of(parts, value, text)
    if origin is Literal:
        if value in parts:
            return value
        raise ValueError(f"must be {_listed(parts)}")
    if origin in _LISTS:
        if not (is_series(value) and isinstance(value, Collection)):
            raise ValueError(f"must be {_wanted(kind)}")
        items = list(value)
        if get_origin(described(parts[0])[0]) in _LISTS and not all(map(is_series, items)):
            raise ValueError(f"must be {_wanted(kind)}")
        if origin is tuple and parts[-1] is not ...:
            if len(items) != len(parts):
                raise ValueError(f"must have {len(parts)} items")
            return tuple(valid(part, item, text) for part, item in zip(parts, items, strict=True))
        return (tuple if origin is tuple else list)(valid(parts[0], item, text) for item in items)
    if origin is Mapping:
        if not isinstance(value, Mapping):
            raise ValueError(f"must be {_wanted(kind)}")
        return {valid(parts[0], name): valid(parts[1], item, text) for name, item in value.items()}
    return _scalar(origin or kind, value, text)


def _one_of(alternatives: Collection[Any], value: Any, text: bool) -> Any:
    messages = []
    for alternative in alternatives:
        try:
            return valid(alternative, value, text)
        except ValueError as error:
            messages.append(str(error))
    said = dict.fromkeys(message.removeprefix("must be ") for message in messages)
    raise ValueError(f"must be {' or '.join(said)}")


def _scalar(kind: Any, value: Any, text: bool) -> Any:
    """Return a number, string, path or other object of the given type, or raise ``ValueError``."""
    numeric = not isinstance(value, bool)
    if kind is int:
        with_digits = text and re.fullmatch(r"\s*[+-]?\d+\s*", value)
        if with_digits or (numeric and isinstance(value, Integral)):
            return int(value)
        raise ValueError("must be an integer")
    if kind is float:
        try:
            number = float(value) if text or (numeric and isinstance(value, Real)) else None
        except ValueError:
            number = None
        if number is None:
            raise ValueError("must be a number")
        if not isfinite(number):
            raise ValueError("must be a finite number")
        return number
    if kind is PathLike and (text or isinstance(value, PathLike)):
        return Path(value)
    if kind is Any or (
        isinstance(kind, type)
        and isinstance(value, kind)
        and not isinstance(value, (bytes, bytearray))
        and (kind is not Iterable or is_series(value))
    ):
        return value
    raise ValueError(f"must be {_wanted(kind)}")


def is_series(value: object) -> bool:
    """Return whether a value is an iterable such as a list, and not a string, mapping, set or data frame."""
    return (
        isinstance(value, Iterable)
        and not isinstance(value, (str, bytes, bytearray, Mapping, set, frozenset))
        and not hasattr(value, "columns")
    )


_NAMES: dict[Any, tuple[str, str]] = {
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    str: ("a string", "strings"),
    PathLike: ("a path", "paths"),
    bool: ("True or False", "truth values"),
    NoneType: ("None", "None"),
    Any: ("a value", "values"),
}
"""Names of types, singular and plural."""


def _wanted(annotation: Any, plural: bool = False) -> str:
    """Return the description of a type for error messages: ``a list of integers``."""
    kind = described(annotation)[0]
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_wanted(part, plural) for part in parts if part is not str or len(parts) > 2))
    if origin is tuple and parts[-1] is not ...:
        return f"{'tuples' if plural else 'a tuple'} ({', '.join(_wanted(part) for part in parts)})"
    if origin in (*_LISTS, Iterable):
        return f"{'lists' if plural else 'a list'} of {_wanted(parts[0], plural=True)}"
    if origin is Mapping:
        return f"{'mappings' if plural else 'a mapping'} from {_wanted(parts[0], True)} to {_wanted(parts[1], True)}"
    if origin is Literal:
        return _listed(parts)
    return _NAMES.get(origin or kind, (kind.__name__, f"{kind.__name__} objects"))[plural]


def _listed(words: Sequence[object]) -> str:
    """Return ``a, b or c``."""
    texts = [str(word) for word in words]
    return " or ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def add_option(parser: argparse._ActionsContainer, name: str, setting: Setting, **changes: Any) -> None:
    """Add the option of a setting, with its type, bounds, choices, default and help text.

    A bool is a switch: ``--explain`` if its default is False, ``--no-escape`` if its default is True. A list takes one
    or more values, or zero or more if it may be empty; without a default or with an empty one, the option may be
    repeated. For a list of lists, the option may be repeated; for a map or a map of lists, values are ``NAME=VALUE``.

    Args:
        parser: parser or group of options.
        name: name of the field or argument.
        setting: declaration of the field or argument.
        changes: arguments of ``add_argument`` that replace the arguments derived from the setting.
    """
    kind, field = setting.annotation, setting.field
    names = [name if field.positional else option(name)]
    rest: dict[str, Any] = {"default": None if setting.required or field.required else setting.default}
    origin, parts = get_origin(kind), get_args(kind)
    if kind is bool:
        rest["action"] = "store_false" if setting.default else "store_true"
        names = [option(f"no_{name}")] if setting.default else names
        rest["dest"] = name
    elif origin is Literal:
        rest["choices"] = parts
    elif origin is Mapping and field.several:
        rest |= {"nargs": "+", "action": _OneByName, "type": _entry_parser(field), "metavar": field.metavar}
    elif field.several:
        sequence = next(part for part in parts if get_origin(part) is Sequence)
        rest |= _of_list(sequence, field, rest["default"])
    elif origin is Mapping and field.parse is None:
        of_lists = get_origin(described(parts[1])[0]) in _LISTS
        item = get_args(described(parts[1])[0])[0] if of_lists else parts[1]
        action = _ByName if of_lists else _OneByName
        rest |= {"nargs": "+", "action": action, "type": _named_parser(item, field), "metavar": field.metavar}
    elif origin in _LISTS and field.parse is None:
        rest |= _of_list(kind, field, rest["default"])
    else:
        rest |= {"type": _parser(Annotated[kind, field]), "metavar": _metavar(Annotated[kind, field])}
    if (setting.required or field.required) and not field.positional:
        rest["required"] = True
    parser.add_argument(*names, **{"help": field.description.replace("%", "%%")} | rest | changes)


def _of_list(kind: Any, field: Field, default: Any) -> dict[str, Any]:
    """Return the arguments of ``add_argument`` for a list, see ``add_option``."""
    item = get_args(kind)[0]
    inner, of_item = described(item)
    if is_nested := get_origin(kind) is not tuple and get_origin(inner) in _LISTS and of_item.parse is None:
        kind, item = inner, get_args(inner)[0]
    rest = {"type": _parser(item), "metavar": field.metavar or _metavar(item)}
    has_length = get_origin(kind) is tuple and get_args(kind)[-1] is not ...
    if has_length:
        rest["nargs"] = len(get_args(kind))
    else:
        may_be_empty = field.min_length == 0 or (default is not None and not default)
        rest["nargs"] = "*" if may_be_empty and not is_nested else "+"
    if is_nested or (not has_length and not default):
        rest["action"] = _Append if is_nested else _Extend
    return rest


class _Extend(argparse.Action):
    """Collect the values of all occurrences of an option in a list; unlike in argparse, the default may be a tuple."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        """Add the values of one occurrence."""
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or ()), *values])


class _Append(_Extend):
    """Collect the values of all occurrences of an option in a list of lists."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        """Add the values of one occurrence."""
        super().__call__(parser, namespace, [values])


class _ByName(argparse.Action):
    """Collect the pairs NAME=VALUE of all occurrences of an option in a map from names to lists of values."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        """Add the values of one occurrence."""
        found = getattr(namespace, self.dest) or {}
        for name, value in values:
            found.setdefault(name, []).append(value)
        setattr(namespace, self.dest, found)


class _OneByName(argparse.Action):
    """Collect the pairs NAME=VALUE of all occurrences of an option in a map; reject a name that occurs twice."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        """Add the values of one occurrence."""
        found = getattr(namespace, self.dest) or {}
        for name, value in values:
            if name in found:
                raise argparse.ArgumentError(self, f"there are two values named {name}")
            found[name] = value
        setattr(namespace, self.dest, found)


REPEATABLE = (_Extend, _ByName, _OneByName)
"""Actions of options that may be repeated."""


class CommandParser(argparse.ArgumentParser):
    """Parser of the options of a command; a message about an unknown option names the closest known one."""

    _words: Sequence[str] = ()

    explain: Callable[[str], str] = staticmethod(lambda word: "")
    """Function that returns the message for an unknown option, or an empty string for the default message."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, **keywords)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse the words of a command; reject an option that occurs twice, unless it may be repeated."""
        self._words = list(args or ())
        seen = set()
        for word in self._words[: (*self._words, "--").index("--")]:
            action = self._option_string_actions.get(word.partition("=")[0])
            if action is None or action.nargs == 0 or isinstance(action, REPEATABLE):
                continue
            if action.dest in seen:
                self.error(f"argument {'/'.join(action.option_strings)}: given twice")
            seen.add(action.dest)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the usage and a message, and exit with status 2; an unknown option is reported before other errors."""
        from difflib import get_close_matches

        known = self._option_string_actions
        for word in (word.partition("=")[0] for word in self._words if word.startswith("--")):
            if word not in known:
                near = get_close_matches(word, known, 1)
                unknown = f"unknown option {word}; " + (f"did you mean {near[0]}?" if near else "see --help")
                message = self.explain(word) or unknown
                break
        super().error(message)


def _entry_parser(field: Field) -> Callable[[str], tuple[str, Any]]:
    """Return the function by which argparse converts the text of an entry of a mapping."""

    def parse(text: str) -> tuple[str, Any]:
        assert field.parse is not None
        try:
            key, value = field.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text}: {error}") from None
        return key, value

    return parse


def _named_parser(item: Any, field: Field) -> Callable[[str], tuple[str, Any]]:
    """Return the function by which argparse converts the text ``NAME=VALUE``."""
    parse = _parser(item)

    def named(text: str) -> tuple[str, Any]:
        name, _, value = text.partition("=")
        if not name or not value:
            raise argparse.ArgumentTypeError(f"{text}: must be {field.metavar}")
        return name, parse(value)

    return named


def _kind_of_path(annotation: Any) -> str:
    """Return the kind of path (see ``Field``) of an annotation, or of the items of a list or map."""
    kind, field = described(annotation)
    parts = get_args(kind) if get_origin(kind) in (*_LISTS, Mapping) else ()
    if field.path or not parts:
        return field.path
    return _kind_of_path(parts[1] if get_origin(kind) is Mapping else parts[0])


def _paths(kind: Any, field: Field, value: Any) -> Iterator[str | PathLike[str]]:
    """Yield the paths in a value, given its type and its field."""
    origin, parts = get_origin(kind), get_args(kind)
    if field.path:
        if isinstance(value, (str, PathLike)):
            yield value
        elif isinstance(value, (list, tuple)):
            is_text = any(get_origin(part) is Iterable for part in parts)
            yield from (item for item in value if isinstance(item, PathLike) or (isinstance(item, str) and not is_text))
    elif value is not None and origin in (*_LISTS, Mapping):
        inner = described(parts[1] if origin is Mapping else parts[0])
        for item in value.values() if origin is Mapping else value:
            yield from _paths(*inner, item)


def _metavar(annotation: Any) -> Any:
    """Return the placeholder of a value, if its type or its field determines it."""
    kind, field = described(annotation)
    if get_origin(kind) is Literal:
        return f"{{{','.join(map(str, get_args(kind)))}}}"
    if field.registry is not None and field.metavar is None:
        return f"{{{','.join(field.registry)}}}"
    return field.metavar or _METAVARS.get(kind)


def _parser(annotation: Any) -> Callable[[str], Any]:
    """Return the function by which argparse converts the text of an option."""

    def parse(text: str) -> Any:
        try:
            return valid(annotation, text, text=True)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text}: {error}") from None

    return parse


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
"""Error messages by the type of an error in pydantic."""

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
"""Names of types in error messages, by the prefix of the error type in pydantic (``int`` of ``int_parsing``)."""


def message(error: Mapping[str, Any]) -> str:
    """Return the error message for an error of pydantic: ``must be at least 2``."""
    if template := _MESSAGES.get(error["type"]):
        return template.format_map(error.get("ctx", {})).replace("'", "")
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] == "unexpected_keyword_argument":
        return "unknown setting"
    kind = _KINDS.get(error["type"].partition("_")[0])
    return f"must be {kind}" if kind else str(error["msg"])


class Mistake(NamedTuple):
    """An invalid value.

    Attributes:
        name: name of the setting; empty if several values cannot be combined.
        text: error message.
        value: the invalid value.
    """

    name: str
    text: str
    value: Any = None

    def __str__(self) -> str:
        """Return the error message of a command."""
        return f"{option(self.name)} {self.value}: {self.text}" if self.name else self.text


def checked(owner: type, values: Mapping[str, Any], text: bool = False) -> tuple[dict[str, Any], list[Mistake]]:
    """Check values against the fields of a dataclass.

    Args:
        owner: the dataclass.
        values: values by name of the field.
        text: whether strings are converted to numbers; Snakemake passes numbers inside maps of ``--config`` as strings.

    Returns:
        The valid values, converted to the types of their fields, and the mistakes: unknown names and invalid values.
    """
    declared, accepted, mistakes = fields_of(owner), {}, []
    for name, value in values.items():
        if name not in declared:
            mistakes.append(Mistake(name, "unknown setting", value))
            continue
        try:
            accepted[name] = declared[name].valid(value, text=text and isinstance(value, str))
        except ValueError as error:
            mistakes.append(Mistake(name, str(error), value))
    return accepted, mistakes
