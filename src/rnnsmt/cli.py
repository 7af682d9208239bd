"""The ``rnnsmt`` command: ``rnnsmt PACKAGE COMMAND --option ...``.

Only the commands of the requested package are imported, so a process starts quickly.

Exit status: 0 success; 1 a bug, with its traceback; 2 invalid input or options, with one sentence on stderr; 3 `rnnsmt
corpus check` found problems; 75 stopped before the end with a checkpoint saved, run again to resume; 128 + n ended by
signal n.
"""

import argparse
import gc
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rnnsmt import __version__, base
from rnnsmt.base.errors import InputError
from rnnsmt.base.progress import StageClock, print_messages, printable
from rnnsmt.base.resuming import catch_signals, leave_signals, received_signal, signal_again
from rnnsmt.stages import FORMER, PACKAGES, SHORT, operations

if TYPE_CHECKING:
    from rnnsmt.base.fields import CommandParser

_NO_MEMORY = re.compile(r"can't allocate memory|out of memory", re.I)
"""Messages of the ``RuntimeError`` that torch raises, instead of ``MemoryError``, if a memory allocation fails."""

EXTRAS = {
    "torch": "networks", "safetensors": "networks", "matplotlib": "figures", "sklearn": "figures",
    "fastapi": "serve", "uvicorn": "serve", "python_multipart": "serve",
}  # fmt: skip
"""Modules that a default installation does not include, with the extra that installs them."""

PASSES_ON = ("project", "run")
"""Command that passes all words after its name on to another program: they are values of its positional argument."""

