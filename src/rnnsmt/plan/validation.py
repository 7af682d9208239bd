"""Check the types, bounds and contradictions of a configuration, and replace ``auto`` by values.

All wrong values are reported at once, and if there are none, all contradictions.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import fields_of
from rnnsmt.config.languages import codes_of_yaml
from rnnsmt.config.sections import Config
from rnnsmt.plan.cross_checks import cross_checks
from rnnsmt.plan.derived import is_small
from rnnsmt.plan.messages import lines_of

ADAPTER = TypeAdapter(Config)


class ConfigurationError(InputError):
    """Mistakes in a configuration, one line each."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("The configuration contains errors:\n" + "\n".join(f"  {line}" for line in lines))
        self.lines = list(lines)


def repeated_keys(path: str) -> Iterator[str]:
    """Yield a message for every key that a map in a YAML file has twice, of which the parser takes the last value.

    Nothing is yielded for a file that is not valid YAML, since Snakemake reports it.
    """
    import yaml

    try:
        node = yaml.compose(Path(path).read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return
    nodes = [node]
    while nodes:
        node = nodes.pop()
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
        elif isinstance(node, yaml.MappingNode):
            first: dict[str, int] = {}
            for key, value in node.value:
                name, line = str(key.value), key.start_mark.line + 1
                if name in first:
                    yield f"{path}, line {line}: {name} is also in line {first[name]}; remove one of them"
                first.setdefault(name, line)
                nodes.append(value)


def demo_values() -> Iterator[tuple[str, str, object]]:
    """Yield section, key, and value for the demo corpus, for every setting that may be ``auto``."""
    for section, of_section in fields_of(Config).items():
        if is_dataclass(of_section.annotation):
            for key, setting in fields_of(of_section.annotation).items():
                if setting.field.demo is not None:
                    yield section, key, setting.field.demo


def checked_config(raw: Mapping[str, Any]) -> Config:
    """Return a configuration with a value for every setting: defaults for missing ones, values for ``auto``.

    Text is converted to the type of the setting, because Snakemake leaves numbers inside maps of ``--config`` as text
    (``--config "tuning={runs: 5}"``).

    Raises:
        ConfigurationError: unknown keys, wrong values or contradictions.
    """
    given = {key: dict(value) if isinstance(value, dict) else value for key, value in raw.items()}
    if isinstance(given.get("languages"), dict):
        given["languages"].update(codes_of_yaml(given["languages"]))
    autos = [(section, key, value) for section, key, value in demo_values() if _is_auto(given, section, key)]
    for section, key, _ in autos:  # the default of the field is the value for other corpora than the demo corpus
        given.get(section, {}).pop(key, None)
    config = _parsed(given)
    if mistakes := list(cross_checks(config)):
        raise ConfigurationError(mistakes)
    if is_small(config):
        for section, key, value in autos:
            config = replace(config, **{section: replace(getattr(config, section), **{key: value})})
    return config


def recorded_config(plain: Mapping[str, Any]) -> Config:
    """Return a checked configuration from the output of ``plain_config``; its files need not exist.

    Raises:
        ConfigurationError: unknown keys or wrong values.
    """
    corpora = deepcopy(plain.get("corpora", []))
    for download in (one for entry in corpora for one in entry.get("download", {}).values()):
        download.setdefault("sha256", None)
    return _parsed({**plain, "corpora": corpora})


def _parsed(given: Mapping[str, Any]) -> Config:
    try:
        return ADAPTER.validate_python(given)
    except ValidationError as error:
        raise ConfigurationError(list(lines_of(error.errors(), given))) from None


def plain_config(config: Config) -> dict[str, Any]:
    """Return a checked configuration as a map of maps and lists, as ``config.yaml`` would contain it.

    The entries of ``corpora`` and ``systems`` have no keys whose value is None.
    """
    plain: dict[str, Any] = ADAPTER.dump_python(config)
    return plain | {
        "corpora": [_without_none(entry) for entry in plain["corpora"]],
        "systems": {name: _without_none(system) for name, system in plain["systems"].items()},
    }


def _is_auto(config: Mapping[str, Any], section: str, key: str) -> bool:
    """Return whether a setting is missing or ``auto``."""
    of_section = config.get(section, {})
    return isinstance(of_section, dict) and of_section.get(key, "auto") == "auto"


def _without_none(value: Any) -> Any:
    """Return a map without the keys whose value is None, at all levels."""
    if not isinstance(value, dict):
        return value
    return {key: _without_none(item) for key, item in value.items() if item is not None}
