"""The feed-forward language model of the paper (section 4.1.1; Bengio et al. 2003, Schwenk 2007), in PyTorch.

Each word before the predicted one is projected by the same matrix R, the projections stand side by side, oldest first::

    x = [R(w_{t-n+1}); ...; R(w_{t-1})]      (n - 1) * projection
    h = relu(W_1 x + b_1)                    hidden_1
    g = relu(W_2 h + b_2)                    hidden_2
    p(w | context) = softmax(W_o g + b_o)    all classes

Before the beginning of the sentence stands id 0. B: n-grams of a batch, C: context words.
"""

import torch
from torch import Tensor, nn

from rnnsmt.cslm.sizes import Sizes


class FeedForwardLM(nn.Module):
    """A 7-gram network at the paper's sizes; parameters have the names of the equations."""

    def __init__(self, sizes: Sizes, seed: int | None, spread: float = 0.01) -> None:
        """Weights U(-spread, spread), or with spread 0 by the number of a unit's inputs (He et al. 2015); biases 0.

        seed: of the initial parameters; None leaves them unset.
        """
        super().__init__()
        self.sizes = sizes
        wide = sizes.context * sizes.projection
        self.R = nn.Parameter(torch.empty(sizes.vocabulary, sizes.projection))
        self.W_1 = nn.Parameter(torch.empty(sizes.hidden_1, wide))
        self.b_1 = nn.Parameter(torch.empty(sizes.hidden_1))
        self.W_2 = nn.Parameter(torch.empty(sizes.hidden_2, sizes.hidden_1))
        self.b_2 = nn.Parameter(torch.empty(sizes.hidden_2))
        self.W_o = nn.Parameter(torch.empty(sizes.vocabulary, sizes.hidden_2))
        self.b_o = nn.Parameter(torch.empty(sizes.vocabulary))
        if seed is not None:
            self._initialise(torch.Generator().manual_seed(seed), spread)

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator, spread: float) -> None:
        for bias in (self.b_1, self.b_2, self.b_o):
            bias.zero_()
        # with spread 0: a variance of 2 / inputs before a rectifier keeps that of the signal
        by_inputs = {
            self.R: 1.0,
            self.W_1: (6 / self.W_1.shape[1]) ** 0.5,
            self.W_2: (6 / self.W_2.shape[1]) ** 0.5,
            self.W_o: (3 / self.W_o.shape[1]) ** 0.5,
        }
        for weight, width in by_inputs.items():
            weight.uniform_(-(spread or width), spread or width, generator=generator)

    def hidden(self, contexts: Tensor) -> Tensor:
        """Context ids [B, C], oldest first -> g [B, hidden_2]."""
        x = self.R[contexts].flatten(1)
        h = torch.relu(x @ self.W_1.t() + self.b_1)
        return torch.relu(h @ self.W_2.t() + self.b_2)

    def logits(self, contexts: Tensor) -> Tensor:
        """Context ids [B, C] -> output units before the softmax [B, vocabulary]."""
        return self.hidden(contexts) @ self.W_o.t() + self.b_o

    def log_probability(self, contexts: Tensor, words: Tensor) -> Tensor:
        """ln p(words | contexts) [B], exact."""
        return torch.log_softmax(self.logits(contexts), 1).gather(1, words[:, None])[:, 0]
