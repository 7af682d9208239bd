"""Check of the settings of all networks before a run: each training would reject its own only when it starts."""

from collections.abc import Iterator
from typing import Any

from rnnsmt.base.io import InputError
from rnnsmt.cslm.settings import PRESETS as CSLM_PRESETS
from rnnsmt.networks.options import preset_with
from rnnsmt.nnjm.settings import PRESETS as NNJM_PRESETS
from rnnsmt.plan.models import Systems
from rnnsmt.rnn.settings import PRESETS as RNN_PRESETS
from rnnsmt.seq2seq.settings import PRESETS as SEQ2SEQ_PRESETS


def setting_mistakes(systems: Systems) -> Iterator[str]:
    """Yield a line for every network whose settings are out of range or incompatible."""
    config = systems.config
    for lstm in config["seq2seq"]["networks"]:
        try:
            preset_with(SEQ2SEQ_PRESETS[config["seq2seq"]["preset"]], systems.lstm_settings(lstm))
        except InputError as error:
            yield f"seq2seq.networks.{lstm}: {error}"
    presets: dict[str, Any] = {"rnn": RNN_PRESETS, "cslm": CSLM_PRESETS, "nnjm": NNJM_PRESETS}
    for name, of_network in presets.items():
        try:
            preset_with(of_network[config[name]["preset"]], config[name]["settings"])
        except InputError as error:
            yield f"{name}.settings: {error}"
