"""Examples in docstrings: the command ``rnnsmt lm estimate --order 3`` as the call ``rnnsmt.lm.estimate(order=3)``."""

import re
import shlex
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NoReturn

from rnnsmt.base.fields import CommandParser, Setting

if TYPE_CHECKING:
    from rnnsmt.base.operations import Operation

_COMMAND = re.compile(r"^( +)(rnnsmt (?:.*\\\n)*.*)$", re.M)
_PIPE = re.compile(r"^ +(?!rnnsmt).* \| rnnsmt .*\n", re.M)
_VARIABLE = re.compile(r"\$(\w+)")
_ENVIRONMENT = r"{os.environ['\1']}"


def with_calls(text: str, operation: "Operation") -> str:
    """Return a docstring with the commands of an operation replaced by Python calls.

    Lines that pipe the output of another program into ``rnnsmt`` are removed. Commands that ``call_of`` cannot convert,
    e.g. because they pass options on to another program, remain unchanged.
    """

    def called(match: re.Match[str]) -> str:
        try:
            call = call_of(match[2], operation)
        except ValueError:
            return match.group()
        spaces = match[1]
        return fill(
            call, 112, initial_indent=spaces, subsequent_indent=f"{spaces}    ", break_on_hyphens=False,
            break_long_words=False,
        )  # fmt: skip

    return _COMMAND.sub(called, _PIPE.sub("", text))


def call_of(command: str, operation: "Operation") -> str:
    """Return the Python call that is equivalent to a command.

    Raises:
        ValueError: the command is not a command of this operation, has unknown options, or uses pipes or redirection.
    """

    class Parser(CommandParser):
        def error(self, message: str) -> NoReturn:
            raise ValueError(message)

    words = shlex.split(command.replace("\\\n", " "))
    if operation.name not in words[1:3] or {"|", ">", "<"} & set(words):
        raise ValueError(f"not a command {operation.name}")
    words = words[words.index(operation.name) + 1 :]
    parser = Parser(add_help=False)
    operation.add_options(parser, words)
    for action in parser._actions:
        action.default = "==SUPPRESS=="
    given = vars(parser.parse_args(words, _Given()))
    arguments = {}
    for name, setting in operation.settings.items():
        if setting.field.group is None:
            if name in given:
                arguments[name] = _written(given[name], setting)
        elif preset := given.get("preset"):
            made = setting.field.group.value(Namespace(**given))
            kind, overrides = type(made), {key: value for key, value in given.items() if key in vars(made)}
            arguments[name] = f"{_name(kind)}.preset({_listed([_literal(preset)], overrides)})"
    return f"{_name(operation.function)}({_listed([], arguments, str)})"


def _name(what: Any) -> str:
    """Return the name of a function or class with its package: ``rnnsmt.lm.estimate``."""
    return f"{what.__module__.rpartition('.')[0]}.{what.__name__}"


class _Given(Namespace):
    """The options given in a command; all other options are None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("_"):
            raise AttributeError(name)


def _written(value: Any, setting: Setting) -> str:
    """Return the value of an option as Python code; a single value of an option that accepts several is not a list."""
    if setting.field.several and isinstance(value, list) and len(value) == 1:
        value = str(value[0]) if isinstance(value[0], Path) else value[0]
    return _literal(value)


def _literal(value: Any) -> str:
    """Return a value as Python code."""
    if isinstance(value, str):
        text = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'f"{_VARIABLE.sub(_ENVIRONMENT, text)}"' if _VARIABLE.search(text) else f'"{text}"'
    if isinstance(value, Path):
        return f"Path({_literal(str(value))})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_literal(key)}: {_literal(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, tuple):
        return f"{_name(type(value)) if hasattr(value, '_fields') else ''}({', '.join(map(_literal, value))})"
    return repr(value)


def _listed(positional: list[str], named: Mapping[str, Any], written: Any = None) -> str:
    """Return arguments of a call as Python code."""
    return ", ".join([*positional, *(f"{name}={(written or _literal)(value)}" for name, value in named.items())])
