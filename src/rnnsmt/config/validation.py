"""Reading of a configuration: types and bounds, ``auto``, contradictions. All mistakes are reported at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rnnsmt.base.fields import fields_of
from rnnsmt.base.io import InputError
from rnnsmt.config.cross_checks import cross_checks
from rnnsmt.config.derived import is_demo_corpus
from rnnsmt.config.languages import codes_of_yaml
from rnnsmt.config.messages import lines_of
from rnnsmt.config.sections import Config


class ConfigurationError(InputError):
    """Mistakes in a configuration, one line each."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("The configuration contains errors:\n" + "\n".join(f"  {line}" for line in lines))
        self.lines = list(lines)


def demo_values() -> Iterator[tuple[str, str, object]]:
    """Yield section, key and value for the demo corpus of every setting that may be ``auto``."""
    for section, of_section in fields_of(Config).items():
        if is_dataclass(of_section.annotation):
            for key, setting in fields_of(of_section.annotation).items():
                if setting.field.demo is not None:
                    yield section, key, setting.field.demo


def checked_config(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with a value for every setting: defaults for missing ones, values for ``auto``.

    Keys that an entry of ``corpora`` or ``systems`` lacks remain missing. Text is converted to the type of the setting,
    because Snakemake leaves numbers inside maps of ``--config`` as text (``--config "tuning={runs: 5}"``).

    Raises:
        ConfigurationError: unknown keys, wrong values or contradictions.
    """
    config = {key: dict(value) if isinstance(value, dict) else value for key, value in raw.items()}
    if isinstance(config.get("languages"), dict):
        config["languages"].update(codes_of_yaml(config["languages"]))
    autos = [(section, key, value) for section, key, value in demo_values() if _is_auto(config, section, key)]
    for section, key, _ in autos:  # the default of the field is for other corpora than the demo corpus
        config.get(section, {}).pop(key, None)
    adapter = TypeAdapter(Config)
    try:
        model = adapter.validate_python(config)
    except ValidationError as error:
        raise ConfigurationError(list(lines_of(error.errors(), raw))) from None
    resolved: dict[str, Any] = adapter.dump_python(model)
    resolved["corpora"] = [_without_none(entry) for entry in resolved["corpora"]]
    resolved["systems"] = {name: _without_none(system) for name, system in resolved["systems"].items()}
    if mistakes := list(cross_checks(resolved)):
        raise ConfigurationError(mistakes)
    if resolved["quick"] or is_demo_corpus(resolved):
        for section, key, value in autos:
            resolved[section][key] = value
    return resolved


def _is_auto(config: Mapping[str, Any], section: str, key: str) -> bool:
    """Return whether a setting is missing or ``auto``."""
    of_section = config.get(section, {})
    return isinstance(of_section, dict) and of_section.get(key, "auto") == "auto"


def _without_none(value: Any) -> Any:
    """Return a map without the keys whose value is None, in all depths."""
    if not isinstance(value, dict):
        return value
    return {key: _without_none(item) for key, item in value.items() if item is not None}
