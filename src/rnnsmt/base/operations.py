"""An operation is a typed function that is both the command ``rnnsmt PACKAGE NAME`` and a Python function.

A package declares its operations in its module ``operations``, with slow imports inside the functions::

    @operation(version=1)
    def estimate(input: Texts, output: OutputFile, *, order: Order = Lm.order, threads: Threads = THREADS) -> Written:
        '''Estimate a language model and write it as an ARPA file.

        Args:
            input: tokenised text, one sentence per line.
            output: language model.
        '''

The argument ``memory_mb`` is the option ``--memory-mb``. Types, bounds and defaults are declared in the signature. The
description of an argument is declared in ``Args``, or in the ``Field`` of a type that many operations share.

The docstring is written for Python. In the help of the command, an argument in double backticks becomes an option:
``order`` becomes --order, ``prune=[0, 1]`` --prune 0 1, and ``escape=False`` --no-escape. Error messages are written
for the command line. In a call from Python, options become arguments: ``--order 11: must be at most 10`` becomes
``order 11: must be at most 10``.

If the return value of an operation has an attribute ``figures`` (a mapping), the command prints it as the last line of
its log. If the return value is of type ``Printed``, the command prints its lines on standard output.
"""

import argparse
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import MISSING, dataclass
from functools import cached_property, wraps
from os import PathLike
from pathlib import Path
from textwrap import fill, indent
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, ParamSpec, TypeVar, Union, get_args, get_origin

from rnnsmt import base
from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Setting, add_option
from rnnsmt.base.options import WORDING, option
from rnnsmt.base.reading import STANDARD_STREAM
from rnnsmt.base.writing import check_output, check_output_directory, write_lines_or_stdout

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Item = TypeVar("Item")

_on_command_line = ContextVar("_on_command_line", default=False)
"""Whether a command runs the operation; error messages then name options instead of arguments."""

_SECTIONS = re.compile(r"^(Args|Note|Returns|Raises|Yields):\n", re.M)
_NAMED = re.compile(r"``(\w+)(?:=([^`]*))?``")
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)(?: (\d[\d.]*(?: \d+)*|[a-z][\w-]*))?")
_OPTION_OF_COMMAND = re.compile(r"`(?:rnnsmt )?(?!rnnsmt)(\w+) ([a-z0-9-]+) --([a-z-]+)`")


class Written(NamedTuple):
    """File or directory that an operation has written; accepted by functions that expect a path.

    Attributes:
        path: path of the file or directory.
        figures: statistics of the content by name; the last line in the log of the command.
    """

    path: Path
    figures: Mapping[str, object]

    def __fspath__(self) -> str:
        """Return the path as a string."""
        return str(self.path)


class Printed(list[str]):
    """Lines of text that an operation returns and that its command prints on standard output.

    Attributes:
        figures: statistics of the text by name; the last line in the log of the command, or None for no such line.
        status: exit status of the command.
    """

    def __init__(self, lines: Iterable[str], figures: Mapping[str, object] | None = None, status: int = 0) -> None:
        super().__init__(lines)
        self.figures, self.status = figures, status


class Values(list[Item]):
    """A list that an operation returns.

    Attributes:
        figures: statistics of the content by name; the last line in the log of the command.
    """

    def __init__(self, items: Iterable[Item], figures: Mapping[str, object]) -> None:
        super().__init__(items)
        self.figures = figures


class WrittenFiles(Values[Path]):
    """Paths of the files that an operation has written; a list of one path is accepted where a path is expected."""

    def __fspath__(self) -> str:
        """Return the path of the only file as a string."""
        if len(self) != 1:
            raise InputError(f"there are {len(self)} files; use one of them")
        return str(self[0])


@dataclass(frozen=True)
class Checked:
    """A function whose arguments are checked against their annotations.

    Attributes:
        function: the function, without the checks.
    """

    function: Callable[..., Any]

    @cached_property
    def settings(self) -> dict[str, Setting]:
        """Return the arguments by name."""
        found = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            annotation = Any if parameter.annotation is parameter.empty else parameter.annotation  # of ``self``
            found[name] = Setting.of(annotation, MISSING if parameter.default is parameter.empty else parameter.default)
        return found

    @cached_property
    def names(self) -> dict[str, Setting]:
        """Return the arguments by name, and the fields of arguments that contain the settings of a network."""
        found: dict[str, Setting] = {}
        for setting in self.settings.values():
            if setting.field.group is not None:
                found |= setting.field.group.fields()
        return found | self.settings

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Check the arguments of a call from Python and call the function.

        Error messages name the Python arguments instead of the command-line options.

        Raises:
            InputError: a value has a wrong type or is out of bounds, or an output cannot be written.
        """
        try:
            bound = inspect.signature(self.function).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.function.__name__}(): {error}") from None
        token = WORDING.set(self.in_python)
        try:
            bound.arguments.update(self.check(bound.arguments))
            return self.function(*bound.args, **bound.kwargs)
        except InputError as error:
            error.args = (self.in_python(str(error)),)
            raise
        finally:
            WORDING.reset(token)

    def check(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call from Python with the types of their annotations; see ``call``."""
        checked = dict(values)
        for name, value in values.items():
            if value is self.settings[name].default:
                continue
            try:
                checked[name] = self.settings[name].valid(value)
            except ValueError as error:
                shown = repr(value)
                shown = shown if len(shown) <= 60 and "\n" not in shown else f"of type {type(value).__name__}"
                raise InputError(f"{option(name)} {shown}: {error}") from None
        return checked

    def in_python(self, text: str) -> str:
        """Return a message with the names of Python arguments instead of options; see ``as_in_python``."""
        return as_in_python(text, self.names) if "--" in text else text


