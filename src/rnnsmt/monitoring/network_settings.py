"""Settings of the networks of a configuration, checked against their presets before a run begins, and what follows."""

from collections.abc import Iterator, Mapping
from typing import Any

from rnnsmt.base.io import InputError
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
    try:
        preset_with(NNJM_PRESETS[config["nnjm"]["preset"]], config["nnjm"]["settings"])
    except InputError as error:
        yield f"nnjm.settings: {error}"
    longest = config["phrases"]["max_length"]
    for scorer in systems.scorers:
        try:
            settings = preset_with(RNN_PRESETS[config["rnn"]["preset"]], systems.scorer_settings(scorer))
        except InputError as error:
            yield f"{scorer}: {error}"
            continue
        is_used = scorer in systems.networks
        if is_used and settings.variant == "feed-forward" and settings.max_length < longest:
            yield (
                f"{scorer}: accepts phrases of at most {settings.max_length} words, but phrases.max_length is "
                f"{longest}; set its max_length to {longest}"
            )


def first_layers_mb(config: Mapping[str, Any]) -> dict[str, float]:
    """Return the MB of the first layer of networks that a search computes for every word, by name.

    That of the CSLM is part of what every network in a search takes (``MOST_NEURAL_MEGABYTES``); the joint model has
    twice as many positions, each with the words of one side.
    """
    settings = preset_with(NNJM_PRESETS[config["nnjm"]["preset"]], config["nnjm"]["settings"])
    words = config["rnn"]["vocab_size"] + 1  # and </s>
    return {"nnjm": settings.sizes(words, words).first_layer_bytes / 1e6}
