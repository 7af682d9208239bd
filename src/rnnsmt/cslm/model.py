"""The continuous-space language model of the paper: its model file, and its training on the n-grams of a text.

``rnnsmt.networks.feed_forward`` defines the equations and the content of the file,
``rnnsmt.networks.feed_forward_training`` the rest of the training.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.base.paths import StrPath
from rnnsmt.cslm.settings import CslmSettings, CslmSizes
from rnnsmt.cslm.text import Text
from rnnsmt.networks import feed_forward
from rnnsmt.networks.batches import Index, draw_held_out
from rnnsmt.networks.data import blocks_of, class_counts, read_apart
from rnnsmt.networks.devices import DeviceSetup
from rnnsmt.networks.feed_forward import FeedForwardContent, TrainedNetwork
from rnnsmt.networks.feed_forward_training import FeedForwardTask, NGrams
from rnnsmt.networks.model_file import ModelFormat

FORMAT = ModelFormat("rnnsmt-cslm-2", "a CSLM", "train it again with `networks train`")


class CslmContent(FeedForwardContent):
    """Metadata of a model file."""

    sizes: CslmSizes


def load_model(path: StrPath, device: torch.device | str = "cpu") -> TrainedNetwork:
    """Load a model on a device."""
    return feed_forward.load_model(path, FORMAT, CslmContent, device)


def cslm_task(text: Text, settings: CslmSettings, seed: int, setup: DeviceSetup) -> FeedForwardTask:
    """Split the n-grams of a text into training and held-out n-grams, create the network, and return the task."""

    def rows(index: Index) -> NDArray[np.int64]:
        return np.concatenate([text.contexts(index, settings.order - 1), text.words[index][:, None]], 1)

    held_out = draw_held_out(len(text), settings.held_out_of(len(text)), seed)
    held_out_words = np.concatenate(read_apart(text.words.__getitem__, held_out, text.release))
    ngrams = NGrams(
        number=len(text),
        held_out=held_out,
        rows=rows,
        release=text.release,
        vocabularies=[text.vocabulary],
        counts=[class_counts(blocks_of(text.words), len(text.vocabulary), held_out_words)],
        unknown_words=text.unknown_words,
        inputs={"text": text.fingerprint},
    )
    text.expect_random_access()
    return FeedForwardTask("cslm", FORMAT, "n-grams", ngrams, settings, seed, setup)