@dataclass(frozen=True)
class Operation(Checked):
    """An operation, as used by the command line and by the reference documentation.

    Attributes:
        function: the function, without the checks.
        version: version of the output; must be increased when the same input gives a different output than before.
            The rules of the workflow pass it in ``params``, so that Snakemake runs their jobs again.
    """

    version: int

    @property
    def name(self) -> str:
        """Return the name of the command: ``train-truecaser`` for ``train_truecaser``."""
        return self.function.__name__.strip("_").replace("_", "-")

    @property
    def summary(self) -> str:
        """Return the first sentence of the docstring, as a help text: no capital letter, no period."""
        sentence = (inspect.getdoc(self.function) or "").split("\n\n")[0].replace("\n", " ").rstrip(".")
        return as_on_command_line(sentence[:1].lower() + sentence[1:], self.settings)

    @cached_property
    def settings(self) -> dict[str, Setting]:
        """Return the arguments by name, with their descriptions from the docstring or else from their types."""
        described = dict(_entries(_sections(self.function).get("Args", "")))
        return {name: one.with_description(described.get(name, "")) for name, one in super().settings.items()}

    def help(self) -> str:
        """Return the description of the command: the docstring without its sections."""
        return as_on_command_line(_sections(self.function)[""], self.settings)

    def documentation(self) -> str:
        """Return the docstring for Python, with descriptions of all arguments and with calls in place of commands."""
        from rnnsmt.base.examples import with_calls

        sections = _sections(self.function)
        entries = [f"{name}: {one.field.description}." for name, one in self.settings.items()]
        sections["Args"] = "\n".join(fill(entry, 112, subsequent_indent="    ") for entry in entries)
        text = "\n\n".join(f"{title}:\n{indent(body, '    ')}" if title else body for title, body in sections.items())
        return self.in_python(with_calls(text, self))

    def add_options(self, parser: argparse.ArgumentParser, words: Sequence[str] = ()) -> None:
        """Add the options of the command; ``words`` are the words of the command that will be parsed."""
        for name, setting in self.settings.items():
            if setting.field.group is not None:
                setting.field.group.add_options(parser, words)
            else:
                text = as_on_command_line(setting.field.description, self.settings).replace("%", "%%")
                if setting.default is True:  # --no-NAME
                    text = f"do not {text}"
                add_option(parser, name, setting, help=text)

    def run(self, options: argparse.Namespace) -> Mapping[str, object] | None:
        """Run the operation for a command; return the figures for the last line of the log.

        Args:
            options: result of a parser with the options of ``add_options``.
        """
        groups = {name: setting.field.group for name, setting in self.settings.items()}
        values = {name: group.value(options) if group else getattr(options, name) for name, group in groups.items()}
        token = _on_command_line.set(True)
        try:
            self.check_paths(values)
            value = self.function(**values)
        finally:
            _on_command_line.reset(token)
        if isinstance(value, Printed):
            write_lines_or_stdout(STANDARD_STREAM, value)
            if value.status:
                raise SystemExit(value.status)
        return getattr(value, "figures", None)

    def check(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call from Python with the types of their annotations; see ``call``."""
        checked = super().check(values)
        self.check_paths(checked)
        return checked

    def check_paths(self, values: Mapping[str, Any]) -> None:
        """Check that outputs can be written, and that every output differs from the other files of the call."""
        kinds = {name: setting.path for name, setting in self.settings.items()}
        paths = [
            (name, Path(path))
            for name, value in values.items()
            if kinds[name]
            for path in self.settings[name].paths(value)
            if str(path) != STANDARD_STREAM
        ]
        for name, path in paths:
            if kinds[name] == "input":
                continue
            (check_output if kinds[name] == "output" else check_output_directory)(path)
            # the directories of different options may be equal
            others = [_identity(other) for user, other in paths if user == name or kinds[name] != "directory"]
            if others.count(_identity(path)) > 1:
                raise InputError(f"{option(name)} {path}: used twice; every output must have a different name")


def operation(version: int) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Return a decorator that makes a function an operation; calls from Python check their arguments.

    Args:
        version: see ``Operation``.
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        described = Operation(function, version)
        checked = _checked(described)
        if base.has_docstrings:
            checked.__doc__ = described.documentation()
            checked.__signature__ = _readable(function)  # type: ignore[attr-defined]
        checked.__operation__ = described  # type: ignore[attr-defined]
        return checked

    return decorate


def check_arguments(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a function of the public interface so that it checks its arguments against its annotations."""
    return _checked(Checked(function))


def _checked(described: Checked) -> Callable[..., Any]:
    """Return the function that checks its arguments, unless a command calls it."""
    function = described.function

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) if _on_command_line.get() else described.call(*args, **kwargs)

    return checked


