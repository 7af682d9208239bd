"""Joint models in the files of Moses' feature ``BilingualNPLM`` (``rnnsmt.moses.nplm_file``): conversion both ways.

Moses has ids of its own: its target words begin with ``<unk>`` and ``<null>``, and ``<s>`` and ``</s>`` are words. Id 0
of this project, the padding before the beginning, is its ``<s>``. Moses and this project affiliate target words by the
same rule and order the inputs alike; Moses does not normalise scores, and does not score ``</s>``.
"""

from pathlib import Path

import numpy as np
import torch

from rnnsmt.base.io import InputError
from rnnsmt.cslm.model import FeedForwardLM
from rnnsmt.moses.nplm_file import (
    BEGIN,
    END,
    INFO,
    MODEL,
    NONE,
    SOURCE,
    TARGET,
    UNKNOWN,
    BilingualSizes,
    NplmNetwork,
    read_network,
    read_words,
    write_info,
    write_network,
    write_words,
)
from rnnsmt.networks.vocabulary import NULL, UNK, Vocabulary
from rnnsmt.nnjm.model import TrainedNnjm
from rnnsmt.nnjm.settings import DIRECTIONS, JointSizes

ACTIVATIONS = {"tanh": "tanh", "relu": "rectifier"}
"""Activation functions by the name of this project and of NPLM."""

PARAMETERS = {
    "W_1": "weights_1", "b_1": "biases_1", "W_2": "weights_2", "b_2": "biases_2", "W_o": "output_weights",
    "b_o": "output_biases",
}  # fmt: skip
"""Parameters of ``FeedForwardLM`` except R, with their fields of ``NplmNetwork``."""


def write_nplm(trained: TrainedNnjm, folder: str | Path, where: str | Path) -> None:
    """Write a joint model in the files of Moses' ``BilingualNPLM``.

    Args:
        trained: the network.
        folder: directory of the files, which is created.
        where: file of the network, for messages.

    Raises:
        InputError: the network has another direction than ``direct``, is not self-normalised, or has a word that is a
            special entry of Moses.
    """
    if trained.direction != DIRECTIONS[0]:
        raise InputError(f"{where}: has direction {trained.direction}, and Moses needs {DIRECTIONS[0]}")
    if not trained.self_normalised:
        raise InputError(
            f"{where}: is not self-normalised, and Moses does not normalise; train it with --self-normalised 0.1"
        )
    target, source = trained.vocabulary.words[2:-1], trained.source_vocabulary.words[2:-1]
    for word in (*target, *source):
        if word in (UNKNOWN, NONE, BEGIN, END):
            raise InputError(f"{where}: has the word {word}, which is a special entry of Moses' vocabularies")
    classes = np.array([UNK, NULL, *range(2, len(target) + 2), NULL, trained.vocabulary.eos])
    ids = np.array([UNK, *range(2, len(source) + 2), NULL, trained.source_vocabulary.eos])
    value = {name: tensor.detach().cpu().numpy() for name, tensor in trained.model.named_parameters()}
    sizes = trained.model.sizes
    assert isinstance(sizes, JointSizes)
    about = BilingualSizes(sizes.order, sizes.window)
    fields = {field: value[name] for name, field in PARAMETERS.items()}
    fields |= {field: fields[field][classes] for field in ("output_weights", "output_biases")}
    embeddings = value["R"][np.concatenate([classes, ids + sizes.vocabulary])]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_network(folder / MODEL, NplmNetwork(about.ngram, ACTIVATIONS[sizes.activation], embeddings, **fields))
    write_words(folder / TARGET, [UNKNOWN, NONE, *target, BEGIN, END])
    write_words(folder / SOURCE, [UNKNOWN, *source, BEGIN, END])
    write_info(folder / INFO, about)


def read_nplm(
    path: str | Path,
    vocabularies: tuple[str | Path, str | Path],
    sizes: BilingualSizes,
    device: torch.device | str = "cpu",
) -> TrainedNnjm:
    """Read a joint model from the files of Moses' ``BilingualNPLM``, of this project or of NPLM.

    A vocabulary without ``<s>`` or ``</s>`` has ``<unk>`` in their place, as in Moses. The number of unknown words of
    the training text is not in the files; it is 1, with which all of them have the probability of ``<unk>``.

    Args:
        path: the network.
        vocabularies: the source and the target vocabulary.
        sizes: the sizes of its n-grams.
        device: device of the network.

    Raises:
        InputError: a file is missing or damaged, or they do not fit together.
    """
    source, target = (read_words(file) for file in vocabularies)
    network = read_network(path)
    if network.ngram != sizes.ngram:
        raise InputError(
            f"{path}: has ngram_size {network.ngram}, but order {sizes.order} and a window of {sizes.window} words on "
            f"each side make {sizes.ngram}"
        )
    counts = len(network.embeddings), len(network.output_weights)
    if counts != (len(target) + len(source), len(target)):
        raise InputError(
            f"{path}: has {counts[0]} input and {counts[1]} output words, but the vocabularies have {len(target)} "
            f"target and {len(source)} source words; give those that it was trained with"
        )
    known: list[list[str]] = []
    rows: list[np.ndarray] = []
    for words, others in ((target, (UNKNOWN, NONE, BEGIN, END)), (source, (UNKNOWN, BEGIN, END))):
        place = {word: number for number, word in enumerate(words)}
        known.append([word for word in words if word not in others])
        rows.append(np.array([place.get(BEGIN, 0), 0, *(place[word] for word in known[-1]), place.get(END, 0)]))
    classes, ids = rows
    activation = next(name for name, other in ACTIVATIONS.items() if other == network.activation)
    shape = network.embeddings.shape[1], len(network.weights_1), len(network.weights_2)
    model = FeedForwardLM(
        JointSizes(len(classes), len(ids), sizes.order, sizes.window, *shape, activation), seed=None
    ).requires_grad_(False)
    fields = {name: getattr(network, field) for name, field in PARAMETERS.items()}
    fields |= {name: fields[name][classes] for name in ("W_o", "b_o")}
    fields["R"] = network.embeddings[np.concatenate([classes, ids + len(target)])]
    for name, parameter in model.named_parameters():
        parameter.copy_(torch.from_numpy(np.ascontiguousarray(fields[name])))
    return TrainedNnjm(
        model.to(device), Vocabulary(known[0]), Vocabulary(known[1]), DIRECTIONS[0], True, 1, {"origin": "NPLM"}
    )
