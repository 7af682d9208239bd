"""The neural network joint model of Devlin et al. (2014), section 2, and the files of a network.

p(t_i | history, window) = softmax(W_o g + b_o), where the inputs are the 2 w + 1 source words around the word s_a with
which t_i is affiliated (``rnnsmt.nnjm.examples``), and the n - 1 target words before t_i, the oldest first::

    x = [R(s_{a-w}); ...; R(s_{a+w}); R(t_{i-n+1}); ...; R(t_{i-1})]
    h = f(W_1 x + b_1)
    g = f(W_2 h + b_2)

With w = 5 and n = 4 these are 14 inputs. Source and target words have separate rows in R, the target words first. The
equations, the gradient and the scoring are those of the CSLM, whose inputs are target words only
(``rnnsmt.networks.feed_forward``).
"""

from pathlib import Path
from typing import Any, NamedTuple

import torch

from rnnsmt.networks.data import Vocabulary
from rnnsmt.networks.feed_forward import FeedForwardLM
from rnnsmt.networks.model_file import ModelFormat, read_model, write_model
from rnnsmt.nnjm.settings import JointSizes

FORMAT = ModelFormat("rnnsmt-nnjm-2", "a joint model", "train it again with `nnjm train`")


class TrainedNnjm(NamedTuple):
    """The content of a model file.

    Attributes:
        vocabulary: the target words, which are the classes.
        self_normalised: whether the network was trained so that an output unit approximates the log probability.
        unknown_words: number of distinct target words of the training text outside the vocabulary.
        meta: settings, seed and results of the training run.
    """

    model: FeedForwardLM
    vocabulary: Vocabulary
    source_vocabulary: Vocabulary
    self_normalised: bool
    unknown_words: int
    meta: dict[str, Any]


def save_model(path: str | Path, trained: TrainedNnjm) -> None:
    """Write a model, atomically. ``trained.meta``: plain values."""
    content = {
        "words": trained.vocabulary.words[2:-1],
        "source words": trained.source_vocabulary.words[2:-1],
        "self-normalised": trained.self_normalised,
        "unknown words": trained.unknown_words,
        "meta": trained.meta,
    }
    write_model(path, FORMAT, trained.model, trained.model.sizes, content)


def load_model(path: str | Path, device: torch.device | str = "cpu") -> TrainedNnjm:
    """Read a model onto a device."""
    model, content = read_model(path, FORMAT, lambda sizes: FeedForwardLM(JointSizes(**sizes), seed=None), device)
    return TrainedNnjm(
        model,
        Vocabulary(content["words"]),
        Vocabulary(content["source words"]),
        content["self-normalised"],
        content["unknown words"],
        content["meta"],
    )