EXIT_STATUS = """\
exit status:
  0      success
  1      internal error, with traceback
  2      invalid input or options, with one line on stderr
  3      rnnsmt corpus check: problems found
  75     stopped before the end with a checkpoint saved; run the same command again to resume
  128+N  terminated by signal N"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status of the process."""
    words = list(sys.argv[1:] if argv is None else argv)
    print_messages()
    short = words[0] if words and words[0] in SHORT else ""
    words[:1] = SHORT.get(short, words[:1])
    if unknown := _unknown_command(words):
        print(f"rnnsmt: error: {printable(unknown)}", file=sys.stderr)
        return 2
    if words[0:1] and words[0] in PACKAGES and words[1:2] and words[1] in operations(words[0]):
        if tuple(words[:2]) == PASSES_ON and not {"-h", "--help"} & set(words):
            words.insert(2, "--")
        args = command_parser(words[0], words[1], short, words[2:]).parse_args(words[2:])
    else:
        _parser(words).parse_args(words).help_of.print_help()
        return 2
    name = short or f"{words[0]} {words[1]}"
    try:
        catch_signals()
        clock = StageClock(name)
        figures = args.run_command(args)
        sys.stdout.flush()
        if figures is not None:
            clock.finish(figures)
        return 0
    except BrokenPipeError:
        raise
    except (InputError, OSError, MemoryError, RuntimeError, ModuleNotFoundError) as error:
        if isinstance(error, RuntimeError) and (number := received_signal()) is not None:
            if number == signal.SIGINT:
                print(f"rnnsmt {name}: interrupted", file=sys.stderr)
            return 128 + number
        sentence = _sentence(error)
        if sentence is None:
            raise
        print(f"rnnsmt {name}: error: {sentence}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"rnnsmt {name}: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT


def _unknown_command(words: Sequence[str]) -> str:
    """Return an error message with a suggestion if the words name an unknown command, else an empty string."""
    named = [word for word in words[:2] if not word.startswith("-")]
    if not named or words[0].startswith("-"):
        return ""
    for former in (" ".join(named), named[0]):
        if former in FORMER:
            return f"the command `rnnsmt {former}` of version 1.0.0 is gone; {FORMER[former]}"
    package, *name = named
    if package in PACKAGES and (not name or name[0] in operations(package)):
        return ""

    from difflib import get_close_matches

    every = {f"{package} {name}": name for package in PACKAGES for name in operations(package)}
    if package in PACKAGES:
        shown, place = f"{package} {name[0]}", f"{package} "
        near = [f"{package} {close}" for close in get_close_matches(name[0], operations(package), 1)]
        near += [command for command, its_name in every.items() if its_name == name[0]]  # of another package
    else:
        shown, place = package, ""
        close = get_close_matches(package, [*PACKAGES, *SHORT])
        near = [f"{one} {part}" for one in close for part in name if f"{one} {part}" in every]
        near += [command for command, its_name in every.items() if its_name == package]
        near += close
    hint = f"did you mean `rnnsmt {near[0]}`?" if near else f"see `rnnsmt {place}--help`"
    return f"unknown command `rnnsmt {shown}`; {hint}"


def _sentence(error: Exception) -> str | None:
    """Return a one-line message for an error, or None if the error is a bug."""
    text = str(error)
    if isinstance(error, ModuleNotFoundError):
        module = (error.name or "").partition(".")[0]
        if module not in EXTRAS:
            return None
        text = f"the Python module {module} is not installed; install rnnsmt with the extra `{EXTRAS[module]}`"
    elif isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and _NO_MEMORY.search(text)):
        text = "out of memory; use a machine with more memory, or reduce --threads, --memory-mb or --batch"
    elif isinstance(error, OSError):
        if error.errno is None:
            return None
        text = f"a file cannot be written ({error.strerror}); free disk space and run the same command again"
        if error.filename is not None:
            text = f"{error.filename}: {error.strerror}; check the path and its permissions"
    elif isinstance(error, RuntimeError):
        return None
    return printable(text)


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Append defaults to help texts, keep the paragraphs of a description, and derive metavars from types."""

    def add_argument(self, action: argparse.Action) -> None:
        """Add an action; unlike argparse, consider the indentation of subcommands in the column of help texts."""
        super().add_argument(action)
        for subaction in self._iter_indented_subactions(action):
            length = len(self._format_action_invocation(subaction)) + self._current_indent
            self._action_max_length = max(self._action_max_length, length)

    def _get_help_string(self, action: argparse.Action) -> str:
        """Return the help text, with the default appended unless there is no default or the text already states it."""
        text = action.help or ""
        default = _shown_default(action).replace("%", "%%")
        return f"{text} (default: {default})" if default and "(default" not in text else text


def _shown_default(action: argparse.Action) -> str:
    """Return the default of an option as it is written on the command line, or "" if the help does not show it."""
    default = action.default
    if not action.option_strings or default is None or default == argparse.SUPPRESS or isinstance(default, bool):
        return ""
    if isinstance(default, (list, tuple)):  # several values, or one value such as K/N
        return (" " if action.nargs is not None else "/").join(map(str, default))
    return str(int(default) if isinstance(default, float) and default.is_integer() else default)


def command_parser(package: str, name: str, short: str = "", words: Sequence[str] = ()) -> "CommandParser":
    """Return the parser for the options of a command; the parsed ``run_command`` is the function that runs it.

    Args:
        short: the short name of the command, if it was used.
        words: the words that will be parsed.
    """
    from rnnsmt.base.fields import CommandParser

    parser = CommandParser(prog=f"rnnsmt {short or f'{package} {name}'}", formatter_class=_HelpFormatter)
    operation = operations(package)[name]
    parser.description = operation.help()
    operation.add_options(parser, words)
    parser.set_defaults(run_command=operation.run)
    return parser


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser for words that do not name a command.

    The parsed arguments have the attribute ``help_of``, the parser whose help is printed.
    """
    shortcuts = "\n".join(
        f"  rnnsmt {name:10} {operations(package)[command].summary}" for name, (package, command) in SHORT.items()
    )
    parser = argparse.ArgumentParser(
        prog="rnnsmt",
        description="Phrase-based statistical machine translation with the RNN Encoder-Decoder (Cho et al. 2014).\n\n"
        "Run `rnnsmt PACKAGE --help` to list the commands of a package, and `rnnsmt PACKAGE COMMAND --help` to list "
        "the options of a command.",
        epilog=f"shortcuts:\n{shortcuts}\n\n{EXIT_STATUS}",
        formatter_class=_HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"rnnsmt {__version__}")
    parser.set_defaults(help_of=parser)
    packages = parser.add_subparsers(metavar="PACKAGE", dest="package")
    for package, text in PACKAGES.items():
        package_parser = packages.add_parser(
            package, help=text, description=f"{text[0].upper()}{text[1:]}.", formatter_class=_HelpFormatter
        )
        package_parser.set_defaults(help_of=package_parser)
        if package in words[:1]:
            commands = package_parser.add_subparsers(metavar="COMMAND", dest="stage")
            for name, operation in operations(package).items():
                commands.add_parser(name, help=operation.summary, formatter_class=_HelpFormatter)
    return parser


def entry() -> None:
    """Run the console command; exit without a traceback if the pipe of the standard output is closed."""
    base.is_program, base.has_docstrings = True, False
    gc.set_threshold(100_000)  # imports create many objects, but no garbage; the default takes 0.1 s with numba
    sys.unraisablehook = signal_again
    code: object = None
    try:
        try:
            code = main()
        finally:
            leave_signals()
            sys.stdout.flush()
    except OSError as error:  # standard output: a closed pipe, or an error that main has reported
        if error.errno is None:
            raise
        code = 128 + signal.SIGPIPE if isinstance(error, BrokenPipeError) else 2
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # at exit, Python flushes the rest
    # Skip the garbage collection at exit, which takes 0.2 s with numba. It is not skipped if DuckDB is loaded:
    # otherwise, DuckDB prints messages about objects that were not freed.
    if "_duckdb" not in sys.modules:
        gc.freeze()
    raise SystemExit(code)
