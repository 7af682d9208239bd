"""The continuous-space language model (CSLM), a feed-forward network over the preceding words."""
