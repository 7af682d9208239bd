"""Check of the settings of all networks before a run; otherwise, an error would only appear when training starts."""

from collections.abc import Iterator, Mapping
from typing import Any

from rnnsmt.base.fields import fields_of
from rnnsmt.config.features import LSTM
from rnnsmt.config.sections import Config
from rnnsmt.networks.settings import TrainingSettings
from rnnsmt.plan.messages import hint
from rnnsmt.plan.systems import Systems
from rnnsmt.registries import NETWORKS


def setting_mistakes(config: Config) -> Iterator[str]:
    """Yield a line for every setting of a network that is unknown, out of range or incompatible with others.

    The settings of an LSTM override ``seq2seq.settings``, whose mistakes are not repeated for every LSTM.
    """
    systems, repeated = Systems(config), set()
    for name in dict.fromkeys([*NETWORKS, *systems.trainable]):
        kind = systems.kind_of(name)
        place = f"{name}.settings" if systems.has_section(name) else f"networks.settings.{name}"
        place = place if name == kind else f"seq2seq.networks.{name}"
        for mistake in _mistakes(NETWORKS[kind].presets[systems.preset(name)], systems.network_settings(name)):
            if name == kind or mistake not in repeated:
                yield f"{place}{mistake}"
            if name == LSTM:
                repeated.add(mistake)
    for name in config.networks.settings:
        if name not in systems.trainable or systems.has_section(name):
            known = [other for other in systems.trainable if not systems.has_section(other)]
            yield f"networks.settings: no network {name} of another package; {hint(name, known)}"


def _mistakes(preset: TrainingSettings, overrides: Mapping[str, Any]) -> Iterator[str]:
    """Yield the mistakes; each begins with ``.KEY:`` or a colon."""
    known = list(fields_of(type(preset)))
    for key in overrides:
        if key not in known:
            yield f": unknown key {key}; {hint(key, known)}"
    valid = {key: value for key, value in overrides.items() if key in known}
    for key, text, value in preset.checked(preset.values_with(valid), text=True)[1]:
        yield f".{key}: {text}, not {value!r}" if key else f": {text}"
