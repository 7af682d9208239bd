"""The ``rnnsmt`` command: ``rnnsmt CHAPTER STAGE --option ...``.

Only the commands of the chapter that is asked for are imported: stages are processes, and their start must be quick.

Exit codes: 0 done; 2 bad input or bad options, with one sentence on stderr; 1 a bug, with its traceback; 75 stopped
early on purpose with its state saved, run again; 128 + n ended by signal n.
"""

import argparse
import difflib
import gc
import inspect
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from rnnsmt import __version__, stopping
from rnnsmt.io import InputError
from rnnsmt.options import check_options
from rnnsmt.progress import StageClock
from rnnsmt.stages import CHAPTERS, SHORT, STAGES

_NO_MEMORY = re.compile(r"can't allocate memory|out of memory", re.I)
"""What torch says instead of raising ``MemoryError``."""

MESSAGE = 2000
"""Characters of the longest message; a longer one loses its middle."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one stage and return the exit code of the process."""
    words = list(sys.argv[1:] if argv is None else argv)
    short = words[0] if words and words[0] in SHORT else ""
    words[:1] = SHORT.get(short, words[:1])
    parser = _parser(words, short)
    if unknown := _unknown_command(words):
        parser.error(unknown)
    args = parser.parse_args(words)
    if "run" not in args:
        args.help_of.print_help()
        return 2
    name = short or f"{args.chapter} {args.stage}"
    try:
        stopping.catch_signals()
        clock = StageClock(name)
        check_options(args)
        figures = args.run(args)
        sys.stdout.flush()
        if figures is not None:
            clock.finish(figures)
        return 0
    except BrokenPipeError:
        raise
    except (InputError, OSError, MemoryError, RuntimeError) as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        print(f"rnnsmt {name}: error: {sentence}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"rnnsmt {name}: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT


def _sentence(error: Exception) -> str | None:
    """What to tell about an error that is no bug, in one line of bounded length; None: it is a bug."""
    text = str(error)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and _NO_MEMORY.search(text)):
        text = "not enough memory; use a machine with more, or smaller limits"
    elif isinstance(error, OSError) and error.filename is None and error.errno is None:
        return None
    elif isinstance(error, OSError) and error.filename is not None:  # the place is wrong, not the program
        text = f"{error.filename}: {error.strerror}; look at the place and its permissions"
    elif isinstance(error, OSError):
        text = f"a file could not be written ({error.strerror}); make room and run it again"
    elif isinstance(error, RuntimeError):
        if "cannot cache function" not in text:
            return None
        text = "there is nowhere to keep compiled code; set NUMBA_CACHE_DIR to a folder that may be written"
    # what a damaged file brought into it is made visible
    line = "".join(c if c.isprintable() else " " if c.isspace() else f"\\x{ord(c):02x}" for c in text)
    return line if len(line) <= MESSAGE else f"{line[: MESSAGE // 2]} ... {line[-MESSAGE // 2 :]}"


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Show defaults where there are any, keep the paragraphs of a description, name values by their kind."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default is None or action.default is False or action.default == []:
            return action.help
        return super()._get_help_string(action)

    def _get_default_metavar_for_optional(self, action: argparse.Action) -> str:
        kind = getattr(action.type, "__name__", "")
        known = {"int": "N", "order": "N", "positive": "N", "not_negative": "N", "float": "X", "Path": "PATH"}
        return known.get(kind) or super()._get_default_metavar_for_optional(action)


def _parser(words: Sequence[str], short: str = "") -> argparse.ArgumentParser:
    """The parser of all chapters, with the options of the one stage that ``words`` name. short: its other name."""
    parser = argparse.ArgumentParser(
        prog="rnnsmt",
        description="Phrase-based SMT with the RNN Encoder-Decoder (Cho et al. 2014).",
        epilog="\n".join(f"rnnsmt {name}: {STAGES[chapter][stage].help}" for name, (chapter, stage) in SHORT.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"rnnsmt {__version__}")
    parser.set_defaults(help_of=parser)
    chapters = parser.add_subparsers(metavar="CHAPTER", dest="chapter")
    for chapter, text in CHAPTERS.items():
        chapter_parser = chapters.add_parser(chapter, help=text, description=text[0].upper() + text[1:] + ".")
        chapter_parser.set_defaults(help_of=chapter_parser)
        stages = chapter_parser.add_subparsers(metavar="STAGE", dest="stage")
        for name, stage in STAGES[chapter].items():
            stage_parser = stages.add_parser(name, help=stage.help, formatter_class=_HelpFormatter)
            if list(words[:2]) == [chapter, name]:
                commands, function = import_module(f"rnnsmt.{chapter}.commands"), name.replace("-", "_")
                run = getattr(commands, function)
                stage_parser.description = inspect.getdoc(run)
                getattr(commands, f"{function}_options")(stage_parser)
                stage_parser.set_defaults(run=run)
                if short:
                    stage_parser.prog = f"rnnsmt {short}"
    return parser


def _unknown_command(words: Sequence[str]) -> str | None:
    """What to say about words that name no stage, with the commands that may be meant; None where they do."""
    chapter, stage = [*words[:2], "", ""][:2]
    if chapter.startswith("-") or not chapter or (chapter in CHAPTERS and (stage.startswith("-") or not stage)):
        return None  # help, the version, or a chapter's help
    if stage in STAGES.get(chapter, {}):
        return None
    word = stage if chapter in CHAPTERS else chapter
    every = {f"{name} {part}": part for name, parts in STAGES.items() for part in parts}
    near = [command for command, part in every.items() if part == word]
    if not near and chapter not in CHAPTERS:
        near = difflib.get_close_matches(chapter, SHORT, 1)
    if not near and chapter in CHAPTERS:
        near = [f"{chapter} {part}" for part in difflib.get_close_matches(stage, STAGES[chapter], 1)]
    if not near and chapter not in CHAPTERS:
        names = difflib.get_close_matches(chapter, CHAPTERS, 1)
        near = [f"{name} {stage}" if stage in STAGES[name] else name for name in names]
    if not near:
        close = difflib.get_close_matches(word, every.values(), 1)
        near = [command for command, part in every.items() if part in close]
    asked = " ".join(name for name in words[:2] if not name.startswith("-"))
    if near:
        return f"no command {asked}; did you mean rnnsmt {' or rnnsmt '.join(near)}?"
    return f"no command {asked}; there are {', '.join(STAGES[chapter] if chapter in CHAPTERS else CHAPTERS)}"


def entry() -> None:
    """Console entry point: quiet when the reader of a pipe has gone, and when Ctrl-C comes before or after the work."""
    code: object
    try:
        code = _main_with_streams()
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    # The end of the process frees memory anyway: looking for what could be freed takes 0.2 s with numba. DuckDB tells
    # stderr of what is not.
    if "_duckdb" not in sys.modules:
        gc.freeze()
    raise SystemExit(code)


def _main_with_streams() -> object:
    stopping.leave_signals()
    stopping.open_closed_streams()
    sys.unraisablehook = stopping.signal_again
    code: object = 0
    try:
        try:
            code = main()
        except SystemExit as stopped:
            code = stopped.code
        stopping.leave_signals()
        sys.stdout.flush()
    except OSError as error:  # main tells what it knows of: this is about stdout or stderr
        gone, told = isinstance(error, BrokenPipeError), bool(code)
        code = 128 + signal.SIGPIPE if gone else 2
        sentence = _sentence(error)
        if sentence is None:
            raise
        with suppress(OSError):
            if not gone and not told:
                print(f"rnnsmt: error: {sentence}", file=sys.stderr)
        stopping.drop_streams()
    return code
