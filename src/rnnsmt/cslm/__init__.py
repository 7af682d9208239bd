"""The continuous-space language model: a feed-forward network over the words before."""
