"""One line with a remedy for every error that pydantic finds in a configuration."""

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin

from rnnsmt.base.fields import fields_of, message
from rnnsmt.config.sections import Config

SHOWN = 200
"""Maximum number of characters of a wrong value in a message."""

ELSEWHERE = {
    "threads": "the option --cores of snakemake",
    "cores": "the option --cores of snakemake",
    "output_dir": "the option --directory of snakemake",
    "directory": "the option --directory of snakemake",
    "tuning.seeds": "networks.seeds",
    "tuning.seed": "seed",
    "tuning.optimiser": "tuning.optimizer",
    "rnn.seeds": "networks.seeds",
    "cslm.vocab_size": "rnn.vocab_size, which the CSLM shares",
    "source_lang": "languages: {source: en, target: fr}",
    "target_lang": "languages: {source: en, target: fr}",
}
"""Keys that users may expect or that were renamed, with the keys or options to use instead."""


def shortened(value: Any) -> str:
    """Return a value as text, which is truncated if it is long."""
    text = str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def lines_of(errors: Sequence[Mapping[str, Any]], config: Any) -> Iterator[str]:
    """Yield a line for every wrong value of a configuration.

    pydantic reports one error for each alternative of a value (``auto``, a fraction, a map). They are joined in one
    line; if the value is a map and an error is inside it, only the error inside is reported.
    """
    at: dict[tuple[str | int, ...], list[Mapping[str, Any]]] = {}
    for error in errors:
        at.setdefault(_place(error, config), []).append(error)
    for place, found in at.items():
        if any(other[: len(place)] == place and len(other) > len(place) for other in at) and len(found) > 1:
            continue
        first = found[0]
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
        if first["type"] == "unexpected_keyword_argument":
            section, _, key = where.rpartition(".")
            where = f"{section}: " if section else ""
            yield f"{where}unknown key {shortened(key)}; {_key_hint(key, section, place[:-1])}"
        elif first["type"] == "missing":
            yield f"{where} missing"
        else:
            texts = list(dict.fromkeys(map(message, found)))
            said = " or ".join([texts[0], *(text.removeprefix("must be ") for text in texts[1:])])
            if _is_auto(place):
                said = said.replace("must be", "must be auto, or", 1)
            example = ""
            if len(place) == 1 and (keys := _keys(place)):
                example = f"; for example, --config '{where}={{{keys[0]}: ...}}'"
            yield f"{where}: {said}, not {shortened(repr(first['input']))}{example}"


def _place(error: Mapping[str, Any], config: Any) -> tuple[str | int, ...]:
    """Return the path of a wrong value in the configuration: pydantic's ``loc`` without the names of union members."""
    place: list[str | int] = []
    for part in error["loc"]:
        inside = config
        if (isinstance(inside, dict) and part in inside) or (isinstance(inside, list) and isinstance(part, int)):
            config = inside[part]
        elif error["type"] != "missing" or part != error["loc"][-1]:
            continue
        place.append(part)
    return tuple(place)


def hint(name: str, known: Collection[str]) -> str:
    """Return a hint for an unknown name: the closest known name, also if it is written ``CSLM + RNN``, or all names."""
    as_in_table = name.lower().replace(" + ", "_")
    near = difflib.get_close_matches(name, known, 1) or difflib.get_close_matches(as_in_table, known, 1)
    return f"did you mean {near[0]}?" if near else f"available: {', '.join(known)}"


def _key_hint(key: str, section: str, place: Sequence[str | int]) -> str:
    """Return a hint for an unknown key: what to use instead, a section that has it, the closest key, or all keys."""
    if elsewhere := ELSEWHERE.get(f"{section}.{key}" if section else key):
        return f"use {elsewhere}"
    if sections := [
        name
        for name in fields_of(Config)
        if name != section and is_dataclass(fields_of(Config)[name].annotation) and key in _keys([name])
    ]:
        return f"did you mean {' or '.join(f'{name}.{key}' for name in sections)}?"
    return hint(key, _keys(place))


def _keys(place: Sequence[str | int]) -> list[str]:
    owner = _annotation(place)
    return list(fields_of(owner)) if isinstance(owner, type) and is_dataclass(owner) else []


def _is_auto(place: Sequence[str | int]) -> bool:
    """Return whether a setting may be ``auto``."""
    owner, key = _annotation(place[:-1]), str(place[-1])
    return isinstance(owner, type) and key in _keys(place[:-1]) and fields_of(owner)[key].field.demo is not None


def _annotation(place: Sequence[str | int]) -> Any:
    """Return the declared class of a map in the configuration, or the declared type of another value."""
    owner: Any = Config
    for part in place:
        owner = fields_of(owner)[str(part)].annotation if isinstance(owner, type) else get_args(owner)[-1]
        if get_origin(owner) in (Union, UnionType):
            owner = next((option for option in get_args(owner) if is_dataclass(option)), None)
    return owner
