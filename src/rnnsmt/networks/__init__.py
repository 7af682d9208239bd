"""Networks: their kinds and training, and what all of them share: minibatches, gradients, softmax, model files."""

from rnnsmt.networks.operations import rescore, train

__all__ = ["rescore", "train"]
