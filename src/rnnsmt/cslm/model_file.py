"""The file of a trained feed-forward LM: sizes, parameters, the words of its classes, how it was trained."""

from pathlib import Path
from typing import Any, NamedTuple

import torch

from rnnsmt.checkpoint import load_file, refusing, save_file
from rnnsmt.cslm.model import FeedForwardLM
from rnnsmt.cslm.sizes import Sizes
from rnnsmt.io import InputError
from rnnsmt.networks.parameters import check_parameters
from rnnsmt.networks.vocabulary import Vocabulary

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
    with refusing(path, remedy):
        with torch.device("meta"):
            model = FeedForwardLM(Sizes(**content["sizes"]), seed=None)
        model.load_state_dict(content["parameters"], assign=True)
        found = Trained(model, Vocabulary(content["words"]), bool(content["self-normalised"]), dict(content["meta"]))
    if len(found.vocabulary) != model.sizes.vocabulary:
        raise InputError(f"{path}: its words are not as many as its classes; {remedy}")
    check_parameters(path, model, remedy)
    return found
