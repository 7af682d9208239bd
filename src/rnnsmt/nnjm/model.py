"""The neural network joint model of Devlin et al. (2014), section 2, and the files of a network.

p(t_i | history, window) = softmax(W_o g + b_o), where the inputs are the 2 w + 1 source words around the word s_a with
which t_i is affiliated (``rnnsmt.nnjm.examples``), and the n - 1 target words before t_i, the oldest first::

    x = [R(s_{a-w}); ...; R(s_{a+w}); R(t_{i-n+1}); ...; R(t_{i-1})]
    h = f(W_1 x + b_1)
    g = f(W_2 h + b_2)

With w = 5 and n = 4 these are 14 inputs. Source and target words have separate rows in R, the target words first, as in
the files of NPLM. The equations, the gradient and the scoring are those of the CSLM, whose inputs are target
words only (``rnnsmt.networks.feed_forward``).

Further below: the model file, and the conversion from and to the files of Moses' feature ``BilingualNPLM``
(``rnnsmt.moses.nplm_file``). Moses uses other ids: its target words begin with ``<unk>`` and ``<null>``, and ``<s>``
and ``</s>`` are words. Id 0 of this project, the padding before the beginning, corresponds to ``<s>``. Moses and this
project affiliate target words by the same rule and have the same order of inputs; Moses does not normalise scores, and
does not score ``</s>``.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from rnnsmt.base.io import InputError
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
from rnnsmt.networks.data import NULL, UNK, Vocabulary
from rnnsmt.networks.feed_forward import FeedForwardLM
from rnnsmt.networks.model_file import ModelFormat, corrupt_as_input_error, read_model, write_model
from rnnsmt.nnjm.settings import DIRECTIONS, JointSizes

FORMAT = ModelFormat("rnnsmt-nnjm-2", "a joint model", "train it again with `nnjm train`")


class TrainedNnjm(NamedTuple):
    """The content of a model file.

    Attributes:
        model: the network.
        vocabulary: the target words, which are the classes.
        source_vocabulary: the source words.
        direction: what the network predicts, one of ``settings.DIRECTIONS``; "target" is the predicted side.
        self_normalised: whether the network was trained so that an output unit approximates the log probability.
        unknown_words: number of distinct target words of the training text outside the vocabulary.
        meta: settings, seed and results of the training run.
    """

    model: FeedForwardLM
    vocabulary: Vocabulary
    source_vocabulary: Vocabulary
    direction: str
    self_normalised: bool
    unknown_words: int
    meta: dict[str, Any]


def save_model(path: str | Path, trained: TrainedNnjm) -> None:
    """Write a model, atomically. ``trained.meta``: plain values."""
    content = {
        "words": trained.vocabulary.words[2:-1],
        "source words": trained.source_vocabulary.words[2:-1],
        "direction": trained.direction,
        "self-normalised": trained.self_normalised,
        "unknown words": trained.unknown_words,
        "meta": trained.meta,
    }
    write_model(path, FORMAT, trained.model, trained.model.sizes, content)


def load_model(path: str | Path, device: torch.device | str = "cpu") -> TrainedNnjm:
    """Read a model onto a device.

    Raises:
        InputError: the file is missing, damaged, or of another kind.
    """
    model, content = read_model(path, FORMAT, lambda sizes: FeedForwardLM(JointSizes(**sizes), seed=None), device)
    with corrupt_as_input_error(path, FORMAT.remedy):
        trained = TrainedNnjm(
            model,
            Vocabulary(content["words"]),
            Vocabulary(content["source words"]),
            str(content["direction"]),
            bool(content["self-normalised"]),
            int(content["unknown words"]),
            content["meta"],
        )
    if trained.direction not in DIRECTIONS:
        raise InputError(f"{path}: unknown direction {trained.direction}; {FORMAT.remedy}")
    sizes = model.sizes
    if (len(trained.vocabulary), len(trained.source_vocabulary)) != (
        sizes.vocabulary,
        sizes.inputs - sizes.vocabulary,
    ):
        raise InputError(f"{path}: the numbers of words and of ids differ; {FORMAT.remedy}")
    return trained


ACTIVATIONS = {"tanh": "tanh", "relu": "rectifier"}
"""Activation functions by the name of this project and of NPLM."""

PARAMETERS = {
    "W_1": "weights_1", "b_1": "biases_1", "W_2": "weights_2", "b_2": "biases_2", "W_o": "output_weights",
    "b_o": "output_biases",
}  # fmt: skip
"""Parameters of ``FeedForwardLM`` except R, with their fields of ``NplmNetwork``."""


def write_nplm(trained: TrainedNnjm, directory: str | Path, where: str | Path) -> None:
    """Write a joint model in the files of Moses' ``BilingualNPLM``.

    Args:
        trained: the network.
        directory: directory of the files, which is created.
        where: file of the network, for messages.

    Raises:
        InputError: the network has another direction than ``direct``, is not self-normalised, or contains a word that
            is reserved in Moses.
    """
    if trained.direction != DIRECTIONS[0]:
        raise InputError(f"{where}: has the direction {trained.direction}, but Moses requires {DIRECTIONS[0]}")
    if not trained.self_normalised:
        raise InputError(
            f"{where}: is not self-normalised, but Moses does not normalise scores; train it with --self-normalised 0.1"
        )
    target, source = trained.vocabulary.words[2:-1], trained.source_vocabulary.words[2:-1]
    for word in (*target, *source):
        if word in (UNKNOWN, NONE, BEGIN, END):
            raise InputError(f"{where}: contains the word {word}, which is reserved in Moses vocabularies")
    classes = np.array([UNK, NULL, *range(2, len(target) + 2), NULL, trained.vocabulary.eos])
    ids = np.array([UNK, *range(2, len(source) + 2), NULL, trained.source_vocabulary.eos])
    value = {name: tensor.detach().cpu().numpy() for name, tensor in trained.model.named_parameters()}
    sizes = trained.model.sizes
    assert isinstance(sizes, JointSizes)
    bilingual = BilingualSizes(sizes.order, sizes.window)
    fields = {field: value[name] for name, field in PARAMETERS.items()}
    fields |= {field: fields[field][classes] for field in ("output_weights", "output_biases")}
    embeddings = value["R"][np.concatenate([classes, ids + sizes.vocabulary])]
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    write_network(directory / MODEL, NplmNetwork(bilingual.ngram, ACTIVATIONS[sizes.activation], embeddings, **fields))
    write_words(directory / TARGET, [UNKNOWN, NONE, *target, BEGIN, END])
    write_words(directory / SOURCE, [UNKNOWN, *source, BEGIN, END])
    write_info(directory / INFO, bilingual)


def read_nplm(
    path: str | Path,
    vocabularies: tuple[str | Path, str | Path],
    sizes: BilingualSizes,
    device: torch.device | str = "cpu",
) -> TrainedNnjm:
    """Read a joint model from the files of Moses' ``BilingualNPLM``, of this project or of NPLM.

    If a vocabulary has no ``<s>`` or ``</s>``, ``<unk>`` is used instead, as in Moses. The number of unknown words of
    the training text is not in the files; it is set to 1, so that each of them has the probability of ``<unk>``.

    Args:
        path: the network.
        vocabularies: the source and the target vocabulary.
        sizes: the sizes of its n-grams.
        device: device of the network.

    Raises:
        InputError: a file is missing or damaged, or the files do not match.
    """
    source, target = (read_words(file) for file in vocabularies)
    network = read_network(path)
    if network.ngram != sizes.ngram:
        raise InputError(
            f"{path}: has ngram_size {network.ngram}, but order {sizes.order} and a window of {sizes.window} words "
            f"on each side correspond to {sizes.ngram}"
        )
    counts = len(network.embeddings), len(network.output_weights)
    if counts != (len(target) + len(source), len(target)):
        raise InputError(
            f"{path}: has {counts[0]} input and {counts[1]} output words, but the vocabularies have {len(target)} "
            f"target and {len(source)} source words; use those that it was trained with"
        )
    known: list[list[str]] = []
    rows: list[np.ndarray] = []
    for words, others in ((target, (UNKNOWN, NONE, BEGIN, END)), (source, (UNKNOWN, BEGIN, END))):
        index = {word: number for number, word in enumerate(words)}
        known.append([word for word in words if word not in others])
        rows.append(np.array([index.get(BEGIN, 0), 0, *(index[word] for word in known[-1]), index.get(END, 0)]))
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
