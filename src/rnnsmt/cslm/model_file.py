"""The file of a trained feed-forward LM: sizes, parameters, the words of its classes, how it was trained."""

from pathlib import Path
from typing import Any, NamedTuple

import torch

from rnnsmt.checkpoint import load_file, save_file
from rnnsmt.cslm.model import FeedForwardLM
from rnnsmt.cslm.sizes import Sizes
from rnnsmt.io import InputError
from rnnsmt.rnn.vocabulary import Vocabulary

FORMAT = "rnnsmt-cslm-1"


class Trained(NamedTuple):
    """What a model file holds. self_normalised: the output unit of a word is nearly its log probability."""

    model: FeedForwardLM
    vocabulary: Vocabulary
    self_normalised: bool
    meta: dict[str, Any]


def save_model(
    path: str | Path, model: FeedForwardLM, vocabulary: Vocabulary, self_normalised: bool, meta: dict[str, Any]
) -> None:
    """Write a model, whole or not at all. meta: plain values (seed, settings)."""
    content = {
        "format": FORMAT,
        "sizes": model.sizes.as_dict(),
        "words": vocabulary.words[2:-1],
        "self-normalised": self_normalised,
        "meta": meta,
        "parameters": {name: parameter.detach().cpu().clone() for name, parameter in model.named_parameters()},
    }
    save_file(path, content)


def load_model(path: str | Path, device: torch.device | str = "cpu") -> Trained:
    """Read a model onto a device.

    Raises:
        InputError: missing, damaged, or not such a file.
    """
    remedy = "train it again with cslm train"
    content = load_file(path, device, remedy)
    if content.get("format") != FORMAT:
        raise InputError(f"{path}: not a CSLM of this version; {remedy}")
    try:
        with torch.device("meta"):
            model = FeedForwardLM(Sizes(**content["sizes"]), seed=None)
        model.load_state_dict(content["parameters"], assign=True)
        vocabulary = Vocabulary(content["words"])
        found = Trained(model, vocabulary, bool(content["self-normalised"]), dict(content["meta"]))
        damage = "" if len(vocabulary) == model.sizes.vocabulary else "its words are not as many as its classes"
        if not all(bool(parameter.isfinite().all()) for parameter in model.parameters()):
            damage = "a parameter is not a number"
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        damage = str(error).splitlines()[0][:120]
    if damage:
        raise InputError(f"{path}: damaged ({damage}); {remedy}")
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return found
