"""The neural network joint model of Devlin et al. (2014), section 2, and its model files.

p(t_i | history, window) = softmax(W_o g + b_o). The inputs are the 2 w + 1 source words around the word s_a with which
t_i is affiliated (``rnnsmt.nnjm.examples``), and the n - 1 target words before t_i, the oldest first::

    x = [R(s_{a-w}); ...; R(s_{a+w}); R(t_{i-n+1}); ...; R(t_{i-1})]
    h = f(W_1 x + b_1)
    g = f(W_2 h + b_2)

With w = 5 and n = 4, there are 14 inputs. Source and target words have separate rows in R, the target words first. The
code for the equations, the gradient and the scores is that of the CSLM, whose inputs are only target words
(``rnnsmt.networks.feed_forward``).
"""

from typing import Annotated

import torch
from pydantic import Field

from rnnsmt.base.paths import StrPath
from rnnsmt.networks import feed_forward
from rnnsmt.networks.data import DistinctWords
from rnnsmt.networks.feed_forward import FeedForwardContent, TrainedNetwork
from rnnsmt.networks.model_file import ModelFormat, Shortlist
from rnnsmt.nnjm.settings import JointSizes

FORMAT = ModelFormat("rnnsmt-nnjm-2", "a joint model", "train it again with `networks train`")


class JointContent(FeedForwardContent):
    """Metadata of a model file, including the source words."""

    sizes: JointSizes
    source_words: Annotated[DistinctWords, Field(alias="source words")]

    def shortlists(self) -> list[Shortlist]:
        """Return the words of the classes, and the source words."""
        source = Shortlist("source words", self.source_words, self.sizes.source_vocabulary)
        return [*super().shortlists(), source]


def load_model(path: StrPath, device: torch.device | str = "cpu") -> TrainedNetwork:
    """Load a model on a device."""
    return feed_forward.load_model(path, FORMAT, JointContent, device)
