"""Options made from fields: types, bounds, defaults and help texts."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest

from rnnsmt.base.fields import Field, Setting, add_option, checked, fields_of


@dataclass(frozen=True)
class Example:
    """Settings of the tests."""

    size: Annotated[int, Field(ge=2, le=9, description="number of units")] = 5
    rate: Annotated[float, Field(gt=0, description="rate, at most 10 %")] = 0.5
    kind: Annotated[Literal["one", "two"], Field(description="kind of the example")] = "one"
    limits: Annotated[list[int], Field(description="limit of each order")] = field(default_factory=list)
    other: Annotated[int | None, Field(ge=1, description="another number")] = None


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="test")
    for name, setting in fields_of(Example).items():
        add_option(parser, name, setting)
    return parser


def test_values_and_defaults(parser: argparse.ArgumentParser) -> None:
    assert vars(parser.parse_args([])) == {"size": 5, "rate": 0.5, "kind": "one", "limits": [], "other": None}
    args = parser.parse_args(["--size", "9", "--rate", "1e-3", "--kind", "two", "--limits", "0", "1", "--other", "3"])
    assert vars(args) == {"size": 9, "rate": 1e-3, "kind": "two", "limits": [0, 1], "other": 3}
    assert "rate, at most 10 %" in parser.format_help()


def test_pairs_that_are_one_word_each() -> None:
    """A pair with its own ``parse`` is one value of the option, not two."""

    def parse(text: str) -> tuple[str, float]:
        name, _, share = text.partition("=")
        return name, float(share)

    parser = argparse.ArgumentParser()
    pairs = Sequence[Annotated[tuple[str, float], Field("shares", parse=parse, metavar="NAME=X")]]
    add_option(parser, "keep", Setting.of(pairs, ()))
    assert parser.parse_args(["--keep", "a=1", "b=0.5", "c=0", "--keep", "d=2"]).keep == [
        ("a", 1),
        ("b", 0.5),
        ("c", 0),
        ("d", 2),
    ]
    assert parser.parse_args(["--keep", "a=1"]).keep == [("a", 1)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--size 1", "argument --size: 1: must be at least 2"),
        ("--size 10", "argument --size: 10: must be at most 9"),
        ("--size 2.5", "argument --size: 2.5: must be an integer"),
        ("--rate 0", "argument --rate: 0: must be greater than 0"),
        ("--rate nan", "argument --rate: nan: must be a finite number"),
        ("--rate fast", "argument --rate: fast: must be a number"),
        ("--limits 1 x", "argument --limits: x: must be an integer"),
        ("--other 0", "argument --other: 0: must be at least 1"),
    ],
)
def test_wrong_values(
    parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(words.split())
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 1}, "--size 1: must be at least 2"),
        ({"rate": "x"}, "--rate x: must be a number"),
        ({"kind": "three"}, "--kind three: must be one or two"),
        ({"sise": 3}, "--sise 3: unknown setting"),
    ],
)
def test_checked(values: dict[str, object], message: str) -> None:
    accepted, mistakes = checked(Example, values | {"other": "7"}, text=True)
    assert [str(mistake) for mistake in mistakes] == [message]
    assert accepted == {"other": 7}
    assert [one.name for one in checked(Example, {"other": "7"})[1]] == ["other"]
