"""The table of all settings, and the JSON schema of a configuration, made from their declarations."""

import types
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import TypeAdapter

from rnnsmt.base.fields import Setting, described, fields_of
from rnnsmt.config.sections import Config
from rnnsmt.registries import NETWORKS

UNIONS = (Union, types.UnionType)


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a configuration, for editors."""
    schema = TypeAdapter(Config).json_schema()
    for network in NETWORKS:
        settings = TypeAdapter(NETWORKS[network].settings).json_schema()
        of_section = schema["$defs"][fields_of(Config)[network].annotation.__name__]["properties"]
        of_section["settings"] = settings
    for of_section in schema["$defs"].values():
        for setting in of_section.get("properties", {}).values():
            if "demo" in setting:
                kind = {key: setting.pop(key) for key in ("type", "enum", "minimum") if key in setting}
                setting["anyOf"] = [{"const": "auto"}, kind]
    return schema


def table_lines() -> Iterator[str]:
    """Yield a Markdown page with a table of settings for every section."""
    yield from (
        "# Settings",
        "",
        "All settings of the configuration, printed by `rnnsmt project settings`; "
        "[Systems and networks](configuration.md) explains them.",
        "The settings of the networks (`rnn.settings` and others) are the options of `rnnsmt networks train`.",
        "",
    )
    yield from _table("Top level", {name: one for name, one in fields_of(Config).items() if not _section(one)})
    for name, setting in fields_of(Config).items():
        if section := _section(setting):
            yield ""
            yield from _table(name, fields_of(section), (section.__doc__ or "").splitlines()[0].replace("``", "`"))


def _section(setting: Setting) -> Any:
    """Return the class of a section, or of the entries of a list or map of sections; None for other settings."""
    kind = setting.annotation
    if get_origin(kind) in (list, dict):
        kind = get_args(kind)[-1]
    return kind if is_dataclass(kind) else None


def _table(title: str, settings: dict[str, Setting], text: str = "") -> Iterator[str]:
    yield f"## {title}"
    yield ""
    if text:
        yield from (text, "")
    yield "| key | values | default | meaning |"
    yield "|---|---|---|---|"
    for name, setting in settings.items():
        default = "required" if setting.required else _shown(setting.default)
        if setting.field.demo is not None:
            default = f"auto: {default}; demo corpus: {_shown(setting.field.demo)}"
        yield f"| `{name}` | {_values(setting)} | {default} | {setting.field.description} |"


def _shown(value: Any) -> str:
    words = {None: "null", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return words[value]
    return str(list(value) if isinstance(value, tuple) else value)


def _values(setting: Setting) -> str:
    """Return the permitted values of a setting in words."""
    field, bounds = setting.field, []
    for bound, words in (("ge", "from"), ("gt", "above"), ("le", "to"), ("lt", "below")):
        if getattr(field, bound) is not None:
            bounds.append(f"{words} {getattr(field, bound):g}")
    kind = _kind(Annotated[setting.annotation, field]) + (" or null" if setting.optional else "")
    return " ".join([*([] if field.demo is None else ["auto or"]), kind, *bounds])


def _kind(annotation: Any) -> str:
    names = {int: "integer", float: "number", str: "string", bool: "true, false", types.NoneType: "null"}
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(map(str, parts))
    if origin in UNIONS:
        return " or ".join(_kind(part) for part in parts)
    if origin in (list, tuple, Sequence):
        return f"list of {_kind(parts[0])}"
    if hasattr(annotation, "__metadata__"):
        kind, field = described(annotation)
        return ", ".join(field.registry) if field.registry is not None else _kind(kind)
    return names.get(annotation, "map")
