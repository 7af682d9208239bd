"""Operations: one typed function as a command and as a Python function."""

import argparse
import inspect
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pandas as pd
import pytest

import rnnsmt
from rnnsmt.base.arguments import (
    THREADS,
    InputFile,
    OptionalOutput,
    OutputDirectory,
    OutputFile,
    Text,
    TextFiles,
    Texts,
    Threads,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import CommandParser, Field, Setting, fields_of
from rnnsmt.base.operations import (
    Printed,
    Written,
    WrittenFiles,
    as_in_python,
    operation,
    operations_of,
)
from rnnsmt.base.progress import warn
from rnnsmt.base.reading import read_lines
from rnnsmt.cli import PASSES_ON
from rnnsmt.stages import PACKAGES, operations


@dataclass(frozen=True)
class Sizes:
    """Settings of the group."""

    hidden: int = 5
    rate: float = 0.5


class SizeOptions:
    """Options of ``Sizes``: those that are given override the default."""

    def fields(self) -> dict[str, Setting]:
        return fields_of(Sizes)

    def add_options(self, parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
        parser.add_argument("--hidden", type=int, default=argparse.SUPPRESS, help="number of units")

    def value(self, namespace: argparse.Namespace) -> Sizes:
        return replace(Sizes(), **{name: value for name, value in vars(namespace).items() if name == "hidden"})


class Call(NamedTuple):
    """What the operation of the tests got; its figures are the last line of the log."""

    arguments: Mapping[str, Any]

    @property
    def figures(self) -> dict[str, object]:
        return {"lines": len(self.arguments["lines"])}


calls: list[Call] = []


@operation(version=3)
def count_words(
    text: Text,
    output: OptionalOutput = None,
    *,
    kind: Literal["one", "two"],
    size: Annotated[int, Field("number of units", ge=2, le=9)] = 5,
    rate: Annotated[float, Field("share of the words, at most 10 %", gt=0)] = 0.5,
    limits: Sequence[Annotated[int, Field(ge=0)]] = (),
    pair: tuple[InputFile, InputFile] | None = None,
    other: Annotated[int, Field("another number", ge=1)] | None = None,
    explain: bool = False,
    escape: bool = True,
    sizes: Annotated[Sizes, Field(group=SizeOptions())] = Sizes(),
    threads: Threads = THREADS,
) -> Call:
    """Count the words of a text.

    With ``kind="two"``, ``limits=[1, 2]`` is the usual choice; `other` and ``<s>`` are no options.

    Args:
        text: one sentence per line.
        output: file of the counts, with
            ``size`` columns.
        kind: what is counted.
        limits, pair: shared meaning.
        explain: show the reasons.
        escape: escape special characters.
        sizes: settings of the network.

    Returns:
        What the function got.

    Raises:
        InputError: ``explain`` without ``other``.
    """
    if explain and other is None:
        raise InputError("--explain requires --other, not --something-else")
    if kind == "two":
        warn("--kind two is rare")
    with TextFiles() as files:
        lines = list(read_lines(files.of("text", text)))
    call = Call({**locals(), "lines": lines})
    calls.append(call)
    return call


@operation(version=1)
def collect(
    place: Annotated[str, Field(metavar="PLACE", positional=True)],
    names: Annotated[Mapping[str, Sequence[InputFile]], Field(metavar="NAME=FILE")],
    output: OutputFile,
    *,
    groups: Sequence[Sequence[InputFile]] = (),
    pairs: Sequence[tuple[str, str]] = (),
    more: Sequence[InputFile] = (),
) -> Printed:
    """Collect files at ``place``.

    Args:
        place: where.
        names: files by name.
        output: file that is not written.
        groups, pairs, more: further files.
    """
    return Printed([place, *(f"{name}: {len(files)}" for name, files in names.items()), repr((groups, pairs, more))])


@operation(version=1)
def judge(marks: Annotated[Mapping[str, int], Field(metavar="NAME=N")], *, strict: bool = True) -> Printed:
    """Judge marks, with ``strict=False`` all of them.

    Args:
        marks: marks by name.
        strict: refuse negative marks.
    """
    if strict and min(marks.values()) < 0:
        raise InputError("negative marks require --no-strict")
    return Printed([f"{sum(marks.values())}"], {"marks": len(marks)}, status=3 if 0 in marks.values() else 0)


@operation(version=1)
def copy(
    texts: Texts, output_dir: OutputDirectory, report: OutputFile | None = None, parts: Sequence[OutputFile] = ()
) -> Written:
    """Copy texts."""
    with TextFiles() as files:
        number = sum(1 for path in files.all_of("texts", texts) for _ in read_lines(path))
    return Written(Path(output_dir), {"lines": number})


OPERATION = operations_of(sys.modules[__name__])["count-words"]
COLLECT = operations_of(sys.modules[__name__])["collect"]
JUDGE = operations_of(sys.modules[__name__])["judge"]
COPY = operations_of(sys.modules[__name__])["copy"]


@pytest.fixture
def parser() -> CommandParser:
    found = CommandParser(prog="rnnsmt count-words")
    OPERATION.add_options(found)
    return found


@pytest.fixture
def text(tmp_path: Path) -> str:
    (tmp_path / "text").write_text("a b\nc\n")
    return str(tmp_path / "text")


def refused(parser: CommandParser, words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the last line of the message for words that the parser refuses, after the usage of the command."""
    with pytest.raises(SystemExit) as stopped:
        parser.parse_args(words.split())
    assert stopped.value.code == 2
    usage, *_, last = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: rnnsmt count-words ")
    return last.removeprefix("rnnsmt count-words: error: ")


def test_both_doors_give_the_function_the_same(parser: CommandParser, text: str) -> None:
    words = f"--text {text} --kind two --size 9 --rate 1e-1 --limits 0 3 --pair a b --other 1 --no-escape --hidden 7"
    words += f" --output {text}.out"
    assert OPERATION.run(parser.parse_args([*words.split(), "--explain", "--threads", "2"])) == {"lines": 2}
    settings = {"limits": [0, 3], "pair": ("a", "b"), "other": 1, "sizes": Sizes(7), "explain": True, "escape": False}
    count_words(text, kind="two", size=9, rate=0.1, **settings, threads=2, output=f"{text}.out")
    command, python = (dict(call.arguments) for call in calls[-2:])
    assert {name: command[name] for name in OPERATION.settings} | {"pair": ("a", "b")} == {
        name: python[name] for name in OPERATION.settings
    }
    assert list(command["pair"]) == ["a", "b"]


def test_the_defaults_are_those_of_the_signature(parser: CommandParser, text: str) -> None:
    OPERATION.run(parser.parse_args(["--text", text, "--kind", "one", "--output", str(Path(text).with_name("out"))]))
    count_words(text, kind="one")
    command, python = (dict(call.arguments) for call in calls[-2:])
    assert command.pop("output") and python.pop("output") is None  # only the command requires it
    assert {name: command[name] for name in command if name != "files"} == {
        name: python[name] for name in python if name != "files"
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--size 1", "argument --size: 1: must be at least 2"),
        ("--size 2.5", "argument --size: 2.5: must be an integer"),
        ("--other 99999999999", "argument --other: 99999999999: must be at most 2147483647"),
        ("--rate nan", "argument --rate: nan: must be a finite number"),
        ("--limits 1 -1", "argument --limits: -1: must be at least 0"),
        ("--pair a", "argument --pair: expected 2 arguments"),
        ("--kind three", "argument --kind: invalid choice: 'three' (choose from 'one', 'two')"),
        ("--knid two", "unknown option --knid; did you mean --kind?"),
        ("--siz 3", "unknown option --siz; did you mean --size?"),
        ("--zzz", "unknown option --zzz; see --help"),
        ("--text x", "the following arguments are required: --output, --kind"),
        ("--output x --kind one --output=x", "argument --output: given twice"),
    ],
)
def test_wrong_options(parser: CommandParser, capsys: pytest.CaptureFixture[str], words: str, message: str) -> None:
    assert refused(parser, words, capsys) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 1}, "size 1: must be at least 2"),
        ({"size": True}, "size True: must be an integer"),
        ({"size": "5"}, "size '5': must be an integer"),
        ({"rate": float("inf")}, "rate inf: must be a finite number"),
        ({"limits": 3}, "limits 3: must be a list"),
        ({"limits": [1, -1]}, "limits [1, -1]: must be at least 0"),
        ({"pair": ("a",)}, "pair ('a',): must have 2 items"),
        ({"kind": "three"}, "kind 'three': must be one or two"),
        ({"sizes": 3}, "sizes 3: must be Sizes"),
        ({"explain": 1}, "explain 1: must be True or False"),
        ({"threads": 0}, "threads 0: must be at least 1"),
        ({"text": 3}, "text 3: must be a path or a list of sentences"),
        ({"text": ["a", 3]}, "text: sentence 2 must be a string, not int"),
        ({"text": ["a\nb"]}, "text: sentence 1 contains a line break; each item must be a single sentence"),
        ({"output": "/"}, "/: is a directory"),
        ({"explain": True}, "explain requires other, not --something-else"),
        ({"text": {"a": 1}}, "text {'a': 1}: must be a path or a list of sentences"),
        ({"text": pd.DataFrame({"a": ["x"]})}, "text of type DataFrame: must be a path or a list of sentences"),
        ({"limits": {1}}, "limits {1}: must be a list of integers"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        count_words(**{"text": ["a"], "kind": "one"} | arguments)
    assert message in str(error.value)


def test_messages_are_of_the_door(parser: CommandParser, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Messages and warnings have options on the command line, and Python's arguments and values in Python."""
    names = OPERATION.names
    for message, in_python in (
        ("--size 1: wrong; use --size 2", "size 1: wrong; use size=2"),
        ("x; add --limits 2 1 or --kind one", 'x; add limits=(2, 1) or kind="one"'),
        ("x; omit --no-escape", "x; omit escape=False"),
        ("x; increase --hidden", "x; increase hidden"),
        ("snakemake --cores 2", "snakemake --cores 2"),
        ("see `rnnsmt lm estimate --prune`", "see `rnnsmt.lm.estimate(prune=...)`"),
    ):
        assert as_in_python(message, names) == in_python
    count_words(["a"], kind="two")
    OPERATION.run(parser.parse_args(["--text", text, "--kind", "two", "--output", f"{text}.out"]))
    assert capsys.readouterr().err == "warning: kind two is rare\nwarning: --kind two is rare\n"


def test_a_message_of_a_command_names_the_option(parser: CommandParser, text: str) -> None:
    options = parser.parse_args(["--text", text, "--kind", "one", "--explain", "--output", f"{text}.out"])
    with pytest.raises(InputError, match=r"^--explain requires --other"):
        OPERATION.run(options)


def test_maps_lists_of_lists_and_positional_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = CommandParser(prog="rnnsmt collect")
    COLLECT.add_options(parser)
    words = f"here --names b=1 a=2=3 --names b=4 --output {tmp_path}/out --groups 1 2 --groups 3 --pairs x y --more"
    assert COLLECT.run(parser.parse_args(words.split())) is None
    assert capsys.readouterr().out.splitlines() == ["here", "b: 2", "a: 1", "([['1', '2'], ['3']], [['x', 'y']], [])"]
    names = {"b": ["1", "4"], "a": ["2=3"]}
    found = collect("here", names, tmp_path / "out", groups=[["1", "2"], ["3"]], more=["5"])
    assert found == ["here", "b: 2", "a: 1", "([['1', '2'], ['3']], (), ['5'])"]
    with pytest.raises(SystemExit):
        parser.parse_args(["here", "--names", "b", "--output", "out"])
    assert "--names: b: must be NAME=FILE" in capsys.readouterr().err
    assert COLLECT.summary == "collect files at PLACE"
    with pytest.raises(InputError, match=r"^groups \['a'\]: must be a list of lists of paths"):
        collect("here", names, "out", groups=["a"])
    with pytest.raises(InputError, match=r"^names 3: must be a mapping"):
        collect("here", 3, "out")  # type: ignore[arg-type]
    for inputs in ({"names": {"a": [tmp_path / "out"]}}, {"names": names, "groups": [[str(tmp_path / "out")]]}):
        with pytest.raises(InputError, match=r"^output .*used twice"):
            collect("here", output=tmp_path / "out", **inputs)  # type: ignore[arg-type]


def test_switches_statuses_and_maps_of_single_values(capsys: pytest.CaptureFixture[str]) -> None:
    """An argument with the default True has an option --no-NAME, which help and messages name."""
    parser = CommandParser(prog="judge")
    JUDGE.add_options(parser)
    assert "do not refuse negative marks" in parser.format_help()
    assert "with --no-strict all" in JUDGE.help()
    options = parser.parse_args(["--marks", "a=1", "b=-2", "--marks", "c=4", "--no-strict"])
    assert (options.marks, JUDGE.run(options)) == ({"a": 1, "b": -2, "c": 4}, {"marks": 3})
    assert capsys.readouterr().out == "3\n"
    with pytest.raises(SystemExit) as stopped:
        JUDGE.run(parser.parse_args(["--marks", "a=0"]))
    assert (stopped.value.code, judge({"a": 0}).status, judge({"a": 1}).status) == (3, 3, 0)
    with pytest.raises(SystemExit):
        parser.parse_args(["--marks", "a=1", "--marks", "a=2"])
    assert "argument --marks: there are two values named a" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"^negative marks require strict=False$"):
        judge({"a": -1})


def test_wrong_names_of_arguments_are_type_errors() -> None:
    with pytest.raises(TypeError, match=r"count_words\(\): .*'sise'"):
        count_words(["a"], kind="one", sise=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'kind'"):
        count_words(["a"])  # type: ignore[call-arg]


def test_an_output_is_no_other_file_of_the_call(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^output .*text: used twice"):
        count_words(text, text, kind="one")
    (tmp_path / "link").hardlink_to(text)
    with pytest.raises(InputError, match=r"^output .*link: used twice"):
        count_words(text, tmp_path / "link", kind="one")
    with pytest.raises(InputError, match="is a file, not a directory"):
        copy(["a"], text)
    with pytest.raises(InputError, match=r"^report .*used twice"):
        copy([Path(text)], tmp_path / "new", text)
    with pytest.raises(InputError, match=r"^parts .*used twice"):
        copy(["a"], tmp_path / "new", parts=[tmp_path / "part", str(tmp_path / "part")])
    assert not (tmp_path / "new").exists()


def test_texts_are_sentences_or_files(text: str, tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield from ["a", "b", "c"]

    assert copy(lines(), tmp_path / "new") == (tmp_path / "new", {"lines": 3})
    assert copy([Path(text), Path(text)], tmp_path / "new").figures == {"lines": 4}
    assert copy(text, tmp_path / "new").figures == {"lines": 2}
    assert copy(["text " * 3000], tmp_path / "new").figures == {"lines": 1}
    with pytest.raises(InputError, match=r"^texts: strings of a list are sentences; for files, use Path objects"):
        copy([text], tmp_path / "new")
    with pytest.raises(InputError, match="not of both"):
        copy([Path(text), "a"], tmp_path / "new")  # type: ignore[list-item]
    command = CommandParser(prog="rnnsmt copy")
    COPY.add_options(command)
    options = command.parse_args(["--texts", text, text, "--output-dir", str(tmp_path / "new")])
    assert COPY.run(options) == {"lines": 4}


def test_what_is_written_is_a_path(text: str, tmp_path: Path) -> None:
    written = Written(Path(text), {"lines": 2})
    assert Path(written).read_text() == Path(text).read_text()
    for texts in (written, [written], WrittenFiles([Path(text)], {})):
        assert copy(texts, tmp_path / "new").figures == {"lines": 2}
    assert copy([written, Path(text)], tmp_path / "new").figures == {"lines": 4}
    assert collect("here", {"a": [written]}, tmp_path / "out", more=[written])[1] == "a: 1"
    with pytest.raises(InputError, match=r"^output .*used twice"):
        count_words(written, written, kind="one")
    with pytest.raises(InputError, match=r"^output .*: must be a path"):
        count_words(["a"], WrittenFiles([Path("a"), Path("b")], {}), kind="one")


def test_the_help_names_options(parser: CommandParser) -> None:
    assert OPERATION.help() == (
        "Count the words of a text.\n\n"
        "With --kind two, --limits 1 2 is the usual choice; `other` and `<s>` are no options."
    )
    assert OPERATION.summary == "count the words of a text"
    helps = {action.dest: action.help for action in parser._actions}
    assert helps["output"] == "file of the counts, with --size columns"
    assert helps["limits"] == helps["pair"] == "shared meaning"
    assert helps["threads"] == "number of threads; does not affect the result"
    assert "at most 10 %" in parser.format_help()


def test_the_docstring_in_python_has_all_arguments() -> None:
    documentation = count_words.__doc__ or ""
    for name, setting in OPERATION.settings.items():
        assert f"\n    {name}: {setting.field.description.split()[0]}" in documentation
    assert documentation.index("Args:") < documentation.index("Returns:") < documentation.index("Raises:")


@pytest.mark.parametrize("package", [package for package in PACKAGES if operations(package)])
def test_examples_are_calls_in_python(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples in the docstring of a function are calls of it whose arguments it accepts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOSES_HOME", "moses")
    module = import_module(f"rnnsmt.{package}")
    for one in operations(package).values():
        function = getattr(module, one.function.__name__)
        examples = re.findall(r"^    rnnsmt\..*\n(?:        .*\n)*", function.__doc__, re.M)
        assert examples or (package, one.name) == PASSES_ON
        for example in examples:
            with monkeypatch.context() as patch:
                patch.setattr(module, function.__name__, lambda one=one, **values: one.check(values))
                given = eval(example.strip(), {"rnnsmt": rnnsmt, "Path": Path, "os": os})
            assert (set(given) <= set(one.settings) and given) or one.name in ("settings", "status")


def test_the_signature_is_readable() -> None:
    shown = str(inspect.signature(count_words))
    assert shown.startswith("(text: str | PathLike | Iterable[str], output: str | PathLike | None = None, *, kind: ")
    assert "limits: Sequence[int] = ()" in shown and "Field" not in shown


def test_operations_are_functions_of_a_module() -> None:
    assert pickle.loads(pickle.dumps(copy)) is copy
    assert (OPERATION.name, OPERATION.version) == ("count-words", 3)


@pytest.mark.parametrize("package", [package for package in PACKAGES if operations(package)])
def test_every_argument_has_one_meaning(package: str) -> None:
    """The meaning of an argument is in the docstring or in its type, ends without a period, and exists once."""
    for one in operations(package).values():
        described = re.findall(
            r"^    (\w+(?:, \w+)*): ", (inspect.getdoc(one.function) or "").partition("Args:")[2], re.M
        )
        in_docstring = {name for names in described for name in names.split(", ")}
        for name, parameter in inspect.signature(one.function).parameters.items():
            in_type = Setting.of(parameter.annotation).field
            assert (name in in_docstring) + bool(in_type.description) == 1, (one.name, name)


@pytest.mark.parametrize("package", [package for package in PACKAGES if operations(package)])
def test_operations_import_nothing_heavy(package: str) -> None:
    code = (
        f"import sys, rnnsmt.stages; rnnsmt.stages.operations({package!r}); "
        "heavy = {'numpy', 'numba', 'torch', 'pandas', 'duckdb', 'pydantic', 'kenlm'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
