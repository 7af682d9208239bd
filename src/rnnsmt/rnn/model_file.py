"""The file of a trained network: sizes, parameters, and of which vocabularies it is."""

from pathlib import Path
from typing import Any

import torch

from rnnsmt.checkpoint import load_file, refusing, save_file
from rnnsmt.io import InputError
from rnnsmt.networks.parameters import check_parameters
from rnnsmt.rnn.model import RNNEncoderDecoder, Sizes
from rnnsmt.rnn.pairs import Pairs

FORMAT = "rnnsmt-rnn-1"


def save_model(path: str | Path, model: RNNEncoderDecoder, meta: dict[str, Any]) -> None:
    """Write a network, whole or not at all. meta: plain values; ``vocabularies_of`` the pairs must be among them."""
    parameters = {name: parameter.detach().cpu().clone() for name, parameter in model.named_parameters()}
    save_file(path, {"format": FORMAT, "sizes": model.sizes.as_dict(), "meta": meta, "parameters": parameters})


def load_model(path: str | Path, device: torch.device | str = "cpu") -> tuple[RNNEncoderDecoder, dict[str, Any]]:
    """Read a network: the network on ``device``, and what ``save_model`` was given as meta.

    Raises:
        InputError: missing, damaged, or not such a file.
    """
    remedy = "train the network again with rnn train"
    content = load_file(path, device, remedy)
    if content.get("format") != FORMAT:
        raise InputError(f"{path}: not a network of this version; {remedy}")
    with refusing(path, remedy):
        with torch.device("meta"):
            model = RNNEncoderDecoder(Sizes(**content["sizes"]), seed=None)
        model.load_state_dict(content["parameters"], assign=True)
        meta = dict(content["meta"])
    check_parameters(path, model, remedy)
    return model, meta


def vocabularies_of(pairs: Pairs) -> dict[str, str]:
    """The hashes of both vocabularies, by which models know their pairs."""
    source, target = pairs.vocabularies
    return {"source vocabulary": source.hash(), "target vocabulary": target.hash()}


def check_vocabularies(path: str | Path, meta: dict[str, Any], pairs: Pairs) -> None:
    """Refuse pairs that were made with other vocabularies than the network.

    Raises:
        InputError: names the network, the pairs and the side.
    """
    for name, value in vocabularies_of(pairs).items():
        if meta.get(name) != value:
            raise InputError(
                f"{path} and {pairs.folder} do not belong together: their {name} differs; "
                "train the network on these pairs, or use the pairs that it was trained on"
            )