class _Shown(str):
    """A text that is shown without quotes in the signature of a function."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the text."""
        return str(self)


def _readable(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function with simplified types, for Python's ``help``."""
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=_Shown(_type_name(parameter.annotation)))
        for parameter in signature.parameters.values()
    ]
    returned = _Shown(_type_name(signature.return_annotation))
    return signature.replace(parameters=parameters, return_annotation=returned)


def _type_name(annotation: Any) -> str:
    """Return a type without ``Field`` and without names of modules: ``str | PathLike | Iterable[str]``."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_name(parts[0])
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, parts))}]"
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(map(_type_name, parts)))
    if origin is not None and origin is not PathLike:
        return f"{origin.__name__}[{', '.join('...' if part is ... else _type_name(part) for part in parts)}]"
    if annotation is NoneType:
        return "None"
    return str(getattr(origin or annotation, "__name__", annotation))


def _identity(path: Path) -> object:
    """Return an object that is equal for all paths of a file: device and inode if it exists, or else the full path."""
    try:
        status = path.stat()
    except OSError:
        return path.resolve()
    return status.st_dev, status.st_ino


def operations_of(module: object) -> dict[str, Operation]:
    """Return the operations of a module by the name of their command, in the order of their definition."""
    found = [getattr(value, "__operation__", None) for value in vars(module).values()]
    return {one.name: one for one in found if isinstance(one, Operation)}


def _sections(function: Callable[..., Any]) -> dict[str, str]:
    """Return the sections of a docstring by title; the title of the text before the first section is empty."""
    text, *rest = _SECTIONS.split(inspect.getdoc(function) or "")
    return {
        "": text.rstrip(),
        **{title: inspect.cleandoc(f"\n{body}") for title, body in zip(rest[::2], rest[1::2], strict=True)},
    }


def _entries(section: str) -> Iterator[tuple[str, str]]:
    """Yield the name and description of each argument in ``Args``; several may share one: ``source, target: ...``."""
    for entry in re.split(r"\n(?! )", section):
        names, _, text = entry.partition(": ")
        for name in names.split(", "):
            yield name, " ".join(text.split()).rstrip(".")


def as_on_command_line(text: str, settings: Mapping[str, Setting]) -> str:
    """Return a text of a docstring in which options replace arguments and other code is in single backticks."""

    def named(match: re.Match[str]) -> str:
        name, value = match.groups()
        if name not in settings:
            return match.group()
        words = re.sub(r"[\[\]()\"',]", " ", value or "").split()
        is_switched_off = settings[name].default is True and words == ["False"]
        shown = settings[name].field.metavar if settings[name].field.positional else option(name)
        shown = option(f"no_{name}") if is_switched_off else shown
        return " ".join([str(shown), *([] if words in (["True"], ["False"]) else words)])

    return _NAMED.sub(named, text).replace("``", "`")


def as_in_python(message: str, names: Mapping[str, Setting]) -> str:
    """Return a message in which arguments replace options: ``held_out=0`` replaces --held-out 0.

    At the beginning of a message, ``held_out 2: must be at most 1`` replaces ``--held-out 2: must be at most 1``.

    Args:
        message: the message.
        names: arguments by name; options with other names belong to other programs and remain unchanged.
    """

    def named(match: re.Match[str]) -> str:
        name, value = match[1].replace("-", "_"), match[2]
        rest = "" if value is None else f" {value}"
        if name.removeprefix("no_") in names and name not in names:
            return f"{name.removeprefix('no_')}=False{rest}"
        if name not in names:
            return match.group()
        if value is None or match.start() == 0:
            return f"{name}{rest}"
        kind = names[name].annotation
        if get_origin(kind) is Literal:
            return f'{name}="{value}"' if value in get_args(kind) else f"{name}{rest}"
        if value[0].isdigit():
            numbers = value.split(" ")
            return f"{name}={value}" if len(numbers) == 1 else f"{name}=({', '.join(numbers)})"
        return f"{name}{rest}"

    message = _OPTION_OF_COMMAND.sub(
        lambda match: f"`rnnsmt.{match[1]}.{match[2].replace('-', '_')}({match[3].replace('-', '_')}=...)`", message
    )
    return _OPTION.sub(named, message)
